"""The fold commutes: however streams interleave, rebuilt equals grown, and both stores of the gate's state agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_projections import fold
from projectmem_projections.memory import MemoryState
from projectmem_projections.snapshot import Snapshot

KEYS = ["a" * 32, "b" * 32, "c" * 32]
WORDS = ["npm", "run", "pytest", "build", "tests"]
EFFECTS = [("edit", "src/a.py"), ("edit", "src/b.py"), ("read", "src/a.py"), ("install", "npm"), ("any", "make")]


@st.composite
def parts(draw: st.DrawFn) -> dict[str, Any]:
    """One part of an action; a key always has the same words, as gate/IDENTITY.md promises."""
    n = draw(st.integers(0, len(KEYS) - 1))
    return {
        "key": KEYS[n],
        "kind": draw(st.sampled_from(["sh", "edit"])),
        "family": ["npm", "pytest", ""][n],
        "text": f"text {n}",
        "words": [WORDS[:3], WORDS[2:], []][n],
        "paths": draw(st.lists(st.sampled_from(["src/a.py", "src/b.py"]), max_size=2)),
        "effects": [list(e) for e in draw(st.lists(st.sampled_from(EFFECTS), max_size=3))],
        "trivial": draw(st.booleans()),
    }


@st.composite
def finished(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """An action.finished payload."""
    some = draw(st.lists(parts(), min_size=1, max_size=3))
    outcome = draw(st.sampled_from(["ok", "failed", "failed", "rejected", "interrupted", "unknown"]))
    whole = some[0]["key"] if len(some) == 1 else "d" * 32
    return "action.finished", {
        "call": draw(st.sampled_from(["", "c1", "c2", "c3"])),
        "key": whole,
        "text": "whole",
        "joins": draw(st.lists(st.sampled_from(["&&", "||", ";"]), min_size=len(some) - 1, max_size=len(some) - 1)),
        "parts": some,
        "failed_key": draw(st.sampled_from([whole, *(p["key"] for p in some)])) if outcome == "failed" else "",
        "outcome": outcome,
        "tried": draw(st.sampled_from([None, None, {"class": "test", "state": "same", "age": 1, "by": "self"}, {"age": 9}])),
        "exit_code": draw(st.sampled_from([None, 0, 1])),
        "class": "test",
        "signature": draw(st.sampled_from(["x", "y"])),
        "excerpt": "E",
        "duration_ms": draw(st.sampled_from([None, 5])),
        "facts": {},
        "turn": draw(st.integers(0, 5)),
        "source": "hook",
    }


RULED = ("label.set", "label.set", "label.cleared", "decision.recorded", "policy.changed", "record.pinned")


@st.composite
def others(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Every other kind that the fold reads."""
    key = draw(st.sampled_from(KEYS))
    kind = draw(st.sampled_from(["action.proposed", *fold.CONTROL, *RULED, "session.started"]))
    decision = {"verdict": draw(st.sampled_from(["ask", "deny", "warn"])), "rule": draw(st.sampled_from(["repeat", "override"]))}
    data = {
        "key": key,
        "record": "r1",
        "until": draw(st.integers(0, 50)),
        "reason": "because",
        "by_event": "",
        "decision": decision if kind == "action.proposed" else draw(st.sampled_from(["", "d1", "d2"])),
        "session": {"session": "s", "turn": 1},
        "text": "t",
        "label": "fragile",
        "target": "path",
        "pattern": "src/*",
        "effect": "warn",
        "review_at": 0,
        "label_event": draw(st.sampled_from(["e-s1-1", "e-s2-2", "e-s3-1"])),
        "supersedes": draw(st.sampled_from(["", "d1", "e-s1-1"])),
        "replay": draw(st.sampled_from([None, {"ok": 2}, {"ok": "2"}])),
        "hash": draw(st.sampled_from(["h1", "h2"])),
    }
    return kind, data


