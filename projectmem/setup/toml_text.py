"""Finds where values stand in TOML text, so that one can be edited in place: every other byte stays, comments included.

It reads what `tomllib` has already taken as valid; of inline tables only their end is found.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator

_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_PART = re.compile(r"""[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*""")
_STRINGS = ('"""', "'''", '"', "'")


class Value:
    """path  the keys of its tables and its own;  key  where its key begins;  start, end  of the value: `text[start:end]`"""

    __slots__ = ("end", "key", "path", "start")

    def __init__(self, path: tuple[str, ...], key: int, start: int, end: int) -> None:
        self.path, self.key, self.start, self.end = path, key, start, end


def values(text: str) -> Iterator[Value]:
    """Every `key = value` of the text. Raises ValueError where it is no TOML."""
    at, table = _skip(text, 0), tuple[str, ...]()
    while at < len(text):
        if text[at] == "[":
            double = text[at : at + 2] == "[["
            table, at = _keys(text, at + 1 + double)
            table = (*table, "[]") if double else table
            at = text.index("]", at) + 1 + double
        else:
            path, equals = _keys(text, at)
            start = _skip(text, equals + 1)
            end = _end(text, start)
            yield Value((*table, *path), at, start, end)
            at = end
        at = _skip(text, at)


def items(text: str, array: Value) -> list[tuple[int, int]]:
    """Where the items of an array are. Raises ValueError for another value."""
    if text[array.start] != "[":
        raise ValueError("no array")
    return _items(text, array.start)[0]


def string_of(text: str) -> str:
    """The value of a string's TOML text. Raises ValueError for what is none."""
    found = tomllib.loads(f"a = {text}")["a"]
    if not isinstance(found, str):
        raise ValueError("no string")
    return found


def quoted(text: str) -> str:
    """A string as TOML text."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _skip(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def _keys(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """(the parts of a dotted key, where what follows it is)."""
    parts: list[str] = []
    while True:
        found = _PART.match(text, at)
        if found is None:
            raise ValueError(f"no key at {at}")
        double, single, bare = found.groups()
        parts.append(string_of(f'"{double}"') if double is not None else single if single is not None else bare)
        at = found.end()
        if text[at : at + 1] != ".":
            return tuple(parts), at
        at += 1


def _end(text: str, at: int) -> int:
    if text[at : at + 1] == "[":
        return _items(text, at)[1]
    if text[at : at + 1] == "{":
        depth = 0
        while True:
            char = text[at : at + 1]
            depth += (char == "{") - (char == "}")
            at = _end(text, at) if char in ("'", '"') else _skip(text, at + 1)
            if not depth:
                return at if text[at - 1] == "}" else text.rindex("}", 0, at) + 1
            if not char:
                raise ValueError("an inline table has no end")
    for quote in _STRINGS:
        if text.startswith(quote, at):
            return _string_end(text, at + len(quote), quote)
    while at < len(text) and text[at] not in ",]}#\n":
        at += 1
    return len(text[:at].rstrip())


def _string_end(text: str, at: int, quote: str) -> int:
    while not text.startswith(quote, at):
        if at >= len(text):
            raise ValueError("a string has no end")
        at += 2 if text[at] == "\\" and quote[0] == '"' else 1
    at += len(quote)
    while len(quote) == 3 and text[at : at + 1] == quote[0]:  # up to two quotes may stand before the closing three
        at += 1
    return at


def _items(text: str, at: int) -> tuple[list[tuple[int, int]], int]:
    """(the items, the end) of the array that begins at `at`."""
    found = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        end = _end(text, at)
        if end <= at:
            raise ValueError("an array has no end")
        found.append((at, end))
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    return found, at + 1
