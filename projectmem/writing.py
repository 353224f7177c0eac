"""Append to the log and fold the same events into the gate's snapshot while the lock is still held.

Every writer of the application (the hook, `record`, imports, the MCP server) goes through `append`, so that the very
next check sees what was just written. On the hook's path: standard library and our own hook modules only.
"""

from __future__ import annotations

import os
import sys

from projectmem_logs import files
from projectmem_logs.errors import SpooledError
from projectmem_logs.store import LogStore

CATCH_UP_BYTES = 256 << 10
COMMAND_WAIT_MS = 10_000  # commands and tools wait longer for the log's lock than a hook, which holds up a call: they tell an id


def made(place: Place) -> LogStore:
    """A store for one append."""
    return LogStore(place.home, project=place.project)


def unmade(store: LogStore, place: Place) -> None:
    """It is not kept."""
    store.close()


take, give = made, unmade  # a resident process keeps its stores: serve/kept.py

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from projectmem_logs.bulk import Encoded
    from projectmem_projections.fold_rows import Folded
    from projectmem_projections.snapshot import Snapshot

    from projectmem.place import Place

    Draft = dict[str, Any]
    Event = dict[str, Any]


def snapshot_path(home: str) -> str:
    """Where the gate's snapshot of the log in `home` lives."""
    return os.path.join(home, "projections", "gate.sqlite")


def append(
    place: Place,
    drafts: Sequence[Draft],
    now: int,
    durability: str = "durable",
    *,
    snapshot: Snapshot | None = None,
    problems: list[str] | None = None,
    wait_ms: int = 0,
    encoded: Sequence[Encoded] = (),
    folded: Sequence[Folded] = (),
) -> list[Event]:
    """Write `drafts` as one batch and update the snapshot under the same lock; returns the sealed events.

    now         microseconds since the epoch, UTC
    durability  `durable` (fdatasync before returning) or `batch` (imports)
    snapshot    one that is already open; otherwise it is opened, updated and closed here
    problems    collects what a person should hear: what the log healed, and a snapshot that could not be updated. The log
                is the truth: such a snapshot never undoes or fails an append; the next reader brings it up to date.
    wait_ms     how long to wait for the lock, 0 for as long as a hook does
    encoded, folded   of an import, instead of drafts: their bytes (bulk.py) and what they fold to (fold_rows.py)
    Drafts must be redacted already. Raises LogError (SpooledError when the lock stayed busy: the drafts were spooled, and a
    process was started that brings them in as soon as it is free).
    """

    def after(events: list[Event]) -> None:
        try:
            known = dict(zip([event["id"] for event in events[len(events) - len(folded) :]], folded, strict=True))
            _fold(place.home, events, snapshot, store.end(), known)
        except Exception as exc:  # derived data: the append stands whatever happens here
            if problems is not None:
                problems.append(f"the gate's snapshot was not updated ({type(exc).__name__}: {exc})")

    store = take(place)
    usual = store.wait_ms
    try:
        store.wait_ms = wait_ms or usual
        events = store.append(drafts, now=now, durability=durability, after=after, encoded=encoded)
        if problems is not None:
            problems.extend(store.notices)
        if (background := sys.modules.get("projectmem.hook.background")) is not None:
            background.reap()  # a process that goes on started something earlier, which may have ended
    except SpooledError:
        from projectmem.hook import spooled

        spooled.soon(place.home)
        raise
    finally:
        store.wait_ms = usual
        give(store, place)
    return events


def bring_in(place: Place, now: int, wait_ms: int) -> list[str]:
    """Write what is spooled to the log and fold it in; nothing where the lock is not free within `wait_ms`. Returns what a person
    should hear. Raises LogError."""
    with LogStore(place.home, project=place.project, wait_ms=wait_ms) as store:
        store.append([], now=now, after=lambda events: _fold(place.home, events, None, store.end(), {}))
        return store.notices


def _fold(
    home: str, events: list[Event], snapshot: Snapshot | None, ends: dict[str, tuple[str, int]], folded: dict[str, Folded]
) -> None:
    if snapshot is not None:
        _apply(home, events, snapshot, ends, folded)
        return
    from projectmem_projections.snapshot import Snapshot as Opened

    path = snapshot_path(home)
    files.make_last(os.path.dirname(path))
    own = Opened(path)
    try:
        _apply(home, events, own, ends, folded)
    finally:
        own.close()


def _apply(
    home: str, events: list[Event], snapshot: Snapshot, ends: dict[str, tuple[str, int]], folded: dict[str, Folded]
) -> None:
    """Fold the batch in. Only our own stream's end is vouched for: nobody else can move it while the lock is held."""
    complete = snapshot.apply(events, positions=ends, folded=folded)
    if not complete and snapshot.lag(home) <= CATCH_UP_BYTES:  # everybody else waits for the lock: a long way is for later
        snapshot.catch_up(home)
