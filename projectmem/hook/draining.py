"""The process that brings what waits in the spool into the log once its lock is free, and folds it in (started by spooled.py).

The next append would do it too; but after a batch that every event was told of already there may be none before the next call
is checked, and the gate would not know what has just failed.
"""

from __future__ import annotations

from projectmem.hook import spooled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem.place import Place

WAIT_MS, TRIES = 2_000, 15


def main(home: str) -> None:
    """Bring in what waits. Raises nothing: nobody would hear it."""
    from projectmem.hook import background, degraded
    from projectmem.place import Place

    try:
        while spooled.waits(home) and background.alone(spooled.lock_path(home), 0, lambda: drain(Place("", home))):
            pass  # what was spooled while the lock was let go had found it taken
    except Exception as exc:
        degraded.note(home, "log", "what waits in the spool could not be brought in", f"{type(exc).__name__}: {exc}")


def drain(place: Place) -> None:
    """Write what waits to the log, trying for half a minute. What the log had to put right is a line in hook.log. Raises
    LogError where it stays locked, or refuses."""
    import time

    from projectmem_logs.errors import LogError

    from projectmem.hook import degraded
    from projectmem.writing import bring_in

    for _ in range(TRIES):
        for notice in bring_in(place, time.time_ns() // 1000, WAIT_MS):
            degraded.note(place.home, "log", notice)
        if not spooled.waits(place.home):
            return
    raise LogError(f"it stayed locked for {WAIT_MS * TRIES // 1000} s; the next append does it")
