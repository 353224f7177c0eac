"""`init` and `uninit`: everything that must be in place before a harness calls the hook, and the way back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from projectmem_logs import files
from projectmem_logs.home import init_home
from projectmem_logs.origin import accept, accepted

from projectmem import output, render
from projectmem import place as places
from projectmem.errors import BadInputError, NoProjectError, ProjectmemError
from projectmem.importers.backfill import backfill
from projectmem.importers.reading import Counts
from projectmem.importers.sources import sessions
from projectmem.place import Place
from projectmem.serve import settings as resident
from projectmem.setup import claude_settings, compiled, extensions, gitignore, hook_lists, trust
from projectmem.setup import plugin as plugins
from projectmem.setup.harnesses import CLAUDE, HARNESSES, HERE_ONLY, Harness
from projectmem.setup.hook_lists import SettingsError

DEFAULT = (CLAUDE,)
_WRAPPED = "wrapped"
RIVAL = "projectmem"  # an unrelated distribution that owns the same import name

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]


class Report:
    """What `init` did.

    created   the log is new;  settings  files the hooks are in;  excluded  a line was added to git's exclude file
    uncompiled  files that could not be compiled;  counts  what was backfilled, None where that was not asked for
    warnings  what a person should know
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.created = False
        self.settings: list[str] = []
        self.titles: list[str] = []
        self.excluded = False
        self.uncompiled: list[str] = []
        self.counts: Counts | None = None
        self.warnings: list[str] = []

    def to_data(self) -> dict[str, Any]:
        """The report as JSON data."""
        return {
            "root": self.place.root,
            "home": self.place.home,
            "project": self.place.project,
            "created": self.created,
            "settings": self.settings,
            "excluded": self.excluded,
            "backfill": self.counts.to_data() if self.counts else None,
            "warnings": self.warnings,
        }

    def lines(self) -> list[str]:
        """The report for a person."""
        found = [
            f"{'made' if self.created else 'found'} the log in {self.place.home}",
            *(f"hooks of {title} in {path}" for title, path in zip(self.titles, self.settings, strict=True)),
        ]
        if self.counts:
            found.append(self.counts.line())
        return [*found, *(f"note: {text}" for text in self.warnings)]


def refuse_rival() -> None:
    """Raise ProjectmemError where the unrelated distribution `projectmem` is installed: the two overwrite each other."""
    try:
        found = metadata.distribution(RIVAL)
    except metadata.PackageNotFoundError:
        return
    raise ProjectmemError(
        f"the unrelated package `projectmem` {found.version} is installed in this environment and overwrites parts of "
        "projectmem-gate: uninstall both and install projectmem-gate alone, or in an environment of its own"
    )


