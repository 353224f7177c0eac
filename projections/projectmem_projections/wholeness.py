"""What a build must know of a log before it may read it in bulk: where its streams end, whether all of it verifies, and what
was asked to be erased. DuckDB's reader checks no digest, so a line that was tampered with must not come in by it.
"""

from __future__ import annotations

import json
import mmap
import os
import threading

from projectmem_logs.tail import read_position, segments, streams
from projectmem_logs.verify import verify

End = tuple[int, str, str, int]  # seq, hash, segment, byte offset
_ERASURE = b'"kind":"erasure.requested"'


class _EndedError(Exception):
    """Nobody waits for the verdict any more."""


class Verifying:
    """Verifies the log in a thread of its own, beside the DuckDB that reads the same bytes (which holds no lock of Python's).

    `ok` waits for the verdict. Leaving the `with` block ends the thread, whatever it has come to.
    """

    def __init__(self, home: str) -> None:
        self._home, self._ok, self._ended = home, False, False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="verify", daemon=True)

    def __enter__(self) -> Verifying:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._thread.join()

    def ok(self) -> bool:
        """Whether every byte of the log is accounted for. Raises what `verify` raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._ok

    def _run(self) -> None:
        try:
            self._ok = verify(self._home, self._told, canonical=False).ok  # the careful way would serve it all the same
        except BaseException as error:
            self._error = error

    def _told(self, done: int, total: int) -> None:
        if self._ended:
            raise _EndedError


def ends(home: str) -> dict[str, End] | None:
    """Of each stream that is not empty where it ends; None where some end is not clean."""
    found = {}
    for stream in streams(home):
        position = read_position(os.path.join(home, "log", stream), stream)
        tail = position.tail
        if tail.state != "clean":
            return None
        if tail.seq:
            found[stream] = (tail.seq, tail.hash, position.segment, position.size)
    return found


def erased_ids(home: str) -> set[str]:
    """Ids that the log asks to erase, found before anything else of it is read: what they name must not be written down."""
    ids: set[str] = set()
    for stream in streams(home):
        folder = os.path.join(home, "log", stream)
        for name in segments(folder):
            path = os.path.join(folder, name)
            if os.stat(path).st_size:
                with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as bytes_:
                    ids |= _named(bytes_)
    return ids


def _named(text: mmap.mmap) -> set[str]:
    ids: set[str] = set()
    at = text.find(_ERASURE)
    while at >= 0:
        end = text.find(b"\n", at)
        end = len(text) if end < 0 else end
        try:
            event = json.loads(text[text.rfind(b"\n", 0, at) + 1 : end])
            ids.update(i for i in event["data"]["ids"] if type(i) is str)
        except (ValueError, KeyError, TypeError):
            pass  # damaged, or erased itself: what is served of it is found again once the log is read
        at = text.find(_ERASURE, end)
    return ids
