"""The process that brings what waits in the spool into the log once its lock is free, and folds it in (started by writing.py).

The next append would do it too; but after a batch that every event was told of already there may be none before the next call
is checked, and the gate would not know what has just failed.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem.place import Place

WAIT_MS, TRIES = 2_000, 15


def lock_path(home: str) -> str:
    """Held by the one process that waits for the log's lock."""
    return f"{home}/projections/drain.lock"


def soon(home: str) -> None:
    """Start that process, unless one is at work. Raises nothing: what waits is safe, and the next append brings it in."""
    from projectmem.hook import background

    try:
        background.start_alone(lock_path(home), "projectmem.hook.draining", home)
    except OSError:
        pass


def main(home: str) -> None:
    """Bring in what waits. Raises nothing: nobody would hear it."""
    from projectmem.hook import background, degraded
    from projectmem.place import Place

    try:
        while waits(home) and background.alone(lock_path(home), 0, lambda: drain(Place("", home))):
            pass  # what was spooled while the lock was let go had found it taken
    except Exception as exc:
        degraded.note(home, "log", "what waits in the spool could not be brought in", f"{type(exc).__name__}: {exc}")


def waits(home: str) -> bool:
    """Whether anything of this machine is spooled that this user may read."""
    from projectmem_logs.home import machine
    from projectmem_logs.spool import own

    return any(os.access(path, os.R_OK) for path in own(home, machine()))


def waiting_calls(home: str) -> set[tuple[str, str]]:
    """(session, call) of the outcomes that are spooled: on record all the same, though no snapshot knows them yet."""
    from projectmem_logs.spool import drafts

    return {(d["actor"]["session"], d["data"]["call"]) for d in drafts(home) if d["kind"] == "action.finished"}


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
        if not waits(place.home):
            return
    raise LogError(f"it stayed locked for {WAIT_MS * TRIES // 1000} s; the next append does it")
