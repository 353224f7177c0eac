"""Reading transcripts: order, roots, repositories, and what bad lines do to the rest."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from projectmem.backtest.formats import read
from projectmem.backtest.model import Problems, Repository, TranscriptError
from projectmem.backtest.roots import Roots


def step(traj: str, n: int, ts: str | None, **own: Any) -> dict[str, Any]:
    return {
        "traj_id": traj,
        "step": n,
        "ts": ts,
        "tool": "Bash",
        "kind": "shell",
        "input": {"command": f"echo {n}"},
        "output_excerpt": "",
        "exit_code": 0,
        "is_error": False,
        "error_kind": None,
        "cwd": "/w/app",
        "harness": "claude-code",
        "source": "app",
        "turn": 1,
        **own,
    }


def write(path: Path, *lines: object) -> Path:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def names(repository: Repository) -> list[tuple[str, int]]:
    return [(s.name["traj_id"], s.name["step"]) for s in repository.steps]


def test_sessions_of_one_source_are_merged_by_time(tmp_path: Path) -> None:
    a = [step("a", 0, "2026-01-01T00:00:00Z"), step("a", 1, "2026-01-01T00:02:00Z")]
    b = [step("b", 0, "2026-01-01T00:01:00Z"), step("b", 1, "2026-01-01T00:03:00Z")]
    path = write(tmp_path / "s.jsonl.gz", *a, *b)
    (repository,) = read([path], "steps", Problems())
    assert names(repository) == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert [s.at for s in repository.steps] == sorted(s.at for s in repository.steps)


def test_files_of_one_source_are_one_repository(tmp_path: Path) -> None:
    one = write(tmp_path / "1.jsonl", step("a", 0, "2026-01-01T00:00:00Z"))
    two = write(tmp_path / "2.jsonl", step("b", 0, "2026-01-01T00:01:00Z", harness="codex"))
    for paths in ([one, two], [tmp_path]):
        (repository,) = read(paths, "steps", Problems())
        assert len(repository.steps) == 2


def test_time_never_runs_backwards_within_a_session(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", step("a", 0, "2026-01-01T00:02:00Z"), step("a", 1, "2026-01-01T00:01:00Z"))
    (repository,) = read([path], "steps", Problems())
    assert names(repository) == [("a", 0), ("a", 1)]
    assert repository.steps[0].at < repository.steps[1].at


def test_benchmark_trajectories_are_repositories_of_their_own_and_need_no_time(tmp_path: Path) -> None:
    lines = [step(t, n, None, harness="swe-agent", source="demo") for t in "ab" for n in range(2)]
    first, second = read([write(tmp_path / "s.jsonl", *lines)], "steps", Problems())
    assert names(first) == [("a", 0), ("a", 1)]
    assert names(second) == [("b", 0), ("b", 1)]
    assert first.steps[1].at - first.steps[0].at == 1_000_000


def test_calls_of_one_turn_are_one_batch_only_where_they_follow_at_once(tmp_path: Path) -> None:
    """A steps file tells a person's turns. Taken for batches they would make one observation of a whole session's failures."""
    times = ("00:00", "00:01", "00:30", "00:31")
    lines = [step("a", n, f"2026-01-01T00:{at}Z") for n, at in enumerate(times)]
    lines += [step("a", 4, "2026-01-01T00:00:31Z", turn=2), step("b", 0, None), step("b", 1, None)]
    (repository,) = read([write(tmp_path / "s.jsonl", *lines)], "steps", Problems())
    turns = {(s.name["traj_id"], s.name["step"]): s.call["turn"] for s in repository.steps}
    assert [turns["a", n] for n in range(5)] == [0, 0, 1, 1, 2]
    assert [turns["b", n] for n in range(2)] == [0, 1]


def test_a_step_may_tell_how_long_it_took(tmp_path: Path) -> None:
    lines = [step("a", 0, None, duration_ms=45_000), step("a", 1, None, duration_ms="long"), step("a", 2, None)]
    (repository,) = read([write(tmp_path / "s.jsonl", *lines)], "steps", Problems())
    assert [s.call["duration_ms"] for s in repository.steps] == [45_000, None, None]


def test_bad_lines_are_counted_and_named_and_do_not_stop_the_rest(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl", "{", "[1]", {"step": 1}, step("a", 0, "yesterday"), "", step("a", 1, "2026-01-01T00:00:00Z")
    )
    problems = Problems()
    (repository,) = read([path, tmp_path / "absent.jsonl"], "steps", problems)
    assert names(repository) == [("a", 0), ("a", 1)]
    assert problems.count == 5
    said = "\n".join(problems.messages)
    for part in ("s.jsonl:1: not JSON", "s.jsonl:2: not an object", "s.jsonl:3: not a step", "yesterday", "absent.jsonl"):
        assert part in said


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"steps, cases, claude-code"):
        read([tmp_path], "atif", Problems())


def test_a_case_learns_only_from_its_own_repository_in_order_of_age(tmp_path: Path) -> None:
    item = {"type": "tool_call", "session": "s", "harness": "h", "repo": "acme", "cwd": "/srv/acme", "tool": "Bash"}
    history = [
        {**item, "age_s": 10, "input": {"command": "b"}, "outcome": "failure", "exit_code": 1, "output": "no"},
        {**item, "age_s": 20, "input": {"command": "a"}, "outcome": "success", "exit_code": 0, "output": ""},
        {**item, "age_s": 15, "input": {"command": "x"}, "outcome": "failure", "exit_code": 1, "output": "", "repo": "other"},
    ]
    case = {"id": "c", "history": history, "action": {**item, "input": {"command": "b"}}}
    (repository,) = read([write(tmp_path / "c.jsonl", case)], "cases", Problems())
    assert [s.call["input"]["command"] for s in repository.steps] == ["a", "b", "b"]
    assert [s.judged for s in repository.steps] == [False, False, True]
    assert repository.steps[1].call["error_kind"] == "exit"


def test_a_case_with_an_unknown_kind_of_history_is_named(tmp_path: Path) -> None:
    case = {"id": "c7", "history": [{"type": "dream"}], "action": {"repo": "acme"}}
    problems = Problems()
    assert read([write(tmp_path / "c.jsonl", case)], "cases", problems) == []
    assert "dream" in problems.messages[0]


@pytest.mark.parametrize(
    ("cwd", "started", "root"),
    [
        ("/w/app", "/w/app", "/w/app"),
        ("/w/app/web", "/w/app", "/w/app"),
        ("/w/app/web", "/w/app/web", "/w/app"),
        ("/w/app/.worktrees/3/cmd", "/w/app", "/w/app/.worktrees/3"),
        ("/elsewhere", "/w/app", "/w/app"),
        ("/w/app2", "/w/app2", "/w/app2"),
        ("C:\\w\\app\\web", "C:\\w\\app", "C:/w/app"),
    ],
)
def test_roots_are_where_sessions_started(cwd: str, started: str, root: str) -> None:
    starts = ["/w/app", "/w/app/web", "/w/app/.worktrees/3", "/w/app/.worktrees/3/cmd", "/w/app2", "C:\\w\\app"]
    assert Roots(starts).of(cwd, session_cwd=started) == root
