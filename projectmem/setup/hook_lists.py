"""Our hooks in a settings file that groups hooks by event, as Claude Code, Codex, Gemini, Qwen, Droid and others do:
`{"hooks": {EVENT: [{"matcher", "hooks": [{"type": "command", ...}]}]}}`. Adds ours, takes exactly those out again; every
other byte of the file stays.
"""

from __future__ import annotations

import hashlib
import os
import stat
from itertools import count
from pathlib import Path
from typing import Any

from projectmem_logs import files

from projectmem.errors import ProjectmemError
from projectmem.setup import jsonc
from projectmem.setup.command import is_ours

Settings = dict[str, Any]
Group = dict[str, Any]


class SettingsError(ProjectmemError):
    """A settings file that cannot be edited safely. Nothing was changed."""


def unread(path: Path, exc: OSError | UnicodeDecodeError) -> SettingsError:
    """What is said of a file that cannot be read."""
    why = (exc.strerror or type(exc).__name__) if isinstance(exc, OSError) else f"not UTF-8 text, byte {exc.start + 1}"
    return SettingsError(f"{path} cannot be read ({why}): nothing was changed")


def text_of(path: Path) -> str:
    """The file's text, "" for no file. Raises SettingsError where it cannot be read."""
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a pipe is read for ever
            raise SettingsError(f"{path} is no regular file: nothing was changed")
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as exc:
        raise unread(path, exc) from None


def read(path: Path, *, comments: bool = False) -> tuple[Settings, str]:
    """(settings, text); ({}, "") for no file. Raises SettingsError for anything that is no JSON object."""
    text = text_of(path)
    if jsonc.blank(text):
        return {}, text
    try:
        data = jsonc.parse(text, comments=comments).data
    except jsonc.JsonError as exc:
        if exc.comment and not comments:
            line = exc.where.partition(":")[0]
            what = f"the harness allows no comments in this file (line {line}): take it out first, nothing was changed"
            raise SettingsError(f"{path}: {what}") from None
        raise SettingsError(f"{path}:{exc.where} is not valid JSON ({exc}): mend it first, nothing was changed") from None
    if not isinstance(data, dict):
        raise SettingsError(f"{path} holds {type(data).__name__}, not a JSON object: nothing was changed")
    return data, text


def add(
    path: Path,
    groups: dict[str, Group],
    note: dict[str, Any] | None = None,
    *,
    comments: bool = False,
    top: Settings | None = None,
) -> dict[str, Any]:
    """Put one group for each event into the file, in place of earlier ones of ours. An equal file is not written again.

    note  what an earlier `add` returned;  top  what a new file holds besides
    Returns a note for `remove`: {file, created, folders that were made, after: hash of what was written, undo: see `_undo`}.
    """
    made, text, base = planned(path, groups, note, comments=comments, top=top)
    folders = [str(p) for p in path.parents if not p.exists()]
    first = {"file": str(path), "created": not path.exists(), "folders": folders} if note is None else note
    if made != text:
        write(path, made)
    elif note is not None:
        return note
    return {**first, "after": digest(made), "undo": _undo(base, made)}


def planned(
    path: Path,
    groups: dict[str, Group],
    note: dict[str, Any] | None = None,
    *,
    comments: bool = False,
    top: Settings | None = None,
) -> tuple[str, str, str]:
    """(what `add` would make of the file, the file as it is, the file without our hooks). Raises SettingsError."""
    data, text = read(path, comments=comments)
    base = undone(text, note["undo"]) if note and _untouched(text, note) else _without(path, text, comments)
    if _holds(hooks_of(path, data), groups):  # however it is laid out: others, and formatters, write these files too
        return text, text, base
    return _with(path, base, groups, comments, top or {}), text, base


def _holds(found: dict[str, list[Any]], groups: dict[str, Group]) -> bool:
    """Whether exactly these groups of ours are in the lists."""
    ours = {event: [g for g in held if any(is_ours(hook) for hook in all_hooks([g]))] for event, held in found.items()}
    return {event: held for event, held in ours.items() if held} == {event: [group] for event, group in groups.items()}


def remove(path: Path, note: dict[str, Any] | None = None, *, comments: bool = False) -> bool:
    """Take our hooks out. `note` is what `add` returned when it was first called: where nobody else wrote since, the file is
    what it was before, byte for byte. Returns whether anything was ours."""
    _, text = read(path, comments=comments)
    if not any(registered(path, comments=comments).values()):
        return False
    left = undone(text, (note or {})["undo"]) if _untouched(text, note) else _without(path, text, comments)
    note = note or {}
    if note.get("created") and not jsonc.parse(left or "{}", comments=comments).data:
        unlink(path, note)
    else:
        write(path, left)
    return True


