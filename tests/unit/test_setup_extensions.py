"""Hooks that came with plugins, extensions and packages of the harnesses: found, counted once, and said where they cannot work.

The layouts are those that the real clients left behind when they installed a plugin from a folder.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from projectmem import place as places
from projectmem.setup import checks, claude_settings, extensions, opencode_plugin, pi_extension, plugin
from projectmem.setup import init as setup
from projectmem.setup.harnesses import HARNESSES
from projectmem.setup.hook_lists import write

NOW = 1_790_000_000_000_000


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository with a log, and a home of its own."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "QWEN_HOME", "COPILOT_HOME", "OPENCODE_CONFIG_DIR", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    folder = tmp_path / "repo"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    setup.init(str(folder), now=NOW, import_sessions=False, harnesses=())
    return folder


def _json(path: Path, data: Any) -> Path:
    write(path, json.dumps(data))
    return path


def _hooks(name: str) -> Any:
    groups = HARNESSES[name].groups
    assert groups is not None
    return {"hooks": {event: [group] for event, group in groups().items()}}


def _claude(home: Path, root: Path, on: bool) -> Path:
    copy = home / ".claude/plugins/cache/market/shop/1.0.0"
    row = {"scope": "user", "installPath": str(copy), "version": "1.0.0"}
    _json(home / ".claude/plugins/installed_plugins.json", {"version": 2, "plugins": {"shop@market": [row]}})
    source = {"source": {"source": "github", "repo": "a/b"}}
    _json(home / ".claude/plugins/known_marketplaces.json", {"market": source})
    _json(home / ".claude/settings.json", {"enabledPlugins": {"shop@market": on}})
    return _json(copy / "hooks/hooks.json", _hooks("claude-code"))


def _claude_folder(home: Path, root: Path, on: bool) -> Path:
    lies = home / "market"
    row = {"scope": "project", "installPath": str(home / "copy"), "projectPath": str(root)}
    _json(home / ".claude/plugins/installed_plugins.json", {"plugins": {"projectmem@projectmem": [row]}})
    source = {"source": {"source": "directory", "path": str(lies)}}
    _json(home / ".claude/plugins/known_marketplaces.json", {"projectmem": source})
    _json(home / ".claude/settings.json", {"enabledPlugins": {"projectmem@projectmem": not on}})
    _json(root / ".claude/settings.local.json", {"enabledPlugins": {"projectmem@projectmem": on}})
    return plugin.write(lies)


def _codex(home: Path, root: Path, on: bool) -> Path:
    write(home / ".codex/config.toml", f'[plugins."shop@market"]\nenabled = {"true" if on else "false"}\n')
    return _json(home / ".codex/plugins/cache/market/shop/1.0.0/hooks/hooks.json", _hooks("codex"))


def _copilot(home: Path, root: Path, on: bool) -> Path:
    source = {"source": {"source": "directory", "path": str(home / "market")}}
    _json(home / ".copilot/settings.json", {"extraKnownMarketplaces": {"market": source}, "enabledPlugins": {"shop@market": on}})
    _json(home / "market/.claude-plugin/marketplace.json", {"plugins": [{"name": "shop", "source": "./shop"}]})
    make = HARNESSES["copilot"].text
    assert make is not None
    write(home / "market/shop/hooks.json", make())
    return home / "market/shop/hooks.json"


def _gemini(home: Path, root: Path, on: bool) -> Path:
    rules = ["!/elsewhere/*", f"{'' if on else '!'}{root.parent}/*"]
    _json(home / ".gemini/extensions/extension-enablement.json", {"shop": {"overrides": rules}})
    _json(home / ".gemini/extensions/shop/.gemini-extension-install.json", {"source": str(home / "linked"), "type": "link"})
    return _json(home / "linked/hooks/hooks.json", _hooks("gemini"))


def _qwen(home: Path, root: Path, on: bool) -> Path:
    _json(home / ".qwen/extensions/extension-enablement.json", {} if on else {"shop": {"overrides": [f"!{root}/"]}})
    return _json(home / ".qwen/extensions/shop/qwen-extension.json", {"name": "shop", **_hooks("qwen")})


def _opencode(home: Path, root: Path, on: bool) -> Path:
    _json(home / ".config/opencode/opencode.json", {"plugin": ["@own/gate@1.2.0"] if on else []})
    path = home / ".cache/opencode/packages/@own/gate@1.2.0/node_modules/@own/gate/index.js"
    write(path, opencode_plugin.text())
    return path


def _pi(home: Path, root: Path, on: bool) -> Path:
    _json(root / ".pi/settings.json", {"packages": ["../shared"] if on else []})
    write(root / "shared/gate.ts", pi_extension.text())
    return root / "shared/gate.ts"


Layout = Callable[[Path, Path, bool], Path]
LAYOUTS: list[tuple[str, Layout]] = [
    ("claude-code", _claude), ("claude-code", _claude_folder), ("codex", _codex), ("copilot", _copilot), ("gemini", _gemini),
    ("qwen", _qwen), ("opencode", _opencode), ("pi", _pi),
]  # fmt: skip
SWITCHED = [row for row in LAYOUTS if row[0] not in ("opencode", "pi")]  # there a plugin is listed or not


@pytest.mark.parametrize(("name", "lay"), LAYOUTS)
def test_a_plugin_s_hooks_are_the_harness_s(repo: Path, tmp_path: Path, name: str, lay: Layout) -> None:
    """`doctor` counts them and names them beside those of settings; `init` adds no second ones, and leaves the file alone."""
    file = lay(tmp_path / "home", repo, True)
    place = places.locate(str(repo))
    assert place is not None
    (one,) = extensions.found(name, place)
    assert (one.file, one.enabled, one.whose, one.runs_ours) == (file, True, name, True)
    assert checks.holders(name, HARNESSES[name], place) == [file]
    assert any(check.status == "ok" and str(file) in check.detail for check in checks.settings(place))
    own = HARNESSES[name].path(place)
    before = own.read_bytes() if own.exists() else None
    assert setup.changes(str(repo), harnesses=[name]) == []
    report = setup.init(str(repo), now=NOW, harnesses=[name], import_sessions=False)
    assert report.settings == [] and any(one.id in text and "already" in text for text in report.warnings)
    assert (own.read_bytes() if own.exists() else None) == before
    HARNESSES[name].add(own)
    twice = [check for check in checks.settings(place) if "2 times" in check.detail]
    assert len(twice) == 1 and one.id in twice[0].remedy


@pytest.mark.parametrize(("name", "lay"), SWITCHED)
def test_a_disabled_plugin_is_said_and_init_writes_the_hooks(repo: Path, tmp_path: Path, name: str, lay: Layout) -> None:
    """It runs nothing, so it holds nothing."""
    file = lay(tmp_path / "home", repo, False)
    place = places.locate(str(repo))
    assert place is not None
    assert checks.holders(name, HARNESSES[name], place) == []
    said = [check for check in checks.settings(place) if check.name == "plugin"]
    assert len(said) == 1 and said[0].status == "note" and "is disabled" in said[0].detail and str(file) in said[0].detail
    report = setup.init(str(repo), now=NOW, harnesses=[name], import_sessions=False)
    assert report.settings == [str(HARNESSES[name].path(place))]
    assert [check for check in checks.settings(place) if check.name == "plugin"] == []


def test_a_stale_interpreter_in_a_plugin_is_said_and_init_writes_the_hooks_beside_it(repo: Path, tmp_path: Path) -> None:
    """What may not run any more is no reason to go without."""
    file = _codex(tmp_path / "home", repo, True)
    write(file, file.read_text().replace("exec /", "exec /gone/"))
    place = places.locate(str(repo))
    assert place is not None
    assert any(str(file) in check.detail and "another installation" in check.detail for check in checks.settings(place))
    report = setup.init(str(repo), now=NOW, harnesses=["codex"], import_sessions=False)
    assert report.settings == [str(repo / ".codex/hooks.json")]


def test_claude_code_s_plugin_in_another_harness_fails(repo: Path, tmp_path: Path) -> None:
    """Codex and Copilot install Claude Code's plugins too, whose answers they do not obey as they are meant."""
    file = _codex(tmp_path / "home", repo, True)
    _json(file, {"hooks": {event: [group] for event, group in claude_settings.entries().items()}})
    place = places.locate(str(repo))
    assert place is not None
    assert checks.holders("codex", HARNESSES["codex"], place) == []
    (said,) = [check for check in checks.settings(place) if check.name == "plugin"]
    assert said.status == "fail" and "made for Claude Code" in said.detail and "--harness codex" in said.remedy


