"""From nothing to a set-up project and back, as processes: init, doctor, recall, rebuild, backtest, mcp, hook, uninit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE


class Project:
    """A git repository with a HOME of its own."""

    def __init__(self, folder: Path) -> None:
        self.repo, home = folder / "repo", folder / "home"
        for path in (self.repo, home):
            path.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        self.env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "init", "-q"], cwd=self.repo, env=self.env, check=True)

    def run(self, *args: str, input: str = "", code: int = 0) -> str:
        """Run one command; expect this exit code and no traceback; return stdout."""
        argv = [sys.executable, "-m", "projectmem", *args]
        done = subprocess.run(argv, cwd=self.repo, env=self.env, input=input, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == code, f"{args}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    def json(self, *args: str, code: int = 0) -> Any:
        """The same with --json, parsed."""
        return json.loads(self.run(*args, "--json", code=code))

    def fails(self, command: str = "make build") -> None:
        """A failing command, told to the hook by way of the command line."""
        payload = {
            "session_id": "s1", "cwd": str(self.repo), "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
            "tool_input": {"command": command}, "tool_use_id": "t1", "error": "Exit code 2\nmake: *** [build] Error 2",
        }  # fmt: skip
        assert self.run("hook", "claude-code", "PostToolUseFailure", input=json.dumps(payload)) == ""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Not set up yet."""
    return Project(tmp_path)


def test_init_is_idempotent_and_uninit_undoes_it(project: Project) -> None:
    """Every write says where it landed; twice is once; undone, the repository is as it was but for the log."""
    first = project.json("init")
    assert first["created"] is True
    assert first["home"] == str(project.repo / ".git" / "projectmem")
    settings = project.repo / ".claude" / "settings.local.json"
    before = settings.read_bytes()
    assert project.json("init")["created"] is False
    assert settings.read_bytes() == before
    status = subprocess.run(["git", "status", "--porcelain"], cwd=project.repo, env=project.env, capture_output=True, text=True)
    assert status.stdout == ""
    assert str(settings) in project.run("uninit")
    assert not settings.exists()
    assert "nothing" in project.run("uninit") or project.run("uninit")
    assert (project.repo / ".git" / "projectmem" / "project.json").exists()


def test_doctor_proves_that_the_hooks_fire(project: Project) -> None:
    """All well after init; exit 1 with a way on once the hooks are gone or there is no log."""
    assert project.json("doctor", code=1)["ok"] is False
    project.run("init")
    found = project.json("doctor")
    assert found["ok"] is True, found
    assert {"name", "status", "detail", "remedy"} == set(found["checks"][0])
    project.run("uninit")
    assert "init" in project.run("doctor", code=1)


def test_learn_ask_recall_and_rebuild(project: Project) -> None:
    """What the hook learned is what check, recall and summary know, also after everything derived was thrown away."""
    project.run("init")
    project.fails()
    assert project.run("check", "--command", "make build", code=10).startswith("warn")
    project.run("record", "fix", "run make clean before make build when the build fails", "--verifier", "make build")
    answer = project.json("recall", "why does make build fail")
    assert "make" in answer["block"]
    assert project.run("recall", "zzqx unheard of").strip() == ""
    assert "make build" in project.run("summary")
    before = project.run("failures")
    counts = project.json("rebuild")["counts"]
    assert counts["events"] == len(project.json("log", "--limit", "0"))
    assert project.run("failures").split("\n")[1].split()[0] == before.split("\n")[1].split()[0] == "warn"
    assert "events" in project.run("rebuild")


def test_worktrees_and_subfolders_share_the_log(project: Project) -> None:
    """The log is the repository's, not the folder's."""
    project.run("init")
    project.fails()
    (project.repo / "a" / "b").mkdir(parents=True)
    assert project.json("failures", "--root", "a/b") == project.json("failures")


def test_backtest_reads_cases_and_steps(project: Project, shared: Path) -> None:
    """Verdict lines are written, the summary is printed, a bad file is named and does not stop the rest."""
    cases = shared / "eval" / "gate-cases.jsonl"
    verdicts = project.repo / "v.jsonl"
    text = project.run("backtest", str(cases), "--format", "cases", "--verdicts", str(verdicts))
    assert "calls" in text
    rows = [json.loads(line) for line in verdicts.read_text().splitlines()]
    assert {"id", "verdict"} <= set(rows[0])
    assert project.json("backtest", str(cases), "--format", "cases")
    bad = project.repo / "policy.toml"
    bad.write_text("mode = 3\n")
    project.run("backtest", str(cases), "--format", "cases", "--policy", str(bad), code=3)


def test_mcp_serves_over_stdio(project: Project) -> None:
    """An initialize request is answered with JSON and nothing else on stdout."""
    project.run("init")
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
    }  # fmt: skip
    lines = project.run("mcp", input=json.dumps(hello) + "\n").splitlines()
    assert json.loads(lines[0])["result"]["serverInfo"]["name"] == "projectmem"


def test_hook_is_silent_on_nonsense(project: Project) -> None:
    """Exit 0 and nothing on stdout, whatever comes."""
    project.run("init")
    for args in (("claude-code", "PreToolUse"), ("claude-code", "Nonsense"), ("emacs", "PreToolUse"), ("claude-code",)):
        for input in ("", "{", "[]", "null", '{"session_id": 3}', "\x00" * 100):
            assert project.run("hook", *args, input=input) == ""
