"""Edits Claude Code's settings files: adds our hooks, takes exactly those out again, and leaves all else as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from projectmem_logs import files

from projectmem.errors import ProjectmemError
from projectmem.hook.claude_code import BATCH, EVENTS, FAILURE, HARNESS, PRE, PROMPT
from projectmem.place import SWITCH_VARIABLE
from projectmem.serve.settings import Settings as Resident
from projectmem.setup.command import guarded, hook_args, interpreter, is_ours

Settings = dict[str, Any]


class SettingsError(ProjectmemError):
    """A settings file that cannot be edited safely. Nothing was changed."""


def read(path: Path) -> tuple[Settings, str]:
    """(settings, text); ({}, "") for no file. Raises SettingsError for anything that is no JSON object."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{path} cannot be read ({exc}): nothing was changed") from None
    if not text.strip():
        return {}, text
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        where = f":{exc.lineno}:{exc.colno}" if isinstance(exc, json.JSONDecodeError) else ""
        raise SettingsError(f"{path}{where} is not valid JSON ({exc}): mend it first, nothing was changed") from None
    if not isinstance(data, dict):
        raise SettingsError(f"{path} holds {type(data).__name__}, not a JSON object: nothing was changed")
    return data, text


# What is posted to the server where there is one. The start of a session is not: it is what starts the server.
_POSTED = (PRE, FAILURE, BATCH, PROMPT)


def entries(home: str = "", resident: Resident | None = None) -> dict[str, dict[str, Any]]:
    """Our group of each event, as Claude Code wants it: exec form, absolute interpreter, explicit timeout in seconds.

    With `resident` (the settings of the server for the log in `home`) an HTTP hook stands beside each command that is made
    for every call, and the command does nothing while the server runs: the client lets a call go on when it gets no answer.
    """
    groups = {}
    for event, (timeout, matched) in EVENTS.items():
        command, args = interpreter(), hook_args(HARNESS, event)
        posted = resident is not None and event in _POSTED
        if posted:
            command, args = guarded(home, command, args)
        hooks: list[dict[str, Any]] = [{"type": "command", "command": command, "args": args, "timeout": timeout}]
        if resident is not None and posted:
            hooks.append(_posted(resident, event, timeout))
        groups[event] = {"matcher": "*", "hooks": hooks} if matched else {"hooks": hooks}
    return groups


def _posted(resident: Resident, event: str, timeout: int) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {resident.token}", "X-Projectmem-Gate": f"${SWITCH_VARIABLE}"}
    url = resident.url(HARNESS, event)
    return {"type": "http", "url": url, "headers": headers, "allowedEnvVars": [SWITCH_VARIABLE], "timeout": timeout}


def add(path: Path, home: str = "", resident: Resident | None = None) -> dict[str, Any]:
    """Put our hooks (`entries`) into the file, in place of earlier ones of ours. Idempotent: an equal file is not written again.

    Returns a note for `remove`: {file, created, folder_created, hooks_before (null or the events that had a list)}.
    """
    data, text = read(path)
    before = _hooks(path, data)
    note = {
        "file": str(path),
        "created": not path.exists(),
        "folder_created": not path.parent.exists(),
        "hooks_before": None if before is None else sorted(e for e in before if not _only_ours(before[e])),
    }
    hooks = {event: left for event, groups in (before or {}).items() if (left := _without_ours(groups)) or not groups}
    for event, group in entries(home, resident).items():
        hooks[event] = [*hooks.get(event, []), group]
    _write(path, {**data, "hooks": hooks}, text)
    return note


def remove(path: Path, note: dict[str, Any] | None = None) -> bool:
    """Take our hooks out. `note` is what `add` returned when it was first called. Returns whether anything was ours."""
    data, text = read(path)
    hooks = _hooks(path, data)
    if not hooks or not any(is_ours(hook) for groups in hooks.values() for hook in _all_hooks(groups)):
        return False
    kept_empty = (note or {}).get("hooks_before")
    left = {event: _without_ours(groups) for event, groups in hooks.items()}
    left = {event: groups for event, groups in left.items() if groups or event in (kept_empty or ()) or hooks[event] == []}
    if left or kept_empty is not None:
        data["hooks"] = left
    else:
        del data["hooks"]
    if not data and (note or {}).get("created"):
        path.unlink()
        if (note or {}).get("folder_created") and not any(path.parent.iterdir()):
            path.parent.rmdir()
    else:
        _write(path, data, text)
    return True


def registered(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Our hook entries in the file by event. Raises SettingsError as `read` does."""
    data, _ = read(path)
    hooks = _hooks(path, data) or {}
    found = {event: [h for h in _all_hooks(groups) if is_ours(h)] for event, groups in hooks.items()}
    return {event: ours for event, ours in found.items() if ours}


def problems(path: Path) -> list[str]:
    """What in the file makes Claude Code drop hooks without a word (measured on the client): [] when all is well."""
    try:
        data, _ = read(path)
        hooks = _hooks(path, data) or {}
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
            if matcher is not None and any(is_ours(h) for h in _all_hooks([group])) and not _matches_all(matcher):
                wrong.append(f'{path}: the matcher of {event} is {matcher!r}, so the gate sees only part of the calls: use "*"')
    return wrong


def _matches_all(matcher: object) -> bool:
    return matcher in ("*", "", ".*")


def _hooks(path: Path, data: Settings) -> dict[str, list[Any]] | None:
    hooks = data.get("hooks")
    if hooks is None:
        return None
    if not isinstance(hooks, dict) or any(not isinstance(groups, list) for groups in hooks.values()):
        raise SettingsError(f"{path}: `hooks` is not an object of lists: mend it first, nothing was changed")
    return hooks


def _all_hooks(groups: list[Any]) -> list[Any]:
    found: list[Any] = []
    for group in groups:
        inner = group.get("hooks") if isinstance(group, dict) else None
        found += inner if isinstance(inner, list) else []
    return found


def _only_ours(groups: list[Any]) -> bool:
    inner = _all_hooks(groups)
    return bool(inner) and all(is_ours(hook) for hook in inner)


def _without_ours(groups: list[Any]) -> list[Any]:
    left = []
    for group in groups:
        inner = group.get("hooks") if isinstance(group, dict) else None
        if not isinstance(inner, list) or not any(is_ours(hook) for hook in inner):
            left.append(group)
        elif others := [hook for hook in inner if not is_ours(hook)]:
            left.append({**group, "hooks": others})
    return left


def _write(path: Path, data: Settings, before: str) -> None:
    """Atomically, in the file's own indentation, keeping a symlink a symlink and the file's mode."""
    found = re.search(r"\n([ \t]+)\"", before)
    indent: str | int = found.group(1) if found else 2
    text = json.dumps(data, indent=indent, ensure_ascii=False) + ("" if before and not before.endswith("\n") else "\n")
    if text == before:
        return
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    try:
        files.replace(str(target), text.encode("utf-8"))
        if mode is not None:
            target.chmod(mode)
    except OSError as exc:
        raise SettingsError(f"{path} cannot be written ({exc.strerror or exc}): nothing was changed") from None
