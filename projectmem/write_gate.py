"""The gate before memory: a note or decision that contradicts what stands, repeats it, or reads like an instruction.

What contradicts must supersede, or is held until a person has looked at it (`projectmem review`). A repeat is folded into what
it repeats. An instruction is flagged, held where an agent wrote it, and only ever shown in quotes. What was decided stands in the
event (`held_for`, `same_as`, `flags`), so that every fold of the log agrees.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from projectmem_projections.contradiction import contradict, same
from projectmem_projections.documents import WRITTEN, Facts
from projectmem_projections.following import Follower
from projectmem_projections.glance import Glance, ask
from projectmem_projections.scope import Scope
from projectmem_projections.suspicion import instructs

from projectmem import render
from projectmem.errors import NotFoundError

if TYPE_CHECKING:
    from projectmem_projections.documents import Document

    from projectmem.place import Place

NEAR = 8  # of what stands, the nearest are compared
ITSELF = "itself"  # held for what it says, not for what it contradicts


def checked(
    place: Place, kind: str, data: Mapping[str, Any], *, now: int, origin: str, notices: list[str] | None = None
) -> dict[str, Any]:
    """The payload with what the gate found; `notices` hears it. Nothing is refused: what is held is kept and can be released."""
    out, said = dict(data), notices if notices is not None else []
    text = _text(kind, data)
    if instructs(text):
        out["flags"] = ["instruction"]
        if origin != "human":
            out["held_for"] = ITSELF
            said.append("this reads like an instruction: it is held until a person has seen it (`projectmem review`)")
    for document in _nearest(place, text, now, said):
        if document.id == data.get("supersedes") or document.type not in ("note", "decision"):
            continue
        if contradict(document.text, text):
            if origin == "human" and document.origin != "human":
                out["supersedes"] = out.get("supersedes") or document.id
                said.append(
                    f"this replaces {render.short(document.id)}, which it contradicts: {render.inline(document.text, 80)}"
                )
            elif not data.get("supersedes"):
                out["held_for"] = document.id
                said.append(
                    f"this contradicts {render.short(document.id)} ({render.inline(document.text, 80)}): it is held until a "
                    "person has decided (`projectmem review`), or say that it replaces it (`--supersedes`)"
                )
            break
        if same(document.text, text):
            out["same_as"] = document.id
            said.append(f"this was known already and is counted with {render.short(document.id)}")
            break
    return out


def _text(kind: str, data: Mapping[str, Any]) -> str:
    _, fields = WRITTEN[kind]
    return ". ".join(str(data.get(f)) for f in fields if f != "tags" and data.get(f))


def _nearest(place: Place, text: str, now: int, said: list[str]) -> list[Document]:
    """What stands and is nearest. A long log without a generation is not read for that (writing stays quick); `said` hears it."""

    def question(glance: Glance) -> list[Document]:
        if glance.unread:
            said.append("this was not compared with what is on record, which no recall has read yet (`projectmem recall`)")
        return [c.document for c in glance.candidates(text, Scope(place.project), now)[:NEAR]]

    return ask(place.home, question)


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
    from projectmem.record import write_all

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
