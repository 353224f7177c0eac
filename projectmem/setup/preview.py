"""What a change to a settings file looks like to a person: the lines that come and go, with our long command shortened."""

from __future__ import annotations

import difflib
from pathlib import Path

from projectmem.render import count

WIDTH = 110


def summary(path: Path, before: str, after: str) -> str:
    """The change in one line."""
    if not before:
        return f"{path}: new, {count(len(after.splitlines()), 'line')}"
    changed = [line[0] for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    return f"{path}: {count(changed.count('+'), 'line')} in, {changed.count('-')} out"


def lines(path: Path, before: str, after: str) -> list[str]:
    """The change as a unified diff without context beyond a line."""
    old = str(path) if before else "/dev/null"
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), old, str(path), n=1, lineterm="")
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..." for line in found]
