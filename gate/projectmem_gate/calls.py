"""[H] Identity of calls that are neither shell nor edit: MCP, fetches, reads, searches, and tools unknown to us."""

from __future__ import annotations

from posixpath import normpath

from projectmem_gate.edits import file_words
from projectmem_gate.hints import pick
from projectmem_gate.keys import key_of, text_digest
from projectmem_gate.model import Part
from projectmem_gate.tools import NOISE, PATH, URL, plain, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_gate.paths import Roots

_DEPTH = 40
_TRACKING = ("utm_", "fbclid", "gclid")


def _dumps(value: Any) -> str:
    import json  # half of a hook's start, and most calls are shell or edit

    return json.dumps(value)


def canonical(value: Any, depth: int = 0) -> str:
    """A stable, readable text of any JSON value: keys sorted, numbers by value (1.0 is 1), null members of objects dropped."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, (int, float)):
        whole = isinstance(value, float) and abs(value) < 2**53 and value == int(value)  # nan and inf fail the comparison
        return str(int(value)) if whole else str(value)
    if depth > _DEPTH:
        return "..."
    if isinstance(value, dict):
        members = sorted([(str(k), canonical(v, depth + 1)) for k, v in value.items() if v is not None])
        return "{" + ",".join([f"{_quoted(k)}:{v}" for k, v in members]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([canonical(v, depth + 1) for v in value]) + "]"
    return _quoted(type(value).__name__)


def _quoted(text: str) -> str:
    """As JSON would write it, near enough: one line, and no two strings alike."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if '"' in text:
        text = text.replace('"', '\\"')
    if "\n" in text or "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\\r").replace("\n", "\\n")
    return f'"{text}"'


def mcp_name(tool: str) -> tuple[str, str]:
    """(server, tool) of `mcp__server__tool`; the server "" for tools of other spellings."""
    if tool.startswith("mcp__"):
        server, _, name = tool[5:].partition("__")
        return (server, name) if name else ("", server)
    return "", tool[4:] if tool.startswith("mcp_") else tool


def file_tool(tool: str, fields: dict[str, Any]) -> str:
    """`edit` or `write` of an MCP tool that does what the harness's own does, to a file named by its full path; "" for others."""
    name, path = mcp_name(tool)[1], fields.get("path")
    if not isinstance(path, str) or not path.startswith("/") or fields.get("dryRun") is True or fields.get("dry_run") is True:
        return ""
    if name == "write_file" and isinstance(fields.get("content"), str):
        return "write"
    return "edit" if name == "edit_file" and isinstance(fields.get("edits"), list) and fields["edits"] else ""


def mcp_part(tool: str, fields: Any, escalated: bool, sha: str = "") -> Part:
    """An MCP call: server, tool, arguments."""
    server, name = mcp_name(tool)
    body = sha or canonical(fields)
    words = () if sha else argument_words(fields)
    parts = ["mcp", server, name, body] + (["escalated"] if escalated else [])
    family = f"{server} {name}".strip()[:80]
    return Part(
        key_of(*parts),
        "mcp",
        family,
        f"{family} {body}"[:400],
        words,
        (),
        (("mcp" if _looks(name) else "remote", server or name),),
    )


def relayed(tool: str, fields: dict[str, Any]) -> tuple[str, Any] | None:
    """(`mcp__server__tool`, arguments) of a tool that only passes an MCP call on (Cline's `use_mcp_tool`), else None."""
    server, name = fields.get("server_name") or fields.get("serverName"), fields.get("tool_name") or fields.get("toolName")
    if plain(tool) not in ("usemcptool", "callmcptool") or not (isinstance(server, str) and isinstance(name, str)):
        return None
    given = fields.get("arguments")
    if isinstance(given, str) and given[:1] == "{":
        import json

        try:
            given = json.loads(given)
        except ValueError:
            pass
    return f"mcp__{server}__{name}", given


def _looks(name: str) -> bool:
    return (
        name.lower()
        .lstrip("_")
        .startswith(
            (
                "get",
                "list",
                "search",
                "read",
                "query",
                "fetch",
                "find",
                "resolve",
                "view",
                "describe",
                "ask",
                "extract",
                "show",
                "status",
            )
        )
    )


