"""SCHEMA.md says what the SQL makes, every kind of event is in some table, and the state in SQL is the state in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_gate import history
from projectmem_gate.policy import DEFAULT
from projectmem_logs.kinds import KINDS as ALL_KINDS
from projectmem_projections import catalogue, fold
from projectmem_projections.loading import KINDS, load_events, sql, views
from projectmem_projections.memory import MemoryState

REPO = Path(__file__).resolve().parents[2]
DAY = 86_400_000_000
ELSEWHERE = {"erasure.requested"}  # its ids are rows of `erasures`


def test_the_page_is_what_the_sql_makes() -> None:
    """Written anew by `python -m projectmem_projections.catalogue > projections/SCHEMA.md`."""
    assert (REPO / "projections" / "SCHEMA.md").read_text(encoding="utf-8") == catalogue.page()


def test_every_relation_has_words_and_columns() -> None:
    found = {r.name: r for r in catalogue.relations()}
    assert {"failure_states", "remedies", "gate_outcomes", "overrides", "memory", "rules", "decisions", "models"} <= set(found)
    undocumented = {name for name, r in found.items() if not r.doc} - {"hypotheses", "fixes", "notes"}
    assert undocumented == set()
    assert all(r.columns for r in found.values())


def test_every_kind_has_a_table() -> None:
    """A kind that is added needs a place in the summaries, or a reason to have none."""
    assert {kind for kinds in KINDS.values() for kind in kinds} | ELSEWHERE >= set(ALL_KINDS)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A few events of two keys: failures, successes, and what is said of them."""
    events = []
    for seq in range(1, draw(st.integers(1, 9)) + 1):
        kind = draw(st.sampled_from(["action.finished", "action.finished", *fold.CONTROL]))
        key, cls = draw(st.sampled_from(["a" * 32, "b" * 32])), draw(st.sampled_from(["test", "network", "odd"]))
        data = {
            "key": key,
            "text": "t",
            "joins": [],
            "parts": [{"key": key, "family": "f", "text": "t"}],
            "failed_key": key,
            "outcome": draw(st.sampled_from(["ok", "failed", "failed"])),
            "class": cls,
            "record": "r",
            "until": draw(st.sampled_from([0, 5, 20])) * DAY,
            "reason": draw(st.sampled_from(["", "because"])),
            "by_event": draw(st.sampled_from(["", "e99"])),
        }
        actor = {
            "session": "s",
            "agent": "",
            "harness": "h",
            "model": "m",
            "origin": draw(st.sampled_from(["observed", "human", ""])),
        }
        place = {"id": f"e{seq}", "stream": "s1", "seq": seq, "batch": seq, "ts": seq, "at": draw(st.integers(1, 12)) * DAY}
        events.append({**place, "kind": kind, "actor": actor, "data": data, "hash": ""})
    return events


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.integers(1, 40))
def test_the_state_of_a_failure_is_what_the_gate_says(events: list[dict[str, Any]], day: int) -> None:
    """State, reason and the event that did it, whatever way the clocks went, at any time that no entry of the key lies ahead of:
    where one does, SCHEMA.md leaves the word to the gate."""
    now = day * DAY
    entries: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        for op in fold.fold_event(event):
            if op[0] == "entry":
                entries.setdefault(op[1], []).append(op[2])
    expected = {}
    ahead = {key for key, found in entries.items() if max(e["at"] for e in found) > now + history.AHEAD_US}
    for key, found in entries.items():
        record = history.fold(key, found, now)
        if record is None:
            continue
        state = (record.state, record.state_why, record.state_id)
        pinned = any(e["t"] == "pin" for e in found)
        end = 0 if pinned else record.at + DEFAULT.ttl_warn.get(record.cls, DEFAULT.ttl_warn["unknown"])
        if record.state in ("open", "snoozed") and 0 < end <= now:
            state = ("expired", "too old to object", "")
        expected[key] = (*state, end)
    with duckdb.connect(":memory:") as con:
        load_events(con, events)
        con.execute("CREATE TABLE failures AS " + sql("failures.sql"))
        con.execute(views())
        con.execute(f"SET VARIABLE now_us = {now}")
        rows = con.execute("SELECT key, state, reason, state_id, expires_at FROM failure_states").fetchall()
    assert {row[0] for row in rows} == set(expected)
    for key in expected:
        assert key in ahead or {row[0]: row[1:] for row in rows}[key] == expected[key]


@st.composite
def rulings(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Labels and rules, their clearing, and the decisions that rules are of."""
    events = []
    for seq in range(1, draw(st.integers(1, 9)) + 1):
        kind = draw(st.sampled_from(["label.set", "label.set", "label.cleared", "decision.recorded"]))
        some = st.sampled_from(["", *(f"e{n}" for n in range(1, 10))])
        data = {
            "label": draw(st.sampled_from(["fragile", "rule"])),
            "target": "path",
            "pattern": "x",
            "effect": "warn",
            "reason": "r",
            "review_at": 0,
            "instead": "y",
            "decision": draw(some),
            "label_event": draw(some),
            "title": "t",
            "text": "",
            "supersedes": draw(some),
        }
        actor = {"session": "s", "agent": "", "harness": "h", "model": "m", "origin": draw(st.sampled_from(["human", "agent"]))}
        place = {"id": f"e{seq}", "stream": "s1", "seq": seq, "batch": seq, "ts": seq, "at": draw(st.integers(1, 12))}
        events.append({**place, "kind": kind, "actor": actor, "data": data, "hash": ""})
    return events


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rulings())
def test_the_labels_in_force_are_those_of_the_gate(events: list[dict[str, Any]]) -> None:
    """Set, cleared, and ended with their decision, by whoever may."""
    memory = MemoryState()
    memory.apply(events)
    names = ("id", "label", "pattern", "instead", "decision", "effect", "origin")
    with duckdb.connect(":memory:") as con:
        load_events(con, events)
        con.execute("CREATE TABLE failures AS " + sql("failures.sql"))
        con.execute(views())
        rows = con.execute(f"SELECT {', '.join(names)} FROM labels ORDER BY at_us, stream, seq").fetchall()
    assert rows == [tuple(label[name] for name in names) for label in memory.labels()]
