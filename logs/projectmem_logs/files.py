"""The one module that touches the log's files: open, write, sync, lock, rename. Everything else asks it.

Each function states what is durable when it returns. Nothing here retries a failed sync: after one, the pages may be
clean and lost, so the caller undoes, reports and reads the file again.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BASE = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
_FULLFSYNC = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache
PIPE_MAX = 1 << 26
_WINDOWS = sys.platform == "win32"
MANDATORY = fcntl is None  # whether a lock keeps others from reading and writing what is locked


def make_last(path: str) -> None:
    """One directory, 0700, unless it is there; what it holds can be made again, so its name need not be durable. Never one above
    it: where a log was removed meanwhile, its folder does not come back. Raises FileNotFoundError then, OSError."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass


def make_dir(path: str) -> None:
    """One directory, 0700, whose name is durable; also where it was there already, as whoever made it may have been
    stopped before its parent was synced."""
    make_last(path)
    sync_dir(os.path.dirname(path))


def make_dirs(path: str) -> None:
    """Create a directory and those above it, 0700 each, so that its name survives a crash; also one that was there, as
    whoever made it may have been stopped before it was durable."""
    above = os.path.dirname(path)
    if above != path and not os.path.isdir(above):
        make_dirs(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    try:
        sync_dir(above)
    except PermissionError:
        pass  # a folder that is only passed through: somebody else's, and older than we are


def sync_dir(path: str) -> None:
    """Make the names in a directory durable. Windows has no such call; there NTFS journals them."""
    if _WINDOWS:
        return
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _BASE)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync(fd: int) -> None:
    """Flush a whole file, its size and its contents, to the platter. Raises OSError; never retry."""
    if _FULLFSYNC is not None:
        try:
            fcntl.fcntl(fd, _FULLFSYNC)
            return
        except OSError as e:
            if e.errno not in (errno.ENOTSUP, errno.EINVAL):
                raise
    os.fsync(fd)


def sync_data(fd: int) -> None:
    """Flush contents and size (what a reader needs), the cheaper call where there is one."""
    if _FULLFSYNC is None and hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        sync(fd)


def open_append(path: str, *, create: bool = False) -> int:
    """A descriptor for appending; `create` makes a new file, 0600, and fails if it exists."""
    flags = os.O_WRONLY | os.O_APPEND | _BASE
    return os.open(path, flags | os.O_CREAT | os.O_EXCL if create else flags, 0o600)


def open_read(path: str) -> int:
    """A descriptor for reading, or for the lock of a file that is only replaced."""
    return os.open(path, os.O_RDONLY | _BASE)


def write_all(fd: int, data: bytes) -> None:
    """One write; a short one is followed up until the rest is in or the system says why not (ENOSPC, EIO)."""
    done = os.write(fd, data)
    while done < len(data):
        n = os.write(fd, data[done : done + (1 << 26)])
        if n <= 0:
            raise OSError(errno.EIO, "the system wrote nothing")
        done += n


def truncate(fd: int, size: int) -> None:
    """Cut a file and sync it."""
    os.ftruncate(fd, size)
    sync(fd)


def signature(path: str) -> tuple[int, int, int, int] | None:
    """(inode, size, mtime in ns, mode) of a file, None when there is none: equal, and nobody wrote to it or sealed it."""
    try:
        s = os.stat(path)
    except FileNotFoundError:
        return None
    return s.st_ino, s.st_size, s.st_mtime_ns, s.st_mode


def size_of(fd: int) -> int:
    """Bytes in a file opened by `open_append`."""
    return os.lseek(fd, 0, os.SEEK_END)


def signature_of(fd: int) -> tuple[int, int, int, int]:
    """`signature` of an open file."""
    s = os.fstat(fd)
    return s.st_ino, s.st_size, s.st_mtime_ns, s.st_mode


def read(path: str, start: int = 0, size: int | None = None) -> bytes:
    """`size` bytes from `start` (all that follow when None; of a pipe, whose size is not known, at most PIPE_MAX); shorter at the
    end of the file."""
    fd = os.open(path, os.O_RDONLY | _BASE)
    try:
        status = os.fstat(fd)
        whole = status.st_size if stat.S_ISREG(status.st_mode) else PIPE_MAX
        want = max(0, (whole if size is None else start + size) - start)
        if start:
            os.lseek(fd, start, os.SEEK_SET)
        chunks = []
        while want > 0:
            chunk = os.read(fd, min(want, 1 << 26))
            if not chunk:
                break
            chunks.append(chunk)
            want -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        os.close(fd)


def read_blocks(path: str, start: int = 0, limit: int | None = None, chunk: int = 1 << 20) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of runs of whole lines from byte `start` up to byte `limit`, about `chunk` bytes each, in flat memory
    but for the longest line. Each ends in a newline, but for a last one that holds what has none."""
    fd = os.open(path, os.O_RDONLY | _BASE)
    try:
        os.lseek(fd, start, os.SEEK_SET)
        end = os.fstat(fd).st_size if limit is None else limit
        at, pos, held = start, start, []
        while pos < end and (block := os.read(fd, min(chunk, end - pos))):
            pos += len(block)
            cut = block.rfind(b"\n") + 1
            if not cut:
                held.append(block)
                continue
            held.append(block[:cut])
            lines = b"".join(held)
            held = [block[cut:]]
            yield at, lines
            at += len(lines)
        if rest := b"".join(held):
            yield at, rest
    finally:
        os.close(fd)


def read_lines(path: str, start: int = 0, limit: int | None = None, chunk: int = 1 << 20) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes with the newline if there is one) of each line, as `read_blocks`."""
    for at, block in read_blocks(path, start, limit, chunk):
        if not block.endswith(b"\n"):  # the last one, and only it
            yield at, block
            return
        for line in block[:-1].split(b"\n"):
            yield at, line + b"\n"
            at += len(line) + 1


