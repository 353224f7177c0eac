"""RFC 6962 Merkle trees: roots in O(log n) memory, inclusion and consistency proofs, and their verification. Pure.

A leaf of a stream's tree is the 32 bytes of its record's envelope `hash`, which an erasure leaves as it is; leaf i is the
record of seq i + 1. Proofs are made by naming the subtrees they need (`inclusion`, `consistency`) and hashing all of them in
one pass over the leaves (`scan`); they are checked by the algorithms of RFC 9162, sections 2.1.3.2 and 2.1.4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

Span = tuple[int, int]  # leaves first <= i < last
EMPTY = sha256(b"").digest()
HASH_BYTES = 32


def leaf_hash(data: bytes) -> bytes:
    """The hash of one leaf."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of a node over two subtrees."""
    return sha256(b"\1" + left + right).digest()


class Frontier:
    """A tree that grows to the right, as the roots of its whole subtrees: at most one hash per bit of its size."""

    __slots__ = ("_roots", "size")

    def __init__(self) -> None:
        self.size = 0
        self._roots: list[bytes] = []

    def push(self, leaf: bytes) -> None:
        """Add a leaf by its hash."""
        rest = self.size
        while rest & 1:
            leaf = node_hash(self._roots.pop(), leaf)
            rest >>= 1
        self._roots.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        """The root of all leaves so far."""
        if not self._roots:
            return EMPTY
        out = self._roots[-1]
        for left in self._roots[-2::-1]:
            out = node_hash(left, out)
        return out


def scan(leaves: Iterable[bytes], sizes: Iterable[int] = (), spans: Iterable[Span] = ()) -> dict[Span, bytes]:
    """{(0, size): root} and {span: root of the subtree} of those that lie within `leaves` (hashes of leaves, in order).

    One pass, and O(log n) memory for each span that overlaps another. A size or span past the last leaf has no entry.
    """
    wanted = set(sizes)
    todo = sorted({s for s in spans if s[0] < s[1]}, reverse=True)
    out: dict[Span, bytes] = {(0, 0): EMPTY} if 0 in wanted else {}
    whole = Frontier()
    active: list[tuple[Span, Frontier]] = []
    for at, leaf in enumerate(leaves, 1):
        while todo and todo[-1][0] < at:
            active.append((todo.pop(), Frontier()))
        for span, frontier in active:
            frontier.push(leaf)
            if span[1] == at:
                out[span] = frontier.root()
        active = [one for one in active if one[0][1] > at]
        if wanted:
            whole.push(leaf)
            if at in wanted:
                out[0, at] = whole.root()
    return out


def _split(size: int) -> int:
    """The largest power of two below `size` (at least 2)."""
    return int(1 << ((size - 1).bit_length() - 1))


def inclusion(index: int, size: int) -> list[Span]:
    """The subtrees whose hashes prove that leaf `index` is in the tree of `size` leaves, from the leaf up."""
    if not 0 <= index < size:
        raise ValueError(f"there is no leaf {index} in a tree of {size}")
    out: list[Span] = []
    first, last = 0, size
    while last - first > 1:
        middle = first + _split(last - first)
        if index < middle:
            out.append((middle, last))
            last = middle
        else:
            out.append((first, middle))
            first = middle
    return out[::-1]


def consistency(old: int, new: int) -> list[Span]:
    """The subtrees whose hashes prove that the tree of `old` leaves is the beginning of the tree of `new`."""
    if not 0 <= old <= new:
        raise ValueError(f"a tree of {old} is not the beginning of one of {new}")
    if old in (0, new):
        return []
    out: list[Span] = []
    first, last, whole = 0, new, True  # whole: the old tree is complete here and its root known to whoever asks
    while old - first != last - first:
        middle = first + _split(last - first)
        if old <= middle:
            out.append((middle, last))
            last = middle
        else:
            out.append((first, middle))
            first, whole = middle, False
    return ([] if whole else [(first, last)]) + out[::-1]


def root_of_inclusion(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes | None:
    """The root that this path leads to from the leaf's hash; None when it cannot be a path of leaf `index` in `size`."""
    if not 0 <= index < size:
        return None
    fn, sn, out = index, size - 1, leaf
    for hash in path:
        if sn == 0 or len(hash) != HASH_BYTES:
            return None
        if fn & 1 or fn == sn:
            out = node_hash(hash, out)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            out = node_hash(out, hash)
        fn, sn = fn >> 1, sn >> 1
    return out if sn == 0 else None


def included(index: int, size: int, leaf: bytes, path: Sequence[bytes], root: bytes) -> bool:
    """Whether `path` proves that the leaf with this hash is number `index` of the tree of `size` leaves with this root."""
    return root_of_inclusion(index, size, leaf, path) == root


def consistent(old: int, new: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether `path` proves that the tree of `new` leaves begins with the tree of `old`."""
    if not 0 <= old <= new or any(len(hash) != HASH_BYTES for hash in path):
        return False
    if old == new:
        return old_root == new_root and not path
    if old == 0:
        return old_root == EMPTY and not path
    hashes = [old_root, *path] if not old & (old - 1) else list(path)
    if not hashes:
        return False
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    was = now = hashes[0]
    for hash in hashes[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            was, now = node_hash(hash, was), node_hash(hash, now)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            now = node_hash(now, hash)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and was == old_root and now == new_root
