"""GitHub Copilot CLI's side of the hook: its payloads become neutral calls, a decision becomes its JSON.

Facts measured on the real client (1.0.102), each pinned by a test against it or its samples:
- Answers are flat: `permissionDecision`, `permissionDecisionReason`, `additionalContext`. Claude Code's nested form and
  `decision` are ignored in its own hook files, so the call would run.
- Calls have no id. A command that fails is a success (`resultType`) whose text ends `<shellId: N completed with exit code M>`.
- An MCP tool is called `SERVER-TOOL`: where the server's name ends its settings tell.
- A subagent's calls have a session id of their own (its `agentId`) and its parent's in `parentAgentId`.
- A command in the background (or one that its wait ran out for) has ended for no event: the session's `events.jsonl` tells, and
  is read before and after each call.
- A hook that crashes or exits with another code than 0 denies every call: the registered command always exits 0.
"""

from __future__ import annotations

from projectmem.hook.payload import (
    begun,
    call_of,
    checked,
    errored,
    exited,
    head_and_tail,
    number_after,
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

HARNESS = "copilot"
BATCHES, WARNS_BEFORE = False, True
SUBAGENT, BACKGROUND = "named", "its end"
PRE, POST, FAILURE = "preToolUse", "postToolUse", "postToolUseFailure"
PROMPT, START, END = "userPromptSubmitted", "sessionStart", "sessionEnd"
EVENTS = {PRE: 10, POST: 10, FAILURE: 10, PROMPT: 10, START: 15, END: 5}  # -> timeoutSec
_KINDS = {PRE: "pre", POST: "post", FAILURE: "post", PROMPT: "prompt", START: "start", END: "end"}
_ENDED, _EXIT = "<shellId: ", " completed with exit code "
_ENDED_ONCE, _EXIT_ONCE = "<exited with", " exit code "  # in older versions
_SHELLS, _RUNNING = ("bash", "powershell"), ("<command started in background", " is still running after ")


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = begun(event, _KINDS, raw)
    payload.session, payload.agent = text_of(raw, "parentAgentId") or text_of(raw, "sessionId"), text_of(raw, "agentId")
    checked(payload)
    if payload.kind in ("pre", "post"):
        call = unnamed(
            payload,
            call_of(payload, HARNESS, tool_of(raw.get("toolName"), payload.cwd), _given(raw.get("toolArgs")), ""),
            raw.get("timestamp"),
        )
        ended = _ended(payload)
        if event == PRE:
            payload.calls, payload.ended = [call], ended
        else:
            payload.calls = [*ended, call]
        if event == POST:
            result = raw.get("toolResult")
            answered(call, result if isinstance(result, dict) else {})
        elif event == FAILURE:
            errored(call, text_of(raw, "error"))
    return payload


def _ended(payload: Payload) -> list[Call]:
    """The commands that ended in the background, as far as the end of the session's file tells of their start and their end."""
    from projectmem.place import config_dir

    tail = read_tail(f"{config_dir('COPILOT_HOME', '~/.copilot')}/session-state/{payload.session}/events.jsonl")
    if '"shell_completed"' not in tail or ".." in payload.session:
        return []
    from projectmem_logs.fastjson import loads

    asked: dict[str, Call] = {}  # by call id; then by shell: the call, its output, its exit code
    started: dict[str, Call] = {}
    shown: dict[str, str] = {}
    codes: dict[str, Any] = {}
    for line in tail.split("\n"):
        if '"tool.execution_' not in line and '"shell_completed"' not in line:
            continue
        try:
            row = loads(line)
            data, id = row["data"], text_of(row["data"], "toolCallId")
            if row["type"] == "tool.execution_start" and data["toolName"] in _SHELLS:
                asked[id] = call_of(payload, HARNESS, data["toolName"], data["arguments"], f"{id}#end")
                asked[id]["agent"] = text_of(row, "agentId")
            elif row["type"] == "tool.execution_complete":
                text = text_of(data["result"], "content")
                shell = text.rpartition("shellId: ")[2].partition(">")[0].partition(" ")[0]
                if id in asked and any(mark in text[-400:] for mark in _RUNNING):
                    started[shell] = asked[id]
                elif _EXIT in text[-100:]:
                    shown[shell] = text.rpartition(_ENDED)[0]
            elif row["type"] == "system.notification" and data["kind"]["type"] == "shell_completed":
                codes[data["kind"]["shellId"]] = data["kind"]["exitCode"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return [exited(started[shell], code, shown.get(shell, "")) for shell, code in codes.items() if shell in started]


def tool_of(name: Any, cwd: str) -> Any:
    """The tool's name; of a server's tool the one that other harnesses give it, so that it is one action in all of them."""
    if not isinstance(name, str) or "-" not in name:
        return name
    from projectmem.hook.joined import named

    return named(HARNESS, name, cwd)


def _given(args: Any) -> Any:
    """The input; older clients send it as a JSON text."""
    if not isinstance(args, str):
        return args
    from projectmem_logs.fastjson import loads

    try:
        return loads(args)
    except (ValueError, RecursionError):
        return args


def answered(call: Call, result: Mapping[str, Any]) -> None:
    """What a tool's result says became of the call."""
    text, kind = text_of(result, "textResultForLlm"), result.get("resultType")
    if kind == "denied":
        call["output"], call["is_error"], call["error_kind"] = head_and_tail(text), True, "denied"
        return
    if kind == "failure":
        errored(call, text)
        return
    body, mark, last = text.rpartition(_ENDED)
    code = number_after(last, _EXIT) if mark else None
    if code is None and call["tool"] in _SHELLS and _ENDED_ONCE in text[-60:]:
        body, _, last = text.rpartition(_ENDED_ONCE)
        code = number_after(last, _EXIT_ONCE)
    if code is not None:
        exited(call, code, body)
        return
    call["output"], call["is_error"] = head_and_tail(text), False
    if call["tool"] in _SHELLS and any(mark in text[-400:] for mark in _RUNNING):
        call["background"] = "async"


def answer(payload: Payload, decision: Decision) -> Answer:
    """What Copilot CLI is told of a decision; None says nothing, which allows.

    warn  context, which reaches the model as a message of its own;  ask  a person answers: Copilot asks them (refused where there
    is no terminal), the agent answers: refused with the reason
    """
    if decision.verdict == "allow":
        return None
    if decision.verdict == "warn":
        return context(payload.event, decision.reason)
    permission = "ask" if decision.verdict == "ask" and decision.by == "person" else "deny"
    reason = decision.reason or "projectmem refused this call (no reason was given)"
    return {"permissionDecision": permission, "permissionDecisionReason": reason}


def refuses(reply: Mapping[str, Any] | None) -> bool:
    """Whether an answer keeps the call from running."""
    return (reply or {}).get("permissionDecision") == "deny"


def context(event: str, text: str) -> Answer:
    """Text for the model beside what happens anyway; None for no text, or at an event that takes none."""
    return {"additionalContext": text} if text and event in (PRE, POST, FAILURE, START) else None


def with_message(reply: Answer, message: str) -> Answer:
    """Copilot CLI shows a person nothing of a hook: the agent is told where nothing else is to be said, and may pass it on."""
    return reply or {"additionalContext": message}
