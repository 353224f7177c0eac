"""DuckDB summaries as immutable generations: built aside, synced, renamed, and only then pointed to.

    <home>/projections/duckdb/CURRENT            {"bytes", "file", "version"}, replaced atomically
                              gen-00000012.duckdb  never opened for writing after it has its name
                              build.lock           one builder at a time; never unlinked

DuckDB lets no other process read a file that one writes, so nobody ever writes one that is read. A reader opens the current
generation read-only and folds what the log has gained since into tables in memory (`open_current`), so an answer is right
after every append without a lock. Only when it is far behind, absent, damaged or of another version is a new one built; if
another process is already at it, or the folder cannot be written, the reader goes on with what there is. The previous
generation is kept for readers that are about to open it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

import duckdb
from projectmem_logs import files

from . import tail
from .errors import GenerationDamaged
from .loading import TABLES, VERSION, load_events, load_log, sql

FOLD_EVENTS_MAX = 4000  # a reader that finds more new events than this builds a new generation
PREFIX, SUFFIX, BUILDING = "gen-", ".duckdb", "building.duckdb"
_CONFIG: dict[str, Any] = {
    "memory_limit": "700MB",
    "preserve_insertion_order": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
# Failures of the keys that newer events, or newer erasures, have to do with are judged anew; the rest stand as built.
_FAILURES_BEGIN = """
CREATE TABLE n.concerned AS
    SELECT key FROM n.entries UNION SELECT key FROM g.entries WHERE id IN (SELECT erased FROM n.erasures);
CREATE SCHEMA k;
CREATE VIEW k.entries AS SELECT * FROM main.entries WHERE key IN (SELECT key FROM n.concerned);
SET schema = 'k';
CREATE TABLE failures AS
"""
_FAILURES_END = """
SET schema = 'main';
CREATE VIEW failures AS
    SELECT * FROM g.failures WHERE key NOT IN (SELECT key FROM n.concerned) UNION ALL SELECT * FROM k.failures;
