"""Gemini CLI's side of the hook, and what Qwen Code has in common with it.

Facts measured on the real client (0.61.0), each pinned by a test against it or its samples:
- Only `{"decision": "deny", "reason"}` refuses; Claude Code's `permissionDecision` is ignored, so the call would run. Asking a
  person ends a run without a terminal, without a word: an ask is a refusal here.
- Text given before a call never reaches the model; `AfterTool` appends it to the result. So a warning waits for that.
- The first prompt of a session has the text given at its start before it: nobody asked that.
- No call has an id. A command's text has a line `Exit Code: N` only where N is not 0; what a tool failed at is in `error`.
- A subagent's calls (`invoke_agent`) come under its parent's session with nothing that names it.
- A command in the background tells of its start; no event tells how it ends. One ended by a signal has `Signal: N` and no code.
- An MCP tool is called `mcp_SERVER_TOOL`, which does not tell where the server's name ends; `mcp_context` does.
- Timeouts are in milliseconds.
"""

from __future__ import annotations

from projectmem.hook import nested
from projectmem.hook.payload import begun, call_of, checked, errored, exited, head_and_tail, number_after, text_of, unnamed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer, Call, Payload

HARNESS = "gemini"
BATCHES = WARNS_BEFORE = False
SUBAGENT, BACKGROUND = "as its parent's", "its start"
PRE, POST, PROMPT, START, END = "BeforeTool", "AfterTool", "BeforeAgent", "SessionStart", "SessionEnd"
EVENTS = {PRE: 10_000, POST: 10_000, PROMPT: 10_000, START: 15_000, END: 5_000}  # -> timeout in ms
_KINDS = {PRE: "pre", POST: "post", PROMPT: "prompt", START: "start", END: "end"}
_TAKES_CONTEXT = (POST, PROMPT, START)
_SHELL = "run_shell_command"
_TOLD, _TOLD_END = "<hook_context>", "</hook_context>"
_FIELDS = ("Error", "Exit Code", "Signal", "Background PIDs", "Process Group PGID")


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event`. Raises ValueError naming what is wrong with it."""
    payload = checked(begun(event, _KINDS, raw))
    if event in (PRE, POST):
        call = call_of(payload, HARNESS, tool_of(raw), raw.get("tool_input"), "")
        payload.calls = [unnamed(payload, call, raw.get("timestamp"))]
        if event == POST:
            answered(call, raw.get("tool_response"))
    elif event == PROMPT and text_of(raw, "prompt").startswith(_TOLD):
        payload.raw = {**raw, "prompt": raw["prompt"].partition(_TOLD_END)[2].lstrip("\n")}
    return payload


def tool_of(raw: Mapping[str, Any]) -> Any:
    """The tool's name; of a server's tool the one that other harnesses give it, so that it is one action in all of them."""
    context = raw.get("mcp_context")
    if isinstance(context, dict):
        server, tool = text_of(context, "server_name"), text_of(context, "tool_name")
        if server and tool:
            return f"mcp__{server}__{tool}"
    return raw.get("tool_name")


def answered(call: Call, response: Any) -> None:
    """What a tool's response says became of the call."""
    fields = response if isinstance(response, dict) else {}
    content = fields.get("llmContent", response)
    text = content if isinstance(content, str) else "\n".join(_texts(content))
    error = fields.get("error")
    if isinstance(error, dict):
        errored(call, text or text_of(error, "message"))
    elif call["tool"] == _SHELL:
        shell(call, text)
    else:
        call["output"], call["is_error"] = head_and_tail(text), False


def _texts(content: Any) -> list[str]:
    parts = content if isinstance(content, list) else [content]
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def shell(call: Call, text: str) -> None:
    """A command's text for the model: its output between fields of the harness's own, and its exit code."""
    given = call["input"]
    if isinstance(given, dict) and given.get("is_background") is True:
        call["output"], call["background"] = head_and_tail(text), "background"
        return
    text = text.removeprefix("<untrusted_context>\n").rstrip("\n").removesuffix("\n</untrusted_context>").rstrip("\n")
    start = text.find("Output: ")
    body, code = _fields_off(text[start + 8 :] if start >= 0 else text)
    exited(call, code, "" if body in ("(empty)", "(none)") else body)
    if "Command was cancelled" in text[:200] or "Command timed out" in text[:200]:
        call["timed_out"] = "timed out" in text[:200]
        call["interrupted"], call["error_kind"] = not call["timed_out"], "timeout" if call["timed_out"] else "interrupted"


def _fields_off(body: str) -> tuple[str, int]:
    """(the output, its exit code) of a text that ends with the harness's own fields, a line each in this order. What the command
    itself printed in such words stands before them and is its output."""
    code = 0
    names: tuple[str, ...] = _FIELDS
    while True:
        before, _, last = body.rpartition("\n")
        name, mark, value = last.partition(": ")
        if not mark or name not in names or (name == "Error" and value != "(none)"):
            return body, code
        body, names = before, names[: names.index(name)]
        if name == "Exit Code":
            code = number_after(last, "Exit Code: ") or code
        elif name == "Signal" and value != "(none)":
            code = 128 + int(value) if value.isdigit() else 137  # ended by a signal: there is no exit code


def answer(payload: Payload, decision: Decision) -> Answer:
    """What Gemini CLI is told of a decision; None says nothing, which allows. A warning is given after the call."""
    if decision.verdict in ("allow", "warn"):
        return None
    return {"decision": "deny", "reason": decision.reason or "projectmem refused this call (no reason was given)"}


def refuses(reply: Mapping[str, Any] | None) -> bool:
    """Whether an answer keeps the call from running."""
    return (reply or {}).get("decision") == "deny"


def context(event: str, text: str) -> Answer:
    """Text for the model beside what happens anyway; None for no text, or at an event that takes none."""
    return nested.text(event, text) if event in _TAKES_CONTEXT else None


def with_message(reply: Answer, message: str) -> Answer:
    """The same answer with a line that the person sees."""
    return {**(reply or {}), "systemMessage": message}
