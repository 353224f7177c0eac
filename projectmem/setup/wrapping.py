"""Puts the proxy before the servers of an MCP client's settings file (`mcpServers` or `servers`), and takes it out again.

Where a server is a command the proxy's words stand before it, and taking them out gives the file back byte for byte. A server
that is reached over HTTP becomes a command, the proxy's, and what its entry was, headers included, stands in that command's
environment: no other process sees it there, and the client fills in its variables as before. `unwrap` puts it back as it was.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from projectmem.errors import BadInputError, NotFoundError
from projectmem.mcp_address import URLS, address_of
from projectmem.place import MCP_SERVER_VARIABLE
from projectmem.setup import hook_lists, jsonc
from projectmem.setup.hook_lists import SettingsError

LISTS = ("mcpServers", "servers")  # Claude Code, Cursor, Gemini and others; VS Code
_OURS = ["-P", "-m", "projectmem"]
_REACHED = (*URLS, "type", "transport", "headers")  # how a server over HTTP is reached: the proxy does that in its place
_STARTED = ("type", "command", "args", "env")
_LOGS_IN = ("oauth", "auth", "authProviderType", "headersHelper")  # what the client does by itself before it connects
_ASKS = "over HTTP without headers, so it may want a login that only the client can do; --open wraps it all the same"


def wrap(file: Path, *, every: bool = False) -> list[str]:
    """The names of the servers that the proxy was put before: those that are not wrapped yet. Of those on another machine that
    are reached over HTTP without headers only with `every`. Raises NotFoundError, SettingsError."""
    return _edited(file, lambda text, name, server: _wrapping(text, name, server, every))


def unwrap(file: Path) -> list[str]:
    """The names of the servers that the proxy was taken from. Raises as `wrap`."""
    return _edited(file, _unwrapping)


def left(file: Path, *, every: bool = False) -> list[tuple[str, str]]:
    """(name, why) of the servers that `wrap` leaves as they are, ours and those that are wrapped apart. Raises as `wrap`."""
    _, _, servers = _read(file)
    found = [(name, _why(server, every)) for name, server in servers]
    return [(name, why) for name, why in found if why]


def _read(file: Path) -> tuple[str, str, list[tuple[str, jsonc.Node]]]:
    """(a byte order mark or "", the text, its servers)."""
    if not file.is_file():
        raise NotFoundError(f"{file} does not exist: name the file with your client's MCP servers")
    if file.suffix == ".toml":
        how = 'command = "projectmem", args = ["proxy", "--", "CMD", "ARG"], or ["proxy", "--url", "https://..."]'
        raise SettingsError(f"{file} is TOML, which is not edited: put the proxy before a server yourself ({how})")
    whole = file.read_bytes().decode("utf-8", "surrogateescape")
    text = whole.removeprefix("\ufeff")
    try:
        root = jsonc.parse(text)
    except jsonc.JsonError as exc:
        raise SettingsError(f"{file}:{exc.where} is not valid JSON ({exc}): mend it first, nothing was changed") from None
    lists = [root.members[key][1] for key in LISTS if key in root.members]
    if not lists:
        named = " or ".join(f"`{key}`" for key in LISTS)
        raise SettingsError(f"{file} has neither {named.replace(' or ', ' nor ')}: name the file with your client's MCP servers")
    return whole[: len(whole) - len(text)], text, [(name, server) for one in lists for name, (_, server) in one.members.items()]


def _edited(file: Path, edits_of: Callable[[str, str, jsonc.Node], list[jsonc.Edit]]) -> list[str]:
    mark, text, servers = _read(file)
    names, edits = [], []
    for name, server in servers:
        found = edits_of(text, name, server)
        names += [name] if found else []
        edits += found
    if edits:
        hook_lists.write_bytes(file, (mark + jsonc.applied(text, edits)).encode("utf-8", "surrogateescape"))
    return names


def _why(server: jsonc.Node, every: bool) -> str:
    """Why the proxy is not put before a server, "" where it is or stands there already."""
    entry = server.data if isinstance(server.data, dict) else {}
    command, args = entry.get("command"), entry.get("args", [])
    if "command" in entry:
        return "" if isinstance(command, str) and isinstance(args, list) else "its command is not a text with a list of `args`"
    url = next((entry[key] for key in URLS if key in entry), None)
    if not isinstance(url, str):
        return "it has neither a command nor an address"
    if any(key in entry for key in (*_LOGS_IN, "env", "args")):
        return f"it has `{next(key for key in (*_LOGS_IN, 'env', 'args') if key in entry)}`, which only the client can use"
    try:
        here = address_of({**entry, "url": url}).here
    except BadInputError as exc:
        if not url.startswith("$"):  # a variable that the client fills in
            return str(exc)
        here = False
    return "" if here or every or entry.get("headers") else _ASKS


def _wrapping(text: str, name: str, server: jsonc.Node, every: bool) -> list[jsonc.Edit]:
    if _why(server, every):
        return []
    if "command" not in server.members:
        return _over_http(text, name, server)
    command = server.members["command"][1]
    args = server.members["args"][1] if "args" in server.members else None
    if args is not None and args.data[:3] == _OURS:
        return []  # ours, or wrapped
    named = ["--name", name] if args is not None else [f"--name={name}"]  # tells afterwards whether there were any
    words = [*map(_quoted, [*_OURS, "proxy", *named, "--"]), text[command.start : command.end]]
    first = (command.start, command.end, _quoted(sys.executable))
    if args is None:
        return [(first[0], first[1], f'{first[2]}, "args": [{", ".join(words)}]')]
    return [first, (args.start + 1, args.start + 1, ", ".join(words) + (", " if args.items else ""))]


def _over_http(text: str, name: str, server: jsonc.Node) -> list[jsonc.Edit]:
    was = text[server.start : server.end]
    kind = {"type": "stdio"} if "type" in server.data else {}
    started = {"command": sys.executable, "args": [*_OURS, "proxy", "--name", name], "env": {MCP_SERVER_VARIABLE: was}}
    kept = {key: value for key, value in server.data.items() if key not in _REACHED}
    return [(server.start, server.end, _shown(text, {**kind, **started, **kept}))]


def _unwrapping(text: str, name: str, server: jsonc.Node) -> list[jsonc.Edit]:
    if "command" not in server.members or "args" not in server.members:
        return []
    command, args = server.members["command"][1], server.members["args"][1]
    given = args.data if isinstance(args.data, list) else []
    if given[:4] != [*_OURS, "proxy"]:
        return []
    if "--" not in given:
        return _back_to_http(text, server)
    at = given.index("--") + 1
    if at == len(given):
        return []
    was = text[args.items[at].start : args.items[at].end]
    if str(given[4]).startswith("--name=") and len(given) == at + 1 and command.start < args.start:
        return [(command.start, args.end, was)]
    after = args.items[at].end
    if len(args.items) > at + 1:
        after = min(text.index(",", after) + 2, args.items[at + 1].start)  # what stood between them before stays
    return [(command.start, command.end, was), (args.items[0].start, after, "")]


def _back_to_http(text: str, server: jsonc.Node) -> list[jsonc.Edit]:
    """The entry as it was; with what was changed of it since, where that has nothing to do with how the server is reached."""
    env = server.data.get("env")
    was = env.get(MCP_SERVER_VARIABLE) if isinstance(env, dict) else None
    try:
        before = jsonc.parse(was).data if isinstance(was, str) else None
    except jsonc.JsonError:
        before = None
    if not isinstance(before, dict):
        return []
    now = {key: value for key, value in server.data.items() if key not in _STARTED}
    if now == {key: value for key, value in before.items() if key not in _REACHED}:
        return [(server.start, server.end, str(was))]
    return [(server.start, server.end, _shown(text, {**{k: v for k, v in before.items() if k in _REACHED}, **now}))]


def _shown(text: str, entry: dict[str, Any]) -> str:
    """An entry as text, laid out as the file is."""
    if "\n" not in text.strip():
        return json.dumps(entry, ensure_ascii=False)
    return jsonc.shown(entry, jsonc.indent_of(text), 2, "\r\n" if "\r\n" in text else "\n")


def _quoted(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)
