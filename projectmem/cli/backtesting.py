"""`projectmem backtest`: the gate over the history that this machine keeps, or over transcripts that were named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from projectmem import output
from projectmem.cli import common
from projectmem.cli.common import Json

FORMATS = ("steps", "cases", "claude-code")
EXITS = "Exit codes: 0 done (problems in single transcripts are counted and named), 2 wrong usage, 3 could not be done."


def register(parent: typer.Typer) -> None:
    """Add the command to the application."""
    parent.command(epilog=EXITS)(backtest)


def backtest(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Transcripts, or folders of them; none: this machine's.", show_default=False)
    ] = None,
    format: Annotated[str, typer.Option("--format", help=f"{' | '.join(FORMATS)}")] = "claude-code",
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="Without PATHS: how far back.")] = 90,
    verdicts: Annotated[
        Path | None, typer.Option("--verdicts", metavar="FILE", help="Write one JSON line for each call.", show_default=False)
    ] = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="FILE", help="Try this policy instead of the defaults.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the gate over recorded sessions.

    Without PATHS over the sessions that harnesses keep on this machine: how often it would have spoken, how often it was right,
    about how much time that saved, the ten best and the ten worst moments.

    With PATHS over these: counts what it would have said and what became of those calls. The clock is that of the transcripts;
    nothing is recorded.
    """
    from projectmem_gate.policy import DEFAULT

    from projectmem.errors import BadInputError, NotFoundError
    from projectmem.policies import read

    if format not in FORMATS:
        raise BadInputError(f"`{format}` is not a format: give --format {', '.join(FORMATS)}")
    for path in paths or ():
        if not path.exists():
            raise NotFoundError(f"{path} does not exist: give transcripts, or folders of them")
    chosen = read(str(policy), named=True)[0] if policy else DEFAULT
    if paths:
        _named(paths, format, verdicts, chosen, as_json)
    else:
        _history(days, verdicts, chosen, as_json)


def _named(paths: list[Path], format: str, verdicts: Path | None, policy: Any, as_json: bool) -> None:
    from projectmem.backtest.run import render, run_backtest
    from projectmem.errors import NotFoundError

    shown = sys.stderr if sys.stderr.isatty() else None
    summary = run_backtest(paths, format, verdicts=verdicts, policy=policy, progress=shown)
    if not summary.calls and not summary.unparsed:
        why = f"; {problems.messages[0]}" if (problems := summary.problems).count else ""
        raise NotFoundError(
            f"no transcripts in {', '.join(map(str, paths))}: give some, or their --format (this was {format}{why})"
        )
    if as_json:
        common.emit(_plain(summary))
    else:
        common.say(output.safe(render(summary), lines=True))


def _history(days: int, verdicts: Path | None, policy: Any, as_json: bool) -> None:
    from projectmem.backtest import history, moments
    from projectmem.backtest.model import Problems
    from projectmem.backtest.run import run_over

    now, problems, tally = common.now(), Problems(), moments.Tally(policy)
    found = history.read_history(now - days * history.DAY, problems, progress=output.reading)
    shown = sys.stderr if sys.stderr.isatty() else None
    summary = run_over(found, problems, verdicts=verdicts, policy=policy, progress=shown, spoke=tally)
    if as_json:
        common.emit({"days": days, **tally.to_data(), "summary": _plain(summary)})
        return
    for line in moments.lines(tally, days, now, calls=summary.calls, repositories=summary.repositories):
        common.say(line)
    common.notices([f"not read to its end: {message}" for message in problems.messages[:3]])


def _plain(summary: Any) -> dict[str, Any]:
    """The summary as JSON data: counters by name, pairs as `verdict outcome`."""
    data = {name: getattr(summary, name) for name in ("repositories", "calls", "judged", "unparsed")}
    for name in ("outcomes", "classes", "verdicts", "rules"):
        data[name] = dict(getattr(summary, name))
    data["spoken"] = {f"{verdict} {outcome or 'unknown'}": count for (verdict, outcome), count in summary.spoken.items()}
    data["milliseconds"] = int(summary.seconds * 1000)
    data["problems"] = {"count": summary.problems.count, "messages": list(summary.problems.messages)}
    return data
