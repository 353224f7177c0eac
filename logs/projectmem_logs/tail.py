"""Where a stream stands on disk: its segments, and the verdict on its last batch from the last few KiB alone.

The cost does not depend on the size of the log: list the folder, read the end of the last segment, check one batch.
Only when that end is not clean is more read, doubling back until the recovery table can decide.
"""

from __future__ import annotations

import os

from . import files
from .envelope import GENESIS, check_line, is_stream
from .recovery import CLEAN, CORRUPT, MORE, TORN, UNTERMINATED, Tail, assess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .envelope import Line

SUFFIX = ".jsonl"
_HEAD = b'{"actor":{'  # how every record begins
WINDOW = 64 * 1024


def segment_name(first_seq: int) -> str:
    """The file name of the segment whose first record has this seq."""
    return f"{first_seq:020d}{SUFFIX}"


def first_seq(name: str) -> int | None:
    """The first seq a segment's name promises, None when it is not the name of a segment."""
    stem = name[: -len(SUFFIX)]
    return int(stem) if name.endswith(SUFFIX) and len(stem) == 20 and stem.isascii() and stem.isdigit() else None


def streams(home: str) -> list[str]:
    """The ids of all streams of a log, sorted; folders of other names are left to `verify` to report."""
    return [n for n in files.folders(os.path.join(home, "log")) if is_stream(n)]


def segments(folder: str) -> list[str]:
    """The names of a stream's segments, in order: regular files. Whatever else is there is left to `verify` to report."""
    return [n for n in files.plain(folder, SUFFIX) if first_seq(n) is not None]


class Position:
    """A stream's end: the verdict, and the segment it stands in ("" when the stream has none yet)."""

    __slots__ = ("sealed", "segment", "size", "tail")

    def __init__(self, tail: Tail, segment: str, size: int, sealed: bool = False) -> None:
        self.tail, self.segment, self.size, self.sealed = tail, segment, size, sealed


def read_position(folder: str, stream: str) -> Position:
    """Judge the end of a stream. Raises OSError when the files cannot be read."""
    found = segments(folder)
    if not found:
        return Position(Tail(CLEAN, 0, GENESIS, [], 0), "", 0)
    name = found[-1]
    path = os.path.join(folder, name)
    status = os.stat(path)
    size = status.st_size
    tail = read_tail(path, stream, int(name[:20]), size)
    if tail.seq == int(name[:20]) - 1 and tail.state in (CLEAN, TORN, UNTERMINATED):
        _chain_on(folder, stream, found[:-1], tail)
    return Position(tail, name, size, files.is_sealed(status.st_mode))


def _chain_on(folder: str, stream: str, earlier: list[str], tail: Tail) -> None:
    """The last segment holds no whole batch (it was just begun): the chain goes on from the end of the one before."""
    if not earlier:
        tail.hash = GENESIS
        if tail.seq:
            tail.state, tail.why = CORRUPT, "earlier segments are missing"
        return
    path = os.path.join(folder, earlier[-1])
    before = read_tail(path, stream, int(earlier[-1][:20]), os.stat(path).st_size)
    if before.state != CLEAN or before.seq != tail.seq:
        tail.state, tail.why = CORRUPT, f"segment {earlier[-1]} does not end where the next one begins"
    tail.hash, tail.ids = before.hash, before.ids


def read_tail(path: str, stream: str, first: int, size: int) -> Tail:
    """Judge the last `size` bytes' end of one segment, reading no more of it than the verdict needs."""
    if size == 0:
        return Tail(CLEAN, first - 1, "", [], 0)
    window = WINDOW
    while True:
        start = max(0, size - window)
        data = files.read(path, start, size - start)
        if start:
            skip = data.find(b"\n") + 1
            if not skip:
                window *= 4
                continue
            start += skip
            data = data[skip:]
        anchor = (first - 1, GENESIS if first == 1 else "") if start == 0 else None
        batch = _last_batch(data, start)
        tail = assess(batch, stream, anchor if batch and batch[0].start == 0 else None, size, start)
        if tail.state != CLEAN:
            tail = assess(split(data, start), stream, anchor, size, start)
        if tail.state != MORE:
            return tail
        window *= 4


def split(data: bytes, start: int) -> list[Line]:
    """Every line of `data`, judged; the last one may lack its newline. Records that run together count one by one."""
    out, at = [], 0
    while at < len(data):
        end = data.find(b"\n", at)
        stop = len(data) if end < 0 else end
        line = check_line(data[at:stop], start + at, terminated=end >= 0)
        glued = [] if line.ok or line.dressed else part(data[at:stop], start + at, end >= 0)
        out += [piece for piece, _ in glued] or [line]
        at = stop + 1
    return out


def part(raw: bytes, start: int, terminated: bool) -> list[tuple[Line, bytes]]:
    """A line in which records run together (a newline was lost, or two wrote without a lock), cut wherever one could begin:
    each piece, judged, with its bytes. [] where no piece is a whole record: then it is a damaged line like any other."""
    starts, at = [0], raw.find(_HEAD, 1)
    while at >= 0:
        starts.append(at)
        at = raw.find(_HEAD, at + 1)
    if len(starts) == 1:
        return []
    ends = [*starts[1:], len(raw)]
    out = []
    for a, b in zip(starts, ends, strict=True):
        out.append((check_line(raw[a:b], start + a, terminated and b == len(raw)), raw[a:b]))
    return out if any(line.ok for line, _ in out) else []


def _last_batch(data: bytes, start: int) -> list[Line]:
    """The lines of the last batch, found from the end; an empty list when the end is not that simple."""
    if not data.endswith(b"\n"):
        return []
    out: list[Line] = []
    stop = len(data) - 1
    while True:
        begin = data.rfind(b"\n", 0, stop) + 1
        line = check_line(data[begin:stop], start + begin)
        if not line.ok:
            return []
        out.append(line)
        if line.seq == line.batch:
            break
        if not begin:
            return []
        stop = begin - 1
    if begin and data.find(f'"hash":"{line.prev}"'.encode(), data.rfind(b"\n", 0, begin - 1) + 1, begin) < 0:
        return []  # the record before is not the one this batch chains on
    return out[::-1]
