"""[H] Files that a command writes under no plain name: by a pattern, in a loop, out of a list, below a folder.

What the shell expands is not known here; the pattern that it must fit is, and rules for paths are matched against that.
"""

from __future__ import annotations

from projectmem_gate.words import ACTIVE_END, COMMAND, END, GLOB, PROCESS, QCOMMAND, QUOTED, UNQUOTED, is_static, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from projectmem_gate.paths import Roots
    from projectmem_gate.scope import Command

_OPENING = frozenset((UNQUOTED, QUOTED, COMMAND, QCOMMAND, PROCESS))
_CLOSED_BY = {"[": ("]", "?"), "{": ("}", "*")}  # what a bracket may stand for
_LISTERS = {"grep": 1, "egrep": 1, "rg": 1, "fd": 1, "fdfind": 1, "ls": 0, "find": 0, "git": 1}  # words that name no place
PATTERNS_MAX = 8


def named(word: str, command: Command, roots: Roots, cwd: str) -> list[str]:
    """The canonical name of a word, or the patterns (`gen/*.py`) that its expansions fit; [] where nothing is known of them."""
    if is_static(word):
        return [roots.name(word, cwd)] if word else []
    plain = shown(word).strip('"').removeprefix("${").removeprefix("$").removesuffix("}")
    for note in command.inside:
        name, _, values = note.removeprefix("for ").partition(" in ")
        if note[:4] == "for " and name == plain and shown(word)[:1] == "$":
            found = [p for value in values.split(" ")[:PATTERNS_MAX] if "$" not in value for p in _one(value, roots, cwd)]
            return found[:PATTERNS_MAX]
    return _one(word, roots, cwd)


def _one(word: str, roots: Roots, cwd: str) -> list[str]:
    out, i, n, unknown = "", 0, len(word), False
    while i < n:
        c = word[i]
        i += 1
        if c == GLOB and i < n:
            close, stands = _CLOSED_BY.get(word[i], ("", word[i]))
            at = word.find(close, i) if close else i
            i = (at if at > 0 else n - 1) + 1
            out += stands
        elif c in _OPENING:
            unknown = unknown or "/" not in out
            depth = 1
            while i < n and depth:
                depth += (word[i] in _OPENING) - (word[i] == END)
                i += 1
            out += "*"
        elif c >= ACTIVE_END:
            out += c
    return [] if unknown or not out else [roots.name(out, cwd)]


def below(name: str) -> str:
    """The pattern of what is in a folder, "" for what does not look like one."""
    return f"{name}/**" if name not in ("", ".", "..") and "." not in name.rsplit("/", 1)[-1].lstrip(".") else ""


def listed(argv: Sequence[str], roots: Roots, cwd: str) -> tuple[str, ...]:
    """Patterns of the files that `find`, `grep -l`, `ls`, `git ls-files` list, as far as they are told a place below `cwd`."""
    name = argv[0].rsplit("/", 1)[-1] if argv else ""
    if name not in _LISTERS or (name == "git" and argv[1:2] != ["ls-files"]):
        return ()
    words = list(argv[1:])
    if name == "find":
        at = next((i for i, w in enumerate(words) if w[:1] in ("-", "(", "!")), len(words))
        last = next((words[i + 1] for i, w in enumerate(words[:-1]) if w in ("-name", "-iname")), "")
        words = words[:at]
    else:
        last, words = "", [w for w in words if w[:1] != "-"][_LISTERS[name] :]
    out = []
    for word in words[:PATTERNS_MAX]:
        place = _one(word, roots, cwd) if word else []
        if place and place[0] not in (".", "..", "/", cwd):
            leaf = last if last and is_static(last) else ""
            out.append(place[0] if "*" in place[0] else f"{place[0]}/**/{leaf}" if leaf else (below(place[0]) or place[0]))
    return tuple(out)
