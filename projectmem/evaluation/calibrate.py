"""Fits the model of one vector space to labelled questions: weights by ridge logistic regression, floors out of fold.

What is fitted: whether a document answers. A question that has an answer is asked once more with the answers left out: its
next best document is what a near miss really looks like. What is held out: whole families, in turn. The floor is put where
the held-out scores let at most a target share of the unanswerable questions pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from projectmem_projections import background, embed, evidence, structure
from projectmem_projections.calibration import LEXICAL, Model
from projectmem_projections.lexical import UNIT

from projectmem import controller
from projectmem.evaluation import fitting, labelled
from projectmem.evaluation.labelled import Labelled, Query

if TYPE_CHECKING:
    from projectmem_projections.embed import Space
    from projectmem_projections.glance import Candidate
    from projectmem_projections.searching import Search

FOLDS, RIDGE = 10, 5.0
# How much a question counts in the fit. Those that were written against one document are rarer in life than in the file.
WEIGHTS = {"none_sibling": 0.3}
REMOVED = 0.5  # of a question whose answers were left out
NEXT = 0.3  # of each document after the nearest
DEPTH = 3  # documents of a question that are learned from, and that are shown at most
# Documents that answer nothing count for more the surer the first fit was of them: up to so much more, half of it at this score.
HARD, HARD_AT = 2.0, -1.0
PLAIN = ("none_near", "none_far")  # strata that were not written against one document
# Of the questions that nothing answers so many may pass the floor: what lets at most 20 pass of those of another hand.
TARGETS, TARGET_ELSE = {embed.MODEL: 20, LEXICAL: 20}, 25
KEPT_PERCENT = 97  # a kind's own floor may go up as long as it keeps so many of its right answers
NOTHING = -10_000  # score of a question that nothing came near
# Of the floor, in thousandths of a logit. In left-out stores that grow to 29,900 documents, 2 % of what nothing answers pass at a
# change of -226 a tenfold (table), -321 (MiniLM) and -321 (words); these are the careful side of it.
PER_TENFOLD, PER_TENFOLD_ELSE = {embed.MODEL: -200}, -280


class Top:
    """One of the nearest documents to a question: its features, and whether it answers.

    place    0 for the nearest;  removed: the question was asked without the documents that answer it
    """

    __slots__ = ("features", "id", "kind", "place", "query", "removed", "right")

    def __init__(
        self, query: Query, id: str, features: dict[str, int], right: bool, kind: str, place: int = 0, removed: bool = False
    ) -> None:
        self.query, self.id, self.features, self.right, self.kind = query, id, features, right, kind
        self.place, self.removed = place, removed

    @property
    def weight(self) -> float:
        """How much it counts in the fit."""
        own = WEIGHTS.get(self.query.kind, 1.0) * (REMOVED if self.removed else 1.0)
        return own * (NEXT if self.place else 1.0) if self.features else 0.0


def nearest(query: Query, candidates: Sequence[Candidate], removed: bool = False) -> list[Top]:
    """The DEPTH nearest documents, one without features where nothing came near."""
    kind = structure.of(query.text).kind
    found = [c for c in candidates if c.features][:DEPTH]
    if not found:
        return [Top(query, "", {}, False, kind, 0, removed)]
    return [
        Top(query, c.document.id, dict(c.features), c.document.id in query.relevant and not removed, kind, place, removed)
        for place, c in enumerate(found)
    ]


def left_out(search: Search, query: Query) -> list[Top]:
    """The nearest documents without those that answer, [] where none does."""
    if not query.relevant:
        return []
    return nearest(query, search.candidates(query.text, labelled.SCOPE, labelled.NOW, without=query.relevant), removed=True)


def tops(sets: Sequence[Labelled], embedder: Space | None) -> list[Top]:
    """The nearest documents of every question, in each set's own store, those of a question together; and left out, see above."""
    found = []
    for one in sets:
        with labelled.searching(one.documents, embedder) as search:
            for query in one.queries:
                found += nearest(query, search.candidates(query.text, labelled.SCOPE, labelled.NOW))
                found += left_out(search, query)
    return found


