"""A scratch project whose hook is called in process, with the payloads that Claude Code sends."""

from __future__ import annotations

import io
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.home import init_home
from projectmem_logs.reader import read_events

from projectmem.hook import entry
from projectmem.place import Place, find, locate
from tests.patience import PATIENCE

SECOND = 1_000_000
START = time.time_ns() // 1000 - 3600 * SECOND  # near enough for what a process of its own takes for now


class Hooked:
    """A set up project; `fire` plays one event at a clock that moves a second each time."""

    def __init__(self, root: Path) -> None:
        self.root, self.now, self.calls = root, START, 0
        subprocess.run(
            ["git", "init", "-q", str(root)], check=True, env={"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"}
        )
        located = locate(str(root), {})
        assert located is not None
        init_home(located.home, START)
        found = find(str(root), {})
        assert found is not None
        self.place: Place = found

    @property
    def home(self) -> Path:
        """Where the log is."""
        return Path(self.place.home)

    def payload(self, event: str, session: str = "one", **fields: Any) -> dict[str, Any]:
        """What the client would send."""
        base = {"session_id": session, "transcript_path": "", "cwd": str(self.root), "hook_event_name": event}
        return {**base, **fields}

    def fire(self, event: str, session: str = "one", **fields: Any) -> dict[str, Any] | None:
        """The answer to one event, None for silence."""
        self.now += SECOND
        return entry.respond(["claude-code", event], json.dumps(self.payload(event, session, **fields)).encode(), self.now)

    def send(self, event: str, raw: bytes) -> bytes:
        """Standard output of `main` for any bytes on standard input; asserts exit code 0."""
        out = io.BytesIO()
        assert entry.main(["claude-code", event], io.BytesIO(raw), out) == 0
        return out.getvalue()

    def call(self, command: str, id: str = "") -> dict[str, Any]:
        """Fields of a Bash call with an id of its own."""
        self.calls += 1
        return {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id or f"toolu_{self.calls}"}

    def before(self, call: dict[str, Any], session: str = "one", **more: Any) -> dict[str, Any] | None:
        """PreToolUse of a call; its hookSpecificOutput, None for silence."""
        reply = self.fire("PreToolUse", session, **call, **more)
        return reply["hookSpecificOutput"] if reply else None

    def fails(self, call: dict[str, Any], error: str, session: str = "one", ms: int = 5000, **more: Any) -> None:
        """The events after a call that failed, as the client sends them."""
        self.fire("PostToolUseFailure", session, **call, error=error, is_interrupt=False, duration_ms=ms, **more)
        self.batch([(call, error)], session, **more)

    def batch(self, answered: list[tuple[dict[str, Any], Any]], session: str = "one", **more: Any) -> dict[str, Any] | None:
        """PostToolBatch of calls and their responses."""
        return self.fire(
            "PostToolBatch", session, tool_calls=[{**call, "tool_response": text} for call, text in answered], **more
        )

    def run(self, command: str, error: str = "", session: str = "one") -> dict[str, Any] | None:
        """A whole call; what was said before it."""
        call = self.call(command)
        said = self.before(call, session)
        if said and "permissionDecision" in said:
            self.batch([(call, f"PreToolUse:Bash hook error: {said['permissionDecisionReason']}")], session)
        elif error:
            self.fails(call, error, session)
        else:
            self.batch([(call, "fine")], session)
        return said

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """Events of the log, of one kind where that is given."""
        return [event for event in read_events(str(self.home)) if not kind or event["kind"] == kind]

    def outcomes(self) -> list[tuple[str, str]]:
        """(text, outcome) of each recorded call."""
        return [(event["data"]["text"], event["data"]["outcome"]) for event in self.events("action.finished")]

    def settle(self) -> None:
        """Until nothing waits for the log's lock: what finds it taken for 250 ms is brought in by a process of its own."""
        until = time.monotonic() + PATIENCE
        while list((self.home / "spool").glob("*.spool")):
            assert time.monotonic() < until, self.log_lines()
            time.sleep(0.02)

    def log_lines(self) -> list[str]:
        """Lines of hook.log."""
        path = self.home / "hook.log"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def hooked(tmp_path: Path) -> Hooked:
    """A set up project in a repository of its own."""
    root = tmp_path / "shop"
    root.mkdir()
    return Hooked(root)
