"""What is recorded: validated, stripped of secrets, and allowed to whoever says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.errors import KindError
from projectmem_logs.store import init_home

from projectmem import failures, logview, record, writing
from projectmem.errors import BadInputError, NotFoundError, RefusedError
from projectmem.place import Place

NOW = 1_796_000_000_000_000
HOUR = 3_600_000_000
KEY, WHOLE = "a" * 32, "b" * 32


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty log."""
    home = str(tmp_path / ".projectmem-gate")
    init_home(home, NOW - HOUR)
    return Place(str(tmp_path), home)


def note(place: Place, text: str, origin: str = "agent") -> dict[str, Any]:
    """One note."""
    return record.record(place, "note.recorded", {"text": text, "tags": []}, now=NOW, origin=origin)


def failure(place: Place, origin: str = "observed", at: int = NOW - HOUR) -> dict[str, Any]:
    """A failed chain of two parts: remembered under the part that failed and under the whole."""
    part = {"kind": "sh", "family": "make", "text": "make", "words": [], "paths": [], "effects": [], "trivial": False}
    data = {
        "call": "c1", "tool": "Bash", "kind": "sh", "input": "{}", "input_sha": "", "cwd": ".", "key": WHOLE,
        "text": "make && ls",
        "joins": ["&&"], "parsed": True, "parts": [{**part, "key": KEY}, {**part, "key": "c" * 32, "text": "ls"}],
        "failed_key": KEY,
        "outcome": "failed", "exit_code": 2, "class": "build", "signature": "x", "excerpt": "x", "duration_ms": 10, "facts": {},
        "as_of": None, "turn": 1, "source": "hook",
    }  # fmt: skip
    actor = {"session": "s", "agent": "", "harness": "h", "model": "", "origin": origin}
    return writing.append(place, [{"kind": "action.finished", "at": at, "actor": actor, "causes": [], "data": data}], at)[-1]


def open_failures(place: Place, now: int = NOW) -> list[str]:
    """Ids of what stands and is not snoozed."""
    return [row.record.id for row in failures.failures(place, now) if row.record.state == "open"]


def test_a_record_says_who_and_loses_its_secrets(place: Place) -> None:
    """Redaction happens before the write, whatever the surface."""
    token = "ghp_" + "a1B2c3D4e5" * 4
    event = record.record(
        place, "note.recorded", {"text": f"use {token} here", "tags": []}, now=NOW, origin="agent", actor={"session": "s9"}
    )
    assert event["actor"] == {"session": "s9", "agent": "", "harness": "", "model": "", "origin": "agent"}
    assert token not in str(event)
    assert "<secret:" in event["data"]["text"]
    log = b"".join(p.read_bytes() for p in Path(place.home).rglob("*.jsonl"))
    assert token.encode() not in log


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        ("note.recorded", {"tags": []}, "text"),
        ("note.recorded", {"text": 3, "tags": []}, "text"),
        (
            "label.set",
            {"label": "holy", "target": "path", "pattern": "x", "effect": "warn", "reason": "", "review_at": 0},
            "label",
        ),
        ("note.recorded", {"text": "x" * 5_000_000, "tags": []}, "text"),
    ],
)
def test_what_does_not_fit_its_kind_is_refused_by_name(place: Place, kind: str, data: dict[str, Any], field: str) -> None:
    """The error names the field; nothing is written."""
    with pytest.raises(KindError, match=field):
        record.record(place, kind, data, now=NOW, origin="human")
    assert logview.select(place, limit=0) == []


@pytest.mark.parametrize("kind", sorted(record.PERSON_ONLY))
def test_an_agent_makes_no_rules(place: Place, kind: str) -> None:
    """Labels, pins and policies are a person's."""
    with pytest.raises(RefusedError, match="person"):
        record.record(place, kind, {}, now=NOW, origin="agent")


def test_a_dispute_silences_both_keys_of_a_chain(place: Place) -> None:
    """Else the other spelling of the same failure would go on objecting."""
    event = failure(place)
    assert open_failures(place) == [event["id"]]
    events = record.curate(place, "disputed", event["id"][-12:], now=NOW, origin="agent", reason="the tool was broken")
    assert {e["data"]["key"] for e in events} == {KEY, WHOLE}
    assert all(e["causes"] == [event["id"]] for e in events)
    assert open_failures(place) == []
    assert failures.failures(place, NOW, every=True)[0].record.state == "disputed"


