"""`repair`: put right what can be put right in a damaged log; only shows the plan unless `--apply` is given."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from projectmem import output, render
from projectmem.cli import common
from projectmem.cli.common import EXITS_CHECKED, Json, Root
from projectmem.hook import health


def register(parent: typer.Typer) -> None:
    """Add the command to the application."""
    parent.command(epilog=EXITS_CHECKED)(repair)


def repair(
    do: Annotated[bool, typer.Option("--apply", help="Do it. Without this, only show what would be done.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Put right what can be put right in a damaged log.

    No record is invented and none is dropped: line ends, joined or swapped lines, repeated records, an
    unfinished write at the end, files that do not belong. The old bytes go to quarantine/. What is
    lost stays lost, and `verify` goes on naming it.
    """
    from projectmem_logs.repair import apply, plan
    from projectmem_logs.verify import verify

    place = common.open_place(root)
    if not do:
        with output.Waiting("looking for damage"):
            steps, failed, kept = plan(place.home), [], []
    else:
        with output.Waiting("repairing the log"):
            done = apply(place.home, now=common.now())
        steps, failed, kept = done.steps, done.failed, done.kept
    with output.Waiting("checking the log"):
        report = verify(place.home)
    health.note(place.home, report.problems, common.now())
    if as_json:
        rows = [{"kind": s.kind, "path": s.path, "stream": s.stream, "what": s.what} for s in steps]
        missed = [{"path": s.path, "what": s.what, "why": why} for s, why in failed]
        common.emit({"applied": do, "failed": missed, "home": place.home, "ok": report.ok, "quarantined": kept, "steps": rows})
    else:
        for step in steps:
            where = output.safe(os.path.relpath(step.path, place.home))
            common.say(f"{'done' if do else 'would'}: {where}: {output.safe(step.what)}")
        for step, why in failed:
            common.say(f"could not: {output.safe(os.path.relpath(step.path, place.home))}: {output.safe(why)}")
        if steps and not do:
            common.say("nothing was changed; `projectmem repair --apply` does it")
        elif not steps and report.ok:
            common.say("the log is whole, there is nothing to repair")
        if not report.ok and (do or not steps):
            common.say(
                f"only a backup can mend {render.count(len(report.problems), 'problem')}: `projectmem verify` has the names"
            )
    if failed or not report.ok or (steps and not do):
        common.leave(1)