def registered(path: Path, *, comments: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Our hook entries in the file by event. Raises SettingsError as `read` does."""
    data, _ = read(path, comments=comments)
    found = {event: [h for h in all_hooks(groups) if is_ours(h)] for event, groups in hooks_of(path, data).items()}
    return {event: ours for event, ours in found.items() if ours}


def hooks_of(path: Path, data: Settings) -> dict[str, list[Any]]:
    """The lists of groups by event. Raises SettingsError where they are something else."""
    hooks = data.get("hooks")
    if hooks is None:
        return {}
    if not isinstance(hooks, dict) or any(not isinstance(groups, list) for groups in hooks.values()):
        raise SettingsError(f"{path}: `hooks` is not an object of lists: mend it first, nothing was changed")
    return hooks


def all_hooks(groups: list[Any]) -> list[Any]:
    """Every hook of an event's groups; a group may also be a hook itself (Copilot)."""
    found: list[Any] = []
    for group in groups:
        inner = group.get("hooks") if isinstance(group, dict) else None
        found += inner if isinstance(inner, list) else [group] if isinstance(group, dict) else []
    return found


def _with(path: Path, text: str, groups: dict[str, Group], comments: bool, top: Settings) -> str:
    if jsonc.blank(text):
        mark = jsonc.MARK if text.startswith(jsonc.MARK) else ""
        return mark + jsonc.shown({**top, "hooks": {event: [group] for event, group in groups.items()}}, "  ", 0) + "\n"
    root = jsonc.parse(text, comments=comments)
    hooks_of(path, root.data)
    if "hooks" not in root.members:
        return jsonc.applied(text, [jsonc.inserted(text, root, 0, {e: [g] for e, g in groups.items()}, "hooks")])
    hooks = root.members["hooks"][1]
    if hooks.data is None:
        text = jsonc.applied(text, [(hooks.start, hooks.end, "{}")])
    for event, group in groups.items():
        hooks = jsonc.parse(text, comments=comments).members["hooks"][1]
        if event in hooks.members:
            edit = jsonc.inserted(text, hooks.members[event][1], 2, group)
        else:
            edit = jsonc.inserted(text, hooks, 1, [group], event)
        text = jsonc.applied(text, [edit])
    return text


def _without(path: Path, text: str, comments: bool) -> str:
    """The text without our hooks, and without what only they were in."""
    while not jsonc.blank(text):
        root = jsonc.parse(text, comments=comments)
        hooks_of(path, root.data)
        edit = _first_of_ours(text, root)
        if edit is None:
            break
        text = jsonc.applied(text, [edit])
    return text


def _first_of_ours(text: str, root: jsonc.Node) -> jsonc.Edit | None:
    if "hooks" not in root.members:
        return None
    hooks = root.members["hooks"][1]
    for number, (_, groups) in enumerate(hooks.members.values()):
        for index, group in enumerate(groups.items):
            inner = group.members["hooks"][1] if "hooks" in group.members else None
            ours = [is_ours(hook.data) for hook in inner.items] if inner else [is_ours(group.data)]
            if not any(ours):
                continue
            if inner is not None and not all(ours):
                return jsonc.removed(text, inner, ours.index(True))
            if len(groups.items) > 1:
                return jsonc.removed(text, groups, index)
            if len(hooks.members) > 1:
                return jsonc.removed(text, hooks, number)
            return jsonc.removed(text, root, list(root.members).index("hooks"))
    return None


def _undo(before: str, after: str) -> list[Any]:
    """How to get `before` from `after`, without a copy of what others wrote: the length of what both begin with and end with,
    and what stood between them (spaces and braces at most, or the two are no edit of ours)."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return [head, tail, before[head : len(before) - tail]]


def undone(text: str, undo: list[Any]) -> str:
    """What the file was before."""
    head, tail, middle = undo
    return f"{text[:head]}{middle}{text[len(text) - tail :] if tail else ''}"


def _untouched(text: str, note: dict[str, Any] | None) -> bool:
    return note is not None and bool(note.get("undo")) and note.get("after") == digest(text)


def digest(text: str) -> str:
    """What a note has of a text that was written."""
    return hashlib.sha256(text.encode()).hexdigest()


def write(path: Path, text: str) -> None:
    """Atomically, keeping a symlink a symlink and the file's mode. Raises SettingsError."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """The same for bytes."""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        files.replace(str(target), data)
        if mode is not None:
            target.chmod(mode)
    except OSError as exc:
        raise SettingsError(f"{path} cannot be written ({exc.strerror or exc}): nothing was changed") from None


def unlink(path: Path, note: dict[str, Any]) -> None:
    """Delete a file that we made, and the folders that we made for it where they are empty. A symlink to it stays."""
    path.resolve().unlink()
    made = [Path(folder) for folder in note.get("folders") or []]
    if note.get("folder_created"):  # as older versions noted it
        made = [path.parent]
    for folder in made:
        try:
            folder.rmdir()
        except OSError:
            break


def put_aside(path: Path) -> Path:
    """Give a file that somebody changed another name, which no harness reads; returns that. Raises SettingsError."""
    target = path.resolve()
    aside = next(name for n in count() if not os.path.lexists(name := target.with_name(f"{target.name}.kept{n or ''}")))
    try:
        target.rename(aside)
    except OSError as exc:
        raise SettingsError(f"{path} cannot be put aside ({exc.strerror or exc}): nothing was changed") from None
    return aside
