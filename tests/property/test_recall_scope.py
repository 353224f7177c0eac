"""Scope and liveness hold inside every search: whatever is asked, nothing from elsewhere is found, all of ours is."""

from __future__ import annotations

import random
import tempfile
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_projections import corpus as corpora
from projectmem_projections import embed, vectors
from projectmem_projections.corpus import Corpus
from projectmem_projections.documents import Document, Facts
from projectmem_projections.glance import Glance
from projectmem_projections.scope import Scope, admits
from projectmem_projections.searching import Search
from projectmem_projections.vectors import Vectors

from tests.bench import leaks

NOW = 1_800_000_000_000_000
WORDS = ("redis", "connection", "refused", "install", "build", "データベース", "timeout", "login", "page", "x1")
NAMES = ("", "p", "q")

scopes = st.builds(
    Scope, st.sampled_from(NAMES), st.sampled_from(["", "t"]), st.sampled_from(["", "w"]), st.sampled_from(["", "b"])
)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


@st.composite
def documents(draw: st.DrawFn, prefix: str = "d") -> list[Document]:
    drawn = draw(st.lists(st.tuples(texts, scopes, st.sampled_from([0, NOW - 1, NOW, NOW + 1])), max_size=12))
    return [
        Document(f"{prefix}{i:03d}", "note", text, NOW - 1000 + i, scope, expires_at=expires)
        for i, (text, scope, expires) in enumerate(drawn)
    ]


def tail_of(newer: list[Document], gone: set[str]) -> Facts:
    facts = Facts()
    facts.written = {d.id: d for d in newer}
    facts.gone = set(gone)
    return facts


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(), documents("n"), scopes, texts, st.data())
def test_only_live_documents_inside_the_scope_are_found_and_all_of_them(
    old: list[Document], newer: list[Document], reader: Scope, query: str, data: Any
) -> None:
    gone = set(data.draw(st.lists(st.sampled_from([d.id for d in old + newer] or ["none"]), max_size=3)))
    embedder = embed.default()
    with tempfile.TemporaryDirectory() as folder:
        corpora.write(folder, old, {})
        encoded, known = embedder.encode([d.searched for d in old])
        vectors.write(folder, [d.id for d, k in zip(old, known, strict=True) if k], encoded[known], embedder, {})
        corpus = Corpus(folder)
        search = Search(corpus, Vectors(folder, embedder, {}), embedder, tail_of(newer, gone))
        found = [c.document for c in search.candidates(query, reader, NOW)]
        corpus.close()
    seen = {d.id for d in found}
    visible = {d.id for d in old + newer if admits(reader, d.scope) and d.id not in gone and not 0 < d.expires_at <= NOW}
    assert seen <= visible
    assert len(seen) == len(found)
    shares = {d.id for d in old + newer if d.id in visible and set(d.text.split()) & set(query.split())}
    assert shares <= seen
    if reader.empty:
        assert not found


@settings(max_examples=60, deadline=None)
@given(documents(), documents("n"), scopes, texts, st.data())
def test_the_light_search_and_the_full_one_without_vectors_agree(
    old: list[Document], newer: list[Document], reader: Scope, query: str, data: Any
) -> None:
    gone = set(data.draw(st.lists(st.sampled_from([d.id for d in old + newer] or ["none"]), max_size=3)))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        corpora.write(folder, old, {})
        glance = Glance(home, folder)
        glance.take_tail(tail_of(newer, gone))
        light = glance.candidates(query, reader, NOW)
        corpus = Corpus(folder)
        full = Search(corpus, None, None, tail_of(newer, gone)).candidates(query, reader, NOW)
        corpus.close()
        glance.close()
    assert light == full


def test_random_questions_of_readers_of_every_scope_leak_nothing_and_a_leak_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small share of what the nightly asks."""
    seen, leaked = leaks.one_round(random.Random(5), 200)
    assert seen > 200
    assert leaked == 0
    monkeypatch.setattr(leaks, "may_see", lambda reader, item: reader == item)
    assert leaks.one_round(random.Random(5), 200)[1] > 0


@given(scopes, scopes)
def test_the_predicate(reader: Scope, item: Scope) -> None:
    if admits(reader, item):
        assert reader.project
        assert (reader.project, reader.tenant) == (item.project, item.tenant)
        assert not reader.worktree or not item.worktree or reader.worktree == item.worktree
    if reader.empty:
        assert not admits(reader, item)
    if reader.project:
        assert admits(reader, reader)
