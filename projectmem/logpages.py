"""The log newest first, a page at a time, read from the end of its files: a page costs the same in a log of any length.

A search that finds too little within its budget stops and says how far it got; the next page goes on from there. The same
events as `logview.select` gives, in the other order.
"""

from __future__ import annotations

import heapq
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from projectmem_logs import files
from projectmem_logs.envelope import check_line, parse
from projectmem_logs.reader import whole_records
from projectmem_logs.recovery import CORRUPT
from projectmem_logs.tail import read_position, segments, streams
from projectmem_logs.upcasting import current

from projectmem import logview

Event = dict[str, Any]
BLOCK = 256 * 1024
LOOK = 64 * 1024  # bytes of one step of the search for a place in a segment
BYTES_MAX = 256 << 20
SECONDS = 1.5
_END = re.compile(rb'"seq":(\d{1,19}),"stream":"[^"]*"(?:,"tombstone":\{[^{}]*\})?,"ts":(\d{1,19}),"v":\d+\}$')
_END_MAX = 600  # bytes: what stands behind the payload and the hashes
NO_END = 10**15 - 1
WORD_MAX = 3_500  # characters of a place in the log as a word: some fifty streams
_START = b'{"actor":{'


@dataclass(slots=True)
class Page:
    """A page of the log.

    events  newest first;  older  {stream: seq} up to which nothing has been looked at yet, {} where nothing is left
    cut     whether the search stopped for its budget before the page was full;  reached  ts of the oldest record looked at
    """

    events: list[Event] = field(default_factory=list)
    older: dict[str, int] = field(default_factory=dict)
    cut: bool = False
    reached: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a page shows: kinds as `log --kind` takes them, one session, a text that occurs in what the event says, and of the
    gate's decisions one verdict. "" and (): whatever it is."""

    kinds: tuple[str, ...] = ()
    session: str = ""
    text: str = ""
    verdict: str = ""

    def __post_init__(self) -> None:
        logview.check_kinds(self.kinds)

    def may(self, raw: bytes) -> bool:
        """Whether a line is worth parsing."""
        if self.kinds and not any(f'"kind":"{k}"'.encode() in raw or f'"kind":"{k}.'.encode() in raw for k in self.kinds):
            return False
        if self.verdict and f'"verdict":"{self.verdict}"'.encode() not in raw:
            return False
        if _plain(self.session) and self.session.encode() not in raw:
            return False
        return not _plain(self.text) or self.text.lower().encode() in raw.lower()

    def is_it(self, event: Event) -> bool:
        """Whether the event is one of them."""
        if not logview.matches(event["kind"], self.kinds):
            return False
        if self.session and (event.get("actor") or {}).get("session") != self.session:
            return False
        if self.verdict and _verdict(event) != self.verdict:
            return False
        return not self.text or any(self.text.lower() in said.lower() for said in _texts(event))


def _plain(text: str) -> bool:
    """Whether a text stands in a line as it is, whatever its case: JSON escapes none of its characters."""
    return bool(text) and text.isascii() and text.isprintable() and not set(text) & set('"\\')


def _verdict(event: Event) -> str:
    decision = (event.get("data") or {}).get("decision")
    return str(decision.get("verdict")) if isinstance(decision, dict) else ""


def page(
    home: str,
    wanted: Wanted,
    *,
    limit: int = 50,
    upto: Mapping[str, int] | None = None,
    bytes_max: int = BYTES_MAX,
    seconds: float = SECONDS,
) -> Page:
    """The newest `limit` events that are `wanted`, at or before the place `upto` ({stream: seq}; a stream that it does not name
    is left out: it was read to its end, or begun since). Raises BadInputError for an unknown kind, OSError."""
    ends = {stream: _end(home, stream) for stream in streams(home)}
    starts = ends if upto is None else {stream: min(seq, ends[stream]) for stream, seq in upto.items() if stream in ends}
    found, until, left = Page(), time.monotonic() + seconds, bytes_max
    queue: list[tuple[int, str, int, bytes, Iterator[tuple[int, int, bytes]]]] = []
    for stream, seq in starts.items():
        _push(queue, stream, backwards(home, stream, seq))
    position = {stream: seq for stream, seq in starts.items() if seq > 0}
    looked = 0
    while queue:
        if len(found.events) == limit or left < 0 or (looked & 0xFF == 0xFF and time.monotonic() > until):
            found.cut = len(found.events) < limit
            found.older = {stream: position[stream] for _, stream, *_ in queue}
            return found
        before, stream, back, raw, run = heapq.heappop(queue)
        found.reached, position[stream] = -before, -back - 1
        looked, left = looked + 1, left - len(raw)
        _push(queue, stream, run)
        if wanted.may(raw) and check_line(raw).ok:
            event = current(parse(raw))
            if wanted.is_it(event):
                found.events.append(event)
    return found


