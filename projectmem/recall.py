"""Controlled recall: a question in, a labelled block within a budget out, or nothing at all.

Scope filter -> lexical and vector candidates -> absolute floor -> blend -> utility -> near repeats out -> controller -> budget.
Everything that decided is in the answer, so that it can be recorded. Without faiss, or when the index does not match, words alone
are searched and a note says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from projectmem_projections import structure, vectors
from projectmem_projections.calibration import LEXICAL
from projectmem_projections.corpus import CorpusError
from projectmem_projections.recollection import Recollection, refresh
from projectmem_projections.scope import Scope

from projectmem import answering, recall_policy
from projectmem.answering import QUERY_MAX, Answer
from projectmem.ranking import Asking

if TYPE_CHECKING:
    from collections.abc import Callable

    from projectmem_projections.embed import Space

    from projectmem.recall_policy import RecallPolicy

K, K_MAX = 5, 20
BUDGET_TOKENS = 400


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
    session: str = "",
    policy: RecallPolicy = recall_policy.DEFAULT,
    clock: Callable[[], int] | None = None,
) -> Answer:
    """Ask the log in `home`. See `Memory.recall` for the arguments.

    scope    defaults to the log's own project;  memory: defaults to one opened for this question
    A generation that is missing, damaged or far behind is rebuilt after answering.
    """
    memory, told = memory or Memory(home), list[str]()
    if scope is None:
        from projectmem_logs.store import project_id

        scope = Scope(project_id(home))
    for last in (False, True):
        try:
            answer = memory.recall(
                query, scope, now=now, nonce=nonce, k=k, budget_tokens=budget_tokens, session=session, policy=policy, clock=clock
            )
            break
        except CorpusError as error:  # found while it was read, and put aside: now the log is asked
            memory.close()
            if last:
                raise
            told = [f"{error}".removesuffix("; ask again")]
    if memory.stale:
        told += memory.rebuild()
    answer.notes.extend(told)
    return answer


class Memory:
    """An open memory of one log. Keep it between questions where the process lives on (a server); it catches up by itself."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.note = vectors.available()
        self.embedder: Space | None = None
        if not self.note:
            from projectmem_projections import minilm

            self.embedder, self.note = minilm.chosen(home)
        self._recollection: Recollection | None = None

    @property
    def stale(self) -> bool:
        """Whether a new generation should be built."""
        return self._recollection is None or self._recollection.stale

    def close(self) -> None:
        """Let go of what is open; the next question opens what there is then."""
        if self._recollection is not None:
            self._recollection.close()
        self._recollection = None

    def rebuild(self) -> list[str]:
        """Build and publish a generation; returns notes, never raises: the question has been answered already."""
        try:
            return refresh(self.home, self.embedder)
        except Exception as error:  # derived data: the next question tries again
            return [f"the recall generation was not rebuilt ({type(error).__name__}: {error})"]

    def recall(
        self,
        query: str,
        scope: Scope,
        *,
        now: int,
        nonce: str,
        k: int = K,
        budget_tokens: int = BUDGET_TOKENS,
        session: str = "",
        policy: RecallPolicy = recall_policy.DEFAULT,
        clock: Callable[[], int] | None = None,
    ) -> Answer:
        """The answer to one question.

        query    any text; its first QUERY_MAX characters count
        scope    of the reader; an empty one gets nothing
        now      microseconds since the epoch: ages and expiry
        nonce    unguessable, new for each block: names the fence
        k        at most so many items, 1 .. K_MAX;  budget_tokens: of the whole block, fence included
        session  what it was shown before is not shown again; "" where there is none
        clock    tells microseconds, for the controller's feature of latency; without one that feature is 0
        """
        query = query[:QUERY_MAX]
        if scope.empty or not query.strip():
            return Answer("the scope is empty" if scope.empty else "the question is empty")
        started = clock() if clock else 0
        if self._recollection is None:
            self._recollection = Recollection(self.home, self.embedder)
        search = self._recollection.search()
        candidates = search.candidates(query, scope, now)
        experience = self._recollection.experience()
        space = space_of(search.embedder)
        asking = Asking(
            query,
            structure.of(query).kind,
            now,
            search.count,
            space,
            self._recollection.calibration,
            policy,
            experience.utilities(),
        )
        spent = clock() - started if clock else 0
        k = max(1, min(k, K_MAX))
        budget = min(budget_tokens, max(policy.budget(), budget_tokens if budget_tokens != BUDGET_TOKENS else 0))
        answer = answering.answer(candidates, asking, experience, nonce=nonce, k=k, budget=budget, session=session, latency=spent)
        answer.notes = [*([self.note] if self.note else []), *self._recollection.notes]
        return answer


def space_of(embedder: Space | None) -> str:
    """Name of the vector space of an embedder, as calibrations know it."""
    return f"{embedder.model}/{embedder.revision[:8]}" if embedder is not None else LEXICAL
