"""Assignments that give a secret away by the name it is assigned to: `password=`, `"api_key": "..."`, `--token x`. Pure.

Found by plain substring search on the name's end; one anchored pattern then reads the separator and the value, and a
judgement by name, form and value tells a secret from a variable, a type, a flag, a number or a path.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# (substring to look for first, the ends of names that contain it, whether such a name leaves little doubt); lower case.
_NAMES: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("pass", ("password", "passwd", "passphrase", "passwort", "passcode", "_pass", "-pass"), True),
    ("pwd", ("pwd",), True),
    ("secret", ("secret", "secret_key_base"), True),
    ("token", ("token",), False),
    ("key", ("api_key", "apikey", "api-key", "access_key", "access-key", "accesskey", "secret_key", "secretkey", "secret-key",
             "private_key", "privatekey", "private-key", "signing_key", "encryption_key", "auth_key", "account_key",
             "master_key"), False),
    ("credential", ("credential", "credentials"), False),
    ("_auth", ("_auth",), False),
)  # fmt: skip

_PLAIN = (
    "string str text bool boolean number int integer any none null nil true false undefined object bytes unknown optional void "
    "char required secret password token self this yes no on off env file prompt default empty redacted hidden changeme example "
    "masked value type name key input stdin inherit disabled enabled auto varchar uuid new old field missing invalid expired "
    "wrong incorrect is was not the a an for and or of to"
)
_WORDS = frozenset(_PLAIN.split())
_ASSIGN = (
    r"\d{0,3}\\{0,15}[\"'`]?\]?"  # the end of the name
    # an annotated literal, `x: str = "..."`; else a plain separator, or the space after a flag
    r"(?:[ \t]{0,3}:[ \t]{0,3}[A-Za-z_][\w\[\]|., ]{0,40}?[ \t]?=(?!=)[ \t]{0,3}(?=[\"'])"  # `x: str = "..."`
    r"|[ \t]{0,3}(?::=|=>|=(?!=)|:(?![:/]))[ \t]{0,3}|[ \t]+(?=[^\s=:-]))"
    r"(?:(\\{0,15})([\"'`])(?=[^\n])|([^\s\"'`<>|;&,\\]))"  # the quote that opens a value, or the first character of a plain one
)
_PLAIN_END = r"[\s\"'`<>|;&,\\]"
_NEAR = 48  # characters after a name within which a separator makes its pattern worth running
_LONGEST = 8192  # characters of a secret; what is longer is data
_DEFINE = r"[\"'][ \t]*,[ \t]*([\"'])((?:(?!\1)[^\n])+)"
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-.")
_FLAT = {ord('"'): "'", ord("\n"): "_", ord("\r"): "_", ord("\\"): "_"}  # what would end a quoted value
_HASHES = ("sha1:", "sha256:", "sha384:", "sha512:", "md5:", "sha1-", "sha256-", "sha384-", "sha512-", "blake2b:", "blake3:")
_FUNCTION = frozenset(_PLAIN.split()) | frozenset(
    "your you please must be at least enter with too has have in on by can cannot could not i we it its if than should will "
    "do does did no more one same that there this reset forgot failed contain match set use using here from when only".split()
)
_HEX = frozenset("0123456789abcdef")
_patterns: list[re.Pattern[str]] = []


def assigned(s: str, low: str) -> list[tuple[int, int]]:
    """Spans (start, end) of the secrets in `s`, in order and disjoint; `low` is `s` with ASCII letters in lower case."""
    spans = []
    run = [0, 0]  # the plain value that was looked at last: many names may stand in one, which is searched for its end once
    far, dashes = len(low) + _NEAR, "--" in low
    if not dashes and "=" not in low and ":" not in low and "," not in low:
        return []
    for gate, words, group in _NAMES:
        for word in words if gate in low else ():
            at, size, equals, colon, comma = low.find(word), len(word), -1, -1, -1
            while at >= 0:
                end = at + size
                # The next separator of each sort, looked for once: a text of nothing but names costs no more than another.
                if equals < end and (equals := low.find("=", end)) < 0:
                    equals = far
                if colon < end and (colon := low.find(":", end)) < 0:
                    colon = far
                if comma < end and (comma := low.find(",", end)) < 0:
                    comma = far
                near = min(equals, colon, comma)
                if near >= end + _NEAR and not dashes:
                    at = low.find(word, max(end, near - _NEAR - size + 1))
                    continue
                if not low[end : end + 1].isalpha() and low[end : end + 1] != "_" and (near < end + _NEAR or _flag(low, at, end)):
                    span = _value(s, low, at, end, word, group, run)
                    if span:
                        spans.append(span)
                at = low.find(word, end)
    if len(spans) < 2:
        return spans
    spans.sort()
    out = spans[:1]
    for span in spans[1:]:
        if span[0] >= out[-1][1]:
            out.append(span)
        elif span[1] > out[-1][1]:
            out[-1] = (out[-1][0], span[1])
    return out


def names(low: str) -> bool:
    """May this name, in lower case, give a value away at all?"""
    for gate, _, _ in _NAMES:  # noqa: SIM110 (twice as fast as a generator)
        if gate in low:
            return True
    return False


def named(name: str, value: str) -> bool:
    """Does a member's name give its value away, all of it, whatever characters it holds?"""
    low = name.lower()
    if not names(low):
        return False  # a span that begins with the value is of a name right before it
    if low == "pass":
        name = "password" if any(c.isdigit() for c in value) and not value.isdigit() else ""
    flat = value.translate(_FLAT)
    probe = f'"{name}":"{flat}"'
    return (len(name) + 4, len(probe) - 1) in assigned(probe, probe.lower())


