"""Events that could not get the lock in time: kept as one file per append, written to the log by the next one.

A spooled event already has its id, so a crash between writing it to the log and removing its file writes it only once.
"""

from __future__ import annotations

import os

from . import files
from .canonical import canonical
from .digest import sha256_hex
from .envelope import ID_BYTES, uuid7
from .errors import AppendError
from .fastjson import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from .envelope import Prepared

FILES_MAX = 10_000  # a log that nobody can lock for that long needs a person
_SUFFIX = ".spool"


def put(home: str, machine: str, prepared: Sequence[Prepared], now: int) -> str:
    """Make the drafts durable outside the log; returns the path. Raises AppendError when that fails too."""
    folder = os.path.join(home, "spool")
    if len(files.names(folder, _SUFFIX)) >= FILES_MAX:
        raise AppendError(f"the log is locked and {folder} already holds {FILES_MAX:,} files; run `projectmem doctor`")
    drafts = [{"actor": p.actor, "at": p.at, "causes": p.causes, "data": p.data, "kind": p.kind} for p in prepared]
    rand = os.urandom(ID_BYTES * (len(prepared) + 1))
    ids = [uuid7(now + i, rand[ID_BYTES * i : ID_BYTES * (i + 1)]) for i in range(1, len(prepared) + 1)]
    body = canonical({"drafts": drafts, "ids": ids, "now": now})
    path = os.path.join(folder, f"{machine}-{now:020d}-{rand[:ID_BYTES].hex()}{_SUFFIX}")
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


def waiting(home: str, machine: str) -> list[tuple[str, dict[str, Any]]]:
    """This machine's spooled appends, oldest first. An empty one ({}) is in the log already: its removal was cut short. A
    damaged file is moved to quarantine/ and left out. Only for who holds the lock."""
    out: list[tuple[str, dict[str, Any]]] = []
    for path in own(home, machine):
        raw = files.read(path)
        found = parsed(raw)
        if found is not None:
            out.append((path, found))
        else:
            files.replace(os.path.join(home, "quarantine", os.path.basename(path)), raw)
            files.remove(path)
    return out


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
        whole = type(found["now"]) is int and len(found["drafts"]) == len(found["ids"])
    except (ValueError, KeyError, TypeError):  # somebody made it
        return None
    return found if whole else None


def drained(spooled: dict[str, Any], last_ids: Sequence[str]) -> bool:
    """True when the last batch of the log is this very file: it was written, and the crash came before its removal."""
    return bool(last_ids) and spooled["ids"][-1:] == list(last_ids[-1:])  # batches are whole; only their end is always read
