"""Recall's decision: which candidates clear the floor, in what order, without repeats. Pure integers in ten-thousandths.

similarity -> absolute floor -> blend with age, confidence and type -> drop near repeats. What falls below the floor is kept
for the record, never shown.
"""

from __future__ import annotations

from projectmem_gate.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from projectmem_projections.documents import Document
    from projectmem_projections.glance import Candidate

ENGINE = "recall/1"
UNIT = 10_000
DAY = 86_400_000_000


class Floor(Value):
    """What a candidate's evidence must reach, for one vector space, fitted on labelled queries (10 % of unanswerable ones pass).

    evidence = similarity + rarity_share % of rarity.  `base` holds up to BASE_COUNT documents and rises by `per_tenfold`
    with each tenfold beyond, because the best of many unrelated texts is closer than the best of few.
    """

    __slots__ = ("base", "per_tenfold", "rarity_share", "space")

    def __init__(self, space: str, base: int, per_tenfold: int, rarity_share: int) -> None:
        self.space, self.base, self.per_tenfold, self.rarity_share = space, base, per_tenfold, rarity_share

    def at(self, documents: int) -> int:
        """The floor for a collection of this size."""
        return self.base + self.per_tenfold * _tenfolds_percent(documents) // 100

    def evidence(self, similarity: int, rarity: int) -> int:
        """What is compared with the floor."""
        return similarity + self.rarity_share * rarity // 100


BASE_COUNT = 300
# space -> floor. The space is the embedder's model and the start of its revision; "lexical" where no cosine is known.
FLOORS = {
    "static-256/79bac3aa": Floor("static-256/79bac3aa", 6_300, 500, 20),
    "lexical": Floor("lexical", 5_200, 300, 20),
}

# type -> (weight, half-life in days)
TYPES: Mapping[str, tuple[int, int]] = {
    "decision": (10_000, 180),
    "fix": (10_000, 60),
    "failure": (9_000, 7),
    "attempt": (8_000, 14),
    "note": (8_000, 60),
    "issue": (7_000, 30),
    "hypothesis": (5_000, 7),
    "label": (10_000, 365),
}
ORIGINS: Mapping[str, int] = {"observed": 9_000, "human": 9_000, "agent": 5_000, "import": 4_000}
VERIFIED = 2_000  # added where something showed it to be so
# Shares in per cent; they add up to 100.
SIMILARITY, AGE, CONFIDENCE, TYPE = 70, 10, 10, 10
REPEAT_PERCENT = 80  # two texts that share this much of their neighbouring words are one


class Ranked(Value):
    """A candidate with every component of its score, all in ten-thousandths.

    evidence  what the floor was compared with;  score  the blend that orders what is shown
    uncertain past its review date: shown as such, with half the confidence
    """

    __slots__ = ("age", "candidate", "confidence", "evidence", "score", "uncertain", "weight")

    def __init__(
        self, candidate: Candidate, evidence: int, age: int, confidence: int, weight: int, score: int, uncertain: bool
    ) -> None:
        self.candidate, self.evidence, self.age, self.confidence = candidate, evidence, age, confidence
        self.weight, self.score, self.uncertain = weight, score, uncertain

    @property
    def document(self) -> Document:
        """What was found."""
        return self.candidate.document

    def components(self) -> dict[str, Any]:
        """Every component, as `recall.decided` records it."""
        c = self.candidate
        return {
            "id": c.document.id,
            "type": c.document.type,
            "cosine": c.cosine,
            "lexical": c.lexical,
            "rarity": c.rarity,
            "similarity": c.similarity,
            "evidence": self.evidence,
            "age": self.age,
            "confidence": self.confidence,
            "weight": self.weight,
            "score": self.score,
        }


def rank(candidates: Sequence[Candidate], now: int, documents: int, space: str) -> tuple[list[Ranked], list[Ranked]]:
    """(what clears the floor, best first, without near repeats; what does not, nearest first).

    documents  size of the collection;  space  of the vectors: a candidate without a cosine is held to the lexical floor
    """
    above: list[Ranked] = []
    below: list[Ranked] = []
    for candidate in candidates:
        floor = FLOORS["lexical" if candidate.cosine is None else space]
        ranked = _weigh(candidate, floor, now)
        (above if ranked.evidence >= floor.at(documents) else below).append(ranked)
    above.sort(key=lambda r: (-r.score, r.document.id))
    below.sort(key=lambda r: (-r.evidence, r.document.id))
    return _distinct(above), below


def _weigh(candidate: Candidate, floor: Floor, now: int) -> Ranked:
    document = candidate.document
    weight, half_life = TYPES.get(document.type, (5_000, 7))
    age = decay(now - document.at, half_life * DAY)
    uncertain = 0 < document.review_at <= now
    sure = confidence(document.origin, document.verifier, uncertain)
    score = (SIMILARITY * candidate.similarity + AGE * age + CONFIDENCE * sure + TYPE * weight) // 100
    return Ranked(candidate, floor.evidence(candidate.similarity, candidate.rarity), age, sure, weight, score, uncertain)


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


def _tenfolds_percent(documents: int) -> int:
    """Hundredths of a tenfold above BASE_COUNT (0 up to it), piecewise linear between tenfolds."""
    tenfolds, size = 0, BASE_COUNT
    while documents >= size * 10:
        tenfolds, size = tenfolds + 1, size * 10
    return tenfolds * 100 + (max(0, documents - size) * 100) // (size * 9)
