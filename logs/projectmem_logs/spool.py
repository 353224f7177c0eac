"""Events that could not get the lock in time: kept as one file per append, written to the log by the next one.

A spooled event already has its id, so a crash between writing it to the log and removing its file writes it only once: as
long as any of a batch's files could come back, that batch is the log's last.
"""

from __future__ import annotations

import os

from . import files
from .canonical import canonical
from .digest import sha256_hex
from .envelope import ID_BYTES, MAX_BATCH, MAX_CAUSES, is_id, prepare, uuid7
from .errors import AppendError, CanonicalError, EventError
from .fastjson import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from .envelope import Event, Prepared

    Waiting = tuple[str, bytes, list[Prepared], Sequence[str]]  # path, contents, and what they are

FILES_MAX = 10_000  # a log that nobody can lock for that long needs a person
TOGETHER_BYTES = 32 * 1024  # files that come in as one batch: whoever opens the log next reads no more than its last 64 KiB
PIECE_BYTES = 4 * 1024 * 1024  # of an import, to a file
_AROUND = 2_048 + 40 * MAX_CAUSES  # more than a record has beside its data
_SUFFIX = ".spool"
_kept = [0]  # appends that this process kept


def keep(home: str, machine: str, prepared: Sequence[Prepared], now: int, many: bool) -> str:
    """Make the drafts durable outside the log, as one batch or, of an import (`many`), as several; returns the path, of several
    the last one. Raises EventError where they are no batch, AppendError where not even that is possible."""
    size, start = 0, 0
    cuts = [0]
    for i, one in enumerate(prepared):
        size += len(one.data_text.encode()) + _AROUND
        if many and size > PIECE_BYTES and i > start:
            start, size = i, len(one.data_text.encode()) + _AROUND
            cuts.append(i)
    if size > MAX_BATCH and len(prepared) - start > 1:
        raise EventError(f"the log is locked, and this is too much to keep beside it ({size:,} bytes): append less at a time")
    _kept[0] += 1  # what a process keeps at one `now`, as an import does, comes in as it was kept
    name, path = f"{machine}-{now:020d}-{_kept[0] & 0xFFFFFF:06x}{os.urandom(ID_BYTES - 3).hex()}", ""
    for n, (start, stop) in enumerate(zip(cuts, [*cuts[1:], len(prepared)], strict=True)):  # in this order when they come in
        path = _put(home, f"{name}-{n:04d}" if len(cuts) > 1 else name, prepared[start:stop], now, start)
    return path


def _put(home: str, name: str, prepared: Sequence[Prepared], now: int, first: int) -> str:
    """Make one batch durable outside the log; returns the path. Raises AppendError when that fails too."""
    folder = os.path.join(home, "spool")
    if len(files.names(folder, _SUFFIX)) >= FILES_MAX:
        raise AppendError(f"the log is locked and {folder} already holds {FILES_MAX:,} files; run `projectmem doctor`")
    drafts = [{"actor": p.actor, "at": p.at, "causes": p.causes, "data": p.data, "kind": p.kind} for p in prepared]
    rand = os.urandom(ID_BYTES * len(prepared))
    ids = [uuid7(now + first + i + 1, rand[ID_BYTES * i : ID_BYTES * (i + 1)]) for i in range(len(prepared))]
    body = canonical({"drafts": drafts, "ids": ids, "now": now})
    path = os.path.join(folder, f"{name}{_SUFFIX}")
    raw = packed(body)
    try:
        try:
            files.replace(path, raw)
        except FileNotFoundError:  # the empty folder was swept away
            files.make_dir(folder)
            files.replace(path, raw)
    except OSError as e:
        raise AppendError(f"the log is locked and {path} cannot be written: {e.strerror or e}; the event is lost") from e
    return path


def paths(home: str) -> list[str]:
    """The spool files, whoever's, oldest first for each machine. Whatever else lies there is left to `verify` to report."""
    folder = os.path.join(home, "spool")
    return [os.path.join(folder, name) for name in files.plain(folder, _SUFFIX)]


def machine_of(path: str) -> str:
    """Whose spool file it is: only that machine drains it, into its own stream."""
    return os.path.basename(path).partition("-")[0]


def own(home: str, machine: str) -> list[str]:
    """The paths of this machine's spool files, oldest first."""
    return [path for path in paths(home) if machine_of(path) == machine]


