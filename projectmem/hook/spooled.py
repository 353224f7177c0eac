"""What waits in the spool for the log's lock, as the hook sees it: who is told of it, and that somebody brings it in."""

from __future__ import annotations

import os


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


def waits(home: str) -> bool:
    """Whether anything of this machine is spooled that this user may read."""
    from projectmem_logs.home import machine
    from projectmem_logs.spool import own

    return any(os.access(path, os.R_OK) for path in own(home, machine()))


def waiting_calls(home: str) -> set[tuple[str, str]]:
    """(session, call) of the outcomes that are spooled: on record all the same, though no snapshot knows them yet."""
    from projectmem_logs.spool import drafts

    return {(d["actor"]["session"], d["data"]["call"]) for d in drafts(home) if d["kind"] == "action.finished"}
