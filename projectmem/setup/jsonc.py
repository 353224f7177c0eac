"""Edits JSON text in place, with or without comments: what is not edited stays as it was, byte for byte.

A settings file is other people's: writing it anew from parsed data would lose comments, order of spaces and line ends.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")  # what JSON knows as such: at any other the harness takes the file for damaged
_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
MAX_DEPTH = 200
MARK = "\ufeff"  # a byte order mark, with which some editors of Windows begin a file; it stays where it is


class JsonError(ValueError):
    """The text is not JSON. `where` is LINE:COLUMN; `comment`: a comment stands there."""

    def __init__(self, text: str, at: int, what: str) -> None:
        line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
        super().__init__(what)
        self.where, self.comment = f"{line}:{column}", text.startswith(("//", "/*"), at)


class Node:
    """A value and where it is: `text[start:end]`.

    data     as Python data;  members  of an object: key -> (start of the key, value)
    items    of a list;  trailing  a comma stands after the last one
    spans    where its items or members are, also those whose name comes again: the last of these is the one that counts
    """

    __slots__ = ("data", "end", "items", "members", "spans", "start", "trailing")

    def __init__(self, start: int) -> None:
        self.start, self.end, self.trailing = start, start, False
        self.data: Any = None
        self.members: dict[str, tuple[int, Node]] = {}
        self.items: list[Node] = []
        self.spans: list[tuple[int, int]] = []


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self.text, self.comments = text, comments
        self.gap = _GAP if comments else _SPACE

    def skip(self, at: int) -> int:
        found = self.gap.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int = 0) -> Node:
        at = self.skip(at)
        node = Node(at)
        first = self.text[at : at + 1]
        if depth > MAX_DEPTH:
            raise JsonError(self.text, at, "nested too deeply")
        if first in ("{", "["):
            return self._container(node, "}" if first == "{" else "]", depth)
        found = (_STRING if first == '"' else _SCALAR).match(self.text, at)
        if found is None:
            raise JsonError(self.text, at, "a value is missing" if first else "the text ends too early")
        node.end = found.end()
        node.data = self._scalar(found.group(), at)
        return node

    def _scalar(self, word: str, at: int) -> Any:
        try:
            return json.loads(word)
        except ValueError:
            raise JsonError(self.text, at, f"{word[:40]} is not valid JSON") from None

    def _container(self, node: Node, close: str, depth: int) -> Node:
        at, more = node.start + 1, False
        while True:
            at = self.skip(at)
            if self.text[at : at + 1] == close and (not more or self.comments):
                node.trailing = more
                break
            if (node.members or node.items) and not more:
                raise JsonError(self.text, at, f"`,` or `{close}` is missing")
            at, more = self._member(node, at, close, depth), False
            after = self.skip(at)
            if self.text[after : after + 1] == ",":
                at, more = after + 1, True
        node.end = at + 1
        node.data = [item.data for item in node.items]
        if close == "}":
            node.data = {key: value.data for key, (_, value) in node.members.items()}
        return node

    def _member(self, node: Node, at: int, close: str, depth: int) -> int:
        if close == "]":
            node.items.append(self.value(at, depth + 1))
            node.spans.append((node.items[-1].start, node.items[-1].end))
            return node.items[-1].end
        found = _STRING.match(self.text, at)
        if found is None:
            raise JsonError(self.text, at, "a name in double quotes is missing")
        colon = self.skip(found.end())
        if self.text[colon : colon + 1] != ":":
            raise JsonError(self.text, colon, "`:` is missing")
        value = self.value(colon + 1, depth + 1)
        node.members[self._scalar(found.group(), at)] = at, value
        node.spans.append((at, value.end))
        return value.end


def parse(text: str, *, comments: bool = True) -> Node:
    """The whole text as one value. With `comments`, comments and a comma after the last member are allowed. Raises JsonError."""
    reader = _Reader(text, comments)
    node = reader.value(text.startswith(MARK))
    end = reader.skip(node.end)
    if end != len(text):
        raise JsonError(text, end, "something stands after the end")
    return node


def blank(text: str) -> bool:
    """Whether nothing is in the file yet."""
    return not text.removeprefix(MARK).strip()


Edit = tuple[int, int, str]  # text[start:end] becomes the string


def applied(text: str, edits: list[Edit]) -> str:
    """The text with the edits, which do not overlap."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def indent_of(text: str) -> str:
    """One level of indentation as the text has it; two spaces where nothing shows it."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found.group(1) if found else "  "


def shown(value: Any, unit: str, depth: int, newline: str = "\n") -> str:
    """A value as JSON text that stands `depth` levels deep."""
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline + unit * depth).join(lines)


def inserted(text: str, node: Node, depth: int, value: Any, key: str | None = None) -> Edit:
    """The edit that adds a last item (or member `key`) to a list (or object) that stands `depth` levels deep."""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = indent_of(text)
    body = shown(value, unit, depth + 1, newline)
    if key is not None:
        body = f"{json.dumps(key, ensure_ascii=False)}: {body}"
    last = node.spans[-1][1] if node.spans else None
    before = newline + unit * (depth + 1)
    if last is None:
        inner = text[node.start + 1 : node.end - 1]
        after = newline + unit * depth if not inner.strip() else ""  # comments alone: they keep their own line end
        return node.start + 1, node.start + 1 + (len(inner) if not inner.strip() else 0), f"{before}{body}{after}"
    if node.trailing:
        comma = _Reader(text, True).skip(last)
        return comma + 1, comma + 1, f"{before}{body}"
    closing = newline + unit * depth if "\n" not in text[last : node.end] else ""
    return last, last, f",{before}{body}{closing}"


def removed(text: str, node: Node, index: int) -> Edit:
    """The edit that takes the item or member with this index out, and one of the commas beside it."""
    wanted = [(item.start, item.end) for item in node.items] or [(at, value.end) for at, value in node.members.values()]
    spans, (start, end) = node.spans, wanted[index]
    index = spans.index((start, end))
    reader = _Reader(text, True)
    after = reader.skip(end)
    if text[after : after + 1] == ",":
        follows = _SPACE.match(text, after + 1)
        if index + 1 < len(spans):
            return start, follows.end() if follows else after + 1, ""
        end = after + 1
    if index == 0:
        rest = text[node.start + 1 : start] + text[end : node.end - 1]
        return (node.start + 1, node.end - 1, "") if not rest.strip() else (start, end, "")
    before = spans[index - 1][1]
    comma = reader.skip(before)
    left = text[before:comma] + text[comma + 1 : start]  # a comment there is not ours
    if not left.strip():
        return before, end, ""
    return before, end, left.rstrip() if text[end:].lstrip(" \t").startswith(("\n", "\r\n")) else left
