"""Doctor's look at settings that turn hooks off: the harness says nothing then, and every call goes on unchecked.

Where the switches are was measured on the real clients; Claude Code's is in claude_settings.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from projectmem.place import Place
from projectmem.setup import hook_lists
from projectmem.setup.harnesses import Harness
from projectmem.setup.hook_lists import SettingsError

Settings = dict[str, Any]
NAME = "projectmem"  # of our hooks, where a harness's hooks have names


def _gemini(data: Settings) -> str:
    config = data.get("hooksConfig")
    if not isinstance(config, dict):
        return ""
    if config.get("enabled") is False:
        return "`hooksConfig.enabled` is false"
    disabled = config.get("disabled")
    if isinstance(disabled, list) and NAME in disabled:
        return f"`hooksConfig.disabled` names {NAME}"
    return ""


def _all(data: Settings) -> str:
    return "`disableAllHooks` is true" if data.get("disableAllHooks") is True else ""


def _features(data: Settings) -> str:
    features = data.get("features")
    for name in ("hooks", "codex_hooks"):
        if isinstance(features, dict) and features.get(name) is False:
            return f"`features.{name}` is false"
    return ""


_BOTH = ("settings.json", "settings.local.json")
# harness -> (what its settings say against hooks, its settings files in a project, those in its own folder)
_SWITCHES: dict[str, tuple[Callable[[Settings], str], tuple[str, ...], tuple[str, ...]]] = {
    "gemini": (_gemini, (".gemini/settings.json",), ("settings.json",)),
    "qwen": (_all, (".qwen/settings.json",), ("settings.json",)),
    "copilot": (_all, (*(f".github/copilot/{name}" for name in _BOTH), *(f".claude/{name}" for name in _BOTH)), ()),
    "codex": (_features, (".codex/config.toml",), ("config.toml",)),
}


def off(name: str, harness: Harness, place: Place) -> Iterator[str]:
    """What turns the harness's hooks off, and in which file. A file that cannot be read turns nothing off."""
    if name not in _SWITCHES:
        return
    told, project, own = _SWITCHES[name]
    for path in (*(Path(place.root) / rel for rel in project), *(harness.home / rel for rel in own)):
        why = told(_read(path))
        if why:
            yield f"{path}: {why}, so no hook of ours runs in {harness.title}"


def _read(path: Path) -> Settings:
    try:
        if path.suffix == ".toml":
            return tomllib.loads(path.read_text(encoding="utf-8"))
        return hook_lists.read(path, comments=True)[0]
    except (SettingsError, OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
