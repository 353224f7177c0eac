"""Backfill from Claude Code's transcripts: what happened, when, once, and only of this repository."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.home import init_home
from projectmem_logs.reader import read_events

from projectmem.importers.backfill import backfill
from projectmem.importers.claude_code import slug
from projectmem.importers.reading import time_us
from projectmem.place import Place, locate

DAY = "2026-11-20T10:00:"
NOW = 1_796_000_000_000_000


class Kept:
    """A repository, and sessions that the client keeps of it."""

    def __init__(self, base: Path) -> None:
        self.config, self.root = base / "config", base / "shop"
        self.root.mkdir()
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        found = locate(str(self.root), {})
        assert found is not None
        init_home(found.home, NOW)
        self.place: Place = found
        self.second = 0

    def line(self, kind: str, content: Any, *, cwd: str = "", session: str = "s1", **more: Any) -> dict[str, Any]:
        """One line of a transcript, a second after the one before."""
        self.second += 1
        base = {"type": kind, "sessionId": session, "cwd": cwd or str(self.root), "timestamp": f"{DAY}{self.second:02d}.500Z"}
        return {**base, "isSidechain": False, "message": {"role": kind, "content": content}, **more}

    def call(self, id: str, command: str, text: str, error: bool = False, **more: Any) -> list[dict[str, Any]]:
        """The two lines of a Bash call."""
        use = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": error}
        return [self.line("assistant", [use], **more), self.line("user", [result], **more)]

    def write(self, lines: list[Any], name: str = "s1.jsonl", folder: str = "") -> Path:
        """Put lines into a session file."""
        path = self.config / "projects" / (folder or slug(str(self.root))) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return path

    def recorded(self) -> list[tuple[str, str]]:
        """(text, outcome) of what is on record."""
        return [(e["data"]["text"], e["data"]["outcome"]) for e in read_events(self.place.home) if e["kind"] == "action.finished"]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """No sessions yet."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return Kept(tmp_path)


def test_calls_are_recorded_as_they_happened(kept: Kept) -> None:
    """Outcome, exit code, time, session and origin come from the lines."""
    kept.write(
        [*kept.call("t1", "npm run build", "Exit code 2\nsrc/a.ts(1,1): error TS1: no", True), *kept.call("t2", "echo hi", "hi")]
    )
    counts = backfill(kept.place, now=NOW)
    assert (counts.files, counts.sessions, counts.calls, counts.recorded, counts.failed) == (1, 1, 2, 2, 1)
    first, second = list(read_events(kept.place.home))
    assert (first["data"]["outcome"], first["data"]["exit_code"], first["data"]["source"]) == ("failed", 2, "backfill")
    assert (first["actor"]["session"], first["actor"]["origin"]) == ("s1", "import")
    assert first["at"] == int(datetime(2026, 11, 20, 10, 0, 2, 500_000, tzinfo=UTC).timestamp() * 1_000_000)
    assert first["data"]["duration_ms"] == 1000
    assert second["data"]["outcome"] == "ok"


def test_twice_is_once(kept: Kept) -> None:
    """A second backfill, and a resumed session that repeats old lines under a new id, add nothing."""
    lines = kept.call("t1", "npm run build", "Exit code 2\nerror: no", True)
    kept.write(lines)
    backfill(kept.place, now=NOW)
    kept.write([{**line, "sessionId": "s2"} for line in lines], "s2.jsonl")
    counts = backfill(kept.place, now=NOW)
    assert (counts.calls, counts.recorded, counts.known) == (2, 0, 2)
    assert len(kept.recorded()) == 1


def test_success_may_print_what_failures_print(kept: Kept) -> None:
    """The transcript knows: `is_error` is false."""
    kept.write(kept.call("t1", "cat log.txt", "Exit code 3\nold log"))
    backfill(kept.place, now=NOW)
    assert kept.recorded() == [("cat log.txt", "ok")]


def test_refusals_are_told_by_the_line(kept: Kept) -> None:
    """A refusal whose text says nothing of one is known by the line's own field."""
    use, result = kept.call("t1", "touch x", "no, do something else", True)
    kept.write([use, {**result, "toolDenialKind": "user-rejected"}])
    backfill(kept.place, now=NOW)
    assert kept.recorded() == [("touch x", "rejected")]


