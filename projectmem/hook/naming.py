"""[H] How the file system under a place names files: what identity needs of the disk. One answer for hook, check and replay.

resolve       absolute path -> real path (symbolic links followed)
worktrees     roots of the project's other work trees, from git's own files (gitrepository-layout(5)), at most 32
fold_case     the root can be reached in the other case
fold_unicode  the file system takes composed and decomposed names for one: APFS and HFS+ do, ext4 where it folds case
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem.place import Place

WORKTREES_MAX = 32
_SETTLED_NS = 1_000_000_000  # a folder's time may be this coarse: what changed later than that may change again unseen
_known: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {}


def naming(place: Place) -> dict[str, Any]:
    """Keyword arguments of `identify` for calls in this place; read once per process, and again when a work tree comes, goes or
    is moved. Raises nothing."""
    mark = _mark(place.common_dir)
    found = _known.get(place.root)
    if found is None or found[0] != mark:
        folds = folds_case(place.root)
        names = {
            "resolve": os.path.realpath,
            "worktrees": worktrees(place.root, place.common_dir),
            "fold_case": folds,
            "fold_unicode": sys.platform == "darwin" or (folds and sys.platform.startswith("linux")),
        }
        settled = time.time_ns() - max(mark, default=0) > _SETTLED_NS
        found = _known[place.root] = (mark if settled else (-1,)), names
    return found[1]


def _mark(common_dir: str) -> tuple[int, ...]:
    """When the list of work trees and where each of them is were written last; () where there are none but the main one."""
    folder = f"{common_dir}/worktrees"
    if not common_dir or not (changed := _written(folder)):
        return ()
    try:
        names = sorted(os.listdir(folder))[:WORKTREES_MAX]
    except OSError:
        names = []
    return (changed, *(_written(f"{folder}/{name}/gitdir") for name in names))


def _written(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


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
