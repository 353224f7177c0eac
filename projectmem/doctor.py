"""Proves that the gate works here, or says what is wrong and what to do: hooks are fired, the log and snapshot are checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from projectmem import clock
from projectmem import place as places
from projectmem.errors import ProjectmemError
from projectmem.place import Place
from projectmem.setup import claude_settings, compiled, gitignore
from projectmem.setup.command import package_folders
from projectmem.setup.init import refuse_rival
from projectmem.setup.trial import Trial

OK, NOTE, FAIL = "ok", "note", "fail"


class Check:
    """One finding.  status ok | note (works, but look at it) | fail;  remedy: what to do, "" where nothing is to be done"""

    __slots__ = ("detail", "name", "remedy", "status")

    def __init__(self, name: str, status: str, detail: str, remedy: str = "") -> None:
        self.name, self.status, self.detail, self.remedy = name, status, detail, remedy

    def to_data(self) -> dict[str, str]:
        """The finding as JSON data."""
        return {slot: getattr(self, slot) for slot in ("name", "status", "detail", "remedy")}


def examine(start: str, *, now: int, fire: bool = True) -> Iterator[Check]:
    """Every check in turn, each contained: one that cannot be made is a finding and not the end.

    fire  run the registered commands (in a scratch project of their own; about a second)
    """
    yield from _contained("environment", _environment)
    place = places.locate(start)
    if place is None or not place.ready:
        yield Check("project", FAIL, f"no projectmem log for {start}", "run `projectmem init` in the project")
        return
    yield Check("project", OK, f"log in {place.home}")
    yield from _contained("switch", _switch)
    yield from _contained("settings", lambda: _settings(place))
    yield from _contained("compiled files", _compiled)
    if fire:
        yield from _contained("hooks fire", lambda: _fired(place))
    yield from _contained("log", lambda: _log(place, now))
    yield from _contained("snapshot", lambda: _snapshot(place))
    yield from _contained("hook.log", lambda: _hook_log(place, now))


def healthy(checks: list[Check]) -> bool:
    """Whether nothing failed."""
    return all(check.status != FAIL for check in checks)


def _contained(name: str, checks: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from checks()
    except Exception as exc:
        yield Check(name, FAIL, f"could not be checked ({type(exc).__name__}: {exc})", "report this with the text above")


def _environment() -> Iterator[Check]:
    try:
        refuse_rival()
        folders = package_folders()
    except ProjectmemError as exc:
        yield Check("installation", FAIL, str(exc), "see the message")
        return
    yield Check("installation", OK, f"packages in {', '.join(folders)}")


def _switch() -> Iterator[Check]:
    if places.switched_off():
        yield Check(
            "switch", FAIL, f"{places.SWITCH_VARIABLE} is off, so no hook does anything", f"unset {places.SWITCH_VARIABLE}"
        )


def settings_files(place: Place) -> list[Path]:
    """The settings files that Claude Code reads for this work tree, the most particular first."""
    own = Path(place.root) / ".claude"
    return [own / "settings.local.json", own / "settings.json", Path(places.claude_config_dir()) / "settings.json"]


def _settings(place: Place) -> Iterator[Check]:
    holders = []
    for path in settings_files(place):
        for text in claude_settings.problems(path):
            yield Check("settings", FAIL, text, "mend the file")
        try:
            if ours := claude_settings.registered(path):
                holders.append(path)
                yield from _complete(place, path, ours)
        except claude_settings.SettingsError:
            continue  # told above
    if not holders:
        yield Check("settings", FAIL, "the hooks are in no settings file that Claude Code reads here", "run `projectmem init`")
    elif len(holders) > 1:
        names = ", ".join(map(str, holders))
        yield Check(
            "settings",
            NOTE,
            f"every call runs the hooks {len(holders)} times: {names}",
            "run `projectmem uninit` for one of them",
        )
    exclude = gitignore.exclude_file(place)
    if holders and holders[0].name == "settings.local.json" and exclude and not _excluded(exclude):
        yield Check("settings", NOTE, f"{holders[0]} is not in {exclude} and may be committed", "run `projectmem init`")


def _complete(place: Place, path: Path, ours: dict[str, list[dict[str, Any]]]) -> Iterator[Check]:
    from projectmem.serve import settings as resident

    posted = any(hook.get("type") == "http" for hooks in ours.values() for hook in hooks)
    wanted = claude_settings.entries(place.home, resident.read(place.home) if posted else None)
    missing = [event for event in wanted if event not in ours]
    stale = [event for event, group in wanted.items() if event in ours and group["hooks"] != ours[event]]
    if missing:
        yield Check("settings", FAIL, f"{path} lacks the hooks of {', '.join(missing)}", "run `projectmem init`")
    if stale:
        yield Check(
            "settings", NOTE, f"{path}: the hooks of {', '.join(stale)} were written by another installation or version",
            "run `projectmem init` with the one you want",
        )  # fmt: skip
    if not missing and not stale:
        yield Check("settings", OK, f"hooks of {len(ours)} events in {path}")


def _excluded(exclude: Path) -> bool:
    return exclude.exists() and gitignore.PATTERN in exclude.read_text(encoding="utf-8", errors="surrogateescape").splitlines()


def _compiled() -> Iterator[Check]:
    missing = compiled.uncompiled()
    if missing:
        yield Check(
            "compiled files",
            NOTE,
            f"{len(missing)} files are compiled anew at every call (first: {missing[0]})",
            "run `projectmem init`",
        )


def _fired(place: Place) -> Iterator[Check]:
    """Run the registered commands as the harness would, in a scratch project, and look at what they did."""
    for path in settings_files(place):
        try:
            ours = claude_settings.registered(path)
        except claude_settings.SettingsError:
            continue
        if not ours:
            continue
        with Trial({event: hooks[0] for event, hooks in ours.items()}) as trial:
            for finding in trial.findings():
                status = OK if finding.held else FAIL
                yield Check(
                    f"fires: {finding.event}", status, finding.detail, "" if finding.held else "run `projectmem init` again"
                )


def _log(place: Place, now: int) -> Iterator[Check]:
    from projectmem_logs.verify import verify

    folder = os.path.join(place.home, "log")
    if not os.access(folder, os.W_OK):
        yield Check("log", FAIL, f"{folder} cannot be written: nothing is recorded", "let this user write there")
    report = verify(place.home)
    for text in clock.of_report(report, now):
        yield Check("clock", NOTE, text)
    if report.ok:
        yield Check("log", OK, f"{report.events} events verify")
        return
    for problem in report.problems[:20]:
        yield Check("log", FAIL, f"{problem.stream} {problem.segment} at {problem.offset}: {problem.detail}", str(problem.remedy))


def _snapshot(place: Place) -> Iterator[Check]:
    from projectmem_logs.store import LogStore
    from projectmem_projections.errors import ProjectionError
    from projectmem_projections.snapshot import Snapshot

    path = os.path.join(place.home, "projections", "gate.sqlite")
    if not os.path.exists(path):
        yield Check("snapshot", NOTE, "not built yet; the next call builds it")
        return
    try:
        with Snapshot(path) as state:
            cursor, head = state.cursor(), LogStore(place.home).head()
    except ProjectionError as exc:
        yield Check("snapshot", FAIL, str(exc), "run `projectmem rebuild`")
        return
    behind = {stream: seq - cursor.get(stream, 0) for stream, seq in head.items() if seq != cursor.get(stream, 0)}
    if behind:
        text = ", ".join(f"{count} events of {stream}" for stream, count in behind.items())
        yield Check("snapshot", NOTE, f"behind the log by {text}; the next call catches up")
    else:
        yield Check("snapshot", OK, f"at the end of the log ({sum(head.values())} events)")


def _hook_log(place: Place, now: int) -> Iterator[Check]:
    path = os.path.join(place.home, "hook.log")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    import time

    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now // 1_000_000 - 86_400))
    recent = [line for line in lines if line >= since]
    if recent:
        yield Check("hook.log", NOTE, f"{len(recent)} lines within a day, the last: {recent[-1][:300]}", f"look at {path}")
