"""Reading the log without a lock: whole batches only, checked, each stream in order, streams merged by time.

A batch is served once its last record is there, so a half-written or unfinished one is never seen. Damage is skipped
and reported through `problems`; what is good behind it is still served.
"""

from __future__ import annotations

import os

from . import files
from .envelope import check_line, describe, is_id, undress
from .errors import EventError, LogError
from .fastjson import loads
from .recovery import joins
from .tail import first_seq, part, segments, streams
from .upcasting import LATEST, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .envelope import Event, Line
    from .sweep import Sweep

WINDOWS = (64 * 1024, 1 << 20, 16 << 20)
SHORT_ID = 8
MUCH, BLOCK = 1 << 20, 64 * 1024  # bytes from which on the fast way is worth its imports; bytes taken at a time


class Problem:
    """One thing that is wrong with the log: where, what, and what to do about it.

    kind    one of envelope.FAULTS, a fault of the chain (see WORDS), or one that `verify` adds
    offset  byte in the segment, -1 when it is about the whole of it
    count   how many lines in a row have this fault, `offset` being the first
    """

    __slots__ = ("count", "detail", "kind", "offset", "remedy", "segment", "stream")

    def __init__(self, stream: str, segment: str, offset: int, kind: str, detail: str, remedy: str) -> None:
        self.stream, self.segment, self.offset, self.count = stream, segment, offset, 1
        self.kind, self.detail, self.remedy = kind, detail, remedy

    def __str__(self) -> str:
        where = f"{self.stream}/{self.segment}" + (f" at byte {self.offset:,}" if self.offset >= 0 else "")
        return f"{where}: {self.detail}{f' ({self.count:,} lines)' if self.count > 1 else ''}; {self.remedy}"

    def __repr__(self) -> str:
        return f"Problem({self})"


_SEE = "the rest is served; run `projectmem verify`"


def read_events(
    home: str,
    after: Mapping[str, int] | None = None,
    *,
    upto: Mapping[str, int] | None = None,
    problems: list[Problem] | None = None,
    recorded: bool = False,
) -> Iterator[Event]:
    """Every event past the cursor `after` {stream: seq}, up to and including `upto` (a stream it does not name is left
    out), in order of (ts, stream, seq) as far as each stream's own order allows.

    Payloads are of today's version of their kind (upcasting.py); `recorded` leaves them as they were written.
    Damage never stops it: what was skipped is added to `problems`. Memory is flat but for one batch per stream.
    Raises OSError when files cannot be read.
    """
    found = [] if problems is None else problems
    runs: list[tuple[Event, Iterator[Event]]] = []
    for stream in streams(home):
        last = None if upto is None else upto.get(stream, 0)
        run = read_stream(home, stream, (after or {}).get(stream, 0), last, found, recorded)
        if (first := next(run, None)) is not None:
            runs.append((first, run))
    while len(runs) > 1:
        i = min(range(len(runs)), key=lambda i: (runs[i][0]["ts"], runs[i][0]["stream"]))
        event, run = runs[i]
        yield event
        if (following := next(run, None)) is None:
            del runs[i]
        else:
            runs[i] = (following, run)
    for event, run in runs:
        yield event
        yield from run


def read_stream(
    home: str, stream: str, after: int, upto: int | None, problems: list[Problem], recorded: bool = False
) -> Iterator[Event]:
    """One stream's events with after < seq <= upto, as `read_events`."""
    if upto is not None and upto <= after:
        return
    folder = os.path.join(home, "log", stream)
    names = segments(folder)
    start = max((i for i, n in enumerate(names) if int(n[:20]) <= after + 1), default=0)
    chain = _Chain(stream, problems)
    for i, name in enumerate(names[start:]):
        path = os.path.join(folder, name)
        begin = _seek(path, after) if i == 0 else 0
        if begin == 0:
            chain.expect(int(name[:20]))
        sweep = _sweep(stream) if os.stat(path).st_size - begin >= MUCH else None
        for offset, block in files.read_blocks(path, begin, chunk=BLOCK):
            for event in chain.block(name, offset, block, sweep):
                if upto is not None and event["seq"] > upto:
                    return
                if event["seq"] > after:
                    yield current(event) if LATEST and not recorded else event
        last = start + i == len(names) - 1
        chain.end_segment(name, last)


