"""[H] Hint words: the hook's cheap answer to "could any open failure match this input?", before anything is parsed.

A part's `words` are up to three lower-case runs of ASCII letters that occur in the raw input of *every* spelling of its
key. `raw_words` takes the runs of an input. So `set(part.words) <= raw_words(input)` whenever the input spells that key,
and a failed look-up proves that there is no candidate. Where a spelling can hide letters (ANSI-C escapes, variables that
are put together) the answer contains ANY, which means: do not rely on it, parse.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

ANY = "*"
_QUOTES = frozenset("'\"\\")

_LETTERS = bytes(b + 32 if 65 <= b <= 90 else b if 97 <= b <= 122 else 32 for b in range(256))


def runs(text: str) -> list[str]:
    """Lower-case ASCII letter runs of `text`, in order, repeats kept."""
    return text.encode("ascii", "replace").translate(_LETTERS).decode("ascii").split()


def _unescape(raw: str) -> str:
    """JSON string escapes of a raw JSON text undone, roughly: letters must come out right, nothing else matters."""
    if "\\" not in raw:
        return raw
    out, i, n = [], 0, len(raw)
    while True:
        j = raw.find("\\", i)
        if j < 0 or j + 1 >= n:
            out.append(raw[i:])
            return "".join(out)
        out.append(raw[i:j])
        c = raw[j + 1]
        if c == "u":
            try:
                out.append(chr(int(raw[j + 2 : j + 6], 16)))
            except ValueError:
                out.append(" ")
            i = j + 6
        else:
            out.append({"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " "}.get(c, c))
            i = j + 2


def _strings(value: Any, out: list[str], depth: int = 0) -> None:
    if isinstance(value, str):
        out.append(value)
    elif depth < 60 and isinstance(value, dict):
        for k, v in value.items():
            out.append(k if isinstance(k, str) else str(k))
            _strings(v, out, depth + 1)
    elif depth < 60 and isinstance(value, (list, tuple)):
        for v in value:
            _strings(v, out, depth + 1)
    elif depth >= 60:
        out.append("$'\\")  # too deep to look: makes the answer ANY


def raw_words(tool_input: Any) -> frozenset[str]:
    """Letter runs of a tool input (raw JSON text as str or bytes, or the parsed value), plus ANY when letters may be hidden."""
    if isinstance(tool_input, (bytes, bytearray)):
        tool_input = tool_input.decode("utf-8", "replace")
    if isinstance(tool_input, str):
        text = _unescape(tool_input)
    else:
        found: list[str] = []
        _strings(tool_input, found)
        text = "\n".join(found)
    words = set(runs(text))
    if "\\" in text or "'" in text or '"' in text:
        # quotes and backslashes inside a word hide it from the first pass: np"m", np\<newline>m
        words.update(runs(text.replace("\\\r\n", "").replace("\\\n", "").replace("\\", "").replace("'", "").replace('"', "")))
        if "tools." in text:  # a script in the input: its string literals have escapes of their own
            inner = _unescape(text)
            words.update(runs(inner))
            words.update(runs(inner.replace("\\", "").replace("'", "").replace('"', "")))
    if "$" in text and ("$'" in text or "=" in text):
        words.add(ANY)
    return frozenset(words)


def pick(names: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Up to `limit` hint words from canonical names, in order of preference. Passed over are names with quotes or backslashes (a
    spelling may write those so that the letters beside them run together), names that may hold the mark of a secret (the first
    look is at the input as it came), names beyond ASCII and single letters. Where that leaves none, a single letter is better
    than nothing, and so is what no other letter touches: `txt` of `\u00e9.txt`."""
    out: list[str] = []
    short: list[str] = []
    for name in names:
        if "secret" in name or not _QUOTES.isdisjoint(name):
            continue
        if not name.isascii():
            short += apart(name)
            continue
        for run in runs(name):
            if len(run) == 1:
                short.append(run)
            elif run not in out:
                out.append(run)
                if len(out) == limit:
                    return tuple(out)
    return tuple(out or list(dict.fromkeys(short))[:limit])


def apart(name: str) -> list[str]:
    """Runs of letters that touch nothing beyond ASCII: composed or decomposed, in either case, they stay as they are."""
    flat = "".join(c if not c.isascii() or c.isalpha() else " " for c in name)
    return [run for word in flat.split(" ") if word.isascii() for run in runs(word)]
