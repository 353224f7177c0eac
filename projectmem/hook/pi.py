"""pi's side of the hook. Its extension (setup/pi_extension.py) sends payloads of the shape below and acts on the answer.

Measured on the real client (0.73.1): an extension refuses with `{block, reason}`, which the model reads; one that throws refuses
too. `tool_result` tells of every outcome, failed edits and exit codes included, and takes more content.

payload  {"session_id", "cwd", "call_id", "tool", "args", "output", "is_error", "prompt"}, as far as the event has them
answer   {"deny": reason} | {"context": text} | {"message": text}, together where they are
"""

from __future__ import annotations

from projectmem.hook.opencode import answer, refuses, with_message
from projectmem.hook.payload import begun, call_of, checked, errored, exited, head_and_tail, number_after, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem.hook.payload import Answer, Call, Payload

__all__ = ["BACKGROUND", "BATCHES", "EVENTS", "HARNESS", "SUBAGENT", "WARNS_BEFORE"]
__all__ += ["answer", "context", "parse", "refuses", "with_message"]

HARNESS = "pi"
BATCHES = WARNS_BEFORE = False
SUBAGENT, BACKGROUND = "none", "none"
PRE, POST, PROMPT = "tool_call", "tool_result", "before_agent_start"
START, END = "session_start", "session_shutdown"
EVENTS = (PRE, POST, PROMPT, START, END)
_KINDS = {PRE: "pre", POST: "post", PROMPT: "prompt", START: "start", END: "end"}
_EXIT = "Command exited with code"


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = checked(begun(event, _KINDS, raw))
    if event in (PRE, POST):
        call = call_of(payload, HARNESS, raw.get("tool"), raw.get("args"), text_of(raw, "call_id"))
        payload.calls = [call]
        if event == POST:
            told(call, text_of(raw, "output"), failed=raw.get("is_error") is True)
    return payload


def told(call: Call, text: str, *, failed: bool) -> Call:
    """The same call with what its tool answered."""
    code = number_after(text[-200:], _EXIT) if call["tool"] == "bash" and failed else None
    if code is not None:
        return exited(call, code, text.rpartition(_EXIT)[0].rstrip("\n"))
    if failed:
        return errored(call, text)
    call["output"], call["is_error"] = head_and_tail(text), False
    return call


def context(event: str, text: str) -> Answer:
    """Text for the model beside what happens anyway; None for no text, or at an event that takes none."""
    return {"context": text} if text and event in (POST, PROMPT, START) else None
