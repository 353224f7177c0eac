"""The log newest first: the same events as `log` shows, a page at a time, in bounded work, whatever the log has gone through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore

from projectmem import logpages
from projectmem.errors import BadInputError
from projectmem.forget import forget, selector
from projectmem.logpages import Wanted, name_of, page, place_of
from projectmem.logview import select
from projectmem.place import Place

NOW = 1_796_100_000_000_000
ACTOR = {"session": "s1", "agent": "", "harness": "claude-code", "model": "", "origin": "agent"}
AGES = 300.0  # seconds: no page of a test ends for want of time


def write(place: Place, count: int, *, start: int = 0, text: str = "note", batch: int = 1, **store: int) -> None:
    """Notes with numbers, every fifth of another session, every seventh an issue."""
    log = LogStore(place.home, **store)
    drafts = [
        {
            "kind": "issue.opened" if n % 7 == 0 else "note.recorded",
            "at": NOW + n,
            "actor": {**ACTOR, "session": "s2" if n % 5 == 0 else "s1"},
            "causes": [],
            "data": {"issue": f"i{n}", "title": f"{text} {n}", "paths": []}
            if n % 7 == 0
            else {"text": f"{text} {n}", "tags": []},
        }
        for n in range(start, start + count)
    ]
    for first in range(0, count, batch):
        log.append(drafts[first : first + batch], now=NOW + start + first)
    log.close()


def walked(place: Place, wanted: Wanted, limit: int, **more: Any) -> list[dict[str, Any]]:
    """All pages, one after the other."""
    found, upto = list[dict[str, Any]](), None
    while True:
        one = page(place.home, wanted, limit=limit, upto=upto, seconds=AGES, **more)
        found += one.events
        if not one.older:
            return found
        upto = place_of(name_of(one.older))
        assert upto == one.older


def test_pages_give_what_the_log_has_the_other_way_round(place: Place) -> None:
    """Every event once, each as `log` has it, for any size of a page, in batches and one by one."""
    write(place, 40)
    write(place, 60, start=40, batch=13)
    every = select(place, limit=0)
    assert len(every) == 100
    for limit in (1, 7, 50, 100, 1000):
        assert walked(place, Wanted(), limit) == every[::-1]


@pytest.mark.parametrize("kinds", [("note",), ("issue.opened",), ("session",), ("note.recorded", "issue")])
def test_kinds_are_those_of_the_command(place: Place, kinds: tuple[str, ...]) -> None:
    """The same choice, newest first."""
    write(place, 50)
    assert walked(place, Wanted(kinds), 8) == select(place, kinds=kinds, limit=0)[::-1]


def test_sessions_and_texts_are_found_as_they_are_meant(place: Place) -> None:
    """A session is all of its id, a text any part in any case, also one that JSON writes otherwise."""
    write(place, 20)
    write(place, 1, start=100, text='say "Straße\\n"')
    assert {event["actor"]["session"] for event in walked(place, Wanted(session="s2"), 5)} == {"s2"}
    assert walked(place, Wanted(session="s"), 5) == []
    assert [event["data"]["text"] for event in walked(place, Wanted(text="NOTE 11"), 5)] == ["note 11"]
    for text in ('"stra', "STRAßE", "\\N", "e\\n"):
        assert len(walked(place, Wanted(text=text), 5)) == 1, text
    (event,) = walked(place, Wanted(text="note 11"), 5)
    assert walked(place, Wanted(text=event["id"]), 5) == [event]
    assert walked(place, Wanted(text='"kind"'), 5) == [], "how it is written down is no text of it"


def test_a_search_stops_for_its_budget_and_goes_on(place: Place) -> None:
    """It says how far it got, and nothing is lost between two pages."""
    write(place, 30)
    one = page(place.home, Wanted(text="note 1"), limit=50, bytes_max=2_000, seconds=AGES)
    assert one.cut and one.older and one.reached > NOW
    found = walked(place, Wanted(text="note 1"), 50, bytes_max=2_000)
    assert found == [e for e in select(place, limit=0)[::-1] if "note 1" in str(e["data"])]


def test_several_segments_and_a_place_within_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place is found without reading what is behind it, in segments of any size."""
    monkeypatch.setattr(logpages, "LOOK", 1_500)
    monkeypatch.setattr(logpages, "BLOCK", 700)
    write(place, 120, segment_bytes=20_000)
    folder = next(Path(place.home, "log").iterdir())
    assert len(list(folder.glob("*.jsonl"))) > 2
    every = select(place, limit=0)
    for seq in range(1, 121):
        one = page(place.home, Wanted(), limit=3, upto={every[0]["stream"]: seq}, seconds=AGES)
        assert [event["seq"] for event in one.events] == list(range(seq, max(0, seq - 3), -1))


def test_several_streams_come_by_time(place: Place) -> None:
    """As `log` orders them; one that began after the first page does not come into the middle of the others."""
    write(place, 10)
    for writer in Path(place.home, "writers").iterdir():
        writer.unlink()
    write(place, 10, start=5)
    every = select(place, limit=0)
    assert len({event["stream"] for event in every}) == 2
    assert walked(place, Wanted(), 3) == every[::-1]


def test_damage_and_unfinished_writes_are_passed_over(place: Place) -> None:
    """What is whole is shown; a batch that is being written is not."""
    write(place, 10)
    (segment,) = Path(place.home, "log").glob("*/*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"note 3", b"note X")
    lines[5] = b"\0" * 40 + b"\n"
    lines[6] = lines[6][:-1]  # runs together with the next
    segment.write_bytes(b"".join(lines) + lines[9][:50])
    shown = [event["seq"] for event in walked(place, Wanted(), 4)]
    assert shown == [10, 9, 8, 7, 5, 3, 2, 1]


def test_what_was_erased_stays_erased(place: Place) -> None:
    """Its place is shown, and nothing finds it by what it said."""
    write(place, 10)
    (event,) = walked(place, Wanted(text="note 4"), 5)
    forget(place, selector(place, ids=(event["id"],)), reason="test", now=NOW + 1_000, origin="human")
    assert walked(place, Wanted(text="note 4"), 5) == []
    (place_of_it,) = [e for e in walked(place, Wanted(), 5) if e["id"] == event["id"]]
    assert "tombstone" in place_of_it and "data" not in place_of_it
    assert walked(place, Wanted(), 5) == list(read_events(place.home))[::-1]


def test_what_is_no_place_is_no_place() -> None:
    """Whatever an address says."""
    for word in ("", "x", "-", "a-b", "a-1.b", "a-1.-2", "a-99999999999999999", "a-\u0661"):
        assert place_of(word) is None, word
    assert place_of("a-b-7.c-0") == {"a-b": 7, "c": 0}
    with pytest.raises(BadInputError, match=r"did you mean `note\.recorded`"):
        Wanted(("note.recordet",))


def test_a_log_without_an_event(place: Place) -> None:
    """An empty page, and no older one."""
    one = page(place.home, Wanted(), seconds=AGES)
    assert (one.events, one.older, one.cut) == ([], {}, False)
