"""The files that a command's output names, and those that it misses."""

from __future__ import annotations

import os

WORDS_TRIED_MAX = 400  # of an output, as names of files


def paths_in(output: str, root: str, cwd: str, limit: int = 32) -> list[str]:
    """Root-relative paths of files that the output names and that exist. Looks at the first and last 16,000 characters."""
    text = output if len(output) <= 32_000 else output[:16_000] + "\n" + output[-16_000:]
    if "." not in text and "/" not in text:
        return []
    found: dict[str, None] = {}
    for word in file_words(text)[:WORDS_TRIED_MAX]:
        if len(found) >= limit:
            break
        name = word.replace("\\", "/").removeprefix("./")
        for base in (root, os.path.join(root, cwd)):
            full = os.path.normpath(os.path.join(base, name))
            if full.startswith(root + "/") and "/node_modules/" not in full and os.path.isfile(full):
                found[full[len(root) + 1 :]] = None
                break
    return list(found)


_SAYS_MISSING = (
    "no such file",
    "not found",
    "cannot find",
    "can't find",
    "could not find",
    "does not exist",
    "missing",
    "enoent",
)


def missing_in(output: str, root: str, cwd: str, limit: int = 8) -> list[str]:
    """Root-relative paths of files that the output misses: making one of them may be what mends the failure."""
    lowered = output.lower()
    if not any(mark in lowered for mark in _SAYS_MISSING):
        return []
    lines = [line for line in output[-16_000:].split("\n") if any(mark in line.lower() for mark in _SAYS_MISSING)]
    found: dict[str, None] = {}
    for word in file_words("\n".join(lines[:20])):
        name = word.replace("\\", "/").removeprefix("./")
        for base in dict.fromkeys((os.path.normpath(os.path.join(root, cwd)), root)):
            full = os.path.normpath(os.path.join(base, name))
            if full.startswith(root + "/") and "/node_modules/" not in full and not os.path.lexists(full):
                found[full[len(root) + 1 :]] = None
    return list(found)[:limit]


_NOT_OF_PATHS = {c: " " for c in range(128) if not chr(c).isalnum() and chr(c) not in "_@+~./\\-"}


def file_words(text: str) -> list[str]:
    """The different words of a text that look like names of files, in order: what the pattern of the
    property test finds, without the cost of `re`."""
    found: dict[str, None] = {}
    for word in text.translate(_NOT_OF_PATHS).split():
        if "." in word:
            for piece in (word,) if word.isascii() else _pieces(word):
                if name := _file_word(piece):
                    found[name] = None
    return list(found)


def _file_word(word: str) -> str:
    """`word` up to ten characters after its last dot that stands in a name, "" where there is none."""
    at = len(word)
    while (at := word.rfind(".", 1, at)) > 0:
        end = at + 1
        while end < len(word) and end - at <= 10 and (word[end].isalnum() or word[end] == "_"):
            end += 1
        if end > at + 1 and (word[at - 1].isalnum() or word[at - 1] in "_-"):
            return word[:end]
    return ""


def _pieces(word: str) -> list[str]:
    return "".join(c if c.isalnum() or c in "_@+~./\\-" else " " for c in word).split()
