"""What Claude Code was seen to send is read as it was meant, and what it may send in a bad hour is refused, never a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_gate.model import Decision

from projectmem.hook import claude_code, claude_results
from projectmem.hook.claude_code import EVENTS, parse
from projectmem.hook.claude_results import read_result

BASE: dict[str, Any] = {"session_id": "s1", "transcript_path": "/h/.claude/projects/-w/s1.jsonl", "cwd": "/w"}


def _batch(*rows: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return parse("PostToolBatch", {**BASE, "tool_calls": list(rows), **more}).calls


def _row(response: Any, tool: str = "Bash", **tool_input: Any) -> dict[str, Any]:
    return {"tool_name": tool, "tool_input": tool_input or {"command": "x"}, "tool_use_id": "t1", "tool_response": response}


def test_every_captured_payload_is_understood(shared: Path) -> None:
    """Each payload captured from the real client parses for its event, with its calls' ids, tools and inputs."""
    samples = json.loads((shared / "harness" / "samples" / "claude.json").read_text())
    ours = [sample for sample in samples if sample["event"] in EVENTS]
    assert len(ours) > 25
    for sample in ours:
        raw = sample["stdin"]
        payload = parse(sample["event"], raw)
        assert payload.session == raw["session_id"]
        assert payload.agent == raw.get("agent_id", "")
        rows = raw.get("tool_calls", [raw] if "tool_name" in raw else [])
        assert [call["call"] for call in payload.calls] == [row["tool_use_id"] for row in rows]
        assert [call["input"] for call in payload.calls] == [row["tool_input"] for row in rows]


def test_a_failure_told_twice_reads_the_same(shared: Path) -> None:
    """PostToolUseFailure and the batch after it agree on what became of a call, but for the duration."""
    samples = json.loads((shared / "harness" / "samples" / "claude.json").read_text())
    failures = {
        s["stdin"]["tool_use_id"]: parse(s["event"], s["stdin"]).calls[0] for s in samples if s["event"] == "PostToolUseFailure"
    }
    batched = [call for s in samples if s["event"] == "PostToolBatch" for call in parse(s["event"], s["stdin"]).calls]
    compared = 0
    for call in batched:
        first = failures.get(call["call"])
        if first is not None and call["tool"] == "Bash":
            compared += 1
            for field in ("exit_code", "output", "is_error", "error_kind", "timed_out", "input"):
                assert call[field] == first[field], field
    assert compared >= 1


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("hi", {"is_error": False, "exit_code": None, "output": "hi", "error_kind": ""}),
        ("Exit code 3\nout\nerr", {"is_error": True, "exit_code": 3, "output": "out\nerr", "error_kind": "exit"}),
        ("Exit code 9", {"is_error": True, "exit_code": 9, "output": "", "error_kind": "exit"}),
        ("Exit code 143\nCommand timed out after 1s", {"is_error": True, "timed_out": True, "error_kind": "timeout"}),
        ("Exit code of it all", {"is_error": False, "exit_code": None, "error_kind": ""}),
        ("<tool_use_error>String to replace not found in file.\nString: q</tool_use_error>", {
            "is_error": True, "error_kind": "tool", "output": "String to replace not found in file.\nString: q"}),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", {"is_error": True, "error_kind": "cancelled"}),
        ("PreToolUse:Bash hook error: no", {"is_error": True, "error_kind": "hook"}),
        ("The user doesn't want to proceed with this tool use. The tool use was rejected", {"error_kind": "rejected"}),
        ("Claude requested permissions to write to /w/q, but you haven't granted it yet.", {"error_kind": "denied"}),
        ("touch in '/w/x' needs approval. It is inside, and Claude Code asks before a command does", {"error_kind": "denied"}),
        ("touch in '/e' needs approval. The path is outside the working directories for this session ('/w'). Allowing runs "
         "the command as written.", {"error_kind": "denied"}),
        ("Cannot write to /w/n.txt while in plan mode.", {"error_kind": "denied", "is_error": True}),
        ("Permission for this action has been denied. Reason: [Irreversible]", {"error_kind": "denied"}),
        ("Permission for this tool use was denied. The tool use was rejected", {"error_kind": "denied"}),
        ("rm in '/e' was blocked. For security, Claude Code may only write to files in the allowed", {"error_kind": "denied"}),
        ("PreToolUse hook did not respond before its timeout (host client may be unreachable).", {"error_kind": "denied"}),
        ("[Request interrupted by user for tool use]", {"error_kind": "interrupted", "interrupted": True}),
        ("Command running in background with ID: b1k. Output is written to: /x", {"background": "b1k", "is_error": False}),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], {"output": "a\nb"}),
        ({"stdout": "o", "stderr": "e"}, {"output": "o\ne"}),
        (None, {"output": "", "is_error": False}),
        (17, {"output": "", "is_error": False}),
    ],
)  # fmt: skip
def test_text_of_a_batch_says_what_became_of_the_call(response: Any, expected: dict[str, Any]) -> None:
    """The batch has no fields for it, only the text that the model sees."""
    (call,) = _batch(_row(response))
    assert {field: call[field] for field in expected} == expected


