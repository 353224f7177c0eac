"""Measures recall on labelled questions: the controller beside no memory, abstaining always, and plain top-k.

Every question is decided by a model that was fitted without its family (ten folds): nothing is scored on what it was fitted to.
Or, for files that nothing was ever fitted to, by the shipped model as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from projectmem_projections import background, lexical, structure
from projectmem_projections.calibration import Calibration, Model

from projectmem import controller, render
from projectmem.evaluation import calibrate, fitting, labelled
from projectmem.evaluation.calibrate import Top
from projectmem.evaluation.labelled import Labelled, Query
from projectmem.ranking import Asking, rank

if TYPE_CHECKING:
    from projectmem_projections.embed import Space
    from projectmem_projections.glance import Candidate

METHODS = ("no_memory", "abstain_only", "top_k", "controller")
ALL = "all"
TOP_K = 3
ABSTENTION_CAP = 0.65  # of the answerable questions; above it a memory is too quiet to be one
# Risk-adjusted utility of one question: a false positive costs more than a right answer gives, that more than a right silence.
REUSE, FALSE_POSITIVE, RIGHT_SILENCE = 0.6, -1.0, 0.2


class Asked:
    """A question with what the search found, nearest first, and its store's size and background; `learned`: what a fit takes."""

    __slots__ = ("background", "candidates", "documents", "kind", "learned", "query", "set")

    def __init__(
        self,
        query: Query,
        candidates: list[Candidate],
        documents: int,
        name: str,
        background: int | None,
        learned: Sequence[Top] = (),
    ) -> None:
        self.query, self.candidates, self.documents, self.set = query, candidates, documents, name
        self.learned = list(learned)
        self.kind = structure.of(query.text).kind
        self.background = background


class Outcome:
    """What a method showed for one question: the ids, best first."""

    __slots__ = ("query", "set", "shown")

    def __init__(self, query: Query, shown: Sequence[str], name: str) -> None:
        self.query, self.shown, self.set = query, list(shown), name

    @property
    def right(self) -> bool:
        """Whether the first item shown answers the question."""
        return bool(self.shown) and self.shown[0] in self.query.relevant

    @property
    def value(self) -> float:
        """Risk-adjusted utility: by the first item shown, which is what an agent acts on."""
        if self.shown:
            return REUSE if self.right else FALSE_POSITIVE
        return 0.0 if self.query.relevant else RIGHT_SILENCE


def collect(
    sets: Sequence[Labelled],
    embedder: Space | None,
    filler: Sequence[tuple[str, str]] = (),
    model: Model | None = None,
    learn: bool = False,
) -> list[Asked]:
    """Ask every question of its set's documents, with `filler` documents among them.

    model  that measures the background of each store, where that is wanted;  learn: whether models are fitted to it
    """
    out = []
    for one in sets:
        with labelled.searching([*one.documents, *filler], embedder) as search:
            rise = background.score(search.nearest, model) if model is not None else None
            for query in one.queries:
                candidates = [c for c in search.candidates(query.text, labelled.SCOPE, labelled.NOW) if c.features]
                learned = [*calibrate.nearest(query, candidates), *calibrate.left_out(search, query)] if learn else []
                out.append(Asked(query, candidates, search.count, one.name, rise, learned))
    return out


def models(asked: Sequence[Asked], vectors: bool, space: str, target: int | None, by_set: bool = False) -> list[Model]:
    """For each question the model that was fitted without its family; or, by set, without any question of its store."""
    names = sorted({a.set for a in asked})
    fold = [names.index(a.set) for a in asked] if by_set else fitting.folds([a.query.family for a in asked], calibrate.FOLDS)
    by_fold = {}
    for number in sorted(set(fold)):
        rest = [t for a, f in zip(asked, fold, strict=True) if f != number for t in a.learned]
        by_fold[number] = calibrate.fit_tops(rest, vectors, space, target, "held out")[0]
    return [by_fold[f] for f in fold]


def decide(asked: Asked, model: Model) -> controller.Decision:
    """The controller's decision over what was found, as recall makes it."""
    rise = {model.space: asked.background} if asked.background is not None else {}
    asking = Asking(asked.query.text, asked.kind, labelled.NOW, asked.documents, model.space, Calibration(_both(model), rise))
    above, below = rank(asked.candidates, asking)
    cost = sum(render.tokens(render.ranked(r, labelled.NOW)) for r in above[:TOP_K])
    return controller.decide(above, below, tokens=cost, budget=400, k=TOP_K)


def _both(model: Model) -> dict[str, Model]:
    from projectmem_projections import calibrations

    return {**calibrations.shipped(), model.space: model}


def outcomes(asked: Sequence[Asked], fitted: Sequence[Model]) -> dict[str, list[Outcome]]:
    """What each method shows for each question."""
    out: dict[str, list[Outcome]] = {method: [] for method in METHODS}
    for one, model in zip(asked, fitted, strict=True):
        plain = [c.document.id for c in one.candidates[:TOP_K]]
        decided = [r.document.id for r in decide(one, model).items]
        for method, shown in zip(METHODS, ([], [], plain, decided), strict=True):
            out[method].append(Outcome(one.query, shown, one.set))
    return out


def share(hits: int, of: int) -> dict[str, float | int]:
    """A share with its 95 % interval (Wilson)."""
    low, high = fitting.wilson(hits, of)
    return {"hits": hits, "of": of, "share": round(hits / of, 4) if of else 0.0, "low": round(low, 4), "high": round(high, 4)}


