"""`projectmem import`: what another tool's file, a harness's sessions, or git's history says, as events of this project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from projectmem import output, render
from projectmem.cli import common
from projectmem.cli.common import EXITS, Json, Root

if TYPE_CHECKING:
    from projectmem.importers.backfill import Reader
    from projectmem.importers.reading import Counts
    from projectmem.place import Place

NOT = {
    "junit": "not a JUnit report of tests that ran (not XML with a testsuite and its testcases)",
    "pytest": "not a whole pytest report (--report-log or --json-report)",
    "mini-swe-agent": "not a trajectory of mini-swe-agent (not JSON with messages)",
    "swe-agent": "not a trajectory of SWE-agent (not JSON with a trajectory)",
    "atif": "not an ATIF trajectory",
    "projectmem": "not an event log of the package projectmem",
}
REPORTS = ("junit", "pytest")
SESSIONS = "claude-code | codex | gemini | qwen | copilot | opencode | droid | cline | pi"
HELP = f"junit | pytest | mini-swe-agent | swe-agent | atif | projectmem | git | {SESSIONS}"


def register(parent: typer.Typer) -> None:
    """Add the command to the application."""
    parent.command("import", epilog=EXITS)(import_)


def import_(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help=HELP, show_default=False)],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="What to read; - is standard input.", show_default=False)
    ] = None,
    command: Annotated[str, typer.Option("--command", help="With junit and pytest: what was run, e.g. `pytest -q`.")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Learn from reports, trajectories, sessions or git.

    A test report, a trajectory of another agent, a session that a harness keeps (without FILE: all that it keeps of this
    project), the notes of the package `projectmem` (without FILE: .projectmem/events.jsonl), or the reverts in git's history.

    What is imported warns at most until it is seen to fail here. The same thing twice adds nothing. `init` reads the sessions of
    the harnesses that it sets up.
    """
    from projectmem.importers.sources import SOURCES

    place, named = common.open_place(root), list(files or ())
    if form in ("git", "projectmem"):
        _written(place, form, named, as_json)
    elif form in SOURCES and not named:
        _kept(place, form, as_json)
    else:
        _named(place, form, named, command, as_json)


def _named(place: Place, form: str, files: list[Path], command: str, as_json: bool) -> None:
    """Calls from the files that were named."""
    from projectmem.errors import BadInputError, ProjectmemError
    from projectmem.importers.backfill import backfill
    from projectmem.importers.reports import reader

    read = _Noting(reader(form, place.root, command))
    if not files:
        raise BadInputError(f"name what to read: `projectmem import {form} FILE`")
    files = _readable(form, files)
    counts = backfill(place, now=common.now(), sources=[(path, read) for path in files], progress=output.reading)
    unread = [str(path) for path in read.unread]
    if as_json:
        common.emit({**counts.to_data(), "unread": unread})
    elif len(unread) < len(files):
        common.say(said(form, len(files) - len(unread), counts))
    if unread:
        rest = f" (and {render.count(len(unread) - 1, 'more file')} like it)" if len(unread) > 1 else ""
        why = next(iter(counts.unread.values()), "") if form not in NOT else ""
        fault = NOT.get(form) or (why if why.startswith("no session") else f"damaged{': ' + why if why else ''}")
        rest_of = "the rest of it was recorded" if counts.recorded else "nothing in the rest of it is new"
        done = rest_of if read.partly else "nothing was recorded" + (" of it" if read.held else "")
        raise ProjectmemError(f"{unread[0]} is {fault}{rest}: {done}")


def _readable(form: str, files: list[Path]) -> list[Path]:
    """The files, each once, when all can be read as this format. Raises BadInputError for what is no file, and for a stream that
    its reader cannot do with."""
    from projectmem.errors import BadInputError
    from projectmem.importers import streams

    piped = [path for path in files if streams.is_stream(path)]
    missing = [path for path in files if path not in piped and not path.is_file()]
    if missing:
        raise BadInputError(f"{missing[0]} is no file")
    if piped and form not in streams.FORMATS:
        what = "standard input" if str(piped[0]) in streams.STDIN else f"{piped[0]} (a pipe)"
        raise BadInputError(f"{form} cannot be read from {what}: save it to a file and name that")
    streams.admit(piped)
    return list(dict.fromkeys(files))


