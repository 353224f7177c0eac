"""How importers read files: bounded lines, JSON, times, and the counts of what they saw. Bad input is counted, never raised."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import orjson
from projectmem_logs.canonical import MAX_INT, sanitize

from projectmem.hook.payload import Payload
from projectmem.importers import streams
from projectmem.render import count

Call = dict[str, Any]
LINE_MAX = 64 << 20  # bytes of one line that are held in memory; longer lines are damage
PIECE = 1 << 20
WHOLE_MAX = 256 << 20  # bytes of a file that is one JSON or XML document
NAMED_MAX = 20
NAMES = ("harness", "session", "agent", "model", "call", "tool", "cwd", "input_sha")  # the texts of a call
NAME_MAX = 16_384  # characters of one
_ESCAPE = re.compile(  # one escape of JSON, a pair of surrogates as one; the group is half a pair
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
BOM, UTF_16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


class Counts:
    """What a backfill saw. All numbers reconcile: calls = recorded + known + unfinished.

    files, sessions  that belong to this repository;  elsewhere  calls made in another repository (not counted in calls)
    calls            tool calls read;  recorded  new in the log, of which `failed` failed;  known  in the log, or erased from it
    unfinished       without a result (the session was ended in between);  damaged  lines or files that could not be read
    unread           the files that hold what could not be read, at most NAMED_MAX, and why where a system error said so
    """

    FIELDS = ("files", "sessions", "calls", "recorded", "failed", "known", "unfinished", "elsewhere", "damaged")

    def __init__(self) -> None:
        self.files = self.sessions = self.calls = self.recorded = self.failed = 0
        self.known = self.unfinished = self.elsewhere = self.damaged = 0
        self.unread: dict[str, str] = {}

    def to_data(self) -> dict[str, Any]:
        """The counts by name, and the files that could not be read whole."""
        return {**{name: getattr(self, name) for name in self.FIELDS}, "unread": list(self.unread)}

    def bad(self, path: Path | str, why: object = "") -> None:
        """Count one more piece of `path` that cannot be read."""
        self.damaged += 1
        said = (why.strerror or type(why).__name__) if isinstance(why, OSError) else str(why)
        name = str(path)
        if name in self.unread or len(self.unread) < NAMED_MAX:
            self.unread[name] = self.unread.get(name) or said

    def line(self) -> str:
        """The counts for a person."""
        if not self.files:
            return "no earlier sessions of this repository to read" + self.named()
        more = [f"{self.known} already known"] if self.known else []
        more += [f"{self.unfinished} without a result"] if self.unfinished else []
        more += [f"{count(self.damaged, 'line')} that could not be read"] if self.damaged else []
        done = f"{self.recorded} recorded, {self.failed} of them failed" if self.recorded else "nothing new"
        read = f"read {count(self.calls, 'tool call')} of {count(self.sessions, 'earlier session')}: {done}"
        return read + (f" ({', '.join(more)})" if more else "") + self.named()

    def named(self) -> str:
        """The first of the files that could not be read whole, "" for none; begins with `; `."""
        if not self.unread:
            return ""
        shown = [f"{name} ({why})" if why else name for name, why in list(self.unread.items())[:3]]
        rest = len(self.unread) - len(shown)
        return f"; not read to its end: {', '.join(shown)}" + (f" and {count(rest, 'more file')}" if rest else "")


def by_age(paths: Iterable[Path]) -> list[Path]:
    """The files, oldest first; what is gone, or a link that leads nowhere, is left out."""
    found = []
    for path in paths:
        try:
            found.append((path.stat().st_mtime_ns, str(path), path))
        except OSError:
            continue
    return [path for _, _, path in sorted(found)]


def opened(path: Path) -> IO[bytes]:
    """The file for reading, or a stream that a person named. Raises OSError, also for what is neither (a pipe would wait for
    ever)."""
    if (stream := streams.opened(path)) is not None:
        return stream
    if path.exists() and not path.is_file():
        raise OSError(0, "not a file")
    return path.open("rb", buffering=PIECE)


def raw_lines(path: Path, counts: Counts) -> Iterator[bytes]:
    """The lines of a file without a byte-order mark, one at a time, none above LINE_MAX; what cannot be read is counted."""
    try:
        with opened(path) as file:
            first = True
            while raw := file.readline(LINE_MAX):
                if first and raw.startswith(UTF_16):
                    counts.bad(path, "UTF-16, not UTF-8")
                    return
                if len(raw) == LINE_MAX and not raw.endswith(b"\n"):
                    counts.bad(path, f"a line of more than {LINE_MAX >> 20} MiB")
                    _skip(file)
                    continue
                yield raw.removeprefix(BOM) if first else raw
                first = False
    except OSError as exc:
        counts.bad(path, exc)


def _skip(file: IO[bytes]) -> None:
    """Go to the start of the next line."""
    while piece := file.readline(PIECE):
        if piece.endswith(b"\n"):
            return


def json_lines(path: Path, counts: Counts, *marks: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of the lines that hold one of the marks (all lines without marks); what is damaged is counted."""
    for raw in raw_lines(path, counts):
        if marks and not any(mark in raw for mark in marks):
            continue
        try:
            line = parsed(raw)
        except ValueError:
            if raw.strip():
                counts.bad(path)
            continue
        if isinstance(line, dict):
            yield line
        elif not marks:
            counts.bad(path)


