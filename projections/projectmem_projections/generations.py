"""DuckDB summaries as immutable generations: built under a name nobody knows yet, synced, and only then pointed to.

    <home>/projections/duckdb/CURRENT            {"bytes", "file", "version"}, replaced atomically
                              gen-00000012.duckdb  never opened for writing after CURRENT named it
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
import re
import shutil
import time
from collections.abc import Callable
from typing import Any, TypeVar

import duckdb
from projectmem_logs import files

from .errors import GenerationDamaged, ProjectionError
from .loading import DERIVED, TABLES, VERSION, load_log, sql
from .overlay import SPILL, connect, newer, overlay, spill_in

FOLD_EVENTS_MAX = 4000  # a reader that finds more new events than this builds a new generation
SPILL_S = 86_400  # no question takes a day
PREFIX, SUFFIX = "gen-", ".duckdb"
T = TypeVar("T")


class Summaries:
    """An open connection over tables and views of schema.sql and views.sql, current as of when it was opened.

    con      the DuckDB connection: read-only, or in memory over a read-only generation
    notices  what a person should know: a damaged generation was replaced, a build was not possible
    attached whether newer events were folded over the generation: its own tables are `g`, theirs `n`
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, notices: list[str], *, attached: bool = False) -> None:
        self.con, self.notices, self.attached = con, notices, attached

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
        """Every table and view as canonical bytes, one row a line: equal for equal logs, built or folded in any way. Views that
        need a clock are asked at the time of the newest event."""
        self.query("SET VARIABLE now_us = (SELECT coalesce(max(at_us), 0) FROM events)")
        lines = []
        for table in (*TABLES, *DERIVED, *self.views()):
            rows = [json.dumps(row, sort_keys=True, ensure_ascii=False) for row in self.query(f"SELECT * FROM {table}")]  # noqa: S608
            lines += [f"# {table}", *sorted(rows)]
        self.query("RESET VARIABLE now_us")
        return "\n".join(lines).encode()

    def views(self) -> list[str]:
        """Names of the views of views.sql, in its order."""
        return re.findall(r"^CREATE VIEW (\w+)", sql("views.sql"), re.MULTILINE)


def open_current(home: str, *, build_when_behind: int = FOLD_EVENTS_MAX) -> Summaries:
    """The summaries of the log at `home`, complete up to now. Builds a generation where there is none that will do.

    Raises CountMismatch when a build does not account for every event, OSError when the log cannot be read.
    """
    notices: list[str] = []
    folder = _folder(home)
    try:
        path = _current(folder)
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
    except (OSError, duckdb.IOException, duckdb.TransactionException) as error:  # a full disk shows as either
        notices.append(f"no summaries could be written to {folder} ({error}): the log is read anew each time")
        new = ""
    for candidate in (new, path):
        if candidate:
            found = _follow(home, candidate, notices, None)
            if found is not None:
                return found
    con = connect(spill=spill_of(home))
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
                    notices += summaries.notices + _read_around(summaries)
                return answer
        discard(home)
    raise AssertionError("unreachable")


def ask_whole(home: str, question: Callable[[Summaries], T], notices: list[str] | None = None) -> T:
    """As `ask`, for questions that may name any table: nothing that was erased since the generation was built is in reach.

    (The views hide it, but the generation's own tables, attached beside them, still hold it.)
    """
    with open_current(home) as summaries:
        stale = summaries.attached and summaries.query("SELECT 1 FROM n.erasures LIMIT 1")
    if stale and not build(home, wait_ms=10_000):
        raise ProjectionError("the summaries are being rebuilt after an erasure: try again in a moment")
    return ask(home, question, notices)


def _read_around(summaries: Summaries) -> list[str]:
    """What an answer left out because the log itself is damaged."""
    found = summaries.query("SELECT count(*) AS n, min(stream) AS stream FROM integrity")[0]
    if not found["n"]:
        return []
    return [
        f"the log is damaged in {found['n']} place(s) of stream {found['stream']}, which this leaves out. Run `projectmem verify`"
    ]


def build(home: str, *, wait_ms: int = 0) -> str:
    """Build a generation from the log and make it the current one; returns its path, "" where another process is building.

    Nothing is taken away before the new one stands. Raises CountMismatch, OSError, duckdb.Error; then the old one stays.
    """
    folder = _folder(home)
    files.make_last(os.path.dirname(folder))
    files.make_last(folder)
    lock = files.lock(os.path.join(folder, "build.lock"), wait_ms)
    if lock is None:
        return ""
    try:
        used = os.path.basename(_pointed(folder))
        old = _generations(folder)
        for name in files.names(folder):  # of a builder that died, as the lock is ours now, or of a reader that did
            begun = name.startswith(PREFIX) and name[: len(_name(0))] > used
            if begun or (name.startswith(SPILL) and _is_old(os.path.join(folder, name))):
                _remove(os.path.join(folder, name))
        path = os.path.join(folder, _name(int(old[-1][len(PREFIX) : -len(SUFFIX)]) + 1 if old else 1))
        try:
            con = connect(path)
            try:
                load_log(con, home)
                con.execute("CHECKPOINT")
            finally:
                con.close()
            _publish(folder, path)
        except BaseException:
            for leftover in (path, f"{path}.wal", f"{path}.tmp"):
                _remove(leftover)
            raise
        for name in old:
            if name < used:
                files.remove(os.path.join(folder, name))
        return path
    finally:
        files.unlock(lock)


