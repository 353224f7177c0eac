"""Recall's decision: which candidates clear the floor, in what order, without repeats. Pure integers in ten-thousandths.

evidence -> absolute floor -> blend of similarity, age, confidence, importance, type and usage -> utility (two-phase, z-scored)
-> drop near repeats. What falls below the floor is kept for the record, never shown.
"""

from __future__ import annotations

from math import isqrt

from projectmem_gate.model import Value
from projectmem_projections.utility import memory

from projectmem import asked_time, recall_policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from projectmem_projections.calibration import Calibration
    from projectmem_projections.documents import Document
    from projectmem_projections.glance import Candidate
    from projectmem_projections.utility import Utility

    from projectmem.recall_policy import RecallPolicy

ENGINE = "recall/2"
UNIT = 10_000
DAY = 86_400_000_000

ORIGINS: Mapping[str, int] = {"observed": 9_000, "human": 9_000, "agent": 5_000, "import": 4_000}
VERIFIED = 2_000  # added where something showed it to be so
# What a person corrected outranks what a person said, that what was observed, that what an agent stated, that what was inferred.
CORRECTED, STATED, OBSERVED, TOLD, INFERRED, IMPORTED = 10_000, 8_500, 7_500, 6_000, 4_000, 3_000
EPISODES = ("failure", "attempt", "fix", "issue")  # what happened at a time: a question about a time ranks them by nearness to it
ASKED_HALF_LIFE = DAY
USED_MAX = 8  # so often of use counts as much used; use that did no good counts for nothing
REPEAT_PERCENT = 80  # two texts that share this much of their neighbouring words are one


class Ranked(Value):
    """A candidate with every component of its score, all in ten-thousandths but `evidence` and `floor`.

    evidence  what the floor was compared with, in thousandths of a logit;  floor: what it had to reach
    score     the blend;  utility: learned, -UNIT .. UNIT, 0 where nothing was;  final: what orders, blend and utility z-scored
    uncertain past its review date: shown as such, with half the confidence
    """

    __slots__ = (
        "age",
        "candidate",
        "confidence",
        "contradicted",
        "evidence",
        "final",
        "floor",
        "importance",
        "score",
        "uncertain",
        "usage",
        "utility",
        "visits",
        "weight",
    )

    def __init__(self, candidate: Candidate, evidence: int, floor: int, uncertain: bool = False) -> None:
        self.candidate, self.evidence, self.floor, self.uncertain = candidate, evidence, floor, uncertain
        self.age = self.confidence = self.importance = self.weight = self.usage = self.score = 0
        self.utility = self.visits = self.contradicted = self.final = 0

    @property
    def document(self) -> Document:
        """What was found."""
        return self.candidate.document

    def components(self) -> dict[str, Any]:
        """Every component, as `recall.decided` records it."""
        c = self.candidate
        own = ("evidence", "floor", "age", "confidence", "importance", "weight", "usage", "score", "utility", "visits", "final")
        return {
            "id": c.document.id,
            "type": c.document.type,
            "key": c.document.key,
            "cosine": c.cosine,
            "lexical": c.lexical,
            "rarity": c.rarity,
            "cover": c.cover,
            "similarity": c.similarity,
            **{name: getattr(self, name) for name in own},
            "features": dict(c.features),
        }


class Asking(Value):
    """What a ranking depends on besides the candidates.

    query, kind   the question and its kind (`structure.KINDS`);  documents: size of the store;  space: of the vectors
    calibration   models and floors;  policy: weights;  utilities: document id -> what experience taught
    """

    __slots__ = ("calibration", "documents", "kind", "now", "policy", "query", "space", "utilities")

    def __init__(
        self,
        query: str,
        kind: str,
        now: int,
        documents: int,
        space: str,
        calibration: Calibration,
        policy: RecallPolicy = recall_policy.DEFAULT,
        utilities: Mapping[str, Utility] | None = None,
    ) -> None:
        self.query, self.kind, self.now, self.documents, self.space = query, kind, now, documents, space
        self.calibration, self.policy = calibration, policy
        self.utilities: Mapping[str, Utility] = utilities or {}


def rank(candidates: Sequence[Candidate], asking: Asking) -> tuple[list[Ranked], list[Ranked]]:
    """(what clears the floor, best first, without near repeats; what does not, nearest first)."""
    above: list[Ranked] = []
    below: list[Ranked] = []
    about = asked_time.asked_about(asking.query, asking.now)
    for candidate in candidates:
        if not candidate.features:
            continue  # beyond the nearest: never shown, not worth a record
        space = "lexical" if candidate.cosine is None else asking.space
        evidence = asking.calibration.model(space).score(candidate.features)
        ranked = Ranked(candidate, evidence, asking.calibration.floor(space, asking.kind, asking.documents))
        _weigh(ranked, asking, about)
        (above if ranked.evidence >= ranked.floor else below).append(ranked)
    _second_phase(above, asking.policy.utility)
    above.sort(key=lambda r: (-r.final, -r.score, r.document.id))
    below.sort(key=lambda r: (-r.evidence, r.document.id))
    return _distinct(above), below