"""
T = TypeVar("T")


class Summaries:
    """An open connection over tables and views of schema.sql and views.sql, current as of when it was opened.

    con      the DuckDB connection: read-only, or in memory over a read-only generation
    notices  what a person should know: a damaged generation was replaced, a build was not possible
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, notices: list[str]) -> None:
        self.con, self.notices = con, notices

    def __enter__(self) -> Summaries:
        return self

    def __exit__(self, *_: object) -> None:
        self.con.close()

    def query(self, statement: str, values: list[Any] | dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Rows as dicts. Raises GenerationDamaged when DuckDB cannot read the file."""
        try:
            cursor = self.con.execute(statement, values or [])
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException, duckdb.ConversionException):
            raise
        except duckdb.Error as error:
            raise GenerationDamaged(f"the summaries cannot be read ({error}): they are rebuilt from the log") from error

    def cursor(self) -> dict[str, int]:
        """Last event taken in, of each stream."""
        return {row["stream"]: row["seq"] for row in self.query("SELECT stream, max(seq) AS seq FROM events GROUP BY stream")}

    def canonical_dump(self) -> bytes:
        """Every table and view as canonical bytes, one row a line: equal for equal logs, built or folded in any way."""
        lines = []
        views = ("failures", "sessions", "issues", "decisions", "labels", "gate_outcomes", "actors")
        for table in (*TABLES, *views):
            rows = [json.dumps(row, sort_keys=True, ensure_ascii=False) for row in self.query(f"SELECT * FROM {table}")]  # noqa: S608
            lines += [f"# {table}", *sorted(rows)]
        return "\n".join(lines).encode()


def open_current(home: str, *, build_when_behind: int = FOLD_EVENTS_MAX) -> Summaries:
    """The summaries of the log at `home`, complete up to now. Builds a generation where there is none that will do.

    Raises CountMismatch when a build does not account for every event, OSError when the log cannot be read.
    """
    notices: list[str] = []
    folder = _folder(home)
    try:
        path = _current(folder, notices)
    except GenerationDamaged as damage:
        notices.append(f"{damage} They are being rebuilt from the log.")
        path = ""
    if path:
        found = _follow(home, path, notices, build_when_behind)
        if found is not None:
            return found
    return _built(home, folder, path, notices)


def _built(home: str, folder: str, path: str, notices: list[str]) -> Summaries:
    """Build and open; where that is not possible, go on with the old generation, or read the log into memory."""
    try:
        new = build(home, wait_ms=0)
    except (OSError, duckdb.IOException) as error:
        notices.append(f"no summaries could be written to {folder} ({error}): the log is read anew each time")
        new = ""
    for candidate in (new, path):
        if candidate:
            found = _follow(home, candidate, notices, None)
            if found is not None:
                return found
    con = _connect()
    load_log(con, home)
    return Summaries(con, notices)


def ask(home: str, question: Callable[[Summaries], T], notices: list[str] | None = None) -> T:
    """Open, ask, close. A generation that turns out damaged is discarded, rebuilt from the log, and asked again."""
    for last in (False, True):
        with open_current(home) as summaries:
            try:
                answer = question(summaries)
            except GenerationDamaged as damage:
                if last:
                    raise
                if notices is not None:
                    notices.append(str(damage))
            else:
                if notices is not None:
                    notices += summaries.notices
                return answer
        discard(home)
    raise AssertionError("unreachable")


def build(home: str, *, wait_ms: int = 0) -> str:
    """Build a generation from the log and make it the current one; returns its path, "" where another process is building.

    Nothing is taken away before the new one stands. Raises CountMismatch, OSError, duckdb.Error; then the old one stays.
    """
    folder = _folder(home)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = files.lock(os.path.join(folder, "build.lock"), wait_ms)
    if lock is None:
        return ""
    try:
        for name in files.names(folder):
            if name.startswith(BUILDING):  # of a builder that died: the lock is ours now
                files.remove(os.path.join(folder, name))
        building = os.path.join(folder, BUILDING)
        con = _connect(building)
        try:
            load_log(con, home)
            con.execute("CHECKPOINT")
        finally:
            con.close()
        return _publish(folder, building)
    finally:
        files.unlock(lock)


def _publish(folder: str, building: str) -> str:
    old = _generations(folder)
    name = f"{PREFIX}{(int(old[-1][len(PREFIX) : -len(SUFFIX)]) if old else 0) + 1:08d}{SUFFIX}"
    path = os.path.join(folder, name)
    fd = os.open(building, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        files.sync(fd)
        size = os.fstat(fd).st_size
    finally:
        os.close(fd)
    os.chmod(building, 0o600)
    os.rename(building, path)
    files.sync_dir(folder)
    pointer = {"bytes": size, "file": name, "version": VERSION}
    files.replace(os.path.join(folder, "CURRENT"), json.dumps(pointer, sort_keys=True).encode() + b"\n")
    for name in old[:-1]:
        files.remove(os.path.join(folder, name))
    return path


def discard(home: str, *, all: bool = False) -> None:
    """Stop pointing to the current generation, which turned out damaged. `all`: remove every generation, old ones too
    (after an erasure nothing of what was erased may stay)."""
    folder = _folder(home)
    files.remove(os.path.join(folder, "CURRENT"))
    for name in _generations(folder) if all else ():
        files.remove(os.path.join(folder, name))


def purge_previous(home: str) -> None:
    """Remove every generation but the current one: an older one may hold what has been erased."""
    folder = _folder(home)
    current = os.path.basename(_current(folder, []))
    for name in _generations(folder):
        if name != current:
            files.remove(os.path.join(folder, name))


def _folder(home: str) -> str:
    return os.path.join(home, "projections", "duckdb")


def _generations(folder: str) -> list[str]:
    return [n for n in files.names(folder, SUFFIX) if n.startswith(PREFIX) and n[len(PREFIX) : -len(SUFFIX)].isdigit()]


def _current(folder: str, notices: list[str]) -> str:
    """Path of the current generation, "" where there is none or it is of another version. Raises GenerationDamaged."""
    pointer = os.path.join(folder, "CURRENT")
    try:
        found = json.loads(files.read(pointer))
        name, size, version = str(found["file"]), found["bytes"], found["version"]
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (ValueError, KeyError, TypeError):
        raise GenerationDamaged(f"{pointer} is damaged.") from None
    if version != VERSION:
        return ""
    path = os.path.join(folder, os.path.basename(name))
    signature = files.signature(path)
    if signature is None or signature[1] != size:
        raise GenerationDamaged(f"the summaries {path} are {'gone' if signature is None else 'not whole'}.")
    return path


def _follow(home: str, path: str, notices: list[str], limit: int | None) -> Summaries | None:
    """Open a generation with what the log has gained since; None when that is more than `limit` events or it is unusable."""
    try:
        base = _connect(path, read_only=True)
        try:
            left = base.execute("SELECT stream, seq, hash, segment, size FROM cursors").fetchall()
        except BaseException:
            base.close()
            raise
    except duckdb.Error as error:
        notices.append(f"the summaries {path} are damaged ({error}). They are being rebuilt from the log.")
        return None
    try:
        events = _newer(home, {row[0]: row[1:] for row in left}, limit)
    except GenerationDamaged as behind:
        base.close()
        notices.append(str(behind))
        return None
    if events is None:
        base.close()
        return None
    if not events:
        return Summaries(base, notices)
    base.close()
    return Summaries(_overlay(path, events), notices)


def _newer(home: str, left: dict[str, tuple[int, str, str, int]], limit: int | None) -> list[dict[str, Any]] | None:
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


def _overlay(path: str, events: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    """The tables of the generation and of the newer events as one, in a connection in memory."""
    con = _connect()
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
        con.execute(_FAILURES_BEGIN + sql("failures.sql"))
        con.execute(_FAILURES_END + sql("views.sql"))
    except duckdb.Error as error:
        con.close()
        raise GenerationDamaged(f"the summaries {path} cannot be read ({error}): they are rebuilt from the log") from error
    except BaseException:
        con.close()
        raise
    return con


def _connect(path: str = ":memory:", *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(path, read_only=read_only, config=_CONFIG)
    con.execute("SET enable_progress_bar = false")  # it would end up in somebody's --json
    return con
