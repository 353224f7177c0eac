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
    """Those of the names that nobody else has claimed for the session within CLAIM_US before `now` (us). With 0 for `now` they
    are given back: what they were for was not done.

    Raises SnapshotBusy where others held the file for `wait_ms`, ProjectionError where it cannot be written.
    """
    path, fd, held = path_of(snapshot), -1, False
    try:
        fd = os.open(path, FLAGS, 0o600)
        held = files.grip(fd, wait_ms)
        if not held:
            raise SnapshotBusy(f"the claims in {path} are locked by another process: try again")
        return [name for name in names if _put(fd, session, name, now)]
    except OSError as error:
        raise ProjectionError(f"the claims in {path} cannot be used: {error.strerror or error}") from error
    finally:
        if held:
            files.unlock(fd)
        elif fd >= 0:
            os.close(fd)  # Windows complains where what is not locked is unlocked


def _put(fd: int, session: str, name: str, now: int) -> bool:
    """Put `now` into the claim's slot, unless another's stands there; 0 ends whosever it is. Raises OSError."""
    mark = sha256(f"{session}\0{name}".encode("utf-8", "surrogatepass")).digest()[:HASH]
    start = int.from_bytes(mark[:2], "big") % SETS * SLOT * WAYS
    os.lseek(fd, start, os.SEEK_SET)
    found = os.read(fd, SLOT * WAYS).ljust(SLOT * WAYS, b"\0")
    times = [int.from_bytes(found[at + HASH : at + SLOT], "big") for at in range(0, SLOT * WAYS, SLOT)]
    marks = [found[at : at + HASH] for at in range(0, SLOT * WAYS, SLOT)]
    if mark in marks:
        slot = marks.index(mark)
        if now and abs(now - times[slot]) <= CLAIM_US:  # one that is further ahead was made before a clock was set back
            return False
    elif now:
        slot = times.index(min(times))
    else:
        return False
    os.lseek(fd, start + slot * SLOT, os.SEEK_SET)
    files.write_all(fd, mark + now.to_bytes(TIME, "big"))
    return True
