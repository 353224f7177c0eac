"""How imports write: nobody waits for them, so they wait long for the log's lock, and what is spooled even then is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from projectmem_logs.errors import SpooledError
from projectmem_logs.spool import drafts as spooled

from projectmem import writing

if TYPE_CHECKING:
    from projectmem.place import Place

WAIT_MS = 60_000

__all__ = ["append", "bring_in", "spooled"]


def append(place: Place, drafts: list[dict[str, Any]], now: int, **how: Any) -> None:
    """Write a batch of an import; `how`: see writing.append. Raises LogError where it could not be kept."""
    try:
        writing.append(place, drafts, now, "batch", wait_ms=WAIT_MS, **how)
    except SpooledError:
        pass  # kept: it comes in once the lock is free, and the next import knows it (`spooled`)


def bring_in(place: Place, now: int) -> None:
    """What waits in the spool comes in before anything is compared with what is on record. Raises LogError."""
    if spooled(place.home):
        writing.bring_in(place, now, WAIT_MS)
