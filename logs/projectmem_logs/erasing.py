"""Carries an erasure out in the log's own files: segments (sealed ones too), the spool, the quarantine.

Each file is replaced whole or not at all, under the lock of whoever appends to it; a file that holds nothing to erase is not
touched. So an erasure that was cut short anywhere is simply done again: what is erased already stays as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from . import files, spool
from .canonical import canonical
from .envelope import Line, check_line, parse, undress
from .erasure import tombstone
from .errors import ErasureError
from .locking import Held
from .selecting import Selector, derived, opened, sources
from .tail import part, read_position, segments, streams
from .upcasting import current

LOCK_WAIT_MS = 30_000
STALE_S = 60  # a file being written aside that is older was left by a crash
PIECE = 1 << 20  # bytes written at a time

Event = dict[str, Any]


@dataclass
class Reached:
    """What an erasure did, by place; the counts are of this run, so a resumed one may find little left to do."""

    events: int = 0
    segments: int = 0
    damaged: int = 0
    spooled: int = 0
    quarantined: int = 0
    leftovers: int = 0
    places: dict[str, int | str] = field(default_factory=dict)


@dataclass
class Found:
    """What a selector means in a log.

    direct, derived  ids;  by_kind  {kind: events};  segments  where they are (`stream/segment`, or a file of the spool)
    first_at, last_at  the time they span (microseconds)
    damaged  pieces of the log that are no event and hold it;  others  files outside of the log's events that do
    """

    direct: set[str] = field(default_factory=set)
    derived: set[str] = field(default_factory=set)
    by_kind: dict[str, int] = field(default_factory=dict)
    segments: set[str] = field(default_factory=set)
    first_at: int = 0
    last_at: int = 0
    damaged: int = 0
    others: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether it is held nowhere at all."""
        return not (self.ids or self.damaged or self.others)

    @property
    def ids(self) -> set[str]:
        """Everything that is to be erased."""
        return self.direct | self.derived


def lines(home: str, *having: bytes, worth: Callable[[bytes], bool] | None = None) -> Iterator[tuple[str, bytes, Any]]:
    """(`stream/segment`, bytes without the line end, checked line) of every record of every segment; with `having` only of
    those that hold one of these, with `worth` of those it says yes to (which costs a fraction)."""
    for stream in streams(home):
        folder = os.path.join(home, "log", stream)
        for name in segments(folder):
            for offset, raw in files.read_lines(os.path.join(folder, name)):
                if (having and not any(text in raw for text in having)) or (worth is not None and not worth(raw)):
                    continue
                for line, bare in _parted(raw, offset):
                    yield f"{stream}/{name}", bare, line


def _parted(raw: bytes, offset: int = 0) -> list[tuple[Line, bytes]]:
    """A line's records, checked, each without a line end or an editor's marks: one, or as many as run together in it."""
    bare = raw[:-1] if raw.endswith(b"\n") else raw
    line = check_line(bare, offset)
    if line.dressed:
        bare = undress(bare)
        line = check_line(bare, offset)
    return [(line, bare)] if line.ok else part(bare, offset, False) or [(line, bare)]


def select(home: str, selector: Selector, known: set[str] | None = None) -> Found:
    """Find what a selector means, in the log and in the spool, with everything derived from it.

    known  ids that are to be erased already: what derives from them is found too
    """
    found, edges, kinds = Found(direct=set(known or ())), {}, {}
    where: dict[str, str] = {}
    for place, event in _events(home, selector.may_concern, partial(_count_damaged, found, selector)):
        id = event["id"]
        if _meant(selector, event):
            found.direct.add(id)
        if parents := sources(event):
            edges[id] = parents
        if issue := opened(event):
            edges[issue] = {id}
        if parents or id in found.direct:
            kinds[id], where[id] = (event["kind"], event.get("at", 0)), place
    found.derived = {id for id in derived(found.direct, edges) if id in kinds}
    found.direct &= set(kinds)
    for id in found.ids:
        kind, at = kinds[id]
        found.by_kind[kind] = found.by_kind.get(kind, 0) + 1
        found.segments.add(where[id])
        found.first_at, found.last_at = min(found.first_at or at, at), max(found.last_at, at)
    return found


def _count_damaged(found: Found, selector: Selector, bare: bytes) -> None:
    if selector.named and not bare.startswith(_BLANK) and selector.in_bytes(bare):
        found.damaged += 1


def elsewhere(home: str, selector: Selector) -> list[str]:
    """Files of the quarantine and damaged files of the spool that hold what the selector names, relative to `home`."""
    if not selector.named:
        return []
    folder = os.path.join(home, "quarantine")
    out = [f"quarantine/{name}" for name in files.plain(folder) if _holds(os.path.join(folder, name), {}, selector)]
    for path in spool.paths(home):
        try:
            raw = files.read(path)
        except FileNotFoundError:
            continue  # written to the log meanwhile
        if spool.parsed(raw) is None and selector.in_bytes(raw):
            out.append(f"spool/{os.path.basename(path)}")
    return out


