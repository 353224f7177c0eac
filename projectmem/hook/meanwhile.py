"""What the hook does while the gate's snapshot is being rebuilt from a long log: it answers at once, and says so.

Calls are recorded as always; a small state of its own (`<home>/projections/meanwhile.sqlite`) knows what was recorded
meanwhile, so that nothing is recorded twice. Nothing is checked (calls are refused where the policy says `on_error = "deny"`),
and no position is noted for the audit: nobody claims that there was no candidate. One process in the background brings the
snapshot up (refolding.py); the next call finds it.
"""

from __future__ import annotations

import os

from projectmem_projections.closed import marked
from projectmem_projections.snapshot import Snapshot, discard

from projectmem.hook import background, degraded, pipeline, refolding
from projectmem.hook.state import BUSY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem.hook.payload import Payload
    from projectmem.place import Place

RETRY_S = 60  # after a rebuild that failed


class Meanwhile(Snapshot):
    """A snapshot of what was recorded since the real one was lost: it follows nothing and misses nothing."""

    FOLLOWS = False


def run(place: Place, payload: Payload, now: int, why: str) -> dict[str, Any] | None:
    """The answer to a payload while there is no snapshot to ask. `why` says what is wrong with it."""
    start_rebuild(place.home)
    state = _opened(refolding.meantime_path(place.home))
    try:
        reply = None
        if payload.kind == "pre":
            pipeline.note(state, payload.calls[0], {"t0": now})
            if marked(f"{place.home}/projections/gate.sqlite"):
                reply = degraded.refusal(payload, why)
        else:
            reply = pipeline.after(place, state, payload, now)
    finally:
        state.close()
    if not degraded.first_time(place.home, f"{payload.session} snapshot"):
        return reply
    degraded.event(place, payload.session, payload.adapter.HARNESS, now, "snapshot", "calls are not checked", why)
    message = (
        f"projectmem: the gate is degraded: its snapshot cannot be used ({why[:200]}) and is being rebuilt from the log in the"
        " background. Until then calls are recorded but not checked."
    )
    found: dict[str, Any] | None = payload.adapter.with_message(reply, message)
    return found


def _opened(path: str) -> Meanwhile:
    from projectmem_logs import files
    from projectmem_projections.errors import SnapshotDamaged

    files.make_last(os.path.dirname(path))
    try:
        return Meanwhile(path, busy_ms=BUSY_MS)
    except SnapshotDamaged:
        discard(path)
        return Meanwhile(path, busy_ms=BUSY_MS)


def start_rebuild(home: str) -> bool:
    """Start the process that brings the snapshot up, unless one is at work or has failed within the last minute."""
    return not refolding.failed_lately(home, RETRY_S) and background.start_alone(
        refolding.lock_path(home), "projectmem.hook.refolding", home
    )
