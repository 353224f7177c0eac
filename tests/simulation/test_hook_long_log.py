"""A long log whose snapshot is missing, stale or damaged: hooks answer before it is rebuilt, say so, and check again then."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import files
from projectmem_logs.home import init_home
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore
from projectmem_projections.snapshot import Snapshot
from projectmem_projections.tail import positions

from projectmem.hook import refolding
from projectmem.hook.entry import respond
from projectmem.setup.command import hook_args, interpreter
from tests.patience import PATIENCE

LONG, ENOUGH = 50_000, 15_000  # events; what is folded in before a call is less than a thousand
AT_ONCE = 16
NOW = time.time_ns() // 1000 - 3_600_000_000
ERROR = "Exit code 2\nsrc/app.ts(3,5): error TS2304: Cannot find name 'x'.\nnpm error code 2"
CALL = {"tool_name": "Bash", "tool_input": {"command": "npm run build"}}


def _draft(n: int) -> dict[str, Any]:
    key, text = f"{n % 3000:032x}", f"npm run task{n % 3000}"
    part = {"key": key, "kind": "sh", "family": "npm run", "text": text, "words": ["npm", "run", f"task{n % 3000}"]}
    part |= {"paths": [], "effects": [], "trivial": False}
    failed = n % 10 == 0
    data = {"call": f"c{n}", "tool": "Bash", "kind": "sh", "input": "{}", "input_sha": "0" * 64, "cwd": ".", "key": key}
    data |= {"text": text, "joins": [], "parsed": True, "parts": [part], "failed_key": key if failed else ""}
    data |= {"outcome": "failed" if failed else "ok", "exit_code": int(failed), "class": "build" if failed else ""}
    data |= {"signature": "boom" if failed else "", "excerpt": "", "duration_ms": 9, "facts": {}, "as_of": None, "turn": 1}
    actor = {"session": f"s{n // 500}", "agent": "", "harness": "claude-code", "model": "", "origin": "observed"}
    return {"kind": "action.finished", "at": NOW + n, "actor": actor, "causes": [], "data": {**data, "source": "hook"}}


class Project:
    """A project whose log is long; hooks run as processes of their own."""

    def __init__(self, root: Path) -> None:
        self.root, self.argv = root, {}
        self.home = root / ".git" / "projectmem"

    @property
    def snapshot(self) -> Path:
        """The gate's snapshot."""
        return self.home / "projections" / "gate.sqlite"

    def payload(self, event: str, session: str, **fields: Any) -> bytes:
        """What the client would send."""
        base = {"session_id": session, "transcript_path": "", "cwd": str(self.root), "hook_event_name": event}
        return json.dumps({**base, **fields}).encode()

    def start(self, event: str, session: str, **fields: Any) -> Callable[[], dict[str, Any] | None]:
        """Start the registered command; the answer when it is called for."""
        if event not in self.argv:
            self.argv[event] = [interpreter(), *hook_args("claude-code", event)]
        process = subprocess.Popen(self.argv[event], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(self.payload(event, session, **fields))
        process.stdin.close()
        process.stdin = None

        def answer() -> dict[str, Any] | None:
            out, err = process.communicate(timeout=PATIENCE)
            assert (process.returncode, err) == (0, b"")
            return json.loads(out) if out else None

        return answer

    def fire(self, event: str, session: str, **fields: Any) -> dict[str, Any] | None:
        """One hook process."""
        return self.start(event, session, **fields)()

    def wait_for_snapshot(self, seconds: float = 100) -> None:
        """Until nobody rebuilds, nothing waits for the log's lock, and the snapshot is at the end of the log."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            waits = list((self.home / "spool").glob("*.spool"))  # of sixteen at once some may have found it locked for long
            if self._idle() and self.snapshot.exists() and not waits:
                with Snapshot(str(self.snapshot), busy_ms=5000) as state:
                    if not state.stale(positions(str(self.home))):
                        return
            time.sleep(0.2)
        raise AssertionError((self.home / "hook.log").read_text())

    def _idle(self) -> bool:
        held = files.lock(refolding.lock_path(str(self.home)), 0)
        if held is not None:
            files.unlock(held)
        return held is not None


def _made(root: Path, events: int) -> Project:
    """A repository with a log of so many events, its snapshot, and a build that failed at the end."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    home = root / ".git" / "projectmem"
    init_home(str(home), NOW)
    store = LogStore(str(home))
    for start in range(0, events, 5000):
        store.append([_draft(n) for n in range(start, start + 5000)], now=NOW + start, durability="batch")
    refolding.refold(str(home))
    made = Project(root)
    failure = {**CALL, "tool_use_id": "f1", "error": ERROR, "is_interrupt": False, "duration_ms": 60_000}
    respond(["claude-code", "PostToolUseFailure"], made.payload("PostToolUseFailure", "one", **failure), time.time_ns() // 1000)
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long log, made once."""
    return _made(tmp_path_factory.mktemp("long") / "shop", ENOUGH).root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Project:
    """A copy of it."""
    return Project(Path(shutil.copytree(made, tmp_path / "shop")))


def _missing(project: Project) -> None:
    project.snapshot.unlink()


def _damaged(project: Project) -> None:
    project.snapshot.write_bytes(b"SQLite format 3\0" + b"\xff" * 50_000)


def _damaged_inside(project: Project) -> None:
    """A page in the middle: opening works, looking up does not."""
    whole = bytearray(project.snapshot.read_bytes())
    whole[4096:-4096] = b"\xff" * (len(whole) - 8192)
    project.snapshot.write_bytes(whole)


def _stale(project: Project) -> None:
    """Another machine's stream, 20,000 events long, arrives beside ours."""
    from projectmem_logs.home import init_home as init

    other = project.root.parent / "other"
    init(str(other), NOW)
    LogStore(str(other)).append([_draft(n) for n in range(20_000)], now=NOW, durability="batch")
    stream = next((other / "log").iterdir())
    shutil.copytree(stream, project.home / "log" / stream.name)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("long-log")
@pytest.mark.parametrize("harm", [_missing, _damaged, _damaged_inside, _stale])
def test_hooks_go_on_while_the_snapshot_is_rebuilt(project: Project, harm: Callable[[Project], None]) -> None:
    """Whatever is wrong with the snapshot."""
    _goes_on(project, harm)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("long-log")
def test_fifty_thousand_events_are_no_different(tmp_path: Path) -> None:
    """The first answer comes before they are folded, too."""
    _goes_on(_made(tmp_path / "shop", LONG), _missing)


def _goes_on(project: Project, harm: Callable[[Project], None]) -> None:
    """At once and aloud, once a session; recorded meanwhile, once each; checked again afterwards, by one rebuild."""
    said = project.fire("PreToolUse", "before", **CALL, tool_use_id="b1")
    assert said is not None and "hookSpecificOutput" in said
    harm(project)

    first = project.fire("PreToolUse", "two", **CALL, tool_use_id="p1")
    assert first is not None and "degraded" in first["systemMessage"] and "hookSpecificOutput" not in first, "not after folding"

    calls = [{"tool_name": "Bash", "tool_input": {"command": f"make part{n}"}, "tool_use_id": f"m{n}"} for n in range(AT_ONCE)]
    failures = [
        project.start("PostToolUseFailure", "two", **call, error=ERROR, is_interrupt=False, duration_ms=9) for call in calls
    ]
    assert [answer() for answer in failures] == [None] * AT_ONCE, "said once a session only"
    project.fire("PostToolBatch", "two", tool_calls=[{**call, "tool_response": ERROR} for call in calls])

    project.wait_for_snapshot()
    recorded = [e["data"]["call"] for e in read_events(str(project.home)) if e["kind"] == "action.finished"]
    assert sorted(c for c in recorded if c.startswith("m")) == sorted(call["tool_use_id"] for call in calls)
    assert (project.home / "hook.log").read_text().count("brought up to the log") == 1
    for number, command in enumerate(("npm run build", "make part3")):
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"after{number}"}
        said = project.fire("PreToolUse", "three", **call)
        assert said is not None and "hookSpecificOutput" in said, command
    degraded = [e for e in read_events(str(project.home)) if e["kind"] == "gate.degraded"]
    assert len(degraded) == 1


def test_one_rebuild_at_a_time_and_none_right_after_a_failure(project: Project) -> None:
    """Who finds the lock taken leaves; a rebuild that fails is told and not tried again within the minute."""
    from projectmem.hook.meanwhile import start_rebuild

    home = str(project.home)
    held = files.lock(refolding.lock_path(home), 0)
    assert held is not None
    assert not start_rebuild(home)
    refolding.main(home)  # leaves without a word
    files.unlock(held)
    shutil.rmtree(project.home / "log")
    (project.home / "log").write_text("no folder")
    project.snapshot.unlink()
    project.snapshot.mkdir()
    refolding.main(home)
    assert "could not be brought up" in (project.home / "hook.log").read_text()
    assert refolding.failed_lately(home, 60)
    assert not start_rebuild(home)
