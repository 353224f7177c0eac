"""Puts the proxy before the servers of Codex's config.toml (`[mcp_servers.NAME]`), and takes it out again, byte for byte.

Only the values concerned are edited; what stands in another form (an inline table, say) is left and named. A server over HTTP is
wrapped where it has nothing but its address: its headers and tokens are Codex's to fill in.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from projectmem.errors import BadInputError
from projectmem.setup import jsonc
from projectmem.setup.hook_lists import SettingsError
from projectmem.setup.proxy_words import ASKS, OURS, here
from projectmem.setup.toml_text import Value, items, quoted, string_of, values

TABLE = "mcp_servers"
_REACHED = ("bearer_token_env_var", "http_headers", "env_http_headers", "oauth", "scopes", "oauth_resource")


def planned(file: Path, text: str, *, every: bool, back: bool) -> tuple[list[str], str, str]:
    """(names, the text, what becomes of it), as `wrapping.planned`. Raises SettingsError."""
    names, edits = [], []
    placed = _placed(file, text)
    for name, server in _servers(file, text).items():
        where = placed.get(name, {})
        wrapped = [] if back or _why(server, where, every) else _wrapping(text, name, server, where)
        found = _unwrapping(text, where) if back else wrapped
        names += [name] if found else []
        edits += found
    made = jsonc.applied(text, edits)
    _servers(file, made)  # what cannot be read again is not written
    return names, text, made


def left(file: Path, text: str, *, every: bool) -> list[tuple[str, str]]:
    """(name, why) of the servers that are left as they are, as `wrapping.left`. Raises SettingsError."""
    placed = _placed(file, text)
    found = [(name, _why(server, placed.get(name, {}), every)) for name, server in _servers(file, text).items()]
    return [(name, why) for name, why in found if why]


def _servers(file: Path, text: str) -> dict[str, Any]:
    try:
        found = tomllib.loads(text).get(TABLE)
    except tomllib.TOMLDecodeError as exc:
        raise SettingsError(f"{file} is not valid TOML ({exc}): mend it first, nothing was changed") from None
    if not isinstance(found, dict):
        raise SettingsError(f"{file} has no `[{TABLE}]`: name the file with your client's MCP servers")
    return found


def _placed(file: Path, text: str) -> dict[str, dict[str, Value]]:
    """{server: {key: where its value is}} of what stands as `key = value`."""
    found: dict[str, dict[str, Value]] = {}
    try:
        for value in values(text):
            if len(value.path) == 3 and value.path[0] == TABLE:
                found.setdefault(value.path[1], {})[value.path[2]] = value
    except (ValueError, IndexError):
        raise SettingsError(f"{file} is written in a way that is not edited: put the proxy before a server yourself") from None
    return found


def _why(server: Any, where: dict[str, Value], every: bool) -> str:
    """Why the proxy is not put before a server, "" where it is or stands there already."""
    entry = server if isinstance(server, dict) else {}
    command, args = entry.get("command"), entry.get("args", [])
    if "command" in entry:
        if not isinstance(command, str) or not isinstance(args, list):
            return "its command is not a text with a list of `args`"
        return "" if "command" in where and ("args" in where) == ("args" in entry) else "it is written as an inline table"
    url = entry.get("url")
    if not isinstance(url, str):
        return "it has neither a command nor an address"
    own = next((key for key in _REACHED if key in entry), "")
    if own:
        return f"it has `{own}`, which only the client can use"
    if "url" not in where:
        return "it is written as an inline table"
    try:
        return "" if here(entry) or every else ASKS
    except BadInputError as exc:
        return str(exc)


def _wrapping(text: str, name: str, server: dict[str, Any], where: dict[str, Value]) -> list[jsonc.Edit]:
    first = quoted(sys.executable)
    if "command" not in server:
        url = where["url"]
        words = ", ".join([*map(quoted, [*OURS, "proxy", "--name", name, "--url"]), text[url.start : url.end]])
        key, equals = _dotted(text, url, "url")
        return [(url.key, url.end, f"{key}command{equals}{first}{_line(text)}{key}args{equals}[{words}]")]
    command = where["command"]
    given = text[command.start : command.end]
    if "args" not in where:
        words = ", ".join([*map(quoted, [*OURS, "proxy", f"--name={name}", "--"]), given])
        key, equals = _dotted(text, command, "command")
        return [(command.start, command.end, f"{first}{_line(text)}{key}args{equals}[{words}]")]
    args = where["args"]
    if server["args"][:3] == OURS:
        return []  # ours, or wrapped
    words = ", ".join([*map(quoted, [*OURS, "proxy", "--name", name, "--"]), given])
    after = ", " if server["args"] else ""
    return [(command.start, command.end, first), (args.start + 1, args.start + 1, words + after)]


def _dotted(text: str, value: Value, last: str) -> tuple[str, str]:
    """(what stands before the last part of the key, what stands between the key and its value)."""
    whole = text[value.key : value.start]
    bare = whole.rstrip().removesuffix("=").rstrip()
    own = last if bare.endswith(last) else bare[-len(last) - 2 :]
    return bare[: len(bare) - len(own)], whole[len(bare) :]


def _line(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unwrapping(text: str, where: dict[str, Value]) -> list[jsonc.Edit]:
    if "command" not in where or "args" not in where:
        return []
    command, args = where["command"], where["args"]
    try:
        spans = items(text, args)
        words = [string_of(text[start:end]) for start, end in spans]
    except (ValueError, IndexError):
        return []
    if words[:4] != [*OURS, "proxy"]:
        return []
    if "--url" in words[:7] and "--" not in words:
        at = words.index("--url") + 1
        key, equals = _dotted(text, command, "command")
        was = text[spans[at][0] : spans[at][1]] if at < len(spans) else ""
        return [(command.key, args.end, f"{key}url{equals}{was}")] if was else []
    at = words.index("--") + 1 if "--" in words else len(words)
    if at == len(words):
        return []
    was = text[spans[at][0] : spans[at][1]]
    if words[4].startswith("--name=") and len(words) == at + 1 and command.start < args.start:
        return [(command.start, args.end, was)]
    after = spans[at][1]
    if len(spans) > at + 1:
        after = min(text.index(",", after) + 2, spans[at + 1][0])  # what stood between them before stays
    return [(command.start, command.end, was), (spans[0][0], after, "")]
