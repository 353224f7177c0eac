"""Puts the proxy before the servers of an MCP client's settings file (`mcpServers` or `servers`), and takes it out again.

Nothing is replaced: the proxy's words stand before the server's, and taking them out gives the file back byte for byte.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from projectmem.errors import NotFoundError
from projectmem.setup import hook_lists, jsonc
from projectmem.setup.hook_lists import SettingsError

LISTS = ("mcpServers", "servers")  # Claude Code, Cursor, Gemini and others; VS Code
_OURS = ["-P", "-m", "projectmem"]


def wrap(file: Path) -> list[str]:
    """The names of the servers that the proxy was put before: those that are started by a command and not wrapped yet.
    Raises NotFoundError, SettingsError."""
    return _edited(file, _wrapping)


def unwrap(file: Path) -> list[str]:
    """The names of the servers that the proxy was taken from. Raises as `wrap`."""
    return _edited(file, _unwrapping)


def _edited(file: Path, edits_of: Callable[[str, str, jsonc.Node], list[jsonc.Edit]]) -> list[str]:
    if not file.is_file():
        raise NotFoundError(f"{file} does not exist: name the file with your client's MCP servers")
    whole = file.read_bytes().decode("utf-8", "surrogateescape")
    text = whole.removeprefix("\ufeff")
    try:
        root = jsonc.parse(text)
    except jsonc.JsonError as exc:
        raise SettingsError(f"{file}:{exc.where} is not valid JSON ({exc}): mend it first, nothing was changed") from None
    names, edits = [], []
    for key in LISTS:
        servers = root.members[key][1].members if key in root.members else {}
        for name, (_, server) in servers.items():
            found = edits_of(text, name, server)
            names += [name] if found else []
            edits += found
    if edits:
        mark = whole[: len(whole) - len(text)]
        hook_lists.write_bytes(file, (mark + jsonc.applied(text, edits)).encode("utf-8", "surrogateescape"))
    return names


def _wrapping(text: str, name: str, server: jsonc.Node) -> list[jsonc.Edit]:
    command = server.members["command"][1] if "command" in server.members else None
    args = server.members["args"][1] if "args" in server.members else None
    if command is None or not isinstance(command.data, str) or (args is not None and not isinstance(args.data, list)):
        return []  # a server that is reached over HTTP, or none
    if args is not None and args.data[:3] == _OURS:
        return []  # ours, or wrapped
    named = ["--name", name] if args is not None else [f"--name={name}"]  # tells afterwards whether there were any
    words = [*map(_quoted, [*_OURS, "proxy", *named, "--"]), text[command.start : command.end]]
    first = (command.start, command.end, _quoted(sys.executable))
    if args is None:
        return [(first[0], first[1], f'{first[2]}, "args": [{", ".join(words)}]')]
    return [first, (args.start + 1, args.start + 1, ", ".join(words) + (", " if args.items else ""))]


def _unwrapping(text: str, name: str, server: jsonc.Node) -> list[jsonc.Edit]:
    if "command" not in server.members or "args" not in server.members:
        return []
    command, args = server.members["command"][1], server.members["args"][1]
    given = args.data if isinstance(args.data, list) else []
    if given[:4] != [*_OURS, "proxy"] or "--" not in given[:-1]:
        return []
    at = given.index("--") + 1
    was = text[args.items[at].start : args.items[at].end]
    if str(given[4]).startswith("--name=") and len(given) == at + 1 and command.start < args.start:
        return [(command.start, args.end, was)]
    after = args.items[at].end
    if len(args.items) > at + 1:
        after = min(text.index(",", after) + 2, args.items[at + 1].start)  # what stood between them before stays
    return [(command.start, command.end, was), (args.items[0].start, after, "")]


def _quoted(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)
