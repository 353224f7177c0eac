"""The sessions that each harness keeps are read as its hook would have told them, once, and only those of this repository."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.reader import read_events

from projectmem.importers.backfill import backfill
from projectmem.importers.sources import SOURCES, sessions
from projectmem.place import Place

NOW = 1_796_100_000_000_000
AT = ["2026-11-30T17:03:24.000Z", "2026-11-30T17:03:25.000Z", "2026-11-30T17:03:26.000Z"]


def _write(path: Path, lines: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _codex(home: Path, cwd: str) -> None:
    def ran(id: str, command: str, code: int, output: str, at: str) -> dict[str, Any]:
        item: dict[str, Any] = {
            "type": "CommandExecution",
            "id": id,
            "command": ["/bin/bash", "-lc", command],
            "cwd": f"file://{cwd}",
        }
        item |= {"exit_code": code, "aggregated_output": output, "duration": {"secs": 1, "nanos": 0}}
        return {"timestamp": at, "type": "event_msg", "payload": {"type": "item_completed", "item": item}}

    meta = {"timestamp": AT[0], "type": "session_meta", "payload": {"session_id": "s1", "cwd": cwd}}
    calls = [ran("c1", "make build", 2, "make: *** [build] Error 2\n", AT[1]), ran("c2", "true", 0, "", AT[2])]
    _write(home / ".codex/sessions/2026/11/30/rollout-2026-11-30T17-03-00-s1.jsonl", [meta, *calls])


def _gemini(home: Path, cwd: str) -> None:
    def row(id: str, command: str, output: str, at: str) -> dict[str, Any]:
        told = [{"functionResponse": {"id": id, "response": {"output": f"Output: {output}\nProcess Group PGID: 1"}}}]
        call = {
            "id": id,
            "name": "run_shell_command",
            "args": {"command": command},
            "result": told,
            "status": "success",
            "timestamp": at,
        }
        return {"timestamp": AT[0], "type": "gemini", "model": "m", "toolCalls": [call]}

    folder = home / ".gemini/tmp/repo"
    failed = row("g1", "make build", "make: *** [build] Error 2\nExit Code: 2", AT[1])
    _write(folder / "chats/session-1.jsonl", [{"sessionId": "s1"}, failed, failed, row("g2", "true", "(empty)", AT[2])])
    (folder / ".project_root").write_text(cwd)


def _qwen(home: Path, cwd: str) -> None:
    lines = []
    calls = [("q1", "make build", 2, "make: *** [build] Error 2", AT[1]), ("q2", "true", 0, "(empty)", AT[2])]
    for id, command, code, output, at in calls:
        text = f"Command: {command}\nDirectory: (root)\nOutput: {output}\nError: (none)\nExit Code: {code}\nSignal: (none)"
        use = {"functionCall": {"id": id, "name": "run_shell_command", "args": {"command": command}}}
        told = {"functionResponse": {"id": id, "response": {"error" if code else "output": text}}}
        base = {"sessionId": "s1", "cwd": cwd}
        lines += [
            {**base, "timestamp": AT[0], "message": {"parts": [use]}},
            {**base, "timestamp": at, "message": {"parts": [told]}},
        ]
    _write(home / ".qwen/projects/x/chats/s1.jsonl", lines)


def _copilot(home: Path, cwd: str) -> None:
    lines: list[Any] = [{"type": "session.start", "timestamp": AT[0], "data": {"sessionId": "s1", "context": {"cwd": cwd}}}]
    for id, command, code, at in (("p1", "make build", 2, AT[1]), ("p2", "true", 0, AT[2])):
        begin = {"toolCallId": id, "toolName": "bash", "arguments": {"command": command}, "model": "m"}
        text = f"{'make: *** [build] Error 2' if code else ''}\n<shellId: 0 completed with exit code {code}>"
        lines.append({"type": "tool.execution_start", "timestamp": AT[0], "data": begin})
        done = {"toolCallId": id, "success": True, "result": {"content": text}}
        lines.append({"type": "tool.execution_complete", "timestamp": at, "data": done})
    _write(home / ".copilot/session-state/s1/events.jsonl", lines)


def _opencode(home: Path, cwd: str) -> None:
    path = home / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE session (id TEXT, directory TEXT)")
    db.execute("CREATE TABLE part (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)")
    db.execute("INSERT INTO session VALUES ('s1', ?)", (cwd,))
    calls = [("o1", "make build", 2, "make: *** [build] Error 2\n"), ("o2", "true", 0, "")]
    for number, (id, command, code, output) in enumerate(calls):
        end = 1_796_058_204_000 + number
        state = {"status": "completed", "input": {"command": command}, "output": output, "metadata": {"exit": code}}
        state["time"] = {"start": end - 1000, "end": end}
        data = json.dumps({"type": "tool", "tool": "bash", "callID": id, "state": state}, separators=(",", ":"))
        db.execute("INSERT INTO part VALUES (?, 's1', ?, ?)", (id, number, data))
    db.commit()
    db.close()


def _droid(home: Path, cwd: str) -> None:
    lines: list[Any] = [{"type": "session_start", "id": "s1", "cwd": cwd}]
    for id, command, code, at in (("d1", "make build", 2, AT[1]), ("d2", "true", 0, AT[2])):
        use = {"type": "tool_use", "id": id, "name": "Execute", "input": {"command": command, "riskLevel": "low"}}
        error = "Error: Command failed (exit code: 2)\nmake: *** [build] Error 2\n" if code else ""
        told = {"type": "tool_result", "tool_use_id": id, "is_error": bool(code)}
        told["content"] = f"{error}\n\n[Process exited with code {code}]"
        began = AT[AT.index(at) - 1]
        lines += [
            {"type": "message", "timestamp": began, "message": {"role": "assistant", "content": [use], "modelId": "m"}},
            {"type": "message", "timestamp": at, "message": {"role": "user", "content": [told]}},
        ]
    _write(home / ".factory/sessions/-repo/s1.jsonl", lines)


def _pi(home: Path, cwd: str) -> None:
    lines: list[Any] = [{"type": "session", "version": 3, "id": "s1", "timestamp": AT[0], "cwd": cwd}]
    for id, command, code, at in (("i1", "make build", 2, AT[1]), ("i2", "true", 0, AT[2])):
        use = {"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": command}}
        text = "make: *** [build] Error 2\n\n\nCommand exited with code 2" if code else "(no output)"
        told = {"role": "toolResult", "toolCallId": id, "toolName": "bash", "isError": bool(code)}
        told["content"] = [{"type": "text", "text": text}]
        began = AT[AT.index(at) - 1]
        lines += [
            {"type": "message", "timestamp": began, "message": {"role": "assistant", "content": [use], "model": "m"}},
            {"type": "message", "timestamp": at, "message": told},
        ]
    _write(home / ".pi/agent/sessions/--repo--/2026-11-30T17-03-24-000Z_s1.jsonl", lines)


def _cline(home: Path, cwd: str) -> None:
    messages: list[Any] = []
    for n, (id, command, code) in enumerate((("l1", "make build", 2), ("l2", "true", 0))):
        use = {"type": "tool_use", "id": id, "name": "run_commands", "input": {"commands": [command]}}
        row: dict[str, Any] = {"query": command, "result": "", "success": not code}
        if code:
            row |= {"result": "[Command exited with code 2]\nmake: *** [build] Error 2\n", "error": "Command exited with code 2"}
        told = {"type": "tool_result", "tool_use_id": id, "name": "run_commands", "content": [row]}
        at = 1_796_058_204_000 + 2000 * n
        messages += [{"role": "assistant", "content": [use], "ts": at}, {"role": "user", "content": [told], "ts": at + 1000}]
    folder = home / ".cline/data/sessions/s1"
    _write(folder / "s1.messages.json", [{"version": 1, "sessionId": "s1", "messages": messages}])
    _write(folder / "s1.json", [{"session_id": "s1", "cwd": cwd}])


MADE: dict[str, Callable[[Path, str], None]] = {
    "codex": _codex, "gemini": _gemini, "qwen": _qwen, "copilot": _copilot, "opencode": _opencode,
    "droid": _droid, "pi": _pi, "cline": _cline,
}  # fmt: skip


def _rows(place: Place) -> list[tuple[Any, ...]]:
    events = [event for event in read_events(place.home) if event["kind"] == "action.finished"]
    return [(e["data"]["text"], e["data"]["outcome"], e["data"]["exit_code"], e["actor"]["origin"]) for e in events]


@pytest.mark.parametrize("name", list(MADE))
def test_sessions_are_read_once_and_as_an_import(place: Place, tmp_path: Path, name: str) -> None:
    """A failure and a success, with exit codes, under the harness's name; a second run knows them."""
    MADE[name](tmp_path / "home", place.root)
    counts = backfill(place, now=NOW, sources=sessions(place, [name]))
    assert (counts.calls, counts.recorded, counts.failed, counts.damaged) == (2, 2, 1, 0)
    code = None if name in ("pi", "cline") else 0  # these tell only the codes of failures
    assert _rows(place) == [("make build", "failed", 2, "import"), ("true", "ok", code, "import")]
    event = next(e for e in read_events(place.home) if e["kind"] == "action.finished")
    assert (event["actor"]["harness"], event["actor"]["session"]) == (name, "s1")
    assert event["data"]["duration_ms"] == 1000
    assert event["at"] < NOW
    again = backfill(place, now=NOW, sources=sessions(place, [name]))
    assert (again.recorded, again.known) == (0, 2)


