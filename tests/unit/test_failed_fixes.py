"""Failed fixes, case by case (gate/vectors/failed-fixes.jsonl), through the same functions that backtests and the hook use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from projectmem_gate.policy import DEFAULT

from projectmem.backtest.formats import read_cases
from projectmem.backtest.model import Problems
from projectmem.backtest.runner import Summary, replay

CASES = [json.loads(line) for line in (Path(__file__).parents[2] / "gate/vectors/failed-fixes.jsonl").read_text().splitlines()]


def item(step: dict[str, Any], age: int) -> dict[str, Any]:
    """One step of a vector as a history item of the `cases` format."""
    if "edit" in step:
        path, old, new = step["edit"]
        tool, given = "Edit", {"file_path": path, "old_string": old, "new_string": new}
    elif "multi" in step:
        path, hunks = step["multi"]
        tool, given = "MultiEdit", {"file_path": path, "edits": [{"old_string": o, "new_string": n} for o, n in hunks]}
    elif "write" in step:
        tool, given = "Write", dict(zip(("file_path", "content"), step["write"], strict=True))
    elif "patch" in step:
        tool, given = "apply_patch", {"input": step["patch"]}
    else:
        tool, given = "Bash", {"command": step["sh"]}
    code = step.get("exit", 0 if tool == "Bash" else None)
    outcome = step.get("outcome") or ("failure" if code else "success")
    return {
        "type": "tool_call", "age_s": age, "session": step.get("session", "s1"), "harness": step.get("harness", "claude-code"),
        "repo": step.get("repo", "acme"), "cwd": "/srv/acme", "tool": tool, "input": given, "outcome": outcome,
        "exit_code": code, "output": step.get("out", ""),
    }  # fmt: skip


def judged(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The verdict line of a case."""
    age, history = case["action"].get("gap", 60), []
    for step in reversed(case["history"]):
        history.append(item(step, age))
        age += step.get("gap", 60)
    path = folder / "case.jsonl"
    path.write_text(json.dumps({"id": case["id"], "history": history[::-1], "action": item(case["action"], 0)}))
    problems, summary = Problems(), Summary()
    lines = list(replay(list(read_cases([path], problems)), policy=DEFAULT, summary=summary))
    assert not problems.count and not summary.problems.count and len(lines) == 1
    return lines[0]


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_a_failed_fix_speaks_and_nothing_else_does(case: dict[str, Any], tmp_path: Path) -> None:
    """Warned of under a rule of its own when it is proposed again; silence for every other edit."""
    line = judged(case, tmp_path)
    expected = {"warn"} if case["speaks"] else {"allow"}
    assert {line["verdict"]} == expected, case["reason"]
    assert line["rule"] == case["rule"] if "rule" in case else line["rule"].startswith("fix.") == case["speaks"]


def test_the_cases_are_enough_and_half_of_them_are_silent() -> None:
    """The corpus keeps its promise."""
    silent = sum(not case["speaks"] for case in CASES)
    assert len(CASES) >= 60 and len({c["id"] for c in CASES}) == len(CASES)
    assert silent >= 30
