"""Globs of labels and rules, matched without regular expressions and without surprises.

`*` and `?` stay within one path component, `**` crosses them. A pattern without a slash matches a name at any depth; a
pattern that names a folder covers everything below it. For commands and tools `*` matches anything.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.model import Part


def wild(pattern: str, text: str) -> bool:
    """Does `pattern` (`*` any run, `?` one character) match the whole of `text`? Linear backtracking, never exponential."""
    p = t = 0
    star, mark = -1, 0
    while t < len(text):
        if p < len(pattern) and pattern[p] == "*":
            star, mark = p, t
            p += 1
        elif p < len(pattern) and pattern[p] in ("?", text[t]):
            p += 1
            t += 1
        elif star >= 0:
            p = star + 1
            mark += 1
            t = mark
        else:
            return False
    return pattern[p:].strip("*") == ""


def path_matches(pattern: str, path: str) -> bool:
    """Does a path glob cover `path`? Both with forward slashes, relative to the project's root (or both absolute)."""
    pattern = pattern.replace("\\", "/").removeprefix("./").rstrip("/")
    path = path.replace("\\", "/").removeprefix("./").rstrip("/")
    if not pattern or not path:
        return False
    if "/" not in pattern:
        return any(wild(pattern, part) for part in path.split("/"))
    return _components(pattern.split("/"), path.split("/"))


def _components(pattern: list[str], path: list[str]) -> bool:
    """Component-wise match by dynamic programming; a pattern used up before the path covers the folder below it."""
    reach = {0}
    for component in pattern:
        if component == "**":
            reach = set(range(min(reach), len(path) + 1)) if reach else set()
        else:
            reach = {i + 1 for i in reach if i < len(path) and wild(component, path[i])}
    return bool(reach) and (len(path) in reach or (pattern[-1] != "**" and any(0 < i < len(path) for i in reach)))


def writes(part: Part) -> list[str]:
    """The paths a part writes, moves or removes."""
    out = [subject for kind, subject in part.effects if kind == "edit" and subject]
    if part.kind in ("edit", "write", "patch"):
        out.extend(p for p in part.paths if p not in out)
    return out
