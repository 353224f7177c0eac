"""A disk in memory that forgets as a real one may: what stands between the log's modules and a crash, for the simulation.

It takes the place of `os` and `fcntl` in the log's modules, so that files.py itself is what is tested. Until it is synced
a write is lost, kept, kept in part (whole sectors, in any order), or leaves only its length; names that were created,
renamed or removed come and go until their folder is synced; a sync that fails throws away what it should have kept while
reads go on showing it; calls fail, fall short, or are the last thing a process or the machine does.
"""

from __future__ import annotations

import errno
import os
import random
import stat
from collections.abc import Callable, Iterator
from typing import Any

SECTOR = 512


class Killed(BaseException):
    """The process ended at this call; nothing it tries afterwards has any effect."""


class Inode:
    """A file (`data`) or a folder (`names`): as processes see it, as the platter has it, and the changes between."""

    __slots__ = ("data", "durable", "mode", "mtime", "names", "number", "pending", "stale")

    def __init__(self, number: int, mode: int, folder: bool) -> None:
        self.number, self.mode, self.mtime = number, mode, 0
        self.data, self.stale = bytearray(), b""
        self.names: dict[str, int] | None = {} if folder else None
        self.durable: Any = {} if folder else b""
        self.pending: list[tuple[Any, ...]] = []


class Status:
    """What the log reads of a stat result."""

    def __init__(self, inode: Inode) -> None:
        self.st_ino, self.st_mode, self.st_mtime_ns = inode.number, inode.mode, inode.mtime
        self.st_size = len(inode.data)


class Entry:
    """What the log reads of a scandir entry."""

    def __init__(self, name: str, inode: Inode) -> None:
        self.name, self._inode = name, inode

    def is_dir(self) -> bool:
        """True for a folder."""
        return self._inode.names is not None

    def is_file(self) -> bool:
        """True for a file."""
        return self._inode.names is None


