"""The process that brings the gate's snapshot up to a long log while the hook goes on (started by meanwhile.py).

One at a time, with low priority, without a word: what it did is a line in hook.log. A snapshot that is merely behind is
caught up in small transactions; one that is missing or damaged is built aside and put in place.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_projections.snapshot import Snapshot

ALL = 1 << 40
BUSY_MS = 5_000
NICE = 10
GRACE_S = 1.0  # a hook that saw the old state has recorded what it had to by then


def lock_path(home: str) -> str:
    """Held by the one process that rebuilds."""
    return f"{home}/projections/refold.lock"


def meantime_path(home: str) -> str:
    """Where the state of the meantime is."""
    return f"{home}/projections/meanwhile.sqlite"


def _mark_path(home: str) -> str:
    return f"{home}/projections/refold.failed"


def failed_lately(home: str, seconds: int) -> bool:
    """Whether the last rebuild failed, not longer ago than that."""
    import time

    try:
        age = time.time() - os.stat(_mark_path(home)).st_mtime
    except OSError:
        return False
    return 0 <= age < seconds


def main(home: str) -> None:
    """Bring the snapshot of the log in `home` up. Raises nothing: nobody would hear it."""
    from projectmem_logs import files

    from projectmem.hook import background, degraded

    def work() -> None:
        refold(home)
        files.remove(_mark_path(home))
        degraded.note(home, "snapshot", "brought up to the log in the background")

    try:
        background.alone(lock_path(home), NICE, work)
    except Exception as exc:
        degraded.note(home, "snapshot", "could not be brought up to the log", f"{type(exc).__name__}: {exc}")
        _mark(home)


def _mark(home: str) -> None:
    try:
        os.close(os.open(_mark_path(home), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        os.utime(_mark_path(home))
    except OSError:
        pass


def refold(home: str) -> None:
    """Catch the snapshot up, or build it anew, and end the meantime. Raises ProjectionError, LogError and OSError."""
    import time

    from projectmem_projections.errors import SnapshotDamaged
    from projectmem_projections.refold import rebuild_snapshot
    from projectmem_projections.snapshot import Snapshot

    path = f"{home}/projections/gate.sqlite"
    try:
        with Snapshot(path, busy_ms=BUSY_MS) as state:
            if not state.cursor():
                raise SnapshotDamaged("it is empty")
            state.check()
            state.catch_up(home, ALL)
    except SnapshotDamaged:
        rebuild_snapshot(home)
    with Snapshot(path, busy_ms=BUSY_MS) as state:
        state.catch_up(home, ALL)
        if os.path.exists(meantime_path(home)):
            time.sleep(GRACE_S)
            state.catch_up(home, ALL)
            _adopt(state, meantime_path(home))


def _adopt(state: Snapshot, path: str) -> None:
    """Take over the notes of calls that began in the meantime."""
    from projectmem_projections.errors import ProjectionError
    from projectmem_projections.snapshot import Snapshot, discard

    try:
        with Snapshot(path, busy_ms=BUSY_MS) as other, other.exclusive() as notes:
            state.adopt(notes)
    except ProjectionError:
        pass  # notes of a minute: durations and positions of calls that are on record anyway
    discard(path)
