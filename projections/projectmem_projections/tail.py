"""Reading what was appended to the log since a known position [H]: cost by what is new, never by what is there.

A position is `(segment name, byte offset)` together with the last sequence number applied. The number is what counts; the
bytes are where to look first. Where the two disagree (an erasure rewrote lines), the segment is scanned from its start.
A batch is served once its last record is there: the end of an unfinished one may yet be cut off.
Payloads of an older version of their kind are brought to today's, as `projectmem_logs.reader` does.
This reader checks that lines are whole, parse and are contiguous. Anything else is a *problem*, and the caller turns to
`projectmem_logs.reader`, which knows how to read around damage.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Tail:
    """What was read: the events, the position after the last of them, whether the end was reached, and what was wrong.

    shortened  the log ends before the position that the caller had reached: what the caller holds is no longer in the log
    """

    __slots__ = ("events", "offset", "problem", "reached_end", "segment", "shortened")

    def __init__(self, segment: str, offset: int) -> None:
        self.events: list[dict[str, Any]] = []
        self.segment, self.offset, self.problem = segment, offset, ""
        self.reached_end = self.shortened = False


_SETTLED_NS = 1_000_000_000  # a folder's time may be this coarse: what changed later than that may change again unseen
_LISTED_MAX = 256 if os.name == "posix" else 0  # elsewhere a folder's time may not tell
_listed: dict[str, tuple[int, list[str]]] = {}  # folders that were listed and have not changed since, by their time


def positions(home: str) -> dict[str, tuple[str, int]]:
    """Of each stream: its last segment's name and size in bytes. A few file system calls; {} where there is no log."""
    base = f"{home}/log"
    found = {}
    for stream in _kept(base, _names):
        folder = f"{base}/{stream}"
        names = _kept(folder, _segments)
        if names:
            try:
                found[stream] = (names[-1], os.stat(f"{folder}/{names[-1]}").st_size)
            except OSError:  # vanished between the two calls: the next look-up sees it
                _listed.pop(folder, None)
    return found


def _kept(folder: str, listed: Callable[[str], list[str]]) -> list[str]:
    """What `listed` says of the folder, asked again only where the folder has changed."""
    try:
        changed = os.stat(folder).st_mtime_ns
    except (OSError, ValueError):
        return []
    kept = _listed.get(folder)
    if kept is not None and kept[0] == changed:
        return kept[1]
    begun = time.time_ns()
    names = listed(folder)
    if begun - changed > _SETTLED_NS and len(_listed) < _LISTED_MAX:
        _listed[folder] = changed, names
    return names


def segments(home: str, stream: str) -> list[str]:
    """Names of the stream's segments, oldest first. By the log's own rule: files of 20 digits; anything else is foreign."""
    return _segments(f"{home}/log/{stream}")


def _segments(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry in found if entry.name.endswith(".jsonl") and entry.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(n for n in names if len(n) == 26 and _digits(n[:20]))


def lag(home: str, known: Mapping[str, tuple[str, int]]) -> int:
    """Bytes of the log beyond the known position (segment, size) of each stream: how much there is to fold in."""
    missing = 0
    for stream in _names(os.path.join(home, "log")):
        segment, offset = known.get(stream, ("", 0))
        for name in segments(home, stream):
            if name >= segment:
                try:
                    size = os.stat(os.path.join(home, "log", stream, name)).st_size
                except OSError:
                    continue
                missing += max(0, size - offset) if name == segment else size
    return missing


def read_tail(home: str, stream: str, segment: str, offset: int, after: int, limit: int) -> Tail:
    """At most `limit` events of the stream with sequence numbers above `after`, looked for at `segment`, `offset` first."""
    names = segments(home, stream)
    tail = Tail(segment, offset)
    if segment in names:
        _read(home, stream, names[names.index(segment) :], tail, after, limit)
        if not tail.problem:
            return tail
    first = f"{after + 1:020d}.jsonl"
    start = max((i for i, name in enumerate(names) if name <= first), default=0)
    tail = Tail(names[start] if names else "", 0)
    last = _read(home, stream, names[start:], tail, after, limit, before=True)
    if not tail.problem and last < after:
        tail.shortened, tail.problem = True, f"{stream} ends at event {last}, not at {after} as it did before"
    return tail


def _read(home: str, stream: str, names: list[str], tail: Tail, after: int, limit: int, before: bool = False) -> int:
    """Fill `tail`; returns the last sequence number met. `before`: events up to `after` may come first."""
    last = 0 if before else after
    for name in names:
        if name != tail.segment:
            tail.segment, tail.offset = name, 0
        try:
            with open(os.path.join(home, "log", stream, name), "rb") as file:
                if tail.offset > os.fstat(file.fileno()).st_size:
                    tail.problem = f"{stream}/{name} is shorter than it was"
                    return last
                file.seek(tail.offset)
                last = _read_lines(file, stream, tail, last, after, limit)
        except OSError as error:
            tail.problem = f"{stream}/{name}: {error.strerror or error}"
        if tail.problem or len(tail.events) >= limit:
            return last
    tail.reached_end = True
    return last


def _read_lines(file: Any, stream: str, tail: Tail, last: int, after: int, limit: int) -> int:
    """Read whole batches from the file's position on; returns the last sequence number of the last of them."""
    from projectmem_logs.fastjson import loads  # `positions` is asked before every call and needs none of it
    from projectmem_logs.upcasting import LATEST, current

    batch: list[dict[str, Any]] = []
    size = 0
    met = last
    for line in file:
        if not line.endswith(b"\n"):  # still being written, or torn: the next append heals it
            break
        try:
            event = loads(line)
            seq, left = event["seq"], event.get("left", 0)
            wanted = event["stream"] == stream and type(seq) is int
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            wanted = False
        if not wanted or (seq != met + 1 and (met or seq > after + 1)):
            tail.problem = f"{stream}/{tail.segment} at byte {tail.offset + size}: not the event {max(met, after) + 1}"
            break
        met = seq
        size += len(line)
        if seq > after:
            batch.append(current(event) if LATEST else event)
        if not left:
            tail.offset += size
            tail.events += batch
            last, batch, size = seq, [], 0
            if len(tail.events) >= limit:
                break
    return last


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
