"""Takes a log apart into the tables of schema.sql, inside a DuckDB connection that the caller made.

Two ways to read: *bulk*, DuckDB's own JSON reader over the segment files, and *careful*, event by event through
`projectmem_logs.reader`. Bulk is used where the log is provably whole (`verify` finds nothing, every stream has exactly
the events 1..n that its end promises); anything else is read carefully, and what is wrong stands in `integrity`.
Either way the tables must account for every event, or CountMismatch is raised and nothing is published.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
from projectmem_gate.policy import TTL_WARN
from projectmem_logs.reader import Problem, read_events
from projectmem_logs.tail import read_position, segments, streams
from projectmem_logs.upcasting import LATEST
from projectmem_logs.verify import verify

from . import fold
from .errors import CountMismatch

# Version of the tables and views (SCHEMA.md has it; raise it when their columns change) together with that of the fold:
# generations of another version are rebuilt.
SCHEMA_VERSION = 3
VERSION = 1000 * SCHEMA_VERSION + fold.FOLD_VERSION
EVENT_BYTES_MAX = 32 * 1024 * 1024

_HERE = os.path.dirname(os.path.abspath(__file__))
# Every table that has one row per event, and the kinds it takes.
KINDS = {
    "actions": ("action.finished",),
    "gate_decisions": ("action.proposed",),
    "session_events": ("session.started", "session.ended"),
    "records": (
        "issue.opened",
        "issue.closed",
        "hypothesis.noted",
        "attempt.recorded",
        "fix.recorded",
        "decision.recorded",
        "note.recorded",
    ),
    "label_events": ("label.set", "label.cleared"),
    "curations": ("record.pinned", "record.snoozed", "record.disputed", "record.superseded", "record.reviewed"),
    "recalls": ("recall.decided",),
    "checkpoints": ("checkpoint.sealed",),
    "feedback": ("feedback.given",),
    "policies": ("policy.changed",),
    "incidents": ("gate.degraded", "log.recovered"),
}
TABLES = ("events", "actions", "entries", *(t for t in KINDS if t != "actions"), "recall_items", "erasures")

_ACTOR = "session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR, origin VARCHAR"
_COLUMNS = {
    "id": "VARCHAR",
    "stream": "VARCHAR",
    "seq": "BIGINT",
    "batch": "BIGINT",
    "ts": "BIGINT",
    "at": "BIGINT",
    "kind": "VARCHAR",
    "actor": f"STRUCT({_ACTOR})",
    "hash": "VARCHAR",
    "data": "JSON",
}
_RAW = """CREATE OR REPLACE TEMP TABLE raw AS
SELECT id, stream, seq, "at" AS at_us, coalesce(actor.session, '') AS session, coalesce(actor.agent, '') AS agent,
    coalesce(actor.harness, '') AS harness, coalesce(actor.model, '') AS model, coalesce(actor.origin, '') AS origin,
    kind, ts, batch, coalesce(hash, '') AS hash, CASE WHEN data::VARCHAR <> 'null' THEN data END AS data
FROM """
_READ = (
    "read_json(?, format = 'newline_delimited', columns = {"
    + ", ".join(f"'{name}': '{type}'" for name, type in _COLUMNS.items())
    + f"}}, maximum_object_size = {EVENT_BYTES_MAX})"
)


def sql(name: str) -> str:
    """The text of one of this package's .sql files."""
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read()


def views() -> str:
    """The statements that make the views, with the shipped lifetimes of failures as one of them."""
    rows = ", ".join(f"('{name}', {int(ttl)})" for name, ttl in sorted(TTL_WARN.items()))
    shipped = f"SELECT * FROM (VALUES {rows}) AS shipped(class, warn_us)"  # noqa: S608
    return f"CREATE VIEW shipped_ttl AS {shipped};\n{sql('views.sql')}"


def load_log(con: duckdb.DuckDBPyConnection, home: str) -> int:
    """Create the tables and views in the current schema and fill them from the log at `home`; returns the events read."""
    con.execute(sql("schema.sql"))
    problems: list[Problem] = []
    # DuckDB's reader checks no digest: a line that was tampered with must not come in by it.
    ends = _ends(home) if verify(home).ok else None
    how = "bulk"
    if ends is None or not _bulk(con, home, ends):
        how = "careful"
        _careful(con, home, problems)
    loaded = _load_raw(con)
    con.executemany("INSERT INTO integrity VALUES (?, ?, ?, ?, ?)", [_row(p) for p in problems]) if problems else None
    con.execute("INSERT INTO generation VALUES (?, ?, ?)", [VERSION, loaded, how])
    _write_cursors(con, ends or {})
    con.execute("DROP TABLE raw")
    con.execute("CREATE TABLE failures AS " + sql("failures.sql"))
    con.execute(views())
    return loaded


