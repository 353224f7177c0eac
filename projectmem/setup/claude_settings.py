"""Edits Claude Code's settings files: adds our hooks, takes exactly those out again, and leaves all else as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from projectmem.hook.claude_code import BATCH, EVENTS, FAILURE, HARNESS, PRE, PROMPT
from projectmem.place import SWITCH_VARIABLE
from projectmem.serve.settings import Settings as Resident
from projectmem.setup import hook_lists
from projectmem.setup.command import guarded, hook_args, interpreter, is_ours, line
from projectmem.setup.hook_lists import SettingsError, all_hooks, hooks_of, read, registered

__all__ = ["SettingsError", "add", "entries", "problems", "read", "registered", "remove"]

Note = dict[str, Any]


# What is posted to the server where there is one. The start of a session is not: it is what starts the server.
_POSTED = (PRE, FAILURE, BATCH, PROMPT)


def entries(home: str = "", resident: Resident | None = None) -> dict[str, dict[str, Any]]:
    """Our group of each event, as Claude Code wants it: absolute interpreter, explicit timeout in seconds. One line for a shell
    and not a list of words: Copilot CLI runs these settings too, but without the list, and would run the payload as a program.

    With `resident` (the settings of the server for the log in `home`) an HTTP hook stands beside each command that is made
    for every call, and the command does nothing while the server runs: the client lets a call go on when it gets no answer.
    """
    groups = {}
    for event, (timeout, matched) in EVENTS.items():
        command, args = interpreter(), hook_args(HARNESS, event)
        posted = resident is not None and event in _POSTED
        if posted:
            command, args = guarded(home, command, args)
        hooks: list[dict[str, Any]] = [{"type": "command", "command": line(command, args), "timeout": timeout}]
        if resident is not None and posted:
            hooks.append(_posted(resident, event, timeout))
        groups[event] = {"matcher": "*", "hooks": hooks} if matched else {"hooks": hooks}
    return groups


def _posted(resident: Resident, event: str, timeout: int) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {resident.token}", "X-Projectmem-Gate": f"${SWITCH_VARIABLE}"}
    url = resident.url(HARNESS, event)
    return {"type": "http", "url": url, "headers": headers, "allowedEnvVars": [SWITCH_VARIABLE], "timeout": timeout}


def add(path: Path, home: str = "", resident: Resident | None = None, note: Note | None = None) -> Note:
    """Put our hooks (`entries`) into the file, in place of earlier ones of ours. Returns a note for `remove`."""
    return hook_lists.add(path, entries(home, resident), note)


def remove(path: Path, note: Note | None = None) -> bool:
    """Take our hooks out. `note` is what `add` returned. Returns whether anything was ours."""
    return hook_lists.remove(path, note)


def problems(path: Path) -> list[str]:
    """What in the file makes Claude Code drop hooks without a word (measured on the client): [] when all is well."""
    try:
        data, _ = read(path)
        hooks = hooks_of(path, data)
    except SettingsError as exc:
        return [str(exc)]
    wrong = []
    for name, kind in (("permissions", dict), ("env", dict), ("hooks", dict)):
        if name in data and not isinstance(data[name], kind):
            wrong.append(f"{path}: `{name}` is not an object, so Claude Code ignores the whole file")
    if data.get("disableAllHooks") is True:
        wrong.append(f"{path}: `disableAllHooks` is true, so no hook runs")
    for event, groups in hooks.items():
        for group in groups:
            matcher = group.get("matcher") if isinstance(group, dict) else None
            if matcher is not None and any(is_ours(h) for h in all_hooks([group])) and not _matches_all(matcher):
                wrong.append(f'{path}: the matcher of {event} is {matcher!r}, so the gate sees only part of the calls: use "*"')
    return wrong


def _matches_all(matcher: object) -> bool:
    return matcher in ("*", "", ".*")
