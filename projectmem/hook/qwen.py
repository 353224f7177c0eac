"""Qwen Code's side of the hook. Measured on the real client (0.24.4): Claude Code's events with Gemini CLI's texts.

- `PostToolUseFailure` has the text of what failed; calls have an id (`tool_call_id`, the model's own; `tool_use_id` is another
  one in another event). Text given before a call is not delivered, after one it is.
- A subagent's calls have its `agent_id`. A command in the background tells of its start and of a file that its status is written
  to; no event tells of its end: the files that the transcript names are read before and after each call.
- `UserPromptSubmit` also comes with an empty prompt after every tool result. Timeouts are in milliseconds.
"""

from __future__ import annotations

from projectmem.hook import nested
from projectmem.hook.gemini import answered, shell
from projectmem.hook.payload import begun, call_of, checked, errored, exited, number_after, read_tail, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer, Call, Payload

HARNESS = "qwen"
refuses = nested.refuses
BATCHES = WARNS_BEFORE = False
SUBAGENT, BACKGROUND = "named", "its end"
PRE, POST, FAILURE = "PreToolUse", "PostToolUse", "PostToolUseFailure"
PROMPT, START, END = "UserPromptSubmit", "SessionStart", "SessionEnd"
EVENTS = {PRE: 10_000, POST: 10_000, FAILURE: 10_000, PROMPT: 10_000, START: 15_000, END: 5_000}  # -> timeout in ms
_KINDS = {PRE: "pre", POST: "post", FAILURE: "post", PROMPT: "prompt", START: "start", END: "end"}
_STARTED = "Background shell started."


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = checked(begun(event, _KINDS, raw))
    if payload.kind in ("pre", "post"):
        id = text_of(raw, "tool_call_id") or text_of(raw, "tool_use_id")
        call = call_of(payload, HARNESS, raw.get("tool_name"), raw.get("tool_input"), id)
        ended = _ended(payload)
        if event == PRE:
            payload.calls, payload.ended = [call], ended
        else:
            payload.calls = [*ended, call]
        if event == POST:
            answered(call, raw.get("tool_response"))
        elif event == FAILURE:
            text = text_of(raw, "error")
            if call["tool"] == "run_shell_command" and "\nExit Code: " in text:
                shell(call, text)
            else:
                errored(call, text)
            stopped = raw.get("is_interrupt") is True or text.startswith("Command was cancelled by user")
            call["interrupted"] = call["interrupted"] or stopped
    return payload


def _ended(payload: Payload) -> list[Call]:
    """The commands that ended in the background, of those whose start the end of the transcript tells of."""
    tail = read_tail(payload.transcript) if payload.transcript else ""
    if _STARTED not in tail:
        return []
    from projectmem_logs.fastjson import loads

    found = []
    for line in tail.split("\n"):
        if _STARTED not in line:
            continue
        try:
            for part in loads(line)["message"]["parts"]:
                told = part.get("functionResponse") or {}
                if told.get("name") == "run_shell_command":
                    found.append(_ending(payload, text_of(told, "id"), text_of(told["response"], "output")))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return [call for call in found if call is not None]


def _ending(payload: Payload, id: str, text: str) -> Call | None:
    """The end of a command that was started with this text; None while it runs, or where it was stopped by someone."""
    import os

    from projectmem_logs.fastjson import loads

    path = os.path.realpath(text.partition("\nstatus file: ")[2].partition("\n")[0])
    if not id or not text.startswith(_STARTED) or not path.endswith(".status"):
        return None
    if os.path.basename(os.path.dirname(path)) != payload.session:  # not one of this session's
        return None
    try:
        status = loads(read_tail(path))
    except (ValueError, RecursionError):
        return None  # not there yet, or no more
    if not isinstance(status, dict) or status.get("status") not in ("failed", "completed"):
        return None
    call = call_of(payload, HARNESS, "run_shell_command", {"command": status.get("command"), "is_background": True}, f"{id}#end")
    call["cwd"], call["agent"] = text_of(status, "cwd") or payload.cwd, ""  # the transcript is the main agent's
    code = number_after(text_of(status, "error"), "exited with code") if status["status"] == "failed" else 0
    output = read_tail(f"{path[:-7]}.output")
    return errored(call, output) if code is None else exited(call, code, output)


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
