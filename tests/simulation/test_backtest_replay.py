"""The backtest on small transcripts of our own: what it learns, what it says, and that it says it every time."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from projectmem.backtest.run import render, run_backtest

FAIL = {"exit_code": 1, "is_error": True, "error_kind": "exit"}


def step(n: int, command: str, output: str = "", traj: str = "a", **own: Any) -> dict[str, Any]:
    return {
        "traj_id": traj,
        "step": n,
        "ts": f"2026-01-01T00:{n:02}:00Z",
        "tool": "Bash",
        "kind": "shell",
        "input": {"command": command},
        "input_sha": "",
        "output_excerpt": output,
        "exit_code": 0,
        "is_error": False,
        "error_kind": None,
        "cwd": "/w/app",
        "harness": "claude-code",
        "source": "app",
        "turn": n,
        **own,
    }


def verdicts(tmp_path: Path, *steps: dict[str, Any]) -> list[dict[str, Any]]:
    path, out = tmp_path / "steps.jsonl", tmp_path / "verdicts.jsonl"
    path.write_text("".join(json.dumps(s) + "\n" for s in steps))
    run_backtest([path], "steps", verdicts=out)
    return [json.loads(line) for line in out.read_text().splitlines()]


BUILD = "Error: Missing environment variable VITE_API_URL"


def test_a_repeat_in_another_session_is_spoken_to_and_names_its_record(tmp_path: Path) -> None:
    lines = verdicts(tmp_path, step(1, "npm run build", BUILD, **FAIL), step(2, "npm run build", BUILD, traj="b", **FAIL))
    assert [line["verdict"] == "allow" for line in lines] == [True, False]
    assert set(lines[0]) == {"traj_id", "step", "verdict", "record", "rule", "odds"}
    assert lines[1]["record"] == "a#1"


def test_a_retest_after_an_edit_is_not_spoken_to(tmp_path: Path) -> None:
    edit = {"file_path": "/w/app/src/store.py", "old_string": "n + 1", "new_string": "n"}
    lines = verdicts(
        tmp_path,
        step(1, "pytest tests/test_store.py", "FAILED tests/test_store.py::test_append - AssertionError", **FAIL),
        step(2, "", "ok", tool="Edit", input=edit, exit_code=None),
        step(3, "pytest tests/test_store.py"),
    )
    assert [line["verdict"] for line in lines] == ["allow"] * 3


def test_inputs_that_were_cut_are_told_apart_by_the_hash_of_the_whole(tmp_path: Path) -> None:
    cut = {"file_path": "/w/app/a.py", "old_string": "x" * 9 + "...[+70]", "new_string": "y"}
    bad = {"tool": "Edit", "input": cut, "exit_code": None, "is_error": True, "error_kind": "tool"}
    said = "<tool_use_error>String to replace not found in file.</tool_use_error>"
    one, same, other = (step(n, "", said, **bad, input_sha=sha) for n, sha in enumerate(("a" * 16, "a" * 16, "b" * 16), 1))
    assert [line["verdict"] != "allow" for line in verdicts(tmp_path, one, same, other)] == [False, True, False]


def test_the_next_repository_starts_knowing_nothing(tmp_path: Path) -> None:
    lines = verdicts(
        tmp_path, step(1, "npm run build", BUILD, **FAIL), step(2, "npm run build", BUILD, traj="b", source="other", **FAIL)
    )
    assert [line["verdict"] for line in lines] == ["allow", "allow"]


def test_the_same_transcript_gives_the_same_bytes(tmp_path: Path) -> None:
    steps = [step(n, "npm run build", BUILD, traj="ab"[n % 2], **FAIL) for n in range(1, 6)]
    assert verdicts(tmp_path, *steps) == verdicts(tmp_path, *steps)


def test_strange_calls_do_not_stop_the_rest(tmp_path: Path) -> None:
    strange: list[Any] = [None, 7, [], {"command": ["a", None]}, {"command": "((("}, {"file_path": 3}, {"command": "\ud800"}]
    steps = [step(n, "", input=value, **FAIL) for n, value in enumerate(strange, 1)]
    lines = verdicts(tmp_path, *steps, step(20, "true", output_excerpt=None, exit_code="x", is_error=None, tool=None, cwd=None))
    assert len(lines) == len(steps) + 1
    assert {line["rule"] for line in lines} == {""}, "nothing failed inside the gate"


def test_the_summary_says_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(step(1, "npm run build", BUILD, **FAIL)) + "\nnot json\n")
    text = render(run_backtest([path], "steps", progress=io.StringIO()))
    assert "1 call in 1 repository, 1 judged" in text
    assert "outcomes:           failed 1" in text
    assert "s.jsonl:2: not JSON" in text


def test_every_hand_made_case_is_right(shared: Path, tmp_path: Path) -> None:
    path, out = shared / "eval" / "gate-cases.jsonl", tmp_path / "v.jsonl"
    summary = run_backtest([path], "cases", verdicts=out)
    assert not summary.problems.messages
    said = {v["id"]: v["verdict"] for v in map(json.loads, out.read_text().splitlines())}
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    wrong = {c["id"]: (said.get(c["id"]), c["acceptable"]) for c in cases if said.get(c["id"]) not in c["acceptable"]}
    assert wrong == {}
