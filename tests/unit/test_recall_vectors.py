"""The vector index either matches what is expected of it or is not used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from projectmem_projections import vectors
from projectmem_projections.vectors import Vectors, VectorsError


class Space:
    model, revision, dim, normalisation = "m", "r", 4, "l2"


POSITION = {"s": 7}
ROWS = np.eye(4, dtype=np.float32)
IDS = ["a", "b", "c", "d"]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    vectors.write(str(tmp_path), IDS, ROWS, Space(), POSITION)
    return str(tmp_path)


def test_search_is_exact_and_filtered_inside(folder: str) -> None:
    index = Vectors(folder, Space(), POSITION)
    query = np.array([0.8, 0.6, 0, 0], np.float32)
    assert [row for row, _ in index.search(query, np.arange(4), 2)] == [0, 1]
    assert [row for row, _ in index.search(query, np.array([1, 3]), 2)] == [1, 3]
    assert index.search(query, np.array([], np.int64), 2) == []
    assert index.cosines(query, [1]) == [pytest.approx(0.6)]


@pytest.mark.parametrize("share", [1, 10, 11, 60, 100])
def test_both_selectors_agree_with_a_plain_product(tmp_path: Path, share: int) -> None:
    random = np.random.default_rng(share)
    rows = random.normal(size=(500, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors.write(str(tmp_path), [str(i) for i in range(500)], rows, Space(), POSITION)
    allowed = np.sort(random.choice(500, 5 * share, replace=False))
    found = Vectors(str(tmp_path), Space(), POSITION).search(rows[3], allowed, 10)
    expected = allowed[np.argsort(-(rows[allowed] @ rows[3]), kind="stable")][:10]
    assert [row for row, _ in found] == expected.tolist()


@pytest.mark.parametrize("share", [1, 60, 100])
def test_half_precision_finds_the_same_neighbours(tmp_path: Path, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "FLAT_MAX", 100)
    random = np.random.default_rng(share)
    rows = random.normal(size=(500, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors.write(str(tmp_path), [str(i) for i in range(500)], rows, Space(), POSITION)
    allowed = np.sort(random.choice(500, 5 * share, replace=False))
    index = Vectors(str(tmp_path), Space(), POSITION)
    found = index.search(rows[3], allowed, 5)
    expected = np.sort(rows[allowed] @ rows[3])[::-1][:5]
    assert {row for row, _ in found} <= set(allowed.tolist())
    assert [score for _, score in found] == pytest.approx(expected.tolist(), abs=2e-3)
    assert index.cosines(rows[3], [3]) == [pytest.approx(1, abs=2e-3)]


def test_an_empty_index_is_an_index(tmp_path: Path) -> None:
    vectors.write(str(tmp_path), [], np.zeros((0, 4), np.float32), Space(), {})
    assert Vectors(str(tmp_path), Space(), {}).search(ROWS[0], np.arange(0), 3) == []


@pytest.mark.parametrize(("name", "value"), [("model", "n"), ("revision", "q"), ("dim", 5), ("normalisation", "none")])
def test_another_vector_space_is_a_mismatch(folder: str, name: str, value: Any) -> None:
    other = Space()
    setattr(other, name, value)
    with pytest.raises(VectorsError, match=f"does not match: {name}"):
        Vectors(folder, other, POSITION)


def test_another_log_position_is_a_mismatch(folder: str) -> None:
    with pytest.raises(VectorsError, match="position"):
        Vectors(folder, Space(), {"s": 8})


@pytest.mark.parametrize("name", [vectors.INDEX, vectors.IDS, vectors.MANIFEST])
@pytest.mark.parametrize("harm", ["missing", "empty", "cut", "flipped", "garbage"])
def test_every_kind_of_damage_is_noticed(folder: str, name: str, harm: str) -> None:
    path = Path(folder) / name
    data = path.read_bytes()
    if harm == "missing":
        path.unlink()
    else:
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 1
        path.write_bytes({"empty": b"", "cut": data[:-3], "flipped": bytes(flipped), "garbage": b"\x00\xff" * 40}[harm])
    with pytest.raises(VectorsError):
        Vectors(folder, Space(), POSITION)


def test_ids_that_do_not_belong_to_the_vectors_are_noticed(folder: str) -> None:
    path = Path(folder)
    (path / vectors.IDS).write_text(json.dumps(["a", "b", "c"]))
    manifest = json.loads((path / vectors.MANIFEST).read_text())
    manifest["ids_sha256"] = vectors.hashlib.sha256((path / vectors.IDS).read_bytes()).hexdigest()
    (path / vectors.MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(VectorsError, match="4 rows"):
        Vectors(folder, Space(), POSITION)


def test_vectors_of_the_wrong_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="vectors for"):
        vectors.write(str(tmp_path), ["a"], ROWS, Space(), POSITION)
