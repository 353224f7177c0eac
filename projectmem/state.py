"""The gate's state for commands that read: the snapshot caught up with the log, or the log folded in memory without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from projectmem.hook.state import accepted, open_state, policy_of

if TYPE_CHECKING:
    from projectmem_projections.snapshot import Snapshot

    from projectmem.place import Place

EVERYTHING = 1 << 40

__all__ = ["accepted", "policy_of", "reading"]


@contextmanager
def reading(place: Place) -> Iterator[Any]:
    """A state to look things up in. Where the snapshot cannot be used (a read-only folder, another process holding it),
    the log itself is folded: slower, with the same answers. Raises LogError where that cannot be read either."""
    from projectmem_projections.errors import ProjectionError

    try:
        snapshot = open_state(place)
    except (ProjectionError, OSError):
        yield folded(place.home)
        return
    with snapshot:
        _catch_up(snapshot, place.home)
        yield snapshot


def _catch_up(snapshot: Snapshot, home: str) -> None:
    """All the way, where the hook would stop after a second's worth."""
    from projectmem_projections.tail import positions

    from projectmem import output

    if snapshot.stale(positions(home)):
        with output.Waiting("catching up with the log"):
            snapshot.catch_up(home, EVERYTHING)


def folded(home: str) -> Any:
    """The log in `home`, folded from the start in memory."""
    from projectmem_logs.reader import read_events
    from projectmem_projections.memory import MemoryState

    state: Any = MemoryState()
    state.path = f"{home}/projections/memory"  # whose streams are this machine's is told by the home
    state.apply(read_events(home), gaps=True)
    return state
