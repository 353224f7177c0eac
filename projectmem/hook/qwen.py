"""Qwen Code's side of the hook. Measured on the real client (0.24.4): Claude Code's events with Gemini CLI's texts.

- `PostToolUseFailure` has the text of what failed; calls have an id (`tool_call_id`, the model's own; `tool_use_id` is another
  one in another event). Text given before a call is not delivered, after one it is.
- `UserPromptSubmit` also comes with an empty prompt after every tool result. Timeouts are in milliseconds.
"""

from __future__ import annotations

from projectmem.hook import nested
from projectmem.hook.gemini import answered, shell
from projectmem.hook.payload import begun, call_of, checked, errored, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer, Payload

HARNESS = "qwen"
refuses = nested.refuses
BATCHES = WARNS_BEFORE = False
PRE, POST, FAILURE = "PreToolUse", "PostToolUse", "PostToolUseFailure"
PROMPT, START, END = "UserPromptSubmit", "SessionStart", "SessionEnd"
EVENTS = {PRE: 10_000, POST: 10_000, FAILURE: 10_000, PROMPT: 10_000, START: 15_000, END: 5_000}  # -> timeout in ms
_KINDS = {PRE: "pre", POST: "post", FAILURE: "post", PROMPT: "prompt", START: "start", END: "end"}


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = checked(begun(event, _KINDS, raw))
    if payload.kind in ("pre", "post"):
        id = text_of(raw, "tool_call_id") or text_of(raw, "tool_use_id")
        call = call_of(payload, HARNESS, raw.get("tool_name"), raw.get("tool_input"), id)
        payload.calls = [call]
        if event == POST:
            answered(call, raw.get("tool_response"))
        elif event == FAILURE:
            text = text_of(raw, "error")
            if call["tool"] == "run_shell_command" and "\nExit Code: " in text:
                shell(call, text)
            else:
                errored(call, text)
            call["interrupted"] = raw.get("is_interrupt") is True
    return payload


def answer(payload: Payload, decision: Decision) -> Answer:
    """What Qwen Code is told of a decision; None says nothing, which allows. A warning is given after the call.

    ask  a person answers: Qwen Code asks them (refused where there is no terminal);  the agent answers: refused with the reason
    """
    if decision.verdict in ("allow", "warn"):
        return None
    return nested.refusal(payload.event, decision, asks=True)


def context(event: str, text: str) -> Answer:
    """Text for the model beside what happens anyway; None for no text, or at an event that takes none."""
    return nested.text(event, text) if event not in (PRE, END) else None


def with_message(reply: Answer, message: str) -> Answer:
    """The same answer with a line that the person sees."""
    return {**(reply or {}), "systemMessage": message}
