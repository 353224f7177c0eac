"""Whether a harness trusts what it is to run: one that does not passes over the hooks of a project without a word.

Measured on the real clients (the versions that the table of harnesses names). Codex keeps what a person trusted, a hash of each
hook and each project, in its config.toml; Gemini CLI and Qwen Code keep folders in trustedFolders.json (Gemini CLI asks for
trust unless its settings say otherwise, Qwen Code only where they say so); Copilot CLI keeps folders in its config.json. A
person's own hooks need no trusted folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem import place as places
from projectmem.place import Place
from projectmem.setup import hook_lists
from projectmem.setup.command import is_ours
from projectmem.setup.harnesses import HARNESSES, Harness
from projectmem.setup.hook_lists import SettingsError

_HASHED = frozenset(("type", "command", "timeout", "async", "statusMessage"))
_ASKED = {"gemini": True, "qwen": False}  # whether folders must be trusted where the settings say nothing
_HOOKS = "start `codex`, choose `/hooks` and trust them"


class Doubt:
    """A file whose hooks are passed over.  detail  what and why;  remedy;  decided  a person said so, or trusted other ones; else
    nobody was asked yet
    """

    __slots__ = ("decided", "detail", "remedy")

    def __init__(self, detail: str, remedy: str, decided: bool) -> None:
        self.detail, self.remedy, self.decided = detail, remedy, decided


def doubts(name: str, place: Place, held: list[Path]) -> Iterator[Doubt]:
    """Those of the files with our hooks (`held`) that the harness would not run. Raises nothing."""
    harness = HARNESSES[name]
    for path in held:
        own = path == harness.path(place, user=True) or not path.is_relative_to(place.root)
        if name == "codex":
            yield from _codex(harness, place, path, own)
        elif name in (*_ASKED, "copilot") and not own:
            parts = len(Path(harness.project).parts)
            trusted = _folder(name, harness, path.parents[parts - 1])
            if trusted is not True:
                why = "is told not to trust" if trusted is False else "has not been told to trust"
                what = f"{harness.title} {why} the folder of {path}: it passes over the hooks in it, without a word"
                remedy = f"start `{harness.program}` there and trust the folder"
                yield Doubt(what, f"{remedy}; or `projectmem init --harness {name} --user`", trusted is False)


def _codex(harness: Harness, place: Place, path: Path, own: bool) -> Iterator[Doubt]:
    config = _toml(harness.home / "config.toml")
    if not own:
        level = _project_level(config, place)
        if level != "trusted":
            why = "is told not to trust" if level else "has not been told to trust"
            what = f"Codex {why} {place.root}: it passes over the hooks in {path}, without a word"
            yield Doubt(what, f"start `codex` there and trust the folder; then {_HOOKS}", bool(level))
            return
    states: dict[str, list[str]] = {"": [], "new": [], "changed": [], "off": []}
    for event, key, digest in _keys(path):
        states[_hook_state(config, key, digest)].append(event)
    if not (states[""] or states["changed"] or states["off"]) and states["new"]:
        yield Doubt(f"Codex has not been told to trust the hooks in {path}: it passes over them", _HOOKS, False)
        return
    said = {
        "new": "was not told to trust the hooks of",
        "changed": "was told to trust other hooks (an upgrade changes them) of",
        "off": "was told to switch off the hooks of",
    }
    for state, words in said.items():
        if states[state]:
            what = f"Codex {words} {', '.join(states[state])} in {path}: it passes over them, without a word"
            yield Doubt(what, _HOOKS.replace("trust them", "switch them on") if state == "off" else _HOOKS, True)


def _project_level(config: dict[str, Any], place: Place) -> str:
    """What Codex was told of the work tree or of its repository: "trusted", something else, "" for nothing."""
    projects = config.get("projects")
    main = os.path.dirname(place.common_dir) if os.path.basename(place.common_dir) == ".git" else ""
    levels = []
    for folder in (place.root, main):
        for spelled in dict.fromkeys((folder, os.path.realpath(folder))) if folder else ():
            given = projects.get(spelled) if isinstance(projects, dict) else None
            levels += [str(given["trust_level"])] if isinstance(given, dict) and given.get("trust_level") else []
    return levels[0] if levels else ""


def _keys(path: Path) -> Iterator[tuple[str, str, str]]:
    """(event, Codex's name of the hook, the hash that it keeps of a trusted one; "" where that is not known) of our hooks."""
    try:
        hooks = hook_lists.hooks_of(path, hook_lists.read(path)[0])
    except SettingsError:
        return
    for event, groups in hooks.items():
        called = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for i, group in enumerate(groups):
            for j, hook in enumerate(hook_lists.all_hooks([group])):
                if is_ours(hook):
                    yield event, f"{path}:{called}:{i}:{j}", _hash(called, group, hook)


def _hash(event: str, group: dict[str, Any], hook: dict[str, Any]) -> str:
    if not {"type", "command", "timeout"} <= set(hook) <= _HASHED:
        return ""
    hashed: dict[str, Any] = {"event_name": event, "hooks": [{"async": False, **hook}]}
    if group.get("matcher") is not None:
        hashed["matcher"] = group["matcher"]
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _hook_state(config: dict[str, Any], key: str, digest: str) -> str:
    table = config.get("hooks")
    known = table.get("state") if isinstance(table, dict) else None
    state = known.get(key) if isinstance(known, dict) else None
    if not isinstance(state, dict):
        return "new"
    if state.get("enabled") is False:
        return "off"
    if not state.get("trusted_hash"):
        return "new"
    return "changed" if digest and state["trusted_hash"] != digest else ""


def _folder(name: str, harness: Harness, folder: Path) -> bool | None:
    """Whether the harness trusts a folder; None where nobody was asked."""
    if name == "copilot":
        data = _json(harness.home / "config.json")
        listed = [row for key in ("trusted_folders", "trustedFolders") for row in _list(data.get(key))]
        return True if any(_inside(folder, row) for row in listed) else None
    if name == "gemini" and places.env("GEMINI_CLI_TRUST_WORKSPACE").lower() == "true":
        return True
    security = _json(harness.home / "settings.json").get("security")
    asked = security.get("folderTrust") if isinstance(security, dict) else None
    if not (asked.get("enabled", _ASKED[name]) if isinstance(asked, dict) else _ASKED[name]):
        return True
    own = places.env("GEMINI_CLI_TRUSTED_FOLDERS_PATH") if name == "gemini" else ""
    rules = _json(Path(own) if own else harness.home / "trustedFolders.json")
    found: tuple[int, bool] | None = None
    for given, level in rules.items():
        about = os.path.dirname(given) if level == "TRUST_PARENT" else given
        if level in ("TRUST_FOLDER", "TRUST_PARENT", "DO_NOT_TRUST") and _inside(folder, about):
            best = (len(os.path.realpath(about)), level != "DO_NOT_TRUST")
            found = best if found is None or best[0] > found[0] else found
    return found[1] if found else None


def _inside(folder: Path, other: str) -> bool:
    return os.path.isabs(other) and "\0" not in other and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(other))


def _list(given: Any) -> list[str]:
    return [row for row in given if isinstance(row, str)] if isinstance(given, list) else []


def _json(path: Path) -> dict[str, Any]:
    try:
        return hook_lists.read(path, comments=True)[0]
    except SettingsError:
        return {}


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