def test_success_that_prints_a_failure_s_mark_stays_a_success_where_the_harness_says_so() -> None:
    """A transcript says `is_error: false`; then `Exit code 3` is output like any other."""
    call: dict[str, Any] = {"exit_code": None, "timed_out": False, "background": ""}
    read_result(call, "Exit code 3", False)
    assert (call["is_error"], call["exit_code"], call["output"]) == (False, None, "Exit code 3")


def test_failure_event_knows_more() -> None:
    """PostToolUseFailure is an error whatever its text, and carries interrupt and duration."""
    raw = {
        **BASE,
        "tool_name": "Read",
        "tool_input": {},
        "tool_use_id": "t1",
        "error": "File does not exist.",
        "is_interrupt": True,
        "duration_ms": 7.6,
    }
    (call,) = parse("PostToolUseFailure", raw).calls
    assert (call["is_error"], call["error_kind"], call["interrupted"], call["duration_ms"]) == (True, "tool", True, 7)


def test_long_output_is_read_from_where_the_client_put_it(tmp_path: Path) -> None:
    """The end of a spilled output is judged too, where it lies beside the transcript and nowhere else."""
    spilled = tmp_path / "p" / "s1" / "tool-results" / "x.txt"
    spilled.parent.mkdir(parents=True)
    spilled.write_text("1\n" * 100_000 + "FAILED build\n")
    text = f"<persisted-output>\nOutput too large (1MB). Full output saved to: {spilled}\n\nPreview (first 2KB):\n1\n"
    transcript = str(tmp_path / "p" / "s1.jsonl")
    assert "FAILED build" in _batch(_row(text), transcript_path=transcript)[0]["output"]
    assert "FAILED build" not in _batch(_row(text), transcript_path=str(tmp_path / "other" / "s1.jsonl"))[0]["output"]
    assert "FAILED build" not in _batch(_row(text), transcript_path="")[0]["output"]


def test_end_of_a_background_command(tmp_path: Path) -> None:
    """The prompt names the call; its output is read only from the session's own task folder."""
    output = tmp_path / "s1" / "tasks" / "b1.output"
    output.parent.mkdir(parents=True)
    output.write_text("boom\n")
    prompt = (
        "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>toolu_1</tool-use-id>\n"
        f"<output-file>{output}</output-file>\n<status>failed</status>\n"
        '<summary>Background command "d" failed with exit code 5</summary>\n</task-notification>'
    )
    payload = parse("UserPromptSubmit", {**BASE, "prompt": prompt})
    task = claude_results.task_notification(payload)
    assert task is not None
    call = claude_results.ended_task(payload, task, {"tool": "Bash", "input": {"command": "x"}, "cwd": "/w", "agent": ""})
    assert call is not None
    assert (call["call"], call["is_error"], call["exit_code"], call["output"]) == ("toolu_1#end", True, 5, "boom\n")
    other = parse("UserPromptSubmit", {**BASE, "session_id": "s2", "prompt": prompt})
    assert (claude_results.task_notification(other) or {})["output"] == ""
    assert claude_results.task_notification(parse("UserPromptSubmit", {**BASE, "prompt": "say <task-notification>"})) is None


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (Decision("allow"), None),
        (Decision("warn", reason="R"), {"hookEventName": "PreToolUse", "additionalContext": "R"}),
        (
            Decision("ask", reason="R", by="agent"),
            {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "R"},
        ),
        (
            Decision("ask", reason="R", by="person"),
            {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "R"},
        ),
        (
            Decision("deny", reason="R"),
            {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "R"},
        ),
    ],
)
def test_answers_are_the_dialect_that_the_client_obeys(decision: Decision, expected: Any) -> None:
    """One object, only fields the client knows; a refusal always has a reason."""
    payload = parse("PreToolUse", {**BASE, "tool_name": "Bash", "tool_input": {}, "tool_use_id": "t"})
    reply = claude_code.answer(payload, decision)
    assert (reply or {}).get("hookSpecificOutput") == expected
    assert reply is None or set(reply) == {"hookSpecificOutput"}


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_NAMES = """session_id cwd hook_event_name tool_name tool_input tool_use_id tool_calls tool_response error
duration_ms agent_id transcript_path prompt is_interrupt""".split()


@given(st.sampled_from([*EVENTS, "Nope", ""]), _json | st.dictionaries(st.sampled_from(_NAMES), _json, max_size=8))
def test_any_payload_is_understood_or_refused(event: str, raw: Any) -> None:
    """Wrong types and missing fields raise ValueError, which the hook turns into a line in its log; nothing else is raised."""
    try:
        payload = parse(event, raw)
    except ValueError:
        return
    assert payload.session
    assert payload.cwd
    for call in payload.calls:
        assert isinstance(call["tool"], str)
        assert isinstance(call["output"], str)


def test_copilot_running_these_hooks_is_left_to_its_own(shared: Path) -> None:
    """Copilot CLI reads a project's Claude Code settings and sends payloads of its own making; they are not answered."""
    samples = json.loads((shared / "harness" / "samples" / "copilot.json").read_text())
    ours = [s["stdin"] for s in samples if s["stdin"].get("hook_event_name") in EVENTS]
    assert len(ours) >= 3
    assert {parse(raw["hook_event_name"], raw).kind for raw in ours} == {""}
