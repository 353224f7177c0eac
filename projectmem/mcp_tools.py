"""What an agent may do over MCP: seven small tools over the same use cases as the command line.

Each answers with text for the model and the same as data: a fenced block with the ids it cites, a verdict, an id. Every text from
the log leaves inside a labelled fence with a fresh nonce. What is written has the origin `agent`. Heavy modules (numpy, DuckDB,
FAISS) are imported by the first call that needs them, never before the client has its answer to `initialize`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from projectmem_logs.errors import SpooledError
from pydantic import Field

from projectmem import caller, render
from projectmem.errors import BadInputError

if TYPE_CHECKING:
    from projectmem_projections.scope import Scope

    from projectmem.place import Place
    from projectmem.recall import Memory

TEXT_MAX = 2_000  # characters of what an agent may record at once
QUERY_MAX = 20_000  # of a question, of which recall looks at the first 2,000
REPLY_TOKENS = 1_000
FAILURES_MAX = 20
_CITED = re.compile(r"\[([0-9a-f]{8})(?:\.\.([0-9a-f]{8}))?\]|, ([0-9a-f]{8})\] |\(([0-9a-f]{8})\)$", re.MULTILINE)

KINDS = {
    "note": "note.recorded",
    "decision": "decision.recorded",
    "issue": "issue.opened",
    "attempt": "attempt.recorded",
    "fix": "fix.recorded",
    "hypothesis": "hypothesis.noted",
}


class Reply(str):
    """The answer as text; `data` is the same in structure."""

    __slots__ = ("data",)
    data: dict[str, Any]

    @classmethod
    def of(cls, text: str, data: dict[str, Any]) -> Reply:
        """A reply with its data."""
        made = cls(text)
        made.data = data
        return made

    @classmethod
    def block(cls, text: str) -> Reply:
        """A fenced block (or a sentence): the text, and the short ids it cites, each once."""
        ids = dict.fromkeys(id for found in _CITED.findall(text) for id in found if id)
        return cls.of(text, {"text": text, "ids": list(ids)})


def _kept(what: str) -> Reply:
    """Where the log stayed locked: an agent that heard of an error would write it a second time."""
    return Reply.of(f"The {what} is kept: the log is busy, and the next append writes it. Do not send it again.", {"id": ""})


class Tools:
    """The tools, bound to one project. `clock` gives microseconds since the epoch; `nonce` a new unguessable word.

    place  the project, or what finds it at each call: one may be set up while the server runs. That raises NoProjectError
    Calls may come in parallel, each on a thread of its own.
    """

    def __init__(self, place: Place | Callable[[], Place], *, clock: Callable[[], int], nonce: Callable[[], str]) -> None:
        self.clock, self.nonce = clock, nonce
        self._place = place
        self._memory: Memory | None = None  # opened by the first recall: numpy and the index take a while to load
        self._recalling = threading.Lock()  # the memory catches up in place, so one question at a time
        self._writing = threading.Lock()  # calls of one client wait for each other, not for the log's lock until it gives up

    @property
    def place(self) -> Place:
        """The project. Raises NoProjectError where there is none yet."""
        if callable(self._place):
            self._place = self._place()
        return self._place

    @property
    def scope(self) -> Scope:
        """Whose records count."""
        from projectmem_projections.scope import Scope

        return Scope(self.place.project)

    def summary(self, about: str = "") -> Reply:
        """What failed, what worked, decisions, fragile places, open issues. about: a path, issue or period (2d)."""
        from projectmem.state import EVERYTHING, reading
        from projectmem.summary import of_place

        now, nonce = self.clock(), self.nonce()
        with reading(self.place) as state:
            if not about:
                text = of_place(self.place, state, now=now, nonce=nonce, bytes_max=EVERYTHING)
                self._ahead()
                return Reply.block(text or "Nothing is recorded yet.")
            from projectmem.briefing import about as brief
            from projectmem.standing import Judge

            judge = Judge(self.place, state, now)
            text = brief(self.place, about, now=now, nonce=nonce, verdict=judge.verdict, times=judge.times)
        return Reply.block(text or "Nothing is recorded about that.")

    def check(self, command: str = "", tool: str = "", input: dict[str, Any] | None = None) -> Reply:
        """Would the gate object to a shell command or tool call?"""
        from projectmem.check import check_action, tool_call

        name, given = tool_call(tool=tool, command=command, input=input)
        actor = caller.actor()
        decision = check_action(
            self.place,
            tool=name,
            tool_input=given,
            cwd=self.place.root,
            now=self.clock(),
            harness=actor["harness"],
            session=actor["session"],
        )
        text = f"{decision.verdict}\n{decision.reason}".strip()
        return Reply.of(text, {"verdict": decision.verdict, "reason": decision.reason, "record": decision.record})

    def recall(self, query: str, k: Annotated[int, Field(ge=1, le=20)] = 5) -> Reply:
        """What is known of an error, command, file or question."""
        from projectmem import policies
        from projectmem.recall import Memory, recall

        if len(query) > QUERY_MAX:
            raise BadInputError(f"the question has {len(query)} characters: give the part that matters, at most {QUERY_MAX}")
        with self._recalling:
            self._memory = self._memory or Memory(self.place.home)
            result = recall(
                self.place.home,
                query,
                now=self.clock(),
                nonce=self.nonce(),
                k=k,
                scope=self.scope,
                memory=self._memory,
                policy=policies.recall_in_force(self.place),
            )
        note = self._remember(query, result.event_data(query))
        notes = [*result.notes, *([note] if note else [])]
        text = result.block or f"Nothing relevant is recorded ({result.why})."
        return Reply.block("\n".join([text, *(f"Note: {render.inline(n)}" for n in notes)]))

    def _remember(self, query: str, data: dict[str, Any]) -> str:
        """Write `recall.decided`; a log that cannot take it does not spoil the answer. Returns what went wrong."""
        from projectmem.record import record

        try:
            with self._writing:
                record(self.place, "recall.decided", data, now=self.clock(), origin="agent", actor=caller.actor())
        except SpooledError:
            return ""  # the next append writes it
        except Exception as error:
            return f"this recall was not recorded ({type(error).__name__}: {error})"
        return ""

    def record(
        self,
        kind: Literal["note", "decision", "issue", "attempt", "fix", "hypothesis"],
        text: str,
        issue: str = "",
        outcome: Literal["", "worked", "failed", "unclear"] = "",
        verifier: str = "",
    ) -> Reply:
        """Write it down in one plain line. verifier: the test or command that proved it."""
        from projectmem.record import record

        data = self._payload(kind, text, issue, outcome, verifier)
        heard: list[str] = []
        name = f"{kind} {data['issue']}" if kind == "issue" else kind
        try:
            with self._writing:
                event = record(
                    self.place, KINDS[kind], data, now=self.clock(), origin="agent", actor=caller.actor(), notices=heard
                )
        except SpooledError:
            return _kept(name)
        said = "".join(f" Note: {remark}." for remark in heard)
        return Reply.of(f"Recorded {name} as {event['id']}.{said}", {"id": event["id"]})

    def _payload(self, kind: str, text: str, issue: str, outcome: str, verifier: str) -> dict[str, Any]:
        from projectmem.record import find_issue, new_id, redacted

        text = text.strip()
        if not text or len(text) > TEXT_MAX:
            raise BadInputError(f"the text has {len(text)} characters: give 1 to {TEXT_MAX}")
        text = str(redacted(self.place, text))  # before it is taken apart: what gives a secret away may go elsewhere
        if kind == "note":
            return {"text": text, "tags": []}
        if kind == "decision":
            title, _, rest = text.partition("\n")
            return {"title": title.strip(), "text": rest.strip(), "supersedes": ""}
        if kind == "issue":
            return {"issue": new_id(), "title": text, "paths": []}
        data = {"issue": find_issue(self.place, issue) if issue else "", "text": text}
        if kind == "hypothesis":
            return data
        if kind == "attempt":
            data["outcome"] = outcome or "unclear"
        return {**data, "verifier": verifier.strip() or "none"}

    def failures(self, limit: Annotated[int, Field(ge=1, le=FAILURES_MAX)] = 10) -> Reply:
        """Failures that stand, what worked instead, failed fixes."""
        from projectmem_projections.glance import Glance, ask

        from projectmem.failures import fix_line, standing_fixes
        from projectmem.standing import Judge
        from projectmem.state import EVERYTHING, reading
        from projectmem.summary import line, standing_failures

        now = self.clock()
        with reading(self.place) as state:
            judge = Judge(self.place, state, now)

            def question(glance: Glance) -> list[str]:
                found = standing_failures(glance, self.scope, now, max(1, min(limit, FAILURES_MAX)), judge.verdict)
                return [line(document, now, glance.changed_at, judge.verdict, judge.times) for document in found]

            lines = ask(self.place.home, question, EVERYTHING)
            tried = standing_fixes(self.place, state, now)
        lines += [render.inline(fix_line(fix, now)) for fix in tried[: max(0, limit - len(lines))]]
        self._ahead()
        return Reply.block(self._fenced(lines) or "No failure stands.")

    def _ahead(self) -> None:
        """Where a long log had to be read whole, have the next question find a generation."""
        from projectmem_projections.glance import current

        from projectmem.hook import ahead

        if current(self.place.home) is None:
            ahead.soon(self.place)

    def explain(self, id: str) -> Reply:
        """Everything behind one record."""
        from projectmem.explain import explain

        text = explain(self.place, id, self.clock())
        return Reply.block(self._fenced([render.inline(line) for line in str(text).splitlines()]))

    def dispute(self, id: str, reason: str) -> Reply:
        """A recorded failure is wrong or past: it stops counting."""
        from projectmem.record import curate, disputed_already

        if known := disputed_already(self.place, id):
            return Reply.of(f"{known} was disputed already.", {"id": known})
        try:
            with self._writing:
                events = curate(
                    self.place, "disputed", id, now=self.clock(), origin="agent", actor=caller.actor(), reason=reason[:TEXT_MAX]
                )
        except SpooledError:
            return _kept("dispute")
        return Reply.of(f"Disputed as {events[0]['id']}.", {"id": events[0]["id"]})

    def _fenced(self, lines: list[str]) -> str:
        nonce = self.nonce()
        return render.fence(render.fit(lines, REPLY_TOKENS - render.fence_tokens(nonce)), nonce)
