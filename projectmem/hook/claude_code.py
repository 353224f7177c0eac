"""Claude Code's side of the hook: its payloads become neutral calls, a decision becomes its JSON.

Facts measured on the real client (2.1.332), each pinned by a test against it:
- `PostToolBatch` tells of every call, also of those that fire no other event (an edit whose old text is not found, an
  unknown tool, a refusal), as the text the model sees: a failure has no field of its own there, only `Exit code N` or
  `<tool_use_error>` in the text. `PostToolUseFailure` is sure of it, comes first, and knows the duration. `PostToolUse`
  adds nothing that is used here, and would be one process more for each call that succeeds.
- The batch repeats the hook's own refusals. A background command's real end comes as a `UserPromptSubmit`.
"""

from __future__ import annotations

from projectmem.hook import nested
from projectmem.hook.payload import begun, call_of, checked, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Call, Payload

HARNESS = "claude-code"
refuses = nested.refuses
BATCHES = WARNS_BEFORE = True
SUBAGENT, BACKGROUND = "named", "its end"
PRE, FAILURE, BATCH = "PreToolUse", "PostToolUseFailure", "PostToolBatch"
PROMPT, START, END = "UserPromptSubmit", "SessionStart", "SessionEnd"
# Event -> (timeout in seconds, takes a matcher). Claude Code's own default of 600 s would hang a session on a stuck disk.
EVENTS = {PRE: (10, True), FAILURE: (10, True), BATCH: (15, False), PROMPT: (10, False), START: (15, False), END: (5, False)}


_KINDS = {PRE: "pre", FAILURE: "post", BATCH: "batch", PROMPT: "prompt", START: "start", END: "end"}


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event` (the name the hook was registered for). Raises ValueError naming what is wrong with it."""
    payload = checked(begun(event, _KINDS, raw))
    if isinstance(raw.get("timestamp"), str) and "transcript_path" not in raw:
        payload.kind = ""  # Copilot CLI runs these hooks too (measured on 1.0.102); its own tell more
    kind = payload.kind
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


def new_call(payload: Payload, row: Mapping[str, Any]) -> Call:
    """The neutral call that a payload, or a row of a batch, tells of; of its outcome nothing yet."""
    return call_of(payload, HARNESS, row.get("tool_name"), row.get("tool_input"), text_of(row, "tool_use_id"))


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
    return nested.refusal(payload.event, decision, asks=True)


def context(event: str, text: str) -> dict[str, Any] | None:
    """Text for the model beside what happens anyway; None for no text."""
    return nested.text(event, text)


def with_message(reply: dict[str, Any] | None, message: str) -> dict[str, Any]:
    """The same answer with a line that the person sees."""
    return {**(reply or {}), "systemMessage": message}