def init(
    start: str,
    *,
    now: int,
    harnesses: Iterable[str] = DEFAULT,
    user: bool = False,
    import_sessions: bool = True,
    allow_network: bool = False,
    http: bool = False,
    plugin: Path | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> Report:
    """Set the project that `start` lies in up. Idempotent.

    user             put the hooks into the person's own settings, for all projects (a project without a log costs little)
    http             hooks that are posted to a resident server, beside the commands, which run while it does not
    plugin           a folder for Claude Code's hooks and MCP server, in place of its settings
    import_sessions  backfill from the sessions that the harness keeps of this repository
    progress         wraps the list of session files as it is gone through
    Raises ProjectmemError (the unrelated package, settings that cannot be edited), LogError (network file system).
    """
    refuse_rival()
    chosen = known(harnesses)
    place = places.locate(start) or _outside_git(start)
    report = Report(place)
    report.created = not place.exists
    if place.exists and not accepted(place.home):
        report.warnings.append(_not_made_here(place))
    for name, harness in chosen:  # refuses before anything is made
        if plugin is not None and name == CLAUDE:
            plugins.planned(plugin)
        else:
            for path in _paths(place, name, harness, start, user):
                harness.planned(path)
    init_home(place.home, now, allow_network=allow_network)
    accept(place.home)
    _write_default_policy(place)
    report.uncompiled = compiled.compile_hook()
    if report.uncompiled:
        report.warnings.append(
            f"{render.count(len(report.uncompiled), 'file')} of the hook could not be compiled, so every call pays for that "
            f"(first: {report.uncompiled[0]}); run `init` once as a user who may write there"
        )
    for name, harness in chosen:
        if plugin is not None and name == CLAUDE:
            _write_plugin(place, report, plugin)
        else:
            paths = _paths(place, name, harness, start, user)
            for path in paths:
                _register(place, report, name, path, user=user, http=http)
            if not paths and (one := extensions.current(name, place)):
                has = f"the plugin {one.id} of {harness.title} has the hooks already ({one.file})"
                report.warnings.append(f"{has}: its settings are left as they are")
    lonely = [harness.title for name, harness in chosen if name in HERE_ONLY]
    if lonely and not user and below(place, start):
        where = f"so they are in {place.root} and here. For other folders run `projectmem init` there, or once with --user"
        report.warnings.append(f"hooks of {', '.join(lonely)} are looked for only where the program is started, {where}")
    if import_sessions:
        found = sessions(place, [name for name, _ in chosen])
        report.counts = backfill(place, now=now, progress=progress, sources=found)
    return report


def below(place: Place, start: str) -> str:
    """The folder of the work tree that `start` is, with slashes and relative to its root; "" for the root and what is outside."""
    found = os.path.relpath(os.path.realpath(start), os.path.realpath(place.root))
    return "" if found == "." or found.split(os.sep)[0] == ".." else Path(found).as_posix()


def _paths(place: Place, name: str, harness: Harness, start: str, user: bool) -> list[Path]:
    """The files that the hooks go into: a harness that looks only in the folder that it is started in has one there too. None
    where they would be there a second time, beside a plugin that the harness has installed."""
    folder = below(place, start) if name in HERE_ONLY and not user else ""
    found = [harness.path(place, user=user), *([Path(place.root) / folder / harness.project] if folder else [])]
    return [] if not any(map(harness.registered, found)) and extensions.current(name, place) else found


def _not_made_here(place: Place) -> str:
    """Where a log came from that another machine or another folder wrote, and what it may do."""
    from projectmem_logs.tail import streams

    try:
        with open(f"{place.home}/project.json", encoding="utf-8") as file:
            made = output.when(json.load(file)["created"])
    except (OSError, ValueError, KeyError, TypeError):
        made = "an unknown time"
    count = len(list(streams(place.home)))
    return (
        f"the log in {place.home} was not made here: it came with the folder, or another machine writes it ({count} "
        f"{'stream' if count == 1 else 'streams'}, begun {made}). What this machine did not write of it warns at most, until it "
        "is seen here again or a person confirms it. Delete the folder and run `init` again to start afresh"
    )


def known(names: Iterable[str]) -> list[tuple[str, Harness]]:
    """The harnesses with these names. Raises BadInputError for one that this version does not know."""
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        if name not in HARNESSES:
            raise BadInputError(f"unknown harness `{name}`: this version knows {', '.join(HARNESSES)}")
    return [(name, HARNESSES[name]) for name in chosen]


def changes(
    start: str, *, harnesses: Iterable[str] = DEFAULT, user: bool = False, plugin: Path | None = None
) -> list[tuple[Path, str, str]]:
    """(file, its text, what `init` would make of it) for each file of a harness that it would change. Raises as `init` does."""
    refuse_rival()
    chosen = known(harnesses)
    place = places.locate(start) or _outside_git(start)
    notes = _notes(place)
    found = []
    for name, harness in chosen:
        if plugin is not None and name == CLAUDE:
            found += plugins.planned(plugin)
            continue
        for path in _paths(place, name, harness, start, user):
            after, before, _ = harness.planned(path, notes.get(str(path)))
            if after != before:
                found.append((path, before, after))
    return found


def home_of(start: str) -> tuple[str, bool]:
    """(the folder of the log that `init` would make or find, whether it is there)."""
    place = places.locate(start) or _outside_git(start)
    return place.home, place.exists


def _register(place: Place, report: Report, name: str, path: Path, *, user: bool, http: bool) -> None:
    harness, notes = HARNESSES[name], _notes(place)
    folder = "" if user else below(place, str(path.parents[len(Path(harness.project).parts) - 1]))
    note = notes.get(str(path))
    if name == CLAUDE and http:
        note = claude_settings.add(path, place.home, _resident(place), note)
        if os.name != "nt" and path.stat().st_mode & 0o077:
            report.warnings.append(
                f"{path} holds the server's token and can be read by others: `chmod 600` it on a shared machine"
            )
    else:
        if note is not None and "after" in note:  # else nobody knows what was written
            report.warnings += _put_aside(harness, path, note)
        note = harness.add(path, note)
    note = {**note, "harness": name, "below": place.root} if folder else note
    if notes.get(str(path)) != note:
        _save_notes(place, {**notes, str(path): note})
    report.settings.append(str(path))
    report.titles.append(harness.title)
    report.warnings += claude_settings.problems(path) if name == CLAUDE else []
    report.warnings += [f"{doubt.detail}: {doubt.remedy}" for doubt in ([] if folder else trust.doubts(name, place, [path]))]
    if user:
        return
    if gitignore.tracked(place, path):
        report.warnings.append(f"git tracks {path}: the hooks in it name paths of this machine, so do not commit them")
        return
    for pattern in harness.ignored():
        report.excluded = gitignore.exclude(place, f"/{folder}{pattern}" if folder else pattern) or report.excluded


def _write_plugin(place: Place, report: Report, folder: Path) -> None:
    path = plugins.write(folder)
    _save_notes(place, {**_notes(place), str(path): {"file": str(path), "plugin": str(folder)}})
    report.settings.append(str(path))
    report.titles.append(HARNESSES[CLAUDE].title)
    if folder.is_relative_to(place.root):
        report.excluded = gitignore.exclude(place, _below(place, folder)) or report.excluded
    report.warnings.append(plugins.how_to_use(folder))


def _below(place: Place, folder: Path) -> str:
    return f"/{folder.relative_to(place.root).as_posix()}/"


def written_plugins(place: Place) -> list[Path]:
    """The folders of the plugins that `init` wrote for this log and that are still there."""
    found = [Path(note["plugin"]) for note in _notes(place).values() if isinstance(note.get("plugin"), str)]
    return [folder for folder in found if (folder / plugins.HOOKS).is_file()]


def registered_below(place: Place) -> dict[Path, str]:
    """The files in subfolders of this work tree that `init` put hooks into, and whose: harnesses that look only there."""
    notes = _notes(place)
    return {Path(path): note["harness"] for path, note in notes.items() if note.get("below") == place.root}


def uninit(start: str, *, user: bool = False) -> list[str]:
    """Take the hooks out again, from this work tree's settings (or the person's own); the log stays. Returns what was done.
    Raises LeftError once all else is done, where files cannot be edited."""
    place = places.locate(start)
    if place is None:
        raise NoProjectError(f"no project at {start}: nothing to undo")
    notes = _notes(place)
    done, left = _unwrapped(notes), list[str]()  # first: hooks may have come into the same file before
    for path, name in ({} if user else registered_below(place)).items():
        if _taken_out(HARNESSES[name], path, notes, done, left):
            gitignore.include(place, f"/{path.relative_to(place.root).as_posix()}")
    for harness in HARNESSES.values():
        path = harness.path(place, user=user)
        if not _taken_out(harness, path, notes, done, left):
            continue
        others = any(Path(name).parts[-2:] == Path(harness.project).parts[-2:] for name in notes if "\0" not in name)
        gone = [] if user or others else [pattern for pattern in harness.ignored() if gitignore.include(place, pattern)]
        if gone:
            done.append(f"took the lines of {harness.project} out of {gitignore.exclude_file(place)}")
    for name, note in list(notes.items()):
        if isinstance(note.get("plugin"), str) and not user:
            del notes[name]
            folder = Path(note["plugin"])
            if plugins.remove(folder):
                done.append(f"took the plugin out of {folder}")
            if folder.is_relative_to(place.root):
                gitignore.include(place, _below(place, folder))
    try:
        _save_notes(place, notes)
    except OSError as exc:  # the settings are as they were: what was noted of them is wanted no more
        done.append(f"could not write down that it is undone ({exc.strerror or exc}): nothing depends on it")
    if place.ready:
        done.append(f"left the log in {place.home} (delete the folder to forget everything)")
    if left:
        raise LeftError(done, left)
    return done


class LeftError(ProjectmemError):
    """Files that `uninit` could not take the hooks out of.  done  what it did of the rest"""

    def __init__(self, done: list[str], left: list[str]) -> None:
        super().__init__("; ".join(left) + ". Everything else is undone: run `projectmem uninit` again then")
        self.done = done


def _taken_out(harness: Harness, path: Path, notes: dict[str, dict[str, Any]], done: list[str], left: list[str]) -> bool:
    """Take the hooks out of one file; what was done and what could not be goes into the lists. Returns whether none are left."""
    try:
        if harness.unknown(path):
            return True
        done += _put_aside(harness, path, notes.get(str(path)))
        if harness.remove(path, notes.get(str(path))):
            done.append(f"took the hooks of {harness.title} out of {path}")
    except SettingsError as exc:
        left.append(str(exc))
        return False
    notes.pop(str(path), None)
    return True


def _put_aside(harness: Harness, path: Path, note: dict[str, Any] | None) -> list[str]:
    """Keep what somebody made of files that were ours alone, where the harness does not read it. Returns what was done."""
    said = "is not as `init` wrote it: it is out of use, and kept as"
    return [f"{file} {said} {hook_lists.put_aside(file)}" for file in harness.changed(path, note)]


def note_wrapped(place: Place, file: Path, wrapped: bool) -> None:
    """Keep in mind, for `uninit`, that the proxy was put before the servers of a file, or no more. Raises OSError."""
    notes, key = _notes(place), f"{file.absolute()}\0{_WRAPPED}"
    if wrapped != (key in notes):
        others = {name: note for name, note in notes.items() if name != key}
        _save_notes(place, {**others, key: {"file": str(file.absolute()), _WRAPPED: True}} if wrapped else others)


def _unwrapped(notes: dict[str, dict[str, Any]]) -> list[str]:
    """Take the proxy out of the files that it was put into, and their notes out of these. Returns what was done."""
    from projectmem.setup import wrapping

    done = []
    for key, note in list(notes.items()):
        if note.get(_WRAPPED) is not True:
            continue
        try:
            if names := wrapping.unwrap(Path(note["file"])):
                done.append(f"took the proxy from before {', '.join(names)} in {note['file']}")
        except ProjectmemError as exc:
            if Path(note["file"]).exists():
                done.append(f"the proxy is still before the servers in {note['file']}: {exc}")
                continue
        del notes[key]
    return done


def _resident(place: Place) -> resident.Settings:
    """The settings of the log's server. It is started by the next session, or by `projectmem serve`."""
    return resident.make(place.home)


def _outside_git(start: str) -> Place:
    root = os.path.abspath(start)
    if not os.path.isdir(root):
        raise BadInputError(f"{root} is no folder")
    return Place(root, os.path.join(root, places.FOLDER_OUTSIDE_GIT))


def _write_default_policy(place: Place) -> None:
    """The shipped policy as a file to edit. What is in force is what was accepted into the log, else these defaults."""
    from projectmem_gate.policy_text import DEFAULT_TOML

    path = os.path.join(place.home, "policy.toml")
    if not os.path.exists(path):
        files.replace(path, DEFAULT_TOML.encode())


def _notes_path(place: Place) -> str:
    return os.path.join(place.home, "setup.json")


def _notes(place: Place) -> dict[str, dict[str, Any]]:
    """What `init` added, by settings file."""
    try:
        with open(_notes_path(place), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, dict)} if isinstance(found, dict) else {}


def _save_notes(place: Place, notes: dict[str, dict[str, Any]]) -> None:
    if os.path.isdir(place.home):
        files.replace(_notes_path(place), json.dumps(notes, indent=1, sort_keys=True).encode() + b"\n")
