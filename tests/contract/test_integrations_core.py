"""The gate in process without any framework: the same path as the hook, nothing raised, nothing printed, nothing lost."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from projectmem.errors import NoProjectError
from projectmem.integrations import Gate, Verdict, core

ERROR = "error: Missing environment variable VITE_API_URL\nExit code: 2"
RUN = {"command": "make build"}


class Running:
    """A gate of a set up project, with calls of one tool."""

    def __init__(self, hooked: Any) -> None:
        self.hooked, self.gate, self.turns = hooked, Gate.open(str(hooked.root), session="mine"), 0
        hooked.now = time.time_ns() // 1000 - 60_000_000

    def before(self, tool: str = "run_shell", args: Any = None, **more: Any) -> Verdict:
        """Ask, in a turn of its own unless one is given."""
        self.turns += 1
        return self.gate.before(tool, RUN if args is None else args, **{"turn": self.turns, "call_id": f"c{self.turns}", **more})

    def call(self, result: Any = None, args: Any = None, tool: str = "run_shell", **more: Any) -> tuple[Verdict, str]:
        """A whole call; the verdict and what was said behind its result."""
        verdict = self.before(tool, args)
        return verdict, "" if verdict.refused else self.gate.after(verdict, result, **more)

    def costly(self) -> None:
        """Make the next build one that is refused."""
        self.hooked.fails(self.hooked.call("make build"), "Exit code 2\n" + ERROR, "other", ms=120_000)

    def outcomes(self) -> list[str]:
        """What is on record."""
        return [event["data"]["outcome"] for event in self.hooked.events("action.finished")]

    def last(self) -> dict[str, Any]:
        """The data of the newest outcome."""
        found: dict[str, Any] = self.hooked.events("action.finished")[-1]["data"]
        return found


@pytest.fixture
def running(hooked: Any) -> Running:
    """A gate of a set up project."""
    return Running(hooked)


def test_where_no_log_is_set_up_open_says_what_to_do(tmp_path: Path) -> None:
    """A gate that checks nothing must not look like one that does."""
    with pytest.raises(NoProjectError, match="projectmem init"):
        Gate.open(str(tmp_path))
    with pytest.raises(ValueError, match="`edits` names 3"):
        core.shapes.Tools(edits={"swap": ("a", "b")})


@pytest.mark.parametrize(
    ("tables", "tool", "args", "text"),
    [
        ({}, "run_shell", {"command": "make  build"}, "make build"),
        ({}, "anything", {"cmd": "make build", "timeout": 5}, "make build"),
        ({"commands": {"go": "line"}}, "go", {"line": "make build", "note": "x"}, "make build"),
        ({}, "terminal", {"commands": ["cd sub", "make build"]}, "make build"),
        ({}, "deploy", {"command": "now", "target": "eu"}, 'deploy {"command":"now","target":"eu"}'),
        ({"translate": lambda tool, args: ("bash", {"command": args["q"]})}, "x", {"q": "make build"}, "make build"),
        ({}, "search_web", '{"q": "a b"}', 'search_web {"q":"a b"}'),
    ],
)
def test_a_call_is_identified_by_what_it_does(running: Running, tables: Any, tool: str, args: Any, text: str) -> None:
    """Commands by the command, whatever the tool is called; others by name and arguments."""
    running.gate = Gate.open(str(running.hooked.root), **tables)
    running.call("fine", args, tool)
    assert running.last()["text"].startswith(text)


@pytest.mark.parametrize(
    ("tables", "tool", "args", "kind"),
    [
        ({}, "swap_text", {"path": "a.py", "old_text": "x", "new_text": "y"}, "edit"),
        ({"edits": {"sub": ("f", "was", "now")}}, "sub", {"f": "a.py", "was": "x", "now": "y"}, "edit"),
        ({"writes": {"put": ("f", "body")}}, "put", {"f": "a.py", "body": "y"}, "write"),
    ],
)
def test_edits_are_the_edits_that_the_hook_knows(running: Running, tables: Any, tool: str, args: Any, kind: str) -> None:
    """The same keys as Claude Code's own tools have."""
    running.gate = Gate.open(str(running.hooked.root), **tables)
    running.call("fine", args, tool)
    own = {
        "edit": ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}),
        "write": ("Write", {"file_path": "a.py", "content": "y"}),
    }
    name, given = own[kind]
    running.hooked.batch([({"tool_name": name, "tool_input": given, "tool_use_id": "t"}, "done")])
    here, there = [event["data"]["key"] for event in running.hooked.events("action.finished")]
    assert here == there


