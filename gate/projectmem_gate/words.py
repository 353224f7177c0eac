"""[H] Words of a shell command: quoting resolved, what the shell would still expand marked.

A canonical word is a str. Literal characters stand for themselves; what is *active* (an unquoted `*`, `?`, `[`, `~`, `{`,
any `$x` or `$(...)`) is marked with control characters, so that `"*.py"` and `*.py`, `'$X'` and `$X` differ while
`"a"b`, `ab` and `a\\b` do not. Literal control characters below ACTIVE_END are replaced, so marks cannot be forged.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

GLOB = "\x01"  # before an active character
UNQUOTED = "\x02"  # an expansion outside quotes ... END
QUOTED = "\x03"  # an expansion inside double quotes ... END
COMMAND = "\x04"  # an unquoted command substitution ... END
END = "\x05"
QCOMMAND = "\x06"  # a quoted command substitution ... END
PROCESS = "\x07"  # a process substitution ... END
ACTIVE_END = "\x08"

_MARKS = frozenset(map(chr, range(ord(ACTIVE_END))))
_PLAIN_BREAKERS = frozenset("\\*?[~{}'\"$`")
# A word without any of these is the characters that are written, whatever the parser made of it.
_SPECIAL = _PLAIN_BREAKERS | _MARKS | frozenset("<>()")
_WORDS = frozenset(
    ("word", "number", "variable_name", "special_variable_name", "command_name", "extglob_pattern", "regex")
)  # node types
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_SPLIT = frozenset(" \t\n*?[")  # what the shell would make several words of, or names of files
_SHOWN = {ord(c): None for c in (GLOB, UNQUOTED, QUOTED, COMMAND, END, QCOMMAND, PROCESS)}


def is_static(word: str) -> bool:
    """No active part: the shell passes exactly these characters."""
    return word.isprintable() or _MARKS.isdisjoint(word)  # no mark can be printed, and most words can


def shown(word: str) -> str:
    """The word without its marks: readable, and good enough to be parsed again."""
    return word if is_static(word) else word.translate(_SHOWN)


def clean(text: str) -> str:
    """Literal text with mark characters replaced, so that input cannot forge a mark."""
    return text if is_static(text) else "".join("\ufffd" if c < ACTIVE_END else c for c in text)


def unquoted(text: str) -> str:
    """Text outside quotes: backslashes resolved, active characters marked."""
    if _PLAIN_BREAKERS.isdisjoint(text):
        return clean(text)
    out, i, n = [], 0, len(text)
    while i < n:
        c = text[i]
        if c == "\\":
            i += 1
            if i < n and text[i] != "\n":
                out.append(clean(text[i]))
            elif i >= n:
                out.append("\\")
        elif c in "*?[" or (c == "~" and i == 0) or (c == "{" and ("," in text or ".." in text)):
            out.append(GLOB + c)
        else:
            out.append(clean(c))
        i += 1
    return "".join(out)


def double_quoted(text: str) -> str:
    """Text inside double quotes: only backslash before $ ` " \\ and newline is special."""
    if "\\" not in text:
        return clean(text)
    out, i, n = [], 0, len(text)
    while i < n:
        c = text[i]
        if c == "\\" and i + 1 < n and text[i + 1] in '$`"\\\n':
            i += 1
            if text[i] != "\n":
                out.append(text[i])
        else:
            out.append(clean(c))
        i += 1
    return "".join(out)


