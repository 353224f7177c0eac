"""Cline's side of the hook. Measured on the real client (3.0.65), whose hooks are executable files named after their events.

- `{"cancel": true}` ends the whole run, and the model never learns why. So a command is refused by putting another in its place
  that prints the reason and fails; any other tool cannot be refused: the reason is given beside it, and only a rule of a person
  (deny) ends the run.
- Text before a call reaches the model. A failed command is a success of the hook's event with `success: false` in its output.
"""

from __future__ import annotations

from projectmem.hook.payload import begun, call_of, checked, errored, exited, head_and_tail, number_after, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer, Call, Payload

HARNESS = "cline"
BATCHES, WARNS_BEFORE = False, True
SUBAGENT, BACKGROUND = "a session of its own", "none"
PRE, POST, START, END = "PreToolUse", "PostToolUse", "TaskStart", "TaskComplete"
EVENTS = (PRE, POST, START, END)
_KINDS = {PRE: "pre", POST: "post", START: "start", END: "end"}
_SHELL = "run_commands"
REFUSAL = "# refused by projectmem"


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = begun(event, _KINDS, raw)
    roots = raw.get("workspaceRoots")
    payload.session = text_of(raw, "taskId")
    payload.cwd = next((r for r in roots if isinstance(r, str)), "") if isinstance(roots, list) else ""
    checked(payload)
    if event in (PRE, POST):
        row = raw.get("tool_call" if event == PRE else "tool_result")
        row = row if isinstance(row, dict) else {}
        call = call_of(payload, HARNESS, row.get("name"), given(row.get("input")), text_of(row, "id"))
        payload.calls = [call]
        if event == POST:
            told(call, row)
    return payload


def given(asked: Any) -> Any:
    """A call's input. Its list of commands is a script of whole lines, not the words of one command."""
    lines = asked.get("commands") if isinstance(asked, dict) else None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return asked
    return {"command": "\n".join(lines)}


def told(call: Call, row: Mapping[str, Any]) -> None:
    """Put what the tool answered, in the words of the event after it, into the call."""
    output = row.get("output")
    parts = [part for part in (output if isinstance(output, list) else [output]) if isinstance(part, dict)]
    failed = next((part for part in parts if part.get("success") is False), None)
    text = "\n".join(text_of(part, "result") or text_of(part, "error") for part in parts)
    code = number_after(text_of(failed or {}, "error"), "exited with code")
    if failed is None:
        call["output"], call["is_error"] = head_and_tail(text), False
    elif code is not None:
        exited(call, code, "\n".join(line for line in text.split("\n") if not line.startswith("[Command exited with code ")))
    else:
        errored(call, text)
    if REFUSAL in text_of({"all": str(call["input"])}, "all"):
        call["error_kind"] = "hook"
    spent = row.get("durationMs")
    call["duration_ms"] = spent if isinstance(spent, int) else None


def answer(payload: Payload, decision: Decision) -> Answer:
    """What Cline is told of a decision; None says nothing, which allows."""
    if decision.verdict == "allow":
        return None
    reason = decision.reason or "projectmem refused this call (no reason was given)"
    if decision.verdict == "warn":
        return context(payload.event, reason)
    if payload.calls[0]["tool"] == _SHELL:
        said = reason.replace("'", "'\\''")
        return {"cancel": False, "overrideInput": {"commands": [f"printf '%s\\n' '{said}' >&2; exit 1 {REFUSAL}"]}}
    return {"cancel": True, "errorMessage": reason} if decision.verdict == "deny" else context(payload.event, reason)


def refuses(reply: Mapping[str, Any] | None) -> bool:
    """Whether an answer keeps the call from running."""
    return bool(reply) and ("overrideInput" in (reply or {}) or (reply or {}).get("cancel") is True)


def context(event: str, text: str) -> Answer:
    """Text for the model beside what happens anyway; None for no text, or at an event that takes none."""
    return {"cancel": False, "contextModification": text} if text and event in (PRE, POST) else None


def with_message(reply: Answer, message: str) -> Answer:
    """Cline shows a person nothing of a hook but the reason of an end: the agent is told where nothing else is to be said."""
    return reply or {"cancel": False, "contextModification": message}
