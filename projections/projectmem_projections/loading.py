"""Takes a log apart into the tables of schema.sql, inside a DuckDB connection that the caller made.

Two ways to read: *bulk*, DuckDB over the segment files, and *careful*, event by event through `projectmem_logs.reader`. Bulk
counts where the log is provably whole (`verify`, which runs beside it, finds nothing, every stream has exactly the events
1..n that its end promises); anything else is read carefully, and what is wrong stands in `integrity`. Either way the tables
must account for every event, or CountMismatch is raised and nothing is published.

Both take runs of lines, each a few segments, through load.sql, in one transaction: memory does not grow with the log.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import duckdb
from projectmem_gate.policy import TTL_WARN
from projectmem_logs.reader import Problem, read_events
from projectmem_logs.tail import segments
from projectmem_logs.upcasting import LATEST

from . import fold, learning, wholeness
from .errors import CountMismatch

# Version of the tables and views (SCHEMA.md has it; raise it when their columns change) together with that of the fold:
# generations of another version are rebuilt.
SCHEMA_VERSION = 4
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
DERIVED = ("failures", "utilities")  # made of the tables below
TABLES = ("events", "actions", "entries", *(t for t in KINDS if t != "actions"), "recall_items", "erasures")

RUN_BYTES = 256 << 20  # of segments that are taken in at once
RUN_EVENTS = 50_000  # the same, where events are read one by one
_FIELDS = ("id", "stream", "seq", "batch", "ts", "at", "kind", "actor", "data")
# One column, whatever a line holds: canonical JSON has no control characters.
_LINES = (
    "CREATE OR REPLACE TEMP VIEW lines AS SELECT json FROM read_csv([{files}], columns = {{'json': 'VARCHAR'}}, delim = chr(1),"
    " quote = '', escape = '', header = false, auto_detect = false, max_line_size = {size})"
)
_ASIDE = """CREATE OR REPLACE TEMP TABLE heads (stream VARCHAR, head BIGINT);
CREATE OR REPLACE TEMP TABLE gone (id VARCHAR);"""


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
    ends = wholeness.ends(home)
    gone = wholeness.erased_ids(home)
    how = "bulk"
    if not ends or not _bulk(con, home, ends, gone):
        how = "careful"
        con.begin()
        _careful(con, home, gone, problems, ends or {})
        con.commit()
    loaded = _number(con, "SELECT count(*) FROM events")
    con.executemany("INSERT INTO integrity VALUES (?, ?, ?, ?, ?)", [_row(p) for p in problems]) if problems else None
    con.execute("INSERT INTO generation VALUES (?, ?, ?)", [VERSION, loaded, how])
    con.execute("CREATE TABLE failures AS " + sql("failures.sql"))
    learning.fill(con)
    con.execute(views())
    return loaded


def load_events(con: duckdb.DuckDBPyConnection, events: Iterable[Mapping[str, Any]]) -> int:
    """Create the tables in the current schema and fill them from a few events; no views. Returns the events read."""
    con.execute(sql("schema.sql"))
    found = list(events)
    named = [e["data"].get("ids") for e in found if e.get("kind") == "erasure.requested" and isinstance(e.get("data"), dict)]
    _begin(con, {i for ids in named if isinstance(ids, list) for i in ids if type(i) is str}, {})
    con.execute("CREATE OR REPLACE TEMP TABLE lines (json VARCHAR)")
    con.execute("INSERT INTO lines SELECT unnest(from_json(?, '[\"JSON\"]'))", [json.dumps(found, ensure_ascii=True)])
    con.execute(sql("load.sql"))
    _end(con, len(found))
    return len(found)


def _begin(con: duckdb.DuckDBPyConnection, gone: Collection[str], ends: Mapping[str, wholeness.End]) -> None:
    """Set aside what load.sql leaves out: erased events, and what was appended since."""
    con.execute(_ASIDE)
    if gone:
        con.execute("INSERT INTO gone SELECT unnest(?)", [list(gone)])
    if ends:
        con.executemany("INSERT INTO heads VALUES (?, ?)", [(stream, end[0]) for stream, end in ends.items()])


def _end(con: duckdb.DuckDBPyConnection, expected: int) -> None:
    """Hide what a request to erase named that could not be seen beforehand, and see that all events are accounted for."""
    late = "SELECT erased FROM erasures WHERE erased NOT IN (SELECT id FROM gone)"
    if con.execute(f"{late} LIMIT 1").fetchone():
        con.execute(f"UPDATE events SET erased = true WHERE id IN ({late})")  # noqa: S608
        for table in set(TABLES) - {"events", "erasures"}:
            con.execute(f"DELETE FROM {table} WHERE id IN ({late})")  # noqa: S608
    for name in ("raw", "finished", "proposed", "rest", "heads", "gone"):
        con.execute(f"DROP TABLE IF EXISTS {name}")
    counted = {"events": (_number(con, "SELECT count(*) FROM events"), expected)}
    kinds = dict(con.execute("SELECT kind, count(*) FROM events WHERE NOT erased GROUP BY kind").fetchall())
    for table, of in KINDS.items():
        counted[table] = _number(con, f"SELECT count(*) FROM {table}"), sum(kinds.get(k, 0) for k in of)  # noqa: S608
    wrong = [f"{table} has {has} rows instead of {wanted}" for table, (has, wanted) in counted.items() if has != wanted]
    if wrong:
        raise CountMismatch(
            f"the summaries do not account for every event of the log ({'; '.join(wrong)}): this is a fault, report it"
        )


def _bulk(con: duckdb.DuckDBPyConnection, home: str, ends: dict[str, wholeness.End], gone: set[str]) -> bool:
    """Take all segments in with DuckDB. False, and nothing taken in, where that did not give exactly the events that the
    streams' ends promise, or the log does not verify."""
    with wholeness.Verifying(home) as verifying:
        con.begin()
        try:
            _begin(con, gone, ends)
            for files in _runs(home, ends):
                con.execute(_lines(files))
                con.execute(sql("load.sql"))
                if LATEST and _outdated(con):
                    con.rollback()
                    return False  # payloads of an older version of their kind come in event by event, brought to today's
            rows = con.execute("SELECT stream, count(*), count(DISTINCT seq), min(seq), max(seq) FROM events GROUP BY stream")
            whole = {row[0]: row[1:] for row in rows.fetchall()} == {s: (n, n, 1, n) for s, (n, _, _, _) in ends.items()}
            if not whole or not verifying.ok():
                con.rollback()
                return False
            _end(con, sum(end[0] for end in ends.values()))
            _write_cursors(con, {stream: (end[0], end[1]) for stream, end in ends.items()}, ends)
            con.commit()
        except (duckdb.ConversionException, duckdb.InvalidInputException):  # of a line that is not as it should be
            con.rollback()
            return False
    return True