def test_unfinished_damaged_and_foreign_lines_are_counted_and_passed_over(kept: Kept, tmp_path: Path) -> None:
    """Numbers reconcile whatever the file holds."""
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    subprocess.run(["git", "init", "-q", str(elsewhere)], check=True)
    unfinished = kept.call("t2", "sleep 9", "")[:1]
    foreign = kept.call("t3", "ls", "x", cwd=str(elsewhere))
    path = kept.write(
        [*kept.call("t1", "ls", "a"), "{ broken tool_use", *unfinished, *foreign, "[]", '{"type": "user", "x": "tool_use"}']
    )
    counts = backfill(kept.place, now=NOW)
    assert counts.to_data() == {
        "files": 1, "sessions": 1, "calls": 2, "recorded": 1, "failed": 0,
        "known": 0, "unfinished": 1, "elsewhere": 1, "damaged": 1, "unread": [str(path)],
    }  # fmt: skip
    assert "2 tool calls" in counts.line()


def test_sessions_of_subfolders_worktrees_and_subagents_count(kept: Kept, tmp_path: Path) -> None:
    """All sessions of the repository, with paths relative to the work tree that the call was made in."""
    git = ["git", "-C", str(kept.root), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    tree = tmp_path / "tree"
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True)
    (kept.root / "sub").mkdir()
    kept.write(kept.call("t1", "ls", "a", cwd=str(kept.root / "sub")), folder=slug(str(kept.root / "sub")))
    kept.write(kept.call("t2", "cat a.txt", "b", cwd=str(tree)), folder=slug(str(tree)))
    kept.write(kept.call("t3", "pwd", "c", agentId="a9", isSidechain=True), "s1/subagents/agent-a9.jsonl")
    counts = backfill(kept.place, now=NOW)
    assert counts.recorded == 3
    events = {event["data"]["call"]: event for event in read_events(kept.place.home)}
    assert events["t1"]["data"]["cwd"] == "sub"
    assert events["t2"]["data"]["cwd"] == "."
    assert events["t3"]["actor"]["agent"] == "a9"


def test_the_next_folder_with_a_longer_name_is_not_this_repository(kept: Kept, tmp_path: Path) -> None:
    """`shop-two` begins like `shop` and is another project: its calls are told by where they were made."""
    other = tmp_path / "shop-two"
    other.mkdir()
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    kept.write(kept.call("t1", "ls", "a", cwd=str(other)), folder=slug(str(other)))
    counts = backfill(kept.place, now=NOW)
    assert (counts.recorded, counts.files, counts.elsewhere) == (0, 0, 1)


def test_a_background_command_s_end_is_read_from_its_own_line(kept: Kept) -> None:
    """The start is unknown, the end is what counts."""
    note = (
        "<task-notification><task-id>b1</task-id><tool-use-id>t1</tool-use-id><output-file>/x</output-file><status>failed</status>"
        '<summary>Background command "d" failed with exit code 5</summary></task-notification>'
    )
    kept.write([*kept.call("t1", "make all", "Command running in background with ID: b1. Output: /x"), kept.line("user", note)])
    backfill(kept.place, now=NOW)
    assert kept.recorded() == [("make all", "unknown"), ("make all", "failed")]


def test_no_sessions_is_no_error(kept: Kept) -> None:
    """Where the client was never used, there is nothing to read."""
    assert "no earlier" in backfill(kept.place, now=NOW).line()


def test_slug_is_the_client_s() -> None:
    """Every character but ASCII letters and digits becomes a dash (measured on the client)."""
    assert slug("/tmp/f4 Weird.n\u00e4me_x/work") == "-tmp-f4-Weird-n-me-x-work"