def drain(
    home: str,
    machine: str,
    in_log: Sequence[str],
    write: Callable[[Sequence[Prepared], Sequence[str]], list[Event]],
    sync: Callable[[], None],
    notices: list[str],
) -> tuple[bool, list[Event]]:
    """Bring this machine's files into the log, oldest first and as many in one batch as are small; whether there were any, and
    the events. Only for who holds the lock.

    in_log   ids of the log's last batch: what is in it was written, and only the removal of its file was cut short
    write    (prepared, ids): appends one batch and syncs it;  sync  makes what is in the log durable
    notices  hears what came in, and what could not: a damaged file goes to quarantine/, one that may not be read stays
    Nothing of a batch's files can come back when the next batch is written. Raises what `write` and `sync` raise, and OSError.
    """
    found = own(home, machine)
    written: list[str] = []
    waiting: list[Waiting] = []
    for path in found:
        try:
            raw = files.read(path)
            held = parsed(raw)
            if held is None:
                raise EventError("it is damaged")
            if not held or held["ids"][-1] in in_log:
                written.append(path)
            else:
                waiting.append((path, raw, [prepare(draft, held["now"]) for draft in held["drafts"]], held["ids"]))
        except FileNotFoundError:  # somebody took it away
            continue
        except PermissionError as e:
            notices.append(f"{path} waits for the log and cannot be read: {e.strerror or e}")
        except (EventError, CanonicalError) as e:
            _set_aside(home, path, raw, str(e), notices)
    if written:
        sync()  # whoever wrote it may have been stopped before it was durable
        _remove(written, False)
    events: list[Event] = []
    for group in _groups(waiting):
        prepared = [one for _, _, some, _ in group for one in some]
        try:
            events += write(prepared, [id for _, _, _, ids in group for id in ids])
        except EventError as e:  # longer than a line or a batch may be: it is alone
            _set_aside(home, group[0][0], group[0][1], str(e), notices)
            continue
        where = group[0][0] if len(group) == 1 else f"{len(group)} files of {os.path.dirname(group[0][0])}"
        notices.append(f"{len(prepared)} event(s) that waited in {where} are now in the log")
        _remove([path for path, _, _, _ in group], len(group) == 1)
    return bool(found), events


def _groups(waiting: Sequence[Waiting]) -> Iterator[list[Waiting]]:
    """Runs of files that are small enough together."""
    group: list[Waiting] = []
    size = 0
    for one in waiting:
        if group and size + len(one[1]) > TOGETHER_BYTES:
            yield group
            group, size = [], 0
        group.append(one)
        size += len(one[1])
    if group:
        yield group


def _set_aside(home: str, path: str, raw: bytes, why: str, notices: list[str]) -> None:
    name = os.path.basename(path)
    files.make_dir(os.path.join(home, "quarantine"))
    files.replace(os.path.join(home, "quarantine", name), raw)
    files.remove(path)
    notices.append(f"what waited in {path} could not be recorded ({why}); it was moved to quarantine/{name}")


def _remove(paths: Sequence[str], alone: bool) -> None:
    """Remove files so that nothing in them can come back. The last is emptied once the names of the others are gone for good: as
    long as it is there, whoever finds it does this again.

    alone  there were no others: it was written as a batch of its own just now
    """
    for path in paths[:-1]:
        files.remove(path)
    try:
        if not alone:
            files.sync_dir(os.path.dirname(paths[-1]))
    except OSError:
        for path in paths[:-1]:
            files.replace(path, b"")  # a second sync proves nothing of what the first one may have dropped: removed anew
        raise
    files.discard(paths[-1])


def events(home: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(path, drafts, each with its id) of every spool file that can be read, whoever's; without the lock, so that some may be in
    the log by now."""
    for path in paths(home):
        try:
            found = parsed(files.read(path))
        except OSError:  # it is gone, or not ours to read: who must have read it finds that out
            continue
        if found:
            yield path, [{**draft, "id": id} for draft, id in zip(found["drafts"], found["ids"], strict=True)]


def drafts(home: str) -> list[dict[str, Any]]:
    """What waits in the spool, as `events`."""
    return [draft for _, found in events(home) for draft in found]


def packed(body: bytes) -> bytes:
    """What a spool file of this canonical text holds."""
    return sha256_hex(body).encode() + b" " + body + b"\n"


def parsed(raw: bytes) -> dict[str, Any] | None:
    """What a spool file holds, {} for nothing, None where it is damaged."""
    if not raw:
        return {}
    if sha256_hex(raw[65:-1]).encode() != raw[:64]:
        return None
    try:
        found: dict[str, Any] = loads(raw[65:-1])
        drafts, ids = found["drafts"], found["ids"]
        whole = type(found["now"]) is int and type(drafts) is type(ids) is list and len(drafts) == len(ids) > 0
        whole = whole and all(type(draft) is dict for draft in drafts) and all(map(is_id, ids))
    except (ValueError, KeyError, TypeError):  # somebody made it
        return None
    return found if whole else None
