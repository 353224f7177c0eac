"""What recall costs to build and to ask at 1,000, 10,000 and 100,000 memories, embedding included, and what the controller costs.

Processor time, so that a busy machine does not spoil it: one recall after the other in a process that stays open, as in a server.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from projectmem_projections import calibrations, embed, structure
from projectmem_projections.calibration import Calibration
from projectmem_projections.searching import space_of
from projectmem_projections.utility import Experience

from projectmem import answering, controller
from projectmem.evaluation import filler, labelled
from projectmem.ranking import Asking, rank

SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
QUESTIONS = 200


def percentile(found: list[int], percent: int) -> float:
    """Of nanoseconds, in milliseconds."""
    return sorted(found)[(len(found) - 1) * percent // 100] / 1e6


def timed(work: Callable[[], object]) -> int:
    """Nanoseconds of processor time."""
    began = time.process_time_ns()
    work()
    return time.process_time_ns() - began


def measure(size: int) -> str:
    """One row: the build of corpus, vectors and index in s, recall's p50 and p95 in ms, the controller's p95 in us."""
    own = labelled.read(labelled.OWN)
    embedder = embed.default()
    calibration, space = Calibration(calibrations.shipped()), space_of(embedder)
    questions = [q.text for q in own.queries][::2][:QUESTIONS]
    whole, decisions = [], []
    documents = [*own.documents, *filler.made_up(size - len(own.documents))]
    began = time.process_time()
    with labelled.searching(documents, embedder) as search:
        built = time.process_time() - began

        def recall(question: str) -> object:
            found = search.candidates(question, labelled.SCOPE, labelled.NOW)
            kind = structure.of(question).kind
            asking = Asking(question, kind, labelled.NOW, search.count, space, calibration)
            return answering.answer(found, asking, Experience(), nonce="n", k=5, budget=400)

        for question in questions[:20]:
            recall(question)
        for question in questions:
            whole.append(timed(lambda q=question: recall(q)))
            found = search.candidates(question, labelled.SCOPE, labelled.NOW)
            asking = Asking(question, structure.of(question).kind, labelled.NOW, search.count, space, calibration)
            above, below = rank(found, asking)
            decisions += [timed(lambda a=above, b=below: controller.decide(a, b, tokens=100, budget=400)) for _ in range(20)]
    asked = f"{percentile(whole, 50):.1f} | {percentile(whole, 95):.1f} | {percentile(decisions, 95) * 1000:.0f}"
    return f"| {size:,} | {built:.1f} | {asked} |"


def main() -> Iterator[str]:
    """The table, a line at a time."""
    yield "| memories | build s | recall p50 ms | p95 ms | controller p95 us |"
    yield "|---|---|---|---|---|"
    for size in (*SIZES, MILLION) if os.environ.get("PROJECTMEM_BENCH_MILLION") == "1" else SIZES:
        yield measure(size)
