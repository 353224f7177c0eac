"""Whether a log was set up here, or came with the files around it: unpacked, copied or shipped."""

from __future__ import annotations

import os

from . import files
from .fastjson import loads
from .home import Writer, machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    Signature = tuple[int, int, int, int] | None

_KNOWN_MAX = 64
# The file is only ever replaced by another one: the same signature is the same file.
_known: dict[str, tuple[Signature, frozenset[str]]] = {}


def accept(home: str) -> None:
    """Take the log as this machine's: mint the stream it writes here. Idempotent. Raises LogError, OSError."""
    Writer(home).stream()


def own_streams(home: str) -> frozenset[str]:
    """The streams that this machine writes or wrote in this folder; none where it has not written yet. What another machine
    put there, or what was copied or shipped, is not among them."""
    path = os.path.join(home, "writers", f"{machine()}.json")
    try:
        now = files.signature(path)
        kept = _known.get(path)
        if kept is not None and kept[0] == now:
            return kept[1]
        found = loads(files.read(path))
    except (OSError, ValueError):
        return frozenset()
    if not isinstance(found, dict):
        return frozenset()
    retired = found.get("retired")
    streams = frozenset([str(found.get("stream") or ""), *(retired if isinstance(retired, dict) else ())]) - {""}
    if len(_known) < _KNOWN_MAX:
        _known[path] = now, streams
    return streams


def accepted(home: str) -> bool:
    """Whether this machine writes a stream in this very folder. A copy has another inode, a shipped log another machine."""
    try:
        found = loads(files.read(os.path.join(home, "writers", f"{machine()}.json")))
        inode = os.stat(os.path.join(home, "log")).st_ino & (2**53 - 1)
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("inode") == inode and bool(found.get("stream"))
