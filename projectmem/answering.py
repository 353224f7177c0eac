"""From candidates to an answer: rank, leave out what this session has seen, let the controller decide, render.

On the hook's path.

The one way from search to text for the hook, MCP and the command line. Everything that decided is in the answer, so that it
can be
recorded as `recall.decided`.
"""

from __future__ import annotations

from projectmem_gate.model import Value
from projectmem_projections.utility import memory

from projectmem import controller, ranking, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from projectmem_projections.glance import Candidate
    from projectmem_projections.utility import Experience

    from projectmem.controller import Decision
    from projectmem.ranking import Asking, Ranked

BELOW_KEPT = 5  # how many of those below the floor are reported
QUERY_MAX = 2_000  # characters of a question that are looked at


class Answer(Value):
    """What recall answers.

    items     what is shown, best first;  above, below: all that cleared the floor, and the nearest that did not
    block     the text for an agent, "" when there is nothing to say (then there is no fence either)
    decision  of the controller, None where nothing was searched;  why: the reason in one line
    repeated  how many were left out because this session was shown them before
    notes     what was not served and why
    """

    __slots__ = ("above", "below", "block", "decision", "documents", "floors", "items", "notes", "repeated", "why")

    def __init__(self, why: str, decision: Decision | None = None, documents: int = 0) -> None:
        self.why, self.decision, self.documents = why, decision, documents
        self.items: list[Ranked] = []
        self.above: list[Ranked] = []
        self.below: list[Ranked] = []
        self.block, self.repeated = "", 0
        self.floors: dict[str, int] = {}
        self.notes: list[str] = []

    @property
    def abstained(self) -> bool:
        """Whether nothing is shown."""
        return not self.items

    def event_data(self, query: str, surface: str = "") -> dict[str, Any]:
        """The payload of `recall.decided`: integers and strings only. `query` must be redacted by the caller's write path."""
        data: dict[str, Any] = {
            "engine": ranking.ENGINE,
            "query": query[:QUERY_MAX],
            "abstained": self.abstained,
            "why": self.why,
            "documents": self.documents,
            "floors": self.floors,
            "items": [r.components() for r in self.items],
            "below_floor": [r.components() for r in self.below],
            "repeated": self.repeated,
            "tokens": render.tokens(self.block),
            "notes": self.notes,
        }
        if surface:
            data["surface"] = surface
        if self.decision is not None:
            data["controller"] = self.decision.event_data()
        return data


def answer(
    candidates: Sequence[Candidate],
    asking: Asking,
    experience: Experience,
    *,
    nonce: str,
    k: int,
    budget: int,
    session: str = "",
    latency: int = 0,
) -> Answer:
    """Decide over candidates.

    experience  of the log: what recalls led to, and what `session` was shown already ("" where there is no session)
    nonce       unguessable, new for each block: names the fence;  k: so many items are usual
    budget      tokens of the whole block, fence included;  latency: microseconds spent on searching
    """
    above, below = ranking.rank(candidates, asking)
    shown = experience.shown(session) if session else frozenset()
    fresh = [r for r in above if not _known(r, shown)]
    taught = bool(session) and experience.instructed(session)
    room = budget - render.fence_tokens(nonce, taught)
    cost = sum(render.tokens(render.ranked(r, asking.now) + "\n") for r in fresh[:k])
    decision = controller.decide(
        fresh,
        below,
        tokens=cost,
        budget=max(room, 1),
        latency=latency,
        k=k,
        asked=bool(session) and experience.asked(session),
        learned=controller.lessons(experience.decisions()),
    )
    made = Answer(decision.why, decision, asking.documents)
    made.above, made.below, made.repeated = above, below[:BELOW_KEPT], len(above) - len(fresh)
    spaces = {"lexical", asking.space}
    made.floors = {space: asking.calibration.floor(space, asking.kind, asking.documents) for space in sorted(spaces)}
    style = render.brief if decision.action == controller.SUMMARISE else render.ranked
    lines = render.fit((style(r, asking.now) for r in decision.items), room)
    made.items = decision.items[: len(lines)]
    if decision.items and not lines:
        made.why = "the budget has no room for even one item"
    elif above and not fresh:
        made.why = "this session was shown it before"
    if decision.action == controller.ASK and lines:
        lines.append(render.QUESTION)
    made.block = render.fence(lines, nonce, taught)
    return made


def _known(ranked: Ranked, shown: frozenset[str]) -> bool:
    document = ranked.document
    return memory(document.id, document.type, document.key) in shown or render.short(document.id) in shown
