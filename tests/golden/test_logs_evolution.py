"""Older versions of kinds: every way of reading brings them to today's, and what is derived is as if it had always been so."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))  # tests/ is no package: its shared modules lie beside it

import make_golden_evolved as golden
import make_golden_log as base
from projectmem_logs import erasing, upcasting
from projectmem_logs.canonical import canonical
from projectmem_logs.digest import sha256_hex
from projectmem_logs.reader import find_event, read_events
from projectmem_logs.selecting import Selector
from projectmem_logs.tail import segment_name
from projectmem_logs.verify import verify
from projectmem_projections import generations
from projectmem_projections.following import Follower
from projectmem_projections.memory import MemoryState
from projectmem_projections.rebuild import rebuild
from projectmem_projections.snapshot import Snapshot
from projectmem_projections.tail import read_tail

from projectmem import lookup
from projectmem.place import Place

FOLDER = Path(__file__).resolve().parents[2] / "logs" / "golden" / "evolved"
DIGESTS = json.loads((FOLDER / "digests.json").read_text()) if (FOLDER / "digests.json").exists() else {}
FIRST = segment_name(1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the golden log, read by a version that knows the later versions of two kinds."""
    shutil.copytree(FOLDER, tmp_path / "home")
    for name, value in golden.LATEST.items():
        monkeypatch.setitem(upcasting.LATEST, name, value)
    for key, upcaster in golden.UPCASTERS.items():
        monkeypatch.setitem(upcasting.UPCASTERS, key, upcaster)
    return str(tmp_path / "home")


def careful(home: str) -> list[dict[str, Any]]:
    """`read_events`, which takes the fast way from a megabyte on."""
    return list(read_events(home))


def fast(home: str) -> list[dict[str, Any]]:
    """The same, by the fast way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("projectmem_logs.reader.MUCH", 0)
        return list(read_events(home))


WAYS: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "careful": careful,
    "fast": fast,
    "tail": lambda home: read_tail(home, golden.STREAM, FIRST, 0, 0, 99).events,
    "follower": lambda home: list(Follower(home)),
    "search": lambda home: list(lookup.lines_with(home, golden.STREAM)),
    "one by one": lambda home: [e for seen in read_events(home, recorded=True) if (e := find_event(home, seen["id"]))],
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_every_way_of_reading_gives_today_s_payloads(home: str, way: str) -> None:
    """Old ones brought up step by step, today's and future ones as they are, one that is not what it says left alone."""
    events = WAYS[way](home)
    assert [e["data"] for e in events] == golden.TODAY
    as_written = list(read_events(home, recorded=True))
    assert [e["data"] for e in as_written] == [data for _, _, data in golden.SAMPLES]
    assert [{**e, "data": 0} for e in events] == [{**e, "data": 0} for e in as_written] and verify(home).ok


def test_it_replays_to_the_same_digests_for_ever(home: str) -> None:
    """The events as written, the events as read, the gate's state, the summaries."""
    rebuild(home)
    with Snapshot(f"{home}/projections/gate.sqlite") as state:
        entries = state.entries([base.KEY])[base.KEY]
    with generations.open_current(home) as summaries:
        outcomes = summaries.query("SELECT id, outcome FROM actions ORDER BY seq")
    found = {
        "written": sha256_hex(b"".join(canonical(e) + b"\n" for e in read_events(home, recorded=True))),
        "read": sha256_hex(b"".join(canonical(e) + b"\n" for e in read_events(home))),
        "events": 8,
    }
    assert found == DIGESTS
    assert [row["outcome"] for row in outcomes] == ["failed"] * 3
    assert [entry["t"] for entry in entries] == ["fail"] * 3


def test_what_is_derived_is_as_if_it_had_been_written_today(home: str, tmp_path: Path) -> None:
    """The snapshot, grown live and rebuilt, and the state in memory give one history."""
    rebuild(home)
    with Snapshot(f"{home}/projections/gate.sqlite") as built:
        expected = built.entries([base.KEY])
    with Snapshot(str(tmp_path / "live.sqlite")) as live:
        live.catch_up(home)
        assert live.entries([base.KEY]) == expected
    state = MemoryState()
    state.apply(read_events(home))
    assert state.entries([base.KEY]) == expected
    assert all(entry["t"] == "fail" for entry in expected[base.KEY])


def test_an_erasure_finds_a_payload_as_it_was_and_as_it_is(home: str) -> None:
    """A text of the old form, and a field that only the new form has."""
    assert len(erasing.select(home, Selector(text="first version has")).direct) == 1
    assert lookup.find_one(Place("", home), next(read_events(home))["id"])["data"] == golden.TODAY[0]


def test_the_generator_still_writes_it(tmp_path: Path) -> None:
    """Fixed bytes."""
    golden.main(tmp_path / "new")
    assert (tmp_path / "new" / "log" / golden.STREAM / FIRST).read_bytes() == (
        FOLDER / "log" / golden.STREAM / FIRST
    ).read_bytes()


def test_an_upcaster_never_stops_a_reader_and_costs_nothing_where_there_is_none() -> None:
    """Another kind, an erased event, a payload that is no object: the very same event comes back."""
    for event in ({"kind": "a.b", "data": {}}, {"kind": "note.recorded"}, {"kind": "note.recorded", "data": []}, {}):
        assert upcasting.current(event) is event