def _kept(place: Place, form: str, as_json: bool) -> None:
    """Calls from the sessions that a harness keeps."""
    from projectmem.importers.backfill import backfill
    from projectmem.importers.sources import sessions

    counts = backfill(place, now=common.now(), sources=sessions(place, [form]), progress=output.reading)
    if as_json:
        common.emit(counts.to_data())
    else:
        common.say(output.safe(counts.line()))


def _written(place: Place, form: str, files: list[Path], as_json: bool) -> None:
    """What was written down elsewhere: git's reverts, or the notes of the package `projectmem`."""
    from projectmem.errors import BadInputError, NotFoundError, ProjectmemError
    from projectmem.importers import git_reverts, rival, written
    from projectmem.importers.reading import Counts

    if form == "git" and files:
        raise BadInputError("git's history has no file to name: run it in the repository, or name that with --root")
    paths = files or [Path(place.root) / rival.FILE]
    if not files and form != "git" and not paths[0].is_file():
        raise NotFoundError(f"{paths[0]} is no file")
    paths = _readable(form, paths) if form != "git" else []
    counts = Counts()
    entries = git_reverts.read_reverts(place, counts) if form == "git" else _of(paths, counts)
    with output.Waiting("reading git's history" if form == "git" else "reading notes"):
        done = written.record_entries(place, entries, now=common.now(), harness=form)
    if as_json:
        common.emit({**done.to_data(), "damaged": counts.damaged, "unread": list(counts.unread)})
    elif done.read or not counts.damaged:
        common.say(output.safe(done.line("revert" if form == "git" else "note") + counts.named()))
    if counts.damaged and not done.read:
        raise ProjectmemError(f"{next(iter(counts.unread))} is {NOT.get(form, 'damaged')}: nothing was recorded")


def _of(paths: list[Path], counts: Counts) -> Iterator[Any]:
    from projectmem.importers.rival import read_rival

    for path in paths:
        yield from read_rival(path, counts)


class _Noting:
    """A reader that notes which files it could not read (whole)."""

    def __init__(self, read: Reader) -> None:
        self.read, self.unread, self.held, self.partly = read, list[Path](), False, False

    def __call__(self, path: Path, counts: Counts) -> Iterator[dict[str, Any]]:
        """The calls of a file."""
        before, found = counts.damaged, False
        try:
            for call in self.read(path, counts):
                found = True
                yield call
        except BaseException:
            self._note(path, damaged=True, found=found)
            raise
        self._note(path, damaged=counts.damaged > before, found=found)

    def _note(self, path: Path, *, damaged: bool, found: bool) -> None:
        if damaged:
            self.unread.append(path)
        self.held = self.held or not damaged
        self.partly = self.partly or (damaged and found)


def said(form: str, read: int, counts: Counts) -> str:
    """What an import of so many readable files did."""
    what = render.count(read, "report") if form in REPORTS else render.count(read, "trajectory", "trajectories")
    if form not in NOT:
        what = render.count(read, "session")
    noun = "outcome" if form in REPORTS else "call"
    more = [f"{counts.known} known already"] if counts.known else []
    more += [f"{counts.unfinished} without a result"] if counts.unfinished else []
    more += [f"{counts.elsewhere} of another repository"] if counts.elsewhere else []
    tail = f" ({', '.join(more)})" if more else ""
    if not counts.recorded:
        return f"read {what}: nothing new{tail}"
    failed = f"{counts.failed} failed"
    if counts.recorded == 1:
        failed = "it failed" if counts.failed else "it went well"
    return f"read {what}: {render.count(counts.recorded, noun)} recorded, {failed}{tail}"
