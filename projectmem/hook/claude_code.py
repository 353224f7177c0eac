"""Claude Code's side of the hook: its payloads become neutral calls, a decision becomes its JSON.

Facts measured on the real client (2.1.332), each pinned by a test against it:
- `PostToolBatch` tells of every call, also of those that fire no other event (an edit whose old text is not found, an
  unknown tool, a refusal), as the text the model sees: a failure has no field of its own there, only `Exit code N` or
  `<tool_use_error>` in the text. `PostToolUseFailure` is sure of it, comes first, and knows the duration. `PostToolUse`
  adds nothing that is used here, and would be one process more for each call that succeeds.
- The batch repeats the hook's own refusals. A background command's real end comes as a `UserPromptSubmit`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    Call = dict[str, Any]

HARNESS = "claude-code"
PRE, FAILURE, BATCH = "PreToolUse", "PostToolUseFailure", "PostToolBatch"
PROMPT, START, END = "UserPromptSubmit", "SessionStart", "SessionEnd"
# Event -> (timeout in seconds, takes a matcher). Claude Code's own default of 600 s would hang a session on a stuck disk.
EVENTS = {PRE: (10, True), FAILURE: (10, True), BATCH: (15, False), PROMPT: (10, False), START: (15, False), END: (5, False)}


class Payload:
    """One hook call, read.

    event  Claude Code's own name;  kind  pre | post | batch | prompt | start | end;  calls  of pre, post and batch
    """

    __slots__ = ("agent", "calls", "cwd", "event", "kind", "raw", "session", "transcript")

    def __init__(self, event: str, kind: str, raw: dict[str, Any]) -> None:
        self.event, self.kind, self.raw = event, kind, raw
        self.session = text_of(raw, "session_id")
        self.agent = text_of(raw, "agent_id")
        self.cwd = text_of(raw, "cwd")
        self.transcript = text_of(raw, "transcript_path")
        self.calls: list[Call] = []


_KINDS = {PRE: "pre", FAILURE: "post", BATCH: "batch", PROMPT: "prompt", START: "start", END: "end"}


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event` (the name the hook was registered for). Raises ValueError naming what is wrong with it."""
    kind = _KINDS.get(event)
    if kind is None:
        raise ValueError(f"unknown event {event!r}: this hook knows {', '.join(_KINDS)}")
    if not isinstance(raw, dict):
        raise ValueError(f"the payload is not a JSON object but {type(raw).__name__}")
    named = raw.get("hook_event_name")
    if named is not None and named != event:
        raise ValueError(f"registered for {event} but called with {str(named)[:60]!r}: run `projectmem init` again")
    payload = Payload(event, kind, raw)
    if not payload.session:
        raise ValueError("the payload has no session_id")
    if not payload.cwd:
        raise ValueError("the payload has no cwd")
    if kind in ("pre", "post"):
        payload.calls = [new_call(payload, raw)]
        if kind == "post":
            from projectmem.hook.claude_results import failed

            failed(payload.calls[0], raw)
    elif kind == "batch":
        from projectmem.hook.claude_results import answered

        rows = raw.get("tool_calls")
        if not isinstance(rows, list):
            raise ValueError("the payload has no list `tool_calls`")
        for row in rows:
            if isinstance(row, dict) and isinstance(row.get("tool_name"), str):
                call = new_call(payload, row)
                answered(call, row.get("tool_response"), payload)
                payload.calls.append(call)
    return payload


# A call's outcome before anything is known of it.
OUTCOME_OPEN: Call = {
    "exit_code": None,
    "output": "",
    "is_error": None,
    "error_kind": "",
    "interrupted": False,
    "timed_out": False,
    "duration_ms": None,
    "background": "",
}


def new_call(payload: Payload, row: Mapping[str, Any]) -> Call:
    """The neutral call that a payload, or a row of a batch, tells of; of its outcome nothing yet."""
    tool = row.get("tool_name")
    if not isinstance(tool, str) or not tool:
        raise ValueError("the payload has no tool_name")
    return {
        "harness": HARNESS,
        "session": payload.session,
        "agent": payload.agent,
        "model": "",
        "call": text_of(row, "tool_use_id"),
        "tool": tool,
        "input": row.get("tool_input"),
        "cwd": payload.cwd,
        **OUTCOME_OPEN,
    }


def answer(payload: Payload, decision: Decision) -> dict[str, Any] | None:
    """What Claude Code is told of a decision; None says nothing, which allows.

    warn  context, which reaches the model with the call's result
    ask   the agent answers: the call is refused once with the reason;  a person answers: Claude Code asks them
    deny  refused
    """
    verdict = decision.verdict
    if verdict == "allow":
        return None
    if verdict == "warn":
        return context(payload.event, decision.reason)
    permission = "ask" if verdict == "ask" and decision.by == "person" else "deny"
    return {
        "hookSpecificOutput": {
            "hookEventName": payload.event,
            "permissionDecision": permission,
            "permissionDecisionReason": decision.reason or "projectmem refused this call (no reason was given)",
        }
    }


def refuses(reply: Mapping[str, Any] | None) -> bool:
    """Whether an answer keeps the call from running (and not merely asks a person)."""
    return bool(reply) and (reply or {}).get("hookSpecificOutput", {}).get("permissionDecision") == "deny"


def context(event: str, text: str) -> dict[str, Any] | None:
    """Text for the model beside what happens anyway; None for no text."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}} if text else None


def with_message(reply: dict[str, Any] | None, message: str) -> dict[str, Any]:
    """The same answer with a line that the person sees."""
    return {**(reply or {}), "systemMessage": message}


def text_of(row: Mapping[str, Any], name: str) -> str:
    """A field that should hold text, "" where it does not."""
    value = row.get(name)
    return value if isinstance(value, str) else ""
