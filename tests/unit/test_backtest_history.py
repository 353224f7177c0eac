"""`backtest` without a path: this machine's own history, how often it would have been right, and how the time is reckoned."""

from __future__ import annotations

import json
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from projectmem_gate.model import Decision
from projectmem_gate.policy import DEFAULT

from projectmem.backtest import moments
from projectmem.backtest.history import read_history
from projectmem.backtest.model import Problems, Step
from projectmem.cli.app import run
from projectmem.importers.claude_code import slug

DAY = 86_400
ERROR = "Exit code 2\nError: cannot find config.json"


class Machine:
    """A home with repositories and the sessions of two harnesses."""

    def __init__(self, base: Path) -> None:
        self.home, self.base, self.calls = base / "home", base, 0
        self.home.mkdir()

    def repo(self, name: str) -> str:
        """A new repository."""
        subprocess.run(["git", "init", "-q", str(self.base / name)], check=True)
        return str(self.base / name)

    def claude(self, cwd: str, session: str, calls: list[tuple[str, str, float, int]]) -> None:
        """A session of (command, error, seconds ago, seconds it took)."""
        lines: list[Any] = []
        for command, error, ago, took in calls:
            self.calls += 1
            id = f"c{self.calls}"
            base = {"sessionId": session, "cwd": cwd, "isSidechain": False}
            use = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
            told = {"type": "tool_result", "tool_use_id": id, "content": error or "fine", "is_error": bool(error)}
            said = {"role": "assistant", "model": "m", "content": [use]}
            lines.append({**base, "type": "assistant", "timestamp": _iso(ago + took), "message": said})
            lines.append({**base, "type": "user", "timestamp": _iso(ago), "message": {"role": "user", "content": [told]}})
        path = self.home / ".claude" / "projects" / slug(cwd) / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def pi(self, cwd: str, session: str, command: str, error: str, ago: float) -> None:
        """A session of one command that took no time."""
        use = {"type": "toolCall", "id": f"i{session}", "name": "bash", "arguments": {"command": command}}
        told = {"role": "toolResult", "toolCallId": f"i{session}", "isError": bool(error)}
        told["content"] = [{"type": "text", "text": f"{error}\n\n\nCommand exited with code 2" if error else "fine"}]
        lines = [
            {"type": "session", "id": session, "timestamp": _iso(ago), "cwd": cwd},
            {"type": "message", "timestamp": _iso(ago), "message": {"role": "assistant", "content": [use]}},
            {"type": "message", "timestamp": _iso(ago), "message": told},
        ]
        path = self.home / ".pi/agent/sessions/x" / f"t_{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _iso(ago: float) -> str:
    return datetime.fromtimestamp(time.time() - ago, UTC).isoformat()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Nothing on it yet."""
    found = Machine(tmp_path)
    monkeypatch.setenv("HOME", str(found.home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "QWEN_HOME", "COPILOT_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return found


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["backtest", *words]) == 0
    return capsys.readouterr().out


def test_a_machine_without_sessions_is_said(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing to read is no error, and no claim."""
    assert _said(capsys) == "no calls in the sessions that harnesses keep here of the last 90 days\n"
    assert json.loads(_said(capsys, "--json"))["spoken"] == 0