@pytest.mark.parametrize("what", [
    {".mcp.json": {"mcpServers": {"memory": {"command": "uvx", "args": ["projectmem", "serve"]}}}},
    {"hooks/hooks.json": {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "projectmem precheck"}]}]}}},
])  # fmt: skip
def test_a_plugin_of_the_unrelated_projectmem_is_named(repo: Path, tmp_path: Path, what: dict[str, Any]) -> None:
    """It is a note: it does no harm. Our own server in a plugin is not taken for it."""
    file = _claude(tmp_path / "home", repo, True)
    file.unlink()
    folder = file.parents[1]
    ((name, data),) = what.items()
    _json(folder / name, data)
    place = places.locate(str(repo))
    assert place is not None
    (said,) = [check for check in checks.settings(place) if check.name == "plugin"]
    assert said.status == "note" and "not this one" in said.detail and str(folder / name) in said.detail
    (folder / name).unlink()
    _json(folder / ".mcp.json", {"mcpServers": {"projectmem": plugin.server(), "b": {"command": "projectmem", "args": ["mcp"]}}})
    assert extensions.found("claude-code", place) == []


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"plugins": [], "enabledPlugins": 3}', '{"plugins": {"a": [3, null]}}', "\x00"]
)
def test_what_cannot_be_read_is_no_plugin(repo: Path, tmp_path: Path, text: str) -> None:
    """A harness's own files are its own business: nothing is raised."""
    home = tmp_path / "home"
    paths = [
        ".claude/plugins/installed_plugins.json", ".claude/settings.json", ".codex/config.toml", ".copilot/settings.json",
        ".gemini/extensions/extension-enablement.json", ".config/opencode/opencode.json", ".pi/agent/settings.json",
    ]  # fmt: skip
    for path in paths:
        write(home / path, text)
    write(home / ".gemini/extensions/x/hooks/hooks.json", text)
    place = places.locate(str(repo))
    assert place is not None
    assert [one for name in HARNESSES for one in extensions.found(name, place)] == []
