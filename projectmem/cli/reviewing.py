"""`review` without an id: what is held, shown one by one; at a terminal one key decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projectmem import caller, output
from projectmem.cli import common

if TYPE_CHECKING:
    from projectmem.place import Place
    from projectmem.undecided import Waiting

KEYS = {"n": "new", "o": "old", "b": "both"}
PROMPT = "[n]ew one replaces it  [o]ld one stays  [b]oth stand  [s]kip  [q]uit"


def walk(root: str, as_json: bool) -> None:
    """List what waits; ask a person about each."""
    from projectmem import undecided

    place, now = common.open_place(root), common.now()
    held, overdue = undecided.waiting(place), undecided.overdue(place, now)
    if as_json:
        rows = [{"id": w.document.id, "text": w.document.text, "contradicts": w.other.id if w.other else ""} for w in held]
        common.emit({"held": rows, "overdue": [{"id": d.id, "text": d.text, "review_at": d.review_at} for d in overdue]})
        return
    for one in held:
        for line in described(one, now):
            common.say(output.safe(line))
        if caller.origin() == "human":
            key = _key()
            if key == "q":
                return
            if key in KEYS:
                common.say(output.safe(_settled(place, one, KEYS[key])))
    for document in overdue:
        common.say(
            output.safe(f"{document.id[-8:]} {document.type}: {document.text[:100]}; review it with `projectmem review ID`")
        )
    if not held and not overdue:
        common.note("nothing waits for a review")


def _settled(place: Place, one: Waiting, choice: str) -> str:
    """What was done. A log that stays locked ends no review: what was decided is kept."""
    from projectmem_logs.errors import SpooledError

    from projectmem import undecided

    try:
        return undecided.settle(place, one, choice, now=common.now())
    except SpooledError:
        return f"kept: the log is busy, and what was decided about {one.document.id[-8:]} is added as soon as it is free"


def described(one: Waiting, now: int) -> list[str]:
    """A held document, who wrote it, and what it contradicts."""
    from projectmem import render

    document = one.document
    head = f"{document.id[-8:]} {document.type} by {document.origin or 'unknown'}, {render.ago(document.at, now)}"
    lines = [f"{head}: {render.quoted(document.text, 300)}"]
    if one.other is not None:
        lines.append(
            f"    contradicts {one.other.id[-8:]} by {one.other.origin or 'unknown'}: {render.quoted(one.other.text, 300)}"
        )
    else:
        lines.append("    held for what it says: it reads like an instruction")
    return lines


def _key() -> str:
    from typer._click.termui import getchar

    common.note(PROMPT)
    return getchar().lower()
