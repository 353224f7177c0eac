"""What a resident process keeps open from one request to the next: the store of its log and the gate's snapshot.

A store that goes on need not read the stream's end again, nor sync what it finds there; a connection to the snapshot keeps its
prepared statements and, as long as nobody else writes, the pages that it has read: so the first question and the rest of a call
share one. Each is used by one request at a time and given back after it; a snapshot whose file was replaced meanwhile is closed
and opened anew, and a store looks at its segment's signature itself.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from typing import Any

import orjson
from projectmem_logs import files
from projectmem_logs.fastjson import encode, loads
from projectmem_logs.store import LogStore
from projectmem_projections import quick, snapshot, snapshot_file
from projectmem_projections.errors import ProjectionError, SnapshotDamaged
from projectmem_projections.glance import Glance, current
from projectmem_projections.schema_sqlite import VERSION
from projectmem_projections.snapshot import Snapshot
from projectmem_projections.sqlite import sqlite3

from projectmem import recall_light, writing
from projectmem.hook import entry, state
from projectmem.place import Place
from projectmem.serve import remembered

SPARE_MAX = 4  # of each log: more requests at once open their own
# Objects between two searches for reference cycles. By the interpreter's 700 each request was searched through several times, a
# fifth of its cost; what a request leaves in cycles is little.
COLLECT_AFTER = 20_000
OPTIONS = (
    orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)  # fmt: skip
NO_FILE = (0, 0)
# A number that is too long for orjson, as it looks where every digit is a 0 and whatever may stand before a number is a comma.
_PLAIN = bytes(48 if 48 <= c < 58 else 44 if c in b"[:, \t\n\r" else c for c in range(256))
_LONG, _BELOW = b"0" * 20, b",-" + b"0" * 19

Signature = tuple[int, int, int, int] | None
_stores: dict[str, list[tuple[Signature, LogStore]]] = {}  # with what the log's project.json was when each was made
_lent_stores: dict[int, Signature] = {}
_snapshots: dict[str, list[KeptSnapshot]] = {}
_lent: dict[int, KeptSnapshot] = {}  # by its connection, which the first question uses just now
_find = entry.find
_for_writing = quick.FOR_WRITING  # all but the last hold as long as the connection
_glances: dict[str, Glance] = {}  # what recall has read
_collects = gc.get_threshold()


class KeptSnapshot(Snapshot):
    """A snapshot that `close` gives back."""

    file: tuple[int, int]

    def stale(self, positions: Mapping[str, tuple[str, int]]) -> bool:
        """As any; a file that was made over meanwhile into one of another version is told here."""
        with self._guard:
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise SnapshotDamaged(f"the gate snapshot {self.path} is of version {version} by now: rebuild it from the log")
        return super().stale(positions)

    def close(self) -> None:
        """Keep it for the next request, unless something was left undone."""
        self.rest()
        spare = _snapshots.setdefault(self.path, [])
        if self._db.in_transaction or len(spare) >= SPARE_MAX:
            super().close()
        else:
            spare.append(self)


def _file(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return NO_FILE
    return found.st_dev, found.st_ino


def _open(path: str, *, busy_ms: int = 100, now: tuple[int, int] = NO_FILE) -> KeptSnapshot:
    spare = _snapshots.get(path, [])
    now = _file(path) if now == NO_FILE else now
    while spare:
        try:
            kept = spare.pop()
        except IndexError:  # another request was faster
            break
        if kept.file == now:
            return kept
        Snapshot.close(kept)
    made = KeptSnapshot(path, busy_ms=busy_ms)
    made.file = _file(path)
    return made


def _take(place: Place) -> LogStore:
    now = files.signature(f"{place.home}/project.json")
    spare = _stores.get(place.home, [])
    while spare:
        try:
            made_for, store = spare.pop()
        except IndexError:  # another request was faster
            break
        if made_for == now:
            _lent_stores[id(store)] = made_for
            return store
        store.close()
    store = writing.made(place)
    _lent_stores[id(store)] = now
    return store


def _give(store: LogStore, place: Place) -> None:
    made_for, spare = _lent_stores.pop(id(store)), _stores.setdefault(place.home, [])
    if len(spare) < SPARE_MAX:
        spare.append((made_for, store))
    else:
        store.close()


def _connect(path: str) -> Any:
    """The connection of a snapshot, for the first question. Raises sqlite3.Error where there is none to be had."""
    now = _file(path)
    if now == NO_FILE:
        raise sqlite3.OperationalError("no snapshot")  # the question makes none
    try:
        kept = _open(path, busy_ms=state.BUSY_MS, now=now)
        kept.for_writing()
    except ProjectionError as exc:
        raise sqlite3.OperationalError(str(exc)) from None
    _lent[id(kept._db)] = kept
    return kept._db


def _disconnect(path: str, db: Any) -> None:
    _lent.pop(id(db)).close()


def _encoded(value: Any) -> str:
    """What `fastjson.encode` makes of it, in a tenth of the time."""
    try:
        return orjson.dumps(value, option=OPTIONS).decode()
    except (TypeError, ValueError):
        return encode(value)


def _decoded(raw: bytes | str) -> Any:
    """What `fastjson.loads` makes of a stored text, in a fifth of the time."""
    if isinstance(raw, str):
        try:
            data = raw.encode()
            plain = data.translate(_PLAIN)
            if _LONG not in plain and _BELOW not in plain and not plain.startswith(_BELOW[1:]):
                return orjson.loads(data)
        except ValueError:
            pass  # what only the other one reads, or refuses in its own words
    return loads(raw)


def _look(home: str, read_max: int | None) -> Glance:
    """What recall has read, with what was appended since: a process that goes on never reads a line twice."""
    kept, generation = _glances.pop(home, None), current(home)
    if kept is not None:
        if kept.generation == generation and kept.follow():
            return kept
        kept.close()
    return recall_light.opened(home, read_max)


def _unlook(home: str, glance: Glance) -> None:
    before = _glances.pop(home, None)
    if before is not None:
        before.close()
    if glance.read:
        _glances[home] = glance
    else:
        glance.close()


def _is_unread(home: str) -> bool:
    return home not in _glances


def keep() -> None:
    """From now on this process keeps what it opens."""
    gc.collect()
    gc.freeze()  # modules live as long as the process: no search need look at them
    gc.set_threshold(COLLECT_AFTER, *_collects[1:])
    quick.connect, quick.disconnect, quick.FOR_WRITING = _connect, _disconnect, _for_writing[-1:]
    state.opener, state.identity, entry.find = _open, remembered.identity, remembered.find
    snapshot.encode, snapshot_file.loads = _encoded, _decoded
    recall_light.take, recall_light.give, recall_light.is_unread = _look, _unlook, _is_unread
    writing.take, writing.give = _take, _give


def release() -> None:
    """Close what was kept, and keep nothing from now on."""
    gc.set_threshold(*_collects)
    gc.unfreeze()
    state.opener, state.identity, entry.find = Snapshot, state._identity, _find
    snapshot.encode, snapshot_file.loads = encode, loads
    remembered.forget()
    recall_light.take, recall_light.give = recall_light.opened, recall_light.closed
    recall_light.is_unread = recall_light.unread
    quick.connect, quick.disconnect, quick.FOR_WRITING = quick.opened, quick.closed, _for_writing
    writing.take, writing.give = writing.made, writing.unmade
    for _, store in [row for rows in _stores.values() for row in rows]:
        store.close()
    for kept in [kept for rows in _snapshots.values() for kept in rows]:
        Snapshot.close(kept)
    for glance in _glances.values():
        glance.close()
    _glances.clear()
    _stores.clear()
    _snapshots.clear()
