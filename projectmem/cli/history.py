"""`log`, `replay`, `rebuild`: the event log itself, and what can be recomputed from it."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from projectmem import output, render, units
from projectmem.cli import common
from projectmem.cli.common import EXITS, EXITS_CHECKED, Json, Root

FOLLOW_SECONDS = 0.5


def register(parent: typer.Typer) -> None:
    """Add the commands to the application."""
    parent.command(epilog=EXITS)(log)
    parent.command(epilog=EXITS_CHECKED)(replay)
    parent.command(epilog=EXITS_CHECKED)(rebuild)


def log(
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this kind (`action.finished`) or family (`action`); repeatable.", show_default=False),
    ] = None,
    since: Annotated[str, typer.Option("--since", metavar="WHEN", help="Only from then on: `2h`, `3d`, or a date.")] = "",
    until: Annotated[str, typer.Option("--until", metavar="WHEN", help="Only from before then.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="At most the newest N; 0 for all.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing what is appended, until interrupted.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Show the newest events, oldest first.

    With --follow summaries and recall are built ahead meanwhile, as `watch` does.

    With --json one array (with --follow one event a line).
    """
    from projectmem import clock, logview
    from projectmem.errors import BadInputError
    from projectmem.hook import health

    if follow and until:
        raise BadInputError("what is to come lies after any --until: give it or --follow, not both")
    place = common.open_place(root)
    start, end = (units.moment(when, common.now(), future=False) if when else 0 for when in (since, until))
    heads = _heads(place.home) if follow else {}
    damage: list[object] = []
    events = logview.select(place, kinds=kind or (), since=start, until=end, limit=limit, problems=damage)
    notices = [f"the log is damaged: {problem}" for problem in damage]
    if kind and not damage:  # a search for a kind does not look at every line: what the last look at all of them found is said
        _, count, first = health.known(place.home)
        notices += [f"the log is damaged, as was seen last ({render.count(count, 'place')}): {first}"] if count else []
    common.notices(notices + clock.of_events(events, common.now()))
    paint, width = common.paint(), common.width() if sys.stdout.isatty() else 0
    if as_json and not follow:
        common.emit(events)
        return
    for event in events:
        common.say(output.to_json(event, indent=None) if as_json else logview.line(event, paint, width))
    if not events and not follow:
        common.note("nothing in the log answers to that")
    if follow:
        from projectmem.watch import warming

        with warming(place.home):
            _follow(place.home, heads, tuple(kind or ()), as_json)


def _heads(home: str) -> dict[str, int]:
    from projectmem_logs.store import heads

    return {stream: seq for stream, (seq, _) in heads(home).items()}


def _follow(home: str, heads: dict[str, int], kinds: tuple[str, ...], as_json: bool) -> None:
    from projectmem_logs.reader import read_events

    from projectmem import logview

    paint, position, width = common.paint(), dict(heads), common.width() if sys.stdout.isatty() else 0
    sys.stdout.flush()  # what was shown before the first wait, where it goes into a pipe
    while True:
        if _heads(home) != position:
            for event in read_events(home, position):
                position[event["stream"]] = event["seq"]
                if logview.matches(event["kind"], kinds):
                    common.say(output.to_json(event, indent=None) if as_json else logview.line(event, paint, width))
            sys.stdout.flush()
        time.sleep(FOLLOW_SECONDS)


def replay(
    until: Annotated[str, typer.Option("--until", metavar="WHEN", help="Stop there: `2h` (ago), or a date or time (UTC).")] = "",
    verify: Annotated[bool, typer.Option("--verify", help="Recompute every decision and compare.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Play the log again; recompute every decision.

    With --verify every decision of the gate is recomputed from what was recorded, byte for byte: it
    is the same, different (the only failure: exit 1), made by another engine, or its input was erased.
    """
    from projectmem.replay import render as rows
    from projectmem.replay import replay_log

    place = common.open_place(root)
    stop = units.moment(until, common.now(), future=False) if until else None
    report = replay_log(
        place.home, root=place.root, until=stop, verify=verify, watch=lambda events: output.progress(events, "replaying")
    )
    if as_json:
        common.emit(report.to_data())
    else:
        for row in rows(report, common.paint()):
            common.say(row)
    if not report.ok:
        common.leave(1)


def rebuild(root: Root = "", as_json: Json = False) -> None:
    """Build all that is derived from the log anew."""
    from projectmem_projections.rebuild import rebuild as build

    from projectmem.hook import health

    place, now, damage = common.open_place(root), common.now(), list[str]()
    with output.Waiting("rebuilding from the log"):
        counts = build(place.home, damage=damage)
        if damage:
            health.look(place.home, now)  # an unfinished write at an end is no damage
        else:
            health.note(place.home, [], now)
    _, count, first = health.known(place.home)
    common.notices([f"the log is damaged in {render.count(count, 'place')}, what is whole was taken: {first}"] if count else [])
    if as_json:
        common.emit({"home": place.home, "counts": counts})
        return
    found = dict(counts)
    common.say(f"rebuilt from the log in {output.safe(place.home)}")
    size = f"{found['generation_bytes'] / 1e6:.1f} MB"
    said = (
        render.count(found[name], noun)
        for name, noun in (("events", "event"), ("actions", "call"), ("open_failures", "open failure"))
    )
    common.say(f"  {', '.join(said)}; {size}")