def fit(sets: Sequence[Labelled], embedder: Space | None, space: str, target: int | None = None) -> tuple[Model, list[int]]:
    """(the model, the held-out score of every document in order); its background is that of the last set's documents.

    target  of the unanswerable questions so many per mille may pass the floor, see `floors`; None: as many as of this space
    """
    found = tops(sets, embedder)
    count = sum(t.place == 0 and not t.removed for t in found)
    note = f"{count} questions on {', '.join(s.name for s in sets)}, {FOLDS} folds"
    model, scores = fit_tops(found, embedder is not None, space, target, note)
    with labelled.searching(sets[-1].documents, embedder) as search:
        model.background = background.score(search.nearest, model)
    return model, scores


def fit_tops(found: Sequence[Top], vectors: bool, space: str, target: int | None, note: str) -> tuple[Model, list[int]]:
    """The same from what the searches found; the model's background is 0."""
    names = list(evidence.VECTORED if vectors else evidence.WORDY)
    rows = np.array([[t.features.get(n, 0) / UNIT for n in names] for t in found], np.float64)
    right = np.array([t.right for t in found], np.float64)
    weights = np.array([t.weight for t in found])
    fold = np.array(fitting.folds([t.query.family for t in found], FOLDS))
    held = np.zeros(len(found))
    for number in range(FOLDS):
        rest = fold != number
        coefficients, bias = fitted(rows[rest], right[rest], weights[rest])
        held[~rest] = rows[~rest] @ coefficients + bias
    coefficients, bias = fitted(rows, right, weights)
    scores = [round(1000 * float(s)) if t.features else NOTHING for s, t in zip(held, found, strict=True)]
    weighed = {name: round(1000 * float(c)) for name, c in zip(names, coefficients, strict=True)}
    name = space.split("/")[0]
    allowed = TARGETS.get(name, TARGET_ELSE) if target is None else target
    put = floors(*decided(found, scores), allowed)
    return Model(space, weighed, round(1000 * bias), put, 0, PER_TENFOLD.get(name, PER_TENFOLD_ELSE), note), scores


def fitted(rows: fitting.Array, right: fitting.Array, weights: fitting.Array) -> tuple[fitting.Array, float]:
    """(coefficients, bias), fitted twice: what looked most like an answer and was none counts for more the second time."""
    coefficients, bias = fitting.logistic(rows, right, weights, RIDGE)
    sure = 1 / (1 + np.exp(-2 * (rows @ coefficients + bias - HARD_AT)))
    return fitting.logistic(rows, right, np.where(right == 0, weights * (1 + HARD * sure), weights), RIDGE)


def decided(found: Sequence[Top], scores: Sequence[int]) -> tuple[list[Top], list[int]]:
    """The best document of each question that was asked as it is, of those that could be shown at all, with its score."""
    best: dict[tuple[str, str, str], tuple[Top, int]] = {}
    for top, score in zip(found, scores, strict=True):
        if not top.removed:
            key = (top.query.family, top.query.id, top.query.text)
            value = score if top.features and controller.may_fit(top.features) else NOTHING
            if key not in best or value > best[key][1]:
                best[key] = (top, value)
    return [top for top, _ in best.values()], [score for _, score in best.values()]


def floors(found: Sequence[Top], scores: Sequence[int], target: int) -> dict[str, int]:
    """Kind of query -> floor: at first, for all, the lowest above which at most `target` per mille of the unanswerable ones lie.

    Where right answers of a kind all score much higher, its floor goes half of the way up to them.
    """
    none = sorted((s for s, t in zip(scores, found, strict=True) if not t.query.relevant), reverse=True)
    common = none[len(none) * target // 1000] + 1 if none else 0
    out = {}
    for kind in structure.KINDS:
        right = sorted(s for s, t in zip(scores, found, strict=True) if t.kind == kind and t.right and s >= common)
        lost = len(right) * (100 - KEPT_PERCENT) // 100
        out[kind] = (common + right[lost]) // 2 if right else common
    return out
