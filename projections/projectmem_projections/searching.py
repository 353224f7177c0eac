"""Hybrid retrieval over one recall generation and the newer tail of the log: lexical and vector candidates with their scores.

Says *what is similar*, inside a scope; whether anything is said at all is decided by the caller. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from projectmem_projections import alignment, evidence, lexical
from projectmem_projections.corpus import Corpus
from projectmem_projections.documents import Facts
from projectmem_projections.glance import FEATURED, POOL, UNIT, Candidate, looked_at, overtaken, similarity
from projectmem_projections.scope import Scope, admits, admitted
from projectmem_projections.vectors import Vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from projectmem_projections.embed import Space

FETCHED = 24  # documents of the corpus that are read for one question: the FEATURED nearest, and some that come close


class Search:
    """Ready to answer: an optional corpus, its optional vectors, and the documents and removals that are newer than both."""

    def __init__(self, corpus: Corpus | None, vectors: Vectors | None, embedder: Space | None, tail: Facts) -> None:
        self.corpus, self.vectors, self.embedder = corpus, vectors, embedder
        if corpus is not None:
            self._scope_of: NDArray[np.uint32] = np.frombuffer(corpus.scope_bytes, "<u4")
            self._expires: NDArray[np.int64] = np.frombuffer(corpus.expiry_bytes, "<i8")
        if corpus is not None and vectors is not None:
            row_of = {id_: row for row, id_ in enumerate(corpus.ids())}
            if not row_of.keys() >= set(vectors.ids):
                raise corpus.damaged("the index has documents that the corpus has not")
            self._corpus_row: NDArray[np.int64] = np.array([row_of[id_] for id_ in vectors.ids], np.int64)
            self._vector_row = {int(row): number for number, row in enumerate(self._corpus_row)}
        self.take_tail(tail)

    def take_tail(self, tail: Facts) -> None:
        """Replace what is known of the events after the corpus."""
        self._tail = tail.documents()
        self._tail_counts = [lexical.counts(d.searched) for d in self._tail]
        self._tail_mean = sum(n for _, n in self._tail_counts) / (len(self._tail_counts) or 1)
        self._overtaken: set[int] = set()
        if self.corpus is not None:
            self._overtaken = overtaken(self.corpus, tail)
        self._tail_vectors: list[NDArray[np.float32] | None] = [None] * len(self._tail)
        if self.embedder is not None and self._tail:
            vectors, known = self.embedder.encode([d.searched for d in self._tail])
            self._tail_vectors = [v if k else None for v, k in zip(vectors, known, strict=True)]

    @property
    def count(self) -> int:
        """Documents that are searched, whatever their scope."""
        return (self.corpus.count if self.corpus else 0) + len(self._tail)

    def nearest(self, query: str) -> list[Candidate]:
        """Candidates whatever their scope and age: for measuring a store as a whole, never shown to anybody."""
        return self._found(query, None, 0)

    def candidates(
        self, query: str, reader: Scope, now: int, look: bool = True, without: frozenset[str] = frozenset()
    ) -> list[Candidate]:
        """At most FETCHED documents of the corpus and all matching ones of the tail, by falling similarity, then id.

        look     whether the nearest are looked at closely, as whoever shows them needs; it changes nothing in what is found
        without  ids of documents that are passed over, as if they were not stored
        """
        return [] if reader.empty or not query.strip() else self._found(query, reader, now, look, without)

    def _found(
        self, query: str, reader: Scope | None, now: int, look: bool = True, without: frozenset[str] = frozenset()
    ) -> list[Candidate]:
        vector = self._embed(query)
        words = lexical.query_tokens(query)
        stored = self.corpus.postings(words) if self.corpus else {}
        having = {token: len(rows) // 4 for token, (rows, _) in stored.items()}
        for table, _ in self._tail_counts:
            for token in words:
                if token in table:
                    having[token] = having.get(token, 0) + 1
        weighed = lexical.Query(words, having, self.count)
        found = self._in_corpus(weighed, stored, vector, reader, now) + self._in_tail(weighed, vector, reader, now)
        found = [c for c in found if c.document.id not in without] if without else found
        found.sort(key=lambda c: (-c.similarity, c.document.id))
        return self._aligned(query, looked_at(query, weighed, found)) if look else found

    def _aligned(self, query: str, found: list[Candidate]) -> list[Candidate]:
        """The candidates with the features that need vectors, where they have a cosine."""
        near = [c for c in found[:FEATURED] if c.cosine is not None]
        if self.embedder is None or not near:
            return found
        asked = alignment.Words(evidence.lasting(query), self.embedder)
        for candidate in near:
            compared = alignment.compare(asked, alignment.Words(candidate.document.searched, self.embedder))
            candidate.features = {**candidate.features, **compared, "cosine": max(0, candidate.cosine or 0)}
        return found

    def _embed(self, query: str) -> NDArray[np.float32] | None:
        if self.embedder is None:
            return None
        vectors, known = self.embedder.encode([query])
        return vectors[0] if known[0] else None

    def _in_tail(
        self, query: lexical.Query, vector: NDArray[np.float32] | None, reader: Scope | None, now: int
    ) -> list[Candidate]:
        mean = self.corpus.mean if self.corpus and self.corpus.count else self._tail_mean
        found = []
        for document, counted, own in zip(self._tail, self._tail_counts, self._tail_vectors, strict=True):
            if reader is not None and (not admits(reader, document.scope) or 0 < document.expires_at <= now):
                continue
            worded = query.text(counted, mean)
            cosine = None if vector is None or own is None else _score(float((vector * own).sum()))
            if worded[0] or (cosine or 0) > 0:
                found.append(Candidate(document, cosine, *worded))
        return found

    def _in_corpus(
        self,
        query: lexical.Query,
        stored: dict[str, tuple[bytes, bytes]],
        vector: NDArray[np.float32] | None,
        reader: Scope | None,
        now: int,
    ) -> list[Candidate]:
        if self.corpus is None or not self.corpus.count:
            return []
        allowed = np.ones(self.corpus.count, np.bool_) if reader is None else self._allowed(reader, now)
        if not allowed.any():
            return []
        worded = self._lexical(query, stored, allowed)
        cosines = self._cosines(vector, allowed, worded)
        found = []
        for row in worded.keys() | cosines.keys():
            words, cosine = worded.get(row, (0, 0, 0)), cosines.get(row)
            found.append((-similarity(cosine, words[0], words[2]), row, cosine, words))
        found.sort(key=lambda one: one[:2])
        documents = self.corpus.documents(sorted(row for _, row, _, _ in found[:FETCHED]))
        return [Candidate(documents[row], cosine, *words) for _, row, cosine, words in found[:FETCHED]]

    def _cosines(
        self, vector: NDArray[np.float32] | None, allowed: NDArray[np.bool_], worded: Mapping[int, object]
    ) -> dict[int, int]:
        """Row -> cosine of the nearest rows, and of those that share words."""
        cosines: dict[int, int] = {}
        if self.vectors is None or vector is None:
            return cosines
        index_rows = np.flatnonzero(allowed[self._corpus_row])
        for number, cosine in self.vectors.search(vector, index_rows, POOL):
            cosines[int(self._corpus_row[number])] = _score(cosine)
        rest = [row for row in worded if row not in cosines and row in self._vector_row]
        for row, cosine in zip(rest, self.vectors.cosines(vector, [self._vector_row[row] for row in rest]), strict=True):
            cosines[row] = _score(cosine)
        return cosines

    def _allowed(self, reader: Scope, now: int) -> NDArray[np.bool_]:
        """Rows inside the scope that are alive: not expired, not overtaken by the tail."""
        assert self.corpus is not None
        inside = np.array(admitted(reader, self.corpus.scopes), np.bool_)
        allowed: NDArray[np.bool_] = inside[self._scope_of] & ((self._expires == 0) | (self._expires > now))
        allowed[list(self._overtaken)] = False
        return allowed

    def _lexical(
        self, query: lexical.Query, stored: dict[str, tuple[bytes, bytes]], allowed: NDArray[np.bool_]
    ) -> dict[int, tuple[int, int, int]]:
        """`lexical.Query.rows` of the POOL best allowed rows; of equals the earlier rows."""
        assert self.corpus is not None
        sums = np.zeros(self.corpus.count, np.int64)
        postings = []
        for token, weight in query.weights.items():
            if token in stored:
                try:
                    rows = np.frombuffer(stored[token][0], "<u4")
                    sums[rows] += weight * np.frombuffer(stored[token][1], "<u2").astype(np.int64)
                except (IndexError, ValueError) as error:  # rows that there are not, or a torn column
                    raise self.corpus.damaged(error) from None
                postings.append((weight, rows))
        sums[~allowed] = 0
        positive = np.flatnonzero(sums)
        scores = np.minimum(UNIT, sums[positive] // (query.total or 1))
        best = positive[np.argsort(-scores, kind="stable")][:POOL]
        best = best[sums[best] >= (query.total or 1)]  # less than a ten-thousandth is nothing
        heaviest, covered = np.zeros((2, len(best)), np.int64)
        for weight, rows in postings:
            inside = np.where(_has(rows, best), weight, 0)
            np.maximum(heaviest, inside, out=heaviest)
            covered += inside
        told = zip(best.tolist(), sums[best].tolist(), heaviest.tolist(), covered.tolist(), strict=True)
        return {row: query.finish(*scores) for row, *scores in told}


def _has(rows: NDArray[np.uint32], asked: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the asked rows the ascending, not empty `rows` hold."""
    at = np.minimum(np.searchsorted(rows, asked.astype(rows.dtype)), len(rows) - 1)
    found: NDArray[np.bool_] = rows[at] == asked
    return found


def space_of(embedder: Space | None) -> str:
    """Name of the vector space of an embedder, as calibrations know it; "lexical" without one."""
    return f"{embedder.model}/{embedder.revision[:8]}" if embedder is not None else "lexical"


def _score(cosine: float) -> int:
    return max(-UNIT, min(UNIT, round(cosine * UNIT)))
