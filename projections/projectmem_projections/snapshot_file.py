"""The file under the gate snapshot [H]: opening, creating, errors, transactions, and the notes that are no part of the fold.

SQLite with a rollback journal and without syncs: the file is derived, and one short-lived process per tool call opens it.
"""

from __future__ import annotations

import os

from projectmem_logs.fastjson import encode
from projectmem_logs.fastjson import loads as _loads

from . import claims
from .errors import ProjectionError, SnapshotBusy, SnapshotDamaged
from .quick import CACHE, FOR_WRITING, put_note
from .schema_sqlite import SCHEMA, VERSION
from .sqlite import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any, Self

loads = _loads  # a resident process has a faster way to the same value
_BUSY = (5, 6)  # SQLITE_BUSY, SQLITE_LOCKED
_ENVIRONMENT = (3, 8, 10, 13, 14, 23)  # PERM, READONLY, IOERR, FULL, CANTOPEN, AUTH: the file may be sound


class StoredTextError(ValueError):
    """What `encode` stored does not decode any more."""


def decode(text: str) -> Any:
    """The value of a stored text. Raises StoredTextError."""
    try:
        return loads(text)
    except (ValueError, TypeError) as error:
        raise StoredTextError(f"not what was stored: {error}") from None


class _Guard:
    """Turns what SQLite raises into this package's errors."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 1) & 0xFF
            if code in _BUSY:
                raise SnapshotBusy(f"the gate snapshot {self.path} is locked by another process: try again") from error
            if code in _ENVIRONMENT:
                raise ProjectionError(f"the gate snapshot {self.path} cannot be used: {error}") from error
            raise SnapshotDamaged(f"the gate snapshot {self.path} is damaged ({error}): rebuild it from the log") from error
        if isinstance(error, (StoredTextError, UnicodeDecodeError)):
            raise SnapshotDamaged(f"the gate snapshot {self.path} is damaged ({error}): rebuild it from the log") from error


def _private(path: str) -> None:
    """Make an absent file readable by its owner only; SQLite gives its journal the same mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        pass  # there already, or SQLite will say what is wrong


