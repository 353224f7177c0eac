"""What of the log becomes a document, and what makes it go away."""

from __future__ import annotations

import random
from typing import Any

import pytest
from projectmem_projections.documents import DAY, Document, Facts

AT = 1_800_000_000_000_000
MINUTE = 60_000_000


def event(kind: str, number: int, *, at: int = 0, stream: str = "a", causes: tuple[str, ...] = (), **data: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "id": f"id-{stream}-{number:04d}",
        "stream": stream,
        "seq": number,
        "at": at or AT + number * MINUTE,
        "scope": {"project": "p", "tenant": ""},
        "actor": {"origin": "agent"},
        "causes": list(causes),
        "data": data,
    }


def finished(number: int, outcome: str, text: str, key: str, family: str = "f", **more: Any) -> dict[str, Any]:
    part = {"key": key, "family": family, "text": text, "trivial": False, "effects": more.pop("effects", [])}
    data = {"outcome": outcome, "key": key, "text": text, "parts": [part], "joins": [], "class": "build", "signature": "broke"}
    return event("action.finished", number, **{**more, **data, "failed_key": key if outcome == "failed" else ""})


def fold(*events: dict[str, Any]) -> list[Document]:
    facts = Facts()
    facts.apply(events)
    return facts.documents()


def test_a_failure_stands_until_the_same_action_succeeds() -> None:
    failed = finished(1, "failed", "make", "k")
    assert [d.id for d in fold(failed)] == ["id-a-0001"]
    assert fold(failed, finished(2, "ok", "make", "k")) == []
    assert len(fold(finished(1, "ok", "make", "k"), finished(2, "failed", "make", "k"))) == 1


def test_a_failure_carries_the_first_near_success_as_what_worked() -> None:
    (document,) = fold(
        finished(1, "failed", "pip install x", "k"),
        finished(2, "ok", "pip install x-binary", "k2"),
        finished(3, "ok", "pip install y", "k3"),
        finished(4, "ok", "ls", "k4", family="ls"),
    )
    assert (document.remedy, document.remedy_id) == ("pip install x-binary", "id-a-0002")


def test_a_success_long_after_is_no_remedy() -> None:
    (document,) = fold(finished(1, "failed", "a", "k"), finished(2, "ok", "b", "k2", at=AT + 3 * DAY))
    assert document.remedy == ""


@pytest.mark.parametrize(
    "removal",
    [
        ("erasure.requested", {"selector": "", "ids": ["id-a-0001"], "reason": ""}),
        ("record.superseded", {"record": "id-a-0001", "key": "k", "by_event": "x"}),
        ("record.disputed", {"record": "id-a-0001", "key": "k", "reason": "no"}),
    ],
)
@pytest.mark.parametrize("first", [finished(1, "failed", "make", "k"), event("note.recorded", 1, text="n", tags=[])])
def test_what_is_erased_superseded_or_disputed_is_gone(first: dict[str, Any], removal: tuple[str, dict[str, Any]]) -> None:
    assert len(fold(first)) == 1
    assert fold(first, event(removal[0], 2, **removal[1])) == []


def test_what_derives_from_something_erased_goes_with_it() -> None:
    note = event("note.recorded", 2, text="learned from it", tags=[], causes=("id-a-0001",))
    assert fold(note, event("erasure.requested", 3, ids=["id-a-0001"])) == []


def test_a_remedy_that_was_erased_is_not_told() -> None:
    (document,) = fold(
        finished(1, "failed", "a", "k"), finished(2, "ok", "b", "k2"), event("erasure.requested", 3, ids=["id-a-0002"])
    )
    assert document.remedy == ""


def test_a_decision_gives_way_to_the_one_that_supersedes_it() -> None:
    old = event("decision.recorded", 1, title="use pip", text="", supersedes="")
    new = event("decision.recorded", 2, title="use uv", text="", supersedes="id-a-0001")
    assert [d.text for d in fold(old, new)] == ["use uv"]


def test_a_closed_issue_is_gone_but_its_fix_stays() -> None:
    documents = fold(
        event("issue.opened", 1, issue="i", title="broken", paths=[]),
        event("fix.recorded", 2, issue="i", text="restart it", verifier="make test"),
        event("issue.closed", 3, issue="i", resolution="done"),
    )
    assert [d.type for d in documents] == ["fix"]
    assert documents[0].verifier == "make test"


def test_a_cleared_label_is_gone() -> None:
    label = event("label.set", 1, label="fragile", target="path", pattern="db/*", effect="warn", reason="hand-made")
    assert [d.type for d in fold(label)] == ["label"]
    assert fold(label, event("label.cleared", 2, label_event="id-a-0001", reason="")) == []


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"kind": "note.recorded", "data": None},
        {"kind": "note.recorded", "data": {"text": 5}},
        {"kind": "action.finished", "data": {"outcome": "failed", "parts": [None, 3]}},
        {"kind": "erasure.requested", "data": {"ids": "x"}},
        {"kind": "something.new", "data": {"text": "x"}, "actor": 3, "scope": []},
    ],
)
def test_odd_events_are_skipped_or_folded_but_never_fatal(odd: dict[str, Any]) -> None:
    fold(odd)


def test_every_interleaving_and_repetition_gives_the_same_documents() -> None:
    random_ = random.Random(7)
    events = []
    for stream in "abc":
        for number in range(1, 30):
            key = f"k{random_.randrange(4)}"
            outcome = random_.choice(["failed", "ok"])
            events.append(finished(number, outcome, key, key, stream=stream, at=AT + random_.randrange(50) * MINUTE))
        events.append(event("record.disputed", 30, stream=stream, record=f"id-{stream}-0003", key="k1", at=AT + 9 * MINUTE))
        events.append(event("issue.opened", 31, stream=stream, issue="i", title=stream, paths=[]))
    expected = fold(*events)
    assert expected
    for _ in range(20):
        mixed = [*events, *random_.sample(events, 10)]
        random_.shuffle(mixed)
        assert fold(*mixed) == expected
