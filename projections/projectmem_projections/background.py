"""How near unrelated questions come in a store: measured when a generation is built, so that the floor goes by the store.

The best of many unrelated texts is nearer than the best of few. A fixed set of questions, all about something else, is
asked of the
new generation; what three quarters of them stay below stands for "nothing". A few that the store does answer do not move it.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from projectmem_projections import calibration as calibrating
from projectmem_projections.calibrations import BACKGROUND, crc
from projectmem_projections.documents import Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from projectmem_projections.calibration import Calibration
    from projectmem_projections.corpus import Corpus
    from projectmem_projections.embed import Space
    from projectmem_projections.glance import Candidate
    from projectmem_projections.vectors import Vectors

LABELLED = os.path.join(os.path.dirname(__file__), "data", "recall-labelled.jsonl")
QUESTIONS = 60


@lru_cache(maxsize=1)
def questions() -> tuple[str, ...]:
    """The fixed questions: unanswerable ones of the shipped file, evenly taken."""
    with open(LABELLED, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    none = [row["text"] for row in rows if row["type"] == "query" and not row["relevant"]]
    return tuple(none[:: max(1, len(none) // QUESTIONS)][:QUESTIONS])


def score(ask: Callable[[str], Sequence[Candidate]], model: calibrating.Model) -> int:
    """What the questions' nearest documents score: the percentile that stands for the store."""
    found = [ask(question) for question in questions()]
    return calibrating.percentile([model.score(c[0].features) if c else -10_000 for c in found])


def measure(folder: str, corpus: Corpus, index: Vectors | None, embedder: Space | None, calibration: Calibration) -> None:
    """Write the store's background into a generation's folder: for words alone and, where there is an index, for its space."""
    from projectmem_projections.searching import Search, space_of

    scores = {}
    for vectors, encoder in ((None, None), (index, embedder)):
        space = space_of(encoder) if vectors is not None else calibrating.LEXICAL
        model = calibration.model(space)
        search = Search(corpus, vectors, encoder, Facts())
        scores[model.space] = score(search.nearest, model)
    with open(os.path.join(folder, BACKGROUND), "w", encoding="utf-8") as file:
        json.dump({"crc": crc(scores), "scores": scores}, file, sort_keys=True)