def test_warned_with_the_result_refused_where_it_costs_and_passed_on_purpose(running: Running) -> None:
    """The three verdicts, and ask-once by turns: a parallel twin is the same call."""
    assert running.call(ERROR)[1] == ""
    verdict, said = running.call(ERROR)
    assert verdict.verdict == "warn"
    assert not verdict.refused
    assert "failed just now" in said
    running.costly()
    first, twin = running.before(turn="a"), running.before(turn="a")
    assert first.refused and twin.refused
    assert "Refused once" in first.reason
    assert running.gate.after(first, "never ran") == ""
    assert not running.before(turn="b").refused


def test_two_gates_around_one_call_are_one(running: Running) -> None:
    """Registered twice: asked twice, recorded once; the same id in a later turn is another call."""
    running.costly()
    for turn in ("a", "b"):
        outer = running.before(call_id="x", turn=turn)
        if not outer.refused:
            inner = running.before(call_id="x", turn=turn)
            assert not inner.refused
            running.gate.after(inner, ERROR)
            running.gate.after(outer, ERROR)
    assert running.outcomes() == ["failed", "failed"]
    running.gate.after(running.before(args={"command": "ls"}, call_id="x", turn="c"), "a.py")
    assert running.outcomes()[2:] == ["ok"]


def test_a_session_that_goes_on_in_another_process_goes_on_upward(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are not counted from one again, so that a repeat on purpose passes there too."""
    running.costly()
    assert running.before(turn="a").refused
    monkeypatch.setattr(core, "_turns", {})  # what another process knows
    monkeypatch.setattr(core, "_last", {})
    monkeypatch.setattr(core.time, "time", lambda: time.time_ns() / 1e9 + 1)
    assert not running.before(turn="z").refused


@pytest.mark.parametrize(
    ("more", "outcome", "code"),
    [
        ({"error": subprocess.CalledProcessError(2, "make", output="", stderr=ERROR)}, "failed", 2),
        ({"error": ValueError("no such target")}, "failed", None),
        ({"error": subprocess.TimeoutExpired("make", 5)}, "failed", None),
        ({"error": asyncio.CancelledError()}, "cancelled", None),
        ({"error": KeyboardInterrupt()}, "interrupted", None),
        ({"ended": "rejected"}, "rejected", None),
        ({"ended": "cancelled"}, "cancelled", None),
        ({"result": {"exit_code": 2, "stdout": "", "stderr": "error: no"}}, "failed", 2),
        ({"result": {"returncode": 0, "stdout": ""}}, "ok", 0),
        ({"result": {"error": "boom"}}, "failed", None),
        ({"result": {"status": "error", "message": "boom"}}, "failed", None),
        ({"result": ERROR}, "failed", 2),
        ({"result": ""}, "unknown", None),
        ({"result": [{"type": "text", "text": ERROR}]}, "failed", 2),
        ({"result": "built", "exit_code": 0}, "ok", 0),
        ({"result": "no", "is_error": True}, "failed", None),
    ],
)
def test_what_became_of_a_command(running: Running, more: dict[str, Any], outcome: str, code: int | None) -> None:
    """By exit code, exception, mark or text; a command that told nothing at all is unknown."""
    running.call(**more)
    assert (running.last()["outcome"], running.last()["exit_code"]) == (outcome, code)


def test_a_time_that_ran_out_is_a_timeout(running: Running) -> None:
    """Whoever ended it."""
    running.call(error=TimeoutError())
    assert running.last()["class"] == "timeout"


def test_nothing_is_lost_when_many_threads_call_at_once(running: Running) -> None:
    """Not even into the spool, where it would wait for the next append."""

    def one(n: int) -> None:
        verdict = running.gate.before("bash", {"command": f"echo {n}"}, session="s", call_id=f"n{n}", turn=n // 8)
        running.gate.after(verdict, f"{n}\nExit code: 0")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(64)))
    assert running.outcomes() == ["ok"] * 64
    assert not running.hooked.log_lines()


def test_how_long_a_call_took_is_without_the_gate(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure's cost decides whether the next one is refused: on a busy machine the gate's own time must not count."""
    real, clock = core.entry.answered, [0]

    def slow(*args: Any, **more: Any) -> Any:
        clock[0] += 40_000_000_000
        return real(*args, **more)

    monkeypatch.setattr(core.entry, "answered", slow)
    monkeypatch.setattr(core, "time", SimpleNamespace(monotonic_ns=lambda: clock[0], time=time.time, time_ns=time.time_ns))
    verdict = running.before()
    clock[0] += 3_000_000
    running.gate.after(verdict, ERROR)
    assert running.last()["duration_ms"] == 3


def test_the_loop_goes_on_while_the_gate_works(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking and telling happen in threads; a task that is cancelled is told of all the same."""
    inside, let = threading.Event(), threading.Event()
    real = core.entry.answered

    def slow(*args: Any, **more: Any) -> Any:
        inside.set()
        assert let.wait(30)
        return real(*args, **more)

    monkeypatch.setattr(core.entry, "answered", slow)

    async def work() -> Verdict:
        asked = asyncio.create_task(running.gate.abefore("bash", RUN, call_id="z"))
        while not inside.is_set():
            await asyncio.sleep(0.001)
        let.set()  # the loop got here while the gate was at work
        return await asked

    verdict = asyncio.run(work())
    before = set(threading.enumerate())
    running.gate.after_cancelled(verdict)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert running.outcomes() == ["cancelled"]


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the logger was told."""
    with caplog.at_level(logging.WARNING, "projectmem"):
        yield caplog


@pytest.mark.parametrize("where", ["answered", "neutral"])
def test_a_gate_that_fails_lets_the_call_go_on_and_says_so(
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
    warned: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    where: str,
) -> None:
    """Loudly: a warning of the logger and a line in hook.log; nothing on standard output."""
    running.costly()

    def broken(*args: Any, **more: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(core.entry if where == "answered" else core.shapes.Tools, where, broken)
    verdict, said = running.call(ERROR)
    assert (verdict.verdict, said) == ("allow", "")
    assert "the gate failed before a call (RuntimeError: broken)" in warned.text
    assert any("RuntimeError: broken" in line for line in running.hooked.log_lines())
    assert capfd.readouterr().out == ""


def test_a_snapshot_that_cannot_be_opened_is_told_like_in_the_hook(running: Running, warned: pytest.LogCaptureFixture) -> None:
    """The pipeline's own failing: the call goes on, the person is told once, the end is recorded all the same."""
    folder = Path(running.hooked.home) / "projections"
    shutil.rmtree(folder)
    folder.write_text("no folder")
    assert running.call(ERROR)[0].verdict == "allow"
    assert warned.text.count("projectmem: the gate failed") == 1
    assert running.outcomes() == ["failed"]


def test_off_is_off(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """PROJECTMEM_GATE=off: nothing is asked, nothing recorded."""
    running.costly()
    count = len(running.hooked.events())
    monkeypatch.setenv("PROJECTMEM_GATE", "off")
    assert running.call(ERROR)[0].verdict == "allow"
    running.gate.rejected("bash", RUN)
    assert running.gate.start() == ""
    assert len(running.hooked.events()) == count


def test_a_rejection_is_recorded_once(running: Running) -> None:
    """A framework shows the same history again and again."""
    for _ in range(3):
        running.gate.rejected("bash", RUN, call_id="r1")
    assert running.outcomes() == ["rejected"]


def test_a_secret_in_a_call_never_reaches_the_log(running: Running) -> None:
    """The same redaction as in the hook."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]
    running.call(f"error: bad token {secret}\nExit code: 1", {"command": f"GITHUB_TOKEN={secret} make build"})
    assert secret not in "".join(path.read_text() for path in Path(running.hooked.home).rglob("*.jsonl"))


def test_a_start_tells_what_the_log_has_to_say(running: Running) -> None:
    """For the system prompt; nothing where there is nothing."""
    assert running.gate.start() == ""
    running.call(ERROR)
    assert "make build" in running.gate.start(session="next")


@pytest.mark.parametrize("args", [None, 7, "text", b"bytes", [1, {2}], {"a": object(), 3: float("nan")}, {"command": ["x", 1]}])
def test_any_arguments_are_taken(running: Running, args: Any, warned: pytest.LogCaptureFixture) -> None:
    """What is no JSON is named by its type; the same call gives the same identity."""
    for _ in range(2):
        verdict = running.gate.before("thing", args)
        running.gate.after(verdict, object())
    first, second = [event["data"]["key"] for event in running.hooked.events("action.finished")]
    assert first == second
    assert not warned.text


class Unsayable(Exception):
    """An exception whose text cannot be made, nor that of the error of it."""

    def __str__(self) -> str:
        raise Unsayable


def test_a_tool_that_raises_what_cannot_be_shown_has_failed(running: Running, warned: pytest.LogCaptureFixture) -> None:
    """Its outcome is on record by its type; a gate that stumbles over such a one raises nothing either."""
    running.call(args={"command": "make it"}, error=Unsayable())
    assert running.outcomes() == ["failed"] and "Unsayable" in running.last()["excerpt"]
    running.gate.failed("before a call", Unsayable())
    assert "Unsayable" in warned.text


def _itself() -> list[Any]:
    found: list[Any] = ["x"]
    found += [found] * 50
    return found


NO_FILE_TAKES: dict[str, Any] = {
    "text": "half \ud800",
    "members": {"a\ud800": "\udfff"},
    "JSON": '{"a": "\\ud800"}',
    "number": 10**5000,
    "list": _itself(),
    "object": {"a": _itself()},
}


@pytest.mark.parametrize("name", NO_FILE_TAKES)
def test_what_no_file_takes_is_recorded_all_the_same(running: Running, name: str, warned: pytest.LogCaptureFixture) -> None:
    """Halves of a surrogate pair, a number of too many digits, what holds itself: in arguments, tool, session and result."""
    value = NO_FILE_TAKES[name]
    verdict = running.gate.before("thing\ud800", value, session="s\ud800", agent="a\ud800")
    running.gate.after(verdict, value, is_error=True)
    running.gate.rejected("thing", value, session="s\ud800")
    assert running.outcomes() == ["failed", "rejected"] and not warned.text


def test_a_name_that_no_file_can_have_costs_no_later_call(running: Running, warned: pytest.LogCaptureFixture) -> None:
    """An edit of a path with a NUL is among what was edited lately when the next call fails."""
    running.call("done", {"path": "\0", "old_string": "a", "new_string": "b"}, tool="edit_file", is_error=False)
    running.call(ERROR)
    assert running.outcomes() == ["ok", "failed"] and not warned.text


def test_conversations_that_share_a_session_keep_their_turns(running: Running) -> None:
    """The twin of a refused call is no repeat because a call of another answer came between."""
    running.costly()
    assert running.before(turn="a").refused
    running.gate.after(running.before(args={"command": "ls"}, turn="b"), "a.py")
    assert running.before(turn="a").refused


def test_a_policy_that_denies_on_error_is_honoured_here_too(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever failed, the pipeline or what is around it."""

    def broken(*args: Any, **more: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(core.entry, "_denies_on_error", lambda place: True)
    monkeypatch.setattr(core.shapes.Tools, "neutral", broken)
    verdict = running.before()
    assert (verdict.verdict, verdict.refused) == ("deny", True)
    assert "RuntimeError: broken" in verdict.reason
