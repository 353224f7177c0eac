"""The gate before memory: a note or decision that contradicts what stands, repeats it, or reads like an instruction.

What contradicts must supersede, or is held until a person has looked at it (`projectmem review`). A repeat is folded into what
it repeats. An instruction is flagged, held where an agent wrote it, and only ever shown in quotes. What was decided stands in the
event (`held_for`, `same_as`, `flags`), so that every fold of the log agrees.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from projectmem_projections.contradiction import contradict, same
from projectmem_projections.documents import WRITTEN
from projectmem_projections.glance import Glance, ask
from projectmem_projections.scope import Scope
from projectmem_projections.suspicion import instructs

from projectmem import render

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
