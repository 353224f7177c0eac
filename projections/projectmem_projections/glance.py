"""The light way into recall [H]: documents and lexical candidates without numpy, faiss or an embedder.

Opens the corpus of the current generation and folds the newer tail of the log; where there is no generation, the log itself
is folded, up to a limit. `searching` adds vectors to the same candidates.
"""

from __future__ import annotations

import os

from projectmem_gate.model import Value

from projectmem_projections import calibrations, evidence, lexical, nearness, published
from projectmem_projections import corpus as corpora
from projectmem_projections.calibration import BASE_COUNT
from projectmem_projections.corpus import Corpus, CorpusError
from projectmem_projections.documents import NEVER, Facts
from projectmem_projections.following import Follower
from projectmem_projections.scope import admits
from projectmem_projections.tail import lag, positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from projectmem_projections.documents import Document
    from projectmem_projections.scope import Scope
    from projectmem_projections.utility import Experience

    T = TypeVar("T")

UNIT = lexical.UNIT
POOL = 50  # candidates taken from each search
FEATURED = 8  # of them, so many of the nearest are looked at closely; the rest is never shown
COMPARED = 4  # of these, so many are compared word by word where there are no vectors: about 0.3 ms each
COSINE_SHARE = 70  # per cent of the cosine in the similarity, the rest is cover (measured for the static table)
BYTES_MAX = 16_000_000  # of log that is folded where there is no generation: about 0.2 s


def similarity(cosine: int | None, lexical: int, cover: int) -> int:
    """Cosine and cover in one; the lexical score alone where there is no cosine. In ten-thousandths."""
    if cosine is None:
        return lexical
    return (COSINE_SHARE * max(cosine, 0) + (100 - COSINE_SHARE) * cover) // 100


