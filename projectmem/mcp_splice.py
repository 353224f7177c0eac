"""Puts a text behind the result of an MCP call as the line stands: every byte of the server's stays as it was.

Reading a line and writing it anew would change numbers that Python does not hold exactly, repeated members and escapes.
"""

from __future__ import annotations

import json
import re
from typing import Any

_decode = json.JSONDecoder(strict=False).raw_decode
_SPACE = re.compile(r"[ \t\r\n]*")

Span = tuple[int, int]


def added(line: str, words: str, id: Any) -> str:
    """The line, a JSON-RPC answer (or a list with the one of `id`), with the words as a last block of the result's content, or at
    the end of an error's message. The line itself where it has neither. Raises ValueError for what is no JSON."""
    at = _skip(line, 0)
    if line[at : at + 1] == "[":
        spans = [span for span in _items(line, at) if _id(line, span) == id]
        if not spans:
            return line
        at = spans[-1][0]
    result = _member(line, at, "result")
    if result is not None:
        return _with_block(line, result, words)
    error = _member(line, at, "error")
    message = _member(line, error[0], "message") if error and line[error[0]] == "{" else None
    if message is None or line[message[0]] != '"':
        return line
    return f"{line[: message[1] - 1]}{json.dumps(chr(10) + words)[1:-1]}{line[message[1] - 1 :]}"


def _with_block(line: str, result: Span, words: str) -> str:
    if line[result[0]] != "{":
        return line
    block = json.dumps({"type": "text", "text": words}, separators=(",", ":"))
    content = _member(line, result[0], "content")
    if content is None:
        first = _skip(line, result[0] + 1)
        comma = "" if line[first] == "}" else ","
        return f'{line[: result[0] + 1]}"content":[{block}]{comma}{line[result[0] + 1 :]}'
    if line[content[0]] != "[":
        return line
    empty = line[_skip(line, content[0] + 1)] == "]"
    return f"{line[: content[1] - 1]}{'' if empty else ','}{block}{line[content[1] - 1 :]}"


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _member(text: str, at: int, name: str) -> Span | None:
    """Where the value of the last member of this name is, in the object that starts at `at`."""
    found = None
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _decode(text, start)
        found = (start, end) if key == name else found
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return found


def _items(text: str, at: int) -> list[Span]:
    found = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _decode(text, at)
        found.append((at, end))
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return found


def _id(text: str, span: Span) -> Any:
    data = json.loads(text[span[0] : span[1]], strict=False)
    return data.get("id") if isinstance(data, dict) else None
