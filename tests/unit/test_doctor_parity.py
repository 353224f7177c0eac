"""`doctor` compares what is derived with the log: all is as it should be, something is not, or it was not looked at."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from projectmem_logs.store import LogStore, init_home
from projectmem_projections import generations
from projectmem_projections.overlay import connect

from projectmem import doctor
from projectmem.place import Place

NOW = 1_790_000_000_000_000
ACTOR = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A log with one note and summaries of it."""
    init_home(str(tmp_path / "home"), NOW)
    note = {"kind": "note.recorded", "at": NOW, "actor": ACTOR, "causes": [], "data": {"text": "a", "tags": []}}
    LogStore(str(tmp_path / "home")).append([note], now=NOW)
    return Place(str(tmp_path), str(tmp_path / "home"))


def test_what_is_as_the_log_has_it_is_ok(place: Place) -> None:
    (found,) = doctor._parity(place, False)
    assert (found.status, "what the log gives" in found.detail) == ("ok", True)


def test_what_differs_is_named_with_what_to_do(place: Place) -> None:
    path = generations.build(place.home)
    with connect(path) as con:
        con.execute("UPDATE records SET text = 'b'")
    pointer = Path(place.home, "projections", "duckdb", "CURRENT")
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "bytes": os.path.getsize(path)}))
    (found,) = doctor._parity(place, False)
    assert found.status == "fail" and "records" in found.detail and "rebuild" in found.remedy


def test_a_long_log_is_compared_when_asked(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PARITY_BYTES", 1)
    (found,) = doctor._parity(place, False)
    assert found.status == "ok" and "--all" in found.detail
    (found,) = doctor._parity(place, True)
    assert "what the log gives" in found.detail


def test_how_far_a_comparison_is_is_told_on_a_terminal(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[tuple[int, int]]()
    monkeypatch.setattr("projectmem.output.Waiting.tell", lambda _, done, total: told.append((done, total)))
    list(doctor._parity(place, True))
    assert told == [(0, 3), (1, 3), (2, 3)]
