"""The MCP server: what an agent may read of the log, and what it may write into it. `projectmem mcp`, over stdio.

Seven small tools over the same use cases as the command line. Every text from the log leaves inside a labelled fence with a
fresh nonce. What is written has the origin `agent`. Errors come back as text that says what to do; nothing but the protocol
is written to stdout (the SDK turns stray prints to stderr).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool

from projectmem import caller, output, render
from projectmem.errors import BadInputError, ProjectmemError
from projectmem.place import Place

if TYPE_CHECKING:
    from projectmem.recall import Memory

TEXT_MAX = 2_000  # characters of what an agent may record at once
REPLY_TOKENS = 1_000
FAILURES_MAX = 20
P = ParamSpec("P")

KINDS = {
    "note": "note.recorded",
    "decision": "decision.recorded",
    "issue": "issue.opened",
    "attempt": "attempt.recorded",
    "fix": "fix.recorded",
    "hypothesis": "hypothesis.noted",
}
INSTRUCTIONS = (
    "Memory of what failed and what worked in this project. Call summary when you start, recall before you debug, "
    "record what you decide, try and fix (one plain line each)."
)


class Tools:
    """The tools, bound to one project. `clock` gives microseconds since the epoch; `nonce` a new unguessable word."""

    def __init__(self, place: Place, *, clock: Callable[[], int], nonce: Callable[[], str]) -> None:
        from projectmem_projections.scope import Scope

        self.place, self.clock, self.nonce = place, clock, nonce
        self.scope = Scope(place.project)
        self._memory: Memory | None = None  # opened by the first recall: numpy and the index take a while to load

    def summary(self) -> str:
        """What failed lately, what worked, decisions, fragile places, open issues."""

        from projectmem.summary import session_summary

        text = session_summary(self.place.home, now=self.clock(), scope=self.scope, nonce=self.nonce())
        return text or "Nothing is recorded yet."

    def check(self, command: str = "", tool: str = "", input: dict[str, Any] | None = None) -> str:
        """Would the gate object to a shell command, or to a tool call?"""
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
        return f"{decision.verdict}\n{decision.reason}".strip()

    def recall(self, query: str, k: int = 5) -> str:
        """What the log knows about an error, command, file or question."""
        from projectmem.recall import Memory, recall

        self._memory = self._memory or Memory(self.place.home)
        result = recall(self.place.home, query, now=self.clock(), nonce=self.nonce(), k=k, scope=self.scope, memory=self._memory)
        note = self._remember(query, result.event_data(query))
        notes = [*result.notes, *([note] if note else [])]
        text = result.block or f"Nothing relevant is recorded ({result.why})."
        return "\n".join([text, *(f"Note: {render.inline(n)}" for n in notes)])

    def _remember(self, query: str, data: dict[str, Any]) -> str:
        """Write `recall.decided`; a log that cannot take it does not spoil the answer. Returns what went wrong."""
        from projectmem.record import record

        try:
            record(self.place, "recall.decided", data, now=self.clock(), origin="agent", actor=caller.actor())
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
    ) -> str:
        """Write it down: text in one plain line; outcome of an attempt; verifier: the test or command that proved it."""
        from projectmem.record import record

        data = self._payload(kind, text, issue, outcome, verifier)
        event = record(self.place, KINDS[kind], data, now=self.clock(), origin="agent", actor=caller.actor())
        name = f"{kind} {data['issue']}" if kind == "issue" else kind
        return f"Recorded {name} as {event['id']}."

    def _payload(self, kind: str, text: str, issue: str, outcome: str, verifier: str) -> dict[str, Any]:
        from projectmem.record import find_issue, new_id, redacted

        text = str(redacted(self.place, text.strip()))  # before it is taken apart: what gives a secret away may go elsewhere
        if not text or len(text) > TEXT_MAX:
            raise BadInputError(f"the text has {len(text)} characters: give 1 to {TEXT_MAX}")
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

    def failures(self, limit: int = 10) -> str:
        """Failures that still stand, newest first, with what worked instead."""
        from projectmem_projections.glance import Glance, current

        from projectmem.summary import line

        now = self.clock()
        glance = Glance(self.place.home, current(self.place.home))
        try:
            found = glance.newest(("failure",), self.scope, now, max(1, min(limit, FAILURES_MAX)))["failure"]
            lines = [line(document, now, glance.changed_at) for document in found]
        finally:
            glance.close()
        return self._fenced(lines) or "No failure stands."

    def explain(self, id: str) -> str:
        """Everything behind one record."""
        from projectmem.explain import explain

        text = explain(self.place, id, self.clock())
        return self._fenced([render.inline(line) for line in str(text).splitlines()])

    def dispute(self, id: str, reason: str) -> str:
        """Say that a recorded failure is wrong or no longer true; it stops counting."""
        from projectmem.record import curate

        events = curate(
            self.place, "disputed", id, now=self.clock(), origin="agent", actor=caller.actor(), reason=reason[:TEXT_MAX]
        )
        return f"Disputed as {events[0]['id']}."

    def _fenced(self, lines: list[str]) -> str:
        nonce = self.nonce()
        return render.fence(render.fit(lines, REPLY_TOKENS - render.fence_tokens(nonce)), nonce)


def _told(function: Callable[P, str]) -> Callable[P, str]:
    """A tool whose known errors reach the agent as text; others stay crashes and are logged to stderr."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> str:
        from projectmem_gate.policy import PolicyError
        from projectmem_logs.errors import LogError
        from projectmem_projections.errors import ProjectionError

        try:
            return output.hide_secrets(function(*args, **kwargs))
        except (ProjectmemError, LogError, ProjectionError, PolicyError, OSError) as error:
            raise ToolError(render.inline(str(error), 600)) from error

    return call


def build(place: Place, *, clock: Callable[[], int], nonce: Callable[[], str]) -> MCPServer[Any]:
    """The server for one project, not yet connected."""
    tools = Tools(place, clock=clock, nonce=nonce)
    functions = (tools.summary, tools.check, tools.recall, tools.record, tools.failures, tools.explain, tools.dispute)
    registered = [Tool.from_function(_told(function), name=function.__name__, structured_output=False) for function in functions]
    for tool in registered:
        tool.parameters = _without_titles(tool.parameters)
    return MCPServer("projectmem", instructions=INSTRUCTIONS, tools=registered, log_level="WARNING")


def _without_titles(schema: Any) -> Any:
    """Generated titles repeat the names: an agent pays for them in every session."""
    if isinstance(schema, dict):
        return {k: _without_titles(v) for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
    return [_without_titles(v) for v in schema] if isinstance(schema, list) else schema


def definition_tokens(tools: list[Any]) -> int:
    """What the tool definitions cost an agent, by `render.tokens` of their JSON as the client receives them."""
    shown = [t.model_dump(by_alias=True, exclude_none=True, mode="json") for t in tools]
    return render.tokens(json.dumps(shown, separators=(",", ":")))


def run(place: Place) -> None:
    """Serve until the client closes stdin."""
    build(place, clock=lambda: time.time_ns() // 1000, nonce=lambda: os.urandom(6).hex()).run("stdio")