def _end(home: str, stream: str) -> int:
    """The last record of the last whole batch; of a damaged stream, whatever is whole."""
    tail = read_position(os.path.join(home, "log", stream), stream).tail
    return NO_END if tail.state == CORRUPT else tail.seq


def _push(queue: list[Any], stream: str, run: Iterator[tuple[int, int, bytes]]) -> None:
    following = next(run, None)
    if following is not None:
        ts, seq, raw = following
        # Of one time, the later in the order of display comes first; streams are compared as they are shown.
        heapq.heappush(queue, (-ts, _Later(stream), -seq, raw, run))


class _Later(str):
    """A stream's id that sorts the other way round."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def backwards(home: str, stream: str, upto: int) -> Iterator[tuple[int, int, bytes]]:
    """(ts, seq, line) of a stream's records with seq <= upto, the last one first. Damaged lines are passed over."""
    folder = os.path.join(home, "log", stream)
    for name in reversed(segments(folder)):
        if int(name[:20]) > upto:
            continue
        path = os.path.join(folder, name)
        for line in _lines_before(path, _end_of(path, upto)):
            for ts, seq, raw in _records(line):
                if seq <= upto:
                    upto = seq - 1
                    yield ts, seq, raw


def _records(line: bytes) -> list[tuple[int, int, bytes]]:
    """(ts, seq, record) of what is in a line, the last one first: one record, or several that run together."""
    end = _END.search(line[-_END_MAX:])
    if end is not None and line.startswith(_START) and line.find(_START, 1) < 0:
        return [(int(end.group(2)), int(end.group(1)), line)]
    pieces = [(event["ts"], event["seq"], piece) for piece in whole_records(line) for event in [parse(piece)]] if line else []
    return sorted(pieces, key=lambda one: -one[1])


def _lines_before(path: str, end: int) -> Iterator[bytes]:
    """The lines of a file that begin before byte `end`, the last one first, without their newlines."""
    rest: list[bytes] = []
    while end > 0:
        start = max(0, end - BLOCK)
        block = files.read(path, start, end - start)
        end = start
        first = block.find(b"\n")
        if first < 0 and start:
            rest.append(block)
            continue
        whole = b"".join([block, *reversed(rest)])
        lines = whole.split(b"\n")
        rest = [lines.pop(0)] if start else []
        yield from (line for line in reversed(lines) if line)


def _end_of(path: str, upto: int) -> int:
    """A byte of a segment at or behind the end of record `upto`, and not far behind: what follows it is later."""
    low, high = 0, os.stat(path).st_size
    while high - low > 2 * LOOK:
        middle = (low + high) // 2
        block = files.read(path, middle, min(LOOK, high - middle))
        begin = block.find(b"\n") + 1
        stop = block.find(b"\n", begin)
        line = check_line(block[begin:stop]) if begin and stop > 0 else None
        if line is None or not line.ok:
            break  # a long line, or damage: what is left is read through
        if line.seq > upto:
            high = middle + begin
        else:
            low = middle
    return high


def _texts(event: Event) -> Iterator[str]:
    """Every text in an event that a person may look for."""
    yield from (str(event.get(name, "")) for name in ("id", "kind", "stream"))
    stack: list[Any] = [event.get("actor"), event.get("data")]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, Sequence):
            stack += value


def name_of(position: Mapping[str, int]) -> str:
    """A place in the log as one word for an address."""
    return ".".join(f"{stream}-{seq}" for stream, seq in sorted(position.items()))


def place_of(word: str) -> dict[str, int] | None:
    """The place that such a word names; None where it names none."""
    found = {}
    for part in word.split("."):
        stream, _, seq = part.rpartition("-")
        if not stream or not (seq.isascii() and seq.isdigit() and len(seq) < 16):
            return None
        found[stream] = int(seq)
    return found