class Disk:
    """One disk and the processes that use it; every call goes through `_call`, where it can be made to fail."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.inodes: dict[int, Inode] = {1: Inode(1, stat.S_IFDIR | 0o700, True)}
        self.last, self.clock, self.calls = 1, 0, 0
        self.open: dict[int, list[Any]] = {}  # descriptor -> [inode, flags, position, process]
        self.locks: dict[int, int] = {}  # inode -> descriptor
        self.next_fd = 1000
        self.process = 0
        self.dead = False
        self.plan: Callable[[str], Any] | None = None  # name of the call -> None, an errno, "kill", "short", "torn"

    # -- faults -------------------------------------------------------------------------------------------------------

    def _call(self, name: str) -> Any:
        if self.dead:
            raise Killed
        self.calls += 1
        what = self.plan(name) if self.plan else None
        if what == "kill":
            self.dead = True
            raise Killed
        if type(what) is int:
            raise OSError(what, os.strerror(what))
        return what

    def end_process(self, process: int) -> None:
        """The process is gone: its descriptors and locks with it."""
        for fd in [fd for fd, held in self.open.items() if held[3] == process]:
            self._drop(fd)
        self.dead, self.plan = False, None

    def _drop(self, fd: int) -> None:
        held = self.open.pop(fd, None)
        if held is not None and self.locks.get(held[0].number) == fd:
            del self.locks[held[0].number]

    def crashed(self, rng: random.Random) -> Disk:
        """The disk as a machine that lost its power may find it; this one is left as it is."""
        after = Disk(rng)
        after.last, after.clock, after.next_fd = self.last, self.clock, self.next_fd
        after.inodes = {}
        todo = [1]
        while todo:
            number = todo.pop()
            if number in after.inodes:
                continue
            old = self.inodes[number]
            new = after.inodes[number] = Inode(number, old.mode, old.names is not None)
            new.mtime = old.mtime
            if old.names is not None:
                new.names = settle_names(old, rng)
                new.durable = dict(new.names)
                todo += new.names.values()
            else:
                new.durable = settle(old.durable, old.pending, old.stale, rng)
                new.data, new.stale = bytearray(new.durable), old.stale
        return after

    # -- paths --------------------------------------------------------------------------------------------------------

    def _find(self, path: str) -> Inode:
        node = self.inodes[1]
        for part in path.split("/"):
            if not part:
                continue
            if node.names is None:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            number = node.names.get(part)
            if number is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            node = self.inodes[number]
        return node

    def _parent(self, path: str) -> tuple[Inode, str]:
        folder, _, name = path.rpartition("/")
        return self._find(folder), name

    def _add(self, path: str, mode: int, folder: bool) -> Inode:
        parent, name = self._parent(path)
        assert parent.names is not None
        if name in parent.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self.last += 1
        node = self.inodes[self.last] = Inode(self.last, mode, folder)
        parent.names[name] = node.number
        self._touch(parent, ("set", name, node.number))
        return node

    def _touch(self, inode: Inode, change: tuple[Any, ...] | None = None) -> None:
        self.clock += 1000
        inode.mtime = self.clock
        if change is not None:
            inode.pending.append(change)

    # -- what `os` has ------------------------------------------------------------------------------------------------

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        self._call("mkdir")
        self._add(path, stat.S_IFDIR | mode, True)

    def makedirs(self, path: str, mode: int = 0o777, exist_ok: bool = False) -> None:
        done = ""
        for part in path.strip("/").split("/"):
            done += f"/{part}"
            try:
                self.mkdir(done, mode)
            except FileExistsError:
                if done == path and not exist_ok:
                    raise

    def _opened(self, path: str, flags: int, mode: int) -> Inode:
        try:
            node = self._find(path)
            if flags & os.O_EXCL and flags & os.O_CREAT:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            node = self._add(path, stat.S_IFREG | mode, False)
        if flags & (os.O_WRONLY | os.O_RDWR) and not node.mode & stat.S_IWUSR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return node

    def open_(self, path: str, flags: int, mode: int = 0o777) -> int:
        self._call("open")
        self.next_fd += 1
        self.open[self.next_fd] = [self._opened(path, flags, mode), flags, 0, self.process]
        return self.next_fd

    def close(self, fd: int) -> None:
        if not self.dead:
            self._drop(fd)

    def write(self, fd: int, data: bytes) -> int:
        what = self._call("write")
        inode, _flags, _at, _ = self.open[fd]
        if what in ("short", "torn"):
            data = data[: self.rng.randrange(1, len(data))] if len(data) > 1 else data
        start = len(inode.data)  # the log only ever appends
        inode.data += data
        self._touch(inode, ("write", start, bytes(data)))
        if what == "torn":
            self.dead = True
            raise Killed
        return len(data)

    def ftruncate(self, fd: int, size: int) -> None:
        self._call("ftruncate")
        inode = self.open[fd][0]
        inode.stale = bytes(inode.data)
        del inode.data[size:]
        self._touch(inode, ("cut", size))

    def _sync(self, name: str, fd: int) -> None:
        inode = self.open[fd][0]
        try:
            self._call(name)
        except OSError:  # what was to be kept is lost, in part or whole, and the pages are clean all the same
            if inode.names is None:
                inode.durable = settle(inode.durable, inode.pending, inode.stale, self.rng)
                inode.pending = []
            raise
        inode.durable = dict(inode.names) if inode.names is not None else bytes(inode.data)
        inode.pending = []

    def fsync(self, fd: int) -> None:
        self._sync("fsync", fd)

    def fdatasync(self, fd: int) -> None:
        self._sync("fdatasync", fd)

    def lseek(self, fd: int, to: int, how: int) -> int:
        self._call("lseek")
        self.open[fd][2] = to = to + len(self.open[fd][0].data) if how == os.SEEK_END else to
        return to

    def read(self, fd: int, size: int) -> bytes:
        self._call("read")
        held = self.open[fd]
        out = bytes(held[0].data[held[2] : held[2] + size])
        held[2] += len(out)
        return out

    def stat(self, path: str) -> Status:
        self._call("stat")
        return Status(self._find(path))

    def fstat(self, fd: int) -> Status:
        return Status(self.open[fd][0])

    def chmod(self, path: str, mode: int) -> None:
        self._call("chmod")
        node = self._find(path)
        node.mode = stat.S_IFMT(node.mode) | mode

    def replace(self, old: str, new: str) -> None:
        self._call("replace")
        parent, name = self._parent(old)
        target, renamed = self._parent(new)
        assert parent is target and parent.names is not None
        if name not in parent.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
        number = parent.names.pop(name)
        parent.names[renamed] = number
        self._touch(parent, ("rename", name, renamed, number))

    def unlink(self, path: str) -> None:
        self._call("unlink")
        parent, name = self._parent(path)
        assert parent.names is not None
        if name not in parent.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        del parent.names[name]
        self._touch(parent, ("unset", name))

    def listdir(self, path: str) -> list[str]:
        self._call("listdir")
        node = self._find(path)
        if node.names is None:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return list(node.names)

    def entries(self, path: str) -> list[Entry]:
        return [Entry(name, self._find(f"{path}/{name}")) for name in self.listdir(path)]

    def flock(self, fd: int, how: int) -> None:
        import fcntl

        self._call("flock")
        number = self.open[fd][0].number
        if how == fcntl.LOCK_UN:
            if self.locks.get(number) == fd:
                del self.locks[number]
        elif self.locks.setdefault(number, fd) != fd:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    # -- for tests ----------------------------------------------------------------------------------------------------

    def tree(self, path: str = "") -> dict[str, bytes]:
        """{path: contents} of every file below."""
        out = {}
        for name, number in sorted((self._find(path).names or {}).items()):
            node = self.inodes[number]
            out.update(self.tree(f"{path}/{name}") if node.names is not None else {f"{path}/{name}": bytes(node.data)})
        return out


def settle(durable: bytes, pending: list[tuple[Any, ...]], stale: bytes, rng: random.Random) -> bytes:
    """A file's bytes after a crash, given the changes that were not synced."""
    image = bytearray(durable)
    for change in pending:
        if change[0] == "cut":
            if rng.random() < 0.5:
                del image[change[1] :]
            continue
        _, start, data = change
        fate = rng.choice(("none", "whole", "whole", "length", "prefix", "sectors", "sectors", "stale"))
        if fate == "none":
            continue
        end = start + len(data)
        stop = rng.randrange(start, end + 1) if fate == "prefix" or (fate == "sectors" and rng.random() < 0.3) else end
        if len(image) < stop:
            image += bytes(stop - len(image))
        if fate == "length":
            continue
        at = start
        while at < stop:
            edge = min(stop, (at // SECTOR + 1) * SECTOR)
            if fate in ("whole", "prefix") or rng.random() < 0.5:
                image[at:edge] = data[at - start : edge - start]
            elif fate == "stale":  # the block's former contents
                image[at:edge] = (stale[at:edge] if rng.random() < 0.5 else b"").ljust(edge - at, b"\xa5")
            at = edge
    return bytes(image)


def settle_names(folder: Inode, rng: random.Random) -> dict[str, int]:
    """A folder's names after a crash: a journal keeps the first so many changes, other file systems any of them."""
    names: dict[str, int] = dict(folder.durable)
    upto = rng.randrange(len(folder.pending) + 1) if folder.pending else 0
    ordered = rng.random() < 0.5
    for i, change in enumerate(folder.pending):
        if i >= upto if ordered else rng.random() < 0.5:
            continue
        if change[0] == "set":
            names[change[1]] = change[2]
        elif change[0] == "unset":
            names.pop(change[1], None)
        else:
            names.pop(change[1], None)
            names[change[2]] = change[3]
    return names


class _Path:
    """`os.path` with the two questions that need the disk."""

    def __init__(self, owner: SimulatedOs) -> None:
        self._owner = owner

    def exists(self, path: str) -> bool:
        try:
            self._owner.disk._find(path)
        except OSError:
            return False
        return True

    def isdir(self, path: str) -> bool:
        return self.exists(path) and self._owner.disk._find(path).names is not None

    def __getattr__(self, name: str) -> Any:
        return getattr(os.path, name)


class _Scan(list[Entry]):
    def __enter__(self) -> Iterator[Entry]:
        return iter(self)

    def __exit__(self, *_: object) -> None:
        return None


CALLS = frozenset(
    "mkdir makedirs close write ftruncate fsync fdatasync lseek read stat fstat chmod replace unlink listdir".split()
)


class SimulatedOs:
    """Stands in for `os` (and `fcntl`) in the log's modules; `disk` can be changed for another at any time."""

    LOCK_EX, LOCK_NB, LOCK_UN = 2, 4, 8

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.path = _Path(self)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        return self.disk.open_(path, flags, mode)

    def scandir(self, path: str) -> _Scan:
        return _Scan(self.disk.entries(path))

    def urandom(self, size: int) -> bytes:
        return self.disk.rng.randbytes(size)

    def flock(self, fd: int, how: int) -> None:
        self.disk.flock(fd, how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.disk, name) if name in CALLS else getattr(os, name)
