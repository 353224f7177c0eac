"""What a resident process keeps open from one request to the next: the store of its log and the gate's snapshot.

A store that goes on need not read the stream's end again, nor sync what it finds there; a connection to the snapshot keeps its
prepared statements. Each is used by one request at a time and given back after it; a snapshot whose file was replaced meanwhile
is closed and opened anew, and a store looks at its segment's signature itself.
"""

from __future__ import annotations

import gc
import os
from typing import Any

from projectmem_logs.store import LogStore
from projectmem_projections import quick
from projectmem_projections.glance import Glance, current
from projectmem_projections.snapshot import Snapshot

from projectmem import recall_light, writing
from projectmem.hook import state

SPARE_MAX = 4  # of each log: more requests at once open their own
# Objects between two searches for reference cycles. By the interpreter's 700 each request was searched through several times, a
# fifth of its cost; what a request leaves in cycles is little.
COLLECT_AFTER = 20_000

_stores: dict[tuple[str, str], list[LogStore]] = {}
_snapshots: dict[str, list[KeptSnapshot]] = {}
_quick: dict[str, list[tuple[tuple[int, int], Any]]] = {}  # the file and the connection that the first question uses
_files: dict[int, tuple[int, int]] = {}  # of the connections that are in use
_for_writing = quick.FOR_WRITING  # all but the last hold as long as the connection
_glances: dict[str, Glance] = {}  # what recall has read
_collects = gc.get_threshold()


class KeptSnapshot(Snapshot):
    """A snapshot that `close` gives back."""

    file: tuple[int, int]

    def close(self) -> None:
        """Keep it for the next request, unless its file is gone or something was left undone."""
        spare = _snapshots.setdefault(self.path, [])
        if self._db.in_transaction or len(spare) >= SPARE_MAX or self.file != _file(self.path):
            super().close()
        else:
            spare.append(self)


def _file(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _open(path: str, *, busy_ms: int = 100) -> Snapshot:
    spare, now = _snapshots.get(path, []), _file(path)
    while spare:
        try:
            kept = spare.pop()
        except IndexError:  # another request was faster
            break
        if kept.file == now and kept.usable():
            return kept
        Snapshot.close(kept)
    made = KeptSnapshot(path, busy_ms=busy_ms)
    made.file = _file(path)
    return made


def _take(home: str, project: str) -> LogStore:
    try:
        return _stores[home, project].pop()
    except (KeyError, IndexError):
        return LogStore(home, project=project)


def _give(store: LogStore, home: str, project: str) -> None:
    spare = _stores.setdefault((home, project), [])
    if len(spare) < SPARE_MAX:
        spare.append(store)
    else:
        store.close()


def _connect(path: str) -> Any:
    spare, now = _quick.get(path, []), _file(path)
    while spare:
        try:
            file, db = spare.pop()
        except IndexError:  # another request was faster
            break
        if file == now:
            _files[id(db)] = file
            return db
        db.close()
    db = quick.opened(path)
    for statement in (quick.CACHE, *_for_writing[:-1]):
        db.execute(statement)
    _files[id(db)] = now
    return db


def _disconnect(path: str, db: Any) -> None:
    spare, file = _quick.setdefault(path, []), _files.pop(id(db))
    if db.in_transaction or len(spare) >= SPARE_MAX:
        db.close()
    else:
        spare.append((file, db))


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
    state.opener = _open
    recall_light.take, recall_light.give, recall_light.is_unread = _look, _unlook, _is_unread
    writing.take, writing.give = _take, _give


def release() -> None:
    """Close what was kept, and keep nothing from now on."""
    gc.set_threshold(*_collects)
    gc.unfreeze()
    state.opener = Snapshot
    recall_light.take, recall_light.give = recall_light.opened, recall_light.closed
    recall_light.is_unread = recall_light.unread
    quick.connect, quick.disconnect, quick.FOR_WRITING = quick.opened, quick.closed, _for_writing
    writing.take, writing.give = writing.made, writing.unmade
    for store in [store for stores in _stores.values() for store in stores]:
        store.close()
    for snapshot in [snapshot for snapshots in _snapshots.values() for snapshot in snapshots]:
        Snapshot.close(snapshot)
    for _, db in [pair for pairs in _quick.values() for pair in pairs]:
        db.close()
    for glance in _glances.values():
        glance.close()
    _glances.clear()
    _stores.clear()
    _quick.clear()
    _snapshots.clear()
