"""Decides what to do with what recall found: nothing, the best, a summary, only the sure ones, more of them, abstain

Or ask. Pure.

Sixteen features of one retrieval, seven actions, a fixed policy to start with, and a conservative overlay learned from what
earlier
decisions led to (after RSCB-MC, arXiv 2604.27283). Integers only, no state of its own, deterministic. On the hook's path.
"""

from __future__ import annotations

from projectmem_gate.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from projectmem.ranking import Ranked

REVISION = "controller/1"
UNIT = 10_000
NO_MEMORY, INJECT_TOP, SUMMARISE, HIGH_PRECISION, HIGH_RECALL, ABSTAIN, ASK = ACTIONS = (
    "no_memory",  # nothing was found: there is nothing to decide
    "inject_top",  # the best ones, as ranked
    "summarise",  # one short line each: the budget has no room for more
    "high_precision",  # only what is far above the floor, or fits structurally
    "high_recall",  # more than usual: a broad question with many answers
    "abstain",  # something was found and it is better not said
    "ask",  # one item, with the question whether it helps; once a session
)
SHOWING = frozenset((INJECT_TOP, SUMMARISE, HIGH_PRECISION, HIGH_RECALL, ASK))

SURE = 1_000  # thousandths of a logit above the floor that count as sure
OTHER_RUN = 5_000  # two commands that are less than half the same are two commands
EVIDENCE_FULL = 4_000  # so many count as full
LEAST_EVIDENCE = 3  # outcomes of an action in a state before the overlay listens to it
MARGIN = 1_500  # by so much (of UNIT) its mean reward must be better than the fixed policy's
FALSE_POSITIVES_PERCENT = 20  # an action that was wrong more often than this in a state is never chosen by the overlay
BROAD = 4  # so many above the floor make a question broad
VISITS_FULL = 8
LATENCY_FULL = 100_000  # us


class Features(Value):
    """The sixteen features; every one an integer in ten-thousandths, 0 .. UNIT unless it says otherwise.

    relevance    margin: evidence of the best above its floor, of EVIDENCE_FULL (negative below it, down to -UNIT)
                 similarity: of the best
                 plenty: how many cleared the floor, of BROAD
    uncertainty  gap: evidence between the best and the next, of EVIDENCE_FULL (UNIT where there is no next)
                 confidence: of the best
                 staleness: 0 fresh .. UNIT old or past its review
    structure    language, framework, tool, platform, folder: UNIT shared, -UNIT clashing, 0 unknown (best against the question)
    feedback     utility: learned Q of the best, -UNIT .. UNIT
                 visits: rewards behind it, of VISITS_FULL
    risk         contradicted: disputes and useless marks of the best, of 4
    latency      latency: time taken so far, of LATENCY_FULL
    cost         tokens: of what would be shown, as a share of the budget (more than UNIT is cut to UNIT)
    """

    __slots__ = (
        "margin",
        "similarity",
        "plenty",
        "gap",
        "confidence",
        "staleness",
        "language",
        "framework",
        "tool",
        "platform",
        "folder",
        "utility",
        "visits",
        "contradicted",
        "latency",
        "tokens",
    )

    margin: int
    similarity: int
    plenty: int
    gap: int
    confidence: int
    staleness: int
    language: int
    framework: int
    tool: int
    platform: int
    folder: int
    utility: int
    visits: int
    contradicted: int
    latency: int
    tokens: int

    def __init__(self, **fields: int) -> None:
        for name in self.__slots__:
            setattr(self, name, max(-UNIT, min(UNIT, fields.get(name, 0))))


class Decision(Value):
    """action: one of ACTIONS;  items: what to show, in order;  why: one line;  state: the bucket the overlay learns by."""

    __slots__ = ("action", "features", "items", "learned", "state", "why")

    def __init__(self, action: str, items: Sequence[Ranked], why: str, features: Features, learned: bool = False) -> None:
        self.action, self.items, self.why, self.features, self.learned = action, list(items), why, features, learned
        self.state = bucket(features)

    def event_data(self) -> dict[str, Any]:
        """As `recall.decided` records it."""
        return {
            "revision": REVISION,
            "action": self.action,
            "why": self.why,
            "state": self.state,
            "learned": self.learned,
            "features": self.features.to_data(),
        }