def _publish(folder: str, path: str) -> None:
    """Point to a generation that is complete and closed."""
    os.chmod(path, 0o600)
    fd = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        files.sync(fd)
        size = os.fstat(fd).st_size
    finally:
        os.close(fd)
    files.sync_dir(folder)
    pointer = {"bytes": size, "file": os.path.basename(path), "version": VERSION}
    files.replace(os.path.join(folder, "CURRENT"), json.dumps(pointer, sort_keys=True).encode() + b"\n")


def discard(home: str, *, all: bool = False) -> None:
    """Stop pointing to the current generation, which turned out damaged. `all`: remove every generation, old ones too
    (after an erasure nothing of what was erased may stay)."""
    folder = _folder(home)
    files.remove(os.path.join(folder, "CURRENT"))
    for name in files.names(folder) if all else ():
        if name.startswith(PREFIX):  # also what a builder that died left beside its file
            _remove(os.path.join(folder, name))


def size(home: str) -> int:
    """Bytes of the current generation, 0 where there is none. Another builder may have replaced the one that was just built."""
    found = _pointer(_folder(home))
    return int(found[1]) if found else 0


def position(home: str) -> dict[str, int]:
    """{stream: seq} that the current generation was built to, {} where there is none. Raises GenerationDamaged."""
    path = _current(_folder(home))
    if not path:
        return {}
    try:
        with connect(path, read_only=True) as con:
            return {str(stream): int(seq) for stream, seq in con.execute("SELECT stream, seq FROM cursors").fetchall()}
    except duckdb.Error as error:
        raise GenerationDamaged(f"the summaries {path} are damaged ({error}).") from error


def purge_previous(home: str) -> None:
    """Remove every generation but the current one: an older one may hold what has been erased."""
    folder = _folder(home)
    current = os.path.basename(_pointed(folder))
    for name in _generations(folder):
        if name < current:
            files.remove(os.path.join(folder, name))


def spill_of(home: str) -> str:
    """Where tables in memory go that do not fit: beside the generations, not into the working folder."""
    return spill_in(_folder(home))


def _is_old(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime > SPILL_S
    except OSError:
        return False


def _remove(path: str) -> None:
    """Remove a generation, or what is beside one: DuckDB's own folder for what does not fit into memory."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        files.remove(path)


def _folder(home: str) -> str:
    return os.path.join(home, "projections", "duckdb")


def _generations(folder: str) -> list[str]:
    return [n for n in files.names(folder, SUFFIX) if n.startswith(PREFIX) and n[len(PREFIX) : -len(SUFFIX)].isdigit()]


def _name(number: int) -> str:
    return f"{PREFIX}{number:08d}{SUFFIX}"


def _pointer(folder: str) -> tuple[str, int, int] | None:
    """(path, size, version) that CURRENT names, None where there is none. Raises GenerationDamaged."""
    pointer = os.path.join(folder, "CURRENT")
    try:
        found = json.loads(files.read(pointer))
        return os.path.join(folder, os.path.basename(found["file"])), found["bytes"], found["version"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, AttributeError, IsADirectoryError):
        raise GenerationDamaged(f"{pointer} is damaged.") from None


def _pointed(folder: str) -> str:
    """What CURRENT points to, sound or not; "" where it says nothing."""
    try:
        found = _pointer(folder)
    except GenerationDamaged:
        return ""
    return found[0] if found else ""


def _current(folder: str) -> str:
    """Path of the current generation, "" where there is none or it is of another version. Raises GenerationDamaged."""
    found = _pointer(folder)
    if found is None or found[2] != VERSION:
        return ""
    path, size, _ = found
    signature = files.signature(path)
    if signature is None or signature[1] != size:
        raise GenerationDamaged(f"the summaries {path} are {'gone' if signature is None else 'not whole'}.")
    return path


def _follow(home: str, path: str, notices: list[str], limit: int | None) -> Summaries | None:
    """Open a generation with what the log has gained since; None when that is more than `limit` events or it is unusable."""
    try:
        base = connect(path, read_only=True)
        try:
            left = base.execute("SELECT stream, seq, hash, segment, size FROM cursors").fetchall()
        except BaseException:
            base.close()
            raise
    except duckdb.Error as error:
        notices.append(f"the summaries {path} are damaged ({error}). They are being rebuilt from the log.")
        return None
    try:
        events = newer(home, {row[0]: row[1:] for row in left}, limit)
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
    return Summaries(overlay(path, events), notices, attached=True)
