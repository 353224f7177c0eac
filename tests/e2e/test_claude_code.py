"""The real Claude Code client with the hooks that `init` registers: what one session learns, the next is told."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from projectmem import doctor
from projectmem.setup.init import init, uninit

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("client")]

BUILD = {"tool": "Bash", "args": {"command": "npm run build", "description": "Build"}}


def _setup(world: Any) -> None:
    init(str(world.repo), now=time.time_ns() // 1000, import_sessions=False)


def _shop(world: Any) -> None:
    """A project whose build wants a file that is not there."""
    script = "node build.js"
    (world.repo / "package.json").write_text(json.dumps({"name": "shop", "version": "1.0.0", "scripts": {"build": script}}))
    (world.repo / "build.js").write_text(
        "const fs = require('fs');\n"
        "if (!fs.existsSync('config.json')) { console.error('Error: cannot find config.json'); process.exit(2); }\n"
        "console.log('built');\n"
    )
    world.commit()


def _texts(value: Any) -> str:
    """Every text in a request's messages."""
    return json.dumps(value, ensure_ascii=False)


def _after(requests: list[dict[str, Any]], step: int) -> str:
    """What the model has read when it takes step `step` (0 is the first), in the messages alone."""
    return _texts(requests[step]["messages"])


def test_a_failed_build_is_spoken_of_in_the_next_session_and_silent_once_mended(world: Any) -> None:
    """The main job: fail, be told, mend, go on."""
    _shop(world)
    _setup(world)
    first = world.session(BUILD)
    assert "cannot find config.json" in _after(first, 1), "the build must really fail"
    (failed,) = world.events("action.finished")
    assert (failed["data"]["outcome"], failed["data"]["exit_code"]) == ("failed", 2)
    assert failed["data"]["duration_ms"] is not None

    second = world.session({"tool": "Bash", "args": {"command": "npm  run 'build' 2>&1 | tail -5", "description": "Build"}})
    read = _after(second, 1)
    assert failed["id"][-8:] in read or failed["id"][:8] in read, f"the model must be told which record: {read[-3000:]}"
    (proposed,) = world.events("action.proposed")
    assert proposed["data"]["decision"]["verdict"] in ("warn", "ask")
    assert proposed["data"]["decision"]["record"] == failed["id"]

    (world.repo / "config.json").write_text("{}")
    third = world.session(BUILD)
    assert "built" in _after(third, 1)
    assert "PreToolUse" not in _after(third, 1), "after the fix the gate must be silent"
    assert (
        len(world.events("action.proposed")) == 1 or world.events("action.proposed")[-1]["data"]["decision"]["verdict"] == "allow"
    )
    assert world.events("action.finished")[-1]["data"]["outcome"] == "ok"