def _sweep(stream: str) -> Sweep | None:
    """The fast way, several times as fast; too heavy to import for little, and a hook's bare interpreter may not have it."""
    try:
        from .sweep import Sweep
    except ImportError:
        return None
    return Sweep(stream)


class _Chain:
    """Follows one stream line by line and gives out whole batches; see recovery.joins for what may follow what."""

    def __init__(self, stream: str, problems: list[Problem]) -> None:
        self.stream, self.problems = stream, problems
        self.seq, self.hash, self.batch, self.left = -1, "", 0, 0  # seq -1: not yet known
        self.held: list[Event] = []
        self.skipping = False

    def expect(self, first: int) -> None:
        """A segment begins at offset 0 and its name promises `first`."""
        if self.seq < 0:
            self.seq = first - 1

    def block(self, segment: str, offset: int, block: bytes, sweep: Sweep | None) -> Iterator[Event]:
        """The events of a run of whole lines, or of a last one without its newline."""
        terminated = block.endswith(b"\n")
        lines = (block[:-1] if terminated else block).split(b"\n")
        i = 0
        while i < len(lines):
            if sweep is not None and terminated and self.hash and not self.skipping:
                done = self._swept(sweep, lines, i)
                for raw in lines[i:done]:
                    yield from self._hold(segment, offset, sweep.parse(raw))
                    offset += len(raw) + 1
                self.left = sweep.left
                if (i := done) == len(lines):
                    return
            line = check_line(lines[i], offset, terminated)
            if glued := [] if line.ok or line.dressed else part(lines[i], offset, terminated):
                self._report(segment, line.start, "nul" if b"\0" in lines[i] else "glued")
                for piece, raw in glued:  # each is judged as if it had a line of its own
                    yield from self.take(segment, piece, raw, named=True)
            else:
                yield from self.take(segment, line, lines[i] + b"\n" if terminated else lines[i])
            offset, i = line.end, i + 1

    def _swept(self, sweep: Sweep, lines: list[bytes], i: int) -> int:
        """Let the fast way check what it can from line `i` on; returns the first line it left."""
        sweep.seq, sweep.hash, sweep.batch, sweep.left = self.seq, self.hash.encode(), self.batch, self.left
        done = sweep.run(lines, i)
        self.seq, self.hash, self.batch = sweep.seq, sweep.hash.decode(), sweep.batch
        return done

    def _hold(self, segment: str, offset: int, event: Event | None) -> list[Event]:
        """One checked record's event: the whole batch when it closes it."""
        if event is None:
            self._report(segment, offset, "shape")
            return []
        if event["seq"] == event["batch"]:
            self.held = []
        self.held.append(event)
        if event["left"]:
            return []
        out, self.held = self.held, []
        return out

    def take(self, segment: str, line: Line, raw: bytes, *, named: bool = False) -> list[Event]:
        """The events that `line` completes: a whole batch, or nothing yet. `named`: what is wrong here is reported already."""
        why, whole = line.why, line.ok or line.dressed
        if line.dressed:
            self._report(segment, line.start, why)
            why, raw = "", undress(raw[:-1] if line.terminated else raw)
        if whole and line.stream != self.stream:
            why = "stream"
        elif whole and self.seq < 0:  # reading began mid-file: the first good line is where the chain starts
            self.seq, self.hash, self.batch, self.left = line.seq - 1, line.prev, line.batch, line.left + 1
            self.left = 0 if line.seq == line.batch else self.left
        if not why:
            why = joins(line, self.seq, self.hash, self.batch, self.left)
        if not why and self.skipping and line.seq != line.batch:
            why = "batch"  # what came before in its batch is not served, so neither is the rest
        if why and not self._resumes(line):
            if not named:
                self._report(segment, line.start, why)
            self.held, self.skipping = [], True
            return []
        if why and not self.skipping and not named:
            self._report(segment, line.start, why)
        self.skipping = False
        if line.seq == line.batch:
            self.held = []
        self.seq, self.hash, self.batch, self.left = line.seq, line.hash, line.batch, line.left
        try:
            self.held.append(loads(raw))
        except (ValueError, RecursionError):
            self._report(segment, line.start, "shape")
        if line.left:
            return []
        out, self.held = self.held, []
        return out

    def _resumes(self, line: Line) -> bool:
        """After damage, only a batch that began once the damaged part was durable is evidence; the rest may be torn."""
        whole = line.ok or line.dressed
        return whole and line.stream == self.stream and line.seq == line.batch and line.batch > self.seq + 1

    def _report(self, segment: str, offset: int, why: str) -> None:
        if self.skipping and why != "duplicate":
            return  # one report per damaged run
        last = self.problems[-1] if self.problems else None
        if last is not None and (last.stream, last.segment, last.kind) == (self.stream, segment, why) and why in ("bom", "crlf"):
            last.count += 1
            return
        self.problems.append(Problem(self.stream, segment, offset, why, WORDS.get(why) or describe(why), _SEE))

    def end_segment(self, segment: str, last: bool) -> None:
        """An unfinished batch at the end: being written, left by a crash, or (in an earlier segment) damage."""
        if self.held:
            kind = "torn" if last else "batch"
            self.problems.append(Problem(self.stream, segment, -1, kind, WORDS[kind], _SEE))
            self.held = []


