"""Codex CLI's side of the hook: its payloads become neutral calls, a decision becomes its JSON.

Facts measured on the real client (0.171.0), each pinned by a test against it or its samples:
- An answer with any field that Codex does not know is thrown away whole and the call runs: a deny is exactly
  `hookSpecificOutput` with three fields, a warning has no `permissionDecision`. `ask` is not supported and would let it run.
- `PostToolUse` has the bare output and no exit code; that is in the transcript, which is written before the hook is called.
- A patch that does not apply fires no event after the call, nor does an MCP call that fails; a command that goes on running
  fires none when it ends. All are in the transcript: it is read after each call, at the end of a turn, and before a patch or
  an MCP call.
"""

from __future__ import annotations

from projectmem.hook import nested
from projectmem.hook.payload import begun, call_of, checked, errored, exited, read_tail, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer, Call, Payload

HARNESS = "codex"
refuses = nested.refuses
BATCHES, WARNS_BEFORE = False, True
SUBAGENT, BACKGROUND = "named", "its end"
PRE, POST, PROMPT, START, STOP, END = "PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop", "SessionEnd"
# Event -> timeout in seconds. Codex gives the end of a session 3 at most.
EVENTS = {PRE: 10, POST: 10, PROMPT: 10, START: 15, STOP: 10, END: 3}
_KINDS = {PRE: "pre", POST: "post", PROMPT: "prompt", START: "start", STOP: "post", END: "end"}
_TAKES_CONTEXT = (PRE, POST, PROMPT, START)
_RAN = '"CommandExecution"'
_PATCH_FAILED = "apply_patch verification failed"


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = checked(begun(event, _KINDS, raw))
    if event == PRE:
        call = call_of(payload, HARNESS, raw.get("tool_name"), raw.get("tool_input"), text_of(raw, "tool_use_id"))
        payload.calls = [call]
        if call["tool"] == "apply_patch" or call["tool"].startswith("mcp__"):
            payload.ended = list(_ended(payload).values())
    elif event == POST:
        call = call_of(payload, HARNESS, raw.get("tool_name"), raw.get("tool_input"), text_of(raw, "tool_use_id"))
        ended = _ended(payload)
        told = ended.pop(call["call"], None)
        _answered(call, raw.get("tool_response"), told)
        payload.calls = [*ended.values(), call]
    elif event == STOP:
        payload.calls = list(_ended(payload).values())
    return payload


def _answered(call: Call, response: Any, told: Call | None) -> None:
    """What the event and the transcript tell of a call, together."""
    if isinstance(response, dict):  # an MCP server's answer
        content = response.get("content")
        blocks = content if isinstance(content, list) else []
        text = "\n".join(b["text"] for b in blocks if isinstance(b, dict) and isinstance(b.get("text"), str))
        call["output"], call["is_error"] = text, response.get("isError") is True
        call["error_kind"] = "tool" if call["is_error"] else ""
        meta = response.get("metadata")
        code = meta.get("exit_code") if isinstance(meta, dict) else response.get("exit_code")
        if content is None and code is not None:  # a command's, where it is not told as text alone
            exited(call, code, text_of(response, "output"))
        return
    text, known = unwrapped(response if isinstance(response, str) else "")
    if told is not None:
        exited(call, told["exit_code"], text or told["output"])
        call["duration_ms"], call["interrupted"] = told["duration_ms"], told["interrupted"]
        return
    if known is not None:
        exited(call, known, text)
        return
    head, _, rest = text.partition("\n")
    code = head[11:].strip() if head.startswith("Exit code: ") else ""
    if code.isdigit():
        exited(call, int(code), rest)
    else:
        call["output"] = text


def unwrapped(output: str) -> tuple[str, int | None]:
    """(text, exit code) of an output that is JSON of both, as some versions have it: `{"output":"x","metadata":{"exit_code":1}}`;
    (the output, None) for any other; no code where it tells of none. Hook and importer share it."""
    if not output.startswith("{") or '"metadata"' not in output:
        return output, None
    from projectmem_logs.fastjson import loads

    try:
        told = loads(output)
        text, code = told["output"], told["metadata"].get("exit_code")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return output, None
    return (text, code if type(code) is int else None) if isinstance(text, str) else (output, None)


