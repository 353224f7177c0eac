"""What became of a call, in the shapes that harnesses of other versions, other modes and their documentation give it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from projectmem.hook import codex, copilot, cursor, gemini, qwen
from projectmem.hook.payload import read_tail
from tests.patience import PATIENCE

CURSOR = {"conversation_id": "s", "cwd": "/w", "tool_name": "Shell", "tool_input": {"command": "make"}, "tool_use_id": "c"}
BASE = {"session_id": "s", "cwd": "/w", "transcript_path": ""}


def _last(payload: Any) -> dict[str, Any]:
    call: dict[str, Any] = payload.calls[-1]
    return call


@pytest.mark.parametrize("output", [
    {"exitCode": 3, "stdout": "out", "stderr": "bad"},
    json.dumps({"exitCode": 3, "stdout": "out", "stderr": "bad"}),
    json.dumps({"exit_code": 3, "output": "out\nbad"}),
])  # fmt: skip
def test_cursor_s_exit_code_is_in_its_output(output: Any) -> None:
    """A command that fails is told of as a call that went well; the documented output is JSON in a text."""
    call = _last(cursor.parse("postToolUse", {**CURSOR, "tool_output": output, "duration": 41.5}))
    assert (call["exit_code"], call["is_error"], call["output"], call["duration_ms"]) == (3, True, "out\nbad", 41)


@pytest.mark.parametrize("output", ["{not JSON", '["a"]', "{}", "plain", '{"exitCode": null}', "{" * 5000, None, 7])
def test_any_other_output_of_cursor_is_its_text(output: Any) -> None:
    """Nothing is made up of what is no such object."""
    call = _last(cursor.parse("postToolUse", {**CURSOR, "tool_output": output}))
    assert (call["exit_code"], call["is_error"], call["output"]) == (None, False, output if isinstance(output, str) else "")


@pytest.mark.parametrize(("told", "expected"), [
    ({"is_interrupt": True}, {"interrupted": True}),
    ({"failure_type": "permission_denied"}, {"error_kind": "denied"}),
    ({"failure_type": "timeout"}, {"timed_out": True, "error_kind": "tool"}),
    ({"failure_type": "error", "is_interrupt": False}, {"interrupted": False, "timed_out": False, "error_kind": "tool"}),
])  # fmt: skip
def test_cursor_says_who_ended_a_call(told: dict[str, Any], expected: dict[str, Any]) -> None:
    """A person who stops or forbids a call is no failure of it."""
    call = _last(cursor.parse("postToolUseFailure", {**CURSOR, "error_message": "it ended", **told}))
    assert {name: call[name] for name in expected} == expected


@pytest.mark.parametrize("more", [{}, {"is_interrupt": False}])
def test_qwen_s_cancelled_command_is_no_failure(more: dict[str, Any]) -> None:
    """By its words, whatever the flag beside them says; in the text with fields too."""
    raw = {**BASE, "tool_name": "run_shell_command", "tool_input": {"command": "make"}, "tool_call_id": "c"}
    for text in ("Command was cancelled by user before it could complete.", "Command was cancelled by user.\nExit Code: 130"):
        call = _last(qwen.parse("PostToolUseFailure", {**raw, "error": text, **more}))
        assert call["interrupted"], text


def test_gemini_s_exit_code_is_found_before_an_empty_line() -> None:
    """The harness's fields end the text but for blank lines."""
    for end in ("\n", "\n\n", "\n</untrusted_context>\n"):
        response = {"llmContent": f"Output: Error: no\nExit Code: 4{end}"}
        call = _last(
            gemini.parse("AfterTool", {**BASE, "tool_name": "run_shell_command", "tool_input": {}, "tool_response": response})
        )
        assert (call["exit_code"], call["output"]) == (4, "Error: no")


def test_copilot_s_older_versions_end_a_command_in_other_words() -> None:
    """`<exited with exit code N>`, of a shell alone: a page that quotes it has not failed."""
    raw = {"sessionId": "s", "cwd": "/w", "timestamp": 1, "toolArgs": json.dumps({"command": "make"})}
    result = {"resultType": "success", "textResultForLlm": "Error: no\n<exited with exit code 3>"}
    call = _last(copilot.parse("postToolUse", {**raw, "toolName": "bash", "toolResult": result}))
    assert (call["exit_code"], call["output"].strip()) == (3, "Error: no")
    assert _last(copilot.parse("postToolUse", {**raw, "toolName": "view", "toolResult": result}))["exit_code"] is None


def test_codex_s_command_in_fields_has_its_exit_code_there() -> None:
    """An answer with content blocks is a server's; one with an exit code is a command's."""
    raw = {**BASE, "tool_name": "shell", "tool_input": {"command": ["bash", "-lc", "make"]}, "tool_use_id": "c"}
    for response in ({"output": "no", "metadata": {"exit_code": 2}}, {"output": "no", "exit_code": 2}):
        call = _last(codex.parse("PostToolUse", {**raw, "tool_response": response}))
        assert (call["exit_code"], call["is_error"], call["output"]) == (2, True, "no")
    server = {"content": [{"type": "text", "text": "t"}], "isError": False, "exit_code": 2}
    assert _last(codex.parse("PostToolUse", {**raw, "tool_response": server}))["exit_code"] is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_transcript_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """The hook would be ended by its timeout and the call go unlearned."""
    pipe, file, read = tmp_path / "pipe", tmp_path / "file", []
    os.mkfifo(pipe)
    file.write_text("0123456789")
    reading = threading.Thread(target=lambda: read.append(read_tail(str(pipe))), daemon=True)
    reading.start()
    reading.join(PATIENCE / 20)
    assert read == [""]
    assert (read_tail(str(file), 4), read_tail(str(tmp_path)), read_tail(str(tmp_path / "none"))) == ("6789", "", "")