@pytest.mark.parametrize("name", list(MADE))
def test_sessions_of_another_repository_are_left_out(place: Place, tmp_path: Path, name: str) -> None:
    """Most harnesses keep all projects together."""
    MADE[name](tmp_path / "home", str(tmp_path / "elsewhere"))
    counts = backfill(place, now=NOW, sources=sessions(place, [name]))
    assert (counts.calls, counts.elsewhere) == (0, 2)
    assert _rows(place) == []


@pytest.mark.parametrize("name", ["gemini", "copilot", "droid"])
def test_a_session_that_the_hook_has_seen_is_left_out_where_calls_have_no_ids(place: Place, tmp_path: Path, name: str) -> None:
    """The hook's events of the same calls have other ids; twice on record would be twice failed."""
    from projectmem.hook import entry

    call: dict[str, Any] = {"session_id": "s1", "cwd": place.root, "hook_event_name": "PostToolUseFailure", "tool_name": "Bash"}
    call |= {"tool_input": {"command": "ls nothere"}, "tool_use_id": "t", "error": "Exit code 2\nls: cannot access 'nothere'"}
    entry.respond(["claude-code", "PostToolUseFailure"], json.dumps(call).encode(), NOW)
    MADE[name](tmp_path / "home", place.root)
    counts = backfill(place, now=NOW, sources=sessions(place, [name]))
    assert (counts.recorded, counts.known) == (0, 2)


