"""Recall for the hook: words only, no numpy, no faiss, nothing written. On the hook's path.

The same floor, blend and rendering as `recall`, over the lexical candidates alone.
"""

from __future__ import annotations

from projectmem_projections.glance import Glance, current

from projectmem import ranking, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_projections.scope import Scope

    from projectmem.ranking import Ranked

K = 3
BUDGET_TOKENS = 250
QUERY_MAX = 1_000  # characters of the question that are looked at


def lexical_items(home: str, query: str, *, now: int, scope: Scope, k: int = K) -> list[Ranked]:
    """What the log has to say about `query` by its words, best first; often nothing.

    query  a person's prompt, or the signature of a failure that just happened;  scope: of the reader
    """
    if scope.empty or not query.strip():
        return []
    glance = Glance(home, current(home))
    try:
        candidates = glance.candidates(query[:QUERY_MAX], scope, now)
        count = glance.count
    finally:
        glance.close()
    above, _ = ranking.rank(candidates, now, count, "lexical")
    return above[:k]


def block(items: list[Ranked], *, now: int, nonce: str, budget_tokens: int = BUDGET_TOKENS) -> str:
    """The items as a fenced block within the budget, "" when there are none."""
    lines = render.fit((render.ranked(item, now) for item in items), budget_tokens - render.fence_tokens(nonce))
    return render.fence(lines, nonce)
