"""A process that drafts calls for an import: jobs in on standard input, drafts out on standard output, in order, until it ends.

Started by workers.py and by nothing else. A frame is four bytes of length and that many of marshal, which both sides, being one
program, read alike. First comes HELLO. A job is a list of calls, its answer a list of as many rows; None for a row says that the
asker has to do it himself.
"""

from __future__ import annotations

import gc
import marshal
import os
import signal
import struct
import sys
from typing import IO, Any

HEAD = struct.Struct("<I")
HELLO = "ready"
MOST = 128 << 20  # bytes of a frame, more than a line of a file has; any printed text read as a length is more than that


def read_frame(file: IO[bytes]) -> Any:
    """The next value, None at the end of the file. Raises ValueError for what is none: something else was printed, and no memory
    is asked for by what its letters would be as a length."""
    head = file.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    size = HEAD.unpack(head)[0]
    if size > MOST:
        raise ValueError(f"a frame of {size:,} bytes")
    body = file.read(size)
    return marshal.loads(body) if len(body) == size else None  # noqa: S302 - the other side is this program


def framed(value: Any) -> bytes:
    """One value as it is sent. Raises ValueError for what marshal does not hold."""
    body = marshal.dumps(value)
    return HEAD.pack(len(body)) + body


def write_frame(file: IO[bytes], value: Any) -> None:
    """Write one value. Raises ValueError for what marshal does not hold, OSError where nobody reads."""
    file.write(framed(value))
    file.flush()


def main() -> None:
    """Answer jobs until there are no more. A person's Ctrl-C is the asker's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that prints gets between the frames
    from projectmem.importers.drafting import Drafts
    from projectmem.place import Place

    drafts = Drafts()
    gc.freeze()
    gc.set_threshold(20_000, 50)  # as the asker does
    try:
        write_frame(out, HELLO)
    except OSError:
        return
    while (job := read_frame(sys.stdin.buffer)) is not None:
        try:
            write_frame(out, _rows([_draft(drafts, Place(*place), moved, call) for place, moved, call in job]))
        except OSError:
            return


def _draft(drafts: Any, place: Any, moved: list[str], call: bytes) -> Any:
    try:
        return drafts.alone(place, marshal.loads(call), moved)  # noqa: S302 - as above
    except Exception:  # whatever it is, the asker meets it where it can be told
        return None


def _rows(given: list[Any]) -> list[Any]:
    from projectmem.importers.made import rows

    try:
        found = rows(given)
        marshal.dumps(found)
    except Exception:  # as above
        return [None] * len(given)
    return found
