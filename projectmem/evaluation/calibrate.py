"""Fits the model of one vector space to labelled questions: weights by ridge logistic regression, floors out of fold.

What is fitted: whether the nearest document answers. What is held out: whole families, in turn. The floor is put where the
held-out scores let at most a target share of the unanswerable questions pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from projectmem_projections import background, embed, evidence, structure
from projectmem_projections.calibration import LEXICAL, Model
from projectmem_projections.lexical import UNIT

from projectmem.evaluation import fitting, labelled
from projectmem.evaluation.labelled import Labelled, Query

if TYPE_CHECKING:
    from projectmem_projections.embed import Space

FOLDS, RIDGE = 10, 10.0
# How much a question counts in the fit. Those that were written against one document are rarer in life than in the file.
WEIGHTS = {"none_sibling": 0.3}
FLOORED_BY = ("none_near", "none_far")  # strata that the floor is put by first
TARGET_PERMILLE = 20
CLOSE = ("none_close", "none_sibling")  # those written against one document: of them so many may pass
# By the shipped table silence comes first; another embedder is chosen by who wants more answers; words find fewer.
CLOSE_PERMILLE = {embed.MODEL: 30, LEXICAL: 100}
CLOSE_ELSE = 80
KEPT_PERCENT = 97  # a kind's own floor may go up as long as it keeps so many of its right answers
NOTHING = -10_000  # score of a question that nothing came near
PER_TENFOLD = {True: 250, False: 250}  # with vectors, by words alone: thousandths of a logit


class Top:
    """The nearest document to one question: its features, and whether it answers."""

    __slots__ = ("features", "id", "kind", "query", "right")

    def __init__(self, query: Query, id: str, features: dict[str, int], right: bool, kind: str) -> None:
        self.query, self.id, self.features, self.right, self.kind = query, id, features, right, kind


def tops(sets: Sequence[Labelled], embedder: Space | None) -> list[Top]:
    """The nearest document of every question, in each set's own store. Questions that nothing comes near have no features."""
    found = []
    for one in sets:
        with labelled.searching(one.documents, embedder) as search:
            for query in one.queries:
                candidates = search.candidates(query.text, labelled.SCOPE, labelled.NOW)
                kind = structure.of(query.text).kind
                if candidates:
                    best = candidates[0]
                    right = best.document.id in query.relevant
                    found.append(Top(query, best.document.id, dict(best.features), right, kind))
                else:
                    found.append(Top(query, "", {}, False, kind))
    return found


def fit(sets: Sequence[Labelled], embedder: Space | None, space: str, target: int = TARGET_PERMILLE) -> tuple[Model, list[int]]:
    """(the model, the held-out score of every question in order); its background is that of the last set's documents.

    target  of the unanswerable questions so many per mille may pass the floor, see `floors`
    """
    found = tops(sets, embedder)
    note = f"{len(found)} questions on {', '.join(s.name for s in sets)}, {FOLDS} folds"
    model, scores = fit_tops(found, embedder is not None, space, target, note)
    with labelled.searching(sets[-1].documents, embedder) as search:
        model.background = background.score(search.nearest, model)
    return model, scores


def fit_tops(found: Sequence[Top], vectors: bool, space: str, target: int, note: str) -> tuple[Model, list[int]]:
    """The same from what the searches found; the model's background is 0."""
    names = list(evidence.VECTORED if vectors else evidence.WORDY)
    rows = np.array([[t.features.get(n, 0) / UNIT for n in names] for t in found], np.float64)
    right = np.array([t.right for t in found], np.float64)
    weights = np.array([WEIGHTS.get(t.query.kind, 1.0) for t in found])
    fold = np.array(fitting.folds([t.query.family for t in found], FOLDS))
    held = np.zeros(len(found))
    for number in range(FOLDS):
        rest = fold != number
        coefficients, bias = fitting.logistic(rows[rest], right[rest], weights[rest], RIDGE)
        held[~rest] = rows[~rest] @ coefficients + bias
    coefficients, bias = fitting.logistic(rows, right, weights, RIDGE)
    scores = [round(1000 * float(s)) if t.features else NOTHING for s, t in zip(held, found, strict=True)]
    fitted = {name: round(1000 * float(c)) for name, c in zip(names, coefficients, strict=True)}
    close = CLOSE_PERMILLE.get(space.split("/")[0], CLOSE_ELSE)
    return Model(space, fitted, round(1000 * bias), floors(found, scores, target, close), 0, PER_TENFOLD[vectors], note), scores


def floors(found: Sequence[Top], scores: Sequence[int], target: int, close: int) -> dict[str, int]:
    """Kind of query -> floor: at first, for all kinds, the lowest above which at most `target` per mille of FLOORED_BY lie, and
    `close` of CLOSE.

    Where right answers of a kind all score much higher, its floor goes half of the way up to them.
    """
    common = 0
    for number, (strata, share) in enumerate(((FLOORED_BY, target), (CLOSE, close))):
        none = sorted((s for s, t in zip(scores, found, strict=True) if t.query.kind in strata), reverse=True)
        least = none[len(none) * share // 1000] + 1 if none else common
        common = max(common, least) if number else least
    out = {}
    for kind in structure.KINDS:
        right = sorted(s for s, t in zip(scores, found, strict=True) if t.kind == kind and t.right and s >= common)
        lost = len(right) * (100 - KEPT_PERCENT) // 100
        out[kind] = (common + right[lost]) // 2 if right else common
    return out
