"""`pin`, `snooze`, `dispute`, `supersede`, `review`, `feedback`: what people (and agents) say about a record."""

from __future__ import annotations

from typing import Annotated

import typer

from projectmem import caller, output, units
from projectmem.cli import common, reviewing
from projectmem.cli.common import EXITS, Json, Root

Id = Annotated[str, typer.Argument(help="Id of the recorded failure, or enough of it.", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", help="Why, for whoever reads the log later.")]


def register(parent: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (pin, snooze, dispute, supersede, review, feedback):
        parent.command(epilog=EXITS)(command)


def _curate(what: str, id: str, root: str, as_json: bool, then: str, *, until: int = 0, reason: str = "", by: str = "") -> None:
    from projectmem.record import curate

    place = common.open_place(root)
    origin, actor = caller.origin(), caller.actor()
    heard: list[str] = []
    with common.kept(as_json):
        events = curate(
            place, what, id, now=common.now(), origin=origin, actor=actor, until=until, reason=reason, by=by, notices=heard
        )
    common.notices(heard)
    if as_json:
        common.emit({"events": events, "home": place.home})
    else:
        common.say(f"{what} {events[0]['data']['record']} in {output.safe(place.home)}: {then}")


def pin(
    id: Id,
    review: Annotated[str, typer.Option("--review", metavar="WHEN", help="When to look at it again.")] = "90d",
    reason: Reason = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Keep a failure in force (people only).

    It does not expire; a later success of the same action still clears it. Needs a person at a terminal.
    """
    common.require_person("a pin")
    at = units.until(review, common.now())
    _curate("pinned", id, root, as_json, f"kept in force, to be reviewed on {output.when(at)}", until=at, reason=reason)


def snooze(
    id: Id,
    duration: Annotated[str, typer.Option("--for", metavar="TIME", help="How long, e.g. 30m, 2h, 5d.")] = "2h",
    reason: Reason = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Silence a failure for a while.

    It speaks again afterwards if it still stands.
    """
    at = common.now() + units.duration(duration)
    _curate("snoozed", id, root, as_json, f"silent until {output.when(at)}", until=at, reason=reason)


def dispute(id: Id, reason: Reason = "", root: Root = "", as_json: Json = False) -> None:
    """Say that a recorded failure is wrong.

    The gate stops objecting because of it. A new failure of the same action counts again.
    """
    from projectmem.record import disputed_already

    known = disputed_already(common.open_place(root), id)
    if known:
        if as_json:
            common.emit({"events": [], "home": common.open_place(root).home, "already": known})
        else:
            common.say(f"{known} was disputed already: nothing was recorded")
        return
    _curate("disputed", id, root, as_json, "the gate no longer objects because of it", reason=reason)


def supersede(
    id: Id,
    by: Annotated[str, typer.Option("--by", metavar="ID", help="The event that replaces it.")],
    reason: Reason = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Replace a failure by a newer event.

    A fix, a decision or a later record: the gate stops objecting because of the old one.
    """
    _curate("superseded", id, root, as_json, "replaced, and no longer objected to", reason=reason, by=by)


def review(
    id: Annotated[str, typer.Argument(help="Id of a record; without one, all that waits.", show_default=False)] = "",
    next: Annotated[str, typer.Option("--next", metavar="WHEN", help="When to look at it again.")] = "90d",
    reason: Reason = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """List what waits, or say that a record holds.

    Without an id: what contradicts something or reads like an instruction, held until somebody decides (one key each, at a
    terminal), and facts past their review date. With one: sets the next date to look at it; needs a person at a terminal.
    """
    if not id:
        reviewing.walk(root, as_json)
        return
    common.require_person("a review")
    at = units.until(next, common.now())
    _curate("reviewed", id, root, as_json, f"looked at; due again on {output.when(at)}", until=at, reason=reason)


def feedback(
    id: Annotated[str, typer.Argument(help="Id of the event or warning meant, or enough of it.", show_default=False)],
    useful: Annotated[bool | None, typer.Option("--useful/--useless", help="Whether it helped: one of the two.")] = None,
    note: Annotated[str, typer.Option("--note", help="What about it.")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Say whether a warning or a memory helped."""
    from projectmem.errors import BadInputError
    from projectmem.lookup import find_one
    from projectmem.record import record

    if useful is None:
        raise BadInputError("say whether it helped: --useful or --useless")
    place = common.open_place(root)
    target = find_one(place, id)["id"]
    data = {"target": target, "useful": useful, "note": note}
    with common.kept(as_json):
        event = record(
            place, "feedback.given", data, now=common.now(), origin=caller.origin(), actor=caller.actor(), causes=[str(target)]
        )
    if as_json:
        common.emit(event)
    else:
        common.say(f"noted in {output.safe(place.home)}: {target} was {'useful' if useful else 'not useful'}")
