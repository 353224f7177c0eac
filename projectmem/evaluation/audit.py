"""A longitudinal guard: the same fixed probes against snapshots of a store of growing size, and what drifts.

Probes that nothing should answer (fixed questions about something else) and probes that something must answer (some of the
store's own texts). Beside them a control without memory, and the same store with its documents added in another order, which must
change nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from projectmem_projections import background, calibrations
from projectmem_projections.calibration import Model

from projectmem.evaluation import labelled, measure
from projectmem.evaluation.labelled import Query

if TYPE_CHECKING:
    from projectmem_projections.embed import Space

STEPS = (10, 25, 50, 100)  # per cent of the store, oldest first
OWN_PROBES = 40
DRIFT_PERCENT = 2  # so much more false injection in the last snapshot than in the first is drift


def audit(
    documents: Sequence[tuple[str, str]], embedder: Space | None, space: str, models: dict[str, Model]
) -> dict[str, object]:
    """{snapshots: [figures], shuffled: how many probes were answered otherwise in another order, drift: percentage points, ok}.

    documents  (id, text), oldest first
    """
    model = models.get(space) or calibrations.shipped()["lexical"]
    snapshots, shares, answers = list[dict[str, object]](), list[float](), list[tuple[str, ...]]()
    for step in STEPS:
        part = documents[: max(1, len(documents) * step // 100)] if documents else []
        found, answers = _snapshot(part, embedder, model)
        shares.append(float(found["injected"]["share"]))
        snapshots.append({"percent": step, "documents": len(part), **found})
    mixed = list(documents)
    random.Random(20).shuffle(mixed)  # noqa: S311  # a fixed other order, not a secret
    _, again = _snapshot(mixed, embedder, model, probes=_probes(documents))
    changed = sum(a != b for a, b in zip(answers, again, strict=True))
    drift = round(100 * (shares[-1] - shares[0]), 2)
    return {
        "snapshots": snapshots,
        "no_memory": measure.share(0, len(background.questions())),
        "shuffled": changed,
        "drift": drift,
        "ok": drift <= DRIFT_PERCENT and not changed,
    }


def _probes(documents: Sequence[tuple[str, str]]) -> list[Query]:
    none = [Query(f"n{i}", text, "none", f"n{i}", frozenset()) for i, text in enumerate(background.questions())]
    own = documents[:: max(1, len(documents) // OWN_PROBES)][:OWN_PROBES]
    return none + [Query(f"o{id_}", text, "own", id_, frozenset({id_})) for id_, text in own]


def _snapshot(
    documents: Sequence[tuple[str, str]], embedder: Space | None, model: Model, probes: list[Query] | None = None
) -> tuple[dict[str, dict[str, float | int]], list[tuple[str, ...]]]:
    asked = measure.collect([labelled.Labelled("store", list(documents), probes or _probes(documents))], embedder, (), model)
    shown = [tuple(r.document.id for r in measure.decide(one, model).items) for one in asked]
    none = [s for s, one in zip(shown, asked, strict=True) if not one.query.relevant]
    own = [s for s, one in zip(shown, asked, strict=True) if one.query.relevant]
    return {
        "injected": measure.share(sum(bool(s) for s in none), len(none)),
        "found": measure.share(sum(bool(s) for s in own), len(own)),
    }, shown