def _ended(payload: Payload) -> dict[str, Call]:
    """Calls that the end of the transcript tells of: commands with an exit code, patches and MCP calls that failed."""
    found: dict[str, Call] = {}
    patches: dict[str, Any] = {}
    for line in read_tail(payload.transcript).split("\n") if payload.transcript else ():
        if _RAN in line or '"custom_tool_call' in line or '"McpToolCall"' in line:
            item = _item(line)
            if item.get("type") == "custom_tool_call":
                patches[text_of(item, "call_id")] = item
                continue
            call = read_item(payload, item, patches)
            if call is not None:
                found[call["call"]] = call
    return found


def _item(line: str) -> dict[str, Any]:
    from projectmem_logs.fastjson import loads

    try:
        inner = loads(line)["payload"]
        item = inner.get("item", inner)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return item if isinstance(item, dict) else {}


def read_item(payload: Payload, item: Mapping[str, Any], patches: Mapping[str, Any]) -> Call | None:
    """The ended call that an item of a transcript tells of, None where it tells of none. Hook and importer share it."""
    kind, id = item.get("type"), text_of(item, "id") or text_of(item, "call_id")
    if kind == "CommandExecution" and id:
        return _command(payload, item, id)
    if kind == "custom_tool_call_output":
        id = text_of(item, "call_id")
        output = item.get("output")
        text = output if isinstance(output, str) else text_of(output, "content") if isinstance(output, dict) else ""
        text, _ = unwrapped(text)
        if id in patches and text.startswith(_PATCH_FAILED):
            given = {"command": patches[id].get("input")}
            return errored(call_of(payload, HARNESS, "apply_patch", given, id), text)
    if kind == "McpToolCall" and id and item.get("status") == "failed":
        error = item.get("error")
        text = text_of(error, "message") if isinstance(error, dict) else error if isinstance(error, str) else ""
        tool = f"mcp__{text_of(item, 'server')}__{text_of(item, 'tool')}"
        return errored(call_of(payload, HARNESS, tool, item.get("arguments"), id), text)
    return None


def _command(payload: Payload, item: Mapping[str, Any], id: str) -> Call | None:
    argv, code = item.get("command"), item.get("exit_code")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        return None
    call = call_of(payload, HARNESS, "Bash", {"command": argv[-1]}, id)
    where = text_of(item, "cwd").removeprefix("file://")
    call["cwd"] = where or payload.cwd
    exited(call, code, text_of(item, "aggregated_output"))
    if code == -1:  # ended with the session, by nobody's fault
        call["interrupted"], call["error_kind"] = True, "interrupted"
    spent = item.get("duration")
    if isinstance(spent, dict) and isinstance(spent.get("secs"), int):
        nanos = spent.get("nanos")
        call["duration_ms"] = spent["secs"] * 1000 + (nanos // 1_000_000 if isinstance(nanos, int) else 0)
    return call


def answer(payload: Payload, decision: Decision) -> Answer:
    """What Codex is told of a decision; None says nothing, which allows.

    warn  context, which reaches the model before the call's output;  ask  refused with the reason, since Codex asks nobody
    """
    if decision.verdict == "allow":
        return None
    if decision.verdict == "warn":
        return context(payload.event, decision.reason)
    return nested.refusal(payload.event, decision, asks=False)


def context(event: str, text: str) -> Answer:
    """Text for the model beside what happens anyway; None for no text, or at an event that takes none."""
    return nested.text(event, text) if event in _TAKES_CONTEXT else None


def with_message(reply: Answer, message: str) -> Answer:
    """A line that the person sees. Never beside an answer: a field too many would lose it."""
    return reply or {"systemMessage": message}
