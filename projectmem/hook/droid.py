"""Factory Droid's side of the hook. Measured on the real client (0.215.0): Claude Code's events and answers, but:

- A call that fails fires no event after it at all; the transcript has its result. It is read before each call and at the end of
  a turn, and also gives calls their ids, which no event has.
- Text given before a call is not delivered; `PostToolUse` delivers. `ask` lets the call run where nobody can be asked.
- An MCP tool is called `SERVER___TOOL`.
- Parallel calls with the same input cannot be told apart before they end: the refusal of one has the other's id.
- `fireAndForget` ends at once, without an exit code; how the command ends is nowhere. Its subagents (`Task`) want an account and
  a daemon: they were not run.
"""

from __future__ import annotations

from projectmem.hook import nested
from projectmem.hook.payload import (
    begun,
    call_of,
    checked,
    errored,
    exited,
    head_and_tail,
    number_after,
    ours,
    read_tail,
    text_of,
    unnamed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer, Call, Payload

HARNESS = "droid"
refuses = nested.refuses
BATCHES = WARNS_BEFORE = False
SUBAGENT, BACKGROUND = "not run", "its start"
PRE, POST, PROMPT, START, STOP, END = "PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop", "SessionEnd"
EVENTS = {PRE: 10, POST: 10, PROMPT: 10, START: 15, STOP: 10, END: 5}  # -> timeout in seconds
_KINDS = {PRE: "pre", POST: "post", PROMPT: "prompt", START: "start", STOP: "post", END: "end"}
_EXIT = "[Process exited with code "


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = checked(begun(event, _KINDS, raw))
    if event not in (PRE, POST, STOP):
        return payload
    uses, results = _transcript(payload)
    ended = [_failed(payload, use, results[id], id) for id, use in uses.items() if results.get(id, {}).get("is_error") is True]
    if event == STOP:
        payload.calls = ended
        return payload
    call = call_of(payload, HARNESS, raw.get("tool_name"), raw.get("tool_input"), "")
    asked = (call["tool"], call["input"])
    call["tool"] = named(call["tool"])
    open_ids = [id for id, use in uses.items() if id not in results and (use.get("name"), use.get("input")) == asked]
    if len(open_ids) == 1 or (open_ids and event == PRE):
        call["call"] = open_ids[-1]
    elif open_ids:  # which of them went well is not told; the one that failed is named by the transcript
        unnamed(payload, call, open_ids[0])
    else:
        import time

        unnamed(payload, call, time.time_ns() // 1_000_000)
    if event == PRE:
        payload.calls, payload.ended = [call], ended
    else:
        _answered(call, raw.get("tool_response"))
        payload.calls = [*ended, call]
    return payload


def _transcript(payload: Payload) -> tuple[dict[str, Any], dict[str, Any]]:
    """(calls, results) by id, as far as the end of the transcript has them."""
    from projectmem_logs.fastjson import loads

    uses: dict[str, Any] = {}
    results: dict[str, Any] = {}
    for line in read_tail(payload.transcript).split("\n") if payload.transcript else ():
        if '"tool_use"' not in line and '"tool_result"' not in line:
            continue
        try:
            blocks = loads(line)["message"]["content"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        for block in blocks if isinstance(blocks, list) else ():
            kind = block.get("type") if isinstance(block, dict) else ""
            if kind == "tool_use" and isinstance(block.get("name"), str):
                uses[text_of(block, "id")] = block
            elif kind == "tool_result":
                results[text_of(block, "tool_use_id")] = block
    return uses, results


def _failed(payload: Payload, use: Mapping[str, Any], result: Mapping[str, Any], id: str) -> Call:
    return told(call_of(payload, HARNESS, named(use.get("name")), use.get("input"), id), result)


def named(tool: Any) -> Any:
    """A server's tool, `SERVER___TOOL` here, as other harnesses call it, so that it is one action in all of them."""
    server, joint, name = tool.partition("___") if isinstance(tool, str) else ("", "", "")
    return f"mcp__{server}__{name}" if server and joint and name else tool


def told(call: Call, result: Mapping[str, Any]) -> Call:
    """The same call with its result as the transcript has it."""
    content = result.get("content")
    text = content if isinstance(content, str) else ""
    if result.get("is_error") is not True:
        _answered(call, text)
        return call
    text = text.removeprefix("Error: ")
    code = number_after(text, _EXIT)
    if code is None:
        errored(call, text)
        call["error_kind"] = "hook" if ours(text) else "tool"
        return call
    return exited(call, code, text.partition("\n")[2].rpartition(_EXIT)[0].rstrip("\n"))


def _answered(call: Call, response: Any) -> None:
    text = response if isinstance(response, str) else ""
    code = number_after(text, _EXIT)
    if code is not None:
        exited(call, code, text.rpartition(_EXIT)[0].rstrip("\n"))
        return
    call["output"], call["is_error"] = head_and_tail(text), False
    given = call["input"]
    if isinstance(given, dict) and given.get("fireAndForget") is True:
        call["background"] = "fireAndForget"


def answer(payload: Payload, decision: Decision) -> Answer:
    """What Droid is told of a decision; None says nothing, which allows. A warning is given after a call."""
    if decision.verdict in ("allow", "warn"):
        return None
    return nested.refusal(payload.event, decision, asks=False)


def context(event: str, text: str) -> Answer:
    """Text for the model beside what happens anyway; None for no text, or at an event that takes none."""
    return nested.text(event, text) if event in (POST, PROMPT, START) else None


def with_message(reply: Answer, message: str) -> Answer:
    """The same answer with a line that the person sees."""
    return {**(reply or {}), "systemMessage": message}
