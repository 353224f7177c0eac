"""Cursor's side of the hook, written after its documentation: it has not been run against the real client.

Documented: `preToolUse`, `postToolUse` and `postToolUseFailure` with `tool_name`, `tool_input` and `conversation_id`; an answer
`{"permission": "allow" | "deny" | "ask", "user_message", "agent_message"}`. An empty answer was reported to block every call, so
`preToolUse` is always answered. Text beside a call that runs is not documented: a warning waits for the event after it.
"""

from __future__ import annotations

from projectmem.hook.payload import begun, call_of, checked, errored, exited, head_and_tail, text_of, unnamed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer, Payload

HARNESS = "cursor"
BATCHES = WARNS_BEFORE = False
SUBAGENT, BACKGROUND = "not run", "not run"
PRE, POST, FAILURE, START, END = "preToolUse", "postToolUse", "postToolUseFailure", "sessionStart", "sessionEnd"
EVENTS = {PRE: 10, POST: 10, FAILURE: 10, START: 15, END: 5}  # -> timeout in seconds
_KINDS = {PRE: "pre", POST: "post", FAILURE: "post", START: "start", END: "end"}
SILENCE = {PRE: {"permission": "allow"}}  # what is said where there is nothing to say


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = begun(event, _KINDS, raw)
    roots = raw.get("workspace_roots")
    payload.session = text_of(raw, "conversation_id") or payload.session
    payload.cwd = payload.cwd or next((r for r in roots if isinstance(r, str)), "") if isinstance(roots, list) else payload.cwd
    checked(payload)
    if payload.kind in ("pre", "post"):
        call = call_of(payload, HARNESS, raw.get("tool_name"), raw.get("tool_input"), text_of(raw, "tool_use_id"))
        payload.calls = [call if call["call"] else unnamed(payload, call, raw.get("generation_id"))]
        if event == FAILURE:
            errored(call, text_of(raw, "error_message") or text_of(raw, "error"))
        elif event == POST:
            output = raw.get("tool_output")
            exited(call, raw.get("exit_code"), output if isinstance(output, str) else text_of(raw, "output"))
            call["is_error"] = bool(call["is_error"])
            call["output"] = head_and_tail(call["output"])
    return payload


def answer(payload: Payload, decision: Decision) -> Answer:
    """What Cursor is told of a decision. A warning is given after the call."""
    if decision.verdict in ("allow", "warn"):
        return dict(SILENCE[PRE])
    reason = decision.reason or "projectmem refused this call (no reason was given)"
    permission = "ask" if decision.verdict == "ask" and decision.by == "person" else "deny"
    return {"permission": permission, "user_message": reason, "agent_message": reason}


def refuses(reply: Mapping[str, Any] | None) -> bool:
    """Whether an answer keeps the call from running."""
    return (reply or {}).get("permission") == "deny"


def context(event: str, text: str) -> Answer:
    """Text for the model beside what happens anyway; None for no text, or at an event that takes none."""
    return {"additional_context": text} if text and event in (POST, FAILURE, START) else None


def with_message(reply: Answer, message: str) -> Answer:
    """The same answer with a line that the person sees."""
    return {**(reply or {}), "user_message": message}
