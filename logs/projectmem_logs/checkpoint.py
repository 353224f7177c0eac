"""Checkpoints of a log: one Merkle tree a stream, its size and root as a note, and whether the log still holds what one says.

The chain inside the files cannot show that a stream lost its end, or that somebody rebuilt it. A checkpoint that is kept where
the log's writer cannot reach it shows both. Reading is streaming and checks every hash on the way; nothing here writes.
"""

from __future__ import annotations

import os
from binascii import unhexlify
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import files, merkle
from .canonical import canonical
from .digest import sha256_hex
from .envelope import check_line, describe, is_id
from .errors import CanonicalError, CheckpointError
from .home import project_id
from .merkle import Span
from .reader import WORDS
from .recovery import joins
from .signed_note import BAD, GOOD, NONE, Note, PublicKey
from .store import heads
from .sweep import Sweep
from .tail import segments, streams

PREFIX = "projectmem-gate"
BLOCK = 64 * 1024  # bytes checked at a time: they stay in the processor's cache
_NOT_HASHED = ("data", "salt", "tombstone", "hash")
SAME, CUT, FORKED, GONE, DAMAGED, FOREIGN = "consistent", "cut", "forked", "gone", "damaged", "foreign"


def key_name(project: str) -> str:
    """The name of the key that signs a project's checkpoints."""
    return f"{PREFIX}/{project}"


def origin(project: str, stream: str) -> str:
    """The identity of one stream's tree."""
    return f"{PREFIX}/{project}/{stream}"


@dataclass
class Tree:
    """One stream as a tree: `size` whole records were read, `hashes` are the roots and subtrees that were asked for.

    broken  where and why reading stopped before what was asked for, "" when it did not
    """

    stream: str
    size: int = 0
    hashes: dict[Span, bytes] = field(default_factory=dict)
    broken: str = ""

    def root(self, size: int) -> bytes:
        """The root after `size` records, which must have been asked for."""
        return self.hashes[0, size]


def read_tree(home: str, stream: str, upto: int, sizes: Iterable[int] = (), spans: Iterable[Span] = ()) -> Tree:
    """The tree of a stream's first `upto` records. Raises OSError."""
    tree = Tree(stream)
    tree.hashes = merkle.scan(_leaves(home, tree, upto), [*sizes, upto], spans)
    return tree


def _leaves(home: str, tree: Tree, upto: int) -> Iterator[bytes]:
    """The leaf hashes of a stream in order, as long as every line is whole and chains on the one before: runs of lines that are
    plainly so all at once, the others one by one."""
    folder, sweep = os.path.join(home, "log", tree.stream), Sweep(tree.stream)
    for name in segments(folder) if upto else ():
        for offset, block in files.read_blocks(os.path.join(folder, name), chunk=BLOCK):
            lines = block.removesuffix(b"\n").split(b"\n")
            i = 0
            while i < len(lines):
                done = sweep.run(lines[: i + upto - tree.size], i)
                for raw in lines[i:done]:
                    tree.size += 1
                    yield merkle.leaf_hash(unhexlify(Sweep.hash_of(raw)))
                if tree.size >= upto:
                    return
                if done < len(lines):
                    offset += sum(map(len, lines[i:done])) + done - i
                    tree.broken = _one(lines[done], offset, sweep, f"{tree.stream}/{name}")
                    if tree.broken:
                        return
                    tree.size += 1
                    yield merkle.leaf_hash(unhexlify(sweep.hash))
                    if tree.size >= upto:
                        return
                    offset += len(lines[done]) + 1
                i = done + 1
    if tree.size < upto:
        tree.broken = f"{tree.stream} ends after seq {tree.size:,}"


def _one(raw: bytes, offset: int, sweep: Sweep, where: str) -> str:
    """Let `sweep` follow one line that it did not take; returns what is wrong with it, "" when nothing is."""
    line = check_line(raw, offset)
    good = line.ok or line.dressed
    why = joins(line, sweep.seq, sweep.hash.decode(), sweep.batch, sweep.left) if good else line.why
    if not why and line.stream.encode() != sweep.stream:
        why = "stream"
    if why:
        return f"{where} at byte {offset:,}: {WORDS.get(why) or describe(why)}"
    sweep.seq, sweep.hash, sweep.batch, sweep.left = line.seq, line.hash.encode(), line.batch, line.left
    return ""


