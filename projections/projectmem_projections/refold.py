"""The gate snapshot, folded again from the whole log and put in the old one's place [H: run in a process of its own]."""

from __future__ import annotations

import os

from projectmem_logs import files
from projectmem_logs.reader import read_events

from . import tail
from .errors import ProjectionError, SnapshotBusy, SnapshotDamaged
from .snapshot import CHUNK_EVENTS, Snapshot, discard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Event = dict[str, Any]


def rebuild_snapshot(home: str) -> tuple[dict[str, int], int]:
    """Fold the whole log into a new gate snapshot and put it in the old one's place; (cursor, events folded)."""
    folder = os.path.join(home, "projections")
    files.make_last(folder)
    path = os.path.join(folder, "gate.sqlite")
    building = f"{path}.{os.getpid()}.building"
    discard(building)
    try:
        with Snapshot(building) as new:
            read = _fold_all(new, home)
            erased = new.erased() if new.dirty else []
        if erased:  # what the erased events had hidden is only known to the log: once more, without them from the start
            discard(building)
            with Snapshot(building) as new:
                new.erase_ahead(erased)
                read = _fold_all(new, home)
        with Snapshot(building) as new:
            cursor = new.cursor()
        _take_place(building, path)
    finally:
        discard(building)
    return cursor, read


def _fold_all(new: Snapshot, home: str) -> int:
    """Fold the whole log into an empty snapshot; returns the number of events."""
    positions = tail.positions(home)
    read = 0
    events: list[Event] = []
    for event in read_events(home):
        events.append(event)
        read += 1
        if len(events) >= CHUNK_EVENTS:
            new.apply(events, gaps=True)
            events = []
    new.apply(events, gaps=True)
    new.apply((), positions=positions)  # taken before reading: what was appended since is found by the next catch-up
    return read


def _take_place(building: str, path: str) -> None:
    """Copy the new snapshot over the old one in one transaction: who has the old one open goes on with the new."""
    with Snapshot(building) as new:
        try:
            with Snapshot(path, busy_ms=2000) as old:
                with old.exclusive() as notes:  # once whoever writes is done
                    pass
                new.adopt(notes)
                new.copy_over(old)
        except SnapshotDamaged:
            discard(path)
            with Snapshot(path) as fresh:
                new.copy_over(fresh)
        except SnapshotBusy as error:
            raise ProjectionError(f"{error} (the new snapshot was not put in its place)") from error