def parsed(raw: bytes | str) -> Any:
    """The JSON value. Where a client cut output within a character, bytes that are no UTF-8 are replaced, and half a surrogate
    pair is spelled out, as the hook does with it. Raises ValueError."""
    try:
        return orjson.loads(raw)
    except ValueError:
        if not isinstance(raw, (bytes, str)):
            raise  # of a database that holds something else there
        given = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
        mended = _ESCAPE.sub(_whole_pairs, given.decode("utf-8", "replace").encode())
        if mended == given:
            raise
        return orjson.loads(mended)


def _whole_pairs(found: re.Match[bytes]) -> bytes:
    half = found.group(1)
    return b"\\\\u" + half.lower() if half else found.group()


def whole(path: Path, counts: Counts) -> tuple[bytes, int]:
    """(content, its time in us); nothing for a file that cannot be read, is empty or above WHOLE_MAX, which is counted."""
    try:
        with opened(path) as file:
            size, written = _state(file)
            raw = file.read(WHOLE_MAX + 1).removeprefix(BOM) if size <= WHOLE_MAX else b""
    except OSError as exc:
        counts.bad(path, exc)
        return b"", 0
    if max(size, len(raw)) > WHOLE_MAX:
        counts.bad(path, f"more than {WHOLE_MAX >> 20} MiB")
        return b"", 0
    if not raw:
        counts.bad(path, "empty")
    return raw, written


def _state(file: IO[bytes]) -> tuple[int, int]:
    """(bytes, when it was written in us) of a file; a stream's length is not known, and it is written as it is read."""
    try:
        state = os.fstat(file.fileno())
    except OSError:
        return 0, time.time_ns() // 1000
    return state.st_size, state.st_mtime_ns // 1000


def whole_json(path: Path, counts: Counts) -> tuple[dict[str, Any], int]:
    """(the JSON object that the file is, its time in us); ({}, 0) for anything else, which is counted."""
    raw, written = whole(path, counts)
    if not raw:
        return {}, 0
    try:
        found = parsed(raw)
    except ValueError:
        counts.bad(path, "not JSON")
        return {}, 0
    if isinstance(found, dict) and found:
        return found, written
    counts.bad(path, "an empty JSON object" if found == {} else "not a JSON object")
    return {}, 0


def payload_of(session: str, cwd: str, model: str = "") -> Payload:
    """What the adapters need to make a call."""
    return Payload("", "post", {"session_id": session, "cwd": cwd, "model": model})


def ended(call: Call, at: int, began: int = 0) -> Call:
    """The same call with the time (us) that it ended at, and how long it took where that is known."""
    call.update(at=at or None, turn=-1, began=began)
    if call["duration_ms"] is None and at and began:
        call["duration_ms"] = max(0, (at - began) // 1000)
    return call


def time_us(value: Any) -> int:
    """An ISO time as microseconds since the epoch; 0 for none, and for one later than a log holds (the year 2255)."""
    if not isinstance(value, str):
        return 0
    try:
        at = max(0, round(datetime.fromisoformat(value).timestamp() * 1_000_000))
    except (ValueError, OverflowError):
        return 0
    return at if at <= MAX_INT else 0


def unfit(call: Call) -> str | None:
    """Why no log can hold a call, so that it cannot stop those beside it; None where one can. Lone surrogates in its names are
    spelled out, as they are in its input and output."""
    at = call["at"]
    if at is not None and (type(at) is not int or not 0 <= at <= MAX_INT):
        return "a result of a time that cannot be"
    for name in NAMES:
        value = call.get(name)
        if not value:
            continue
        if type(value) is not str or len(value) > NAME_MAX:
            return f"a call whose {name} is {f'of {len(value):,} characters' if type(value) is str else 'no text'}"
        if not value.isascii():
            call[name] = sanitize(value)
    return None


def ms_us(value: Any) -> int:
    """Milliseconds since the epoch as microseconds; 0 for none."""
    return value * 1000 if type(value) is int and 0 < value < 1 << 43 else 0
