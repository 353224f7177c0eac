"""The log's folder: creating it, its identity, its key, and which stream this machine writes.

<home>/project.json  {"created", "format", "project"}     <home>/key       32 random bytes in hex, for redaction
<home>/writers/<machine>.json  {"inode", "retired", "stream"}    <home>/locks/  sidecars, never unlinked
"""

from __future__ import annotations

import os
import sys

from . import files
from .canonical import canonical
from .digest import sha256_hex
from .envelope import is_stream
from .errors import LogError, NotInitialisedError
from .fastjson import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1
FOLDERS = ("log", "locks", "writers", "quarantine", "spool", "projections")
MINT_WAIT_MS = 5_000
_machines: dict[str, str] = {}  # what the system's id and this name of it come to: the id is one as long as the process runs


def init_home(home: str, now: int, *, allow_network: bool = False) -> str:
    """Create whatever of the log's folder is missing and return the project's id. Idempotent; never overwrites.

    Raises NetworkFilesystemError (unless `allow_network`), OSError when the folder cannot be written.
    """
    if not allow_network:
        from .filesystems import refuse_network  # only init pays for it

        refuse_network(home)
    files.make_dirs(os.path.abspath(home))
    for name in FOLDERS:
        files.make_dir(os.path.join(home, name))
    key = os.path.join(home, "key")
    if not os.path.exists(key):
        files.replace(key, os.urandom(32).hex().encode() + b"\n")
    path = os.path.join(home, "project.json")
    if not os.path.exists(path):
        files.replace(path, canonical({"created": now, "format": FORMAT, "project": os.urandom(8).hex()}) + b"\n")
    return project_id(home)


def restore_folders(home: str) -> None:
    """Make again what folders a log has lost: an empty one may be swept away, and none but `log/` holds what is recorded.
    Raises NotInitialisedError where there is no log."""
    if not os.path.exists(os.path.join(home, "project.json")) or not os.path.isdir(os.path.join(home, "log")):
        raise NotInitialisedError(f"no log at {home}; run `projectmem init` in the project")
    for name in FOLDERS:
        files.make_dir(os.path.join(home, name))


def project_id(home: str) -> str:
    """The random id minted at init. Raises NotInitialisedError, LogError when the file is damaged or from the future."""
    path = os.path.join(home, "project.json")
    try:
        found = loads(files.read(path))
        project, format = found["project"], found["format"]
    except FileNotFoundError:
        raise NotInitialisedError(f"no log at {home}; run `projectmem init` in the project") from None
    except (ValueError, KeyError, TypeError):
        raise LogError(f"{path} is damaged; restore it from a backup, or delete it and run `projectmem init`") from None
    if type(format) is not int or format > FORMAT:
        raise LogError(f"{path}: format {format!r} is newer than this version reads ({FORMAT}); install a newer projectmem-gate")
    return str(project)


def redaction_key(home: str) -> bytes:
    """The 32 bytes secrets are replaced under. Raises NotInitialisedError, LogError when the file is damaged."""
    path = os.path.join(home, "key")
    try:
        key = bytes.fromhex(files.read(path).decode().strip())
    except FileNotFoundError:
        raise NotInitialisedError(f"no log at {home}; run `projectmem init` in the project") from None
    except ValueError:
        key = b""
    if len(key) != 32:
        raise LogError(f"{path} is not 32 bytes in hex; restore it, or delete it and run `projectmem init` for a new one")
    return key


def machine() -> str:
    """An opaque name of this machine: the same for every process on it, another in a container or on a copy's host."""
    node = os.uname().nodename if sys.platform != "win32" else ""
    if node not in _machines:
        try:
            known = files.read("/etc/machine-id", 0, 64)
        except OSError:
            known = b""
        _machines.clear()
        _machines[node] = sha256_hex(known + b"\0" + node.encode())[:16]
    return _machines[node]


class Writer:
    """Which stream this machine writes in this folder.

    The folder's inode is part of the answer: a copied folder gets a stream of its own instead of forking the old one.
    """

    def __init__(self, home: str) -> None:
        self.home, self.machine = home, machine()
        self.path = os.path.join(home, "writers", f"{self.machine}.json")
        self._seen: tuple[int, int, int, int] | None = None
        self._stream = ""

    def stream(self) -> str:
        """The current stream, minted the first time. Raises NotInitialisedError, LogError, OSError."""
        now = files.signature(self.path)
        if now is None or now != self._seen:
            found = self._load()
            if found.get("stream") and found.get("inode") == self._inode():
                self._stream, self._seen = str(found["stream"]), now
            else:
                self._mint(str(found.get("stream") or ""), "the folder is a copy")
        return self._stream

    def retire(self, stream: str, why: str) -> str:
        """Give up `stream` (it is read-only from now on) and return the one to go on with."""
        self._mint(stream, why)
        return self._stream

    def _mint(self, old: str, why: str) -> None:
        path = os.path.join(self.home, "locks", f"{self.machine}.writer.lock")
        try:
            fd = files.lock(path, MINT_WAIT_MS)
        except FileNotFoundError:
            restore_folders(self.home)
            fd = files.lock(path, MINT_WAIT_MS)
        if fd is None:
            raise LogError(f"{self.path}: another process holds its lock for {MINT_WAIT_MS / 1000:g} s; try again")
        try:
            found = self._load()
            if not found or found.get("stream") == old or found.get("inode") != self._inode():
                retired = found.get("retired") or {}
                if old:
                    retired = {**retired, old: why}
                found = {"inode": self._inode(), "retired": retired, "stream": os.urandom(8).hex()}
                try:
                    files.replace(self.path, canonical(found) + b"\n")
                except FileNotFoundError:  # the folder was swept away
                    restore_folders(self.home)
                    files.replace(self.path, canonical(found) + b"\n")
            self._stream, self._seen = str(found["stream"]), files.signature(self.path)
        finally:
            files.unlock(fd)

    def _load(self) -> dict[str, Any]:
        try:
            found = loads(files.read(self.path))
        except FileNotFoundError:
            return {}
        except ValueError:
            return {}  # damaged: a new stream loses nothing, the old one is still read
        if not isinstance(found, dict) or not is_stream(found.get("stream")):
            return {}  # what becomes a path is checked: it could lead out of the log
        return found if isinstance(found.get("retired") or {}, dict) else {**found, "retired": {}}

    def _inode(self) -> int:
        return os.stat(os.path.join(self.home, "log")).st_ino & (2**53 - 1)