def _meant(selector: Selector, event: Event) -> bool:
    """Whether the selector means this event, as it was written or as it is read today."""
    if selector.matches(event):
        return True
    today = current(event)
    return today is not event and selector.matches(today)


def chosen(home: str, ids: set[str]) -> Iterator[Event]:
    """The events with these ids that are not erased yet."""
    return (event for _, event in _events(home) if event["id"] in ids)


def _events(
    home: str, worth: Callable[[bytes], bool] | None = None, damaged: Callable[[bytes], None] | None = None
) -> Iterator[tuple[str, Event]]:
    for place, raw, line in lines(home, worth=worth):
        if line.ok and not line.erased:
            yield place, parse(raw)
        elif damaged is not None and not line.ok:
            damaged(raw)
    for path, drafts in spool.events(home):
        for event in drafts:
            yield path, event


REQUEST = b'"kind":"erasure.requested"'
TOMBSTONE = b'"tombstone":{'


def requested(home: str) -> dict[str, str]:
    """{id of an event that was asked to be erased: id of the request}, over the whole log."""
    out: dict[str, str] = {}
    for _, raw, line in lines(home, REQUEST):
        if line.ok and not line.erased:
            event = current(parse(raw))
            ids = event["data"].get("ids") if event["kind"] == "erasure.requested" else None
            for id in ids if isinstance(ids, list) else ():
                out.setdefault(str(id), event["id"])
    return out


def erased(home: str) -> set[str]:
    """Ids of the events of which only a tombstone is left."""
    return {line.id for _, _, line in lines(home, TOMBSTONE) if line.ok and line.erased}


def unfinished(home: str) -> int:
    """How many events were asked to be erased and still hold their payload."""
    left = set(requested(home)) - erased(home)
    return sum(line.ok and line.id in left for _, _, line in lines(home)) if left else 0


def unasked(home: str) -> list[str]:
    """Ids of events that somebody erased without a request on record, sorted."""
    return sorted(erased(home) - set(requested(home)))


def carry_out(home: str, wanted: Mapping[str, str], selector: Selector, *, at: int) -> Reached:
    """Erase the events in `wanted` {id: id of the request} from every file of the log. Raises ErasureError, OSError."""
    reached = Reached()
    _clear_leftovers(home, reached)
    for path in spool.paths(home):  # first: what comes from there into the log meanwhile is then found in it
        _erase_spooled(home, path, wanted, selector, reached)
    for stream in streams(home):
        with _Lock(home, stream):
            _erase_stream(home, stream, wanted, selector, at, reached)
    folder = os.path.join(home, "quarantine")
    for name in files.plain(folder):
        path = os.path.join(folder, name)
        if _holds(path, wanted, selector):
            files.remove(path)
            reached.quarantined += 1
    files.sync_dir(folder)
    return reached


class _Lock:
    """The lock of whoever appends to a stream."""

    def __init__(self, home: str, stream: str) -> None:
        self.path = os.path.join(home, "locks", f"{stream}.lock")

    def __enter__(self) -> None:
        fd = files.lock(self.path, LOCK_WAIT_MS)
        if fd is None:
            raise ErasureError(
                f"{self.path} was held for {LOCK_WAIT_MS // 1000} s: the erasure is not finished; `projectmem forget --resume`"
            )
        self.fd = fd

    def __exit__(self, *_: object) -> None:
        files.unlock(self.fd)


def _erase_stream(home: str, stream: str, wanted: Mapping[str, str], selector: Selector, at: int, reached: Reached) -> None:
    folder = os.path.join(home, "log", stream)
    for name in files.plain(folder, ".new"):  # only an erasure writes there, and this one has the lock
        files.remove(os.path.join(folder, name))
    names = segments(folder)
    for name in names:
        path = os.path.join(folder, name)
        last = name == names[-1]
        with Held(path, LOCK_WAIT_MS):  # its sidecar could be removed by somebody
            was_sealed = files.is_sealed(os.stat(path).st_mode)
            if _needs(path, wanted, selector):
                files.replace(path, _pieces(_erased_lines(path, wanted, selector, at, reached)))
                reached.segments += 1
            if was_sealed or not last:
                files.seal_file(path)  # the new file is writable; that of an earlier run that stopped here, too


def _needs(path: str, wanted: Mapping[str, str], selector: Selector) -> bool:
    return any(_verdict(line, bare, wanted, selector) for _, raw in files.read_lines(path) for line, bare in _parted(raw))


def _verdict(line: Line, bare: bytes, wanted: Mapping[str, str], selector: Selector) -> str:
    """ "" | erase | blank, for one record or what is left of one."""
    if line.ok:
        return "erase" if line.id in wanted and not line.erased else ""
    return "blank" if not bare.startswith(_BLANK) and _damaged_holds(bare, wanted, selector) else ""


_BLANK = b'{"erased":"'