class SnapshotFile:
    """An open snapshot file of this program's version; an absent one is created, empty.

    busy_ms   how long to wait for another process' transaction
    Raises SnapshotDamaged (discard and rebuild), SnapshotBusy (nothing was changed) and ProjectionError (permissions, space).
    """

    # (session, call, note): a note to be written in the transaction of the next `apply`, with the id of its last event as
    # `proposed`. None again once it is there. A transaction of its own costs as much as half of the fold.
    beside: tuple[str, str, dict[str, Any]] | None = None

    def __init__(self, path: str, *, busy_ms: int = 100) -> None:
        self.path = path
        self._guard = _Guard(path)
        self._writable = self._reads_on = False
        self._busy_ms = busy_ms
        with self._guard:
            _private(path)
            # Never used by two threads at once, but by one after the other in a resident process.
            self._db = sqlite3.connect(
                path, timeout=busy_ms / 1000, isolation_level=None, cached_statements=128, check_same_thread=False
            )
        try:
            with self._guard:
                self._db.execute(CACHE)
                version = self._db.execute("PRAGMA user_version").fetchone()[0]
                if version != VERSION:
                    self._create(version)
        except BaseException:
            self._db.close()
            raise

    def _create(self, version: int) -> None:
        """Make the tables in a new file; refuse one that somebody else made."""
        db = self._db
        self._begin()
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version != VERSION:  # else another process was faster
                if version or db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                    raise SnapshotDamaged(
                        f"the gate snapshot {self.path} is of version {version}, not {VERSION}: rebuild it from the log"
                    )
                for statement in SCHEMA:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            self._rollback()
            raise
        db.execute("COMMIT")

    def close(self) -> None:
        self.rest()
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def for_writing(self) -> None:
        """Set the connection up for writing, once."""
        if not self._writable:
            for statement in FOR_WRITING[:-1]:
                self._db.execute(statement)
            self._writable = True

    def _begin(self) -> None:
        self.rest()
        self.for_writing()
        self._db.execute("BEGIN IMMEDIATE")

    def _rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def reading(self) -> Reading:
        """While in this context everything that is read is the state of one moment, and asking costs half: otherwise each
        question locks the file and looks whether it has changed. Nothing may be written in it, and no writer commits
        meanwhile: it is for what reads nothing else."""
        return Reading(self)

    def read_on(self) -> None:
        """As `reading`, up to the end of the next `reading`, to the next write or to `rest`: no writer commits until then, so
        that one of them has to come soon."""
        with self._guard:
            self._db.execute("BEGIN")
        self._reads_on = True

    def rest(self) -> None:
        """End what `read_on` began."""
        if self._reads_on:
            self._reads_on = False
            with self._guard:
                self._rollback()

    # --- notes that are no part of the fold --------------------------------------------------------------------------

    def pending_put(self, session: str, call: str, data: Mapping[str, Any]) -> None:
        """Leave a note for the post-hook of this call. Only the newest quick.PENDING_MAX are kept."""
        with self._guard:
            self._begin()
            put_note(self._db, session, call, encode(data))
            self._db.execute("COMMIT")

    def pending_get(self, session: str, call: str) -> dict[str, Any] | None:
        with self._guard:
            row = self._db.execute("SELECT data FROM pending WHERE session = ? AND call = ?", (session, call)).fetchone()
            return decode(row[0]) if row else None

    def noted(self, call: str) -> bool:
        """Whether there is a note of this call id, whatever session it is of."""
        with self._guard:
            return self._db.execute("SELECT 1 FROM pending WHERE call = ? LIMIT 1", (call,)).fetchone() is not None

    def marked(self, since: int) -> list[tuple[str, str, dict[str, Any]]]:
        """(session, call, note) of the newest 64 notes with a member "mcp", newest first, left at `since` (us) or later."""
        with self._guard:
            rows = self._db.execute(
                "SELECT session, call, data FROM pending WHERE instr(data, '\"mcp\":') > 0 ORDER BY n DESC LIMIT 64"
            ).fetchall()
        found = [(session, call, decode(data)) for session, call, data in rows]
        return [row for row in found if isinstance(row[2], dict) and isinstance(row[2].get("t0"), int) and row[2]["t0"] >= since]

    def pending_like(self, session: str, prefix: str) -> list[tuple[str, dict[str, Any]]]:
        """(call, note) of the newest 16 notes whose call id starts with `prefix`, newest first."""
        with self._guard:
            rows = self._db.execute(
                "SELECT call, data FROM pending WHERE session = ? AND substr(call, 1, ?) = ? ORDER BY n DESC LIMIT 32",
                (session, len(prefix), prefix),
            ).fetchall()
            found = [(call, decode(data)) for call, data in rows]
        return [(call, note) for call, note in found if isinstance(note, dict)][:16]

    def claim(self, session: str, names: Iterable[str], now: int) -> list[str]:
        """Those of the names that no other process has claimed lately (claims.py): two hooks that are told the same thing at the
        same time do it once. What is on record by then has to be asked before."""
        self.rest()
        return claims.claim(self.path, session, names, now, self._busy_ms)

    def release(self, session: str, names: Iterable[str]) -> None:
        """Give claims back: what they were for was not done."""
        claims.claim(self.path, session, names, 0, self._busy_ms)

    def exclusive(self) -> Exclusive:
        """While in this context nobody else can write; it yields the notes that a rebuild should carry over."""
        return Exclusive(self)

    def copy_over(self, other: SnapshotFile) -> None:
        """Make the other file a copy of this one, in one transaction of the other's."""
        with self._guard:
            self._db.backup(other._db)

    def adopt(self, notes: list[tuple[Any, ...]]) -> None:
        """Take over another snapshot's pending notes."""
        with self._guard:
            self._begin()
            self._db.executemany("REPLACE INTO pending (session, call, data) VALUES (?, ?, ?)", notes)
            self._db.execute("COMMIT")

    def cache_put(self, name: str, value: Any) -> None:
        """Keep something derived from elsewhere (the compiled policy, odds) under a name; a rebuild forgets it."""
        with self._guard:
            self._begin()
            self._db.execute("REPLACE INTO cache VALUES (?, ?)", (name, encode(value)))
            self._db.execute("COMMIT")

    def cache_get(self, name: str) -> Any:
        """What `cache_put` kept, None where there is nothing."""
        with self._guard:
            row = self._db.execute("SELECT value FROM cache WHERE name = ?", (name,)).fetchone()
            return decode(row[0]) if row else None


class Reading:
    """See `SnapshotFile.reading`. Within another one it changes nothing."""

    __slots__ = ("_outer", "_snapshot")

    def __init__(self, snapshot: SnapshotFile) -> None:
        self._snapshot, self._outer = snapshot, False

    def __enter__(self) -> None:
        snapshot = self._snapshot
        self._outer = snapshot._reads_on or not snapshot._db.in_transaction
        if snapshot._reads_on:
            snapshot._reads_on = False  # it goes on here, and ends here
        elif self._outer:
            with snapshot._guard:
                snapshot._db.execute("BEGIN")

    def __exit__(self, *_: object) -> None:
        if self._outer:
            with self._snapshot._guard:
                self._snapshot._rollback()


class Exclusive:
    """See `Snapshot.exclusive`."""

    def __init__(self, snapshot: SnapshotFile) -> None:
        self._snapshot = snapshot

    def __enter__(self) -> list[tuple[Any, ...]]:
        snapshot = self._snapshot
        with snapshot._guard:
            snapshot._begin()
            return snapshot._db.execute("SELECT session, call, data FROM pending ORDER BY n").fetchall()

    def __exit__(self, *_: object) -> None:
        with self._snapshot._guard:
            self._snapshot._rollback()


def discard(path: str) -> None:
    """Remove a damaged snapshot and its journal. Raises ProjectionError where that is not permitted."""
    for name in (path + "-journal", path + "-wal", path + "-shm", path):
        try:
            os.unlink(name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ProjectionError(f"the damaged gate snapshot {name} cannot be removed: {error.strerror}") from error
