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
from projectmem_logs.origin import accept

from projectmem import place as places
from projectmem.errors import BadInputError, NoProjectError, ProjectmemError
from projectmem.importers.claude_code import Counts, backfill
from projectmem.place import Place
from projectmem.serve import settings as resident
from projectmem.setup import claude_settings, compiled, gitignore

HARNESSES = ("claude-code",)
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
            *(f"hooks of Claude Code in {path}" for path in self.settings),
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
    harnesses: Iterable[str] = HARNESSES,
    user: bool = False,
    import_sessions: bool = True,
    allow_network: bool = False,
    http: bool = False,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> Report:
    """Set the project that `start` lies in up. Idempotent.

    user             put the hooks into the person's own settings, for all projects (a project without a log costs little)
    http             hooks that are posted to a resident server, beside the commands, which run while it does not
    import_sessions  backfill from the sessions that the harness keeps of this repository
    progress         wraps the list of session files as it is gone through
    Raises ProjectmemError (the unrelated package, settings that cannot be edited), LogError (network file system).
    """
    refuse_rival()
    unknown = [name for name in harnesses if name not in HARNESSES]
    if unknown:
        raise BadInputError(f"unknown harness `{unknown[0]}`: this version knows {', '.join(HARNESSES)}")
    place = places.locate(start) or _outside_git(start)
    report = Report(place)
    report.created = not place.exists
    if place.foreign:
        report.warnings.append(
            f"the log in {place.home} was not made here: what it holds (failures, labels, rules) counts from now on. "
            "Delete the folder and run `init` again to start afresh"
        )
    settings = settings_path(place, user=user)
    claude_settings.read(settings)  # refuses before anything is made
    init_home(place.home, now, allow_network=allow_network)
    accept(place.home)
    _write_default_policy(place)
    report.uncompiled = compiled.compile_hook()
    if report.uncompiled:
        report.warnings.append(
            f"{len(report.uncompiled)} files of the hook could not be compiled, so every call pays for that "
            f"(first: {report.uncompiled[0]}); run `init` once as a user who may write there"
        )
    _remember(place, claude_settings.add(settings, place.home, _resident(place) if http else None))
    if http and os.name != "nt" and settings.stat().st_mode & 0o077:
        report.warnings.append(
            f"{settings} holds the server's token and can be read by others: `chmod 600` it on a shared machine"
        )
    report.settings.append(str(settings))
    if not user:
        report.excluded = gitignore.exclude(place)
        if gitignore.tracked(place, settings):
            report.warnings.append(f"git tracks {settings}: the hooks in it name paths of this machine, so do not commit them")
    if import_sessions:
        report.counts = backfill(place, now=now, progress=progress)
    return report


def uninit(start: str, *, user: bool = False) -> list[str]:
    """Take the hooks out again, from this work tree's settings (or the person's own); the log stays. Returns what was done."""
    place = places.locate(start)
    if place is None:
        raise NoProjectError(f"no project at {start}: nothing to undo")
    path = settings_path(place, user=user)
    notes = _notes(place)
    done = []
    if claude_settings.remove(path, notes.pop(str(path), None)):
        done.append(f"took the hooks out of {path}")
    _save_notes(place, notes)
    if not user and not any(name.endswith("settings.local.json") for name in notes) and gitignore.include(place):
        done.append(f"took the line out of {gitignore.exclude_file(place)}")
    if place.ready:
        done.append(f"left the log in {place.home} (delete the folder to forget everything)")
    return done


def settings_path(place: Place, *, user: bool = False) -> Path:
    """The settings file that `init` edits: the work tree's local, uncommitted one, or the person's own."""
    if user:
        return Path(places.claude_config_dir()) / "settings.json"
    return Path(place.root) / ".claude" / "settings.local.json"


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


def _remember(place: Place, note: dict[str, Any]) -> None:
    """Keep the first note of a file: later ones describe a file that has our hooks already."""
    notes = _notes(place)
    if note["file"] not in notes:
        _save_notes(place, {**notes, note["file"]: note})


def _save_notes(place: Place, notes: dict[str, dict[str, Any]]) -> None:
    if os.path.isdir(place.home):
        files.replace(_notes_path(place), json.dumps(notes, indent=1, sort_keys=True).encode() + b"\n")
