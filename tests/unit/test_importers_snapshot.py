"""An import that finds the log locked, or whose snapshot is harmed meanwhile: what the gate knows is what the log says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.verify import verify
from projectmem_projections.errors import SnapshotBusy, SnapshotDamaged
from projectmem_projections.snapshot import discard

from projectmem.hook import spooled
from projectmem.hook.state import open_state
from projectmem.importers import appending, workers
from projectmem.importers import backfill as importing
from projectmem.importers.backfill import backfill
from projectmem.importers.earlier import Earlier
from projectmem.place import Place
from projectmem.writing import append, snapshot_path
from tests.locked import locked
from tests.unit.test_importers_workers import CALLS, NOW, _calls, _place, _told, all_there

__all__ = ["all_there"]  # a fixture

OLD = "gate.old"
NOTE: dict[str, Any] = {"kind": "note.recorded", "at": NOW, "actor": {"session": "s", "origin": "observed"}, "causes": []}
NOTE["data"] = {"text": "x", "tags": []}


def _behind(path: str) -> None:
    os.replace(os.path.join(os.path.dirname(path), OLD), path)


def _damaged(path: str) -> None:
    Path(path).write_bytes(b"no database" * 1000)


def _half(path: str) -> None:
    os.truncate(path, os.path.getsize(path) // 2)


@pytest.mark.parametrize("harm", [os.remove, _damaged, _half, _behind])
@pytest.mark.parametrize("far", [False, True])
def test_a_snapshot_that_is_harmed_during_an_import_is_what_a_rebuild_is(
    place: Place, monkeypatch: pytest.MonkeyPatch, harm: Callable[[str], None], far: bool
) -> None:
    """Also where it is too far behind to be caught up with under the log's lock."""
    monkeypatch.setattr(importing, "BATCH_EVENTS", 50)
    if far:
        monkeypatch.setattr("projectmem.writing.CATCH_UP_BYTES", 0)
    path = snapshot_path(place.home)
    append(place, [NOTE], NOW)

    def read(*_: Any) -> Iterator[dict[str, Any]]:
        for n, call in enumerate(_calls(place, 5)):
            if n == 120:
                shutil.copy(path, os.path.join(os.path.dirname(path), OLD))
            if n == 320:
                harm(path)
            yield call

    assert backfill(place, now=NOW, sources=[(Path("x"), read)]).recorded == CALLS
    with open_state(place) as found:
        grown = found.canonical_dump()
    discard(path)
    with open_state(place) as found:
        assert found.canonical_dump() == grown
    assert len(grown) > 10_000


def test_a_snapshot_that_another_process_holds_is_asked_again_later() -> None:
    """A damaged one is not."""
    asked: list[Any] = []

    class Held:
        error: Exception | None = SnapshotBusy("held")

        def ever_failed(self) -> bool:
            return True

        def moves(self) -> list[str]:
            return []

        def entries(self, keys: list[str]) -> dict[str, list[dict[str, Any]]]:
            asked.append(keys)
            if self.error is not None:
                raise self.error
            return {"k": [{"t": "fail", "at": 0, "stream": "s", "seq": 1}]}

    earlier = Earlier(Held())
    assert not earlier.failing(["k"])
    Held.error = None
    assert earlier.failing(["k"])
    Held.error = SnapshotDamaged("gone")
    assert not earlier.failing(["k"])
    Held.error = None
    assert not earlier.failing(["k"]) and len(asked) == 3


@pytest.mark.usefixtures("all_there")
def test_what_other_processes_encoded_and_finds_the_log_locked_comes_in_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it had been written at once; read again, all of it is known, and the snapshot is what a rebuild is."""
    monkeypatch.setattr(importing, "ALONE", 1)
    monkeypatch.setattr(importing, "BATCH_EVENTS", 50)
    monkeypatch.setattr(appending, "WAIT_MS", 1)
    monkeypatch.setattr(spooled, "soon", lambda *_: None)
    monkeypatch.setattr(workers, "processors", lambda: 2)
    free, busy = _place(tmp_path / "free"), _place(tmp_path / "busy")
    for place in (free, busy):
        append(place, [NOTE], NOW)
    backfill(free, now=NOW, sources=[(Path("x"), lambda *_: _calls(free, 3))])
    sources = [(Path("x"), lambda *_: _calls(busy, 3))]
    with locked(busy.home):
        assert backfill(busy, now=NOW, sources=sources).recorded == CALLS
    assert len(_told(busy)) == 1
    assert backfill(busy, now=NOW, sources=sources).known == CALLS
    assert _told(busy) == _told(free) and not verify(busy.home).problems
    with open_state(busy) as found:
        grown = found.canonical_dump()
    discard(snapshot_path(busy.home))
    with open_state(busy) as found:
        assert found.canonical_dump() == grown
