"""Finds hooks that came with a harness's plugins, extensions or packages: ours, and those of the unrelated `projectmem`.

Where each harness keeps them was seen on the real clients (the versions that the table of harnesses names); npm packages of
opencode and pi in their folders of packages, by their documentation.
"""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.errors import ProjectmemError
from projectmem.place import Place
from projectmem.setup import jsonc
from projectmem.setup.command import MARK
from projectmem.setup.harnesses import CLAUDE, HARNESSES

_HOOKS = ("hooks/hooks.json", "hooks.json")
_WITH_HOOKS_INSIDE = ("qwen-extension.json", "gemini-extension.json", ".claude-plugin/plugin.json", "plugin.json")
_SERVERS = (".mcp.json", *_WITH_HOOKS_INSIDE)
_NAME = "projectmem"
_CODE = ("*.js", "*.ts", "*.mjs", "*.cjs", "dist/*.js", "src/*.ts", "src/*.js", "extensions/*.ts", "extensions/*.js")
_BYTES_MAX = 1 << 20


class Extension:
    """One plugin that has to do with us.

    id, harness  as that harness calls it, and which that is;  file  where its hooks are;  enabled
    whose        the harness that our hooks in it are made for, "" where none in it are ours: then it is another `projectmem`
    """

    __slots__ = ("enabled", "file", "harness", "id", "whose")

    def __init__(self, harness: str, id: str, file: Path, enabled: bool, whose: str) -> None:
        self.harness, self.id, self.file, self.enabled, self.whose = harness, id, file, enabled, whose

    @property
    def runs_ours(self) -> bool:
        """Whether the harness runs our hooks out of it."""
        return self.enabled and self.whose == self.harness


def found(name: str, place: Place) -> list[Extension]:
    """The plugins of this harness, for this work tree, that hold our hooks or another program's of our name. Raises nothing."""
    if name not in _KEPT:
        return []
    listed: dict[Path, Extension] = {}
    for id, folder, enabled in _KEPT[name](HARNESSES[name].home, Path(place.root)):
        for one in _looked_at(name, id, folder, enabled):
            before = listed.get(one.file)
            if before is None or (one.enabled and not before.enabled):
                listed[one.file] = one
    return list(listed.values())


def current(name: str, place: Place) -> Extension | None:
    """The enabled plugin that holds the hooks exactly as `init` would write them into the harness's settings."""
    for one in found(name, place):
        if one.runs_ours:
            try:
                made, text, _ = HARNESSES[name].planned(one.file)
            except ProjectmemError:
                continue
            if made == text:
                return one
    return None


def _looked_at(name: str, id: str, folder: Path, enabled: bool) -> Iterator[Extension]:
    files = [folder] if folder.is_file() else [folder / inner for inner in (*_HOOKS, *_WITH_HOOKS_INSIDE)]
    if folder.is_dir() and name in ("opencode", "pi"):
        files += [path for pattern in _CODE for path in sorted(folder.glob(pattern))[:20]]
    for file in files:
        text = _text(file)
        if MARK in text:
            yield Extension(name, id, file, enabled, _whose(text))
            return
    for file in [*files, *(folder / inner for inner in _SERVERS)]:
        if _foreign(file, _json(file)):
            yield Extension(name, id, file, enabled, "")
            return


def _whose(text: str) -> str:
    """The harness that hooks of ours are made for: the word before the event, which ends the command."""
    for name in HARNESSES:
        if f"' {name} " in text or f'"{name}"' in text:
            return name
    return "?"


def _foreign(file: Path, data: Any) -> bool:
    """Whether a plugin's hooks or servers start a program called `projectmem` that is not ours."""
    if not isinstance(data, dict):
        return False
    servers = data.get("mcpServers")
    servers = servers if isinstance(servers, dict) else data if file.name == ".mcp.json" else {}
    started = [entry for entry in servers.values() if isinstance(entry, dict)]
    if any(_NAME in _words(entry) and not _is_our_server(entry) for entry in started):
        return True
    hooks = data.get("hooks")
    return isinstance(hooks, dict) and _NAME in json.dumps(hooks)


def _words(entry: dict[str, Any]) -> str:
    return json.dumps([entry.get("command"), entry.get("args")])


def _is_our_server(entry: dict[str, Any]) -> bool:
    args = entry.get("args")
    words = [str(entry.get("command")), *map(str, args if isinstance(args, list) else [])]
    return words[1:4] == ["-P", "-m", _NAME] or (words[0].endswith(_NAME) and words[1:2] in (["mcp"], ["proxy"]))


def _claude(home: Path, root: Path) -> Iterator[tuple[str, Path, bool]]:
    """Copies below `plugins/cache`; a marketplace that is a folder here is read where it lies."""
    kept, markets = (_json(home / "plugins" / name) for name in ("installed_plugins.json", "known_marketplaces.json"))
    enabled: dict[str, Any] = {}
    for file in (home / "settings.json", root / ".claude" / "settings.json", root / ".claude" / "settings.local.json"):
        given = _json(file).get("enabledPlugins")
        enabled |= given if isinstance(given, dict) else {}
    plugins = kept.get("plugins")
    for id, rows in (plugins if isinstance(plugins, dict) else {}).items():
        for row in rows if isinstance(rows, list) else [rows]:
            if not isinstance(row, dict) or str(row.get("projectPath") or root) != str(root):
                continue
            copy = Path(str(row.get("installPath") or ""))
            yield id, _lies_in(id, markets) or copy, enabled.get(id) is True


