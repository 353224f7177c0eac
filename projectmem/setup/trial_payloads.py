"""What each harness would send in a session that fails and a second one that is about to repeat it, for `doctor`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Fields = dict[str, Any]
COMMAND = "npm run projectmem-doctor-trial"
ERROR = "npm error Missing script: projectmem-doctor-trial"
RECORDED, SILENT, SPOKE = "recorded", "silent", "spoke"


class Step:
    """One event.  expected  recorded (an event of `kind`) | silent | spoke (an answer that names the failed command)"""

    __slots__ = ("event", "expected", "kind", "payload")

    def __init__(self, event: str, payload: Fields, expected: str, kind: str = "") -> None:
        self.event, self.payload, self.expected, self.kind = event, payload, expected, kind


def script(harness: str, folder: str) -> list[Step]:
    """The steps for one harness in a project in `folder`."""
    return SCRIPTS[harness](folder)


def _claude(folder: str) -> list[Step]:
    call = {"tool_name": "Bash", "tool_input": {"command": COMMAND}, "tool_use_id": "toolu_doctor_1"}
    failed = {**call, "error": f"Exit code 1\n{ERROR}", "is_interrupt": False, "duration_ms": 2000}
    edit = {"tool_name": "Edit", "tool_input": {"file_path": f"{folder}/a", "old_string": "x", "new_string": "y"}}
    said = "<tool_use_error>String to replace not found in file.</tool_use_error>"
    refused = {**edit, "tool_use_id": "toolu_doctor_2", "tool_response": said}
    rows = [{**call, "tool_response": failed["error"]}, refused]

    def of(event: str, session: str, fields: Fields, expected: str, kind: str = "") -> Step:
        base = {"session_id": f"doctor-{session}", "transcript_path": "", "cwd": folder, "hook_event_name": event}
        return Step(event, {**base, **fields}, expected, kind)

    return [
        of("SessionStart", "one", {"source": "startup"}, RECORDED, "session.started"),
        of("PreToolUse", "one", call, SILENT),
        of("PostToolUseFailure", "one", failed, RECORDED, "action.finished"),
        of("PostToolBatch", "one", {"tool_calls": rows}, RECORDED, "action.finished"),
        of("PreToolUse", "two", {**call, "tool_use_id": "toolu_doctor_3"}, SPOKE),
        of("UserPromptSubmit", "two", {"prompt": "go on"}, SILENT),
        of("SessionEnd", "two", {"reason": "other"}, RECORDED, "session.ended"),
    ]


def _codex(folder: str) -> list[Step]:
    call = {"tool_name": "Bash", "tool_input": {"command": COMMAND}, "tool_use_id": "call_doctor_1"}

    def of(event: str, session: str, fields: Fields, expected: str, kind: str = "") -> Step:
        base = {"session_id": f"doctor-{session}", "transcript_path": None, "cwd": folder, "hook_event_name": event}
        return Step(event, {**base, "model": "doctor", **fields}, expected, kind)

    return [
        of("SessionStart", "one", {"source": "startup"}, RECORDED, "session.started"),
        of("PreToolUse", "one", call, SILENT),
        of("PostToolUse", "one", {**call, "tool_response": f"Exit code: 1\n{ERROR}"}, RECORDED, "action.finished"),
        of("Stop", "one", {"stop_hook_active": False}, SILENT),
        of("PreToolUse", "two", {**call, "tool_use_id": "call_doctor_2"}, SPOKE),
        of("UserPromptSubmit", "two", {"prompt": "go on"}, SILENT),
        of("SessionEnd", "two", {"reason": "other"}, RECORDED, "session.ended"),
    ]


def _gemini(folder: str) -> list[Step]:
    call = {"tool_name": "run_shell_command", "tool_input": {"command": COMMAND}}
    failed = {**call, "tool_response": {"llmContent": f"Output: {ERROR}\nExit Code: 1", "returnDisplay": ERROR}}

    def of(event: str, session: str, second: int, fields: Fields, expected: str, kind: str = "") -> Step:
        stamp = f"2026-01-01T00:00:{second:02d}.000Z"
        base = {"session_id": f"doctor-{session}", "cwd": folder, "hook_event_name": event, "timestamp": stamp}
        return Step(event, {**base, **fields}, expected, kind)

    return [
        of("SessionStart", "one", 1, {"source": "startup"}, RECORDED, "session.started"),
        of("BeforeTool", "one", 2, call, SILENT),
        of("AfterTool", "one", 3, failed, RECORDED, "action.finished"),
        of("BeforeTool", "two", 4, call, RECORDED, "action.proposed"),
        of("AfterTool", "two", 5, failed, SPOKE),
        of("BeforeAgent", "two", 6, {"prompt": "go on"}, SILENT),
        of("SessionEnd", "two", 7, {"reason": "exit"}, RECORDED, "session.ended"),
    ]


def _qwen(folder: str) -> list[Step]:
    call = {"tool_name": "run_shell_command", "tool_input": {"command": COMMAND}}
    error = f"Command: {COMMAND}\nDirectory: (root)\nOutput: {ERROR}\nError: (none)\nExit Code: 1\nSignal: (none)"

    def of(event: str, session: str, fields: Fields, expected: str, kind: str = "") -> Step:
        base = {"session_id": f"doctor-{session}", "cwd": folder, "hook_event_name": event}
        return Step(event, {**base, **fields}, expected, kind)

    fine = {"tool_name": "run_shell_command", "tool_input": {"command": "true"}, "tool_call_id": "call_doctor_3"}
    return [
        of("SessionStart", "one", {"source": "startup"}, RECORDED, "session.started"),
        of("PreToolUse", "one", {**call, "tool_call_id": "call_doctor_1"}, SILENT),
        of("PostToolUseFailure", "one", {**call, "tool_call_id": "call_doctor_1", "error": error}, RECORDED, "action.finished"),
        of("PreToolUse", "two", {**call, "tool_call_id": "call_doctor_2"}, RECORDED, "action.proposed"),
        of("PostToolUse", "two", {**fine, "tool_response": {"llmContent": "Output: (empty)\nExit Code: 0"}}, SPOKE),
        of("UserPromptSubmit", "two", {"prompt": "go on"}, SILENT),
        of("SessionEnd", "two", {"reason": "other"}, RECORDED, "session.ended"),
    ]


def _copilot(folder: str) -> list[Step]:
    call = {"toolName": "bash", "toolArgs": {"command": COMMAND}}
    text = f"{ERROR}\n<shellId: 0 completed with exit code 1>"
    view = {"toolName": "view", "toolArgs": {"path": f"{folder}/missing"}}

    def of(event: str, session: str, at: int, fields: Fields, expected: str, kind: str = "") -> Step:
        base = {"sessionId": f"doctor-{session}", "cwd": folder, "timestamp": 1_790_000_000_000 + at}
        return Step(event, {**base, **fields}, expected, kind)

    result = {"toolResult": {"resultType": "success", "textResultForLlm": text}}
    return [
        of("sessionStart", "one", 1, {"source": "new"}, RECORDED, "session.started"),
        of("preToolUse", "one", 2, call, SILENT),
        of("postToolUse", "one", 3, {**call, **result}, RECORDED, "action.finished"),
        of("postToolUseFailure", "one", 4, {**view, "error": "Path does not exist"}, RECORDED, "action.finished"),
        of("preToolUse", "two", 5, call, SPOKE),
        of("userPromptSubmitted", "two", 6, {"prompt": "go on"}, SILENT),
        of("sessionEnd", "two", 7, {"reason": "complete"}, RECORDED, "session.ended"),
    ]


def _opencode(folder: str) -> list[Step]:
    call = {"tool": "bash", "args": {"command": COMMAND}}
    edit = {"tool": "edit", "call_id": "call_doctor_2", "args": {"filePath": f"{folder}/a", "oldString": "x", "newString": "y"}}

    def of(event: str, session: str, fields: Fields, expected: str, kind: str = "") -> Step:
        return Step(event, {"session_id": f"doctor-{session}", "cwd": folder, **fields}, expected, kind)

    failed = {**call, "output": ERROR, "exit": 1}
    return [
        of("session.start", "one", {"source": "startup"}, RECORDED, "session.started"),
        of("tool.execute.before", "one", {**call, "call_id": "call_doctor_1"}, SILENT),
        of("tool.execute.after", "one", {**failed, "call_id": "call_doctor_1"}, RECORDED, "action.finished"),
        of("tool.error", "one", {**edit, "error": "oldString not found"}, RECORDED, "action.finished"),
        of("tool.execute.before", "two", {**call, "call_id": "call_doctor_3"}, RECORDED, "action.proposed"),
        of("tool.execute.after", "two", {**failed, "call_id": "call_doctor_3"}, SPOKE),
        of("chat.message", "two", {"prompt": "go on"}, SILENT),
    ]


def _droid(folder: str) -> list[Step]:
    call = {"tool_name": "Execute", "tool_input": {"command": COMMAND}}
    failed = {"tool_response": f"{ERROR}\n\n[Process exited with code 1]"}

    def of(event: str, session: str, fields: Fields, expected: str, kind: str = "") -> Step:
        base = {"session_id": f"doctor-{session}", "transcript_path": "", "cwd": folder, "hook_event_name": event}
        return Step(event, {**base, **fields}, expected, kind)

    return [
        of("SessionStart", "one", {"source": "startup"}, RECORDED, "session.started"),
        of("PreToolUse", "one", call, SILENT),
        of("PostToolUse", "one", {**call, **failed}, RECORDED, "action.finished"),
        of("Stop", "one", {"stop_hook_active": False}, SILENT),
        of("PreToolUse", "two", call, RECORDED, "action.proposed"),
        of("PostToolUse", "two", {**call, **failed}, SPOKE),
        of("UserPromptSubmit", "two", {"prompt": "go on"}, SILENT),
        of("SessionEnd", "two", {"reason": "other"}, RECORDED, "session.ended"),
    ]


def _cline(folder: str) -> list[Step]:
    call = {"id": "call_doctor_1", "name": "run_commands", "input": {"commands": [COMMAND]}}
    part = {"query": COMMAND, "result": ERROR, "error": "Command exited with code 1", "success": False}

    def of(event: str, session: str, fields: Fields, expected: str, kind: str = "") -> Step:
        return Step(event, {"taskId": f"doctor-{session}", "workspaceRoots": [folder], **fields}, expected, kind)

    return [
        of("TaskStart", "one", {}, RECORDED, "session.started"),
        of("PreToolUse", "one", {"tool_call": call}, SILENT),
        of("PostToolUse", "one", {"tool_result": {**call, "output": [part]}}, RECORDED, "action.finished"),
        of("PreToolUse", "two", {"tool_call": {**call, "id": "call_doctor_2"}}, SPOKE),
        of("TaskComplete", "two", {}, RECORDED, "session.ended"),
    ]


def _pi(folder: str) -> list[Step]:
    call = {"tool": "bash", "args": {"command": COMMAND}}
    failed = {**call, "output": f"{ERROR}\n\nCommand exited with code 1", "is_error": True}

    def of(event: str, session: str, fields: Fields, expected: str, kind: str = "") -> Step:
        return Step(event, {"session_id": f"doctor-{session}", "cwd": folder, **fields}, expected, kind)

    return [
        of("session_start", "one", {"source": "startup"}, RECORDED, "session.started"),
        of("tool_call", "one", {**call, "call_id": "call_doctor_1"}, SILENT),
        of("tool_result", "one", {**failed, "call_id": "call_doctor_1"}, RECORDED, "action.finished"),
        of("tool_call", "two", {**call, "call_id": "call_doctor_2"}, RECORDED, "action.proposed"),
        of("tool_result", "two", {**failed, "call_id": "call_doctor_2"}, SPOKE),
        of("before_agent_start", "two", {"prompt": "go on"}, SILENT),
        of("session_shutdown", "two", {"reason": "quit"}, RECORDED, "session.ended"),
    ]


def _openhands(folder: str) -> list[Step]:
    call = {"tool_name": "terminal", "tool_input": {"command": COMMAND}}
    response = {"content": [{"type": "text", "text": ERROR}], "is_error": True, "exit_code": 1}

    def of(event: str, session: str, fields: Fields, expected: str, kind: str = "") -> Step:
        base = {"event_type": event, "session_id": f"doctor-{session}", "working_dir": folder}
        return Step(event, {**base, **fields}, expected, kind)

    return [
        of("SessionStart", "one", {}, RECORDED, "session.started"),
        of("PreToolUse", "one", call, SILENT),
        of("PostToolUse", "one", {**call, "tool_response": response}, RECORDED, "action.finished"),
        of("PreToolUse", "two", call, RECORDED, "action.proposed"),
        of("UserPromptSubmit", "two", {"message": "go on"}, SPOKE),
        of("SessionEnd", "two", {}, RECORDED, "session.ended"),
    ]


def _cursor(folder: str) -> list[Step]:
    call = {"tool_name": "Shell", "tool_input": {"command": COMMAND}}

    def of(event: str, session: str, fields: Fields, expected: str, kind: str = "") -> Step:
        base = {"conversation_id": f"doctor-{session}", "workspace_roots": [folder], "hook_event_name": event}
        return Step(event, {**base, **fields}, expected, kind)

    return [
        of("sessionStart", "one", {}, RECORDED, "session.started"),
        of("postToolUseFailure", "one", {**call, "tool_use_id": "d1", "error_message": ERROR}, RECORDED, "action.finished"),
        of("preToolUse", "two", {**call, "tool_use_id": "d2"}, RECORDED, "action.proposed"),
        of("postToolUse", "two", {**call, "tool_use_id": "d2", "tool_output": "fine"}, SPOKE),
        of("sessionEnd", "two", {}, RECORDED, "session.ended"),
    ]


SCRIPTS: dict[str, Callable[[str], list[Step]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "copilot": _copilot,
    "opencode": _opencode,
    "droid": _droid,
    "cline": _cline,
    "pi": _pi,
    "openhands": _openhands,
    "cursor": _cursor,
}
