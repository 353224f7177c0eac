"""[H] Tools whose input is a small program: Codex's code mode, and SWE-agent's one-line commands.

Code mode (`exec` with JavaScript): the string literals of `tools.exec_command({cmd: "..."})` and `tools.apply_patch("...")` are
the actions. SWE-agent (`edit`, `create`, `open` ... with everything in `command`): the path is the first word.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CALL = r"""tools\.(exec_command|shell_command|shell|apply_patch)\(\s*"""
_MEMBER = r"""["']?(cmd|command|workdir|input|patch|sandbox_permissions|with_escalated_permissions)["']?\s*:\s*"""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "v": "\v"}


def calls(source: str) -> list[tuple[str, dict[str, Any]]]:
    """(tool name, fields) of the tool calls in a code-mode script whose arguments are literals; [] when there are none."""
    if "tools." not in source:
        return []
    import re

    out: list[tuple[str, dict[str, Any]]] = []
    for found in re.finditer(_CALL, source):
        name, at = found.group(1), found.end()
        if name == "apply_patch" and source[at : at + 1] in ("'", '"', "`"):
            value, _ = literal(source, at)
            if value is not None:
                out.append((name, {"patch": value}))
            continue
        end = source.find("tools.", at)
        fields: dict[str, Any] = {}
        position, stop = at, len(source) if end < 0 else end
        while (member := re.compile(_MEMBER).search(source, position, stop)) is not None:
            value, position = literal(source, member.end())
            if value is None:
                position = member.end()
                if source.startswith("true", position):
                    fields.setdefault(member.group(1), True)
                continue
            fields.setdefault(member.group(1), value)
            stop = max(stop, position)
        if any(k in fields for k in ("cmd", "command", "patch", "input")):
            out.append((name, fields))
    return out


def literal(source: str, at: int) -> tuple[str | None, int]:
    """The JavaScript string literal at `at` and the index after it; None when there is none or it is not constant."""
    quote = source[at : at + 1]
    if quote not in ("'", '"', "`") or not quote:
        return None, at
    out: list[str] = []
    i, n = at + 1, len(source)
    while i < n:
        c = source[i]
        if c == quote:
            return "".join(out), i + 1
        if c == "$" and quote == "`" and source[i + 1 : i + 2] == "{":
            return None, i
        if c == "\\" and i + 1 < n:
            e = source[i + 1]
            i += 2
            if e == "u" and source[i : i + 4].isalnum():
                try:
                    out.append(chr(int(source[i : i + 4], 16)))
                except ValueError:
                    out.append("?")
                i += 4
            elif e != "\n":
                out.append(_ESCAPES.get(e, e))
            continue
        out.append(c)
        i += 1
    return None, i


def one_line(kind: str, command: str) -> dict[str, Any] | None:
    """Fields of a SWE-agent command (`create PATH`, `open PATH LINE`, `edit 'old' 'new'`, `edit 3:5` ...), None when unclear."""
    line, _, body = command.partition("\n")
    words = _split(line)
    if not words:
        return None
    if kind == "edit":
        if len(words) >= 3 and not body:
            return {"path": "", "old_string": words[1], "new_string": words[2], "replace_all": words[3:4] == ["True"]}
        content = body.removesuffix("end_of_edit").rstrip("\n") if body else " ".join(words[1:])
        return {"path": "", "old_string": f"lines {' '.join(words[1:])}" if body else "", "new_string": content}
    if kind == "write":
        return {"path": words[1], "content": body} if len(words) > 1 else None
    if kind == "read":
        return {"path": words[1], "at": " ".join(words[2:])} if len(words) > 1 else None
    return {"query": " ".join(words[1:])}


def _split(line: str) -> list[str]:
    """Words of a line, quotes removed; tolerant of what is not closed."""
    out: list[str] = []
    word, quote, started = "", "", False
    for c in line:
        if quote:
            if c == quote:
                quote = ""
            else:
                word += c
        elif c in "'\"":
            quote, started = c, True
        elif c in " \t":
            if word or started:
                out.append(word)
            word, started = "", False
        else:
            word += c
    return [*out, word] if word or started else out


def patched(value: Any, depth: int = 0) -> list[str]:
    """Files that patches inside a script change, as far as their headers show: `*** Update File: src/a.py`."""
    if isinstance(value, str):
        found: list[str] = []
        if "*** " in value:
            for head in ("*** Update File: ", "*** Add File: ", "*** Delete File: "):
                for rest in value.split(head)[1:]:
                    path = rest.split("\n", 1)[0].split("\\n", 1)[0].strip().strip("'\"`")
                    if path and len(path) < 400:
                        found.append(path)
        return found[:32]
    if depth > 4 or not isinstance(value, (dict, list)):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [path for item in inner for path in patched(item, depth + 1)][:32]
