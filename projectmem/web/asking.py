"""What the pages ask: the use cases that the command line asks, each in one function that returns what a template shows.

No judgement of its own: a failure stands, a decision is the same, a log is whole because the use case says so.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from projectmem import clock as clocks
from projectmem import logpages

if TYPE_CHECKING:
    from projectmem.place import Place

SHOWN = 50  # rows of a page
FOLD_MAX = 96 << 20  # bytes of a log that is folded in memory for one answer: some ten seconds
ID_LENGTH = 36
LONG = 16 << 20  # bytes
MEMORY_MAX = 100  # rows of one sort


class TooLongError(Exception):
    """The log is too long for this to be worked out here. `command` does it."""

    def __init__(self, command: str, size: int) -> None:
        super().__init__(f"the log has {size >> 20} MiB")
        self.command, self.size = command, size


class Asking:
    """The questions, bound to one project. `now` gives microseconds since the epoch."""

    def __init__(self, place: Place, now: Callable[[], int]) -> None:
        self.place, self.now = place, now
        self._reading = threading.Lock()
        self._recalling = threading.Lock()  # a memory catches up in place: one question at a time
        self._memory: Any = None

    def failures(self, every: bool, limit: int) -> dict[str, Any]:
        """What stands as failed, newest first: the rows of `projectmem failures`."""
        from projectmem.failures import failures

        self._catch_up()
        now, notices = self.now(), list[str]()
        rows = failures(self.place, now, every=every, limit=limit + 1, notices=notices)
        more = len(rows) > limit
        notices += clocks.of_times((row.record.at for row in rows), now)
        return {"rows": [_failure(row, now) for row in rows[:limit]], "more": more, "notices": notices, "now": now}

    def stats(self) -> dict[str, Any]:
        """The counts of `projectmem stats`."""
        from projectmem.stats import stats

        notices = list[str]()
        found = stats(self.place.home, now=self.now(), notices=notices)
        return {"found": found, "notices": notices, "clock": clocks.of_stats(found), "now": self.now()}

    def outcomes(self, decisions: list[str]) -> dict[str, Any]:
        """What became of the calls that these decisions were about."""
        from projectmem_projections.summaries import outcomes

        return outcomes(self.place.home, decisions)

    def event(self, id: str) -> dict[str, Any]:
        """One event, as it is in the log. Raises NotFoundError, BadInputError."""
        from projectmem.lookup import find_one
        from projectmem.replay import recomputable

        event = self._indexed(id) or find_one(self.place, id)
        return {"event": event, "recomputable": recomputable(event)}

    def _indexed(self, id: str) -> dict[str, Any] | None:
        """The event of a whole id by the summaries' index, where there are summaries: a search of a long log takes seconds."""
        from projectmem_projections import generations, summaries
        from projectmem_projections.errors import ProjectionError

        try:
            if len(id) != ID_LENGTH or not generations.position(self.place.home):
                return None
            rows = summaries.events_by_id(self.place.home, id, limit=1)
        except (ProjectionError, OSError):
            return None
        found = [event for row in rows for event in self.log(logpages.Wanted(), 1, {row["stream"]: row["seq"]}).events]
        return found[0] if found and found[0]["id"] == id else None

    def explained(self, event: dict[str, Any]) -> str:
        """The words of `projectmem explain`. Raises TooLongError where the log would have to be folded for it."""
        from projectmem.explain import of_event

        if event["kind"] == "action.proposed":
            self._bounded(f"projectmem explain {event['id']}")
        self._catch_up()
        return of_event(self.place, event, self.now())

    def recomputed(self, event: dict[str, Any]) -> dict[str, Any]:
        """What `projectmem replay --verify` finds for this one. Raises TooLongError."""
        from projectmem.replay import recompute

        self._bounded("projectmem replay --verify")
        outcome, why, says = recompute(self.place.home, event, self.place.root)
        return {"outcome": outcome, "why": why, "says": says}

    def memory(self) -> dict[str, Any]:
        """What people and agents wrote down, newest first."""
        from projectmem_projections import generations

        notices = list[str]()

        def question(s: Any) -> dict[str, Any]:
            newest = "ORDER BY at_us DESC, stream DESC, seq DESC LIMIT ?"
            rows = s.query(f"SELECT * FROM record_states WHERE kind <> 'closed' {newest}", [MEMORY_MAX * 4])  # noqa: S608
            labels = s.query(f"SELECT * FROM labels {newest}", [MEMORY_MAX])  # noqa: S608
            issues = s.query("SELECT * FROM issues ORDER BY opened_at DESC, id DESC LIMIT ?", [MEMORY_MAX])
            return {"records": rows, "labels": labels, "issues": {row["id"]: row for row in issues}}

        found = generations.ask(self.place.home, question, notices)
        return {**found, "notices": notices, "now": self.now()}

    def recalled(self, query: str) -> dict[str, Any]:
        """An answer of recall, with what decided it. Nothing is recorded: a person who looks teaches recall nothing."""
        from projectmem import policies
        from projectmem.recall import Memory, recall
        from projectmem.recall_words import explained

        self._catch_up()
        now = self.now()
        with self._recalling:
            self._memory = self._memory or Memory(self.place.home)
            found = recall(
                self.place.home,
                query,
                now=now,
                nonce=os.urandom(6).hex(),
                memory=self._memory,
                policy=policies.recall_in_force(self.place),
                clock=lambda: time.perf_counter_ns() // 1000,
            )
            items = [(one.document, one.uncertain) for one in found.items]
            return {"items": items, "why": found.why, "lines": explained(found, query, now), "notes": found.notes, "now": now}

    def health(self) -> dict[str, Any]:
        """What `projectmem doctor --no-fire` checks, and how far each projection is."""
        from projectmem.doctor import examine, healthy

        now = self.now()
        found = list(examine(self.place.root, now=now, fire=False))
        return {"checks": found, "ok": healthy(found), "positions": self.positions(), "at": now}

    def positions(self) -> list[dict[str, Any]]:
        """Of each stream: its last record and hash, and how far gate, summaries and recall have taken it in (None: not built)."""
        from projectmem_logs.store import heads
        from projectmem_projections import generations, published
        from projectmem_projections.corpus import Corpus
        from projectmem_projections.errors import ProjectionError
        from projectmem_projections.glance import folder
        from projectmem_projections.snapshot import Snapshot

        def tried(look: Callable[[], dict[str, int] | None]) -> dict[str, int] | None:
            try:
                return look() or None
            except (ProjectionError, OSError):
                return None

        def gate() -> dict[str, int] | None:
            path = os.path.join(self.place.home, "projections", "gate.sqlite")
            if not os.path.exists(path):
                return None
            with Snapshot(path) as state:
                return state.cursor()

        def recall() -> dict[str, int] | None:
            where = published.current(folder(self.place.home))
            if where is None:
                return None
            corpus = Corpus(where)
            try:
                return {stream: seq for stream, (_, _, seq) in corpus.position.items()}
            finally:
                corpus.close()

        looks = {"gate": tried(gate), "summaries": tried(lambda: generations.position(self.place.home)), "recall": tried(recall)}
        return [
            {
                "stream": stream,
                "seq": seq,
                "hash": hash,
                **{name: None if at is None else at.get(stream, 0) for name, at in looks.items()},
            }
            for stream, (seq, hash) in heads(self.place.home).items()
        ]

    def log(
        self, wanted: logpages.Wanted, limit: int, upto: dict[str, int] | None, seconds: float = logpages.SECONDS
    ) -> logpages.Page:
        """A page of the log, newest first."""
        return logpages.page(self.place.home, wanted, limit=limit, upto=upto, seconds=seconds)

    def _catch_up(self) -> None:
        """Have the gate's state read what is new by one at a time: others would find it locked, and read the whole log."""
        from projectmem.state import reading

        with self._reading, reading(self.place):
            pass

    def long(self) -> bool:
        """Whether it takes more than a moment to read the log."""
        from projectmem_projections.parity import log_bytes

        return log_bytes(self.place.home) > LONG

    def _bounded(self, command: str) -> None:
        from projectmem_projections.parity import log_bytes

        if (size := log_bytes(self.place.home)) > FOLD_MAX:
            raise TooLongError(command, size)


def _failure(row: Any, now: int) -> dict[str, Any]:
    """One failure as the page shows it."""
    from projectmem_gate.history import KEEP
    from projectmem_gate.reason import readable, said

    record, decision = row.record, row.decision
    remedy = row.facts.get("remedy")
    known = remedy if isinstance(remedy, dict) else {}
    return {
        "id": record.id,
        "says": row.says,
        "silence": row.silence(now),
        "text": record.fix["text"] if record.fix else said(record.text),
        "mended": said(record.text) if record.fix else "",
        "cls": record.cls,
        "times": record.fix["times"] if record.fix else record.streak,
        "or_more": not record.fix and record.streak >= KEEP,
        "at": record.at,
        "error": readable(record.sig),
        "state": record.state,
        "fresh": row.why,
        "lapses": decision.expires_at or row.lapses,
        "pinned": record.pinned,
        "remedy": said(decision.remedy or known.get("text") or ""),
        "remedy_id": decision.remedy_id or known.get("id") or "",
        "reason": decision.reason,
        "session": record.session,
    }
