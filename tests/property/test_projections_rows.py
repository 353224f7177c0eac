"""What imported calls fold to where they are drafted gives, in its place, what their events give one by one."""

from __future__ import annotations

import marshal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_projections.fold_rows import folded
from projectmem_projections.memory import MemoryState
from projectmem_projections.snapshot import Snapshot

from tests.property.test_projections_fold import SETTINGS, event, finished, fresh, interleaving, logs

VERIFIERS = [("pytest", "pytest b.py"), ("npm run", "npm run build"), ("edit", "edit b.py"), ("git", "git checkout src/a.py")]


@st.composite
def imported(draw: st.DrawFn) -> dict[str, Any]:
    """A call as an import tells of it: no turn, no try; some of verifiers and edits."""
    data = draw(finished())[1]
    data |= {"turn": -1, "tried": None, "source": "backfill"}
    for part in data["parts"]:
        part["family"], part["text"] = draw(st.sampled_from([(part["family"], part["text"]), *VERIFIERS]))
    return data


def _sealed(stream: str, given: list[dict[str, Any]], first: int, ats: list[int]) -> list[dict[str, Any]]:
    found = [
        event(stream, first + n, "action.finished", data, at=at) for n, (data, at) in enumerate(zip(given, ats, strict=True))
    ]
    for one in found:
        one["actor"]["origin"] = "import"
    return found


def _place(one: dict[str, Any]) -> dict[str, Any]:
    return {name: one[name] for name in ("id", "stream", "seq")}


def _folded(one: dict[str, Any]) -> Any:
    return folded(one["kind"], one["at"], one["actor"], one["data"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@SETTINGS
@given(logs(), st.lists(st.tuples(imported(), st.integers(0, 60)), min_size=1, max_size=50), st.data())
def test_rows_put_in_their_place_are_the_fold_of_their_events(
    folder: Path, log: dict[str, list[dict[str, Any]]], calls: list[tuple[dict[str, Any], int]], data: st.DataObject
) -> None:
    """Behind any log, in batches of any size, some healed or drained before; and through marshal."""
    before = interleaving(data.draw, log)
    stream = data.draw(st.sampled_from([*log, "s9"]))
    first = len(log.get(stream, ())) + 1
    events = _sealed(stream, [one for one, _ in calls], first, [at for _, at in calls])
    memory = MemoryState()
    assert memory.apply([*before, *events])
    cuts = sorted({0, len(events), *data.draw(st.lists(st.integers(0, len(events)), max_size=3))})
    with fresh(folder) as snapshot:
        assert snapshot.apply(before)
        for begin, end in pairwise(cuts):
            whole = data.draw(st.integers(0, 3))
            some = events[begin:end]
            rows = {one["id"]: marshal.loads(marshal.dumps(_folded(one))) for one in some[whole:]}
            assert None not in rows.values()
            assert snapshot.apply([*some[:whole], *map(_place, some[whole:])], folded=rows)
        assert snapshot.canonical_dump() == memory.canonical_dump()


def test_one_key_told_of_often_keeps_what_a_history_keeps(tmp_path: Path) -> None:
    """More outcomes in a batch than are kept, with those that were there, in any order of their times."""
    base = {"key": "a" * 32, "text": "make", "joins": [], "outcome": "failed", "failed_key": "a" * 32, "class": "build"}
    base |= {"parts": [{"key": "a" * 32, "family": "make", "text": "make", "words": ["make"], "kind": "sh"}], "signature": "s"}
    given = [{**base, "call": f"t{n}", **({} if n % 3 else {"outcome": "ok", "failed_key": ""})} for n in range(90)]
    events = _sealed("s1", given, 1, [n * 37 % 90 for n in range(90)])
    memory = MemoryState()
    memory.apply(events)
    with Snapshot(str(tmp_path / "gate.sqlite")) as snapshot:
        for begin, end in ((0, 40), (40, 41), (41, 90)):
            some = events[begin:end]
            snapshot.apply(list(map(_place, some)), folded={one["id"]: _folded(one) for one in some})
        assert snapshot.canonical_dump() == memory.canonical_dump()
        assert len(snapshot.entries(["a" * 32])["a" * 32]) == 17, "the newest, and what was recorded last"


def test_what_an_import_does_not_tell_is_no_row() -> None:
    """A turn, an observed call, another kind: they are folded when they have their place."""
    one = _sealed("s1", [{"call": "t", "outcome": "ok", "parts": [], "turn": -1}], 1, [5])[0]
    assert _folded(one) is not None
    assert _folded({**one, "data": {**one["data"], "turn": 3}}) is None
    assert _folded({**one, "actor": {**one["actor"], "origin": "observed"}}) is None