def _runs(home: str, streams: Iterable[str]) -> Iterator[list[str]]:
    """Paths of all segments, a few at a time."""
    run: list[str] = []
    size = 0
    for stream in streams:
        folder = os.path.join(home, "log", stream)
        for name in segments(folder):
            run.append(os.path.join(folder, name))
            size += os.stat(run[-1]).st_size
            if size >= RUN_BYTES:
                yield run
                run, size = [], 0
    if run:
        yield run


def _lines(paths: Sequence[str]) -> str:
    plain = (re.sub(r"([\[*?])", r"[\1]", path).replace("'", "''") for path in paths)  # DuckDB takes paths for patterns
    quoted = ", ".join(f"'{path}'" for path in plain)
    return _LINES.format(files=quoted, size=EVENT_BYTES_MAX)


def _outdated(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether `raw` holds a payload of a version that is no longer written."""
    old = "SELECT 1 FROM raw WHERE kind = ? AND NOT erased AND coalesce(v, 1) < ? LIMIT 1"
    return any(con.execute(old, [kind, version]).fetchone() for kind, version in LATEST.items())


def _careful(
    con: duckdb.DuckDBPyConnection, home: str, gone: set[str], problems: list[Problem], ends: Mapping[str, wholeness.End]
) -> None:
    """Read event by event, around damage."""
    _begin(con, gone, {})
    events = read_events(home, problems=problems)
    last: dict[str, tuple[int, str]] = {}
    read = 0
    while True:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="ascii") as file:
            before = read
            for event in islice(events, RUN_EVENTS):
                file.write(json.dumps({name: event.get(name) for name in _FIELDS}, separators=(",", ":")) + "\n")
                last[event["stream"]] = max(last.get(event["stream"], (0, "")), (event["seq"], event.get("hash") or ""))
                read += 1
            file.flush()
            if read > before or not read:  # the first run gives empty tables
                con.execute(_lines([file.name]))
                con.execute(sql("load.sql"))
        if read < before + RUN_EVENTS:
            break
    found = _number(con, "SELECT count(*) FROM events WHERE seq IS NOT NULL AND id IS NOT NULL")
    if found != read:
        raise CountMismatch(f"the log holds {read} readable events, but {found} were taken in: this is a fault, report it")
    _end(con, read)
    _write_cursors(con, last, ends)


def _write_cursors(
    con: duckdb.DuckDBPyConnection, last: Mapping[str, tuple[int, str]], ends: Mapping[str, wholeness.End]
) -> None:
    """Where each stream was left. Without a clean end there is no byte position: the tail reader looks for itself."""
    for stream, (seq, hash) in last.items():
        segment, offset = ends[stream][2:] if stream in ends and ends[stream][0] == seq else ("", 0)
        con.execute("INSERT INTO cursors VALUES (?, ?, ?, ?, ?)", [stream, seq, hash, segment, offset])


def _row(problem: Problem) -> list[Any]:
    return [problem.stream, problem.segment, problem.offset, problem.kind, problem.detail]


def _number(con: duckdb.DuckDBPyConnection, query: str) -> int:
    row = con.execute(query).fetchone()
    return int(row[0]) if row else 0
