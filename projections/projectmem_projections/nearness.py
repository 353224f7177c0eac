"""How near words are to each other without numpy [H]: what `alignment` does, on a table of 32 numbers a word.

The first 32 directions of the embedding table tell words apart about as well as all 256 (measured: no difference). The file is
made from that table by `embed.small()`; integers only, so that all machines agree. It is read on first use, whole.

data/words-32.bin   records of WIDTH bytes in the order of their bytes: the word piece in ASCII (`##` for one that goes on),
                    filled up with NULs to NAMED; then 32 signed bytes; then the step of these as a little-endian u16
"""

from __future__ import annotations

import os
import re
from math import isqrt
from operator import mul

from projectmem_logs import files

from projectmem_projections.lexical import UNIT, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

TABLE = os.path.join(os.path.dirname(__file__), "data", "words-32.bin")
NAMED, DIMENSIONS = 20, 32
WIDTH = NAMED + DIMENSIONS + 2
WORDS_MAX = {True: 24, False: 60}  # of a question, of a document: as many as a hook has time for
LONG = 1_000  # length of a word's direction: a product of two is UNIT times 100
HEAVY = 8_000  # weight of a word that counts in full, in thousandths; see `alignment.HEAVY`
UNKNOWN = ((0,) * DIMENSIONS, 5_000)
CACHE_MAX = 20_000
_table: list[bytes] = []
_known: dict[str, tuple[tuple[int, ...], int] | None] = {}
_compiled: list[re.Pattern[str]] = []

Vector = tuple[tuple[int, ...], int]


class Words:
    """The words of a text, each once: `vectors`, (direction of length LONG, weight in thousandths) of each, by the word.

    A word that the table does not know, as of another script, has no direction: only the same word is near to it.
    """

    __slots__ = ("vectors",)

    def __init__(self, text: str, question: bool = False) -> None:
        if not _compiled:
            _compiled.append(re.compile(r"[a-z0-9]+"))
        self.vectors: dict[str, Vector] = {}
        words = _compiled[0].findall(text.lower())
        if not text.isascii():
            words += [token for token in tokens(text) if not token.isascii()]
        for word in words:
            if word not in self.vectors:
                self.vectors[word] = _word(word) or UNKNOWN
                if len(self.vectors) >= WORDS_MAX[question]:
                    break


def compare(query: Words, document: Words) -> dict[str, int]:
    """`unmatched`, `uncovered`, `unlike` and `heaviest`, see `evidence`; in ten-thousandths."""
    if not query.vectors or not document.vectors:
        return summed([], [])
    theirs = document.vectors
    weights, missing = [], []
    for word, (direction, weight) in query.vectors.items():
        near = UNIT if word in theirs else max(sum(map(mul, direction, other)) for other, _ in theirs.values()) // 100
        weights.append(weight)
        missing.append(UNIT - max(0, min(UNIT, near)))
    return summed(weights, missing)


def summed(weights: Sequence[int], missing: Sequence[int]) -> dict[str, int]:
    """The features, from the weight of each word in thousandths and how far the nearest word is, 0 .. UNIT."""
    if not weights:
        return {"unmatched": UNIT, "uncovered": UNIT, "unlike": UNIT, "heaviest": 0}
    far = list(map(mul, weights, missing))
    squares = [w * w for w in weights]
    return {
        "unmatched": min(UNIT, max(far) // HEAVY),
        "uncovered": sum(far) // sum(weights),
        "unlike": sum(map(mul, squares, missing)) // sum(squares),
        "heaviest": min(UNIT, max(weights) * UNIT // HEAVY),
    }


def _word(word: str) -> Vector | None:
    """A word's direction and weight, of its longest pieces from the left; None where a rest of it is unknown."""
    if word in _known:
        return _known[word]
    total, start = [0] * DIMENSIONS, 0
    while start < len(word):
        end = min(len(word), start + NAMED - 2)
        while end > start and (found := _piece(("##" if start else "") + word[start:end])) is None:
            end -= 1
        if end == start or found is None:
            break
        total = [a + b for a, b in zip(total, found, strict=True)]
        start = end
    length = isqrt(sum(map(mul, total, total)))
    known = None if start < len(word) or not length else (tuple([LONG * a // length for a in total]), length // 10)
    if len(_known) >= CACHE_MAX:
        _known.clear()
    _known[word] = known
    return known


def _piece(name: str) -> list[int] | None:
    """The vector of a word piece in ten-thousandths, None where the table has not got it. By halving: nothing is unpacked."""
    if not _table:
        _table.append(files.read(TABLE))
    table, key = _table[0], name.encode().ljust(NAMED, b"\0")
    low, high = 0, len(table) // WIDTH
    while low < high:
        middle = (low + high) // 2
        if table[middle * WIDTH : middle * WIDTH + NAMED] < key:
            low = middle + 1
        else:
            high = middle
    at = low * WIDTH
    if table[at : at + NAMED] != key:
        return None
    step = table[at + WIDTH - 2] + 256 * table[at + WIDTH - 1]
    return [(b - 256 if b > 127 else b) * step // 100 for b in table[at + NAMED : at + WIDTH - 2]]