WORDS = {
    "torn": "an unfinished batch at the end (being written, or left by a crash: the next append moves it to quarantine)",
    "batch": "a batch that is not whole",
    "gap": "records are missing here",
    "duplicate": "a record that was there before",
    "chain": "a record that does not chain on the one before",
    "stream": "a record of another stream",
    "glued": "records that run together in one line",
}


def _seek(path: str, after: int) -> int:
    """A byte offset at the start of a line, at or before the first record past `after`, found from the end."""
    if after <= 0:
        return 0
    size = os.stat(path).st_size
    for window in WINDOWS:
        start = size - window
        if start <= 0:
            return 0
        for offset, raw in files.read_lines(path, start):
            if offset == start:
                continue  # the rest of a line
            line = check_line(raw[:-1], offset)
            if line.ok and line.seq <= after:
                return offset
            break
    return 0


def find_event(home: str, id: str) -> Event | None:
    """The event with this id, or the only one whose id begins or ends with it (at least 8 characters; the end is the
    random part: ids made within a minute share their beginning).

    Raises EventError when it is too short or fits several. Scans the log.
    """
    want = id.strip().lower()
    if len(want) < SHORT_ID or not all(c in "0123456789abcdef-" for c in want):
        raise EventError(f"{id[:60]!r} is not an event id: give at least {SHORT_ID} characters of its beginning or end")
    head, tail = b'"id":"' + want.encode(), want.encode() + b'","kind":"'
    found: dict[str, Event] = {}
    for stream in streams(home):
        folder = os.path.join(home, "log", stream)
        for name in segments(folder):
            for _, raw in files.read_lines(os.path.join(folder, name)):
                for piece in whole_records(raw.rstrip(b"\n")) if head in raw or tail in raw else ():
                    event: Event = current(loads(piece))
                    if event["id"].startswith(want) or event["id"].endswith(want):
                        found[event["id"]] = event
                        if is_id(want):
                            return event
    if len(found) > 1:
        raise EventError(f"{id!r} fits {len(found)} events ({', '.join(sorted(found)[:4])} ...): give more of the id")
    return next(iter(found.values()), None)


def whole_records(raw: bytes) -> list[bytes]:
    """The whole records of a line: one, or those that run together in it."""
    return [raw] if check_line(raw).ok else [piece for line, piece in part(raw, 0, False) if line.ok]


def segment_state(home: str) -> dict[str, list[Any]]:
    """{stream: [name of its last segment, bytes in it]}: unchanged means nothing was appended. Cheap: no file is opened."""
    out: dict[str, list[Any]] = {}
    for stream in streams(home):
        folder = os.path.join(home, "log", stream)
        if names := segments(folder):
            out[stream] = [names[-1], os.stat(os.path.join(folder, names[-1])).st_size]
    return out


__all__ = ["LogError", "Problem", "find_event", "first_seq", "read_events", "read_stream", "segment_state", "whole_records"]
