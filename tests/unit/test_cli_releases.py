"""Each way in which a failure stops objecting shows in `failures --all` with its reason, and the gate goes by it at once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from projectmem import place
from projectmem.cli import app as cli
from projectmem.hook import entry
from projectmem.mcp_server import Tools

COMMAND = "make build"


class World:
    """One project in which a build failed a minute of its own clock ago."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.capsys, self.now, self.calls = root, capsys, time.time_ns(), 0
        monkeypatch.setattr(time, "time_ns", lambda: self.now)
        (root / "price.py").write_text("broken")
        self.event("PostToolUseFailure", COMMAND, error="Exit code 2\nprice.py:2: error: red\nmake: *** Error 1", duration_ms=900)
        self.later(60)

    def later(self, seconds: int) -> None:
        """The clock goes on."""
        self.now += seconds * 10**9

    def event(self, kind: str, command: str, **more: Any) -> None:
        """One event of the harness."""
        self.calls += 1
        raw = {
            "session_id": "s1", "cwd": str(self.root), "hook_event_name": kind, "tool_name": "Bash",
            "tool_input": {"command": command}, "tool_use_id": f"c{self.calls}", **more,
        }  # fmt: skip
        entry.respond(["claude-code", kind], json.dumps(raw).encode(), self.now // 1000)

    def __call__(self, *args: str, code: int = 0) -> str:
        """Run a command, expect this exit code, return stdout."""
        found = cli.run(list(args))
        out, err = self.capsys.readouterr()
        assert found == code, f"{args}: exit {found}, {out}{err}"
        return out

    @property
    def id(self) -> str:
        """The failure's id."""
        return str(json.loads(self("log", "--kind", "action.finished", "--json"))[0]["id"])

    def succeed(self) -> None:
        """The same command, and it goes well."""
        response = {"stdout": "done", "stderr": "", "interrupted": False}
        calls = [{"tool_name": "Bash", "tool_input": {"command": COMMAND}, "tool_use_id": "ok1", "tool_response": response}]
        raw = {"session_id": "s1", "cwd": str(self.root), "hook_event_name": "PostToolBatch", "tool_calls": calls}
        entry.respond(["claude-code", "PostToolBatch"], json.dumps(raw).encode(), self.now // 1000)


@pytest.fixture
def world(accepted: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    """A failure that stands; the caller is an agent."""
    world = World(accepted("agent"), capsys, monkeypatch)
    assert "failed" in world("check", "-c", COMMAND, code=10)
    return world


def by_success(world: World) -> None:
    world.succeed()


def by_change(world: World) -> None:
    (world.root / "price.py").write_text("mended")


def by_time(world: World) -> None:
    world.later(8 * 86_400)


def by_snooze(world: World) -> None:
    world("snooze", world.id, "--for", "2h", "--reason", "later")


def by_dispute(world: World) -> None:
    world("dispute", world.id, "--reason", "the disk was full")


def by_dispute_over_mcp(world: World) -> None:
    found = place.find(str(world.root))
    assert found is not None
    tools = Tools(found, clock=lambda: world.now // 1000, nonce=lambda: "n")
    assert tools.dispute(world.id, "the disk was full").startswith("Disputed as ")


def by_supersede(world: World) -> None:
    made = json.loads(world("record", "fix", "pinned the compiler", "--json"))["id"]
    world("supersede", world.id, "--by", made, "--reason", "the compiler is pinned")


@pytest.mark.parametrize(
    ("release", "says"),
    [
        (by_success, "cleared: the same action succeeded later"),
        (by_change, "price.py changed"),
        (by_time, "expired 24 h ago"),
        (by_snooze, "snoozed: later"),
        (by_dispute, "disputed: the disk was full"),
        (by_dispute_over_mcp, "disputed: the disk was full"),
        (by_supersede, "superseded: the compiler is pinned"),
    ],
)
def test_each_release_is_seen_with_its_reason(world: World, release: Any, says: str) -> None:
    """Silent at once, for the gate and in the list; `explain` gives the same reason."""
    id = world.id
    release(world)
    world("check", "-c", COMMAND)
    row = next(line for line in world("failures", "--all").splitlines() if id[:18] in line)
    assert row.startswith("silent")
    assert says in row
    reason = "worked after that" if release is by_success else says.partition(": ")[2] or says
    assert reason in world("explain", id)


def test_a_snooze_ends_and_a_new_failure_ends_a_dispute(world: World) -> None:
    """What was silenced speaks again when it should."""
    by_snooze(world)
    world.later(3 * 3600)
    world("check", "-c", COMMAND, code=10)
    by_dispute(world)
    world("check", "-c", COMMAND)
    world.later(60)
    world.event("PostToolUseFailure", COMMAND, error="Exit code 2\nprice.py:2: error: red\nmake: *** Error 1")
    world("check", "-c", COMMAND, code=10)
