"""[H] What a small program of Python makes of the files that it rewrites: what an agent writes where an edit would do.

    p = "src/app.py"; s = open(p).read(); s = s.replace("a = 1", "a = 7"); open(p, "w").write(s)

Only literals, reading, `replace`, joining and writing of whole texts are understood, one after the other; at anything else that
may matter the answer is None. Nothing of it is run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Value = tuple[str, str]  # ("text" | "path" | "file" | "lines", what)

SOURCE_MAX, WRITES_MAX = 16_384, 4
_IGNORED = ("import ", "from ", "print(", "assert ", "#")
_NAME = r"[A-Za-z_]\w*"
_STRING = r'''[rRbu]?("""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\'|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')'''
_OPTION = r"""(?:\s*,\s*(?:encoding|newline|errors)\s*=\s*(?:"[^"]*"|'[^']*'|None))*"""


class _OddError(Exception):
    """The program does something that is not understood."""


def written(source: str, read: Callable[[str], str]) -> dict[str, str] | None:
    """{path as written: the text it leaves} of a program, None where it is not understood. `read` gives a file's text as it is,
    "" where there is none."""
    if len(source) > SOURCE_MAX:
        return None
    try:
        program = _Program(read)
        for statement in _statements(source):
            program.run(statement)
    except (_OddError, ValueError, IndexError, KeyError):
        return None
    return program.made if len(program.made) <= WRITES_MAX else None


def _statements(source: str) -> list[str]:
    """The statements, those of a `with` block taken out of it; brackets and strings may run over lines."""
    import re

    out, start, depth, at = [], 0, 0, 0
    string = re.compile(_STRING)
    while at < len(source):
        c = source[at]
        if c in "\"'":  # a letter in front, if there is one, was passed as any other
            found = string.match(source, at)
            if found is None:
                raise _OddError
            at = found.end()
            continue
        depth += (c in "([{") - (c in ")]}")
        if c == "#":
            end = source.find("\n", at)
            source = source[:at] + (source[end:] if end >= 0 else "")
            continue
        if (c == ";" or c == "\n") and depth == 0:
            out.append(source[start:at])
            start = at + 1
        at += 1
    out.append(source[start:])
    return [s.strip() for s in out if s.strip()]


class _Program:
    """The variables of a program, and the files that it wrote so far."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self.read, self.known, self.made = read, {}, {}  # type: Callable[[str], str], dict[str, Value], dict[str, str]

    def run(self, statement: str) -> None:
        """Follow one statement."""
        import re

        if statement.startswith(_IGNORED) or statement in ("pass", "exit()", "sys.exit(0)"):
            return
        block = re.fullmatch(rf"with\s+open\((.*)\)\s+as\s+({_NAME})\s*:(.*)", statement, re.S)
        if block is not None:
            self.known[block.group(2)] = ("file", self._opened(block.group(1)))
            if block.group(3).strip():
                self.run(block.group(3).strip())
            return
        bound = re.match(rf"({_NAME})(?:\s*:\s*\w+)?\s*(\+?=)(?!=)\s*", statement)
        if bound is not None:
            value = self._value(statement[bound.end() :])
            if bound.group(2) == "+=":
                value = ("text", self._text(self.known[bound.group(1)]) + self._text(value))
            self.known[bound.group(1)] = value
            return
        wrote = re.fullmatch(rf"(.*)\.(?:write|write_text)\((.*?){_OPTION}\s*,?\s*\)", statement, re.S)
        if wrote is None:
            raise _OddError
        target = self._value(wrote.group(1))
        if target[0] not in ("file", "path"):
            raise _OddError
        path = target[1].removeprefix("\0")
        text = self._text(self._value(wrote.group(2)))
        if target[0] == "file" and not target[1].startswith("\0"):
            raise _OddError  # not opened for writing
        self.made[path] = text

    def _opened(self, arguments: str) -> str:
        """The path of `open(...)`, with NUL before it where it is opened to be written anew."""
        import re

        found = re.fullmatch(rf"(.*?)(?:\s*,\s*(?:mode\s*=\s*)?['\"]([a-z+]*)['\"])?{_OPTION}\s*,?\s*", arguments, re.S)
        if found is None or (found.group(2) or "r").replace("t", "") not in ("r", "w"):
            raise _OddError
        path = self._value(found.group(1))
        return ("\0" if (found.group(2) or "r")[0] == "w" else "") + path[1]

    @staticmethod
    def _text(value: Value) -> str:
        if value[0] != "text":
            raise _OddError
        return value[1]

    def _value(self, expression: str) -> Value:
        """The value of an expression: a literal or a name, and the calls behind it."""
        import re

        expression = expression.strip()
        while expression[:1] == "(" and expression[-1:] == ")" and _closes(expression, 0) == len(expression) - 1:
            expression = expression[1:-1].strip()
        parts = _apart(expression, "+")
        if len(parts) > 1:
            return ("text", "".join([self._text(self._value(part)) for part in parts]))
        literals = re.match(_STRING, expression)
        if literals is not None:
            value, at = ("text", ""), 0
            while literals is not None:  # strings beside each other are one
                value = ("text", value[1] + _string(expression[at : literals.end()].strip()))
                at = literals.end()
                at += len(expression[at:]) - len(expression[at:].lstrip())
                literals = re.match(_STRING, expression[at:]) and re.compile(_STRING).match(expression, at)
        else:
            named = re.match(rf"(?:pathlib\.)?(Path|open)\(|({_NAME})", expression)
            if named is None:
                raise _OddError
            if named.group(2) is not None:
                value, at = self.known[named.group(2)], named.end()
            else:
                end = _closes(expression, named.end() - 1)
                inner = expression[named.end() : end]
                value = ("file", self._opened(inner)) if named.group(1) == "open" else ("path", self._value(inner)[1])
                at = end + 1
        return self._called(value, expression, at)

    def _called(self, value: Value, expression: str, at: int) -> Value:
        import re

        while at < len(expression):
            call = re.match(rf"\s*\.({_NAME})\(", expression[at:])
            if call is None:
                raise _OddError
            end = _closes(expression, at + call.end() - 1)
            given = [a for a in _apart(expression[at + call.end() : end], ",") if a.strip()]
            at, name = end + 1, call.group(1)
            if name in ("read", "read_text") and value[0] in ("file", "path") and value[1][:1] != "\0":
                path = value[1]
                value = ("text", self.made[path] if path in self.made else self.read(path))
                if not value[1]:
                    raise _OddError
            elif name == "open" and value[0] == "path":
                value = ("file", self._opened(f"'x', {', '.join(given)}").replace("x", "") + value[1])
            elif name == "replace" and value[0] == "text" and len(given) in (2, 3):
                old, new = (self._text(self._value(a)) for a in given[:2])
                if not old:
                    raise _OddError
                value = ("text", value[1].replace(old, new, int(given[2].rpartition("=")[2]) if given[2:] else -1))
            else:
                raise _OddError
        return value


def _plain(text: str, at: int = 0) -> Iterator[tuple[int, str, int]]:
    """(index, character, brackets open behind it) from `at` on of what stands in no string."""
    import re

    string, depth = re.compile(_STRING), 0
    while at < len(text):
        found = string.match(text, at) if text[at] in "\"'" else None
        if found is not None:
            at = found.end()
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        yield at, text[at], depth
        at += 1


def _closes(text: str, at: int) -> int:
    """Index of the bracket that closes the one at `at`."""
    for index, _, depth in _plain(text, at):
        if not depth:
            return index
    raise _OddError


def _apart(text: str, mark: str) -> list[str]:
    """The text between marks that stand in no string and no bracket."""
    out, start = [], 0
    for index, c, depth in _plain(text):
        if c == mark and not depth:
            out.append(text[start:index])
            start = index + 1
    return [*out, text[start:]]


_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"', "\n": "", "r": "\r"}


def _string(literal: str) -> str:
    """The text of a string literal that has no name, number or expression in it."""
    raw = literal[0] in "rR"
    if literal[0] in "bf":
        raise _OddError
    body = literal.lstrip("rRu")
    quote = body[:3] if body[:3] in ('"""', "'''") else body[:1]
    body = body[len(quote) : -len(quote)]
    if raw or "\\" not in body:
        return body
    out, at = "", 0
    while at < len(body):
        if body[at] == "\\":
            out += _ESCAPES[body[at + 1 : at + 2]]
            at += 1
        else:
            out += body[at]
        at += 1
    return out
