"""Many hook processes at once: nothing is lost, nothing is recorded twice, none is degraded."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from projectmem.setup.command import hook_args, interpreter
from tests.patience import PATIENCE

PROCESSES = 12
ERROR = "Exit code 2\nerror: no\nnpm error code 2"


def _all_at_once(hooked: Any, event: str, payloads: list[dict[str, Any]]) -> list[bytes]:
    """Start one process per payload before any is waited for; what each said."""
    argv = [interpreter(), *hook_args("claude-code", event)]
    running = []
    for fields in payloads:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(json.dumps(hooked.payload(event, **fields)).encode())
        process.stdin.close()
        process.stdin = None
        running.append(process)
    done = [(*process.communicate(timeout=PATIENCE), process.returncode) for process in running]
    assert [(err, code) for _, err, code in done] == [(b"", 0)] * len(done)
    return [out for out, _, _ in done]


def test_parallel_processes_lose_nothing(hooked: Any) -> None:
    """Pre-hooks, failures and batches of twelve parallel calls, each told twice."""
    calls = [hooked.call(f"npm run build:{letter}") for letter in "abcdefghijkl"]
    assert len(calls) == PROCESSES
    assert _all_at_once(hooked, "PreToolUse", calls) == [b""] * PROCESSES
    failures = [{**call, "error": ERROR, "is_interrupt": False, "duration_ms": 9} for call in calls]
    _all_at_once(hooked, "PostToolUseFailure", failures * 2)
    _all_at_once(hooked, "PostToolBatch", [{"tool_calls": [{**call, "tool_response": ERROR} for call in calls]}] * 3)
    hooked.run("ls")
    hooked.settle()
    rows = [event["data"]["text"] for event in hooked.events("action.finished")]
    assert sorted(rows) == sorted([*(call["tool_input"]["command"] for call in calls), "ls"])
    assert hooked.events("gate.degraded") == []
    row = {**hooked.call("echo once"), "tool_response": "once"}
    _all_at_once(hooked, "PostToolBatch", [{"tool_calls": [row]}] * 4)
    hooked.settle()
    assert sum(event["data"]["text"] == "echo once" for event in hooked.events("action.finished")) == 1
    again = hooked.call("npm run build:a")
    warned = _all_at_once(hooked, "PreToolUse", [{**again, "session_id": "three"}] * 4)
    assert [bool(out) for out in sorted(warned)] == [False, False, False, True], "a warning is given once"
    hooked.settle()
    assert len(hooked.events("action.proposed")) == 1
    said = _all_at_once(hooked, "PreToolUse", [{**call, "session_id": "two"} for call in calls])
    assert all(json.loads(out)["hookSpecificOutput"] for out in said)


def test_what_is_on_record_of_ended_calls_is_read_at_one_moment(hooked: Any, monkeypatch: Any) -> None:
    """Whether a call is on record, its turn, its note and the moves of files are of one state of the log."""
    from projectmem_projections.snapshot import Snapshot

    call = hooked.call("npm run build")
    hooked.before(call)
    asked = []
    for name in ("seen", "turn", "pending_get", "moves"):
        real = getattr(Snapshot, name)

        def inside(state: Any, *args: Any, name: str = name, real: Any = real) -> Any:
            asked.append((name, state._db.in_transaction))
            return real(state, *args)

        monkeypatch.setattr(Snapshot, name, inside)
    hooked.fire("PostToolUseFailure", **call, error=ERROR, is_interrupt=False, duration_ms=9)
    assert {name for name, _ in asked} == {"seen", "turn", "pending_get", "moves"}
    assert all(within for _, within in asked)
