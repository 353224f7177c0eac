"""What the results that Claude Code tells of mean: the text of a tool's response, spilled outputs, background commands.

A result has no field for what became of the call; the text says it (`Exit code N`, `<tool_use_error>`, the known refusals).
Hook and importer read it here alike.
"""

from __future__ import annotations

import os

from projectmem.hook.payload import call_of, head_and_tail, read_tail, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem.hook.payload import Call, Payload

CONFIRM_WAIT_S = 0.15
MAX_DURATION_MS = 1 << 40
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
    ("Permission for this ", "denied"),  # action (auto mode), tool use, command
    ("Access has been denied: ", "denied"),
    ("PreToolUse hook did not respond before its timeout", "denied"),
    ("PreToolUse hook failed with an unexpected error", "denied"),
    ("Execution stopped by PreToolUse hook", "denied"),
)
_ASKED = ("Claude Code asks before", "Allowing runs the command as written")  # beside `touch in '/x' needs approval.`
_BLOCKED = "was blocked. For security, Claude Code may only "  # after `rm in '/x' `
_DONE = ("successfully", "has been updated", "Applied ", " cell ")  # in the text of an edit or a write that was made


def failed(call: Call, raw: Mapping[str, Any]) -> None:
    """PostToolUseFailure: a failure for sure, with its duration."""
    read_result(call, output_text(raw.get("error")), True)
    call["interrupted"] = call["interrupted"] or raw.get("is_interrupt") is True
    duration = raw.get("duration_ms")
    if isinstance(duration, (int, float)) and not isinstance(duration, bool) and duration < MAX_DURATION_MS:
        call["duration_ms"] = int(max(0, duration))


def answered(call: Call, response: Any, payload: Payload) -> None:
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
    call["output"], call["error_kind"] = head_and_tail(text), kind
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
    head = text[:4000]
    if " needs approval. " in head and any(mark in head for mark in _ASKED):
        return "denied"
    if _BLOCKED in head or (head.startswith("Cannot ") and " while in plan mode." in head):
        return "denied"
    return ""


def written(text: str) -> bool:
    """Whether an edit's result says in known words that it was made."""
    head = text[:1000]
    return any(mark in head for mark in _DONE)


def output_text(response: Any) -> str:
    """The text of a tool's response: a string, a list of content blocks, or an object with stdout and stderr."""
    if isinstance(response, str):
        return response
    if isinstance(response, list):
        return "\n".join(b["text"] for b in response if isinstance(b, dict) and isinstance(b.get("text"), str))
    if isinstance(response, dict):
        return "\n".join(response[k] for k in ("stdout", "stderr", "error", "content") if isinstance(response.get(k), str))
    return ""


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
    return f"{text}\n{read_tail(path, MAX_SPILLED)}"


def told_as_error(payload: Payload, call: Call, wait_s: float = CONFIRM_WAIT_S) -> bool | None:
    """Whether the session's transcript has the call's result as an error; None where it does not say (in time).

    The client writes the line 30 to 95 ms after it fires PostToolBatch (measured), so this waits; it is asked only where
    taking a refusal with unknown words for a success would clear a failure on record, or count an edit that was not made.
    """
    import time

    path = payload.transcript
    if payload.agent and path.endswith(".jsonl"):
        path = f"{path[:-6]}/subagents/agent-{payload.agent}.jsonl"
    until = time.monotonic() + wait_s
    while path and call["call"]:
        for line in reversed(read_tail(path, MAX_SPILLED).split("\n")):
            if call["call"] in line and '"tool_result"' in line:
                found = _result_error(line, call["call"])
                if found is not None:
                    return found
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    return None


def _result_error(line: str, id: str) -> bool | None:
    from projectmem_logs.fastjson import loads

    try:
        message = loads(line)["message"]
        blocks = message["content"] if message["role"] == "user" else []
        for block in blocks:
            if block["type"] == "tool_result" and block["tool_use_id"] == id:
                return block.get("is_error") is True
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return None


def task_notification(payload: Payload) -> dict[str, str] | None:
    """The end of a background command told through a prompt: {call, status, summary, output}; None for a person's prompt."""
    prompt = text_of(payload.raw, "prompt")
    if not prompt.startswith("<task-notification>"):
        return None
    fields = {name: _between(prompt, f"<{tag}>", f"</{tag}>") for name, tag in _TASK_TAGS}
    path = os.path.realpath(fields.pop("file"))
    ours = payload.session in path and path.endswith(f"{os.sep}tasks{os.sep}{fields.pop('task')}.output")
    fields["output"] = read_tail(path, MAX_SPILLED) if ours else ""
    return fields


def ended_task(payload: Payload, task: Mapping[str, str], started: Any) -> Call | None:
    """The call that a background command's end completes, under an id of its own (its start has been recorded under the
    call's). None where nothing is known of its start, or where it was stopped and not ended."""
    if not isinstance(started, dict) or task["status"] not in ("failed", "completed"):
        return None
    call = call_of(payload, "claude-code", started.get("tool"), started.get("input"), f"{task['call']}#end")
    call["redacted"] = True  # what the note holds was redacted when it was written
    call["cwd"], call["agent"] = text_of(started, "cwd") or payload.cwd, text_of(started, "agent")
    call["output"], call["is_error"] = head_and_tail(task["output"]), task["status"] == "failed"
    number = task["summary"].rpartition("exit code ")[2].strip(" ).")
    if number.isdigit() and len(number) < 6:
        call["exit_code"] = int(number)
        call["error_kind"] = "exit" if int(number) else ""
    return call


def ended_background(payload: Payload, started: Any) -> tuple[Call | None, dict[str, Any]] | None:
    """The call that a prompt tells the end of and the note of its start, the call None where nothing is known of that; None
    for a person's prompt. `started` gives the note of a call."""
    task = task_notification(payload)
    if task is None:
        return None
    note = started(task["call"]) or {}
    return ended_task(payload, task, note.get("background")), note


_TASK_TAGS = (("call", "tool-use-id"), ("status", "status"), ("summary", "summary"), ("file", "output-file"), ("task", "task-id"))


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0].strip()