def _lies_in(id: str, markets: dict[str, Any]) -> Path | None:
    """The folder of a plugin of a marketplace that is a folder of this machine."""
    name, _, market = id.rpartition("@")
    known = markets.get(market)
    source = known.get("source") if isinstance(known, dict) else None
    if not isinstance(source, dict) or source.get("source") != "directory" or not isinstance(source.get("path"), str):
        return None
    folder = Path(source["path"])
    plugins = _json(folder / ".claude-plugin" / "marketplace.json").get("plugins")
    for row in plugins if isinstance(plugins, list) else []:
        if isinstance(row, dict) and row.get("name") == name and isinstance(row.get("source"), str):
            return Path(os.path.normpath(folder / row["source"]))
    return None


def _codex(home: Path, root: Path) -> Iterator[tuple[str, Path, bool]]:
    try:
        plugins = tomllib.loads(_text(home / "config.toml")).get("plugins")
    except tomllib.TOMLDecodeError:
        plugins = None
    for id, given in (plugins if isinstance(plugins, dict) else {}).items():
        name, _, market = id.rpartition("@")
        enabled = isinstance(given, dict) and given.get("enabled") is True
        versions = sorted(_folders(home / "plugins" / "cache" / market / name), key=lambda p: p.stat().st_mtime)
        yield from ((id, folder, enabled) for folder in versions[-1:])


def _copilot(home: Path, root: Path) -> Iterator[tuple[str, Path, bool]]:
    settings = _json(home / "settings.json")
    enabled, markets = (settings.get(key) for key in ("enabledPlugins", "extraKnownMarketplaces"))
    for id, on in (enabled if isinstance(enabled, dict) else {}).items():
        name, _, market = id.rpartition("@")
        lies = _lies_in(id, markets if isinstance(markets, dict) else {})
        yield id, lies or home / "installed-plugins" / market / name, on is True


def _extensions(home: Path, root: Path) -> Iterator[tuple[str, Path, bool]]:
    """Gemini's and Qwen's: a folder each, or a link to one."""
    folder = home / "extensions"
    rules = _json(folder / "extension-enablement.json")
    for inner in _folders(folder):
        source = [_json(inner / name) for name in (".gemini-extension-install.json", ".qwen-extension-install.json")]
        linked = next((row["source"] for row in source if row.get("type") == "link" and isinstance(row.get("source"), str)), "")
        yield inner.name, Path(linked) if linked else inner, _is_enabled(rules.get(inner.name), root)


def _is_enabled(given: Any, root: Path) -> bool:
    """The last of the rules that speak of this folder: `/folder/*` switches on, `!/folder/*` off; without one it is on."""
    enabled, here = True, f"{root.as_posix()}/"
    rules = given.get("overrides") if isinstance(given, dict) else None
    for rule in rules if isinstance(rules, list) else []:
        path = str(rule).removeprefix("!")
        folder = path.removesuffix("*").rstrip("/") + "/"
        if here == folder or (path.endswith("*") and here.startswith(folder)):
            enabled = not str(rule).startswith("!")
    return enabled


def _opencode(home: Path, root: Path) -> Iterator[tuple[str, Path, bool]]:
    cache = Path(os.path.expanduser("~/.cache/opencode"))
    for folder in (home, root, root / ".opencode"):
        for file in ("opencode.json", "opencode.jsonc", "config.json"):
            for named in _list(_json(folder / file).get("plugin")):
                package = named if named.rfind("@") < 1 else named[: named.rfind("@")]
                places = [cache / "node_modules" / package, cache / "packages" / named / "node_modules" / package]
                if named.startswith(("file://", ".", "/", "~")):
                    places = [folder / os.path.expanduser(named.removeprefix("file://"))]
                yield from ((named, Path(os.path.normpath(path)), True) for path in places)


def _pi(home: Path, root: Path) -> Iterator[tuple[str, Path, bool]]:
    for folder in (home, root / ".pi"):
        settings = _json(folder / "settings.json")
        for named in [*_list(settings.get("packages")), *_list(settings.get("extensions"))]:
            if named.startswith("npm:"):
                package = named[4:] if named.rfind("@") < 5 else named[4 : named.rfind("@")]
                yield from ((named, kept / package, True) for kept in (folder / "npm" / "node_modules", _global_packages()))
            elif "://" not in named and not named.startswith("git:"):
                yield named, Path(os.path.normpath(folder / os.path.expanduser(named))), True


_KEPT = {
    CLAUDE: _claude,
    "codex": _codex,
    "copilot": _copilot,
    "gemini": _extensions,
    "qwen": _extensions,
    "opencode": _opencode,
    "pi": _pi,
}


def _global_packages() -> Path:
    """Where `npm install -g` puts packages, as far as it can be told without running npm."""
    npm = shutil.which("npm")
    return Path(npm).parent.parent / "lib" / "node_modules" if npm else Path(os.devnull)


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(inner for inner in path.iterdir() if inner.is_dir())
    except OSError:
        return []


def _list(given: Any) -> list[str]:
    """The texts of a list, or of its objects and lists the names."""
    rows = given if isinstance(given, list) else []
    named = [row.get("source") if isinstance(row, dict) else row[0] if isinstance(row, list) and row else row for row in rows]
    return [row for row in named if isinstance(row, str)]


def _text(file: Path) -> str:
    try:
        with open(file, "rb") as opened:
            return opened.read(_BYTES_MAX).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _json(file: Path) -> dict[str, Any]:
    try:
        data = jsonc.parse(_text(file)).data
    except jsonc.JsonError:
        return {}
    return data if isinstance(data, dict) else {}