def _counted(value: str) -> bool:
    """A count, with or without its unit: `tests_pass=12345678`, `first-pass=1000ms`."""
    return value.isdigit() or (value[:1].isdigit() and value.rstrip("smhunk%").isdigit())


def _flag(low: str, at: int, end: int) -> bool:
    """Without a separator: could the name be that of a flag, with its value after a space?"""
    return "--" in low[max(0, at - 40) : end] and " " in low[end : end + _NEAR]


def _value(s: str, low: str, at: int, end: int, word: str, password: bool, run: list[int]) -> tuple[int, int] | None:
    if word == "secret" and s[at - 1 : at] == "<" and s[end : end + 1] == ":" and s[end + 13 : end + 14] == ">":
        return None  # a mark of ours
    begin = at
    while begin and end - begin < 100 and low[begin - 1] in _NAME:
        begin -= 1
    name = s[begin:end].strip("-.")
    if not _patterns:
        import re  # see redact.py

        _patterns.extend((re.compile(_ASSIGN), re.compile(_DEFINE), re.compile(_PLAIN_END)))
    m = _patterns[0].match(s, end)
    if m is None:
        m = _patterns[1].match(s, end)
        constant = m is not None and name.isupper() and not m.group(2).isupper()
        return m.span(2) if m is not None and constant and _secret(m.group(2), True, True) else None
    quoted = m.group(2) is not None
    start = m.end(2) if quoted else m.start(3)
    stop = _quoted_end(s, start, m.group(2), len(m.group(1))) if quoted else _plain_end(s, start, run)
    if stop - start > _LONGEST:
        return None
    value = s[start:stop]
    if not quoted:
        value = value.rstrip(")]}.")
        stop = start + len(value)
    between = s[end:start]
    flag = s[begin : begin + 2] == "--"
    if between.isspace() and not (flag and _secret(value, True, password or quoted) and "=" not in value):
        return None
    if word == "pwd" and value[:1] in ("/", "~", "."):
        return None
    plain = between.strip(" \t") in ("=", ":") and not quoted
    if plain and _is_code(s, begin, name, between, value, password):
        return None
    if word in ("_pass", "-pass") and not quoted and not flag and not name.isupper() and _counted(value):
        return None
    if name.lower().endswith("authtoken"):
        password = True  # npm's are UUIDs
    strict = password or flag or (name.isupper() and plain and "=" in between)
    return (start, stop) if _secret(value, quoted, strict) else None


def _quoted_end(s: str, start: int, quote: str, level: int) -> int:
    """Where the value ends whose opening quote had `level` backslashes: at a quote of the same level, or an outer one."""
    line = s.find("\n", start, start + _LONGEST + 1)
    last = line if line >= 0 else min(len(s), start + _LONGEST + 1)
    at = s.find(quote, start, last)
    while at >= 0:
        slashes = at - len(s[start:at].rstrip("\\")) - start
        if slashes < level or (slashes - level) % (2 * level + 2) == 0:
            return at - min(slashes, level)
        at = s.find(quote, at + 1, last)
    return last


def _plain_end(s: str, start: int, run: list[int]) -> int:
    """Where the plain value that begins at `start` ends."""
    if not run[0] <= start < run[1]:
        found = _patterns[2].search(s, start)
        run[:] = start, found.start() if found else len(s)
    return run[1]


def _is_code(s: str, begin: int, name: str, between: str, value: str, password: bool) -> bool:
    """True for an unquoted value that reads as a variable, an expression or a type rather than a literal."""
    if any(c in value for c in "([{"):
        return True
    if not value.replace("_", "").replace(".", "").replace("?", "").replace("!", "").isalpha():
        return False
    before = s[begin - 1 : begin]
    if value.lower() == name.lower() or "." in value.strip(".") or before in ("(", ","):
        return True
    if s[begin - 2 : begin] == ", " or "_" in value:
        return not name.isupper()
    if ":" in between:
        return value[:1].isupper()
    return " " in between and not password


def _secret(value: str, quoted: bool, strict: bool) -> bool:
    """Does the value look like a secret? strict: the name leaves little doubt, so short and plain values count too."""
    low = value.lower()
    if (
        len(value) < 3
        or len(value) > _LONGEST
        or low in _WORDS
        or value[0] in "$%{<*"
        or low.startswith(("<secret:", "\\$", "..."))
    ):
        return False
    if set(value) <= set("*xX.•-_ ") or "${" in value or "{{" in value or "$(" in value:
        return False
    if low.startswith(_HASHES):
        return False
    if quoted and " " in value:
        return strict and len(value) <= 64 and (any(c.isdigit() for c in value) or _phrase(value))
    if strict:
        return True
    if _uuid(low) or _label(value) or (low.startswith("0x") and set(low[2:]) <= _HEX):
        return False
    digits = sum(c.isdigit() for c in value)
    return (digits and digits < len(value) and len(value) >= 8) or (len(value) >= 20 and not value.islower())


def _phrase(value: str) -> bool:
    """Words drawn by lot, as passphrases are: lower-case letters alone, and no word that holds a sentence together."""
    words = value.split(" ")
    return 4 <= len(words) <= 10 and all(w.isalpha() and w.islower() and w not in _FUNCTION for w in words)


def _uuid(low: str) -> bool:
    return len(low) == 36 and low[8] == low[13] == low[18] == low[23] == "-" and set(low) <= _HEX | {"-"}


def _label(value: str) -> bool:
    """Words and numbers joined by dashes or underscores, as names of things are: `unexpected_identifier_42`."""
    parts = value.replace("-", "_").split("_")
    return len(parts) >= 3 and all((w.isalpha() and w.islower()) or (w.isdigit() and len(w) <= 8) for w in parts)
