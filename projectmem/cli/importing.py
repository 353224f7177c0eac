"""`projectmem import`: what a report or a trajectory of another tool says, as calls of this project."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from projectmem import output, render
from projectmem.cli import common
from projectmem.cli.common import EXITS, Json, Root

if TYPE_CHECKING:
    from projectmem.importers.claude_code import Counts

NOT = {
    "junit": "not a JUnit report (not XML with a testsuite)",
    "mini-swe-agent": "not a trajectory of mini-swe-agent (not JSON with messages)",
}


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
    from projectmem.errors import BadInputError, ProjectmemError
    from projectmem.importers.claude_code import backfill
    from projectmem.importers.reports import reader

    place = common.open_place(root)
    read = _Noting(reader(form, place.root, command))
    missing = [path for path in files if not path.is_file()]
    if missing:
        raise BadInputError(f"{missing[0]} is no file")
    counts = backfill(
        place,
        now=common.now(),
        sources=[(path, read) for path in files],
        progress=lambda items: output.progress(items, "reading files"),
    )
    unread = [str(path) for path in read.unread]
    if as_json:
        common.emit({**counts.to_data(), "unread": unread})
    elif len(unread) < len(files):
        common.say(said(form, len(files) - len(unread), counts))
    if unread:
        rest = f" (and {render.count(len(unread) - 1, 'more file')} like it)" if len(unread) > 1 else ""
        raise ProjectmemError(f"{unread[0]} is {NOT[form]}{rest}: nothing was recorded" + (" of it" if read.held else ""))


class _Noting:
    """A reader that notes which files it could not read."""

    def __init__(self, read: Callable[[Path, Counts], Iterator[dict[str, Any]]]) -> None:
        self.read, self.unread, self.held = read, list[Path](), False

    def __call__(self, path: Path, counts: Counts) -> Iterator[dict[str, Any]]:
        """The calls of a file."""
        before = counts.damaged
        yield from self.read(path, counts)
        if counts.damaged > before:
            self.unread.append(path)
        else:
            self.held = True


def said(form: str, read: int, counts: Counts) -> str:
    """What an import of so many readable files did."""
    what = render.count(read, "report") if form == "junit" else render.count(read, "trajectory", "trajectories")
    noun = "outcome" if form == "junit" else "call"
    more = [f"{counts.known} known already"] if counts.known else []
    more += [f"{counts.elsewhere} of another repository"] if counts.elsewhere else []
    tail = f" ({', '.join(more)})" if more else ""
    if not counts.recorded:
        return f"read {what}: nothing new{tail}"
    failed = f"{counts.failed} failed"
    if counts.recorded == 1:
        failed = "it failed" if counts.failed else "it went well"
    return f"read {what}: {render.count(counts.recorded, noun)} recorded, {failed}{tail}"
