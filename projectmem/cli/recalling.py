"""`recall`: ask the log a question, and see why it answered as it did."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from projectmem import caller, output
from projectmem.cli import common
from projectmem.cli.common import EXITS, Json, Root

if TYPE_CHECKING:
    from projectmem.place import Place


def register(parent: typer.Typer) -> None:
    """Add the command to the application."""
    parent.command(epilog=EXITS)(recall)


def recall(
    query: Annotated[str, typer.Argument(help="An error, a command, a file or a question.", show_default=False)],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=20, help="At most so many items.")] = 5,
    budget: Annotated[int, typer.Option("--budget", min=50, max=10_000, help="At most so many tokens.")] = 400,
    explain: Annotated[bool, typer.Option("--explain", help="Say why, for each memory that came near.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Ask the log a question.

    Where nothing relevant is recorded it says so.
    """
    from projectmem import policies
    from projectmem.recall import recall as ask

    place, now = common.open_place(root), common.now()
    with output.Waiting("recalling"):
        found = ask(
            place.home,
            query,
            now=now,
            nonce=os.urandom(6).hex(),
            k=limit,
            budget_tokens=budget,
            policy=policies.recall_in_force(place),
            clock=_micros,
        )
    data = found.event_data(query)
    _remember(place, data)
    if as_json:
        common.emit({**data, "block": found.block})
        return
    for remark in found.notes:
        common.note(output.safe(remark))
    if explain:
        from projectmem.recall_words import explained

        for line in explained(found, query, now):
            common.say(output.safe(line))
    if found.block:
        common.say(output.safe(found.block, lines=True))
    else:
        common.note(f"nothing relevant is recorded ({output.safe(found.why)})")


def _micros() -> int:
    return time.perf_counter_ns() // 1000


def _remember(place: Place, data: dict[str, object]) -> None:
    """Record the recall; a log that cannot take it does not spoil the answer."""
    from projectmem_logs.errors import LogError

    from projectmem.errors import ProjectmemError
    from projectmem.record import record

    try:
        record(place, "recall.decided", data, now=common.now(), origin=caller.origin(), actor=caller.actor())
    except (ProjectmemError, LogError, OSError) as exc:
        common.note(f"this recall was not recorded: {output.safe(exc)}")