def _weigh(ranked: Ranked, asking: Asking, about: int | None) -> None:
    document, policy, now = ranked.document, asking.policy, asking.now
    learned = asking.utilities.get(memory(document.id, document.type, document.key))
    half_life = policy.half_lives.get(document.type, 7) * DAY
    if about is not None and document.type in EPISODES:
        ranked.age = decay(abs(about - document.at), ASKED_HALF_LIFE)
    else:
        ranked.age = decay(now - max(document.at, learned.refreshed_at if learned else 0), half_life)
    ranked.uncertain = 0 < document.review_at <= now
    ranked.confidence = confidence(document.origin, document.verifier, ranked.uncertain)
    if learned:
        ranked.utility, ranked.visits, ranked.contradicted = learned.value, learned.visits, learned.contradicted
        ranked.confidence = ranked.confidence >> min(learned.contradicted, 4)  # contradiction weakens at once
    ranked.importance = importance(document)
    ranked.weight = policy.weights.get(document.type, 50) * UNIT // 100
    ranked.usage = min(UNIT, ranked.visits * UNIT // USED_MAX) if ranked.utility > 0 else 0
    parts = {
        "similarity": ranked.candidate.similarity,
        "age": ranked.age,
        "confidence": ranked.confidence,
        "importance": ranked.importance,
        "type": ranked.weight,
        "usage": ranked.usage,
    }
    ranked.score = sum(policy.shares[name] * value for name, value in parts.items()) // 100


def _second_phase(above: list[Ranked], share: int) -> None:
    """Blend and utility, each z-scored over what cleared the floor.

    Without any experience the order is that of the blend (MemRL).
    """
    if not any(r.visits for r in above):
        share = 0
    for ranked, blend, learned in zip(above, zscores([r.score for r in above]), zscores([r.utility for r in above]), strict=True):
        ranked.final = ((100 - share) * blend + share * learned) // 100


def zscores(values: Sequence[int]) -> list[int]:
    """Distances from the mean in standard deviations, in ten-thousandths; all 0 where nothing varies."""
    count = len(values)
    total = sum(values)
    spread = isqrt(sum((count * v - total) ** 2 for v in values) // (count or 1))
    return [UNIT * (count * v - total) // spread if spread else 0 for v in values]


def importance(document: Document) -> int:
    """By who said it and how: a correction by a person, a person's word, an observation, an agent's word, an inference.

    An import.
    """
    if document.origin == "human":
        return CORRECTED if document.corrects else STATED
    if document.origin == "observed":
        return OBSERVED
    if document.origin == "agent":
        return INFERRED if document.type == "hypothesis" or document.causes else TOLD
    return IMPORTED


def confidence(origin: str, verifier: str, uncertain: bool) -> int:
    """How much a document is to be believed: by who said so, whether something verified it, and whether review is overdue."""
    sure = min(UNIT, ORIGINS.get(origin, 4_000) + (VERIFIED if verifier and verifier != "none" else 0))
    return sure // 2 if uncertain else sure


def decay(age: int, half_life: int) -> int:
    """UNIT at age 0, half of it after each half-life, linear in between; integers only, so that machines agree."""
    if age <= 0:
        return UNIT
    halvings, rest = divmod(age, half_life)
    if halvings >= 14:
        return 0
    top = UNIT >> halvings
    return top - (top - top // 2) * rest // half_life


def _distinct(ranked: list[Ranked]) -> list[Ranked]:
    """Without those that say again what a better one says, or are about the same action."""
    kept: list[Ranked] = []
    seen: list[tuple[frozenset[tuple[str, ...]], str]] = []
    for one in ranked:
        pairs = _pairs(one.document.text)
        key = one.document.key if one.document.type == "failure" else ""
        if any((key and key == other_key) or _repeats(pairs, other) for other, other_key in seen):
            continue
        seen.append((pairs, key))
        kept.append(one)
    return kept


def _pairs(text: str) -> frozenset[tuple[str, ...]]:
    """Neighbouring words: unlike single words they tell `use A, not B` from `use B, not A`."""
    words = ["", *text.lower().split(), ""]
    return frozenset((words[i], words[i + 1]) for i in range(len(words) - 1))


def _repeats(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> bool:
    return len(a & b) * 100 >= REPEAT_PERCENT * max(len(a | b), 1)