def _erased_lines(path: str, wanted: Mapping[str, str], selector: Selector, at: int, reached: Reached) -> Iterator[bytes]:
    """The segment's lines, erased; records that run together with an erased one get lines of their own, and stay."""
    for _, raw in files.read_lines(path):
        end = b"\n" if raw.endswith(b"\n") else b""
        parted = _parted(raw)
        verdicts = [_verdict(line, bare, wanted, selector) for line, bare in parted]
        if not any(verdicts):
            yield raw
            continue
        out = []
        for what, (line, bare) in zip(verdicts, parted, strict=True):
            if what == "erase":
                reached.events += 1
                bare = tombstone(bare, by=wanted[line.id], at=at)
            elif what == "blank":
                reached.damaged += 1
                bare = _BLANK + b'%d damaged bytes"}' % len(bare)
            out.append(bare)
        yield b"\n".join(out) + end


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes, about PIECE at a time: a segment is never in memory."""
    held, size = [], 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= PIECE:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _damaged_holds(raw: bytes, wanted: Mapping[str, str], selector: Selector) -> bool:
    """Whether bytes that are no event hold an id that is to be erased, or what the selector is about."""
    if selector.in_bytes(raw):
        return True
    at = raw.find(b'"id":"')
    while at >= 0:
        if raw[at + 6 : at + 42].decode("ascii", "replace") in wanted:
            return True
        at = raw.find(b'"id":"', at + 1)
    return False


def _holds(path: str, wanted: Mapping[str, str], selector: Selector) -> bool:
    """Whether a quarantined file holds something to erase: whole events are judged as such, the rest by its bytes."""
    for _, raw in files.read_lines(path):
        for line, bare in _parted(raw):
            if line.ok and not line.erased:
                if line.id in wanted or _meant(selector, parse(bare)):
                    return True
            elif bare and not line.ok and _damaged_holds(bare, wanted, selector):
                return True
    return False


def _erase_spooled(home: str, path: str, wanted: Mapping[str, str], selector: Selector, reached: Reached) -> None:
    """Take drafts out of a waiting file, under the lock of the stream it would go to."""
    machine = spool.machine_of(path)
    while True:
        stream = _stream_of(home, machine)
        with _Lock(home, stream or "spool"), _end_held(home, stream):
            if _stream_of(home, machine) == stream:  # not given up while its lock was waited for
                _take_out(home, path, stream, wanted, selector, reached)
                return


def _take_out(home: str, path: str, stream: str, wanted: Mapping[str, str], selector: Selector, reached: Reached) -> None:
    try:
        raw = files.read(path)
    except FileNotFoundError:
        return  # written to the log meanwhile
    found = spool.parsed(raw)
    if not found:
        if raw and _damaged_holds(raw, wanted, selector):
            files.remove(path)
            reached.spooled += 1
        return
    pairs = list(zip(found["drafts"], found["ids"], strict=True))
    keep = [(d, i) for d, i in pairs if i not in wanted and not _meant(selector, {**d, "id": i})]
    if len(keep) == len(pairs):
        return
    reached.spooled += len(pairs) - len(keep)
    in_log = set(read_position(os.path.join(home, "log", stream), stream).tail.ids) if stream else set()
    if not keep or not in_log.isdisjoint(found["ids"]):
        files.sync_dir(os.path.dirname(path))  # that of others of its batch too
        files.discard(path)  # it is in the log already, only its removal was cut short
        return
    body = canonical({**found, "drafts": [d for d, _ in keep], "ids": [i for _, i in keep]})
    files.replace(path, spool.packed(body))


def _end_held(home: str, stream: str) -> Held | nullcontext[None]:
    """The lock of the segment that whatever waits in the spool would go to."""
    folder = os.path.join(home, "log", stream)
    names = segments(folder) if stream else []
    return Held(os.path.join(folder, names[-1]), LOCK_WAIT_MS) if names else nullcontext()


def _stream_of(home: str, machine: str) -> str:
    try:
        return str(orjson.loads(files.read(os.path.join(home, "writers", f"{machine}.json")))["stream"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return ""


def _clear_leftovers(home: str, reached: Reached) -> None:
    """What crashes left of files that were being written aside, anywhere but among the segments."""
    for folder in (home, *(os.path.join(home, n) for n in ("spool", "quarantine", "writers", "projections"))):
        for name in files.plain(folder, ".new"):
            path = os.path.join(folder, name)
            try:
                if time.time() - os.stat(path).st_mtime > STALE_S:
                    files.remove(path)
                    reached.leftovers += 1
            except FileNotFoundError:
                continue


def scrub_lines(path: str, betrays: Callable[[bytes], bool]) -> int:
    """Take the lines that `betray` something out of a log for people; returns how many. A file that is not there has none."""
    try:
        raw = files.read(path)
    except FileNotFoundError:
        return 0
    kept = raw.splitlines(keepends=True)
    out = [line for line in kept if not betrays(line)]
    if len(out) != len(kept):
        files.replace(path, b"".join(out))
    return len(kept) - len(out)
