"""[H] What simple programs of sed and perl make of a text: `s/old/new/g`, `3,5d`, with or without an address.

Only what is understood for certain: anything else gives None. Regular expressions of sed become Python's; a pattern that could
take long to match (a repeated group, many repetitions) is not tried.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PATTERN_MAX, REPEATS_MAX, LINE_MAX, WHOLE_MAX = 200, 5, 2_000, 32_768
_CLASSES = {
    "[:space:]": r"\s", "[:digit:]": "0-9", "[:alpha:]": "A-Za-z", "[:alnum:]": "A-Za-z0-9", "[:upper:]": "A-Z",
    "[:lower:]": "a-z", "[:blank:]": " \\t", "[:xdigit:]": "0-9A-Fa-f",
}  # fmt: skip


def sed(scripts: list[str], text: str, *, extended: bool) -> str | None:
    """The text after `sed -i` with these scripts (`-e` each, or the one), None where they are not understood."""
    rules: list[Any] = []
    for script in scripts:
        found = _rules(script, extended)
        if found is None:
            return None
        rules += found
    return _run(rules, text) if rules else None


def perl(script: str, text: str, *, whole: bool = False) -> str | None:
    """The text after `perl -pi -e` with this script, None where it is not understood. `whole`: the file is one line (-0777)."""
    rules: list[Any] = []
    for piece in script.strip().rstrip(";").split(";"):
        found = _substitution(piece.strip(), 0, "perl")
        if found is None or found[1] != len(piece.strip()):
            return None
        rules.append((None, None, found[0]))
    if whole and rules:
        for _, _, change in rules if len(text) <= WHOLE_MAX else ():
            text = change(text)
        return text if len(text) <= WHOLE_MAX else None
    return _run(rules, text) if rules else None


def _run(rules: list[Any], text: str) -> str | None:
    lines = text.split("\n")
    last = lines.pop() if text.endswith("\n") else None
    if any(len(line) > LINE_MAX for line in lines):
        return None
    out: list[str] = []
    for number, line in enumerate(lines, 1):
        kept: str | None = line
        for first, upto, change in rules:
            if kept is None:
                break
            if first is None or _addressed(first, upto, number, len(lines), kept):
                kept = change(kept)
        if kept is not None:
            out.append(kept)
    return "\n".join(out) + ("\n" if last is not None and out else "")


def _addressed(first: Any, upto: Any, number: int, count: int, line: str) -> bool:
    if not isinstance(first, int):
        return first.search(line) is not None
    start = count if first < 0 else first
    return start <= number <= max(start, count if upto is not None and upto < 0 else upto or start)


def _rules(script: str, extended: bool) -> list[Any] | None:
    """(address, second address, change) of each command."""
    out: list[Any] = []
    at = 0
    while at < len(script):
        if script[at] in " ;\n\t":
            at += 1
            continue
        addressed = _address(script, at, extended)
        if addressed is None:
            return None
        first, upto, at = addressed
        if script[at : at + 1] == "d":
            out.append((first, upto, _nothing))
            at += 1
        else:
            found = _substitution(script, at, "extended" if extended else "basic")
            if found is None:
                return None
            out.append((first, upto, found[0]))
            at = found[1]
        if script[at : at + 1].strip(" ;\n\t"):
            return None
    return out


def _nothing(line: str) -> None:
    return None


def _address(script: str, at: int, extended: bool) -> tuple[Any, Any, int] | None:
    first, at = _number(script, at)
    if first is not None:
        upto = None
        if script[at : at + 1] == ",":
            upto, at = _number(script, at + 1)
            if upto is None:
                return None
        return first, upto, _past_blanks(script, at)
    if script[at : at + 1] == "/":
        pieces = list(_pieces(script, at, 1))
        pattern = _compiled(pieces[0][0], "extended" if extended else "basic", 0) if pieces else None
        return None if pattern is None else (pattern, None, _past_blanks(script, pieces[0][1]))
    return None, None, at


def _past_blanks(script: str, at: int) -> int:
    while script[at : at + 1] == " ":
        at += 1
    return at


def _number(script: str, at: int) -> tuple[int | None, int]:
    if script[at : at + 1] == "$":
        return -1, at + 1
    end = at
    while script[end : end + 1].isdigit():
        end += 1
    return (int(script[at:end]), end) if 0 < end - at < 8 else (None, at)


def _pieces(script: str, at: int, wanted: int) -> Iterator[tuple[str, int]]:
    """(text, index after it) between the delimiters that start at `at`; a delimiter with a backslash is a plain one."""
    mark = script[at : at + 1]
    at += 1
    for _ in range(wanted):
        piece = ""
        while script[at : at + 1] not in ("", mark):
            if script[at] == "\\" and script[at + 1 : at + 2] == mark:
                at += 1
            elif script[at] == "\\":
                piece += script[at]
                at += 1
            piece += script[at : at + 1]
            at += 1
        if at >= len(script):
            return  # not closed
        at += 1
        yield piece, at


def _substitution(script: str, at: int, style: str) -> tuple[Any, int] | None:
    """(line -> line, index after it) of `s/old/new/flags`."""
    mark = script[at + 1 : at + 2]
    if script[at : at + 1] != "s" or not mark or mark.isalnum() or mark in " \\\n{([<":
        return None
    pieces = list(_pieces(script, at + 1, 2))
    if len(pieces) < 2:
        return None
    (old, _), (new, end) = pieces
    flags = ""
    while script[end : end + 1].isalnum():
        flags += script[end]
        end += 1
    if flags.strip("gismI" if style == "perl" else "gIi"):
        return None
    import re

    said = {"i": re.IGNORECASE, "I": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE}
    pattern = _compiled(old, style, sum({said[f] for f in flags if f != "g"}))
    made = _replacement(new, style)
    if pattern is None or made is None or any(isinstance(piece, int) and piece > pattern.groups for piece in made):
        return None
    count = 0 if "g" in flags else 1

    def put(found: Any) -> str:
        return "".join([(found.group(p) or "") if isinstance(p, int) else p for p in made])

    def change(line: str) -> str:
        return str(pattern.sub(put, line, count=count))

    return change, end


def _replacement(text: str, style: str) -> list[Any] | None:
    """Literal pieces and numbers of groups."""
    out: list[Any] = []
    at = 0
    while at < len(text):
        c, following = text[at], text[at + 1 : at + 2]
        at += 1
        if style == "perl" and c in "$@":
            if c == "@" or not following.isdigit():
                return None
            out.append(int(following))
            at += 1
        elif c == "&" and style != "perl":
            out.append(0)
        elif c == "\\":
            if not following or (following.isalpha() and following not in "nt"):
                return None
            out.append(int(following) if following.isdigit() else {"n": "\n", "t": "\t"}.get(following, following))
            at += 1
        else:
            out.append(c)
    return out


def _compiled(pattern: str, style: str, flags: int) -> Any:
    """Python's expression for sed's or perl's, None where it is not understood or may take long."""
    if (
        not pattern
        or len(pattern) > PATTERN_MAX
        or (style == "perl" and any(c in pattern for c in "$@") and not _ends_only(pattern))
    ):
        return None
    translated = pattern if style == "perl" else _translated(pattern, style == "extended")
    if translated is None or "(?" in translated or any(f"){c}" in translated for c in "*+{"):
        return None
    if sum(translated.count(c) for c in "*+{") > REPEATS_MAX:
        return None
    import re

    try:
        return re.compile(translated, flags)
    except (re.error, OverflowError):
        return None


