"""Cursor's side of the hook, written after its documentation: it has not been run against the real client.

Documented: `preToolUse`, `postToolUse` and `postToolUseFailure` with `tool_name`, `tool_input` and `conversation_id`; a command's
`tool_output` is JSON in a text, with its exit code; a failure that was a person's has `is_interrupt` or the `failure_type`
`permission_denied`; an answer
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

    from projectmem.hook.payload import Answer, Call, Payload

HARNESS = "cursor"
BATCHES = WARNS_BEFORE = False
SUBAGENT, BACKGROUND = "not run", "not run"
PRE, POST, FAILURE, START, END = "preToolUse", "postToolUse", "postToolUseFailure", "sessionStart", "sessionEnd"
EVENTS = {PRE: 10, POST: 10, FAILURE: 10, START: 15, END: 5}  # -> timeout in seconds
_KINDS = {PRE: "pre", POST: "post", FAILURE: "post", START: "start", END: "end"}
MAX_JSON = 16 << 20  # characters of an output that are read as JSON
MAX_DURATION_MS = 1 << 40
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
            call["interrupted"], call["timed_out"] = raw.get("is_interrupt") is True, raw.get("failure_type") == "timeout"
            if raw.get("failure_type") == "permission_denied":
                call["error_kind"] = "denied"
        elif event == POST:
            _answered(call, raw)
        if payload.kind == "post":
            spent = raw.get("duration")
            if isinstance(spent, (int, float)) and not isinstance(spent, bool) and 0 <= spent < MAX_DURATION_MS:
                call["duration_ms"] = int(spent)
    return payload


def _answered(call: Call, raw: Mapping[str, Any]) -> None:
    """What `postToolUse` says became of the call."""
    output = raw.get("tool_output")
    text = output if isinstance(output, str) else text_of(raw, "output")
    fields = _fields(output)
    code = next((v for v in map(fields.get, ("exitCode", "exit_code")) if v is not None), raw.get("exit_code"))
    shown = [fields[name] for name in ("output", "stdout", "stderr") if isinstance(fields.get(name), str)]
    exited(call, code, "\n".join(shown) if shown else text)
    call["is_error"] = bool(call["is_error"])
    call["output"] = head_and_tail(call["output"])


def _fields(output: Any) -> dict[str, Any]:
    """The fields of an output: an object, or one written as a text; {} for what is neither."""
    if isinstance(output, str) and output[:1] == "{" and len(output) < MAX_JSON:
        from projectmem_logs.fastjson import loads

        try:
            output = loads(output)
        except (ValueError, RecursionError):
            return {}
    return output if isinstance(output, dict) else {}


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
