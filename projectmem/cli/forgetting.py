"""`forget`: erase events everywhere. Shows what it would do unless `--yes` is given; only a person may do it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from projectmem import caller, output, units
from projectmem.cli import common
from projectmem.cli.common import EXITS_CHECKED, Json, Root
from projectmem.errors import NotFoundError

if TYPE_CHECKING:
    from projectmem_logs.erasing import Found

    from projectmem.forget import Outcome
    from projectmem.place import Place

SHOWN = 10


def register(parent: typer.Typer) -> None:
    """Add the command to the application."""
    parent.command(epilog=EXITS_CHECKED)(forget)


def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Events, or enough of each id.")] = None,
    record: Annotated[str, typer.Option("--record", metavar="ID", help="A failure: every event about that action.")] = "",
    session: Annotated[str, typer.Option("--session", metavar="ID", help="Everything of one session.")] = "",
    actor: Annotated[str, typer.Option("--actor", metavar="NAME", help="Everything by an agent, model, harness or origin.")] = "",
    path: Annotated[
        str,
        typer.Option(
            "--path", metavar="PATH", help="Everything that names this file or folder by its path from the top or in full."
        ),
    ] = "",
    text: Annotated[str, typer.Option("--text", help="Everything that holds this text; `-` reads it from standard input.")] = "",
    since: Annotated[str, typer.Option("--since", metavar="WHEN", help="Only what happened from then on.")] = "",
    until: Annotated[str, typer.Option("--until", metavar="WHEN", help="Only what happened before.")] = "",
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the log, without the text.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without this, only show what would be erased.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Finish an erasure that was cut short.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Erase events everywhere (people only).

    Their payload goes from the log, from everything derived from it, and is not imported again; what
    stays says that something was erased, when, by whom and why. Conditions narrow each other down.
    """
    from projectmem import forget as erasure

    place = common.open_place(root)
    if resume:
        common.require_person("forgetting")
        with output.Waiting("finishing the erasure"):
            done = erasure.resume(place, now=common.now())
        _report(done, as_json)
        return
    now = common.now()
    wanted = erasure.selector(
        place,
        ids=tuple(ids or ()),
        record=record,
        session=session,
        actor=actor,
        path=path,
        text=sys.stdin.read().rstrip("\n") if text == "-" else text,
        since=units.moment(since, now, future=False) if since else 0,
        until=units.moment(until, now, future=False) if until else 0,
    )
    if yes:
        common.require_person("forgetting")
        with output.Waiting("forgetting"):
            done = erasure.forget(place, wanted, reason=reason, now=now, origin=caller.origin(), actor=caller.actor())
        if not done.requests:
            raise NotFoundError("nothing in the log answers to that, so nothing was erased")
        _report(done, as_json)
        return
    with output.Waiting("looking for what is meant"):
        found = erasure.preview(place, wanted)
    _preview(place, found, as_json)


def _preview(place: Place, found: Found, as_json: bool) -> None:
    from projectmem_logs.erasing import chosen

    from projectmem import logview

    if as_json:
        common.emit({**_counted(found), "ids": sorted(found.ids), "applied": False})
        return
    if found.nothing:
        common.say("nothing in the log answers to that")
        return
    if found.damaged:
        common.say(f"{found.damaged} damaged lines hold it: they are blanked, and `projectmem verify` goes on naming them")
    for name in found.others:
        common.say(f"{output.safe(name)} holds it: {'the file goes' if '/' in name else 'those lines go'}")
    if not found.ids:
        common.say("no event answers to that. Nothing was changed. To erase it there for good, say it again with --yes")
        return
    paint = common.paint()
    direct = units.count(len(found.direct), "event answers to that", "events answer to that")
    derived = units.count(len(found.derived), "event is derived from them", "events are derived from them")
    common.say(f"{direct}, and {derived}:")
    for kind, count in sorted(found.by_kind.items()):
        common.say(f"  {count:>7} {output.safe(kind)}")
    files = units.count(len(found.segments), "file")
    common.say(f"from {output.when(found.first_at)} to {output.when(found.last_at)}, in {files} of the log")
    for i, event in enumerate(chosen(place.home, found.ids)):
        if i == SHOWN:
            common.say(f"  ... and {len(found.ids) - SHOWN} more")
            break
        common.say("  " + logview.line({"ts": event.get("at", 0), **event}, paint))
    rules = sum(found.by_kind.get(kind, 0) for kind in ("policy.changed", "label.set"))
    if rules:
        common.say(paint("red", f"{rules} of them are rules that may be in force: they go with it"))
    common.say("nothing was changed. To erase this for good, say it again with --yes")


def _counted(found: Found) -> dict[str, Any]:
    return {
        "direct": len(found.direct),
        "derived": len(found.derived),
        "by_kind": dict(sorted(found.by_kind.items())),
        "first_at": found.first_at,
        "last_at": found.last_at,
        "files": sorted(found.segments),
        "damaged": found.damaged,
        "others": found.others,
    }


def _report(done: Outcome | None, as_json: bool) -> None:
    if done is None:
        if as_json:
            common.emit({"applied": False, "pending": False})
        else:
            common.say("no erasure was cut short")
        return
    reached = done.reached
    rows: list[tuple[str, int | str]] = [
        ("events erased now", reached.events),
        ("segments rewritten", reached.segments),
        ("damaged lines blanked", reached.damaged),
        ("waiting events dropped", reached.spooled),
        ("quarantined files removed", reached.quarantined),
        ("leftovers of crashes removed", reached.leftovers),
        *reached.places.items(),
    ]
    if as_json:
        reach = {name.replace(",", "").replace(" ", "_"): count for name, count in rows}
        more = {"problems": done.problems, "remains": done.remains, "ok": done.ok, "applied": True}
        common.emit({"events": done.events, "requests": done.requests, "reached": reach, **more})
    else:
        paint = common.paint()
        common.say(f"erased {units.count(done.events, 'event')}, recorded as {', '.join(done.requests)}")
        for name, count in rows:
            if count:
                common.say(f"  {output.safe(name)}: {output.safe(count)}")
        state = paint("red", "DAMAGED: run `projectmem verify`") if done.problems else paint("green", "whole")
        common.say(f"the chain after it: {state}")
        for name in done.remains:
            common.say(paint("red", f"still in {output.safe(name)}, which an erasure does not rewrite"))
        common.say("not reached: exports, transcripts that the harness keeps, backups, checkouts, your shell's history")
    if not done.ok:
        common.leave(1)
