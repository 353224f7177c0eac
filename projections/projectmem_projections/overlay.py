"""Reads a DuckDB generation together with what the log has gained since, without writing anything.

The newer events are loaded into tables in memory; views over both hide what was erased and judge the failures concerned anew.
"""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import duckdb

from . import learning, tail
from .errors import GenerationDamaged
from .loading import TABLES, load_events, sql, views

SPILL = "spill-"
_connections = count()
_CONFIG: dict[str, Any] = {
    "memory_limit": "700MB",
    "preserve_insertion_order": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
# Failures of the keys that newer events, or newer erasures, have to do with are judged anew; the rest stand as built. Only what
# ever failed has a history to look at, and it is fetched once: the generation has an entry for every call.
_CONCERNED = """
CREATE TABLE n.concerned AS
    SELECT key FROM n.entries UNION SELECT key FROM g.entries WHERE id IN (SELECT erased FROM n.erasures);
CREATE SCHEMA k;
"""
_EVER_FAILED = """
SELECT key FROM n.concerned WHERE key IN (SELECT key FROM g.failures UNION ALL SELECT key FROM n.entries WHERE t = 'fail')
"""
_HISTORIES = """
CREATE TABLE k.entries AS SELECT * FROM (
    SELECT * FROM g.entries WHERE key IN (SELECT unnest($1)) UNION ALL SELECT * FROM n.entries WHERE key IN (SELECT unnest($1))
) WHERE id NOT IN (SELECT erased FROM main.erasures)
"""
_FAILURES_BEGIN = """
SET schema = 'k';
CREATE TABLE failures AS
"""
_FAILURES_END = """
SET schema = 'main';
CREATE VIEW failures AS
    SELECT * FROM g.failures WHERE key NOT IN (SELECT key FROM n.concerned) UNION ALL SELECT * FROM k.failures;
"""


# Newer events that experience could be made of: anything said, recalled or erased, and what followed a recall in its session.
_TAUGHT = """SELECT 1 WHERE EXISTS (FROM n.recalls) OR EXISTS (FROM n.feedback) OR EXISTS (FROM n.erasures)
    OR EXISTS (FROM n.curations WHERE what = 'disputed') OR EXISTS (FROM n.actions JOIN g.recalls USING (session))"""


def spill_in(folder: str) -> str:
    """A folder in this one for what a connection in memory cannot hold; no two have the same."""
    return os.path.join(folder, f"{SPILL}{os.getpid()}-{next(_connections)}.tmp")


def connect(path: str = ":memory:", *, read_only: bool = False, spill: str = "") -> duckdb.DuckDBPyConnection:
    """A connection with our settings.

    spill  a folder for what does not fit into memory, made when it is needed and taken away afterwards; by default beside the
           file. What is in memory alone goes nowhere without one: DuckDB's own choice would be `.tmp` in the working folder.
    """
    config = _CONFIG if path != ":memory:" else {**_CONFIG, "temp_directory": spill}
    con = duckdb.connect(path, read_only=read_only, config=config)
    con.execute("SET enable_progress_bar = false")  # it would end up in somebody's --json
    return con


def newer(home: str, left: dict[str, tuple[int, str, str, int]], limit: int | None) -> list[dict[str, Any]] | None:
    """Events past `left`; None when there are more than `limit`. Raises GenerationDamaged when the log is not the one that
    was read."""
    events: list[dict[str, Any]] = []
    streams = tail.positions(home)
    gone = set(left) - set(streams)
    if gone:
        raise GenerationDamaged(f"stream {min(gone)} is in the summaries and not in the log: they are being rebuilt.")
    for stream, where in sorted(streams.items()):
        seq, hash, segment, size = left.get(stream, (0, "", "", 0))
        if (segment, size) == where:
            continue
        room = 2**53 if limit is None else limit - len(events) + 1
        found = tail.read_tail(home, stream, segment, size, seq, room)
        if found.shortened or (found.events and hash and found.events[0].get("prev", hash) != hash):
            raise GenerationDamaged(
                f"the log of stream {stream} was rewritten since the summaries were built: they are being rebuilt."
            )
        if found.problem:
            events += _around(home, stream, seq, room)
        else:
            events += found.events
        if limit is not None and len(events) > limit:
            return None
    return events


def _around(home: str, stream: str, seq: int, room: int) -> list[dict[str, Any]]:
    """What can be read of a damaged stream past `seq`."""
    from projectmem_logs.reader import read_stream

    found = []
    for event in read_stream(home, stream, seq, None, []):
        found.append(event)
        if len(found) >= room:
            break
    return found


def overlay(path: str, events: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    """The tables of the generation and of the newer events as one, in a connection in memory."""
    con = connect(spill=spill_in(os.path.dirname(path)))
    try:
        con.execute(f"ATTACH '{path.replace(chr(39), chr(39) * 2)}' AS g (READ_ONLY)")
        con.execute("CREATE SCHEMA n")
        con.execute("SET schema = 'n'")
        load_events(con, events)
        con.execute("SET schema = 'main'")
        con.execute("CREATE VIEW erasures AS SELECT * FROM g.erasures UNION ALL SELECT * FROM n.erasures")
        gone = "id IN (SELECT erased FROM erasures)"
        for table in TABLES:
            if table == "events":
                row = f"SELECT * REPLACE (erased OR {gone} AS erased) FROM"
                con.execute(f"CREATE VIEW events AS {row} g.events UNION ALL {row} n.events")
            elif table != "erasures":
                both = f"(SELECT * FROM g.{table} UNION ALL SELECT * FROM n.{table})"  # noqa: S608
                con.execute(f"CREATE VIEW {table} AS SELECT * FROM {both} WHERE NOT {gone}")  # noqa: S608
        for table in ("integrity", "generation", "cursors"):
            con.execute(f"CREATE VIEW {table} AS SELECT * FROM g.{table}")  # noqa: S608
        con.execute(_CONCERNED)
        failed = [key for (key,) in con.execute(_EVER_FAILED).fetchall()]
        con.execute(f"{_HISTORIES} LIMIT {0 if not failed else 2**53}", [failed])
        con.execute(_FAILURES_BEGIN + sql("failures.sql"))
        con.execute(_FAILURES_END)
        _utilities(con)
        con.execute(views())
    except duckdb.Error as error:
        con.close()
        raise GenerationDamaged(f"the summaries {path} cannot be read ({error}): they are rebuilt from the log") from error
    except BaseException:
        con.close()
        raise
    return con


def _utilities(con: duckdb.DuckDBPyConnection) -> None:
    """What experience taught: as built, or anew where newer events have to do with it."""
    taught = con.execute(_TAUGHT).fetchone() is not None
    if taught:
        learning.fill(con, "n.utilities")
    con.execute(f"CREATE VIEW utilities AS SELECT * FROM {'n' if taught else 'g'}.utilities")  # noqa: S608
