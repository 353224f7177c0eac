"""Which words of a query have something near them in a document: finer than one vector for the whole of each. Needs numpy.

Each word of the query is compared with each word of the document in the embedder's space. What a single cosine blurs (the one
word that makes it another problem) stands out as an unmatched word. Only for the few best candidates of a question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from projectmem_projections.lexical import UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from projectmem_projections.embed import Space

WORDS_MAX = 80  # of one text
HEAVY = 8.0  # weight of a word that counts in full: the table's heaviest words weigh about 7


class Words:
    """The known words of a text: unit vectors of shape (n, dim) and their weights of shape (n,)."""

    __slots__ = ("vectors", "weights")

    def __init__(self, text: str, embedder: Space) -> None:
        vectors = embedder.words(text, WORDS_MAX)
        self.weights: NDArray[np.float32] = np.sqrt(np.square(vectors).sum(axis=1))
        self.vectors: NDArray[np.float32] = vectors / np.maximum(self.weights, np.float32(1e-9))[:, None]


def compare(query: Words, document: Words) -> dict[str, int]:
    """`unmatched`, `uncovered`, `heaviest` and `reverse`, see `evidence`; in ten-thousandths."""
    if not len(query.weights) or not len(document.weights):
        return {"unmatched": UNIT, "uncovered": UNIT, "heaviest": 0, "reverse": 0}
    near = np.clip(query.vectors @ document.vectors.T, 0, 1)
    missing = query.weights * (1 - near.max(axis=1))
    unmatched, uncovered = float(missing.max()) / HEAVY, float(missing.sum() / query.weights.sum())
    reverse = float((document.weights * near.max(axis=0)).sum() / document.weights.sum())
    found = {"unmatched": unmatched, "uncovered": uncovered, "reverse": reverse}
    found["heaviest"] = float(query.weights.max()) / HEAVY
    return {name: max(0, min(UNIT, round(UNIT * value))) for name, value in found.items()}