def load_events(con: duckdb.DuckDBPyConnection, events: Iterable[Mapping[str, Any]]) -> int:
    """Create the tables in the current schema and fill them from a few events; no views. Returns the events read."""
    con.execute(sql("schema.sql"))
    shape = {name: type for name, type in _COLUMNS.items() if name != "actor"}
    shape_json = json.dumps([{**shape, "actor": dict.fromkeys(("session", "agent", "harness", "model", "origin"), "VARCHAR")}])
    rows = json.dumps(list(events), ensure_ascii=True)
    # FROM a sub-query so that the fields of the struct `e` are columns
    unnested = "(SELECT e.* FROM (SELECT unnest(from_json(?, ?)) AS e))"
    con.execute(f"{_RAW} {unnested}", [rows, shape_json])
    loaded = _load_raw(con)
    con.execute("DROP TABLE raw")
    return loaded


def _load_raw(con: duckdb.DuckDBPyConnection) -> int:
    expected = _number(con, "SELECT count(*) FROM raw")
    con.execute(sql("load.sql"))
    counted = {"events": (_number(con, "SELECT count(*) FROM events"), expected)}
    kinds = dict(con.execute("SELECT kind, count(*) FROM events WHERE NOT erased GROUP BY kind").fetchall())
    for table, of in KINDS.items():
        counted[table] = _number(con, f"SELECT count(*) FROM {table}"), sum(kinds.get(k, 0) for k in of)  # noqa: S608
    wrong = [f"{table} has {has} rows instead of {wanted}" for table, (has, wanted) in counted.items() if has != wanted]
    if wrong:
        raise CountMismatch(
            f"the summaries do not account for every event of the log ({'; '.join(wrong)}): this is a fault, report it"
        )
    return expected


def _ends(home: str) -> dict[str, tuple[int, str, str, int]] | None:
    """Of each stream (seq, hash, segment, byte offset) of its end; None where some end is not clean."""
    found = {}
    for stream in streams(home):
        position = read_position(os.path.join(home, "log", stream), stream)
        tail = position.tail
        if tail.state != "clean":
            return None
        if tail.seq:
            found[stream] = (tail.seq, tail.hash, position.segment, position.size)
    return found


def _bulk(con: duckdb.DuckDBPyConnection, home: str, ends: dict[str, tuple[int, str, str, int]]) -> bool:
    """Read all segments with DuckDB. False where that did not give exactly the events that the streams' ends promise."""
    files = [os.path.join(home, "log", stream, name) for stream in ends for name in segments(os.path.join(home, "log", stream))]
    if not files:
        return False  # nothing to read: the careful way gives an empty table
    con.execute("CREATE OR REPLACE TEMP TABLE heads (stream VARCHAR, head BIGINT)")
    con.executemany("INSERT INTO heads VALUES (?, ?)", [(stream, end[0]) for stream, end in ends.items()])
    try:
        con.execute(
            f"{_RAW} {_READ}"
            " JOIN heads USING (stream) WHERE seq <= head",  # appended since: left to the readers of this generation
            [files],
        )
    except duckdb.Error:
        return False
    finally:
        con.execute("DROP TABLE heads")
    if LATEST and _outdated(con):
        return False  # payloads of an older version of their kind come in event by event, brought to today's
    rows = con.execute("SELECT stream, count(*), count(DISTINCT seq), min(seq), max(seq) FROM raw GROUP BY stream").fetchall()
    return {row[0]: row[1:] for row in rows} == {stream: (n, n, 1, n) for stream, (n, _, _, _) in ends.items()}


def _outdated(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether `raw` holds a payload of a version that is no longer written."""
    old = "SELECT 1 FROM raw WHERE kind = ? AND data IS NOT NULL AND coalesce(try_cast(data->>'v' AS BIGINT), 1) < ? LIMIT 1"
    return any(con.execute(old, [kind, version]).fetchone() for kind, version in LATEST.items())


def _careful(con: duckdb.DuckDBPyConnection, home: str, problems: list[Problem]) -> None:
    """Read event by event, around damage."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="ascii") as file:
        read = 0
        for event in read_events(home, problems=problems):
            file.write(json.dumps({name: event.get(name) for name in _COLUMNS}) + "\n")
            read += 1
        file.flush()
        con.execute(
            f"{_RAW} {_READ}",
            [file.name],
        )
    found = _number(con, "SELECT count(*) FROM raw WHERE seq IS NOT NULL AND id IS NOT NULL")
    if found != read:
        raise CountMismatch(f"the log holds {read} readable events, but {found} were taken in: this is a fault, report it")


def _write_cursors(con: duckdb.DuckDBPyConnection, ends: dict[str, tuple[int, str, str, int]]) -> None:
    """Where each stream was left. Without a clean end there is no byte position: the tail reader looks for itself."""
    rows = con.execute("SELECT stream, max(seq), arg_max(hash, seq) FROM raw GROUP BY stream").fetchall()
    for stream, seq, hash in rows:
        segment, offset = ends[stream][2:] if stream in ends and ends[stream][0] == seq else ("", 0)
        con.execute("INSERT INTO cursors VALUES (?, ?, ?, ?, ?)", [stream, seq, hash, segment, offset])


def _row(problem: Problem) -> list[Any]:
    return [problem.stream, problem.segment, problem.offset, problem.kind, problem.detail]


def _number(con: duckdb.DuckDBPyConnection, query: str) -> int:
    row = con.execute(query).fetchone()
    return int(row[0]) if row else 0