def ansi_c(text: str) -> str:
    """The inside of $'...'."""
    out, i, n = [], 0, len(text)
    while i < n:
        c = text[i]
        if c != "\\" or i + 1 >= n:
            out.append(c)
            i += 1
            continue
        e = text[i + 1]
        i += 2
        if e in _ESCAPES:
            out.append(_ESCAPES[e])
        elif e in "xuU01234567":
            width, base, start = {"x": (2, 16, i), "u": (4, 16, i), "U": (8, 16, i)}.get(e, (3, 8, i - 1))
            j = start
            while j < n and j - start < width and text[j] in "0123456789abcdefABCDEF"[: 22 if base == 16 else 8]:
                j += 1
            code = int(text[start:j], base) if j > start else -1
            out.append(chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd")
            i = j
        else:
            out.append("\\" + e)
    return clean("".join(out))


def variable(text: str) -> str:
    """`${x}` is `$x`."""
    if text.startswith("${") and text.endswith("}"):
        name = text[2:-1]
        if name.isidentifier() and name.isascii():
            return "$" + name
    return text


class Reader:
    """Turns word nodes of one source into canonical words.

    lookup      `$x` -> the value known statically, or None
    substitute  (node of $(...), quoted) -> canonical word piece
    bodies      contents of here-documents that were lifted out of the source, by their placeholder (heredocs.py)
    """

    __slots__ = ("bodies", "lookup", "source", "substitute")

    def __init__(
        self,
        source: bytes,
        lookup: Callable[[str], str | None],
        substitute: Callable[[Any, bool], str],
        bodies: dict[str, str] | None = None,
    ) -> None:
        self.source, self.lookup, self.substitute = source, lookup, substitute
        self.bodies: dict[str, str] = {} if bodies is None else bodies

    def text(self, node: Any) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def word(self, node: Any) -> str:
        """The canonical word of a word-like node."""
        kind = node.type
        if kind in _WORDS:
            text = self.text(node)
            if _SPECIAL.isdisjoint(text):
                return text
            if kind == "command_name" and node.child_count:
                return "".join([self.word(c) for c in node.children])
            if node.child_count and kind != "word":
                return self._pieces(node)
            return unquoted(text)
        if kind == "string":
            return self._string(node)
        if kind == "raw_string":
            return clean(self.text(node)[1:-1])
        if kind == "concatenation":
            return self._pieces(node)
        if kind == "ansi_c_string":
            return ansi_c(self.text(node)[2:-1])
        if kind == "translated_string":
            return "".join([self.word(c) for c in node.children if c.type == "string"])
        return self._active(node, False)

    def _active(self, node: Any, quoted: bool) -> str:
        kind = node.type
        if kind in ("simple_expansion", "expansion"):
            text = variable(self.text(node))
            known = self.lookup(text[1:]) if text.startswith("$") else None
            if known is not None and (quoted or _SPLIT.isdisjoint(known)):
                return known
            return (QUOTED if quoted else UNQUOTED) + clean(text) + END
        if kind == "command_substitution":
            return self.substitute(node, quoted)
        if kind == "process_substitution":
            return PROCESS + clean(" ".join(self.text(node).split())) + END
        if kind == "brace_expression":
            return GLOB + clean(self.text(node))
        if kind == "arithmetic_expansion":
            return (QUOTED if quoted else UNQUOTED) + clean("".join(self.text(node).split())) + END
        return unquoted(self.text(node))

    def _pieces(self, node: Any) -> str:
        """Adjoining pieces of one word; text that the grammar gives no node of its own is read as unquoted."""
        source = self.source
        braces = b"," in source[node.start_byte : node.end_byte]
        out, at = [], node.start_byte
        for child in node.children:
            if child.start_byte > at:
                out.append(unquoted(source[at : child.start_byte].decode("utf-8", "replace")))
            if child.end_byte == child.start_byte + 1 and source[child.start_byte] == 0x7B:  # "{"
                out.append(GLOB + "{" if braces else "{")
            else:
                out.append(self.word(child) if child.is_named else unquoted(self.text(child)))
            at = child.end_byte
        if node.end_byte > at:
            out.append(unquoted(source[at : node.end_byte].decode("utf-8", "replace")))
        return "".join(out)

    def _string(self, node: Any) -> str:
        source, start, end = self.source, node.start_byte + 1, node.end_byte - 1
        children = node.children
        out, at = [], start
        for child in children:
            if child.type in ("simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"):
                if child.start_byte > at:
                    out.append(double_quoted(source[at : child.start_byte].decode("utf-8", "replace")))
                out.append(self._active(child, True))
                at = child.end_byte
        if end > at:
            out.append(double_quoted(source[at:end].decode("utf-8", "replace")))
        return "".join(out)


def literal(body: str) -> str | None:
    """An unquoted here-document whose only special characters are escaped, with the escapes resolved; None when it expands."""
    out, i, n = [], 0, len(body)
    while i < n:
        c = body[i]
        if c in "$`":
            following = body[i + 1 : i + 2]
            if (
                c == "`"
                or following in ("(", "{")
                or following.isalnum()
                or following in ("_", "?", "!", "@", "*", "#", "-", "$")
            ):
                return None
        if c == "\\" and body[i + 1 : i + 2] in ("$", "`", "\\", "\n"):
            i += 1
            if body[i] != "\n":
                out.append(body[i])
        else:
            out.append(c)
        i += 1
    return "".join(out)
