"""`init`, `uninit`, `hook`, `doctor`, `demo`, `version`: getting set up, and seeing that it works."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from projectmem import output, render
from projectmem.cli import common
from projectmem.cli.common import EXITS, EXITS_CHECKED, Json, Root
from projectmem.errors import BadInputError

if TYPE_CHECKING:
    from projectmem.setup.checks import Check

HOOK_EXITS = "Exit code: always 0: a fault never blocks a call by accident. Faults are told in hook.log and by `doctor`."

User = Annotated[bool, typer.Option("--user", help="The hooks in your own settings, for all projects.")]


def register(parent: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (init, uninit):
        parent.command(epilog=EXITS)(command)
    parent.command(epilog=HOOK_EXITS)(hook)
    parent.command(epilog=EXITS_CHECKED)(doctor)
    parent.command(epilog=EXITS_CHECKED)(demo)
    parent.command(epilog=EXITS)(version)


def init(
    harness: Annotated[
        list[str] | None,
        typer.Option("--harness", help="Which to set up (repeatable; default: all that are installed).", show_default=False),
    ] = None,
    user: User = False,
    backfill: Annotated[
        bool, typer.Option("--backfill/--no-backfill", help="Learn from the sessions that the harness already keeps.")
    ] = True,
    http: Annotated[
        bool, typer.Option("--http", help="Post the hooks to a resident server (see `serve`); commands run while it does not.")
    ] = False,
    plugin: Annotated[
        Path | None,
        typer.Option(
            "--plugin", metavar="DIR", help="Claude Code's hooks and MCP server as a plugin in DIR.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be changed, and change nothing.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show each change to a settings file line by line.")] = False,
    network: Annotated[bool, typer.Option("--allow-network", help="Accept a network file system.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Set up the log and the hooks of a project.

    For every harness that is installed. Learns from the sessions that the harness already keeps for it. Can be run again;
    `uninit` undoes it.
    """
    from projectmem.setup.harnesses import CLAUDE, detected
    from projectmem.setup.init import init as set_up
    from projectmem.setup.preview import lines, summary

    harnesses = harness or detected() or [CLAUDE]
    plugin = _folder(plugin, http or user)
    harnesses = [CLAUDE, *harnesses] if plugin else harnesses
    if not as_json and not harness and not detected():
        where = "no harness was found (neither a program on PATH nor a folder in your home)"
        common.note(f"{where}: this sets up Claude Code; name another with --harness")
    if not as_json or dry_run:
        found = _changes(common.workdir(root), harnesses, user, plugin, named=bool(harness))
        if as_json:
            common.emit({"changes": [line for change in found for line in lines(*change)]})
        for change in [] if as_json else found:
            for line in lines(*change) if diff else [summary(*change)]:
                common.say(output.safe(line))
        if not as_json and not found:
            common.say("every hook is in place")
    if dry_run:
        if not as_json:
            _not_done(common.workdir(root), bool(found), diff)
        return
    report = set_up(
        common.workdir(root),
        now=common.now(),
        harnesses=harnesses,
        user=user,
        import_sessions=backfill,
        allow_network=network,
        http=http,
        plugin=plugin,
        progress=output.reading,
    )
    if as_json:
        common.emit(report.to_data())
        return
    for line in report.lines():
        common.say(output.safe(line))
    common.say("Next: work as usual. `projectmem doctor` proves that the hooks fire; `projectmem failures` shows what is known.")


def _changes(start: str, harnesses: list[str], user: bool, plugin: Path | None, *, named: bool) -> list[tuple[Path, str, str]]:
    """What `init` would change. Raises SettingsError, having said how to go on where nobody `named` the harness in the way."""
    from projectmem.setup.hook_lists import SettingsError
    from projectmem.setup.init import changes

    try:
        return changes(start, harnesses=harnesses, user=user, plugin=plugin)
    except SettingsError:
        if not named and len(harnesses) > 1:
            common.note("one harness's file is in the way of all: mend that, or name the others with --harness")
        raise


def _folder(plugin: Path | None, other: bool) -> Path | None:
    if plugin is not None and other:
        raise BadInputError("--plugin goes with neither --http nor --user: the plugin has the hooks, for every project")
    return Path(os.path.abspath(plugin.expanduser())) if plugin else None


