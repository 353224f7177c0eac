"""Turns English text into vectors with a static table that ships in the wheel: numpy only, offline, deterministic.

A text's vector is the weighted mean of its WordPiece tokens' vectors, of unit length. The table knows English words and
ASCII identifiers. Text of which too little is known (other scripts, emoji, bare punctuation) gets *no* vector: with a shared
"unknown" vector all such texts would look identical. The table was distilled from all-MiniLM-L6-v2, see data/NOTICE.

numpy is imported by this module; callers that must start fast import it late.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from projectmem_projections.errors import ProjectionError

TABLE = Path(__file__).parent / "data" / "static-256.npz"
MODEL = "static-256"
REVISION = "79bac3aa1eb16e46977dd312ab2209b3276c7b3f035434be94953c9a2a2758c6"  # SHA-256 of the table file
DIM = 256
NORMALISATION = "l2"
TOKENS_MAX = 256
KNOWN_PERCENT = 50  # of the letters of a text's words must lie in known ones, else it has no vector
_WORD_MAX = 100
_CACHE_MAX = 100_000

# A word of letters and digits, one CJK ideograph, or one mark.
_PIECES = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3400-\u9fff\uf900-\ufaff]+|[^\w\s]|_")


class Space(Protocol):
    """An embedder: texts to unit vectors of one named space, and single words to weighted vectors (see `Embedder`)."""

    model: str
    revision: str
    dim: int
    normalisation: str

    def encode(self, texts: list[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Unit vectors of shape (n, dim), and which texts have one."""

    def words(self, text: str, most: int) -> NDArray[np.float32]:
        """Weighted vectors of the known words of a text, all of one space (not necessarily that of `encode`)."""


class Embedder:
    """The static table, loaded once (about 60 ms). `model`, `revision`, `dim` name the vector space it speaks."""

    model = MODEL
    revision = REVISION
    dim = DIM
    normalisation = NORMALISATION

    def __init__(self, table: Path = TABLE) -> None:
        try:
            with np.load(table, allow_pickle=False) as data:
                words = str(data["vocab"]).split("\n")
                self._vectors: NDArray[np.int8] = data["q"]
                self._scales: NDArray[np.float32] = data["s"].astype(np.float32)
        except (OSError, ValueError, KeyError) as error:
            raise ProjectionError(f"the embedding table {table} cannot be read ({error}): reinstall projectmem-gate") from error
        self._ids = {word: number for number, word in enumerate(words)}
        self._cache: dict[str, tuple[int, ...]] = {}

    def vocabulary(self) -> list[str]:
        """The table's words, in its order."""
        return list(self._ids)

    def encode(self, texts: list[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Vectors of shape (n, 256), float32, unit length; and a mask of shape (n,): false where a text has no vector.

        Rows without a vector are zero. Deterministic: the same text gives the same bytes, alone or in a batch.
        """
        out = np.zeros((len(texts), DIM), np.float32)
        known = np.zeros(len(texts), np.bool_)
        for row, text in enumerate(texts):
            ids = self._tokens(text)
            if not ids:
                continue
            # Summed row by row, not by a matrix product, whose order of additions depends on the machine.
            total = (self._vectors[ids] * self._scales[ids, None]).sum(axis=0, dtype=np.float32)
            length = float(np.sqrt(np.square(total, dtype=np.float64).sum()))
            if length > 0:
                out[row] = total / np.float32(length)
                known[row] = True
        return out, known

    def words(self, text: str, most: int) -> NDArray[np.float32]:
        """One vector for each known word of a text, shape (n, 256), not of unit length: its length is the word's weight."""
        ids = [tokens for piece in _PIECES.findall(_fold(text)) if piece.isalnum() and (tokens := self._word(piece))][:most]
        if not ids:
            return np.zeros((0, DIM), np.float32)
        flat = [number for tokens in ids for number in tokens]
        starts = np.cumsum([0, *(len(tokens) for tokens in ids[:-1])])
        out: NDArray[np.float32] = np.add.reduceat(self._vectors[flat] * self._scales[flat, None], starts, axis=0)
        return out

    def _tokens(self, text: str) -> list[int]:
        """Token numbers of a text, at most TOKENS_MAX; empty when too little of it is known."""
        ids: list[int] = []
        seen = understood = 0
        for piece in _PIECES.findall(_fold(text)):
            tokens = self._word(piece)
            if piece.isalnum() and not piece.isdigit():
                seen += len(piece)
                understood += len(piece) if tokens else 0
            ids.extend(tokens)
            if len(ids) >= TOKENS_MAX:
                break
        if not understood or understood * 100 < seen * KNOWN_PERCENT:
            return []
        return ids[:TOKENS_MAX]

    def _word(self, word: str) -> tuple[int, ...]:
        """Greedy longest-match WordPiece of one word; empty when any rest of it is not in the vocabulary."""
        found = self._cache.get(word)
        if found is not None:
            return found
        tokens: list[int] = []
        start = 0
        while start < len(word) <= _WORD_MAX:
            end = len(word)
            prefix = "##" if start else ""
            while end > start and prefix + word[start:end] not in self._ids:
                end -= 1
            if end == start:
                break
            tokens.append(self._ids[prefix + word[start:end]])
            start = end
        result = tuple(tokens) if start == len(word) else ()
        if len(self._cache) < _CACHE_MAX:
            self._cache[word] = result
        return result


@lru_cache(maxsize=1)
def default() -> Embedder:
    """The shipped embedder, loaded on first use and shared by the process."""
    return Embedder()


def table_matches() -> bool:
    """Whether the shipped table is the one REVISION names (reads the whole file; for `doctor` and tests)."""
    return hashlib.sha256(TABLE.read_bytes()).hexdigest() == REVISION


def _fold(text: str) -> str:
    """Lower case without accents."""
    text = text.lower()
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def small(embedder: Embedder) -> bytes:
    """`data/words-32.bin`, see `nearness`: the table's pieces of up to 20 ASCII characters in their first 32 directions.

    Directions are ordered by what they explain (the table was made so), and each vector is stretched to the length that it has
    in all 256, since its length is the word's weight.
    """
    records = []
    for word, number in embedder._ids.items():
        name = word.encode("ascii", "replace")
        if len(name) > 20 or not word.isascii():
            continue
        whole = embedder._vectors[number].astype(np.float64) * float(embedder._scales[number])
        part = whole[:32]
        length, short = float(np.sqrt((whole * whole).sum())), float(np.sqrt((part * part).sum()))
        if not short:
            continue
        part = part * (length / short)
        step = max(1, int(np.ceil(float(np.abs(part).max()) * 1_000_000 / 127)))  # in millionths
        values = np.clip(np.rint(part * 1_000_000 / step), -127, 127).astype(np.int8)
        records.append(name.ljust(20, b"\0") + values.tobytes() + min(65_535, step).to_bytes(2, "little"))
    return b"".join(sorted(records))