def test_a_snooze_ends_by_itself(place: Place) -> None:
    """Two hours are two hours."""
    event = failure(place)
    record.curate(place, "snoozed", event["id"], now=NOW, origin="agent", until=NOW + HOUR)
    assert open_failures(place, NOW + HOUR - 1) == []
    assert open_failures(place, NOW + HOUR) == [event["id"]]


def test_a_pin_needs_a_person_and_keeps_it_from_expiring(place: Place) -> None:
    """And has a date to look at it again."""
    event = failure(place)
    with pytest.raises(RefusedError):
        record.curate(place, "pinned", event["id"], now=NOW, origin="agent")
    record.curate(place, "pinned", event["id"], now=NOW, origin="human", until=NOW + HOUR)
    for what in ("disputed", "snoozed"):
        with pytest.raises(RefusedError, match="pinned by a person"):
            record.curate(place, what, event["id"], now=NOW, origin="agent", until=NOW + HOUR)
    (row,) = failures.failures(place, NOW + 1000 * HOUR)
    assert row.record.pinned
    assert row.record.review_at == NOW + HOUR
    assert row.says != "silent"


def test_supersede_names_what_replaces_it(place: Place) -> None:
    """By another event, which must exist, and not by itself."""
    event, fix = failure(place), note(place, "use ninja")
    with pytest.raises(NotFoundError):
        record.curate(place, "superseded", event["id"], now=NOW, origin="agent", by="0" * 12)
    with pytest.raises(BadInputError, match="itself"):
        record.curate(place, "superseded", event["id"], now=NOW, origin="agent", by=event["id"])
    (first, *_) = record.curate(place, "superseded", event["id"], now=NOW, origin="agent", by=fix["id"])
    assert first["data"]["by_event"] == fix["id"]
    assert open_failures(place) == []


def test_an_agent_cannot_overrule_a_person(place: Place) -> None:
    """What a person recorded only a person disputes; what is no failure nobody does."""
    event, other = failure(place, origin="human"), note(place, "x")
    with pytest.raises(RefusedError, match="person"):
        record.curate(place, "disputed", event["id"], now=NOW, origin="agent")
    with pytest.raises(NotFoundError):
        record.curate(place, "disputed", other["id"], now=NOW, origin="agent")
    with pytest.raises(BadInputError, match="one of"):
        record.curate(place, "burned", event["id"], now=NOW, origin="human")


def test_issue_ids_are_random_and_found_by_their_beginning(place: Place) -> None:
    """No counter: two writers never give out the same number."""
    ids = {record.new_id() for _ in range(200)}
    assert len(ids) == 200
    for id in ("aa11223344", "aa99887766"):
        record.record(place, "issue.opened", {"issue": id, "title": f"t {id}", "paths": []}, now=NOW, origin="agent")
    assert record.find_issue(place, "aa11") == "aa11223344"
    assert record.find_issue(place, "AA99887766") == "aa99887766"
    for wrong in ("aa", "", "zz"):
        with pytest.raises(NotFoundError, match="issues"):
            record.find_issue(place, wrong)


def test_append_survives_a_snapshot_that_cannot_be_used(place: Place) -> None:
    """The log is the truth: the event is written, and the next reader mends what is derived."""
    first = failure(place)
    snapshot = Path(writing.snapshot_path(place.home))
    snapshot.write_bytes(b"not a database at all" * 500)
    problems: list[str] = []
    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "agent"}
    draft = {"kind": "note.recorded", "at": NOW, "actor": actor, "causes": [], "data": {"text": "x", "tags": []}}
    assert len(writing.append(place, [draft], NOW, problems=problems)) == 1
    assert problems
    assert "snapshot" in problems[0]
    assert open_failures(place) == [first["id"]]


def test_append_updates_the_snapshot_at_once(place: Place) -> None:
    """The very next check sees it, and finds nothing to catch up with."""
    from projectmem_projections.snapshot import Snapshot
    from projectmem_projections.tail import positions

    event = failure(place)
    with Snapshot(writing.snapshot_path(place.home)) as snapshot:
        assert snapshot.cursor() == {event["stream"]: event["seq"]}
        assert not snapshot.stale(positions(place.home))
        assert snapshot.entries([KEY])[KEY][0]["id"] == event["id"]
