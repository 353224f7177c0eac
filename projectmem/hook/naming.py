"""[H] How the file system under a place names files: what identity needs of the disk. One answer for hook, check and replay.

resolve       absolute path -> real path (symbolic links followed)
worktrees     roots of the project's other work trees, from git's own files (gitrepository-layout(5)), at most 32
fold_case     the root can be reached in the other case
fold_unicode  the file system takes composed and decomposed names for one: APFS and HFS+ do, ext4 where it folds case
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem.place import Place

WORKTREES_MAX = 32
_known: dict[str, dict[str, Any]] = {}


def naming(place: Place) -> dict[str, Any]:
    """Keyword arguments of `identify` for calls in this place; read once per process. Raises nothing."""
    found = _known.get(place.root)
    if found is None:
        folds = folds_case(place.root)
        found = _known[place.root] = {
            "resolve": os.path.realpath,
            "worktrees": worktrees(place.root, place.common_dir),
            "fold_case": folds,
            "fold_unicode": sys.platform == "darwin" or (folds and sys.platform.startswith("linux")),
        }
    return found


def folds_case(path: str) -> bool:
    """Does the file system that holds `path` ignore case? False where its name has no letters to tell by."""
    other = path.swapcase()
    if other == path:
        return False
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def worktrees(root: str, common_dir: str) -> list[str]:
    """Absolute roots of the other work trees of the repository; [] outside git and where there are none."""
    if not common_dir:
        return []
    found: list[str] = []
    main, name = os.path.split(common_dir)
    if name == ".git":
        found.append(main)
    try:
        names = sorted(os.listdir(f"{common_dir}/worktrees"))[:WORKTREES_MAX]
    except OSError:
        names = []
    for entry in names:
        try:
            with open(f"{common_dir}/worktrees/{entry}/gitdir", "rb") as file:
                pointer = file.read(4_096).decode("utf-8", "surrogateescape").strip()
        except OSError:
            continue
        if os.path.isabs(pointer):
            found.append(os.path.dirname(pointer))
    return [path for path in dict.fromkeys(found) if path != root]