def _costly(world: Any) -> None:
    """Three earlier sessions waited two minutes each for the same failure."""
    from projectmem.hook.entry import respond

    call = {"tool_name": "Bash", "tool_input": BUILD["args"], "is_interrupt": False, "duration_ms": 120_000}
    error = "Exit code 2\nError: cannot find config.json"
    for session in ("a", "b", "c"):
        base = {"session_id": session, "transcript_path": "", "cwd": str(world.repo), "hook_event_name": "PostToolUseFailure"}
        payload = {**base, **call, "tool_use_id": f"toolu_{session}", "error": error}
        respond(["claude-code", "PostToolUseFailure"], json.dumps(payload).encode(), time.time_ns() // 1000)


def test_a_costly_failure_is_refused_once_and_the_considered_repeat_runs(world: Any) -> None:
    """The refusal reaches the model as the call's result; the same call in the next turn goes through, and is on record."""
    _shop(world)
    _setup(world)
    _costly(world)
    requests = world.session(BUILD, BUILD)
    refused = _after(requests, 1)
    assert "hook error" in refused, refused[-2000:]
    assert "projectmem dispute" in refused
    repeated = requests[2]["messages"][-1]
    assert "cannot find config.json" in _texts(repeated), "the repeat must really run"
    assert "hook error" not in _texts(repeated)
    session = world.events("session.started")[-1]["actor"]["session"]
    mine = [event for event in world.events("action.finished") if event["actor"]["session"] == session]
    assert [event["data"]["outcome"] for event in mine] == ["rejected", "failed"]
    assert world.events("action.proposed")[-1]["data"]["decision"]["rule"] == "override"
    assert world.events("gate.degraded") == []


def _remember(world: Any, *texts: str) -> None:
    """Notes of somebody before."""
    from projectmem_logs.store import LogStore

    actor = {"session": "earlier", "agent": "", "harness": "h", "model": "m", "origin": "agent"}
    now = time.time_ns() // 1000
    note = {"kind": "note.recorded", "at": now, "actor": actor, "causes": []}
    with LogStore(str(world.home)) as store:
        for text in texts:
            store.append([{**note, "data": {"text": text, "tags": []}}], now=now)


def test_what_a_prompt_recalls_reaches_the_next_request_once(world: Any) -> None:
    """A note too old for the session's start comes with the prompt that it answers, and not with the next one."""
    _setup(world)
    asked = "connect ECONNREFUSED 127.0.0.1:6379 in the queue tests"
    _remember(world, f"{asked}: start redis with make queue-up before running the suite")
    _remember(world, *(f"page {n} of the handbook is about {what}" for n, what in enumerate("abcdefghi")))
    requests = world.session(prompts=[asked, f"still there: {asked}"])
    assert len(requests) == 2, "a request for each prompt"
    assert [_after(requests, n).count("make queue-up") for n in (0, 1)] == [1, 1], _after(requests, 1)[-3000:]
    assert "handbook" in _after(requests, 0) and "still there" in _after(requests, 1)
    assert [event["data"]["surface"] for event in world.events("recall.decided")] == ["start", "prompt"]


def test_a_failing_edit_fires_no_event_before_it_and_is_learned_all_the_same(world: Any) -> None:
    """The client refuses the edit before any hook but PostToolBatch; the failure is on record, and spoken of when repeated."""
    (world.repo / "a.txt").write_text("alpha\nbeta\n")
    world.commit()
    _setup(world)
    read = {"tool": "Read", "args": {"file_path": str(world.repo / "a.txt")}}
    edit = {"tool": "Edit", "args": {"file_path": str(world.repo / "a.txt"), "old_string": "no such text", "new_string": "x"}}
    world.session(read, edit)
    failed = [e for e in world.events("action.finished") if e["data"]["outcome"] == "failed"]
    assert [(e["data"]["tool"], e["data"]["class"]) for e in failed] == [("Edit", "edit-mismatch")]


def test_every_call_is_recorded_once_with_its_outcome(world: Any) -> None:
    """Parallel calls, a failure told twice (by two events), a hidden failure and a timeout: one event each."""
    _setup(world)
    bash = lambda command, **more: {"tool": "Bash", "args": {"command": command, "description": "d", **more}}  # noqa: E731
    world.session(
        [bash("exit 4"), bash("echo one"), bash("echo 'Exit code 3'")],
        bash("sleep 5", timeout=1000),
    )
    rows = {e["data"]["text"]: (e["data"]["outcome"], e["data"]["exit_code"]) for e in world.events("action.finished")}
    assert len(world.events("action.finished")) == 4
    assert rows["exit 4"][0] == "failed"
    assert rows["echo one"][0] == "ok"
    assert rows["sleep 5"][0] == "failed"


def test_a_background_command_that_fails_later_is_learned(world: Any) -> None:
    """Its start says nothing; its end comes as a prompt."""
    _setup(world)
    started = {"tool": "Bash", "args": {"command": "sleep 1; exit 5", "description": "d", "run_in_background": True}}
    world.session(started, {"tool": "Bash", "args": {"command": "sleep 3", "description": "d"}})
    rows = [
        (e["data"]["outcome"], e["data"]["exit_code"]) for e in world.events("action.finished") if "exit 5" in e["data"]["text"]
    ]
    assert rows == [("unknown", None), ("failed", 5)]


def test_doctor_proves_the_hooks_and_uninit_leaves_nothing(world: Any) -> None:
    """Doctor fires what is registered; after uninit the work tree is as it was and doctor says so."""
    _setup(world)
    assert world.run("git", "status", "--porcelain") == "", "the settings file is not up for commit"
    checks = list(doctor.examine(str(world.repo), now=time.time_ns() // 1000))
    assert doctor.healthy(checks), [check.to_data() for check in checks if check.status == doctor.FAIL]
    assert len([check for check in checks if check.name.startswith("fires: ") and check.status == doctor.OK]) == 7
    uninit(str(world.repo))
    assert not (world.repo / ".claude").exists()
    assert not doctor.healthy(list(doctor.examine(str(world.repo), now=time.time_ns() // 1000)))


def test_a_package_that_is_gone_lets_every_call_run_and_says_so_once(world: Any, tmp_path: Path) -> None:
    """The registered command outlives the package: calls go on, the person is told at the start of the session."""
    _setup(world)
    settings = world.repo / ".claude" / "settings.local.json"
    text = settings.read_text()
    start = text.index("sys.path += ") + len("sys.path += ")
    end = text.index("]", start) + 1
    settings.write_text(text.replace(text[start:end], f"['{tmp_path}/nowhere']"))
    requests = world.session({"tool": "Bash", "args": {"command": "echo alive", "description": "d"}})
    assert "alive" in _after(requests, 1)
    assert "hook error" not in _after(requests, 1)


def test_what_the_client_refuses_by_its_own_rules_is_neither_a_success_nor_a_change(world: Any) -> None:
    """A write in plan mode and a command outside the working folders come with words alone; the failure stays as it was."""
    _shop(world)
    _setup(world)
    world.session(BUILD)
    note = {"file_path": str(world.repo / "src.js"), "content": "let x"}
    outside = {"command": f"touch {world.folder}/outside.txt", "description": "x"}
    read = world.session({"tool": "Write", "args": note}, allow="Read", argv=["--permission-mode", "plan"])
    assert "in plan mode" in _after(read, 1)
    read = world.session({"tool": "Bash", "args": outside}, allow="Read", argv=["--permission-mode", "acceptEdits"])
    assert "needs approval" in _after(read, 1)
    assert not (world.repo / "src.js").exists()
    outcomes = [event["data"]["outcome"] for event in world.events("action.finished")]
    assert outcomes == ["failed", "rejected", "rejected"]
    world.session(BUILD)
    assert world.events("action.proposed")[-1]["data"]["decision"]["verdict"] in ("warn", "ask")
