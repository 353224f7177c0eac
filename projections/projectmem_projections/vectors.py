"""A FAISS index of a recall generation: vectors, the ids of their rows and a manifest, written and read as one.

Files in the generation's folder: `index.faiss` (a bare IndexFlatIP, exact; beyond FLAT_MAX rows in half precision), `ids.json`
(document id of each index row) and `manifest.json`. The manifest names the vector space (model, revision, dimension,
normalisation), the log position, the count and the SHA-256 of the other two; what does not match raises VectorsError and the
caller serves lexically until a rebuild. Texts without a vector have no row. numpy and faiss are imported late: recall works
without faiss installed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from projectmem_projections.errors import ProjectionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INDEX, IDS, MANIFEST = "index.faiss", "ids.json", "manifest.json"
SCHEMA = 1
FLAT_MAX = 50_000  # vectors; more are kept in half precision: half the time and memory, the same neighbours
ARRAY_PERCENT = 10  # up to this share of allowed rows an array of them is searched; above, a bitmap is tested


class VectorsError(ProjectionError):
    """The vector index cannot be used; the message says why. Serve lexically and rebuild from the log."""


class Space(Protocol):
    """What names a vector space: an embedder satisfies it."""

    model: str
    revision: str
    dim: int
    normalisation: str


def available() -> str:
    """Why vectors cannot be used at all in this installation, "" when they can."""
    try:
        _faiss()
    except ImportError as error:
        return f"faiss cannot be imported ({error})"
    return ""


def write(folder: str, ids: Sequence[str], vectors: NDArray[np.float32], space: Space, position: Mapping[str, int]) -> None:
    """Write the three files. `vectors` has shape (len(ids), space.dim), unit rows; `position` is {stream: seq}."""
    import numpy as np

    if vectors.shape != (len(ids), space.dim):
        raise ValueError(f"{vectors.shape} vectors for {len(ids)} ids of dimension {space.dim}")
    faiss = _faiss()
    index = faiss.IndexFlatIP(space.dim)
    if len(ids) > FLAT_MAX:
        index = faiss.IndexScalarQuantizer(space.dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    if len(ids):
        index.add(np.ascontiguousarray(vectors, np.float32))
    index_bytes = faiss.serialize_index(index).tobytes()
    ids_bytes = json.dumps(list(ids)).encode()
    manifest = _manifest(space, position, len(ids), index_bytes, ids_bytes)
    for name, data in ((INDEX, index_bytes), (IDS, ids_bytes), (MANIFEST, json.dumps(manifest, sort_keys=True).encode())):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)


def _manifest(space: Space, position: Mapping[str, int], count: int, index: bytes, ids: bytes) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "model": space.model,
        "revision": space.revision,
        "dim": space.dim,
        "normalisation": space.normalisation,
        "position": dict(position),
        "count": count,
        "index_sha256": hashlib.sha256(index).hexdigest(),
        "ids_sha256": hashlib.sha256(ids).hexdigest(),
    }


class Vectors:
    """An open index: `ids` are the document ids of its rows.

    Raises VectorsError when a file is missing or damaged, when it was made in another vector space, or when it reflects
    another log position than `position` (of the corpus beside it).
    """

    def __init__(self, folder: str, space: Space, position: Mapping[str, int]) -> None:
        files = {}
        for name in (MANIFEST, INDEX, IDS):
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    files[name] = file.read()
            except OSError as error:
                raise VectorsError(f"no vector index: {name} cannot be read ({error.strerror})") from error
        try:
            manifest = json.loads(files[MANIFEST])
            expected = _manifest(space, position, manifest["count"], files[INDEX], files[IDS])
        except (ValueError, KeyError, TypeError) as error:
            raise VectorsError(f"the manifest of the vector index is damaged ({error})") from error
        for name, value in expected.items():
            if manifest.get(name) != value:
                raise VectorsError(f"the vector index does not match: {name} is {manifest.get(name)!r}, expected {value!r}")
        self._open(files[INDEX], files[IDS], space.dim)

    def _open(self, index_bytes: bytes, ids_bytes: bytes, dim: int) -> None:
        import numpy as np

        try:
            self._faiss = _faiss()
        except ImportError as error:
            raise VectorsError(f"faiss cannot be imported ({error})") from error
        try:
            self.ids: list[str] = json.loads(ids_bytes)
            self._index = self._faiss.deserialize_index(np.frombuffer(index_bytes, np.uint8))
        except (ValueError, RuntimeError) as error:
            raise VectorsError(f"the vector index is damaged ({error})") from error
        kinds = (self._faiss.IndexFlatIP, self._faiss.IndexScalarQuantizer)
        if self._index.d != dim or self._index.ntotal != len(self.ids) or not isinstance(self._index, kinds):
            raise VectorsError(f"the vector index has {self._index.ntotal} rows of {self._index.d} for {len(self.ids)} ids")

    def search(self, query: NDArray[np.float32], allowed: NDArray[np.int64], k: int) -> list[tuple[int, float]]:
        """The `k` best of the `allowed` index rows: (row, cosine), best first, ties by row; fewer when fewer are allowed.

        query    shape (dim,), unit length
        allowed  ascending row numbers; empty gives nothing. The filter acts inside the search, so k is never eaten by others.
        """
        import numpy as np

        k = min(k, len(allowed))
        if k <= 0:
            return []
        if len(allowed) == self._index.ntotal:
            selector = None
        elif len(allowed) * 100 <= self._index.ntotal * ARRAY_PERCENT:
            flat = isinstance(self._index, self._faiss.IndexFlatIP)  # the only one that looks at the rows of an array alone
            selector = self._faiss.IDSelectorArray(allowed) if flat else self._faiss.IDSelectorBatch(allowed)
        else:
            bits = np.zeros(self._index.ntotal, np.bool_)
            bits[allowed] = True
            selector = self._faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
        params = self._faiss.SearchParameters(sel=selector) if selector is not None else None
        found = self._index.search(query.reshape(1, -1), k, params=params)
        pairs = [(int(row), float(score)) for score, row in zip(found[0][0], found[1][0], strict=True) if row >= 0]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))

    def cosines(self, query: NDArray[np.float32], rows: Sequence[int]) -> list[float]:
        """The cosine of some rows with the query."""
        return [float((self._index.reconstruct(int(row)) * query).sum()) for row in rows]


def _faiss() -> Any:
    """The library, single-threaded: with two threads a single exact query is two to three times slower."""
    import faiss

    faiss.omp_set_num_threads(1)
    return faiss