def _not_done(start: str, found: bool, diff: bool) -> None:
    """The end of a dry run: what else would be made, and how to do it."""
    from projectmem.setup.init import home_of

    home, exists = home_of(start)
    more = "" if exists else f" It would also make the log in {output.safe(home)}."
    shown = " `--diff` shows each line." if found and not diff else ""
    common.say(f"nothing was changed.{more}{shown} To do it: the same without --dry-run")


def uninit(user: User = False, root: Root = "", as_json: Json = False) -> None:
    """Take the hooks out again; the log stays."""
    from projectmem.setup.init import LeftError
    from projectmem.setup.init import uninit as undo

    left: LeftError | None = None
    try:
        done = undo(common.workdir(root), user=user)
    except LeftError as exc:
        done, left = exc.done, exc
    if as_json:
        common.emit({"done": done})
    for line in [] if as_json else done or ["nothing to undo"]:
        common.say(output.safe(line))
    if left:
        raise left


def hook(
    harness: Annotated[str, typer.Argument(help="Whose hook this is, e.g. claude-code.", show_default=False)] = "",
    event: Annotated[str, typer.Argument(help="The harness's name of the event.", show_default=False)] = "",
) -> None:
    """Answer a harness (not for people).

    JSON on standard input, at most one JSON object on standard output.
    """
    from projectmem.hook.entry import main

    common.leave(main([harness, event]))


def doctor(
    fire: Annotated[
        bool, typer.Option("--fire/--no-fire", help="Really run the registered hooks (in a scratch project).")
    ] = True,
    every: Annotated[bool, typer.Option("--all", help="Compare what is derived with the log, however long it is.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="A line for each hook, not for each harness.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Prove that the hooks fire and the log is sound."""
    from projectmem.doctor import examine, healthy

    found: list[Check] = []
    well = dict[str, set[str]]()
    advice = ("", "")  # of the line before: said once for several findings alike
    for check in examine(common.workdir(root), now=common.now(), fire=fire, every=every):
        found.append(check)
        if as_json:
            continue
        if check.group and check.status == "ok" and not verbose:
            well.setdefault(check.group, set()).add(check.name)
            continue
        if advice[1] and advice != (check.name, check.remedy):
            _advise(advice[1])
        if not check.group:
            _fired(well, found)
        _checked(check.status, check.name, check.detail)
        advice = (check.name, check.remedy)
    if advice[1]:
        _advise(advice[1])
    _fired(well, found)
    if as_json:
        common.emit({"ok": healthy(found), "checks": [check.to_data() for check in found]})
    if not healthy(found):
        common.leave(1)


def _checked(status: str, name: str, detail: str) -> None:
    paint, colours = common.paint(), {"ok": "green", "note": "yellow", "fail": "red"}
    common.say(f"{paint(colours.get(status, 'red'), status.ljust(4))}  {name}: {output.safe(detail)}")


def _advise(remedy: str) -> None:
    common.say(f"      what to do: {output.safe(remedy)}")


def _fired(well: dict[str, set[str]], found: list[Check]) -> None:
    """One line for each harness whose hooks were run and did what they are for; then they are told."""
    failed = {check.name for check in found if check.status != "ok"}
    for title, ran in well.items():
        names = ran - failed
        _checked("ok", "fires", f"{render.count(len(names), 'hook')} of {title}")
    well.clear()


def demo(keep: Annotated[bool, typer.Option("--keep", help="Leave the temporary repository for a look around.")] = False) -> None:
    """See the main job, in a temporary repository.

    A scripted agent fails, is told before it repeats the failure, mends it and goes on; then the log is audited.
    """
    from projectmem.demo import Expectation, run_demo

    try:
        run_demo(common.say, common.paint(), keep=keep)
    except Expectation as exc:
        common.note(f"projectmem: {output.safe(exc, lines=True)}")
        common.leave(1)


def version(as_json: Json = False) -> None:
    """Print the version."""
    import platform

    from projectmem_gate.decide import ENGINE

    from projectmem.installed import version as installed

    number = installed()
    if as_json:
        common.emit({"version": number, "engine": ENGINE, "python": platform.python_version()})
    else:
        common.say(f"projectmem-gate {number} (engine {ENGINE}, Python {platform.python_version()})")
