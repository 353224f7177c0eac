"""[H] Names of MCP tools that join server and tool by one sign: Copilot's `SERVER-TOOL`, opencode's `SERVER_TOOL`.

Where the server's name ends only the harness's settings tell. They are read for a tool that may be a server's and for no other,
once in a process. A server that no settings name (a plugin's, one of the command line) keeps the joined name.
"""

from __future__ import annotations

from projectmem.place import config_dir, env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COPILOT, OPENCODE = "copilot", "opencode"
_JOINT = {COPILOT: "-", OPENCODE: "_"}
_BUILT_IN = frozenset(("apply_patch", "plan_enter", "plan_exit", "read_bash", "write_bash", "stop_bash", "todo_write"))
_FOLDERS_MAX = 16  # above the working folder that are looked at
_BYTES_MAX = 1 << 20
_known: dict[tuple[str, str], list[str]] = {}


def named(harness: str, tool: Any, cwd: str) -> Any:
    """A server's tool as other harnesses call it, `mcp__SERVER__TOOL`; any other tool, and what is no text, as it is. Raises
    nothing."""
    joint = _JOINT[harness]
    if not isinstance(tool, str) or joint not in tool or tool in _BUILT_IN:
        return tool
    for server in _servers(harness, cwd):
        if tool.startswith(server + joint) and len(tool) > len(server) + 1:
            return f"mcp__{server}__{tool[len(server) + 1 :]}"
    return tool


def clean(name: str) -> str:
    """A server's name as harnesses write it into the names of tools."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)


def _servers(harness: str, cwd: str) -> list[str]:
    """The names of the servers that the harness's settings declare for this folder, the longest first."""
    if (harness, cwd) not in _known:
        names = {clean(name) for path in _files(harness, cwd) for name in _declared(harness, path)}
        names |= {"github-mcp-server"} if harness == COPILOT else set()  # its own
        _known[harness, cwd] = sorted(names - {""}, key=len, reverse=True)
    return _known[harness, cwd]


def _files(harness: str, cwd: str) -> list[str]:
    if harness == COPILOT:
        return [
            f"{config_dir('COPILOT_HOME', '~/.copilot')}/mcp-config.json",
            *(f"{folder}/{name}" for folder in _upward(cwd) for name in (".mcp.json", ".github/mcp.json", ".vscode/mcp.json")),
        ]
    own = config_dir("OPENCODE_CONFIG_DIR", "~/.config/opencode")
    folders = [
        own,
        config_dir("", "~/.config/opencode"),
        *(f"{folder}{sub}" for folder in _upward(cwd) for sub in ("", "/.opencode")),
    ]
    named = env("OPENCODE_CONFIG")
    return [
        *([named] if named else []),
        *(f"{folder}/opencode.json{c}" for folder in folders for c in ("", "c")),
        f"{own}/config.json",
    ]


def _upward(cwd: str) -> list[str]:
    """The folder and those above it, up to the top of the work tree."""
    import os

    found: list[str] = []
    while cwd and cwd not in found and len(found) < _FOLDERS_MAX:
        found.append(cwd)
        if os.path.exists(f"{cwd}/.git"):
            break
        cwd = os.path.dirname(cwd)
    return found


def _declared(harness: str, path: str) -> list[str]:
    from projectmem_logs.fastjson import loads

    try:
        with open(path, "rb") as file:
            text = file.read(_BYTES_MAX).decode("utf-8-sig", "replace")
    except (OSError, ValueError):
        return []
    try:
        data = loads(text)
    except (ValueError, RecursionError):
        try:
            data = loads(plain(text))
        except (ValueError, RecursionError):
            return []
    if not isinstance(data, dict):
        return []
    tables = [data.get(key) for key in (("mcp",) if harness == OPENCODE else ("mcpServers", "servers"))]
    return [name for table in tables if isinstance(table, dict) for name in table if isinstance(name, str)]


def plain(text: str) -> str:
    """JSON without the comments, and the commas before an end, that some settings allow."""
    found: list[str] = []
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char == '"':
            close = at + 1
            while close < end and text[close] != '"':
                close += 2 if text[close] == "\\" else 1
            found.append(text[at : close + 1])
            at = close + 1
        elif text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else end
        elif text.startswith("/*", at):
            at = text.find("*/", at) + 2 if "*/" in text[at:] else end
        else:
            if char in "}]":
                last = next((k for k in range(len(found) - 1, -1, -1) if not found[k].isspace()), -1)
                if last >= 0 and found[last] == ",":
                    found[last] = " "
            found.append(char)
            at += 1
    return "".join(found)
