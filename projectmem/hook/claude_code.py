"""Claude Code's side of the hook: its payloads become neutral calls, a decision becomes its JSON.

Facts measured on the real client (2.1.332), each pinned by a test against it:
- `PostToolBatch` tells of every call, also of those that fire no other event (an edit whose old text is not found, an
  unknown tool, a refusal), as the text the model sees: a failure has no field of its own there, only `Exit code N` or
  `<tool_use_error>` in the text. `PostToolUseFailure` is sure of it, comes first, and knows the duration. `PostToolUse`
  adds nothing that is used here, and would be one process more for each call that succeeds.
- The batch repeats the hook's own refusals. A background command's real end comes as a `UserPromptSubmit`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.model import Decision

    Call = dict[str, Any]

HARNESS = "claude-code"
PRE, FAILURE, BATCH = "PreToolUse", "PostToolUseFailure", "PostToolBatch"
PROMPT, START, END = "UserPromptSubmit", "SessionStart", "SessionEnd"
# Event -> (timeout in seconds, takes a matcher). Claude Code's own default of 600 s would hang a session on a stuck disk.
EVENTS = {PRE: (10, True), FAILURE: (10, True), BATCH: (15, False), PROMPT: (10, False), START: (15, False), END: (5, False)}
MAX_OUTPUT = 262_144  # characters of a tool's output that are judged: its head and its tail
MAX_SPILLED = 65_536  # bytes read of the end of an output that the client wrote to a file

HOOK_REFUSAL = "hook error:"
_REFUSALS = (
    ("<tool_use_error>Sibling tool call errored", "cancelled"),
    ("<tool_use_error>Cancelled", "cancelled"),
    ("Cancelled: parallel tool call", "cancelled"),
    ("The user doesn't want to", "rejected"),
    ("[Request interrupted by user", "interrupted"),
    ("Permission to use ", "denied"),
    ("Claude requested permissions", "denied"),
    ("This command requires approval", "denied"),
    ("This Bash command contains multiple operations", "denied"),
)


class Payload:
    """One hook call, read.

    event  Claude Code's own name;  kind  pre | post | batch | prompt | start | end;  calls  of pre, post and batch
    """

    __slots__ = ("agent", "calls", "cwd", "event", "kind", "raw", "session", "transcript")

    def __init__(self, event: str, kind: str, raw: dict[str, Any]) -> None:
        self.event, self.kind, self.raw = event, kind, raw
        self.session = _text(raw, "session_id")
        self.agent = _text(raw, "agent_id")
        self.cwd = _text(raw, "cwd")
        self.transcript = _text(raw, "transcript_path")
        self.calls: list[Call] = []


_KINDS = {PRE: "pre", FAILURE: "post", BATCH: "batch", PROMPT: "prompt", START: "start", END: "end"}


def parse(event: str, raw: Any) -> Payload:
    """The payload of `event` (the name the hook was registered for). Raises ValueError naming what is wrong with it."""
    kind = _KINDS.get(event)
    if kind is None:
        raise ValueError(f"unknown event {event!r}: this hook knows {', '.join(_KINDS)}")
    if not isinstance(raw, dict):
        raise ValueError(f"the payload is not a JSON object but {type(raw).__name__}")
    named = raw.get("hook_event_name")
    if named is not None and named != event:
        raise ValueError(f"registered for {event} but called with {str(named)[:60]!r}: run `projectmem init` again")
    payload = Payload(event, kind, raw)
    if not payload.session:
        raise ValueError("the payload has no session_id")
    if not payload.cwd:
        raise ValueError("the payload has no cwd")
    if kind in ("pre", "post"):
        payload.calls = [_call(payload, raw)]
        if kind == "post":
            _failed(payload.calls[0], raw)
    elif kind == "batch":
        rows = raw.get("tool_calls")
        if not isinstance(rows, list):
            raise ValueError("the payload has no list `tool_calls`")
        for row in rows:
            if isinstance(row, dict) and isinstance(row.get("tool_name"), str):
                call = _call(payload, row)
                _answered(call, row.get("tool_response"), payload)
                payload.calls.append(call)
    return payload


def _call(payload: Payload, row: Mapping[str, Any]) -> Call:
    tool = row.get("tool_name")
    if not isinstance(tool, str) or not tool:
        raise ValueError("the payload has no tool_name")
    return {
        "harness": HARNESS,
        "session": payload.session,
        "agent": payload.agent,
        "model": "",
        "call": _text(row, "tool_use_id"),
        "tool": tool,
        "input": row.get("tool_input"),
        "cwd": payload.cwd,
        "exit_code": None,
        "output": "",
        "is_error": None,
        "error_kind": "",
        "interrupted": False,
        "timed_out": False,
        "duration_ms": None,
        "background": "",
    }


def _failed(call: Call, raw: Mapping[str, Any]) -> None:
    """PostToolUseFailure: a failure for sure, with its duration."""
    read_result(call, output_text(raw.get("error")), True)
    call["is_error"] = True
    call["interrupted"] = raw.get("is_interrupt") is True
    duration = raw.get("duration_ms")
    if isinstance(duration, (int, float)) and not isinstance(duration, bool):
        call["duration_ms"] = max(0, int(duration))


def _answered(call: Call, response: Any, payload: Payload) -> None:
    """A row of PostToolBatch: the text the model sees says what became of the call."""
    text = output_text(response)
    if text.startswith("<persisted-output>"):
        text = _spilled(text, payload.transcript) or text
    read_result(call, text, None)


def read_result(call: Call, text: str, is_error: bool | None) -> None:
    """Set what a result's text tells: output, error_kind, exit_code, timed_out, background, is_error.

    is_error  as the harness says; None where it does not (then the text's own mark decides, else the call succeeded).
    """
    kind = refusal(text)
    if not kind and is_error is not False:
        if text.startswith("Exit code "):
            head, _, rest = text.partition("\n")
            number = head[10:].strip()
            if number.isdigit() and len(number) < 6:
                kind, call["exit_code"], text = "exit", int(number), rest
        elif text.startswith("<tool_use_error>"):
            kind, text = "tool", text[16:].removesuffix("</tool_use_error>")
        elif is_error:
            kind = "tool"
    if kind in ("exit", "tool") and "Command timed out after" in text[-200:] + text[:200]:
        kind, call["timed_out"] = "timeout", True
    call["interrupted"] = kind == "interrupted"
    call["output"], call["error_kind"] = _head_and_tail(text), kind
    call["is_error"] = bool(kind) if is_error is None else is_error
    if not kind and text.startswith("Command running in background with ID:"):
        call["background"] = text[38:].split(".", 1)[0].strip()[:64]


def refusal(text: str) -> str:
    """The kind of refusal a result's text tells of (hook, rejected, denied, cancelled, interrupted), "" for none."""
    if text.startswith("PreToolUse:") and HOOK_REFUSAL in text[:200]:
        return "hook"
    for start, kind in _REFUSALS:
        if text.startswith(start):
            return kind
    # `touch in '/x' needs approval. The path ...`
    return "denied" if " needs approval. " in text[:1000] and "Claude Code asks before" in text[:4000] else ""


def output_text(response: Any) -> str:
    """The text of a tool's response: a string, a list of content blocks, or an object with stdout and stderr."""
    if isinstance(response, str):
        return response
    if isinstance(response, list):
        return "\n".join(b["text"] for b in response if isinstance(b, dict) and isinstance(b.get("text"), str))
    if isinstance(response, dict):
        return "\n".join(response[k] for k in ("stdout", "stderr", "error", "content") if isinstance(response.get(k), str))
    return ""


def _head_and_tail(text: str) -> str:
    if len(text) <= MAX_OUTPUT:
        return text
    half = MAX_OUTPUT // 2
    return f"{text[:half]}\n...\n{text[-half:]}"


def _spilled(text: str, transcript: str) -> str:
    """A long output's preview and the end of the file it was written to, which must lie beside the session's transcript."""
    mark = "Full output saved to: "
    at = text.find(mark)
    folder = transcript.removesuffix(".jsonl")
    if at < 0 or not folder:
        return ""
    path = os.path.realpath(text[at + len(mark) :].split("\n", 1)[0].strip())
    if not path.startswith(os.path.realpath(folder) + os.sep):
        return ""
    return f"{text}\n{read_tail(path)}"


def read_tail(path: str, limit: int = MAX_SPILLED) -> str:
    """The end of a text file, "" where it cannot be read. At most `limit` bytes."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - limit))
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def task_notification(payload: Payload) -> dict[str, str] | None:
    """The end of a background command told through a prompt: {call, status, summary, output}; None for a person's prompt."""
    prompt = _text(payload.raw, "prompt")
    if not prompt.startswith("<task-notification>"):
        return None
    fields = {name: _between(prompt, f"<{tag}>", f"</{tag}>") for name, tag in _TASK_TAGS}
    path = os.path.realpath(fields.pop("file"))
    ours = payload.session in path and path.endswith(f"{os.sep}tasks{os.sep}{fields.pop('task')}.output")
    fields["output"] = read_tail(path) if ours else ""
    return fields


def ended_task(payload: Payload, task: Mapping[str, str], started: Any) -> Call | None:
    """The call that a background command's end completes, under an id of its own (its start has been recorded under the
    call's). None where nothing is known of its start, or where it was stopped and not ended."""
    if not isinstance(started, dict) or task["status"] not in ("failed", "completed"):
        return None
    row = {"tool_name": started.get("tool"), "tool_input": started.get("input"), "tool_use_id": f"{task['call']}#end"}
    call = _call(payload, row)
    call["redacted"] = True  # what the note holds was redacted when it was written
    call["cwd"], call["agent"] = _text(started, "cwd") or payload.cwd, _text(started, "agent")
    call["output"], call["is_error"] = _head_and_tail(task["output"]), task["status"] == "failed"
    number = task["summary"].rpartition("exit code ")[2].strip(" ).")
    if number.isdigit() and len(number) < 6:
        call["exit_code"] = int(number)
        call["error_kind"] = "exit" if int(number) else ""
    return call


_TASK_TAGS = (("call", "tool-use-id"), ("status", "status"), ("summary", "summary"), ("file", "output-file"), ("task", "task-id"))


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0].strip()


def answer(payload: Payload, decision: Decision) -> dict[str, Any] | None:
    """What Claude Code is told of a decision; None says nothing, which allows.

    warn  context, which reaches the model with the call's result
    ask   the agent answers: the call is refused once with the reason;  a person answers: Claude Code asks them
    deny  refused
    """
    verdict = decision.verdict
    if verdict == "allow":
        return None
    if verdict == "warn":
        return context(payload.event, decision.reason)
    permission = "ask" if verdict == "ask" and decision.by == "person" else "deny"
    return {
        "hookSpecificOutput": {
            "hookEventName": payload.event,
            "permissionDecision": permission,
            "permissionDecisionReason": decision.reason or "projectmem refused this call (no reason was given)",
        }
    }


def context(event: str, text: str) -> dict[str, Any] | None:
    """Text for the model beside what happens anyway; None for no text."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}} if text else None


def with_message(reply: dict[str, Any] | None, message: str) -> dict[str, Any]:
    """The same answer with a line that the person sees."""
    return {**(reply or {}), "systemMessage": message}


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""