def replace(path: str, data: bytes | Iterable[bytes]) -> None:
    """Put `data` (or pieces that are made one after the other, for what is large) at `path` atomically: afterwards, crash or
    not, the file is wholly the old or wholly the new one."""
    new = f"{path}.{os.getpid()}-{time.monotonic_ns():x}.new"
    try:
        fd = open_append(new, create=True)
        try:
            for piece in (data,) if isinstance(data, bytes) else data:
                write_all(fd, piece)
            sync(fd)
        finally:
            os.close(fd)
        os.replace(new, path)
    except OSError:
        remove(new)
        raise
    sync_dir(os.path.dirname(path))


def remove(path: str) -> None:
    """Unlink a file if it is there (not made durable: a file that comes back is handled by its reader)."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def discard(path: str) -> None:
    """Unlink a file so that what was in it cannot come back: its contents are gone for good before its name goes."""
    fd = os.open(path, os.O_WRONLY | _BASE)
    try:
        truncate(fd, 0)
    finally:
        os.close(fd)
    remove(path)


def seal_file(path: str) -> None:
    """Take write permission from a finished segment: a sign to people, tools and stores that remember its signature."""
    os.chmod(path, 0o444)


def is_sealed(mode: int) -> bool:
    """True for the mode of a sealed file."""
    return not mode & stat.S_IWUSR


def names(path: str, suffix: str = "") -> list[str]:
    """The sorted names in a directory that end in `suffix`; [] when there is no such directory."""
    try:
        found = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(n for n in found if n.endswith(suffix)) if suffix else sorted(found)


def plain(path: str, suffix: str = "") -> list[str]:
    """The sorted names of the regular files in a directory (and of links to some) that end in `suffix`; [] when there is no such
    directory. A folder, a pipe or a broken link would stop, or hang, whoever opens it."""
    try:
        with os.scandir(path) as found:
            return sorted(entry.name for entry in found if entry.name.endswith(suffix) and entry.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return []


def folders(path: str) -> list[str]:
    """The sorted names of the directories in a directory; [] when there is no such directory."""
    try:
        with os.scandir(path) as found:
            return sorted(entry.name for entry in found if entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def lock(path: str, wait_ms: int) -> int | None:
    """An exclusive lock on a sidecar file, as a descriptor for `unlock`; None when it was not free within `wait_ms`.

    The sidecar is never unlinked: a second one under the same name would be a second lock. flock, because a POSIX record
    lock is dropped when any other descriptor of the file is closed; on Windows a byte of the sidecar, never of the log.
    """
    deadline = time.monotonic() + wait_ms / 1000
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | _BASE, 0o600)
        try:
            if not _wait(fd, deadline):
                os.close(fd)
                return None
        except OSError:
            os.close(fd)
            raise
        try:
            if _WINDOWS or is_at(inode_of(fd), path):
                return fd
        except OSError:
            unlock(fd)
            raise
        unlock(fd)  # somebody removed the sidecar: this is no longer the lock that others take


def grip(fd: int, wait_ms: int) -> bool:
    """`lock` of an open file; False when it was not free within `wait_ms`. Until `release`."""
    return _try_lock(fd) or _wait(fd, time.monotonic() + wait_ms / 1000)


def is_at(inode: int, path: str) -> bool:
    """Whether the file with this inode, which somebody holds open, is still the one at `path`."""
    try:
        return os.stat(path).st_ino == inode
    except FileNotFoundError:
        return False


def inode_of(fd: int) -> int:
    """The inode of an open file."""
    return os.fstat(fd).st_ino


def _wait(fd: int, deadline: float) -> bool:
    pause = 0.0005
    while not _try_lock(fd):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.01)
    return True


def _try_lock(fd: int) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt  # the only other lock there is

            os.lseek(fd, 0, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
    except OSError as e:
        if e.errno in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def release(fd: int) -> None:
    """Give a lock back and keep the descriptor."""
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_UN)
    else:
        import msvcrt

        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)


def unlock(fd: int) -> None:
    """Release and close; the explicit release also frees it when a forked child still holds the descriptor."""
    try:
        release(fd)
    finally:
        close(fd)


def private(fd: int) -> int:
    """Have this descriptor closed in a forked child: a lock would outlive its process there. `close` and `unlock` end it."""
    _private.add(fd)
    return fd


def close(fd: int) -> None:
    """Close a descriptor."""
    _private.discard(fd)
    os.close(fd)


def _after_fork() -> None:
    for fd in _private:
        try:
            os.close(fd)
        except OSError:
            pass
    _private.clear()


_private: set[int] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
