"""Recall for the hook: words only, no numpy, no faiss, nothing written. On the hook's path.

The same floor, blend, controller and rendering as `recall`, over the lexical candidates alone.
"""

from __future__ import annotations

from projectmem import recall_policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_projections.glance import Glance
    from projectmem_projections.scope import Scope

    from projectmem.answering import Answer
    from projectmem.recall_policy import RecallPolicy

K = 3
BUDGET_TOKENS = 250
QUERY_MAX = 1_000  # characters of the question that are looked at
READ_MAX = 128 << 10  # bytes of log beyond the generation that are read for a failure: about 15 ms, whatever the log's size
PROMPT_READ_MAX = 4 * READ_MAX  # the same for a prompt, of which there are fewer, and a person has just been typing


def opened(home: str, read_max: int | None) -> Glance:
    """What is known of the log. `read_max`: serve nothing where more of the log than that had to be read."""
    from projectmem_projections.glance import Glance, current

    if read_max is None:
        return Glance(home, current(home))
    return Glance(home, current(home), read_max, read_max)


def closed(home: str, glance: Glance) -> None:
    """Nothing is kept."""
    glance.close()


def unread(home: str) -> bool:
    """Nothing of any log was read before."""
    return True


take, give, is_unread = opened, closed, unread  # a resident process keeps what it has read


def is_beyond(home: str, read_max: int) -> bool:
    """Whether nothing can be served: there is no generation yet and more log than `read_max`. Asked before what recalls is
    loaded, which costs a process more than the question."""
    from projectmem_projections.published import current
    from projectmem_projections.tail import positions

    if not is_unread(home):  # long ago, when there was less of it
        return False
    return current(f"{home}/projections/recall") is None and sum(size for _, size in positions(home).values()) > read_max


def lexical(
    home: str,
    query: str,
    *,
    now: int,
    scope: Scope,
    nonce: str,
    session: str = "",
    k: int = K,
    budget_tokens: int = BUDGET_TOKENS,
    policy: RecallPolicy = recall_policy.DEFAULT,
    without: frozenset[str] = frozenset(),
    read_max: int | None = None,
) -> Answer:
    """What the log has to say about `query` by its words; mostly nothing.

    query    a person's prompt, or the signature of a failure that just happened;  scope: of the reader
    session  what it was shown before is not shown again;  without: action keys whose own failures it knows already
    read_max  see `opened`
    """
    from projectmem_projections import structure

    from projectmem import answering
    from projectmem.ranking import Asking

    query = query[:QUERY_MAX]
    if scope.empty or not query.strip():
        return answering.Answer("the scope is empty" if scope.empty else "the question is empty")
    glance = take(home, read_max)
    try:
        candidates = [c for c in glance.candidates(query, scope, now) if not c.document.key or c.document.key not in without]
        if not candidates:
            return answering.Answer("nothing shares a word with the question", documents=glance.count)
        experience = glance.experience()
        asking = Asking(
            query,
            structure.of(query).kind,
            now,
            glance.count,
            "lexical",
            glance.calibration,
            policy,
            experience.utilities(),
        )
        budget = min(budget_tokens, policy.budget())
        return answering.answer(candidates, asking, experience, nonce=nonce, k=k, budget=budget, session=session)
    finally:
        give(home, glance)