def features(above: Sequence[Ranked], below: Sequence[Ranked], tokens: int, budget: int, latency: int) -> Features:
    """The features of a retrieval.

    above, below   what cleared the floor, best first, and what did not;  tokens: of what would be shown
    budget         tokens that may be used;  latency: microseconds spent so far (a fact that is handed in, never read here)
    """
    found = [*above, *below]
    if not found:
        return Features(latency=latency * UNIT // LATENCY_FULL)
    best, near = found[0], found[0].candidate.features
    after = found[1].evidence if len(found) > 1 else best.evidence - EVIDENCE_FULL
    return Features(
        margin=(best.evidence - best.floor) * UNIT // EVIDENCE_FULL,
        similarity=best.candidate.similarity,
        plenty=len(above) * UNIT // BROAD,
        gap=max(0, best.evidence - after) * UNIT // EVIDENCE_FULL,
        confidence=best.confidence,
        staleness=UNIT if best.uncertain else UNIT - best.age,
        language=near.get("languages", 0),
        framework=near.get("frameworks", 0),
        tool=near.get("tools", 0),
        platform=near.get("platforms", 0),
        folder=near.get("folders", 0),
        utility=best.utility,
        visits=best.visits * UNIT // VISITS_FULL,
        contradicted=best.contradicted * UNIT // 4,
        latency=latency * UNIT // LATENCY_FULL,
        tokens=tokens * UNIT // (budget or 1),
    )


def fits(one: Ranked) -> bool:
    """Whether a memory may be about the same thing at all, by structure.

    Never of another language or error number, no mere command where the question is an error message, no other error of the
    command that it quotes one of, none of another command where it is a command, of another file where it is a path; of another
    platform only where it is sure.
    """
    near = one.candidate.features
    return may_fit(near) and (near.get("platforms", 0) >= 0 or one.evidence - one.floor >= SURE)


def may_fit(near: Mapping[str, int]) -> bool:
    """The same by its features alone, whatever the platform."""
    if near.get("languages", 0) < 0 or near.get("other_code", 0) or near.get("path_other", 0) or near.get("only_ran", 0):
        return False
    return near.get("run_other", 0) < OTHER_RUN and not near.get("other_cause", 0)


def bucket(f: Features) -> str:
    """The coarse state that the overlay learns by: margin, gap, structure, utility and plenty, each in two or three steps."""
    clash = min(f.language, f.framework, f.tool) < 0
    margin = 0 if f.margin < 0 else 1 if f.margin < UNIT // 4 else 2
    learned = 0 if f.utility < -UNIT // 10 else 2 if f.utility > UNIT // 10 else 1
    return f"m{margin}g{int(f.gap >= UNIT // 8)}s{int(clash)}u{learned}p{min(2, f.plenty * 2 // UNIT)}"


def decide(
    above: Sequence[Ranked],
    below: Sequence[Ranked],
    *,
    tokens: int,
    budget: int,
    latency: int = 0,
    k: int = 3,
    asked: bool = False,
    learned: Mapping[tuple[str, str], tuple[int, int, int]] | None = None,
) -> Decision:
    """What to do with one retrieval.

    above, below, tokens, budget, latency   see `features`;  k: items that are usually shown
    asked     whether this session was asked for feedback already: asking again would be nagging
    learned   of `lessons`: what actions led to in each state; None or {} is the cold start
    """
    compatible = [r for r in above if fits(r)]
    seen = features(compatible or above, below, tokens, budget, latency)
    action, why = _fixed(seen, above, compatible, below, asked)
    better = _overlay(seen, action, learned or {}) if compatible and action in SHOWING else ""
    if better:
        action, why = better, f"{better} did better than {action} here"
    items = _items(action, compatible, k)
    if action in SHOWING and not items:
        action, why, better = ABSTAIN, "a near match that does not fit well enough", ""
    return Decision(action, items, why, seen, bool(better))


def _fixed(
    f: Features, above: Sequence[Ranked], compatible: Sequence[Ranked], below: Sequence[Ranked], asked: bool
) -> tuple[str, str]:
    """The policy of the cold start."""
    if not above:
        if below:
            return ABSTAIN, "nothing is similar enough"
        return NO_MEMORY, "nothing shares a word or a meaning with the question"
    if not compatible:
        return ABSTAIN, "what is similar belongs to another language or platform"
    if f.utility < -UNIT // 4 and f.visits >= 2 * UNIT // VISITS_FULL:
        if asked or f.contradicted:
            return ABSTAIN, "what is similar misled before"
        return ASK, "what is similar misled before: is it of use?"
    if f.tokens >= UNIT:
        return SUMMARISE, "the budget has room for short lines only"
    if f.margin < SURE * UNIT // EVIDENCE_FULL and (min(f.framework, f.tool) < 0 or f.staleness >= UNIT):
        return HIGH_PRECISION, "a near match that may not fit"
    if f.plenty >= UNIT and f.gap < UNIT // 8:
        return HIGH_RECALL, "many answer it about as well"
    return INJECT_TOP, "a clear match"


def _items(action: str, compatible: Sequence[Ranked], k: int) -> list[Ranked]:
    if action in (NO_MEMORY, ABSTAIN):
        return []
    if action == HIGH_PRECISION:
        return [r for r in compatible if r.evidence - r.floor >= SURE][:1]
    return list(compatible[: {ASK: 1, HIGH_RECALL: 2 * k}.get(action, k)])


def lessons(decisions: Iterable[tuple[str, str, int, bool]]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(state, action) -> (outcomes, sum of rewards, false positives), from `Experience.decisions`."""
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for state, action, reward, wrong in decisions:
        count, total, bad = found.get((state, action), (0, 0, 0))
        found[state, action] = (count + 1, total + reward, bad + wrong)
    return found


def _overlay(f: Features, action: str, learned: Mapping[tuple[str, str], tuple[int, int, int]]) -> str:
    """A better action than the fixed one, "" mostly: enough evidence for both, a clear margin, and a veto for false positives."""
    state = bucket(f)
    count, total, _ = learned.get((state, action), (0, 0, 0))
    if count < LEAST_EVIDENCE:
        return ""
    best, mean = "", total // count + MARGIN
    for other in ACTIONS:
        tries, sum_, bad = learned.get((state, other), (0, 0, 0))
        vetoed = other in SHOWING and bad * 100 > FALSE_POSITIVES_PERCENT * tries
        if other not in (action, NO_MEMORY) and tries >= LEAST_EVIDENCE and not vetoed and sum_ // tries >= mean:
            best, mean = other, sum_ // tries + 1
    return best
