"""opencode's side of the hook. Its plugin (setup/opencode_plugin.py) sends payloads of the shape below and acts on the answer.

Measured on the real client (1.18.33): a plugin refuses by throwing, which the model reads as the tool's error; text before a call
is not possible, after one the output can be added to; a tool that fails fires no `tool.execute.after`, only an event of the bus
(`message.part.updated` with `state.status` "error"), which also repeats our own refusals.

payload  {"session_id", "cwd", "call_id", "tool", "args", "output", "exit", "error", "prompt"}, as far as the event has them
answer   {"deny": reason} | {"context": text} | {"message": text}, together where they are
"""

from __future__ import annotations

from projectmem.hook.payload import begun, call_of, checked, errored, exited, head_and_tail, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer, Payload

HARNESS = "opencode"
BATCHES = WARNS_BEFORE = False
SUBAGENT, BACKGROUND = "a session of its own", "none"
PRE, POST, FAILURE = "tool.execute.before", "tool.execute.after", "tool.error"
PROMPT, START = "chat.message", "session.start"
EVENTS = (PRE, POST, FAILURE, PROMPT, START)
_KINDS = {PRE: "pre", POST: "post", FAILURE: "post", PROMPT: "prompt", START: "start"}


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = checked(begun(event, _KINDS, raw))
    if payload.kind in ("pre", "post"):
        call = call_of(payload, HARNESS, tool_of(raw.get("tool"), payload.cwd), raw.get("args"), text_of(raw, "call_id"))
        payload.calls = [call]
        output = text_of(raw, "output")
        if event == FAILURE:
            errored(call, text_of(raw, "error"))
        elif event == POST and isinstance(raw.get("exit"), int):
            exited(call, raw["exit"], output)
        elif event == POST:
            call["output"], call["is_error"] = head_and_tail(output), False
            given = call["input"]
            if isinstance(given, dict) and isinstance(given.get("timeout"), int) and "<bash_metadata>" in output[-400:]:
                call["timed_out"] = "exceeded timeout" in output[-400:]
    return payload


def tool_of(name: Any, cwd: str) -> Any:
    """The tool's name; of a server's tool, `SERVER_TOOL` here, the one that other harnesses give it."""
    if not isinstance(name, str) or "_" not in name or name == "apply_patch":
        return name
    from projectmem.hook.joined import named

    return named(HARNESS, name, cwd)


def answer(payload: Payload, decision: Decision) -> Answer:
    """What the plugin is told of a decision; None says nothing, which allows. A warning is given after the call."""
    if decision.verdict in ("allow", "warn"):
        return None
    return {"deny": decision.reason or "projectmem refused this call (no reason was given)"}


def refuses(reply: Mapping[str, Any] | None) -> bool:
    """Whether an answer keeps the call from running."""
    return bool((reply or {}).get("deny"))


def context(event: str, text: str) -> Answer:
    """Text for the model beside what happens anyway; None for no text, or at an event that takes none."""
    return {"context": text} if text and event in (POST, PROMPT, START) else None


def with_message(reply: Answer, message: str) -> Answer:
    """The same answer with a line that the person sees."""
    return {**(reply or {}), "message": message}
