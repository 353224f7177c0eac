"""The key that signs checkpoints, and the memory of what it signed: never two that contradict each other.

<key file>          one line, 0600; anybody who can read it can sign, so it belongs outside the agent's reach (--key)
<key file>.signed   {origin: {"root", "size"}}: the last checkpoint signed for each tree, synced before a signature is given
<key file>.lock     one signer at a time
"""

from __future__ import annotations

import os
import stat
import sys
from typing import Any

import orjson

from . import files
from .canonical import canonical
from .checkpoint import Tree, key_name, notes, origin, trees
from .errors import CheckpointError
from .home import project_id
from .signed_note import Note, PublicKey, SecretKey, new_key

LOCK_WAIT_MS = 30_000


def default_key(home: str) -> str:
    """Where a log's key is kept unless another place is named."""
    return os.path.join(home, "checkpoint.key")


def load_key(path: str) -> SecretKey:
    """The key in a file. Raises CheckpointError when others may read it or it is no key, OSError."""
    mode = os.stat(path).st_mode
    if sys.platform != "win32" and stat.S_IMODE(mode) & 0o077:
        raise CheckpointError(f"{path} can be read by others (mode {stat.S_IMODE(mode):o}): `chmod 600` it, or make a new key")
    try:
        return SecretKey.parse(files.read(path).decode("ascii", "replace"))
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def make_key(path: str, project: str) -> SecretKey:
    """A new key in a new file, 0600. Raises CheckpointError where there is a file already."""
    if os.path.exists(path):
        raise CheckpointError(f"{path} exists: a key is never overwritten")
    key = new_key(key_name(project))
    files.replace(path, key.text().encode() + b"\n")
    return key


def public_key(home: str, path: str = "") -> PublicKey | None:
    """The public half of a log's own key, None where it has none. Raises CheckpointError, OSError."""
    path = path or default_key(home)
    return load_key(path).public() if os.path.exists(path) else None


def sign(home: str, path: str) -> tuple[list[Tree], list[Note]]:
    """Checkpoints of every stream as it stands, signed with the key in `path` (made where there is none).

    Raises CheckpointError when the log does not hold what this key signed before: then nothing is signed.
    """
    project = project_id(home)
    if os.path.exists(path):
        load_key(path)  # before there is a lock: nothing is left beside a file that is no key
    lock = files.lock(f"{path}.lock", LOCK_WAIT_MS)
    if lock is None:
        raise CheckpointError(f"another process is signing with {path}: try again")
    try:
        key = load_key(path) if os.path.exists(path) else make_key(path, project)
        before = _load(f"{path}.signed")
        mine = {name: last for name, last in before.items() if name.startswith(origin(project, ""))}
        asked = {name[len(origin(project, "")) :]: [last["size"]] for name, last in mine.items()}
        found = trees(home, asked)
        _refuse_a_fork(project, mine, found)
        fresh = notes(home, found)
        after = {**before, **{note.origin: {"root": note.root.hex(), "size": note.size} for note in fresh}}
        if after != before:
            files.replace(f"{path}.signed", canonical(after) + b"\n")
        return found, [key.sign(note) for note in fresh]
    finally:
        files.unlock(lock)


def _refuse_a_fork(project: str, before: dict[str, Any], found: list[Tree]) -> None:
    now = {origin(project, tree.stream): tree for tree in found}
    for name, last in sorted(before.items()):
        tree = now.get(name)
        if tree is None:
            raise CheckpointError(f"not signed: stream {name.rpartition('/')[2]}, which was signed before, is gone from the log")
        if tree.size < last["size"]:
            raise CheckpointError(
                f"not signed: stream {tree.stream} was signed with {last['size']:,} records and has {tree.size:,} now"
                f"{': ' + tree.broken if tree.broken else ''}. Run `projectmem verify --checkpoint` with the one you kept"
            )
        if tree.root(last["size"]).hex() != last["root"]:
            raise CheckpointError(
                f"not signed: the first {last['size']:,} records of stream {tree.stream} are not those that were signed before"
            )


def _load(path: str) -> dict[str, Any]:
    try:
        found = orjson.loads(files.read(path))
        good = isinstance(found, dict) and all(type(v["size"]) is int and type(v["root"]) is str for v in found.values())
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError):
        good = False
    if not good:
        raise CheckpointError(f"{path} is damaged, so nobody knows what was signed: restore it, or sign with a new key (--key)")
    return dict(found)
