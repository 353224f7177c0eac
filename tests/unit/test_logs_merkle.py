"""Merkle trees against the published certificate-transparency vectors, and against the definition of RFC 6962 itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_logs.digest import sha256
from projectmem_logs.merkle import EMPTY, Frontier, consistency, consistent, included, inclusion, leaf_hash, scan

# The reference data of certificate-transparency: eight leaves, the root after each, and some proofs.
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
A, B, C, D = (
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
)
E = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
INCLUSION = {(0, 1): [], (0, 8): [A, B, C], (5, 8): [D, E, ROOTS[4]], (2, 3): [ROOTS[2]]}
CONSISTENCY = {
    (1, 1): [],
    (1, 8): [A, B, C],
    (6, 8): ["0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a", E, ROOTS[4]],
    (2, 5): [B, D],
}


def published() -> list[bytes]:
    """Hashes of the published leaves."""
    return [leaf_hash(bytes.fromhex(leaf)) for leaf in LEAVES]


def mth(leaves: Sequence[bytes]) -> bytes:
    """The definition of the tree's hash, word for word from the RFC."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"").digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return sha256(b"\1" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def path_of(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """PATH(m, D) of the RFC."""
    if len(leaves) < 2:
        return []
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return [*path_of(m, leaves[:k]), mth(leaves[k:])] if m < k else [*path_of(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: Sequence[bytes], whole: bool) -> list[bytes]:
    """SUBPROOF(m, D, b) of the RFC."""
    if m == len(leaves):
        return [] if whole else [mth(leaves)]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    if m <= k:
        return [*subproof(m, leaves[:k], whole), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


def some(n: int) -> list[bytes]:
    """Hashes of n different leaves."""
    return [leaf_hash(str(i).encode()) for i in range(n)]


def test_roots_are_the_published_ones() -> None:
    """After each leaf, grown one by one and in one pass."""
    tree = Frontier()
    assert tree.root().hex() == ROOTS[0] == EMPTY.hex()
    for leaf, root in zip(published(), ROOTS[1:], strict=True):
        tree.push(leaf)
        assert tree.root().hex() == root
    assert scan(published(), range(9)) == {(0, n): bytes.fromhex(root) for n, root in enumerate(ROOTS)}


@pytest.mark.parametrize(("case", "path"), INCLUSION.items(), ids=str)
def test_inclusion_proofs_are_the_published_ones(case: tuple[int, int], path: list[str]) -> None:
    """Made and verified."""
    index, size = case
    found = scan(published(), (), inclusion(index, size))
    made = [found[span] for span in inclusion(index, size)]
    assert [hash.hex() for hash in made] == path
    assert included(index, size, published()[index], made, bytes.fromhex(ROOTS[size]))


@pytest.mark.parametrize(("case", "path"), CONSISTENCY.items(), ids=str)
def test_consistency_proofs_are_the_published_ones(case: tuple[int, int], path: list[str]) -> None:
    """Made and verified."""
    old, new = case
    found = scan(published(), (), consistency(old, new))
    made = [found[span] for span in consistency(old, new)]
    assert [hash.hex() for hash in made] == path
    assert consistent(old, new, bytes.fromhex(ROOTS[old]), bytes.fromhex(ROOTS[new]), made)


def test_every_proof_up_to_forty_leaves_is_the_definition_s() -> None:
    """All indices and all pairs of sizes, against the recursive definition."""
    leaves = some(40)
    roots = [mth(leaves[:n]) for n in range(41)]
    for size in range(1, 41):
        spans = {i: inclusion(i, size) for i in range(size)} | {-m: consistency(m, size) for m in range(1, size + 1)}
        found = scan(leaves[:size], [size], [s for some_spans in spans.values() for s in some_spans])
        assert found[0, size] == roots[size]
        for i in range(size):
            path = [found[s] for s in spans[i]]
            assert path == path_of(i, leaves[:size]) and included(i, size, leaves[i], path, roots[size])
        for m in range(1, size + 1):
            path = [found[s] for s in consistency(m, size)]
            assert path == subproof(m, leaves[:size], True) and consistent(m, size, roots[m], roots[size], path)


@given(st.data())
def test_no_changed_proof_passes(data: st.DataObject) -> None:
    """Another index, size, leaf, root, or a path cut, extended, reordered or changed in one bit: refused."""
    size = data.draw(st.integers(2, 70))
    index = data.draw(st.integers(0, size - 1))
    leaves, spans = some(size), inclusion(index, size)
    found = scan(leaves, [size], spans)
    path, root = [found[s] for s in spans], found[0, size]
    wrong = data.draw(st.integers(0, size + 3))
    if wrong != index:
        assert not included(wrong, size, leaves[index], path, root)
    at, bit = data.draw(st.integers(0, len(path) - 1)), data.draw(st.integers(0, 255))
    flipped = bytearray(path[at])
    flipped[bit // 8] ^= 1 << bit % 8
    broken = [path[:at] + path[at + 1 :], [*path, root], [*path[:at], bytes(flipped), *path[at + 1 :]], [*path[:at], b"short"]]
    assert not any(included(index, size, leaves[index], p, root) for p in broken)
    assert not included(index, size, leaves[index - 1], path, root)
    assert not included(index, size, leaves[index], path, leaves[0])


@given(st.data())
def test_no_forked_tree_passes_for_a_grown_one(data: st.DataObject) -> None:
    """A tree that changed a leaf the old one had has no proof that passes: neither its own nor the honest one."""
    new = data.draw(st.integers(2, 70))
    old = data.draw(st.integers(1, new - 1))
    at = data.draw(st.integers(0, old - 1))
    leaves = some(new)
    forked = [*leaves[:at], leaf_hash(b"forged"), *leaves[at + 1 :]]
    spans = consistency(old, new)
    honest, false = scan(leaves, [old, new], spans), scan(forked, [old, new], spans)
    honest_path, false_path = [honest[s] for s in spans], [false[s] for s in spans]
    assert consistent(old, new, honest[0, old], honest[0, new], honest_path)
    for path in (honest_path, false_path, [], honest_path[:-1], [*honest_path, honest_path[-1]]):
        assert not consistent(old, new, honest[0, old], false[0, new], path)
    assert not consistent(old, new, honest[0, new], honest[0, old], honest_path)
    assert not consistent(new, old, honest[0, new], honest[0, old], honest_path)


def test_the_empty_tree_is_the_beginning_of_every_tree() -> None:
    """By convention, with an empty proof."""
    root = scan(some(5), [5])[0, 5]
    assert consistency(0, 5) == consistency(5, 5) == [] and consistent(0, 5, EMPTY, root, [])
    assert not consistent(0, 5, root, root, []) and not consistent(5, 5, root, root, [root])


def test_impossible_proofs_are_refused() -> None:
    """Nothing is made for a leaf or a size that is not there."""
    for index, size in ((5, 5), (-1, 3), (0, 0)):
        with pytest.raises(ValueError, match="no leaf"):
            inclusion(index, size)
    for old, new in ((3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="not the beginning"):
            consistency(old, new)


def test_a_long_tree_is_hashed_in_little_memory() -> None:
    """One hash per bit of the size is all that is kept."""
    tree = Frontier()
    for i in range(5_000):
        tree.push(leaf_hash(i.to_bytes(4, "big")))
        assert len(tree._roots) <= (i + 1).bit_length()
