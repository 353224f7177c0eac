"""Puts the proxy before the servers of an MCP client's settings file (`mcpServers` or `servers`), and takes it out again.

Where a server is a command the proxy's words stand before it, and taking them out gives the file back byte for byte. A server
that is reached over HTTP becomes a command, the proxy's, and what its entry was, headers included, stands in that command's
environment: no other process sees it there, and the client fills in its variables as before. `unwrap` puts it back as it was.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from projectmem.errors import BadInputError, NotFoundError
from projectmem.mcp_address import URLS
from projectmem.place import MCP_SERVER_VARIABLE
from projectmem.setup import hook_lists, jsonc, wrapping_toml
from projectmem.setup.hook_lists import SettingsError
from projectmem.setup.proxy_words import ASKS as _ASKS
from projectmem.setup.proxy_words import OURS as _OURS
from projectmem.setup.proxy_words import here

LISTS = ("mcpServers", "servers", "mcp")  # Claude Code, Copilot, Cline, Cursor, Gemini, Qwen and others; VS Code; opencode
_REACHED = (*URLS, "type", "transport", "headers")  # how a server over HTTP is reached: the proxy does that in its place
_STARTED = ("type", "command", "args", "env", "environment")
_OPENCODE = ("local", "remote")  # its types: there the command and its arguments are one list
_LOGS_IN = ("oauth", "auth", "authProviderType", "headersHelper")  # what the client does by itself before it connects


def wrap(file: Path, *, every: bool = False) -> list[str]:
    """The names of the servers that the proxy was put before: those that are not wrapped yet. Of those on another machine that
    are reached over HTTP without headers only with `every`. Raises NotFoundError, SettingsError."""
    return _written(file, *planned(file, every=every))


def unwrap(file: Path) -> list[str]:
    """The names of the servers that the proxy was taken from. Raises as `wrap`."""
    return _written(file, *planned(file, back=True))


def planned(file: Path, *, every: bool = False, back: bool = False) -> tuple[list[str], str, str]:
    """(names of the servers concerned, the file's text, what `wrap` would make of it; with `back` what `unwrap` would). Raises
    as `wrap`."""
    if file.suffix == ".toml":
        return wrapping_toml.planned(file, _text(file), every=every, back=back)
    text, servers = _read(file)
    names, edits = [], []
    for name, server in servers:
        found = _unwrapping(text, name, server) if back else _wrapping(text, name, server, every)
        names += [name] if found else []
        edits += found
    return names, text, jsonc.applied(text, edits)


def left(file: Path, *, every: bool = False) -> list[tuple[str, str]]:
    """(name, why) of the servers that `wrap` leaves as they are, ours and those that are wrapped apart. Raises as `wrap`."""
    if file.suffix == ".toml":
        return wrapping_toml.left(file, _text(file), every=every)
    found = [(name, _why(server, every)) for name, server in _read(file)[1]]
    return [(name, why) for name, why in found if why]


def _written(file: Path, names: list[str], before: str, after: str) -> list[str]:
    if after != before:
        hook_lists.write_bytes(file, after.encode("utf-8", "surrogateescape"))
    return names


def _text(file: Path) -> str:
    if not file.is_file():
        raise NotFoundError(f"{file} does not exist: name the file with your client's MCP servers")
    return file.read_bytes().decode("utf-8", "surrogateescape")


def _read(file: Path) -> tuple[str, list[tuple[str, jsonc.Node]]]:
    """(the text, its servers: of Cline's newer form how each is reached)."""
    text = _text(file)
    try:
        root = jsonc.parse(text)
    except jsonc.JsonError as exc:
        raise SettingsError(f"{file}:{exc.where} is not valid JSON ({exc}): mend it first, nothing was changed") from None
    lists = [root.members[key][1] for key in LISTS if key in root.members]
    if not lists:
        named = ", ".join(f"`{key}`" for key in LISTS[:-1])
        raise SettingsError(f"{file} has none of {named} and `{LISTS[-1]}`: name the file with your client's MCP servers")
    servers = [(name, server) for one in lists for name, (_, server) in one.members.items()]
    nested = [(name, server.members["transport"][1] if "transport" in server.members else server) for name, server in servers]
    return text, [(name, inner if inner.members else server) for (name, inner), (_, server) in zip(nested, servers, strict=True)]


def _why(server: jsonc.Node, every: bool) -> str:
    """Why the proxy is not put before a server, "" where it is or stands there already."""
    entry = server.data if isinstance(server.data, dict) else {}
    command, args = entry.get("command"), entry.get("args", [])
    if _one_list(server):
        return "" if command and all(isinstance(word, str) for word in command) else "its command is not a list of texts"
    if "command" in entry:
        return "" if isinstance(command, str) and isinstance(args, list) else "its command is not a text with a list of `args`"
    url = next((entry[key] for key in URLS if key in entry), None)
    if not isinstance(url, str):
        return "it has neither a command nor an address"
    if any(key in entry for key in (*_LOGS_IN, "env", "args")):
        return f"it has `{next(key for key in (*_LOGS_IN, 'env', 'args') if key in entry)}`, which only the client can use"
    try:
        near = here({**entry, "url": url})
    except BadInputError as exc:
        if not url.startswith(("$", "{env:")):  # a variable that the client fills in
            return str(exc)
        near = False
    return "" if near or every or entry.get("headers") else _ASKS


def _one_list(server: jsonc.Node) -> bool:
    """Whether an entry is opencode's, of a server that is started."""
    data = server.data
    return isinstance(data, dict) and data.get("type") == _OPENCODE[0] and isinstance(data.get("command"), list)


def _wrapping(text: str, name: str, server: jsonc.Node, every: bool) -> list[jsonc.Edit]:
    if _why(server, every):
        return []
    if "command" not in server.members:
        return _over_http(text, name, server)
    command = server.members["command"][1]
    if _one_list(server):
        if command.data[1:4] == _OURS:
            return []
        words = [sys.executable, *_OURS, "proxy", "--name", name, "--"]
        return [(command.items[0].start, command.items[0].start, "".join(f"{_quoted(word)}, " for word in words))]
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
    if server.data.get("type") == _OPENCODE[1]:
        words = [sys.executable, *_OURS, "proxy", "--name", name]
        kept = {key: value for key, value in server.data.items() if key not in _REACHED}
        return [
            (
                server.start,
                server.end,
                _shown(text, {"type": _OPENCODE[0], "command": words, "environment": {MCP_SERVER_VARIABLE: was}, **kept}),
            )
        ]
    kind = {"type": "stdio"} if "type" in server.data else {}
    started = {"command": sys.executable, "args": [*_OURS, "proxy", "--name", name], "env": {MCP_SERVER_VARIABLE: was}}
    kept = {key: value for key, value in server.data.items() if key not in _REACHED}
    return [(server.start, server.end, _shown(text, {**kind, **started, **kept}))]


def _unwrapping(text: str, name: str, server: jsonc.Node) -> list[jsonc.Edit]:
    if _one_list(server):
        return _unwrapping_list(text, server)
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


def _unwrapping_list(text: str, server: jsonc.Node) -> list[jsonc.Edit]:
    command = server.members["command"][1]
    words = command.data
    if words[1:5] != [*_OURS, "proxy"]:
        return []
    if "--" not in words:
        return _back_to_http(text, server)
    at = words.index("--") + 1
    return [(command.items[0].start, command.items[at].start, "")] if at < len(words) else []


def _back_to_http(text: str, server: jsonc.Node) -> list[jsonc.Edit]:
    """The entry as it was; with what was changed of it since, where that has nothing to do with how the server is reached."""
    env = server.data.get("env") or server.data.get("environment")
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
