"""The two folds of the log agree: the SQL that fills table `entries` and view `failures`, and fold.py with history.py."""

from __future__ import annotations

import json
from typing import Any

import duckdb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_gate import history
from projectmem_projections import fold
from projectmem_projections.loading import load_events, sql

KEYS = ["a" * 32, "b" * 32, "c" * 32, "d" * 32]
# column of `entries` -> field of an entry
COLUMNS = {
    "t": "t",
    "at_us": "at",
    "stream": "stream",
    "seq": "seq",
    "id": "id",
    "session": "session",
    "agent": "agent",
    "harness": "harness",
    "model": "model",
    "origin": "origin",
    "text": "text",
    "family": "family",
    "exit_code": "exit",
    "class": "cls",
    "signature": "sig",
    "excerpt": "excerpt",
    "duration_ms": "dur",
    "call": "call",
    "turn": "turn",
    "until": "until",
    "record": "record",
    "by_event": "by",
}
SETTINGS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

parts = st.fixed_dictionaries(
    {
        "key": st.sampled_from(KEYS),
        "family": st.sampled_from(["npm", "pytest", ""]),
        "text": st.text(max_size=4, alphabet="ab é'\"\0\n"),
        "trivial": st.booleans(),
        "paths": st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "words": st.just([]),
        "kind": st.just("sh"),
        "effects": st.just([]),
    }
)


@st.composite
def finished(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    some = draw(st.lists(parts, min_size=1, max_size=4))
    key = some[0]["key"] if len(some) == 1 else "e" * 32
    outcome = draw(st.sampled_from(["ok", "ok", "failed", "failed", "rejected", "unknown"]))
    return "action.finished", {
        "call": draw(st.sampled_from(["", "c"])),
        "key": draw(st.sampled_from([key, key, ""])),
        "text": "whole",
        "joins": draw(st.lists(st.sampled_from(["&&", "&&", "||", ";", "|"]), min_size=len(some) - 1, max_size=len(some) - 1)),
        "parts": some,
        "failed_key": draw(st.sampled_from([key, "f" * 32, *(p["key"] for p in some)])) if outcome == "failed" else "",
        "outcome": outcome,
        "exit_code": draw(st.sampled_from([None, 0, 2])),
        "class": draw(st.sampled_from(["test", "build"])),
        "signature": "s" * draw(st.sampled_from([0, 5, 250])),
        "excerpt": "é" * draw(st.sampled_from([0, 5, 350])),
        "duration_ms": draw(st.sampled_from([None, 3])),
        "turn": draw(st.sampled_from([0, 7])),
    }


@st.composite
def told(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    kind = draw(st.sampled_from(["action.proposed", *fold.CONTROL]))
    decision = {"verdict": draw(st.sampled_from(["ask", "deny", "warn"])), "rule": draw(st.sampled_from(["repeat", "override"]))}
    return kind, {
        "key": draw(st.sampled_from([*KEYS, ""])),
        "call": "c" if kind == "action.proposed" else "",
        "text": "t",
        "decision": {**decision, "record": "r"},
        "session": {"turn": 3},
        "record": "r",
        "until": draw(st.integers(0, 3)),
        "reason": "why",
        "by_event": "e9",
    }


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    events = []
    for seq in range(1, draw(st.integers(1, 25)) + 1):
        kind, data = draw(st.one_of(finished(), finished(), told()))
        actor = {"session": f"s{seq % 3}", "agent": "", "harness": "h", "model": "m", "origin": "observed"}
        place = {"id": f"e{seq}", "stream": "s1", "seq": seq, "batch": seq, "ts": seq, "at": draw(st.integers(0, 12))}
        events.append({**place, "kind": kind, "actor": actor, "data": data, "hash": ""})
    return events


def loaded(events: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(":memory:")
    load_events(con, events)
    con.execute("CREATE TABLE failures AS " + sql("failures.sql"))
    return con


def rows(con: duckdb.DuckDBPyConnection, statement: str) -> list[dict[str, Any]]:
    cursor = con.execute(statement)
    names = [c[0] for c in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@SETTINGS
@given(logs())
def test_the_same_entries_come_out_of_both(events: list[dict[str, Any]]) -> None:
    with loaded(events) as con:
        by_sql = [
            {"key": row["key"], "paths": sorted(row["paths"]), **{field: row[column] for column, field in COLUMNS.items()}}
            for row in rows(con, "SELECT * FROM entries")
        ]
    by_fold = [
        {"key": op[1], "paths": sorted(op[2]["paths"]), **{field: op[2][field] for field in COLUMNS.values()}}
        for event in events
        for op in fold.fold_event(event)
        if op[0] == "entry"
    ]
    assert sorted(map(json.dumps, by_sql)) == sorted(map(json.dumps, by_fold))


@SETTINGS
@given(logs())
def test_both_say_the_same_of_every_failure(events: list[dict[str, Any]]) -> None:
    """Standing, and the failure that determines it; histories here are shorter than what the gate keeps."""
    entries: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        for op in fold.fold_event(event):
            if op[0] == "entry":
                entries.setdefault(op[1], []).append(op[2])
    expected = {}
    for key, found in entries.items():
        record = history.fold(key, found, now=2)
        if record is not None:
            state = "open" if record.state == "snoozed" else record.state
            expected[key] = (record.id, state, record.first_at if state == "open" else None, record.last_ok_at)
            assert history.is_open(found) == (state == "open")
    with loaded(events) as con:
        got = {
            row["key"]: (row["id"], row["standing"], row["since"] if row["open"] else None, row["last_ok_at"])
            for row in rows(
                con,
                """SELECT f.*, (SELECT min(e.at_us) FROM entries e WHERE e.key = f.key AND e.t = 'fail' AND
                    (f.last_ok_id = '' OR (e.at_us, e.stream, e.seq) > (SELECT (o.at_us, o.stream, o.seq) FROM entries o
                        WHERE o.id = f.last_ok_id AND o.key = f.key AND o.t = 'ok'))) AS since FROM failures f""",
            )
        }
    assert got == expected


def test_a_key_that_failed_once_is_one_row_whatever_else_happened() -> None:
    base = {"stream": "s1", "batch": 1, "ts": 1, "actor": {"session": "s"}, "hash": "", "kind": "action.finished"}
    data = {"key": "k", "outcome": "failed", "failed_key": "k", "parts": [{"key": "k", "family": "f", "text": "t"}], "joins": []}
    events = [{**base, "id": f"e{n}", "seq": n, "at": n, "data": data} for n in (1, 2, 3)]
    with loaded(events) as con:
        (row,) = rows(con, "SELECT * FROM failures")
    assert (row["count"], row["streak"], row["id"], row["first_at"], row["last_at"]) == (3, 3, "e3", 1, 3)
