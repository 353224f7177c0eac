"""OpenHands' side of the hook. Measured on the real SDK (1.58.2), whose fields and answers are its own.

- Only `{"decision": "deny", "reason"}` refuses; Claude Code's nested form is ignored although the documentation calls it
  compatible. Text reaches the model with a prompt only: a warning waits for the next one.
- Calls have no id and events no time. `is_error` is false for a command that could not be found; its exit code is right.
"""

from __future__ import annotations

import time

from projectmem.hook.payload import begun, call_of, checked, errored, exited, head_and_tail, text_of, unnamed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer, Call, Payload

HARNESS = "openhands"
BATCHES = WARNS_BEFORE = False
SUBAGENT, BACKGROUND = "not run", "not run"
PRE, POST, PROMPT, START, END = "PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd"
EVENTS = {PRE: 10, POST: 10, PROMPT: 10, START: 15, END: 5}  # -> timeout in seconds
_KINDS = {PRE: "pre", POST: "post", PROMPT: "prompt", START: "start", END: "end"}


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = begun(event, _KINDS, raw)
    payload.cwd = text_of(raw, "working_dir")
    checked(payload)
    if event in (PRE, POST):
        given = raw.get("tool_input")
        if isinstance(given, dict):
            given = {name: value for name, value in given.items() if name != "kind"}
        call = call_of(payload, HARNESS, raw.get("tool_name"), given, "")
        payload.calls = [unnamed(payload, call, time.time_ns() // 1_000_000)]
        if event == POST:
            response = raw.get("tool_response")
            _answered(call, response if isinstance(response, dict) else {})
    elif event == PROMPT:
        payload.raw = {**raw, "prompt": raw.get("message")}
    return payload


def _answered(call: Call, response: Mapping[str, Any]) -> None:
    content = response.get("content")
    blocks = content if isinstance(content, list) else []
    text = "\n".join(b["text"] for b in blocks if isinstance(b, dict) and isinstance(b.get("text"), str))
    code = response.get("exit_code")
    if isinstance(code, int) and code >= 0:
        exited(call, code, text)
    elif response.get("is_error") is True:
        errored(call, text)
    else:
        call["output"], call["is_error"] = head_and_tail(text), False
    call["timed_out"] = response.get("timeout") is True


def answer(payload: Payload, decision: Decision) -> Answer:
    """What OpenHands is told of a decision; None says nothing, which allows. A warning is given with the next prompt."""
    if decision.verdict in ("allow", "warn"):
        return None
    return {"decision": "deny", "reason": decision.reason or "projectmem refused this call (no reason was given)"}


def refuses(reply: Mapping[str, Any] | None) -> bool:
    """Whether an answer keeps the call from running."""
    return (reply or {}).get("decision") == "deny"


def context(event: str, text: str) -> Answer:
    """Text for the model; None for no text, or at an event that takes none."""
    return {"additionalContext": text} if text and event == PROMPT else None


def with_message(reply: Answer, message: str) -> Answer:
    """The same answer with a line that the person sees."""
    return {**(reply or {}), "systemMessage": message}
