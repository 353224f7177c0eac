"""Checks a whole log: every byte of every segment, streaming, and names each form of damage with where and what to do.

Stricter than reading: a line must also be canonical, segments must join, and no stranger's file may lie among them.
Whole records inside damaged bytes (glued lines, a byte-order mark, CRLF) are counted as salvaged, never passed over.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from . import files
from .canonical import fits
from .clocks import Clock, Jump
from .envelope import BOM, Line, check_line, describe, undress
from .errors import NotInitialisedError
from .reader import WORDS, Problem
from .recovery import joins
from .sweep import Sweep
from .tail import first_seq, part, read_tail, segment_name, segments, split, streams

LOCK_WAIT_MS = 1_000
BLOCK = 64 * 1024  # bytes checked at a time: they stay in the processor's cache

REMEDIES = {
    "unterminated": "the next append puts it back by itself; no record is lost",
    "torn": "the next append moves it to quarantine/ by itself. After a crash nothing acknowledged is in it; if something else "
    "changed the file, restore this segment from a backup first",
    "crlf": "run `projectmem repair` (git did this: set `* -text` for the log's folder)",
    "bom": "run `projectmem repair`",
    "nul": "a disk or file-system fault; restore this segment from a backup, or keep it: the rest is served",
    "glued": "two writers without a lock, or a lost newline; run `projectmem repair` to part the records",
    "swapped": "run `projectmem repair` to put them in order",
    "duplicate": "run `projectmem repair` to drop what is there twice",
    "gap": "restore the missing records from a backup; without one, what is there stays valid and is served",
    "missing-segment": "restore the segment from a backup; without one, what is there stays valid and is served",
    "foreign-file": "run `projectmem repair` to move it to quarantine/",
    "empty": "run `projectmem repair`",
}
_RESTORE = "restore this segment from a backup; without one the record is lost and the rest is served"
_WORDS = {
    **WORDS,
    "unterminated": "the last newline is missing",
    "swapped": "records in the wrong order",
    "glued": "records run together without a newline",
    "not-canonical": "a record that is not in canonical form (written by something else)",
    "missing-segment": "the segment does not begin where the one before ends",
    "foreign-file": "a file that is no segment of this log",
    "name": "the segment's name does not match its first record",
}


@dataclass
class StreamReport:
    """One stream: its segments, whole records, erased ones among them, bytes, where its chain ends, and the latest time (us)
    that its records tell (see clocks.py)."""

    stream: str
    segments: int = 0
    events: int = 0
    erased: int = 0
    salvaged: int = 0
    bytes: int = 0
    seq: int = 0
    hash: str = ""
    latest: int = 0


@dataclass
class Report:
    """The verdict on a log. `ok` means every byte is accounted for; `quarantined` and `spooled` count files set aside.

    jumps  where a clock went back: no fault of the log, but what was recorded before may be dated ahead
    """

    streams: list[StreamReport] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    jumps: list[Jump] = field(default_factory=list)
    quarantined: int = 0
    spooled: int = 0

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def events(self) -> int:
        return sum(s.events for s in self.streams)


def verify(home: str, progress: Callable[[int, int], None] | None = None, *, canonical: bool = True) -> Report:
    """Check the log in `home`. Flat in memory. Raises NotInitialisedError, OSError; damage is in the report.

    progress   called now and then with how many bytes are checked, of how many
    canonical  False leaves out whether payloads are written canonically, half of the work: the chain alone proves their bytes
    """
    folder = os.path.join(home, "log")
    if not os.path.isdir(folder):
        raise NotInitialisedError(f"no log at {home}; run `projectmem init` in the project")
    report = Report(
        quarantined=len(files.names(os.path.join(home, "quarantine"))), spooled=len(files.names(os.path.join(home, "spool")))
    )
    found = streams(home)
    told = _Told(home, found, progress) if progress else None
    for stray in sorted(set(files.names(folder)) - set(found)):
        report.problems.append(_stranger(folder, "", stray))
    for stream in found:
        one = _Stream(home, stream, told, canonical)
        one.run()
        if any(p.kind == "torn" for p in one.problems):  # perhaps it is just being written: look again under the lock
            one = _again(home, stream, one)
        report.streams.append(one.report)
        report.problems += one.problems
        report.jumps += one.clock.jumps
    return report


class _Told:
    """How far `verify` is, told at every MiB."""

    STEP = 1 << 20

    def __init__(self, home: str, found: list[str], tell: Callable[[int, int], None]) -> None:
        folders = [os.path.join(home, "log", stream) for stream in found]
        self.total = sum(os.stat(os.path.join(f, name)).st_size for f in folders for name in segments(f))
        self.tell, self.done, self.next = tell, 0, 0

    def add(self, size: int) -> None:
        self.done += size
        if self.done >= self.next or self.done == self.total:
            self.next = self.done + self.STEP
            self.tell(self.done, self.total)


def _again(home: str, stream: str, first: _Stream) -> _Stream:
    fd = files.lock(os.path.join(home, "locks", f"{stream}.lock"), LOCK_WAIT_MS)
    if fd is None:
        return first
    try:
        second = _Stream(home, stream)
        second.run()
        return second
    finally:
        files.unlock(fd)


def _problem(stream: str, segment: str, offset: int, kind: str, detail: str = "") -> Problem:
    text = detail or _WORDS.get(kind) or describe(kind)
    return Problem(stream, segment, offset, kind, text, REMEDIES.get(kind, _RESTORE))


def _stranger(folder: str, stream: str, name: str) -> Problem:
    """What is no segment; anything but a regular file is not opened, nor moved by `repair`."""
    path = os.path.join(folder, name)
    found = _problem(stream, name.encode("utf-8", "backslashreplace").decode(), -1, "foreign-file")
    if not os.path.isfile(path) or os.path.islink(path):
        found.detail = "a folder, link or pipe that is no part of this log"
        found.remedy = "take it away yourself; it is passed over"
    return found


class _Stream:
    """Walks one stream, following its chain; after damage it takes up the chain at the next whole record."""

    def __init__(self, home: str, stream: str, told: _Told | None = None, canonical: bool = True) -> None:
        self.folder, self.stream, self.told = os.path.join(home, "log", stream), stream, told
        self.canonical = canonical
        self.sweep, self.clock = Sweep(stream), Clock(stream)
        self.report = StreamReport(stream)
        self.problems: list[Problem] = []
        self.seq, self.hash, self.batch, self.left = 0, "0" * 64, 0, 0
        self.segment = ""
        self.damaged = False  # the lines just before were damaged, so records missing here are theirs

    def run(self) -> None:
        names = segments(self.folder)
        for name in files.names(self.folder):
            if name not in names:
                self.problems.append(_stranger(self.folder, self.stream, name))
        for i, name in enumerate(names):
            self.segment, last = name, i == len(names) - 1
            path = os.path.join(self.folder, name)
            self.report.segments += 1
            self.report.bytes += os.stat(path).st_size
            if first_seq(name) != self.seq + 1 and os.stat(path).st_size:
                self._report(
                    -1, "missing-segment", f"the segment should be named {segment_name(self.seq + 1)}: records are missing"
                )
                self.seq, self.hash, self.left = int(name[:20]) - 1, "", 0
            start = len(self.problems)
            for offset, block in files.read_blocks(path, chunk=BLOCK):
                self._block(block, offset)
                if self.told is not None:
                    self.told.add(len(block))
            if last:
                self._judge_end(path, start)
            elif self.left:
                self._report(-1, "batch")
                self.left = 0
        self.report.seq, self.report.hash, self.report.latest = self.seq, self.hash, self.clock.latest

    def _block(self, block: bytes, offset: int) -> None:
        """A run of lines: those that are plainly whole all at once, the others one by one."""
        if not block.endswith(b"\n"):
            self._line(block, offset)
            return
        lines = block[:-1].split(b"\n")
        i = 0
        while True:
            done = i if self.damaged else self._swept(lines, i, offset)
            if plain := lines[i:done]:
                self.clock.see(self.segment, offset, plain)
            if done == len(lines):
                return
            offset += sum(map(len, plain)) + done - i
            self._line(lines[done] + b"\n", offset)
            offset += len(lines[done]) + 1
            i = done + 1

    def _swept(self, lines: list[bytes], i: int, offset: int) -> int:
        """Let the fast way take what it can from line `i` on; returns the first it left."""
        sweep = self.sweep
        sweep.seq, sweep.hash, sweep.batch, sweep.left = self.seq, self.hash.encode(), self.batch, self.left
        done = sweep.run(lines, i)
        for k in sweep.odd() if self.canonical else ():
            self._report(offset + sum(map(len, lines[i : i + k])) + k, "not-canonical")
        self.report.events += done - i
        self.seq, self.hash, self.batch, self.left = sweep.seq, sweep.hash.decode(), sweep.batch, sweep.left
        return done

    def _line(self, raw: bytes, offset: int) -> None:
        terminated = raw.endswith(b"\n")
        raw = raw[:-1] if terminated else raw
        line = check_line(raw, offset, terminated)
        if line.ok:
            if not terminated:
                self._report(offset, "unterminated")
            self._record(line, raw)
        elif line.dressed:
            self._report(offset, line.why)
            self.report.salvaged += 1
            self._record(line, undress(raw))
        elif not self._glued(raw, offset):
            self._report(offset, line.why, _extent(raw, offset) if line.why == "nul" else "")
            self.damaged = True

    def _record(self, line: Line, raw: bytes) -> None:
        """A whole record: does it follow the one before, and is it canonical?"""
        why = "stream" if line.stream != self.stream else joins(line, self.seq, self.hash, self.batch, self.left)
        if why == "gap" and self.damaged:
            lost = f"{self.seq + 1:,}" + (f" to {line.seq - 1:,}" if line.seq > self.seq + 2 else "")
            self.problems[-1].detail += f"; seq {lost} lost"
        elif why == "duplicate" and self._fills_gap(line):
            why = ""
        elif why:
            self._report(line.start, why, f"seq {line.seq:,} after seq {self.seq:,}: {_WORDS[why]}")
        if why in ("duplicate", "stream"):
            return
        self.damaged = False
        if line.seq > self.seq:
            self.seq, self.hash, self.batch, self.left = line.seq, line.hash, line.batch, line.left
        self.report.events += 1
        self.report.erased += line.erased
        self.clock.see(self.segment, line.start, [raw])
        try:
            event = orjson.loads(raw)
            good = orjson.dumps(event, option=orjson.OPT_SORT_KEYS) == raw and fits(event)
        except orjson.JSONDecodeError:
            good = False
        if not good:
            self._report(line.start, "not-canonical")

    def _fills_gap(self, line: Line) -> bool:
        """A record that was missed just before: the two lines are swapped, nothing is missing."""
        last = self.problems[-1] if self.problems else None
        if last is None or last.kind != "gap" or last.segment != self.segment or line.seq != self.seq - 1:
            return False
        last.kind, last.detail, last.remedy = "swapped", f"seq {self.seq:,} before seq {line.seq:,}", REMEDIES["swapped"]
        return True

    def _glued(self, raw: bytes, offset: int) -> bool:
        """Whole records inside a damaged line: report how many, and let the chain go on through them."""
        pieces = part(raw.removeprefix(BOM), offset, True)
        whole = [(line, piece) for line, piece in pieces if line.ok]
        if not whole:
            return False
        lost = "" if len(whole) == len(pieces) else ", and a piece that is not"
        if b"\0" in raw:
            self._report(offset, "nul", f"{_extent(raw, offset)}, and {len(whole)} whole record(s) in the same line")
        else:
            self._report(offset, "glued", f"{len(whole)} whole record(s) run together{lost}")
        self.report.salvaged += len(whole)
        self.damaged = bool(lost)
        for line, piece in whole:
            self._record(line, piece)
        return True

    def _judge_end(self, path: str, start: int) -> None:
        """The unfinished batch at the end of the last segment is torn, not corrupt: one report, of that kind."""
        tail = read_tail(path, self.stream, int(self.segment[:20]), os.stat(path).st_size)
        if tail.state != "torn":
            return
        mine = [p for p in self.problems[start:] if p.segment == self.segment and 0 <= p.offset < tail.cut]
        self.problems[start:] = mine
        rest, seq = files.read(path, tail.cut), tail.seq
        self._report(tail.cut, "torn", f"an unfinished write of {len(rest):,} bytes at the end")
        for line in split(rest, tail.cut):  # what was counted of it does not count
            if line.ok and line.stream == self.stream and line.seq > seq:
                seq = line.seq
                self.report.events -= 1
        self.seq, self.hash, self.left = tail.seq, tail.hash or self.hash, 0

    def _report(self, offset: int, kind: str, detail: str = "") -> None:
        last = self.problems[-1] if self.problems else None
        if (
            last is not None
            and last.segment == self.segment
            and last.kind == kind
            and kind in ("crlf", "bom", "foreign", "empty")
        ):
            last.count += 1
            return
        self.problems.append(_problem(self.stream, self.segment, offset, kind, detail))


def _extent(raw: bytes, offset: int) -> str:
    at = raw.find(b"\0")
    count = len(raw[at:]) - len(raw[at:].lstrip(b"\0"))
    return f"{count:,} NUL bytes from byte {offset + at:,}"