@st.composite
def logs(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    """A log of one to three streams, with `at` far from the order of recording."""
    found = {}
    for stream in ("s1", "s2", "s3")[: draw(st.integers(1, 3))]:
        found[stream] = [
            event(stream, seq, *draw(st.one_of(finished(), finished(), others())), at=draw(st.integers(0, 40)))
            for seq in range(1, draw(st.integers(1, 12)) + 1)
        ]
    return found


def event(stream: str, seq: int, kind: str, data: dict[str, Any], *, at: int) -> dict[str, Any]:
    origin = "human" if kind in RULED and seq % 2 else "observed"
    actor = {"session": f"x{seq % 2}", "agent": "", "harness": "h", "model": "m", "origin": origin}
    return {"id": f"e-{stream}-{seq}", "stream": stream, "seq": seq, "at": at, "kind": kind, "actor": actor, "data": data}


def interleaving(draw: Any, log: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """All events of the log in some order that keeps each stream's own."""
    turns = draw(st.permutations([stream for stream, events in log.items() for _ in events]))
    at = {stream: iter(events) for stream, events in log.items()}
    return [next(at[stream]) for stream in turns]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("snapshots")


def fresh(folder: Path) -> Snapshot:
    path = folder / "gate.sqlite"
    path.unlink(missing_ok=True)
    return Snapshot(str(path))


SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@SETTINGS
@given(logs(), st.data())
def test_every_interleaving_gives_equal_bytes_in_memory(log: dict[str, list[dict[str, Any]]], data: st.DataObject) -> None:
    """Two interleavings, one of them in single steps with events offered twice."""
    one, other = MemoryState(), MemoryState()
    assert one.apply(interleaving(data.draw, log))
    for item in interleaving(data.draw, log):
        assert other.apply([item])
        assert other.apply([item])
    assert one.canonical_dump() == other.canonical_dump()


@SETTINGS
@given(logs(), st.data())
def test_the_snapshot_agrees_with_memory_whatever_the_interleaving(
    folder: Path, log: dict[str, list[dict[str, Any]]], data: st.DataObject
) -> None:
    """Equal bytes, and equal answers to every question."""
    memory = MemoryState()
    memory.apply(interleaving(data.draw, log))
    with fresh(folder) as snapshot:
        for item in interleaving(data.draw, log):
            assert snapshot.apply([item])
        assert snapshot.canonical_dump() == memory.canonical_dump()
        words = frozenset(data.draw(st.lists(st.sampled_from([*WORDS, "other", "*"]), max_size=5)))
        since, limit = data.draw(st.integers(-1, 40)), data.draw(st.integers(1, 5))
        paths = data.draw(st.lists(st.sampled_from(["src/a.py", "src/b.py"]), max_size=2))
        assert snapshot.hints(words) == memory.hints(words)
        assert snapshot.entries([*KEYS, "none"]) == memory.entries([*KEYS, "none"])
        assert snapshot.changes(since, limit, paths) == memory.changes(since, limit, paths)
        assert snapshot.touched("edit", "src/a.py") == memory.touched("edit", "src/a.py")
        assert [snapshot.ok_after(f, since, limit) for f in ("npm", "")] == [
            memory.ok_after(f, since, limit) for f in ("npm", "")
        ]
        assert snapshot.labels() == memory.labels()
        assert snapshot.policy() == memory.policy()
        assert [snapshot.turn(s) for s in ("x0", "x1", "x2")] == [memory.turn(s) for s in ("x0", "x1", "x2")]
        assert [snapshot.seen("x0", c) for c in ("c1", "c2")] == [memory.seen("x0", c) for c in ("c1", "c2")]
        assert snapshot.cursor() == memory.cursor()


@SETTINGS
@given(logs(), st.data())
def test_what_was_known_as_of_an_earlier_position_is_what_a_fold_up_to_there_gives(
    log: dict[str, list[dict[str, Any]]], data: st.DataObject
) -> None:
    """Even where later events have pushed older ones out of the kept history."""
    as_of = {stream: data.draw(st.integers(0, len(events))) for stream, events in log.items()}
    whole, part = MemoryState(), MemoryState()
    whole.apply(interleaving(data.draw, log))
    part.apply([e for stream, events in log.items() for e in events[: as_of[stream]]])
    keys = [*KEYS, "d" * 32]
    assert whole.entries(keys, as_of=as_of) == part.entries(keys)


@SETTINGS
@given(logs(), st.data())
def test_erased_events_leave_no_trace_in_either_store(
    folder: Path, log: dict[str, list[dict[str, Any]]], data: st.DataObject
) -> None:
    """Memory at once and exactly; the snapshot serves nothing of them at once, and is exact after its rebuild."""
    ids = [e["id"] for events in log.values() for e in events]
    gone = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True))
    order = interleaving(data.draw, log)
    request = event("s9", 1, "erasure.requested", {"ids": gone, "selector": "", "reason": ""}, at=1)
    order.insert(data.draw(st.integers(0, len(order))), request)
    memory, without = MemoryState(), MemoryState()
    memory.apply(order)
    without.apply([e if e["id"] not in gone else {**e, "data": None} for e in order])
    assert memory.canonical_dump() == without.canonical_dump()
    with fresh(folder) as live:
        live.apply(order)
        assert not any(id.encode() + b'"' in json.dumps(live.entries([*KEYS, "d" * 32])).encode() for id in gone)
        assert live.dirty
    with fresh(folder) as rebuilt:
        rebuilt.erase_ahead(gone)
        rebuilt.apply(order)
        assert rebuilt.canonical_dump() == memory.canonical_dump()
        assert not rebuilt.dirty


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(max_size=5, alphabet=st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["key", "parts", "outcome", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [
    "call",
    "key",
    "text",
    "joins",
    "parts",
    "failed_key",
    "outcome",
    "facts",
    "turn",
    "decision",
    "session",
    "ids",
    "until",
]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(
        ["action.finished", "action.proposed", "label.set", "erasure.requested", "record.pinned", "policy.changed", "x.y"]
    ),
    st.one_of(st.dictionaries(st.sampled_from(FIELDS), JSON | st.sampled_from(["ok", "failed", "k" * 32]), max_size=13), JSON),
)
def test_the_fold_is_total(kind: str, data: Any) -> None:
    """Whatever a payload holds, it folds to operations that a store can run."""
    item = {**event("s1", 1, kind, {}, at=1), "data": data}
    state = MemoryState()
    assert state.apply([item])
    state.canonical_dump()
    state.hints(frozenset({"npm"}))
