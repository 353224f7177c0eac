"""`check`: what would the gate say? A dry run that records nothing."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any

import typer

from projectmem import caller, output
from projectmem.cli import common
from projectmem.cli.common import Json, Root
from projectmem.errors import BadInputError

EXITS = "Exit codes: 0 allow, 10 warn, 11 ask, 12 deny; 2 wrong usage, 3 could not be done (the message says why)."


def register(parent: typer.Typer) -> None:
    """Add the command to the application."""
    parent.command(epilog=EXITS)(check)


def check(
    command: Annotated[str, typer.Option("--command", "-c", help="A shell command.")] = "",
    file: Annotated[str, typer.Option("--file", help="A file to edit.")] = "",
    old: Annotated[str, typer.Option("--old", help="With --file: the text to be replaced.")] = "",
    new: Annotated[str, typer.Option("--new", help="With --file: the text that replaces it.")] = "",
    tool: Annotated[str, typer.Option("--tool", help="The harness's name of the tool (default: Bash, or Edit for a file).")] = "",
    input: Annotated[str, typer.Option("--input", help="The tool's input as JSON; `-` reads standard input.")] = "",
    cwd: Annotated[str, typer.Option("--cwd", metavar="DIR", help="Where the call would start (default: --root).")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Ask the gate about an action; record nothing.

    The answer is allow, warn, ask or deny, as the exit code too. Of a failure that is on record and passed over it says why.
    """
    from projectmem.check import EXIT_CODES, action_for, check_action, tool_call

    place = common.open_place(root)
    parsed = _parsed(input) if input else None
    name, given = tool_call(tool=tool, command=command, file=file, input=parsed, old=old, new=new)
    who = caller.actor()
    start = os.path.abspath(cwd) if cwd else common.workdir(root)
    now = common.now()
    decision = check_action(
        place, tool=name, tool_input=given, cwd=start, now=now, harness=who["harness"], session=who["session"]
    )
    if as_json:
        common.emit(decision.to_data())
    else:
        paint = common.paint()
        rule = f" ({output.safe(decision.rule)})" if decision.rule else ""
        common.say(paint(output.VERDICT_COLOURS[decision.verdict], decision.verdict) + rule)
        if decision.reason:
            common.say(output.safe(decision.reason, lines=True))
        elif decision.verdict == "allow":
            _silence(place, action_for(place, name, given, start, who["harness"], now), now)
    common.leave(EXIT_CODES[decision.verdict])


def _silence(place: Any, action: Any, now: int) -> None:
    """Say why nothing is said of an action that did fail: to a person, beside the answer."""
    from projectmem.failures import passed_over
    from projectmem.logview import short

    for row in passed_over(place, action, now)[:3]:
        failed = f"`{output.safe(row.record.text, limit=80)}`, which failed {output.ago(row.record.at, now)}"
        why = output.safe(row.silence(now), limit=200)
        common.note(f"silent about {failed}: {why} (`projectmem explain {short(row.record.id)}`)")


def _parsed(text: str) -> Any:
    source = sys.stdin.read() if text == "-" else text
    try:
        return json.loads(source)
    except (ValueError, RecursionError) as exc:
        raise BadInputError(f"--input is not JSON ({output.safe(exc, limit=200)}): give one JSON object") from None