def _ends_only(pattern: str) -> bool:
    return "@" not in pattern and "$" not in pattern[:-1].replace("\\$", "")


def _translated(pattern: str, extended: bool) -> str | None:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        c = pattern[at]
        if c == "[":
            end = _bracket(pattern, at)
            if end < 0:
                return None
            out.append(_inside(pattern[at:end]))
            at = end
            continue
        at += 1
        if c == "\\":
            escaped = pattern[at : at + 1]
            at += 1
            if escaped in "(){}|+?" and escaped:
                out.append("\\" + escaped if extended else escaped)
            elif escaped in "<>":
                out.append(r"\b")
            elif not escaped or (escaped.isalnum() and escaped not in "bwWsSnt"):
                return None
            else:
                out.append("\\" + escaped)
        elif not extended and _is_plain(pattern, at - 1):
            out.append("\\" + c)
        else:
            out.append(c)
    return "".join(out)


def _is_plain(pattern: str, at: int) -> bool:
    """Does the character stand for itself in a basic expression?"""
    c = pattern[at]
    if c == "$":
        return at + 1 < len(pattern) and pattern[at + 1 : at + 3] != "\\)"
    return c in "(){}|+?" or (c == "*" and at == 0) or (c == "^" and at > 0)


def _bracket(pattern: str, at: int) -> int:
    """The index after a bracket expression, -1 for one that is not closed."""
    end = at + 1
    if pattern[end : end + 1] == "^":
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    while end < len(pattern) and pattern[end] != "]":
        if pattern.startswith("[:", end):
            close = pattern.find(":]", end)
            if close < 0:
                return -1
            end = close + 2
        else:
            end += 1
    return end + 1 if end < len(pattern) else -1


def _inside(bracket: str) -> str:
    """A bracket expression as Python has it: a backslash in it is a plain character, but before n, t, s, w and d."""
    body = bracket[1:-1]
    negated = body[:1] == "^"
    body = body[negated:]
    out = ["[^" if negated else "["]
    at = 0
    while at < len(body):
        named = next((name for name in _CLASSES if body.startswith(name, at)), "")
        if named:
            out.append(_CLASSES[named])
            at += len(named)
            continue
        c = body[at]
        plain = c in "[&~|" or (c == "]" and at == 0) or (c == "\\" and body[at + 1 : at + 2] not in tuple("ntswd"))
        out.append("\\" + c if plain else c)
        at += 1
    return "".join(out) + "]"
