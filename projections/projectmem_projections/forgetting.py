"""After an erasure: every projection anew or gone, so that none holds what the log holds no more.

The gate's snapshot is folded again from the log and copied over the old file page by page; the notes that hooks leave in it are
wiped. Summaries and recall lose every generation, old and half-built ones too, and are built again when somebody asks.
"""

from __future__ import annotations

import os
import shutil
import time

from projectmem_gate.spans import count
from projectmem_logs import files

from .errors import ProjectionError
from .rebuild import rebuild_snapshot
from .snapshot import Snapshot

LOCK_WAIT_MS = 60_000
_LOCK = "build.lock"
_GENERATIONS = {"duckdb": "summaries", "recall": "recall"}
_KEPT = ("gate.sqlite", "gate.sqlite-journal")  # the latter is rolled back or emptied when the snapshot is opened


def forget(home: str) -> dict[str, int | str]:
    """Make the projections of a log forget what it has erased; returns what was done, by place.

    Safe to do again. Raises ProjectionError when another process keeps building for a minute, OSError.
    """
    folder = os.path.join(home, "projections")
    done: dict[str, int | str] = {}
    if not os.path.isdir(folder):
        return done
    _clear(folder)
    path = os.path.join(folder, "gate.sqlite")
    _, events = rebuild_snapshot(home)
    _wipe_notes(path)
    done["gate snapshot"] = f"rebuilt from {count(events, 'event')}"
    for name in sorted({*_GENERATIONS, *files.folders(folder)}):  # whatever another version keeps there is derived, too
        done[f"{_GENERATIONS.get(name, name)}, generations removed"] = _empty(os.path.join(folder, name))
    return done


def _clear(folder: str) -> None:
    """Remove every file but the snapshot itself and locks. A rebuild at work has read what is erased now: it is waited for,
    and what one that died left behind goes."""
    deadline = time.monotonic() + LOCK_WAIT_MS / 1000
    for name in files.names(folder):
        path = os.path.join(folder, name)
        if name in _KEPT or name.endswith(".lock") or os.path.isdir(path):
            continue
        while name.endswith(".building") and os.path.exists(path) and _alive(name.split(".")[-2]):
            if time.monotonic() > deadline:
                raise ProjectionError(f"another process has been rebuilding {path} for a minute: try again")
            time.sleep(0.05)
        files.remove(path)


def _alive(pid: str) -> bool:
    """Whether a process of this machine other than this one has that id."""
    if not pid.isdigit() or int(pid) == os.getpid() or os.name == "nt":
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _wipe_notes(path: str) -> None:
    """Remove the hooks' notes of calls in flight (they quote inputs), and what a dead process left of a journal."""
    with Snapshot(path, busy_ms=5_000) as snapshot, snapshot._guard:
        snapshot._begin()
        snapshot._db.execute("PRAGMA secure_delete = ON")
        snapshot._db.execute("DELETE FROM pending")
        snapshot._db.execute("COMMIT")
    for suffix in ("-wal", "-shm"):
        files.remove(path + suffix)


def _empty(folder: str) -> int:
    """Remove everything in a folder of generations but its lock; returns how many generations there were."""
    if not os.path.isdir(folder):
        return 0
    lock = files.lock(os.path.join(folder, _LOCK), LOCK_WAIT_MS)  # a builder may still be reading what is erased now
    if lock is None:
        raise ProjectionError(f"another process has been building {folder} for a minute: try again")
    try:
        names = [name for name in files.names(folder) if name != _LOCK]
        for name in ("CURRENT", *names):
            path = os.path.join(folder, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                files.remove(path)
        return sum(name.startswith("gen-") and "." not in name.removesuffix(".duckdb") for name in names)
    finally:
        files.unlock(lock)
