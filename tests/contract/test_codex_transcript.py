"""What Codex tells only in its transcript: exit codes, commands that went on running, patches and MCP calls that failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from projectmem.hook import codex, entry

BASE = {"session_id": "one", "model": "gpt-5.5"}


def _ran(id: str, command: str, code: int, output: str = "", cwd: str = "/w") -> dict[str, Any]:
    item = {
        "type": "CommandExecution", "id": id, "command": ["/bin/bash", "-lc", command], "cwd": f"file://{cwd}",
        "aggregated_output": output, "exit_code": code, "duration": {"secs": 2, "nanos": 500_000_000},
    }  # fmt: skip
    return {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}


def _patched(id: str, patch: str, output: str) -> list[dict[str, Any]]:
    call = {"type": "custom_tool_call", "call_id": id, "name": "apply_patch", "input": patch}
    told = {"type": "custom_tool_call_output", "call_id": id, "output": output}
    return [{"type": "response_item", "payload": call}, {"type": "response_item", "payload": told}]


class Codex:
    """A session with a transcript."""

    def __init__(self, hooked: Any, folder: Path) -> None:
        self.hooked, self.transcript = hooked, folder / "rollout.jsonl"
        self.transcript.write_text("")

    def write(self, *lines: dict[str, Any]) -> None:
        """Lines at the end of the transcript."""
        with self.transcript.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def fire(self, event: str, **fields: Any) -> Any:
        """The answer to an event."""
        self.hooked.now += 1_000_000
        common = {**BASE, "transcript_path": str(self.transcript), "cwd": str(self.hooked.root), "hook_event_name": event}
        return entry.respond(["codex", event], json.dumps({**common, **fields}).encode(), self.hooked.now)

    def rows(self) -> list[tuple[str, str, Any]]:
        """(text, outcome, exit code) of what is on record."""
        return [(e["data"]["text"], e["data"]["outcome"], e["data"]["exit_code"]) for e in self.hooked.events("action.finished")]


@pytest.fixture
def session(hooked: Any, tmp_path: Path) -> Codex:
    """A session of Codex in a set up project."""
    return Codex(hooked, tmp_path)


def _call(id: str, command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id}


def test_the_exit_code_is_read_from_the_transcript(session: Codex) -> None:
    """The event itself has only the output."""
    session.write(_ran("c1", "make build", 2, "make: *** [build] Error 2\n", str(session.hooked.root)))
    session.fire("PreToolUse", **_call("c1", "make build"))
    session.fire("PostToolUse", **_call("c1", "make build"), tool_response="make: *** [build] Error 2\n")
    assert session.rows() == [("make build", "failed", 2)]
    assert session.hooked.events("action.finished")[0]["data"]["duration_ms"] == 2500


def _json(text: str, code: int) -> str:
    return json.dumps({"output": text, "metadata": {"exit_code": code, "duration_seconds": 0.1}})


def test_a_result_that_is_json_as_text_is_read(session: Codex) -> None:
    """Some versions put output and exit code in one; with and without what the transcript tells of the call."""
    root = str(session.hooked.root)
    session.fire("PostToolUse", **_call("c1", "make build"), tool_response=_json("make: *** [build] Error 2\n", 2))
    session.fire("PostToolUse", **_call("c2", "make all"), tool_response=_json("", 0))
    session.write(_ran("c3", "make test", 1, "AssertionError: no\n", root))
    session.fire("PostToolUse", **_call("c3", "make test"), tool_response=_json("AssertionError: no\n", 1))
    session.fire("PostToolUse", **_call("c4", "cat a.json"), tool_response='{"output": 3, "metadata": {"exit_code": 1}}')
    session.fire("PostToolUse", **_call("c5", "cat b.json"), tool_response='{"output": "x", "metadata": ')
    assert session.rows()[:3] == [("make build", "failed", 2), ("make all", "ok", 0), ("make test", "failed", 1)]
    assert [row[2] for row in session.rows()[3:]] == [None, None]
    said = [e["data"]["excerpt"] for e in session.hooked.events("action.finished")]
    assert not any("metadata" in text for text in (said[0], said[2]))


def test_a_command_that_went_on_running_is_learned_when_it_has_ended(session: Codex) -> None:
    """No event tells of its end: the next event after a call, or the end of the turn, looks. It is recorded once."""
    root = str(session.hooked.root)
    session.fire("PreToolUse", **_call("c1", "make slow"))
    session.fire("Stop", stop_hook_active=False)
    assert session.rows() == []
    session.write(_ran("c1", "make slow", 2, "make: *** [slow] Error 2\n", root), _ran("c2", "true", 0, "", root))
    session.fire("PostToolUse", **_call("c2", "true"), tool_response="")
    session.fire("Stop", stop_hook_active=False)
    assert session.rows() == [("make slow", "failed", 2), ("true", "ok", 0)]


def test_a_command_that_ended_with_the_session_is_no_failure(session: Codex) -> None:
    """Exit code -1 is what Codex writes for what it ended itself."""
    session.write(_ran("c1", "sleep 100", -1, "", str(session.hooked.root)))
    session.fire("Stop", stop_hook_active=False)
    assert [row[1] for row in session.rows()] == ["interrupted"]


PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-nonexist\n+x\n*** End Patch\n"
REFUSED = "apply_patch verification failed: Failed to find expected lines in a.txt:\nnonexist"


@pytest.mark.parametrize("told", [REFUSED, _json(REFUSED, 1)], ids=["text", "json"])
def test_a_patch_that_did_not_apply_is_known_before_it_is_tried_again(session: Codex, told: str) -> None:
    """It fires no event after the call; before the next patch the transcript is read."""
    patch = {"tool_name": "apply_patch", "tool_input": {"command": PATCH}}
    assert session.fire("PreToolUse", **patch, tool_use_id="p1") is None
    session.write(*_patched("p1", PATCH, told))
    reply = session.fire("PreToolUse", **patch, tool_use_id="p2")
    (event,) = session.hooked.events("action.finished")
    assert (event["data"]["outcome"], event["data"]["call"]) == ("failed", "p1")
    assert reply is not None
    assert "a.txt" in json.dumps(reply)


def test_an_mcp_call_that_failed_is_read_from_its_item(session: Codex) -> None:
    """Its failure fires no event after the call either."""
    item = {"type": "McpToolCall", "id": "m1", "server": "gate", "tool": "boom", "arguments": {"x": "y"}, "status": "failed"}
    line = {"type": "event_msg", "payload": {"type": "item_completed", "item": {**item, "error": {"message": "it broke"}}}}
    session.write(line)
    session.fire("Stop", stop_hook_active=False)
    (event,) = session.hooked.events("action.finished")
    assert (event["data"]["tool"], event["data"]["outcome"]) == ("mcp__gate__boom", "failed")


def test_a_transcript_that_is_missing_or_damaged_harms_nothing(session: Codex) -> None:
    """What can be known without it is recorded."""
    session.transcript.write_bytes(
        b'{"CommandExecution": \xff\n"CommandExecution"\n[1, "custom_tool_call"]\n{"payload": 3, "McpToolCall": 1}'
    )
    session.fire("PostToolUse", **_call("c1", "make x"), tool_response="make: *** No rule to make target 'x'.  Stop.\n")
    session.transcript.unlink()
    session.fire("PostToolUse", **_call("c2", "true"), tool_response="")
    assert [row[0] for row in session.rows()] == ["make x", "true"]
    assert session.hooked.events("gate.degraded") == []
    payload = codex.parse("Stop", {**BASE, "cwd": "/w", "transcript_path": None})
    assert payload.calls == []
