"""What waits for a person: documents that are held for review, and facts past their review date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from projectmem_projections.documents import Facts
from projectmem_projections.following import Follower

from projectmem import render
from projectmem.errors import NotFoundError
from projectmem.record import write_all

if TYPE_CHECKING:
    from projectmem_projections.documents import Document

    from projectmem.place import Place


class Waiting:
    """One held document, and what it contradicts (None where it is held for itself, or that is no longer there)."""

    __slots__ = ("document", "other")

    def __init__(self, document: Document, other: Document | None) -> None:
        self.document, self.other = document, other


def waiting(place: Place) -> list[Waiting]:
    """What is held for review, oldest first."""
    facts = Facts()
    facts.apply(Follower(place.home))
    return [Waiting(document, facts.written.get(other)) for document, other in facts.waiting()]


def overdue(place: Place, now: int) -> list[Document]:
    """Facts past their review date, oldest first: they are shown as uncertain until somebody looks at them."""
    facts = Facts()
    facts.apply(Follower(place.home))
    return [d for d in facts.documents() if 0 < d.review_at <= now]


def settle(place: Place, one: Waiting, choice: str, *, now: int) -> str:
    """A person's decision about a held document, written in one step; returns what was done. `new` replaces the other, `old`
    stays, `both` stand.

    A generation of recall that was built while it was held does not have it: the next reader puts it aside (`glance.released`).

    Raises NotFoundError for another choice, LogError when the log cannot take it (SpooledError: it is kept, as a whole).
    """
    id, empty = one.document.id, {"key": "", "until": 0, "reason": "review of a contradiction", "by_event": ""}
    reviewed: tuple[str, dict[str, Any], list[str]] = ("record.reviewed", {**empty, "record": id}, [])
    if choice == "new" and one.other is not None:
        replaced = ("record.superseded", {**empty, "record": one.other.id, "by_event": id}, [id])
        events, done = [replaced, reviewed], f"{render.short(id)} replaces {render.short(one.other.id)}"
    elif choice == "old":
        events, done = [("record.disputed", {**empty, "record": id}, [])], f"{render.short(id)} is dropped"
    elif choice in ("new", "both"):
        events, done = [reviewed], f"{render.short(id)} stands" + (" beside the other" if one.other else "")
    else:
        raise NotFoundError(f"`{choice}` is none of new, old, both")
    write_all(place, events, now=now, origin="human")
    return done
