"""Folders published whole [H for reading]: built under a name nobody knows yet, synced, and only then pointed to.

    <folder>/CURRENT        the name of the generation in use, replaced atomically
             gen-00000012/  never written again after CURRENT named it
             build.lock     one builder at a time; never unlinked

Readers take no lock. The generation before the current one is kept for readers that are about to open it; what a dead builder
left behind is removed by the next one.
"""

from __future__ import annotations

import os

from projectmem_logs import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX, POINTER, LOCK = "gen-", "CURRENT", "build.lock"
_READ = os.O_RDWR | getattr(os, "O_BINARY", 0)


def current(folder: str) -> str | None:
    """The folder in use, None where none is published or the pointer names none."""
    try:
        name = files.read(os.path.join(folder, POINTER)).decode("ascii", "replace").strip()
    except OSError:
        return None
    path = os.path.join(folder, name)
    return path if name.startswith(PREFIX) and name == os.path.basename(name) and os.path.isdir(path) else None


def publish(folder: str, build: Callable[[str], None]) -> str | None:
    """Let `build` fill an empty folder and make it the one in use; returns it, or None where another process is building.

    Raises what `build` raises and OSError; the generation in use stays as it was.
    """
    files.make_last(os.path.dirname(folder))
    files.make_last(folder)
    lock = files.lock(os.path.join(folder, LOCK), 0)
    if lock is None:
        return None
    try:
        used = os.path.basename(current(folder) or "")
        old = generations(folder)
        for name in old:
            if name > used:  # of a builder that died before it was done: the lock is ours now
                _remove(os.path.join(folder, name))
        target = os.path.join(folder, f"{PREFIX}{(int(old[-1][len(PREFIX) :]) if old else 0) + 1:08d}")
        os.mkdir(target, 0o700)
        try:
            build(target)
            _sync(target)
        except BaseException:
            _remove(target)
            raise
        files.sync_dir(folder)
        files.replace(os.path.join(folder, POINTER), os.path.basename(target).encode() + b"\n")
        for name in old:
            if name < used:
                _remove(os.path.join(folder, name))
        return target
    finally:
        files.unlock(lock)


def discard(folder: str) -> None:
    """Remove every generation: after an erasure nothing of what was erased may stay. Waits for a builder at work."""
    if not os.path.isdir(folder):
        return
    lock = files.lock(os.path.join(folder, LOCK), 10_000)
    try:
        files.remove(os.path.join(folder, POINTER))
        for name in generations(folder):
            _remove(os.path.join(folder, name))
    finally:
        if lock is not None:
            files.unlock(lock)


def disown(target: str) -> None:
    """Stop pointing to a generation that turned out damaged: the next reader takes the log and builds anew. Best effort."""
    folder = os.path.dirname(target)
    try:
        if current(folder) == target:
            files.remove(os.path.join(folder, POINTER))
    except OSError:
        pass


def generations(folder: str) -> list[str]:
    """Names of the generations there are, oldest first."""
    return [n for n in files.names(folder) if n.startswith(PREFIX) and n[len(PREFIX) :].isdigit()]


def _sync(target: str) -> None:
    for name in files.names(target):
        path = os.path.join(target, name)
        os.chmod(path, 0o600)
        fd = os.open(path, _READ)
        try:
            files.sync(fd)
        finally:
            os.close(fd)
    files.sync_dir(target)


def _remove(target: str) -> None:
    """Best effort: a file that is held open elsewhere stays until the next time."""
    for name in files.names(target):
        try:
            files.remove(os.path.join(target, name))
        except OSError:
            continue
    try:
        os.rmdir(target)
    except OSError:
        pass
