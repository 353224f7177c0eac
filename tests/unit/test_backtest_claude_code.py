"""Claude Code's own transcripts as a backtest's input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from projectmem.backtest.formats import read
from projectmem.backtest.model import Problems
from projectmem.backtest.run import run_backtest


def use(session: str, id: str, command: str, at: str, cwd: str = "/w/app") -> dict[str, Any]:
    block = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
    message = {"role": "assistant", "model": "m", "content": [block]}
    return {"type": "assistant", "sessionId": session, "cwd": cwd, "timestamp": f"2026-01-01T00:{at}Z", "message": message}


def result(session: str, id: str, text: str, at: str, *, error: bool) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": error}
    message = {"role": "user", "content": [block]}
    return {"type": "user", "sessionId": session, "cwd": "/w/app", "timestamp": f"2026-01-01T00:{at}Z", "message": message}


BUILD = "Exit code 1\nError: Missing environment variable VITE_API_URL"


def project(tmp_path: Path) -> Path:
    folder = tmp_path / "-w-app"
    folder.mkdir()
    first = [use("a", "t1", "npm run build", "01:00"), result("a", "t1", BUILD, "01:05", error=True)]
    second = [
        use("b", "t2", "npm run build", "02:00"),
        result("b", "t2", BUILD, "02:05", error=True),
        use("b", "t3", "ls", "02:09"),
    ]
    for name, lines in (("a", first), ("b", [*second, "{ tool_use broken"])):
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


def test_sessions_of_a_project_are_one_repository_in_order_of_time(tmp_path: Path) -> None:
    problems = Problems()
    (repository,) = read([project(tmp_path)], "claude-code", problems)
    assert [(s.name["traj_id"], s.name["step"], s.call["call"]) for s in repository.steps] == [
        ("a", 0, "t1"),
        ("b", 0, "t2"),
        ("b", 1, "t3"),
    ]
    assert [s.finished for s in repository.steps] == [True, True, False], "a call without a result is judged, not learned from"
    assert problems.count == 1
    assert "b.jsonl: 1 line could not be read" in problems.messages[0]


def test_the_next_session_is_spoken_to(tmp_path: Path) -> None:
    out = tmp_path / "v.jsonl"
    summary = run_backtest([project(tmp_path), tmp_path / "absent"], "claude-code", verdicts=out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["verdict"] for line in lines] == ["allow", "warn", "allow"]
    assert lines[1]["record"] == "t1"
    assert any("absent: no such file or folder" in message for message in summary.problems.messages)
