"""Builds and opens what recall reads: one published generation of documents and vectors, plus the newer tail of the log.

A generation is built aside and published whole; a reader that cannot use it, or part of it, says why in `notes` and serves
what is left: without vectors lexically, without a corpus straight from the log. Nothing here ever writes to the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from projectmem_projections import background, calibrations, published, vectors
from projectmem_projections import corpus as corpora
from projectmem_projections.calibration import BASE_COUNT
from projectmem_projections.documents import Document, Facts
from projectmem_projections.following import Follower
from projectmem_projections.glance import current, discard, folder, open_generation, released, together
from projectmem_projections.vectors import Vectors, VectorsError

if TYPE_CHECKING:
    from projectmem_projections.embed import Space
    from projectmem_projections.searching import Search
    from projectmem_projections.utility import Experience

__all__ = ["Recollection", "current", "discard", "refresh"]

TAIL_MAX = 500  # newer documents, or removals, that are served beside a generation before the next one is built


def refresh(home: str, embedder: Space | None) -> list[str]:
    """Build a generation from the whole log and publish it. Returns what had to be left out (problems of the log, no vectors).

    One builder at a time: where another one is at work, this returns at once with a note. Raises ProjectionError or OSError when
    it cannot be built; the generation in use is left alone.
    """
    notes: list[str] = []

    def build(target: str) -> None:
        follower, facts = Follower(home), Facts()
        facts.apply(follower)
        notes.extend(follower.problems)
        documents = facts.documents()
        held = {document.id: other for document, other in facts.waiting()}
        corpora.write(target, documents, follower.position, facts.changed_at, facts.experience.to_state(), held)
        missing = "" if embedder is None else vectors.available()
        if missing:
            notes.append(missing)
        elif embedder is not None:
            _write_vectors(target, documents, embedder, follower)
        if len(documents) > BASE_COUNT:
            _measure(home, target, embedder if not missing else None, follower)

    if published.publish(folder(home), build) is None:
        notes.append("another process is building the recall generation")
    return notes


def _measure(home: str, target: str, embedder: Space | None, follower: Follower) -> None:
    """How near unrelated questions come in the new generation: the floor goes by it."""
    corpus = corpora.Corpus(target)
    try:
        index = Vectors(target, embedder, follower.seqs) if embedder is not None else None
        background.measure(target, corpus, index, embedder, calibrations.load(folder(home), None).calibration)
    finally:
        corpus.close()


def _write_vectors(target: str, documents: list[Document], embedder: Space, follower: Follower) -> None:
    encoded, known = embedder.encode([d.searched for d in documents])
    ids = [d.id for d, has in zip(documents, known, strict=True) if has]
    vectors.write(target, ids, encoded[known], embedder, follower.seqs)


class Recollection:
    """What recall reads, opened once and caught up with the log at each question.

    notes   what is not served and why (for people and for the record);  damaged  whether a rebuild would mend it
    """

    def __init__(self, home: str, embedder: Space | None) -> None:
        self.home, self.embedder = home, embedder
        self.notes: list[str] = []
        self.damaged = False
        self._generation: str | None = None
        self._search: Search | None = None
        self.calibration = calibrations.load(folder(home), None).calibration
        self._open()

    def _open(self) -> None:
        from projectmem_projections.searching import Search

        self._generation = current(self.home)
        opened = open_generation(self.home, self._generation)
        self.notes, self.damaged = list(opened.notes), opened.damaged
        loaded = calibrations.load(folder(self.home), self._generation)
        self.calibration = loaded.calibration
        self.notes.extend(loaded.problems)
        self._follower, self._tail = opened.follower, opened.tail
        index = None
        if opened.corpus is not None and self.embedder is not None:
            seqs = {stream: seq for stream, (_, _, seq) in opened.corpus.position.items() if seq}
            try:
                index = Vectors(self._generation or "", self.embedder, seqs)
            except VectorsError as error:
                self.damaged = True
                self.notes.append(f"words only, no vectors: {error}")
        embedder = self.embedder if opened.corpus is None or index is not None else None
        self._search = Search(opened.corpus, index, embedder, self._tail)

    def search(self) -> Search:
        """Caught up with the log and with the generation in use. Raises ProjectionError when the log cannot be read."""
        if current(self.home) != self._generation:
            self.close()
            self._open()
        elif self._follower.behind():
            self._tail.apply(self._follower)
            corpus = self._search.corpus if self._search is not None else None
            if self._follower.rewritten or (corpus is not None and released(corpus, self._tail)):
                self.close()
            elif self._search is not None:
                self._search.take_tail(self._tail)
        if self._search is None:
            self._open()
        assert self._search is not None
        return self._search

    def experience(self) -> Experience:
        """What recalls led to, of the generation and the newer tail together."""
        return together(self._search.corpus if self._search else None, self._tail)

    @property
    def stale(self) -> bool:
        """Whether a new generation should be built: there is none, it is damaged, or much has happened since."""
        tail = self._tail
        newer = len(tail.written) + len(tail.fails) + len(tail.gone) + len(tail.closed)
        return self._generation is None or self.damaged or newer > TAIL_MAX

    def close(self) -> None:
        """Let go of the generation's files."""
        if self._search is not None and self._search.corpus is not None:
            self._search.corpus.close()
        self._search = None