def trees(home: str, also: Mapping[str, Sequence[int]] | None = None) -> list[Tree]:
    """Every stream of the log as it stands, with the roots of the sizes in `also` besides. A damaged stream is covered as far
    as it is whole, and says so in `broken`."""
    out = []
    for stream, (seq, _) in sorted(heads(home).items()):
        sizes = [s for s in (also or {}).get(stream, ()) if s <= seq]
        tree = read_tree(home, stream, seq, sizes)
        if tree.broken:
            whole = read_tree(home, stream, tree.size, [s for s in sizes if s <= tree.size])
            whole.broken = tree.broken
            tree = whole
        out.append(tree)
    return out


def notes(home: str, found: Iterable[Tree]) -> list[Note]:
    """The checkpoints of these trees, not signed."""
    project = project_id(home)
    return [Note(origin(project, tree.stream), tree.size, tree.root(tree.size)) for tree in found]


def sealed(found: Sequence[Tree]) -> dict[str, Any]:
    """The payload of `checkpoint.sealed`: each stream's size and root (hex), how many records in all, and one hash over the
    list (the tree whose leaves are the canonical {root, size, stream}), short enough to be read out."""
    rows = [{"root": tree.root(tree.size).hex(), "size": tree.size, "stream": tree.stream} for tree in found]
    whole = merkle.Frontier()
    for row in rows:
        whole.push(merkle.leaf_hash(canonical(row)))
    return {"size": sum(tree.size for tree in found), "root": whole.root().hex(), "streams": rows}


# -- holding a log against a checkpoint ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """What one checkpoint says of the log.

    state      consistent | cut | forked | gone | damaged | foreign;  signature  good | bad | unknown key | none | unchecked
    demanded   whether whoever asked named the key: then nothing but its good signature will do
    """

    origin: str
    stream: str
    size: int
    state: str
    detail: str
    signature: str
    demanded: bool = False

    @property
    def signed(self) -> bool:
        """No signature is wrong; where a key was named, its own is there and good."""
        return self.signature == GOOD if self.demanded else self.signature != BAD

    @property
    def ok(self) -> bool:
        """The log holds everything the checkpoint covers, and it is `signed`."""
        return self.state == SAME and self.signed


def compare(home: str, given: Sequence[Note], key: PublicKey | None = None, *, demanded: bool = False) -> list[Comparison]:
    """Hold the log against checkpoints, each stream read once; `demanded`: only what `key` signed will do. Raises OSError,
    NotInitialisedError."""
    project, found = project_id(home), heads(home)
    asked: dict[str, list[int]] = {}
    for note in given:
        stream = _stream_of(note, project)
        if stream in found and note.size <= found[stream][0]:
            asked.setdefault(stream, []).append(note.size)
    read = {stream: read_tree(home, stream, max(sizes), sizes) for stream, sizes in asked.items()}
    out = []
    for note in given:
        stream = _stream_of(note, project)
        state, detail = _judge(note, stream, found, read)
        signature = key.judge(note) if key is not None else NONE if not note.signatures else "unchecked"
        out.append(Comparison(note.origin, stream, note.size, state, detail, signature, demanded and key is not None))
    return out


def _stream_of(note: Note, project: str) -> str:
    head = origin(project, "")
    return note.origin[len(head) :] if note.origin.startswith(head) else ""


def _judge(note: Note, stream: str, found: Mapping[str, tuple[int, str]], read: Mapping[str, Tree]) -> tuple[str, str]:
    if not stream:
        return FOREIGN, "a checkpoint of another log"
    if stream not in found:
        return GONE, f"the whole stream is missing; the checkpoint covers {note.size:,} records of it"
    seq = found[stream][0]
    if seq < note.size:
        return CUT, f"records {seq + 1:,} to {note.size:,} are missing: the stream ends at {seq:,}"
    tree = read[stream]
    if (0, note.size) not in tree.hashes:
        return DAMAGED, f"cannot be compared: {tree.broken}"
    if tree.hashes[0, note.size] != note.root:
        return FORKED, f"the first {note.size:,} records are not those of the checkpoint: the stream was rewritten"
    return SAME, f"holds all {note.size:,} records, and {seq - note.size:,} more"


# -- proofs --------------------------------------------------------------------------------------------------------------


def prove_inclusion(home: str, event: Mapping[str, Any], size: int | None = None) -> dict[str, Any]:
    """The proof that an event is in its stream's tree of `size` records (all there are, by default), as plain data.

    `record` is what its hash is taken over in canonical form, the event without payload and salt: who, when, which kind and
    place, and the payload's salted digest.

    Raises CheckpointError where the stream is damaged or has not that many records.
    """
    stream, seq = event["stream"], event["seq"]
    size = heads(home)[stream][0] if size is None else size
    if not seq <= size:
        raise CheckpointError(f"event {event['id']} has seq {seq:,}; a tree of {size:,} records does not cover it")
    record = {name: event[name] for name in event if name not in _NOT_HASHED}
    if sha256_hex(canonical(record)) != event["hash"]:
        raise CheckpointError(f"no proof can be made: event {event['id']} is not as it was recorded; run `projectmem verify`")
    spans = merkle.inclusion(seq - 1, size)
    tree = _whole(home, stream, size, [], spans)
    return {
        "proof": "inclusion",
        "origin": origin(project_id(home), stream),
        "id": event["id"],
        "index": seq - 1,
        "size": size,
        "leaf": event["hash"],
        "record": record,
        "root": tree.root(size).hex(),
        "path": [tree.hashes[span].hex() for span in spans],
    }


def prove_consistency(home: str, stream: str, old: int, new: int) -> dict[str, Any]:
    """The proof that the stream's tree of `new` records begins with its tree of `old`. Raises CheckpointError."""
    if not 0 <= old <= new:
        raise CheckpointError(f"a checkpoint of {old:,} records cannot be the beginning of one of {new:,}: swap them")
    spans = merkle.consistency(old, new)
    tree = _whole(home, stream, new, [old], spans)
    return {
        "proof": "consistency",
        "origin": origin(project_id(home), stream),
        "old": {"size": old, "root": tree.root(old).hex()},
        "new": {"size": new, "root": tree.root(new).hex()},
        "path": [tree.hashes[span].hex() for span in spans],
    }


