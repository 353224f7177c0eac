"""Which call an event after a call is about where the harness gives calls no id: the newest note of one with the same tool and
input that has no outcome yet. Parallel calls with the same input are one action, so it does not matter which of them is which.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_projections.snapshot import Snapshot

    from projectmem.hook.payload import Call


def found(state: Snapshot, session: str, calls: list[Call], now: int) -> list[Call]:
    """The calls with ids; those that another hook is being told of at this very moment are left out."""
    kept = []
    for call in calls:
        name, stamp = call.pop("match", ""), call.pop("stamp", "")
        if name:
            if not state.claim(session, [f"{name}{stamp}#told"], now):
                continue  # the hook is registered twice
            call["call"] = _open_note(state, session, name) or f"{name}{stamp}"
        kept.append(call)
    return kept


def _open_note(state: Snapshot, session: str, name: str) -> str:
    for id, note in state.pending_like(session, name):
        if not note.get("refused") and not state.seen(session, id):
            return id
    return ""
