"""Who does what several hooks are told at the same moment [H]: the first that claims it, for the next ten seconds.

A hook may be registered twice, or a server may answer beside the command. What is done for good is known by the log; a claim
only bridges the gap until it is there. Beside a snapshot stands one small file of fixed slots, `<snapshot>.claims`: the first 16
bytes of a claim's hash, and its time. A slot is found by its hash among WAYS; where all are taken, the oldest gives way. Derived
data: nothing is synced, and a file that is lost loses nothing but the claims of this very moment. In the snapshot each claim was
a transaction of its own, which cost more than four times as much.
"""

from __future__ import annotations

import os

from projectmem_logs import files
from projectmem_logs.digest import sha256

from .errors import ProjectionError, SnapshotBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

CLAIM_US = 10_000_000  # a claimer that has not finished by then is gone
HASH, TIME = 16, 8
SLOT, WAYS, SETS = HASH + TIME, 8, 1024
FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def path_of(snapshot: str) -> str:
    """Where the claims beside a snapshot are."""
    return f"{snapshot}.claims"


def claim(snapshot: str, session: str, names: Iterable[str], now: int, wait_ms: int) -> list[str]:
    """Those of the names that nobody else has claimed for the session within CLAIM_US before `now` (us).

    Raises SnapshotBusy where others held the file for `wait_ms`, ProjectionError where it cannot be written.
    """
    with _Slots(snapshot, wait_ms) as slots:
        return [name for name in names if slots.put(session, name, now)]


def release(snapshot: str, session: str, names: Iterable[str], wait_ms: int) -> None:
    """Give claims back: what they were for was not done. Raises as `claim`."""
    with _Slots(snapshot, wait_ms) as slots:
        for name in names:
            slots.put(session, name, 0)


class _Slots:
    """The file, open and locked."""

    def __init__(self, snapshot: str, wait_ms: int) -> None:
        self.path, self.wait_ms, self.fd = path_of(snapshot), wait_ms, -1

    def __enter__(self) -> _Slots:
        try:
            self.fd = os.open(self.path, FLAGS, 0o600)
            if not files.grip(self.fd, self.wait_ms):
                raise SnapshotBusy(f"the claims in {self.path} are locked by another process: try again")
        except BaseException as error:
            self._close()
            if isinstance(error, OSError):
                raise ProjectionError(f"the claims in {self.path} cannot be used: {error.strerror or error}") from error
            raise
        return self

    def __exit__(self, type: object, error: BaseException | None, trace: object) -> None:
        self._close()
        if isinstance(error, OSError):
            raise ProjectionError(f"the claims in {self.path} cannot be used: {error.strerror or error}") from error

    def _close(self) -> None:
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            files.unlock(fd)

    def put(self, session: str, name: str, now: int) -> bool:
        """Put `now` into the claim's slot, unless another's stands there; 0 ends whosever it is. Raises OSError."""
        mark = sha256(f"{session}\0{name}".encode("utf-8", "surrogatepass")).digest()[:HASH]
        start = int.from_bytes(mark[:2], "big") % SETS * SLOT * WAYS
        os.lseek(self.fd, start, os.SEEK_SET)
        found = os.read(self.fd, SLOT * WAYS).ljust(SLOT * WAYS, b"\0")
        chosen, oldest = 0, -1
        for at in range(0, len(found), SLOT):
            when = int.from_bytes(found[at + HASH : at + SLOT], "big")
            if found[at : at + HASH] == mark:
                if now and when >= now - CLAIM_US:
                    return False
                chosen = at
                break
            if oldest < 0 or when < oldest:
                chosen, oldest = at, when
        else:
            if not now:
                return False
        os.lseek(self.fd, start + chosen, os.SEEK_SET)
        files.write_all(self.fd, mark + now.to_bytes(TIME, "big"))
        return True
