"""`failures`, `explain`, `summary`, `recall`, `stats`: what the log knows, for people and agents."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from projectmem import output
from projectmem import render as rendering
from projectmem.cli import common
from projectmem.cli.common import EXITS, Json, Root

if TYPE_CHECKING:
    pass

ROOMY = 200  # tokens: the fence and one long line fit


def register(parent: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (failures, explain, summary, stats):
        parent.command(epilog=EXITS)(command)


def failures(
    every: Annotated[bool, typer.Option("--all", help="Also those that expired, were cleared, disputed or superseded.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="At most the newest N; 0 for all.")] = 50,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """List failures that stand, and what the gate says.

    GATE is what it would say now to a session that repeats the action; `silent` comes with the reason.
    """
    from projectmem import clock
    from projectmem.failures import failures as rows_of
    from projectmem.failures import render

    now, notices = common.now(), list[str]()
    rows = rows_of(common.open_place(root), now, every=every, limit=limit, notices=notices)
    common.notices(notices + clock.of_times((row.record.at for row in rows), now))
    if as_json:
        common.emit([row.to_data() for row in rows])
        return
    for line in render(rows, now, common.paint(), common.width()):
        common.say(line)


def explain(
    id: Annotated[str, typer.Argument(help="Id of an event, or enough of one.", show_default=False)],
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Explain one event: evidence, verdict, expiry.

    What failed, on what evidence, what the gate says of it now and why, what has changed since, what worked instead.
    """
    from projectmem import explain as explaining

    place, now = common.open_place(root), common.now()
    if as_json:
        common.emit(explaining.explain_data(place, id, now))
    else:
        text = explaining.explain(place, id, now)
        common.say(output.wrapped(text, common.width()) if sys.stdout.isatty() else text)


def summary(
    about: Annotated[
        str,
        typer.Argument(
            help="A path, an issue's id, or a period: `2d`, `2026-11-30`, `2026-11-01..2026-11-30`.", show_default=False
        ),
    ] = "",
    budget: Annotated[int, typer.Option("--budget", min=50, max=10_000, help="At most so many tokens (UTF-8 bytes / 4).")] = 600,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Print what a session is told when it starts.

    With an argument: what is known about one path, issue or period. A failure is listed only while the gate would object to it.
    Each line ends with the record's id: `projectmem explain ID`.
    """
    from projectmem import summary as summaries
    from projectmem.standing import Judge
    from projectmem.state import EVERYTHING, reading

    place, now, notices = common.open_place(root), common.now(), list[str]()
    nonce = os.urandom(6).hex()
    with reading(place) as state:
        if about:
            from projectmem.briefing import about as brief

            judge = Judge(place, state, now)
            verdict, times = judge.verdict, judge.times
            text = brief(place, about, now=now, nonce=nonce, budget_tokens=budget, verdict=verdict, times=times, notices=notices)
        else:
            with output.Waiting("reading the log"):
                text = summaries.of_place(place, state, now=now, nonce=nonce, budget_tokens=budget, bytes_max=EVERYTHING)
    common.notices(notices)
    if as_json:
        common.emit({"text": text, "tokens": rendering.tokens(text)})
    elif text:
        common.say(output.safe(text, lines=True))
    else:
        what = "nothing to say yet"
        if about:
            gone = "`projectmem failures --all` has what no longer does"
            what = f"nothing is known about `{output.safe(about)}` that still counts ({gone})"
        common.note(what if budget >= ROOMY else f"{what}, or none of it fits into {budget} tokens")


def stats(root: Root = "", as_json: Json = False) -> None:
    """Count calls, failures, and what the gate said.

    Outcomes, failures by class, verdicts by rule, and what became of the calls that were spoken of.
    """
    from projectmem import stats as counting

    place, notices = common.open_place(root), list[str]()
    with output.Waiting("counting"):
        found = counting.stats(place.home, now=common.now(), notices=notices)
    common.notices(notices)
    if as_json:
        common.emit(found)
        return
    for line in counting.render(found, common.paint()):
        common.say(line)
