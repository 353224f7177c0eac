"""Controlled recall: a question in, a labelled block within a budget out, or nothing at all.

Scope filter -> lexical and vector candidates -> absolute floor -> blend -> near repeats out -> budget. Everything that decided
is in the result, so that it can be recorded. Without faiss, or when the index does not match, words alone are searched and a
note says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from projectmem_gate.model import Value
from projectmem_projections import vectors
from projectmem_projections.recollection import Recollection, refresh
from projectmem_projections.scope import Scope

from projectmem import ranking, render
from projectmem.ranking import Ranked

if TYPE_CHECKING:
    from projectmem_projections.embed import Embedder

K, K_MAX = 5, 20
BUDGET_TOKENS = 400
QUERY_MAX = 2_000  # characters of the question that are looked at
BELOW_KEPT = 5  # how many of those below the floor are reported


class Result(Value):
    """What recall answers.

    items        what is shown, best first;  below: the nearest that did not clear the floor
    block        the text for an agent, "" when there is nothing to say (then there is no fence either)
    abstained    whether nothing is shown;  why: the reason in one line
    floor        evidence that was needed (ten-thousandths), lexical_floor the same where a text has no vector
    notes        what was not served and why
    """

    __slots__ = ("abstained", "below", "block", "documents", "floor", "items", "lexical_floor", "notes", "why")

    def __init__(
        self,
        items: list[Ranked],
        below: list[Ranked],
        block: str,
        why: str,
        documents: int = 0,
        floor: int = 0,
        lexical_floor: int = 0,
        notes: list[str] | None = None,
    ) -> None:
        self.items, self.below, self.block, self.why = items, below, block, why
        self.documents, self.floor, self.lexical_floor = documents, floor, lexical_floor
        self.abstained, self.notes = not items, list(notes or ())

    def event_data(self, query: str) -> dict[str, Any]:
        """The payload of `recall.decided`: integers and strings only. `query` must be redacted by the caller's write path."""
        return {
            "engine": ranking.ENGINE,
            "query": query[:QUERY_MAX],
            "abstained": self.abstained,
            "why": self.why,
            "documents": self.documents,
            "floor": self.floor,
            "lexical_floor": self.lexical_floor,
            "items": [r.components() for r in self.items],
            "below_floor": [r.components() for r in self.below],
            "tokens": render.tokens(self.block),
            "notes": self.notes,
        }


def recall(
    home: str,
    query: str,
    *,
    now: int,
    nonce: str,
    k: int = K,
    budget_tokens: int = BUDGET_TOKENS,
    scope: Scope | None = None,
    memory: Memory | None = None,
) -> Result:
    """Ask the log in `home`. See `Memory.recall` for the arguments.

    scope    defaults to the log's own project;  memory: defaults to one opened for this question
    A generation that is missing, damaged or far behind is rebuilt after answering.
    """
    memory = memory or Memory(home)
    if scope is None:
        from projectmem_logs.store import project_id

        scope = Scope(project_id(home))
    result = memory.recall(query, scope, now=now, nonce=nonce, k=k, budget_tokens=budget_tokens)
    if memory.stale:
        result.notes.extend(memory.rebuild())
    return result


class Memory:
    """An open memory of one log. Keep it between questions where the process lives on (a server); it catches up by itself."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.note = vectors.available()
        self.embedder: Embedder | None = None
        if not self.note:
            from projectmem_projections import embed

            self.embedder = embed.default()
        self._recollection: Recollection | None = None

    @property
    def stale(self) -> bool:
        """Whether a new generation should be built."""
        return self._recollection is None or self._recollection.stale

    def rebuild(self) -> list[str]:
        """Build and publish a generation; returns notes, never raises: the question has been answered already."""
        try:
            return refresh(self.home, self.embedder)
        except Exception as error:  # derived data: the next question tries again
            return [f"the recall generation was not rebuilt ({type(error).__name__}: {error})"]

    def recall(self, query: str, scope: Scope, *, now: int, nonce: str, k: int = K, budget_tokens: int = BUDGET_TOKENS) -> Result:
        """The answer to one question.

        query   any text; its first QUERY_MAX characters count
        scope   of the reader; an empty one gets nothing
        now     microseconds since the epoch: ages and expiry
        nonce   unguessable, new for each block: names the fence
        k       at most so many items, 1 .. K_MAX;  budget_tokens: of the whole block, fence included
        """
        query = query[:QUERY_MAX]
        if scope.empty or not query.strip():
            return Result([], [], "", "the scope is empty" if scope.empty else "the question is empty")
        if self._recollection is None:
            self._recollection = Recollection(self.home, self.embedder)
        search = self._recollection.search()
        candidates = search.candidates(query, scope, now)
        space = space_of(self.embedder)
        above, below = ranking.rank(candidates, now, search.count, space)
        items = _fitting(above[: max(1, min(k, K_MAX))], now, nonce, budget_tokens)
        floors = (ranking.FLOORS[space].at(search.count), ranking.FLOORS["lexical"].at(search.count))
        notes = [*([self.note] if self.note else []), *self._recollection.notes]
        why = _why(items, above, candidates)
        return Result(items, below[:BELOW_KEPT], _block(items, now, nonce), why, search.count, *floors, notes)


def space_of(embedder: Embedder | None) -> str:
    """Name of the floor that belongs to an embedder."""
    return f"{embedder.model}/{embedder.revision[:8]}" if embedder is not None else "lexical"


def _fitting(ranked: list[Ranked], now: int, nonce: str, budget_tokens: int) -> list[Ranked]:
    room = budget_tokens - render.fence_tokens(nonce)
    return ranked[: len(render.fit((render.ranked(r, now) for r in ranked), room))]


def _block(ranked: list[Ranked], now: int, nonce: str) -> str:
    return render.fence([render.ranked(r, now) for r in ranked], nonce)


def _why(items: list[Ranked], above: list[Ranked], candidates: list[Any]) -> str:
    if items:
        return f"{len(items)} of {len(above)} above the floor"
    if above:
        return "the budget has no room for even one item"
    return "nothing is similar enough" if candidates else "nothing shares a word or a meaning with the question"