def _whole(home: str, stream: str, size: int, sizes: list[int], spans: list[Span]) -> Tree:
    if stream not in streams(home):
        raise CheckpointError(f"the log has no stream {stream}")
    tree = read_tree(home, stream, size, sizes, spans)
    if tree.broken:
        raise CheckpointError(f"no proof can be made: {tree.broken}; run `projectmem verify`")
    return tree


def check_proof(proof: Mapping[str, Any]) -> bool:
    """Whether a proof made above holds in itself; needs no log. Its origin, sizes and roots must then be held against
    checkpoints. Of an inclusion the leaf must be the hash of the record, and id, place and stream those that the record names.

    Raises CheckpointError for anything that is not such a proof, also for one of the older form, without the record: of that
    nothing but a hash can be checked.
    """
    if proof.get("proof") == "inclusion" and "leaf" in proof and "record" not in proof:
        raise CheckpointError("an older proof, without the event's record, proves a hash and no event. Make it again: prove ID")
    try:
        path = [_hash(text) for text in proof["path"]]
        if proof["proof"] == "inclusion":
            index, size = _count(proof["index"]), _count(proof["size"])
            leaf = merkle.leaf_hash(_hash(proof["leaf"]))
            held = merkle.included(index, size, leaf, path, _hash(proof["root"]))
            return _is_of_its_record(proof) and held
        if proof["proof"] == "consistency":
            old, new = proof["old"], proof["new"]
            roots = _hash(old["root"]), _hash(new["root"])
            return merkle.consistent(_count(old["size"]), _count(new["size"]), *roots, path)
    except (KeyError, TypeError, ValueError, AttributeError, CanonicalError):
        pass
    raise CheckpointError("not a proof: expected what `projectmem prove --json` prints")


def _is_of_its_record(proof: Mapping[str, Any]) -> bool:
    """Whether the leaf, id, index and origin of an inclusion are those of the record it shows."""
    record = proof["record"]
    if type(record) is not dict or sha256_hex(canonical(record)) != proof["leaf"]:
        return False
    project, _, stream = str(proof["origin"]).removeprefix(f"{PREFIX}/").rpartition("/")
    if [type(record[name]) for name in ("digest", "kind", "ts")] != [str, str, int]:
        return False
    same = record["id"] == proof["id"] and record["seq"] == _count(proof["index"]) + 1 and record["stream"] == stream
    return same and is_id(record["id"]) and proof["origin"] == origin(project, stream) and bool(project)


def _hash(text: str) -> bytes:
    out = bytes.fromhex(text)
    if len(out) != merkle.HASH_BYTES or out.hex() != text:
        raise ValueError(text)
    return out


def _count(n: Any) -> int:
    if type(n) is not int or not 0 <= n <= 2**53:
        raise ValueError(n)
    return n
