"""Writes a Claude Code plugin: hooks and MCP server in one folder, for `claude --plugin-dir DIR` or to be installed.

The folder is a marketplace too, of this plugin alone: Claude Code then reads the hooks where they lie, so a rewritten one counts.

It names this installation, as settings do: write it again after the installation moved. Beside hooks in the settings nothing is
said or recorded twice, since hooks find out from the log's snapshot who was first.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from projectmem.errors import BadInputError
from projectmem.installed import version
from projectmem.setup import claude_settings, hook_lists
from projectmem.setup.command import MARK

NAME = "projectmem"
MANIFEST, HOOKS, SERVERS = ".claude-plugin/plugin.json", "hooks/hooks.json", ".mcp.json"
MARKET = ".claude-plugin/marketplace.json"
ID = f"{NAME}@{NAME}"


def server() -> dict[str, Any]:
    """How a client starts the MCP server of this installation. `-P`: a folder of the project is not taken for ours."""
    return {"command": sys.executable, "args": ["-P", "-m", "projectmem", "mcp"]}


def contents() -> dict[str, str]:
    """The plugin's files: {path below its folder: text}."""
    manifest = {
        "name": NAME,
        "version": version(),
        "description": "Remembers what failed in a project, and speaks up before an agent repeats it.",
        "author": {"name": NAME},
        "license": "Apache-2.0",
    }
    offered = {"name": NAME, "source": "./", "description": manifest["description"]}
    market = {"name": NAME, "owner": {"name": NAME}, "plugins": [offered]}
    hooks = {event: [group] for event, group in claude_settings.entries().items()}
    files = {MANIFEST: manifest, MARKET: market, HOOKS: {"hooks": hooks}, SERVERS: {"mcpServers": {NAME: server()}}}
    return {name: json.dumps(data, indent=2) + "\n" for name, data in files.items()}


def how_to_use(folder: Path) -> str:
    """What a person does with the plugin."""
    where = shlex.quote(str(folder))
    installed = f"`claude plugin marketplace add {where}` and `claude plugin install {ID}`"
    return f"start Claude Code with `claude --plugin-dir {where}`, or install the plugin: {installed}"


def planned(folder: Path) -> list[tuple[Path, str, str]]:
    """(file, its text, what `write` would make of it) for each file that it would change.

    Raises BadInputError where something else is in the way, SettingsError where a file cannot be read.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInputError(f"{folder} is a file: name a folder for the plugin")
    found = []
    for name, text in contents().items():
        path = folder / name
        before = _own_text(path)
        if before != text:
            found.append((path, before, text))
    return found


def write(folder: Path) -> Path:
    """Write the plugin into `folder`, in place of an earlier one of ours. Returns the file of its hooks. Raises as `planned`."""
    for path, _, text in planned(folder):
        hook_lists.write(path, text)
    return folder / HOOKS


def remove(folder: Path) -> bool:
    """Take the plugin's files away, and the folders that are empty then. Returns whether there were any. Raises as `planned`."""
    ours = [folder / name for name in contents() if _own_text(folder / name)]
    for path in ours:
        hook_lists.unlink(path, {"folders": [] if path.parent == folder else [str(path.parent)]})
    if ours and not any(folder.iterdir()):
        folder.rmdir()
    return bool(ours)


def _own_text(path: Path) -> str:
    text = hook_lists.text_of(path)
    if text and not _ours(path.name, text):
        raise BadInputError(f"{path} is there and was not written by projectmem: name another folder for the plugin")
    return text


def _ours(name: str, text: str) -> bool:
    try:
        data = json.loads(text)
    except ValueError:
        return False
    if not isinstance(data, dict):
        return False
    if name == "hooks.json":
        return MARK in text
    if name in ("plugin.json", "marketplace.json"):
        return data.get("name") == NAME
    return isinstance(servers := data.get("mcpServers"), dict) and list(servers) == [NAME]
