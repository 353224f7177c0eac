"""Checkpoints and proofs as use cases: where a checkpoint is kept, and what the log says to the ones that were kept.

A checkpoint that the log contradicts is never overwritten or passed over: it is the evidence.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from projectmem_logs import checkpoint, files, signing
from projectmem_logs.checkpoint import Comparison
from projectmem_logs.errors import CheckpointError, SpooledError
from projectmem_logs.signed_note import Note, PublicKey, bundle, parse

from projectmem import writing
from projectmem.errors import BadInputError, NotFoundError

if TYPE_CHECKING:
    from projectmem.place import Place

GIT_NOTE = "git-note"
NOTES_REF = "projectmem"
NOTES_MAX = 1_000  # git notes that are read, newest commits of the list first


def seal(
    place: Place, *, now: int, origin: str, actor: dict[str, str], to: str = "", sign: bool = False, key: str = ""
) -> tuple[list[Note], dict[str, Any], list[str]]:
    """Take a checkpoint of every stream, record it and put it where `to` says (a file, `git-note`, "" for nowhere).

    Returns the notes, the `checkpoint.sealed` event (with the id "" while it waits) and what a person should hear. Raises
    CheckpointError when what is kept there already contradicts the log, or the key has signed something that does.
    """
    kept = keep(place, to)
    contradicted = [c for c in checkpoint.compare(place.home, kept) if not c.ok] if kept else []
    if contradicted:
        worst = contradicted[0]
        raise CheckpointError(
            f"no checkpoint taken: the one in {to} says otherwise about stream {worst.stream or worst.origin} ({worst.state}: "
            f"{worst.detail}). It is left as it is. Run `projectmem verify --checkpoint {to}`"
        )
    if sign:
        found, notes = signing.sign(place.home, key or signing.default_key(place.home))
    else:
        found = checkpoint.trees(place.home)
        notes = checkpoint.notes(place.home, found)
    heard = [f"covered only as far as it is whole: {tree.broken}; run `projectmem verify`" for tree in found if tree.broken]
    data = {**checkpoint.sealed(found), "signed": sign}
    who = {**actor, "origin": origin}
    draft = {"kind": "checkpoint.sealed", "at": now, "actor": who, "causes": [], "data": data}
    try:
        event = writing.append(place, [draft], now, problems=heard, wait_ms=writing.COMMAND_WAIT_MS)[-1]
    except SpooledError:
        event = {**draft, "id": ""}
        heard.append("the log is busy: that it was sealed is recorded as soon as it is free")
    if to == GIT_NOTE:
        _git(place, "notes", f"--ref={NOTES_REF}", "append", "-F", "-", "HEAD", given=bundle(notes))
    elif to:
        files.replace(os.path.abspath(to), bundle(notes).encode())
    return notes, event, heard


def keep(place: Place, where: str) -> list[Note]:
    """The checkpoints kept in a file or in git notes; [] where there are none yet."""
    if where == GIT_NOTE:
        return _from_git(place)
    return read(where) if where and os.path.exists(where) else []


def read(path: str) -> list[Note]:
    """The checkpoints in a file. Raises CheckpointError, OSError."""
    try:
        return parse(files.read(path))
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def verify(place: Place, where: Sequence[str], key: str = "") -> list[Comparison]:
    """Hold the log against checkpoints kept in files or git notes.

    key  a public key, as text or in a file: then each checkpoint must bear its good signature. Without it the log's own key is
         used where there is one, and a checkpoint may be unsigned
    """
    found: dict[Note, None] = {}
    for one in where:
        notes = keep(place, one)
        if not notes:
            raise NotFoundError(f"no checkpoint in {one}: take one with `projectmem checkpoint --to {one}`")
        found.update(dict.fromkeys(notes))
    return checkpoint.compare(place.home, list(found), _public_key(place, key), demanded=bool(key))


def _public_key(place: Place, given: str) -> PublicKey | None:
    if given:
        text = files.read(given, 0, 10_000).decode("utf-8", "replace") if os.path.exists(given) else given
        return PublicKey.parse(text)
    return signing.public_key(place.home)


def consistency(place: Place, old: str, new: str, stream: str = "") -> list[dict[str, Any]]:
    """Proofs that the checkpoints in `new` go on from those in `old`; either may be a number of records instead.

    Raises BadInputError, NotFoundError, CheckpointError (also when a checkpoint is not of this log as it stands).
    """
    streams = [tree.stream for tree in checkpoint.trees(place.home)] if old.isdigit() or new.isdigit() else []
    if streams and not stream and len(streams) > 1:
        raise BadInputError(f"the log has {len(streams)} streams: name one with --stream, or give files ({', '.join(streams)})")
    olds, news = (_sizes(place, one, stream or "".join(streams[:1])) for one in (old, new))
    shared = [s for s in olds if s in news and (not stream or s == stream)]
    if not shared:
        raise NotFoundError(f"no stream of this log is in both {old} and {new}")
    return [_consistency(place, s, olds[s], news[s]) for s in shared]


def _consistency(place: Place, stream: str, old: tuple[int, str], new: tuple[int, str]) -> dict[str, Any]:
    proof = checkpoint.prove_consistency(place.home, stream, old[0], new[0])
    for name, (size, root) in (("old", old), ("new", new)):
        if root and proof[name]["root"] != root:
            raise CheckpointError(
                f"the checkpoint of {size:,} records of stream {stream} is not of this log: it was rewritten since. "
                f"Run `projectmem verify --checkpoint`"
            )
    return proof


def _sizes(place: Place, given: str, stream: str) -> dict[str, tuple[int, str]]:
    """{stream: (size, root in hex)} of a file's checkpoints, the largest of each; of a number, without a root."""
    if given.isdigit():
        return {stream: (int(given), "")}
    notes = keep(place, given)
    if not notes:
        raise NotFoundError(f"no checkpoint in {given}: give a file, `{GIT_NOTE}` or a number of records")
    head = checkpoint.origin(place.project, "")
    out: dict[str, tuple[int, str]] = {}
    for note in notes:
        if note.origin.startswith(head):
            name = note.origin[len(head) :]
            out[name] = max(out.get(name, (-1, "")), (note.size, note.root.hex()))
    return out


def _from_git(place: Place) -> list[Note]:
    listed = _git(place, "notes", f"--ref={NOTES_REF}", "list").split()
    out: list[Note] = []
    for blob in listed[0::2][:NOTES_MAX]:
        try:
            out += parse(_git(place, "cat-file", "blob", blob).encode())
        except CheckpointError as error:
            raise CheckpointError(f"git note {blob[:10]} in refs/notes/{NOTES_REF}: {error}") from None
    return out


def _git(place: Place, *args: str, given: str = "") -> str:
    if not place.common_dir:
        raise BadInputError("this project is not in a git repository: keep the checkpoint in a file with --to FILE")
    where = place.root if os.path.isdir(place.root) else place.common_dir
    done = subprocess.run(["git", "-C", where, *args], input=given.encode(), capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise CheckpointError(f"`git {' '.join(args[:3])}` failed: {said[-1] if said else f'exit {done.returncode}'}")
    return done.stdout.decode("utf-8", "replace")
