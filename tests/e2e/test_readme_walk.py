"""What the pages show is what happens: daily use (README.md) and verify, prove, forget (logs/INTEGRITY.md), line by line; a
hook's payload and its answer (ARCHITECTURE.md).

Each runs in a shell with a person's terminal, in a repository of its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from projectmem import place
from tests.patience import PATIENCE

REPO = Path(__file__).resolve().parents[2]
NOTE_ID, FAILURE_ID = "5f0c29d1b7aa", "01a22cad-e24a-7662"
Run = Callable[..., tuple[int, list[str]]]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal and a shell"),
]


def walk(text: str) -> list[tuple[str, list[str]]]:
    """(command, expected lines) of each command in the console blocks, in order."""
    steps: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
    return steps


def fits(expected: list[str], said: list[str]) -> bool:
    """Whether the output is as shown: `...` in a line stands for anything in it, a line of it for any lines."""
    if not expected:
        return not said
    head, *rest = expected
    if head == "...":
        return any(fits(rest, said[i:]) for i in range(len(said) + 1))
    pattern = ".*".join(re.escape(part) for part in head.split("..."))
    return bool(said) and re.fullmatch(pattern, said[0]) is not None and fits(rest, said[1:])


def code_shown(expected: list[str]) -> int:
    """The exit code that goes with what is shown."""
    if any("CUT" in line for line in expected):
        return 1
    return 11 if any(line.startswith("ask (") for line in expected) else 0


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs a line in a repository that is set up: (exit code, lines of all that it says)."""
    import pty

    bin_folder, repo = tmp_path / "bin", tmp_path / "repo"
    bin_folder.mkdir()
    (bin_folder / "projectmem").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m projectmem "$@"\n')
    (bin_folder / "projectmem").chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for name in (*place.HARNESS_VARIABLES, "CLAUDE_CONFIG_DIR"):
        env.pop(name, None)
    ours, theirs = pty.openpty()

    def act(command: str, typed: str | None = None) -> tuple[int, list[str]]:
        shell = ["sh", "-c", command if typed is None else f"printf %s {shlex.quote(typed)} | {command}"]
        done = subprocess.run(
            shell,
            cwd=repo,
            env=env,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout.decode().splitlines()

    try:
        subprocess.run(["git", "init", "-q", str(repo)], check=True)
        assert act("projectmem init --harness claude-code")[0] == 0
        yield act
    finally:
        os.close(ours)
        os.close(theirs)


def test_the_walk_through_verify_prove_and_forget_works_as_it_stands(run: Run) -> None:
    """A newcomer types what is there and sees what is there."""
    steps = walk((REPO / "logs" / "INTEGRITY.md").read_text(encoding="utf-8"))
    assert len(steps) > 12
    for command, expected in steps:
        if NOTE_ID in command:
            code, lines = run("projectmem log --kind note.recorded --json")
            command = command.replace(NOTE_ID, json.loads("\n".join(lines))[0]["id"][-12:])
        code, said = run(command)
        assert code == code_shown(expected), (command, said)
        assert fits(expected, said), f"{command}\nexpected {expected}\nsaid {said}"


def fail_twice(run: Run) -> str:
    """One session runs a build that fails, twice; another is about to. Returns what that one reads."""

    def fire(event: str, session: str, call: int, **fields: object) -> str:
        base = {"session_id": session, "transcript_path": "", "cwd": run("pwd")[1][0], "hook_event_name": event}
        bash = {"tool_name": "Bash", "tool_input": {"command": "npm run build"}, "tool_use_id": f"t{call}", **fields}
        payload = {**base, **({"tool_calls": [bash]} if event == "PostToolBatch" else bash)}
        return "\n".join(run(f"projectmem hook claude-code {event}", json.dumps(payload))[1])

    said = "Exit code 1\nError: Missing environment variable VITE_API_URL"
    for call, took in ((1, 2_000), (2, 40_000)):  # ms: only what takes long is worth a refusal
        assert "permissionDecision" not in fire("PreToolUse", "one", call)
        fire("PostToolUseFailure", "one", call, error=said, is_interrupt=False, duration_ms=took)
        fire("PostToolBatch", "one", call, tool_response=said)
    answer = json.loads(fire("PreToolUse", "two", 3))
    return str(answer["hookSpecificOutput"]["permissionDecisionReason"])


def test_daily_use_goes_as_the_readme_shows_it(run: Run) -> None:
    """What the agent reads, word for word; then each command of the section."""
    section = (REPO / "README.md").read_text(encoding="utf-8").split("\n## Daily use\n")[1].split("\n## ")[0]
    (told,) = re.findall(r"```told\n(.*?)```", section, re.S)
    steps = walk(section)
    assert len(steps) >= 8
    reason = fail_twice(run)
    (id,) = re.findall(r"projectmem dispute ([0-9a-f-]{18})`", reason)
    lines = told.replace(FAILURE_ID, id).replace("failed just now", "failed ...").replace("in 24 h", "in ...").splitlines()
    assert fits(lines, reason.splitlines()), reason
    for command, expected in steps:
        code, said = run(command.replace(FAILURE_ID, id))
        assert code == code_shown(expected), (command, said)
        shown = [line.replace(FAILURE_ID, id) for line in expected]
        assert fits(shown, said), f"{command}\nexpected {shown}\nsaid {said}"


def test_a_payload_gets_the_answer_that_the_architecture_page_shows(run: Run) -> None:
    """Field by field; the reason as far as it is shown."""
    page = (REPO / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (payload,), (answer,) = (re.findall(rf"```{name}\n(.*?)```", page, re.S) for name in ("payload", "answer"))
    fail_twice(run)
    code, said = run("projectmem hook claude-code PreToolUse", json.dumps({**json.loads(payload), "cwd": run("pwd")[1][0]}))
    shown, got = json.loads(answer)["hookSpecificOutput"], json.loads("\n".join(said))["hookSpecificOutput"]
    assert code == 0 and list(shown) == ["hookEventName", "permissionDecision", "permissionDecisionReason"]
    reason = ".*".join(re.escape(part) for part in shown.pop("permissionDecisionReason").split("..."))
    assert re.fullmatch(reason, got.pop("permissionDecisionReason"), re.S) and got == shown