def score(found: Sequence[Outcome], method: str) -> dict[str, object]:
    """The figures of one method.

    right        answerable questions whose first item is right;  wrong: is not;  abstained: nothing was shown
    right_by     kind of question -> the answerable ones whose first item is right
    injected     stratum -> unanswerable questions that were shown something
    utility      mean risk-adjusted utility of a question; `no_memory` searches nothing, so it earns nothing for silence
    plain_utility  the same without the questions that were written against one document
    """
    answerable = [o for o in found if o.query.relevant]
    strata, kinds = _by_kind([o for o in found if not o.query.relevant]), _by_kind(answerable)
    plain = [o for o in found if o.query.relevant or o.query.kind in calibrate.PLAIN]
    searched = method != "no_memory"
    right = sum(o.right for o in answerable)
    return {
        "right": share(right, len(answerable)),
        "right_by": {kind: share(sum(o.right for o in of), len(of)) for kind, of in sorted(kinds.items())},
        "wrong": share(sum(bool(o.shown) for o in answerable) - right, len(answerable)),
        "abstained": share(sum(not o.shown for o in answerable), len(answerable)),
        "injected": {kind: share(sum(bool(o.shown) for o in of), len(of)) for kind, of in sorted(strata.items())},
        "utility": _mean(found) if searched else 0.0,
        "plain_utility": _mean(plain) if searched else 0.0,
    }


def _by_kind(found: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    kinds: dict[str, list[Outcome]] = {}
    for one in found:
        kinds.setdefault(one.query.kind, []).append(one)
    return kinds


def _mean(found: Sequence[Outcome]) -> float:
    return round(sum(o.value for o in found) / len(found), 4) if found else 0.0


def report(
    sets: Sequence[Labelled],
    embedder: Space | None,
    space: str,
    target: int | None,
    shipped: Model | None = None,
    by_set: bool = False,
) -> dict[str, object]:
    """Every method on every set: {set: {method: figures}}; by set also on all of them together, named ALL.

    shipped  the model that decides every question; without it each is decided by one fitted to the others
    by_set   others are those asked of other stores, not only those of other families
    """
    sets = labelled.together(sets)
    asked = collect(sets, embedder, learn=shipped is None)
    fitted = [shipped] * len(asked) if shipped is not None else models(asked, embedder is not None, space, target, by_set)
    found = outcomes(asked, fitted)
    out: dict[str, object] = {
        one.name: {m: score([o for o in found[m] if o.set == one.name], m) for m in METHODS} for one in sets if one.queries
    }
    return {**out, ALL: {m: score(found[m], m) for m in METHODS}} if by_set else out


def left_out(sets: Sequence[Labelled], embedder: Space | None, space: str, target: int | None) -> dict[str, Model]:
    """Set -> the model that was fitted without any question of its store, with the background of the last of the others."""
    asked = collect(sets, embedder, learn=True)
    by_set = {a.set: model for a, model in zip(asked, models(asked, embedder is not None, space, target, True), strict=True)}
    for name, model in by_set.items():
        with labelled.searching([one for one in sets if one.name != name][-1].documents, embedder) as search:
            model.background = background.score(search.nearest, model)
    return by_set


def growth(
    sets: Sequence[Labelled],
    embedder: Space | None,
    by_set: Mapping[str, Model],
    filler: Sequence[tuple[str, str]],
    sizes: Sequence[int],
) -> list[dict[str, object]]:
    """Each set's questions in its store as that grows: `sizes` are numbers of documents, the set's own included.

    by_set  the model that decides each set's questions;  filler: (id, text) of what is added
    Each store measures its own background, as a generation does when it is built, and the floor goes by it. One row a size and
    set, and of several sets together, ALL. `false` are the unanswerable questions that were shown something, `sure` those of them
    that were shown a document of the set, `again` those that were shown another one that has every word of the question: what is
    added was not labelled and may be a right answer.
    """
    out: list[dict[str, object]] = []
    sets = [one for one in sets if one.queries]
    words = {id_: frozenset(lexical.tokens(text)) for id_, text in filler}
    own = {id_ for one in sets for id_, _ in one.documents}
    for size in sizes:
        together: dict[str, list[Outcome]] = {method: [] for method in METHODS}
        for one in sets:
            more = filler[: max(0, size - len(one.documents))]
            asked = collect([one], embedder, more, by_set[one.name])
            rise = asked[0].background
            if not more:
                for a in asked:  # as in a store of the size that was fitted on, which measures none
                    a.background = None
            found = outcomes(asked, [by_set[one.name]] * len(asked))
            out.append({"set": one.name, "documents": asked[0].documents, "background": rise, **_grown(found, own, words)})
            for method in METHODS:
                together[method] += found[method]
        if len(sets) > 1:
            out.append({"set": ALL, "documents": size, "background": None, **_grown(together, own, words)})
    return out


def _grown(found: Mapping[str, list[Outcome]], own: set[str], words: Mapping[str, frozenset[str]]) -> dict[str, object]:
    none = [(o.query, o.shown[0]) for o in found["controller"] if not o.query.relevant and o.shown]
    of = sum(not o.query.relevant for o in found["controller"])
    again = sum(id_ not in own and frozenset(lexical.tokens(query.text)) <= words[id_] for query, id_ in none)
    return {
        "controller": score(found["controller"], "controller"),
        "top_k": score(found["top_k"], "top_k"),
        "false": share(len(none), of),
        "sure": share(sum(id_ in own for _, id_ in none), of),
        "again": share(again, of),
    }