def normal_url(url: str) -> str:
    """Scheme and host in lower case, default port, fragment, tracking parameters, empty path and dot segments dropped."""
    scheme, sep, rest = url.strip().partition("://")
    if not sep:
        scheme, rest = "https", url.strip()
    rest = rest.partition("#")[0]
    rest, _, query = rest.partition("?")
    host, slash, path = rest.partition("/")
    host = host.lower()
    scheme = scheme.lower()
    if (scheme, host[-3:]) == ("http", ":80"):
        host = host[:-3]
    elif (scheme, host[-4:]) == ("https", ":443"):
        host = host[:-4]
    if scheme == "http":
        scheme = "https"  # the fetch tools upgrade
    path = slash + path if path else ""
    if "/." in path:
        path = normpath(path) + ("/" if path.endswith(("/", "/.", "/..")) else "")
    pairs = [p for p in query.split("&") if p and not p.startswith(_TRACKING)]
    return _upper_hex(f"{scheme}://{host}{path}" + ("?" + "&".join(pairs) if pairs else ""))


def _upper_hex(url: str) -> str:
    """`%2f` and `%2F` are the same octet (RFC 3986, 6.2.2.1)."""
    first, *rest = url.split("%")
    return "%".join([first, *(part[:2].upper() + part[2:] for part in rest)])


def fetch_part(fields: dict[str, Any], escalated: bool) -> Part:
    """A web fetch: the URL; what is asked about it does not matter to whether it can be had."""
    url = normal_url(text(fields, URL))
    host = url.partition("://")[2].partition("/")[0]
    method = str(fields.get("method") or "GET").upper()
    parts = ["fetch", method, url] + (["escalated"] if escalated else [])
    return Part(key_of(*parts), "fetch", f"fetch {host}"[:80], f"fetch {url}"[:400], pick([host]))


def read_part(tool: str, kind: str, fields: dict[str, Any], roots: Roots, cwd: str, escalated: bool) -> Part:
    """A read or search tool: path and the other arguments."""
    raw = text(fields, PATH)
    path = roots.name(raw, cwd, real=True) if raw else ""
    rest = {k: v for k, v in fields.items() if k not in NOISE and k not in PATH}
    parts = [kind, plain(tool), path, canonical(rest)] + (["escalated"] if escalated else [])
    shown = f"{tool} {path} {canonical(rest) if rest else ''}".strip()
    effects = (("read", path),) if kind == "read" and path else ()
    words = (file_words(path) if path else ()) or argument_words(rest)
    return Part(
        key_of(*parts),
        kind,
        f"{kind} {path}"[:80] if path else plain(tool)[:80],
        shown[:400],
        words,
        (path,) if path else (),
        effects,
    )


def other_part(tool: str, fields: Any, sha: str, escalated: bool) -> Part:
    """A tool that is not known: its name and its arguments without the harness's own fields."""
    if isinstance(fields, dict):
        fields = {k: v for k, v in fields.items() if k not in NOISE or k in ("prompt", "session_id")}
    body = sha or canonical(fields)
    parts = ["other", plain(tool), body if len(body) < 4096 else text_digest(body)] + (["escalated"] if escalated else [])
    words = () if sha else argument_words(fields)
    return Part(key_of(*parts), "other", plain(tool)[:80] or "other", f"{tool} {body}"[:400], words)


def argument_words(fields: Any) -> tuple[str, ...]:
    """Hint words of arguments that are compared as they stand: of their short strings, else of their names."""
    names: list[str] = []
    strings: list[str] = []
    todo: list[Any] = [fields]
    for value in todo:  # which grows meanwhile: breadth first
        if len(names) + len(strings) >= 200:
            break
        if isinstance(value, dict):
            names += [k for k in sorted(value) if isinstance(k, str) and value[k] is not None]
            todo += [value[k] for k in sorted(value, key=str)]
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, str) and 0 < len(value) <= 200:
            strings.append(value)
    return pick([*strings, *names])
