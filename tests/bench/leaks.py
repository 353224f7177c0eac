"""A nightly: a million random questions by readers of every scope, and how many saw something from elsewhere, or dead.

`python -m tests.bench.leaks [N]`: each is asked of both engines, words with vectors and the hook's words alone.
"""

from __future__ import annotations

import random
import sys
import tempfile

from projectmem_projections import corpus as corpora
from projectmem_projections import embed, vectors
from projectmem_projections.corpus import Corpus
from projectmem_projections.documents import Document, Facts
from projectmem_projections.glance import Glance
from projectmem_projections.scope import Scope
from projectmem_projections.searching import Search
from projectmem_projections.vectors import Vectors

from projectmem.evaluation import filler

NOW = 1_800_000_000_000_000
NAMES = (("", "p", "q", "r"), ("", "t"), ("", "w", "v"), ("", "b"))
DOCUMENTS, ROUND = 60, 2_000


def may_see(reader: Scope, item: Scope) -> bool:
    """The rule, written a second time."""
    if not reader.project or (reader.project, reader.tenant) != (item.project, item.tenant):
        return False
    pairs = ((reader.worktree, item.worktree), (reader.branch, item.branch))
    return all(not mine or not theirs or mine == theirs for mine, theirs in pairs)


def one_round(chance: random.Random, questions: int) -> tuple[int, int]:
    """(items seen, items seen that must not be) of so many questions to a fresh store."""

    def scope() -> Scope:
        return Scope(*(chance.choice(names) for names in NAMES))

    def ends() -> int:
        return chance.choice((0, NOW - 1, NOW, NOW + 1))

    made = [text for _, text in filler.made_up(DOCUMENTS)]
    old = [Document(f"d{i:03d}", "note", t, NOW - 1000 + i, scope(), expires_at=ends()) for i, t in enumerate(made[:40])]
    newer = [Document(f"n{i:03d}", "note", t, NOW - 500 + i, scope(), expires_at=ends()) for i, t in enumerate(made[40:])]
    tail = Facts()
    tail.written = {d.id: d for d in newer}
    tail.gone = {chance.choice(old).id, chance.choice(newer).id}
    embedder = embed.default()
    seen = leaks = 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        corpora.write(folder, old, {})
        encoded, known = embedder.encode([d.searched for d in old])
        vectors.write(folder, [d.id for d, k in zip(old, known, strict=True) if k], encoded[known], embedder, {})
        corpus, glance = Corpus(folder), Glance(home, folder)
        glance.take_tail(tail)
        engines = (Search(corpus, Vectors(folder, embedder, {}), embedder, tail), glance)
        for _ in range(questions):
            reader = scope()
            words = chance.choice(made).split()
            query = " ".join(chance.sample(words, min(3, len(words))))
            for engine in engines:
                for found in engine.candidates(query, reader, NOW, look=False):
                    document = found.document
                    seen += 1
                    dead = document.id in tail.gone or 0 < document.expires_at <= NOW
                    leaks += dead or not may_see(reader, document.scope)
        corpus.close()
        glance.close()
    return seen, leaks


def main(questions: int) -> int:
    """Print the counts; 1 where something leaked."""
    chance, asked, seen, leaks = random.Random(11), 0, 0, 0
    while asked < questions:
        found = one_round(chance, min(ROUND, questions - asked))
        asked, seen, leaks = asked + ROUND, seen + found[0], leaks + found[1]
    print(f"{min(asked, questions):,} questions, {seen:,} items seen, {leaks} leaks")
    return int(leaks > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
