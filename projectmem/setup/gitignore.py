"""Keeps our settings file out of commits: a line in the repository's own exclude file, which is never committed itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from projectmem.place import Place

PATTERN = "/.claude/settings.local.json"  # of Claude Code; the other harnesses' files have theirs
COMMENT = "# projectmem: settings of this machine only"
UNENDED = " (the line before had no end)"


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
    text = _text(path)
    if pattern in text.splitlines():
        return False
    path.parent.mkdir(exist_ok=True)
    ended = not text or text.endswith("\n")
    with path.open("ab") as file:
        file.write(f"{COMMENT}\n{pattern}\n".encode() if ended else f"\n{COMMENT}{UNENDED}\n{pattern}\n".encode())
    return True


def include(place: Place, pattern: str = PATTERN) -> bool:
    """Take exactly those lines out again, with the line end that they wanted before them; returns whether there were any. A file
    with nothing else in it goes."""
    path = exclude_file(place)
    if path is None or not path.exists():
        return False
    text = _text(path)
    for comment, before in ((COMMENT, ""), (f"{COMMENT}{UNENDED}", "\n")):
        head, found, rest = text.partition(f"{before}{comment}\n{pattern}\n")
        if found:
            break
    else:
        return False
    if before and rest:  # another line has taken the place of ours
        rest = f"\n{rest}"
        if rest.startswith(f"\n{COMMENT}\n"):
            rest = f"\n{COMMENT}{UNENDED}{rest[1 + len(COMMENT) :]}"
    if head or rest:
        path.write_bytes(f"{head}{rest}".encode("utf-8", "surrogateescape"))
    else:
        path.unlink()
    return True


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