def test_one_call_is_nothing_to_speak_of(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """A failure alone is learned from."""
    machine.claude(machine.repo("shop"), "a", [("npm run build", ERROR, 600, 5)])
    assert _said(capsys) == "in the last 90 days this would have spoken 0 times (1 call in 1 repository)\n"


def test_a_failure_that_is_repeated_is_a_right_word(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever harness repeats it, in a folder of the same repository; the words are those that the agent would have read."""
    shop = machine.repo("shop")
    machine.claude(shop, "a", [("npm run build", ERROR, 600, 5)])
    machine.pi(shop, "b", "npm run build", "Error: cannot find config.json", 300)
    machine.claude(machine.repo("other"), "c", [("npm run build", ERROR, 200, 5)])
    said = _said(capsys)
    assert "would have spoken 1 time, right 1 time, and saved less than a minute" in said
    assert "3 calls in 2 repositories; wrong 0 times" in said and "1 turn of 15 s" in said
    assert "The best moment" in said and "npm run build" in said and "(shop, pi)" in said and "failed 5 min ago" in said
    found = json.loads(_said(capsys, "--json"))
    assert (found["spoken"], found["right"], found["saved_us"], len(found["best"]), found["worst"]) == (1, 1, 15_000_000, 1, [])


def test_a_refusal_saves_what_the_call_took_and_a_wrong_one_costs_a_turn(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two minutes each time it failed; once it went well, for no reason that can be seen."""
    rows = [("npm run build", ERROR, 3000 - 400 * n, 120) for n in range(3)]
    machine.claude(machine.repo("shop"), "a", [*rows, ("npm run build", "", 1000, 60)])
    found = json.loads(_said(capsys, "--json"))
    assert {m["verdict"] for m in found["best"]} == {"ask"}
    assert (found["spoken"], found["right"], found["wrong"], found["refused_right"], found["refused_wrong"]) == (3, 2, 1, 2, 1)
    assert found["refused_took_us"] == 240_000_000 and found["saved_us"] == 240_000_000 + 2 * 15_000_000 - 15_000_000
    said = _said(capsys)
    assert "right 2 times, and saved about 4 minutes" in said
    assert "+ 4 min that 2 refused calls took before failing" in said and "- 1 turn for calls" in said
    assert "The worst moment" in said and "it went well" in said


def test_what_is_older_is_left_out(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """By the time of the call, not of the file."""
    machine.claude(machine.repo("shop"), "a", [("npm run build", ERROR, 9 * DAY, 5), ("npm run build", ERROR, 9 * DAY - 60, 5)])
    assert "spoken 1 time" in _said(capsys)
    assert _said(capsys, "--days", "7").startswith("no calls")


def test_a_resumed_session_counts_once_and_a_gone_folder_is_a_repository(machine: Machine, tmp_path: Path) -> None:
    """Ids are known across files; where git says nothing any more, the folder does."""
    gone = str(tmp_path / "gone")
    machine.claude(gone, "a", [("npm run build", ERROR, 600, 5)])
    folder = machine.home / ".claude/projects" / slug(gone)
    (folder / "resumed.jsonl").write_text((folder / "a.jsonl").read_text())
    (folder / "cut.jsonl").write_text('{"type": "assistant", "message": {"content": [{"type": "tool_use"')
    problems = Problems()
    (repository,) = read_history(0, problems)
    assert (repository.name, len(repository.steps), repository.steps[0].root) == (gone, 1, gone)
    assert problems.count == 1 and "cut.jsonl" in problems.messages[0]


def _moment(tally: moments.Tally, verdict: str, outcome: str, took: int | None, odds: int = 500) -> None:
    from projectmem_gate.identify import identify

    call = {"harness": "h", "session": "s", "duration_ms": took, "tool": "Bash", "input": {"command": "make"}}
    action = identify("Bash", {"command": "make"}, root="/r", cwd="/r")
    tally("/r", Step({}, call, "/r", "/r", 1), action, Decision(verdict, "repeat", odds=odds, reason="why"), outcome)


def test_the_time_is_honest_where_it_is_not_known() -> None:
    """A refused call of unknown length counts as none, which is said; what nobody can tell counts for nothing."""
    tally = moments.Tally(DEFAULT)
    _moment(tally, "ask", "failed", None)
    _moment(tally, "warn", "failed", 600_000)
    _moment(tally, "warn", "ok", 600_000)
    _moment(tally, "ask", "interrupted", 600_000)
    found = tally.to_data()
    assert (found["right"], found["wrong"], found["unknown"], found["refused_untimed"]) == (2, 1, 1, 1)
    assert found["saved_us"] == 2 * DEFAULT.turn_us
    said = "\n".join(moments.lines(tally, 90, 10, calls=4, repositories=1))
    assert "1 of unknown length counted as none" in said and "1 nobody can tell" in said


def test_a_history_that_would_have_cost_time_says_so() -> None:
    """Wrong refusals alone."""
    tally = moments.Tally(DEFAULT)
    for _ in range(8):
        _moment(tally, "ask", "ok", 1)
    said = moments.lines(tally, 1, 10, calls=8, repositories=1)
    assert said[0] == "in the last 1 day this would have spoken 8 times, right 0 times, and cost about 2 minutes"


def test_ten_are_shown_the_weightiest_first() -> None:
    """Best by what they saved, worst by what they would have refused and how sure it was."""
    tally = moments.Tally(DEFAULT)
    for n in range(15):
        _moment(tally, "ask", "failed", n * 1000)
        _moment(tally, "warn", "ok", 1, odds=500 + n)
    _moment(tally, "ask", "ok", 1, odds=1)
    found = tally.to_data()
    assert [m["took_ms"] for m in found["best"]] == [n * 1000 for n in range(14, 4, -1)]
    assert [m["odds"] for m in found["worst"]] == [1, *range(514, 505, -1)]


def test_what_is_no_transcript_or_no_policy_is_said(machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A named file without a call in it is no backtest of nothing; a named policy is not the project's own."""
    (tmp_path / "a.py").write_text("import os\nprint()\n")
    assert run(["backtest", str(tmp_path / "a.py"), "--format", "steps"]) == 3
    assert "no transcripts in" in (said := capsys.readouterr()).err and "a.py:1: not JSON" in said.err and not said.out
    assert run(["backtest", "--policy", str(tmp_path / "none.toml")]) == 3
    assert "name one that exists" in capsys.readouterr().err
