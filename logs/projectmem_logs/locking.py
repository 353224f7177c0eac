"""The two locks of an append: the stream's sidecar, and the segment that is written to.

The sidecar is what every process agrees on. Should somebody remove it, two writers may each hold one under its name for a
moment; then the segment's own lock keeps them apart. A store that lives on keeps both descriptors open between appends.
"""

from __future__ import annotations

from . import files
from .errors import LogError


class StreamLock:
    """A stream's sidecar as one store takes it again and again: from the second time on its descriptor stays open."""

    __slots__ = ("_again", "_fd", "_inode", "_path")

    def __init__(self) -> None:
        self._fd, self._inode, self._path, self._again = -1, 0, "", False

    def take(self, path: str, wait_ms: int) -> bool:
        """Lock the sidecar at `path`; False when it was not free within `wait_ms`. Raises OSError."""
        if self._fd >= 0:
            try:
                if path == self._path:
                    if not files.grip(self._fd, wait_ms):
                        return False
                    if files.is_at(self._inode, path):
                        return True
                    files.release(self._fd)  # somebody removed it: this is no longer the lock that others take
            except OSError:
                self.close()
                raise
            self.close()
        fd = files.lock(path, wait_ms)
        if fd is None:
            return False
        self._again, self._path, self._fd = self._path == path, path, files.private(fd)
        self._inode = files.inode_of(fd) if self._again else 0
        return True

    def give(self) -> None:
        """Unlock it."""
        if not self._again:
            fd, self._fd = self._fd, -1
            files.unlock(fd)
            return
        files.release(self._fd)

    def forget(self) -> None:
        """After a fork: the parent's descriptor is not ours."""
        self._fd = -1

    def close(self) -> None:
        """Close the descriptor, which also unlocks it."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            files.close(fd)


def grip(fd: int, wait_ms: int) -> int:
    """Lock an open segment until `loosen` or its end, and return it. Raises TimeoutError: only where a sidecar was removed. On
    Windows, where this would keep readers out and an open sidecar cannot be removed, nothing is done."""
    if not files.MANDATORY and not files.grip(fd, wait_ms):
        raise TimeoutError("another process is still writing to it")
    return fd


def loosen(fd: int) -> None:
    """Give a segment's lock back."""
    if not files.MANDATORY:
        files.release(fd)


class Held:
    """Nobody appends to the segment at `path` inside, whatever became of its stream's sidecar: for whoever replaces it. An
    appender that waited for this lock sees that another file is at `path` now, and looks again.

    Raises LogError where another process holds it for longer than `wait_ms`, OSError. On Windows nothing is done: see `grip`.
    """

    def __init__(self, path: str, wait_ms: int) -> None:
        self._path, self._wait_ms, self._fd = path, wait_ms, -1

    def __enter__(self) -> None:
        while not files.MANDATORY:
            self._fd = files.private(files.open_read(self._path))
            try:
                if not files.grip(self._fd, self._wait_ms):
                    raise LogError(f"another process keeps writing to {self._path}; try again")
                if files.is_at(files.inode_of(self._fd), self._path):
                    return
            except BaseException:
                self.__exit__()
                raise
            self.__exit__()  # it was replaced while we waited

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            files.close(fd)