@pytest.mark.parametrize("name", list(MADE))
def test_damaged_transcripts_are_counted_and_passed_over(place: Place, tmp_path: Path, name: str) -> None:
    """Garbage between the lines costs those lines only; a damaged database is one damaged file."""
    MADE[name](tmp_path / "home", place.root)
    ((path, _),) = sessions(place, [name])
    if name == "cline":
        path.write_bytes(path.read_bytes()[:-9])
    elif name == "opencode":
        path.write_bytes(b"SQLite format 3\x00" + b"garbage" * 200)
    else:
        marks = b'{"toolCalls" "functionCall" "item_completed" "tool.execution_start" "tool_use" "toolCall"\n[1, "toolCalls"]\n'
        path.write_bytes(marks + path.read_bytes() + b'\xff{"functionCall"')
    counts = backfill(place, now=NOW, sources=sessions(place, [name]))
    assert counts.damaged >= 1
    assert counts.recorded == (0 if name in ("opencode", "cline") else 2)
    assert list(counts.unread) == [str(path)] and str(path) in counts.line()


def test_a_harness_without_a_reader_has_no_sessions(place: Place) -> None:
    """Nothing to read is no error."""
    assert sessions(place, ["openhands", "cursor"]) == []
    assert set(MADE) | {"claude-code"} == set(SOURCES)


PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-nonexist\n+x\n*** End Patch\n"
REFUSED = "apply_patch verification failed: Failed to find expected lines in a.txt:\nnonexist"


def test_codex_sessions_of_older_versions_are_read_from_what_the_model_was_told(place: Place, tmp_path: Path) -> None:
    """Exit codes in JSON or in lines; a command that both ways tell of is one; one that goes on, and broken lines, are none."""

    def line(**payload: Any) -> dict[str, Any]:
        return {"timestamp": AT[1], "type": "response_item", "payload": payload}

    def asked(id: str, name: str, given: Any) -> dict[str, Any]:
        text = given if isinstance(given, str) else json.dumps(given)
        return line(type="function_call", name=name, arguments=text, call_id=id)

    def told(id: str, output: str) -> dict[str, Any]:
        return line(type="function_call_output", call_id=id, output=output)

    item: dict[str, Any] = {"type": "CommandExecution", "id": "f2", "command": ["/bin/bash", "-lc", "make test"], "exit_code": 1}
    item["aggregated_output"] = "no"
    lines = [
        {"timestamp": AT[0], "type": "session_meta", "payload": {"id": "s1", "cwd": place.root}},
        asked("f1", "shell", {"command": ["bash", "-lc", "make build"]}),
        told("f1", json.dumps({"output": "make: *** [build] Error 2", "metadata": {"exit_code": 2, "duration_seconds": 0.1}})),
        asked("f2", "exec_command", {"cmd": "make test"}),
        {"timestamp": AT[1], "type": "event_msg", "payload": {"type": "item_completed", "item": item}},
        told("f2", "Chunk ID: 1\nProcess exited with code 1\nOutput:\nno"),
        asked("f3", "exec_command", {"cmd": "ls"}),
        told("f3", "Chunk ID: 2\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:\na\n"),
        asked("f4", "exec_command", {"cmd": "sleep 99"}),
        told("f4", "Chunk ID: 3\nProcess running with session ID 7\nOutput:\n"),
        asked("f5", "update_plan", {"plan": []}),
        told("f5", "Plan updated"),
        asked("f6", "shell", "{broken"),
        told("f6", "x"),
        told("f7", "nobody asked"),
        line(type="custom_tool_call", call_id="f8", name="apply_patch", input=PATCH),
        line(type="custom_tool_call_output", call_id="f8", output=json.dumps({"output": "Done", "metadata": {"exit_code": 0}})),
        line(type="custom_tool_call", call_id="f9", name="apply_patch", input=PATCH),
        line(type="custom_tool_call_output", call_id="f9", output=json.dumps({"output": REFUSED, "metadata": {"exit_code": 1}})),
    ]
    _write(tmp_path / "home/.codex/sessions/2025/11/30/rollout-2025-11-30T17-03-00-s1.jsonl", lines)
    counts = backfill(place, now=NOW, sources=sessions(place, ["codex"]))
    assert _rows(place) == [
        ("make build", "failed", 2, "import"), ("make test", "failed", 1, "import"), ("ls", "ok", 0, "import"),
        ("edit a.txt: nonexist -> x", "ok", 0, "import"), ("edit a.txt: nonexist -> x", "failed", None, "import"),
    ]  # fmt: skip
    assert counts.damaged == 0