class Candidate(Value):
    """A document that may answer, and why. Scores in ten-thousandths.

    cosine   of the vectors, -UNIT .. UNIT; None where the text or the query has no vector, or vectors are not served
    lexical, rarity, cover   by words, see `lexical.Query.finish`
    features see `evidence`; empty for those beyond the FEATURED nearest
    """

    __slots__ = ("cosine", "cover", "document", "features", "lexical", "rarity")

    def __init__(
        self,
        document: Document,
        cosine: int | None,
        lexical: int,
        rarity: int,
        cover: int = 0,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.document, self.cosine, self.lexical, self.rarity, self.cover = document, cosine, lexical, rarity, cover
        self.features: Mapping[str, int] = features or {}

    @property
    def similarity(self) -> int:
        """Cosine and cover in one; the lexical score alone where there is no cosine."""
        return similarity(self.cosine, self.lexical, self.cover)


def folder(home: str) -> str:
    """Where the generations of a log live."""
    return os.path.join(home, "projections", "recall")


def current(home: str) -> str | None:
    """Folder of the generation in use, None where none was published."""
    return published.current(folder(home))


def discard(home: str) -> None:
    """Remove every generation, old ones too (an erasure asks for it); the next question builds a new one."""
    published.discard(folder(home))


class Opened(Value):
    """A generation's corpus (None when there is none to use), what the log has gained since, and what was wrong.

    damaged  whether there is a generation and it cannot be used;  unread: whether the log was too long, so that nothing is served
    """

    __slots__ = ("corpus", "damaged", "follower", "notes", "tail", "unread")

    def __init__(
        self, corpus: Corpus | None, follower: Follower, tail: Facts, notes: list[str], damaged: bool, unread: bool = False
    ) -> None:
        self.corpus, self.follower, self.tail, self.notes, self.damaged = corpus, follower, tail, notes, damaged
        self.unread = unread


def open_generation(home: str, generation: str | None, bytes_max: int | None = None, tail_max: int | None = None) -> Opened:
    """Open a generation and fold the newer tail; without a usable one, the whole log, unless it is longer than `bytes_max`.
    Where the tail is longer than `tail_max` nothing is served: what it says may be what took an older record back."""
    notes: list[str] = []
    if generation is not None:
        try:
            corpus = Corpus(generation)
            if corpus.count > BASE_COUNT and calibrations.measured(generation) is None:
                corpus.close()
                raise corpus.damaged("the scores of its background questions are not as they were written")
        except CorpusError as error:
            notes.append(f"the recall generation cannot be used, so the log itself is read: {error}")
        else:
            follower, tail = Follower(home, corpus.position), Facts()
            if tail_max is not None and lag(home, {stream: at[:2] for stream, at in corpus.position.items()}) > tail_max:
                corpus.close()
                return Opened(None, follower, tail, ["the log has grown too far beyond recall's generation"], False, True)
            tail.apply(follower)
            if not follower.rewritten and not released(corpus, tail):
                return Opened(corpus, follower, tail, follower.problems, False)
            corpus.close()
            published.disown(generation)
            what = "was made from another log" if follower.rewritten else "has not what was held for a person then"
            notes.append(f"the recall generation {what}, so the log itself is read")
    follower, tail = Follower(home), Facts()
    unread = bytes_max is not None and sum(size for _, size in positions(home).values()) > bytes_max
    if unread:
        notes.append("what is on record is not read yet, the log is long: `projectmem summary` reads all of it")
    else:
        tail.apply(follower)
    return Opened(None, follower, tail, [*notes, *follower.problems], generation is not None, unread)


def released(corpus: Corpus, tail: Facts) -> bool:
    """Whether something stands now that was held for a person when the corpus was made, and is therefore not in it."""
    return any(id_ in tail.reviewed or other in tail.gone for id_, other in corpus.held.items() if id_ not in tail.gone)


class Glance:
    """What is known of a log at a glance: the corpus, the newer tail, and what had to be left out (`notes`)."""

    def __init__(self, home: str, generation: str | None, bytes_max: int = BYTES_MAX, tail_max: int | None = None) -> None:
        opened = open_generation(home, generation, bytes_max, tail_max)
        self.generation = generation
        self.notes, self.corpus, self.follower, self.unread = opened.notes, opened.corpus, opened.follower, opened.unread
        self.calibration = calibrations.load(folder(home), generation).calibration
        self._counts: dict[str, tuple[dict[str, int], int]] = {}
        self.take_tail(opened.tail)

    def take_tail(self, tail: Facts) -> None:
        """Replace what is known of the events after the corpus."""
        self.tail, self.newer = tail, tail.documents()
        known, self._counts = self._counts, {}
        for text in {d.searched for d in self.newer} & known.keys():
            self._counts[text] = known[text]
        self._overtaken = overtaken(self.corpus, tail) if self.corpus else set()

    def experience(self) -> Experience:
        """What recalls led to, of the generation and the newer tail together."""
        return together(self.corpus, self.tail)

    @property
    def count(self) -> int:
        """Documents that are searched, whatever their scope."""
        return len(self.newer) + (self.corpus.count if self.corpus else 0)

    @property
    def read(self) -> bool:
        """Whether the log's end was read, so that `follow` can go on from it."""
        return bool(self.follower.position) and (self.corpus is not None or self.generation is None)

    def close(self) -> None:
        """Let go of the corpus."""
        if self.corpus is not None:
            self.corpus.close()

    @property
    def changed_at(self) -> int:
        """When something in the workspace was last changed on record (us), 0 when never."""
        return max(self.tail.changed_at, self.corpus.changed_at if self.corpus else 0)

    def newest(self, types: Sequence[str], reader: Scope, now: int, limit: int) -> dict[str, list[Document]]:
        """The newest live documents of each type, newest first, at most `limit` of each."""
        found: dict[str, list[Document]] = {type_: [] for type_ in types}
        if self.corpus is not None:
            more = limit + len(self._overtaken)
            rows = {row: d for type_ in types for row, d in self.corpus.newest(type_, more)}
            for row, document in rows.items():
                if row not in self._overtaken:
                    found[document.type].append(document)
        for document in self.newer:
            if document.type in found:
                found[document.type].append(document)
        for type_, documents in found.items():
            live = [d for d in documents if admits(reader, d.scope) and not 0 < d.expires_at <= now]
            found[type_] = sorted(live, key=lambda d: (-d.at, d.id))[:limit]
        return found

    def follow(self) -> bool:
        """Take in what was appended since; False where this glance can no longer be used."""
        if self.follower.behind():
            self.tail.apply(self.follower)
            self.take_tail(self.tail)
        return not self.follower.rewritten and not (self.corpus is not None and released(self.corpus, self.tail))

    def _counted(self, text: str) -> tuple[dict[str, int], int]:
        found = self._counts.get(text)
        if found is None:
            found = self._counts[text] = lexical.counts(text)
        return found

    def candidates(self, query: str, reader: Scope, now: int, look: bool = True) -> list[Candidate]:
        """Lexical candidates: at most POOL of the corpus and every matching one of the tail, best first, then by id.

        look  whether the nearest are looked at closely; it changes nothing in what is found
        """
        words = [] if reader.empty else lexical.query_tokens(query)
        stored = corpora.unpack(self.corpus.postings(words)) if self.corpus else {}
        counted = [self._counted(d.searched) for d in self.newer]
        having = {token: len(stored[token][0]) if token in stored else 0 for token in words}
        for table, _ in counted:
            for token in words:
                having[token] += token in table
        weighed = lexical.Query(words, having, self.count)
        found = []
        if self.corpus is not None:
            found = _live(self.corpus, weighed.rows(stored), self._overtaken, reader, now)
        mean = self.corpus.mean if self.corpus and self.corpus.count else sum(n for _, n in counted) / (len(counted) or 1)
        for document, one in zip(self.newer, counted, strict=True):
            worded = weighed.text(one, mean)
            if worded[0] and admits(reader, document.scope) and not 0 < document.expires_at <= now:
                found.append(Candidate(document, None, *worded))
        found.sort(key=lambda c: (-c.similarity, c.document.id))
        return looked_at(query, weighed, found) if look else found


def ask(home: str, question: Callable[[Glance], T], bytes_max: int = BYTES_MAX, generation: str | None = None) -> T:
    """Open a glance, ask, close. A corpus that turns out damaged while it is read is put aside, and the log is asked.

    bytes_max   of log that is read where there is no generation: beyond that nothing is served but a note
    generation  folder of the one to read, by default the one in use
    """
    for last in (False, True):
        glance = None
        try:
            glance = Glance(home, (None if last else generation) or current(home), bytes_max)
            return question(glance)
        except CorpusError:
            if last:
                raise
        finally:
            if glance is not None:
                glance.close()
    raise AssertionError("unreachable")


def looked_at(query: str, words: lexical.Query, found: list[Candidate]) -> list[Candidate]:
    """The candidates, nearest first, with the features of the FEATURED nearest."""
    if not found:
        return found
    asked = evidence.Asked(query, words)
    near = [(c.similarity, c.document.told) for c in found[: evidence.UPTO + 1]]
    apart = evidence.apart(near, FEATURED, found[0].cosine is not None)
    for candidate, (alone, clear) in zip(found, apart, strict=False):
        text, worded = candidate.document.told, (candidate.lexical, candidate.rarity, candidate.cover)
        seen = evidence.features(asked, text, candidate.document.searched, *worded)
        candidate.features = {**seen, "apart": alone, "clear": clear}
    _compared(asked, [c for c in found[:FEATURED] if c.cosine is None])
    return found


def _compared(asked: evidence.Asked, found: list[Candidate]) -> None:
    """Adds the features that compare word by word, without vectors of whole texts; after the COMPARED nearest the worst."""
    if not found:
        return
    query = nearness.Words(asked.lasting, question=True)
    for place, candidate in enumerate(found):
        document = nearness.Words(candidate.document.searched if place < COMPARED else "")
        candidate.features = {**candidate.features, **nearness.compare(query, document)}


def _live(corpus: Corpus, scores: dict[int, tuple[int, int, int]], gone: set[int], reader: Scope, now: int) -> list[Candidate]:
    """The POOL best rows that may be seen."""
    found: list[Candidate] = []
    for row in sorted(scores, key=lambda r: (-scores[r][0], r)):
        if row in gone or not scores[row][0]:
            continue
        document = corpus.documents([row])[row]
        if admits(reader, document.scope) and not 0 < document.expires_at <= now:
            found.append(Candidate(document, None, *scores[row]))
            if len(found) == POOL:
                break
    return found


def together(corpus: Corpus | None, tail: Facts) -> Experience:
    """The experience of a generation with that of the newer tail."""
    if corpus is None:
        return tail.experience
    found = corpus.experience()
    found.add(tail.experience)
    return found


def overtaken(corpus: Corpus, tail: Facts) -> set[int]:
    """Rows of the corpus that newer events removed or replaced: erased, superseded, disputed, closed, failed again, worked."""
    rows = corpus.derived(sorted(tail.gone | set(tail.written)))
    for key in sorted(set(tail.fails) | set(tail.oks) | set(tail.gone_keys)):
        orders = [tail.oks.get(key, NEVER), tail.gone_keys.get(key, NEVER), *(f.order for f in tail.fails.get(key, ())[:1])]
        rows.update(row for row, type_, at in corpus.keyed(key) if type_ == "failure" and at <= max(orders)[0])
    for issue, closed in sorted(tail.closed.items()):
        rows.update(row for row, type_, at in corpus.keyed(issue) if type_ == "issue" and at <= closed[0])
    return rows
