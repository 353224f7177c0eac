"""Keeps our settings file out of commits: a line in the repository's own exclude file, which is never committed itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from projectmem.place import Place

PATTERN = "/.claude/settings.local.json"  # of Claude Code; the other harnesses' files have theirs
COMMENT = "# projectmem: settings of this machine only"


def exclude_file(place: Place) -> Path | None:
    """`info/exclude` of the repository, None outside git."""
    return Path(place.common_dir) / "info" / "exclude" if place.common_dir else None


def tracked(place: Place, path: Path) -> bool:
    """Whether git tracks the file already, so that no exclude line keeps it out of commits. False where git is missing."""
    git = shutil.which("git")
    if git is None or not place.common_dir:
        return False
    argv = [git, "-C", place.root, "ls-files", "--error-unmatch", "--", str(path)]
    return subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0


def exclude(place: Place, pattern: str = PATTERN) -> bool:
    """Add the pattern where no line has it yet; returns whether a line was added."""
    path = exclude_file(place)
    if path is None:
        return False
    text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
    if pattern in text.splitlines():
        return False
    path.parent.mkdir(exist_ok=True)
    start = "" if not text or text.endswith("\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{start}{COMMENT}\n{pattern}\n")
    return True


def include(place: Place, pattern: str = PATTERN) -> bool:
    """Take exactly those lines out again; returns whether there were any."""
    path = exclude_file(place)
    if path is None or not path.exists():
        return False
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    if f"{COMMENT}\n{pattern}\n" not in text:
        return False
    path.write_text(text.replace(f"{COMMENT}\n{pattern}\n", ""), encoding="utf-8", errors="surrogateescape")
    return True
