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
    if "*" in path or "?" in path:
        return _meets(pattern.split("/"), path.split("/"))
    return _components(pattern.split("/"), path.split("/"))


def _meets(pattern: list[str], path: list[str]) -> bool:
    """Can a file fit both `pattern` and the pattern `path` that a command names (`rm gen/*`, label `gen/schema.py`)? Only where a
    folder is named in both: that `rm *` may hit anything says nothing."""
    at = 0
    while at < min(len(pattern), len(path)) and pattern[at] == path[at] and "*" not in pattern[at]:
        at += 1
    if not at:
        return _components(pattern, path)
    return _both(pattern[at:], path[at:], set())


def _both(a: list[str], b: list[str], failed: set[tuple[int, int]]) -> bool:
    """Do two patterns meet, component by component? One that is used up covers the folder below it."""
    if not a or not b:
        return True
    if (len(a), len(b)) in failed:
        return False
    if a[0] == "**" or b[0] == "**":
        met = _both(a[1:], b, failed) or _both(a, b[1:], failed)
    else:
        met = (wild(a[0], b[0]) or wild(b[0], a[0])) and _both(a[1:], b[1:], failed)
    if not met:
        failed.add((len(a), len(b)))
    return met


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
