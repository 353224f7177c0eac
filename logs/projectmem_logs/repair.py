"""What can be put right in a damaged log without losing or inventing a record: first as a plan, then done.

Only what is proven is offered. A segment is written anew when every record that was in it is there again, checked by its own
hashes, and the result has fewer faults; what it looked like before is kept in quarantine/. An unfinished write at the end
goes there too, as the next append would have it, and so does a file that is no part of the log. Records that are lost stay
lost and are named by `verify`: nothing here fills a gap.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from . import files
from .digest import sha256_hex
from .envelope import BOM, Line, check_line, undress
from .errors import LogError
from .locking import Held
from .recovery import TORN, UNTERMINATED, joins
from .store import SELF, LogStore
from .tail import first_seq, read_tail, segments, streams
from .verify import verify

LOCK_WAIT_MS = 2_000
LEFTOVER_AGE = 3_600  # seconds: a file that was being written then is not being written now
ROUNDS = 3
_HEAD = b'{"actor":{'


@dataclass(frozen=True)
class Step:
    """One thing that can be put right.

    kind   rewrite | cut | finish | move | remove
    what   in words, for people;  path is the file concerned, `stream` its stream ("" when it belongs to none)
    """

    kind: str
    stream: str
    path: str
    what: str
    keep: int = 0  # for `cut`: bytes that stay


@dataclass
class Done:
    """What a repair did: the steps, those that could not be done with the reason, and where the old bytes are."""

    steps: list[Step]
    failed: list[tuple[Step, str]]
    kept: list[str]


def plan(home: str) -> list[Step]:
    """What could be put right, nothing done. Raises NotInitialisedError, OSError."""
    report = verify(home)
    steps = _strangers(home)
    for stream in sorted({p.stream for p in report.problems if p.stream}):
        steps += _plan_stream(home, stream)
    return steps + _leftovers(home)


def apply(home: str, *, now: int, store: LogStore | None = None, progress: Callable[[Step], None] | None = None) -> Done:
    """Do what `plan` offers, until nothing more is offered; each change is recorded as `log.recovered`.

    now  microseconds UTC;  progress is told before each step
    A crash at any moment leaves each segment as it was or as it should be; the next run does the rest. Raises OSError only
    when the log cannot be read; a step that fails is in the answer.
    """
    done = Done([], [], [])
    for _ in range(ROUNDS):
        steps = [s for s in plan(home) if s not in [f for f, _ in done.failed] and s not in done.steps]
        if not steps:
            break
        for step in steps:
            if progress is not None:
                progress(step)
            try:
                _do(home, step, done, now, store)
                done.steps.append(step)
            except (LogError, OSError) as e:
                done.failed.append((step, str(e)))
    return done


# -- planning -------------------------------------------------------------------------------------------------------------


def _plan_stream(home: str, stream: str) -> list[Step]:
    folder = os.path.join(home, "log", stream)
    names = segments(folder)
    steps: list[Step] = []
    seq, hash = 0, "0" * 64
    for i, name in enumerate(names):
        path = os.path.join(folder, name)
        raw = files.read(path)
        last = i == len(names) - 1
        if last and raw:
            tail = read_tail(path, stream, int(name[:20]), len(raw))
            if tail.state == UNTERMINATED:
                steps.append(Step("finish", stream, path, "put the last newline back"))
            elif tail.state == TORN:
                size = len(raw) - tail.cut
                what = f"move an unfinished write of {size:,} bytes at the end to quarantine/"
                steps.append(Step("cut", stream, path, what, tail.cut))
                raw = raw[: tail.cut]
        if int(name[:20]) != seq + 1:
            seq, hash = int(name[:20]) - 1, ""
        better, what = mend(raw, stream, seq, hash)
        if better != raw:
            steps.append(Step("rewrite", stream, path, f"{what}; the file as it is goes to quarantine/ first"))
        ends = [line for line, _ in _records(better) if line.ok and line.stream == stream]
        seq, hash = (ends[-1].seq, ends[-1].hash) if ends else (seq, hash)
    return steps


def mend(raw: bytes, stream: str, seq: int, hash: str) -> tuple[bytes, str]:
    """A segment's bytes without the damage that can be undone for certain, and what that was; `raw` itself when there is none.

    seq, hash  of the record before the segment; an empty hash is not compared
    """
    end = raw.rfind(b"\n") + 1
    if end < len(raw):  # what has no newline is judged by the recovery table, once the rest is in order
        better, what = mend(raw[:end], stream, seq, hash)
        return (better + raw[end:], what) if what else (raw, "")
    if not raw:
        return raw, ""
    found = [(line, piece) for line, piece in _records(raw) if line.ok and line.stream == stream]
    unique: dict[int, tuple[Line, bytes]] = {}
    for line, piece in found:
        if unique.setdefault(line.seq, (line, piece))[1] != piece:
            return raw, ""  # two records claim one place: not ours to choose
    ordered = [unique[s] for s in sorted(unique)]
    if ordered and _chained([line for line, _ in ordered], seq, hash):
        better = b"".join(piece + b"\n" for _, piece in ordered)
        return (better, _describe(raw, len(found) - len(ordered))) if better != raw else (raw, "")
    better = b"".join(_each(line) for line in raw[:-1].split(b"\n"))
    return (
        (better, "take the marks of an editor off its lines and part records that run together") if better != raw else (raw, "")
    )


def _describe(raw: bytes, twice: int) -> str:
    lines = raw[:-1].split(b"\n")
    bad = sum(not check_line(line).ok and not check_line(line).dressed and _HEAD not in line for line in lines)
    more = f", without {twice:,} that are there twice" if twice else ""
    more += f", without {bad:,} lines that are no records (none is missing)" if bad else ""
    return f"write its records in order, one a line{more}"


def _chained(lines: list[Line], seq: int, hash: str) -> bool:
    batch = left = 0
    for line in lines:
        if joins(line, seq, hash, batch, left):
            return False
        seq, hash, batch, left = line.seq, line.hash, line.batch, line.left
    return left == 0


def _records(raw: bytes) -> list[tuple[Line, bytes]]:
    """Every whole record in these bytes, out of whatever stands around it, and its own bytes."""
    out = []
    for text in raw.split(b"\n"):
        line = check_line(text)
        if line.ok:
            out.append((line, text))
            continue
        for piece in _pieces(text):
            whole = check_line(piece)
            if whole.ok:
                out.append((whole, piece))
    return out


def _pieces(text: bytes) -> list[bytes]:
    """A line cut wherever a record could begin, each piece without what an editor put around it."""
    starts, at = [0], text.find(_HEAD, 1)
    while at >= 0:
        starts.append(at)
        at = text.find(_HEAD, at + 1)
    return [undress(text[a:b]) for a, b in zip(starts, [*starts, len(text)][1:], strict=True)]


def _each(text: bytes) -> bytes:
    """One damaged line as it should be, if it holds nothing but whole records; itself otherwise."""
    if check_line(text).ok:
        return text + b"\n"
    pieces = [p for p in _pieces(text) if p and p != BOM]
    if pieces and all(check_line(p).ok for p in pieces):
        return b"".join(p + b"\n" for p in pieces)
    return text + b"\n"


def _strangers(home: str) -> list[Step]:
    """Files among the streams and their segments that are none."""
    log = os.path.join(home, "log")
    found = [("", os.path.join(log, n)) for n in files.plain(log)]
    for stream in streams(home):
        folder = os.path.join(log, stream)
        found += [(stream, os.path.join(folder, n)) for n in files.plain(folder) if first_seq(n) is None]
    found = [(stream, path) for stream, path in found if not os.path.islink(path)]  # what a link leads to is not ours to move
    return [Step("move", stream, path, "move a file that is no part of the log to quarantine/") for stream, path in found]


def _leftovers(home: str) -> list[Step]:
    """Files that were being written when their process ended: nobody was told that they are stored."""
    out = []
    for folder in ("spool", "quarantine", "writers"):
        for name in files.names(os.path.join(home, folder), ".new"):
            path = os.path.join(home, folder, name)
            status = files.signature(path)
            if status is not None and time.time() - status[2] / 1e9 > LEFTOVER_AGE:
                out.append(Step("remove", "", path, "remove what a stopped process had begun to write"))
    return out


# -- doing ----------------------------------------------------------------------------------------------------------------


def _do(home: str, step: Step, done: Done, now: int, store: LogStore | None) -> None:
    if step.kind == "remove":
        files.discard(step.path)
        return
    if not step.stream:
        _move(home, step.path, done)
        return
    fd = files.lock(os.path.join(home, "locks", f"{step.stream}.lock"), LOCK_WAIT_MS)
    if fd is None:
        raise LogError(f"another process is writing to {step.path}; try again")
    try:
        if step.kind == "move":
            _move(home, step.path, done)
            return
        with Held(step.path, LOCK_WAIT_MS):  # that sidecar could be removed by somebody
            facts = _change(home, step, done)
    finally:
        files.unlock(fd)
    if facts:
        draft = {"kind": "log.recovered", "actor": {**SELF, "origin": "observed"}, "data": {**facts, "why": step.what}}
        if store is not None:
            store.append([draft], now=now)
            return
        with LogStore(home) as own:
            own.append([draft], now=now)


def _change(home: str, step: Step, done: Done) -> dict[str, object]:
    """Rewrite, cut or finish one segment, under its stream's lock; the facts to record, {} when it is as it should be."""
    stream, path = step.stream, step.path
    if step not in _plan_stream(home, stream):  # it was looked at without the lock
        return {}
    raw, name = files.read(path), os.path.basename(path)
    sealed = files.is_sealed(os.stat(path).st_mode)
    if step.kind == "rewrite":
        before = _before(home, stream, name)
        kept, new, offset = raw, mend(raw, stream, *before)[0], 0
    else:
        kept, offset = (raw[step.keep :], step.keep) if step.kind == "cut" else (b"", len(raw))
        new = raw[: step.keep] if step.kind == "cut" else raw + b"\n"
    where = _keep(home, f"{stream}-{name}@{offset}", kept, done) if kept else ""
    files.replace(path, new)
    if sealed:
        files.seal_file(path)
    return {
        "segment": name, "offset": offset, "bytes": len(kept), "sha256": sha256_hex(kept), "quarantine": where, "stream": stream,
        "state": "repaired",
    }  # fmt: skip


def _before(home: str, stream: str, name: str) -> tuple[int, str]:
    """The record before a segment, as `_plan_stream` sees it."""
    folder = os.path.join(home, "log", stream)
    seq, hash = 0, "0" * 64
    for other in segments(folder):
        if int(other[:20]) != seq + 1:
            seq, hash = int(other[:20]) - 1, ""
        if other == name:
            break
        for line, _ in _records(files.read(os.path.join(folder, other))):
            if line.stream == stream and line.seq > seq:
                seq, hash = line.seq, line.hash
    return seq, hash


def _keep(home: str, name: str, raw: bytes, done: Done) -> str:
    name = f"{name}-{sha256_hex(raw)[:16]}"
    files.replace(os.path.join(home, "quarantine", name), raw)
    done.kept.append(name)
    return name


def _move(home: str, path: str, done: Done) -> None:
    _keep(home, os.path.basename(path)[:80], files.read(path), done)
    files.discard(path)
