"""What Claude Code's `mcp_tool` hooks can and cannot do, on the real client: why `init` registers commands and not these.

They refuse as a command does while their server is connected. But a session's start and end have none, and where the server is
not connected every call goes on with no word to anybody: a gate that is open without being known to be.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("client")]

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        info = {"name": "gate", "version": "1"}
        version = asked["params"]["protocolVersion"]
        answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "look", "description": "d", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        given = asked["params"]["arguments"]
        with open(sys.argv[1], "a") as file:
            file.write(json.dumps(given) + "\\n")
        denied = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "told by the tool"}
        text = json.dumps({"hookSpecificOutput": denied}) if "forbidden" in given["tool_input"] else ""
        answer["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"""
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUseFailure", "PostToolBatch", "SessionEnd")
FIELDS = ("hook_event_name", "session_id", "tool_use_id", "tool_input", "tool_calls", "error")


def _call(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "args": {"command": command, "description": "d"}}


def _played(world: Any, named: str, events: tuple[str, ...] = EVENTS, **more: Any) -> tuple[str, list[dict[str, str]]]:
    """(what the model read at the end, the arguments of each call of the tool) of two calls, hooked to the server `named`."""
    seen = world.folder / "seen.jsonl"
    config = {"command": sys.executable, "args": ["-c", SERVER, str(seen)]}
    (world.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"gate": config}}))
    hook = {"type": "mcp_tool", "server": named, "tool": "look", "input": {name: f"${{{name}}}" for name in FIELDS}, **more}
    settings = world.repo / ".claude" / "settings.local.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in events}}))
    argv = ["--mcp-config", str(world.folder / "mcp.json")]
    requests = world.session(_call("echo forbidden"), _call("echo fine; exit 3"), argv=argv)
    rows = [json.loads(line) for line in seen.read_text().splitlines()] if seen.exists() else []
    return json.dumps(requests[-1]["messages"], ensure_ascii=False), rows


def test_connected_they_refuse_and_are_told_of_all_but_start_and_end(world: Any) -> None:
    """Values that are no text come as JSON: enough for a payload."""
    read, rows = _played(world, "gate")
    assert "told by the tool" in read
    assert "Exit code 3" in read
    told = {row["hook_event_name"] for row in rows}
    assert told == set(EVENTS) - {"SessionStart", "SessionEnd"}
    failed = next(row for row in rows if row["hook_event_name"] == "PostToolUseFailure")
    assert json.loads(failed["tool_input"])["command"] == "echo fine; exit 3"
    assert failed["error"].startswith("Exit code 3")
    batch = [json.loads(row["tool_calls"]) for row in rows if row["hook_event_name"] == "PostToolBatch"]
    assert batch[-1][0]["tool_use_id"] == failed["tool_use_id"]


def test_without_their_server_every_call_runs_unless_failure_blocks_it(world: Any) -> None:
    """Neither the model nor the person reads a word of it."""
    read, rows = _played(world, "gone")
    assert rows == []
    assert "told by the tool" not in read
    assert "not connected" not in read, "the model is not told that nobody looks"
    read, rows = _played(world, "gone", ("PreToolUse",), onFailure="block")
    assert "not connected" in read
    assert "Exit code 3" not in read, "nothing runs at all"
