"""`projectmem import`: what a report or a trajectory of another tool says, as calls of this project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from projectmem import output
from projectmem.cli import common
from projectmem.cli.common import EXITS, Json, Root


def register(parent: typer.Typer) -> None:
    """Add the command to the application."""
    parent.command("import", epilog=EXITS)(import_)


def import_(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="junit | mini-swe-agent", show_default=False)],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What to read.", show_default=False)],
    command: Annotated[str, typer.Option("--command", help="With junit: what was run, e.g. pytest.")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Learn from a test report or a trajectory.

    What is imported warns at most until it is seen to fail here. The same file twice adds nothing. `init` reads the sessions that
    harnesses keep.
    """
    from projectmem.errors import BadInputError
    from projectmem.importers.claude_code import backfill
    from projectmem.importers.reports import reader

    place = common.open_place(root)
    read = reader(form, place.root, command)
    missing = [path for path in files if not path.is_file()]
    if missing:
        raise BadInputError(f"{missing[0]} is no file")
    counts = backfill(
        place,
        now=common.now(),
        sources=[(path, read) for path in files],
        progress=lambda items: output.progress(items, "reading files"),
    )
    if as_json:
        common.emit(counts.to_data())
    else:
        common.say(output.safe(counts.line()))