def test_secrets_in_old_sessions_are_replaced(kept: Kept) -> None:
    """What was typed long ago is as secret as what is typed now."""
    token = "ghp_" + "a1B2c3D4e5" * 4
    kept.write(kept.call("t1", f"curl -H 'Authorization: token {token}' https://example.invalid", f"Exit code 22\n{token}", True))
    backfill(kept.place, now=NOW)
    for path in Path(kept.place.home).rglob("*"):
        assert not path.is_file() or token.encode() not in path.read_bytes()


def test_times_that_are_none_are_no_crash() -> None:
    """A missing or odd timestamp reads as none."""
    assert [time_us(value) for value in (None, 3, "", "yesterday", "2026-13-01")] == [0] * 5


@pytest.mark.parametrize("apart", [False, True])
def test_a_failure_behind_a_pipe_is_known_by_the_error_on_record(kept: Kept, apart: bool) -> None:
    """As in the hook: the same error again, whatever the filter's exit code, whether read now or on record already."""
    failing = "counting\nshelf 7: error: too full"
    first = kept.call("t1", "./check shelves", f"Exit code 3\n{failing}", True)
    rest = [*kept.call("t2", "./check shelves | tail -5", failing), *kept.call("t3", "./check other | tail -5", failing)]
    if apart:
        kept.write(first)
        backfill(kept.place, now=NOW)
    kept.write([*first, *rest])
    counts = backfill(kept.place, now=NOW)
    assert counts.failed == (1 if apart else 2)
    assert [outcome for _, outcome in kept.recorded()] == ["failed", "failed", "ok"]


def _untimed(lines: list[dict[str, Any]], *numbers: int) -> list[dict[str, Any]]:
    return [{**line, "timestamp": "soon"} if n in numbers else line for n, line in enumerate(lines)]


def test_a_result_without_a_time_has_that_of_the_lines_around_it(kept: Kept) -> None:
    """The last one before it, whatever line that is; at the start of a file the next. Nobody knows how long the call took."""
    lines = [
        *kept.call("t1", "make a", "Exit code 2\nerror: a", True),
        *kept.call("t2", "make b", "Exit code 2\nerror: b", True),
        kept.line("assistant", [{"type": "text", "text": "hm"}]),
        *kept.call("t3", "make c", "Exit code 2\nerror: c", True),
    ]
    kept.write(_untimed(lines, 0, 1, 3, 5, 6))
    counts = backfill(kept.place, now=NOW)
    assert (counts.recorded, counts.failed, counts.unfinished, counts.damaged) == (3, 3, 0, 0)
    events = {event["data"]["call"]: event for event in read_events(kept.place.home)}
    seconds = {id: (event["at"] - time_us(f"{DAY}00.500Z")) // 1_000_000 for id, event in events.items()}
    assert seconds == {"t1": 3, "t2": 3, "t3": 5}
    assert all(event["data"]["duration_ms"] is None for event in events.values())


def test_results_that_no_time_can_be_had_for_are_said(kept: Kept) -> None:
    """They are no calls without a result."""
    lines = [*kept.call("t1", "make a", "Exit code 2\nerror: a", True), *kept.call("t2", "sleep 9", "")[:1]]
    path = kept.write(_untimed(lines, 0, 1, 2))
    counts = backfill(kept.place, now=NOW)
    assert (counts.calls, counts.recorded, counts.unfinished, counts.damaged) == (1, 0, 1, 1)
    assert f"{path} (a result without a time" in counts.line()


def test_the_end_of_a_task_that_no_line_times_is_that_of_the_line_before(kept: Kept) -> None:
    """Also where that is a line of another kind."""
    started = "Command running in background with ID: b1. Output is being written to: /tmp/b1.output"
    lines = kept.call("t1", "make slow", started)
    note = (
        "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>t1</tool-use-id>\n<status>failed</status>\n"
        '<summary>Background command "make slow" failed with exit code 2</summary>\n</task-notification>'
    )
    kept.write(
        [*lines, kept.line("assistant", [{"type": "text", "text": "wait"}]), {**kept.line("user", note), "timestamp": None}]
    )
    backfill(kept.place, now=NOW)
    last = list(read_events(kept.place.home))[-1]
    assert (last["data"]["outcome"], last["at"]) == ("failed", time_us(f"{DAY}03.500Z"))
