"""Real clients with the hooks that `init` registers: what one session learns, the next is told, whichever client it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.home import init_home

from projectmem.importers.backfill import backfill
from projectmem.importers.sources import sessions
from projectmem.place import locate
from projectmem.setup.harnesses import HERE_ONLY
from projectmem.setup.init import init

sys.path.insert(0, str(Path(__file__).parent))
from shop import NAMES, OTHERS, SHELL, conversation, costly, setup, shop

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("client")]


@pytest.mark.parametrize("name", OTHERS)
def test_a_failed_build_is_spoken_of_in_the_next_session_and_silent_once_mended(world_of: Any, name: str) -> None:
    """The main job: fail, a new session, be told, mend, go on in silence."""
    world = world_of(name)
    shop(world)
    setup(world)
    first = world.session(SHELL[name]("npm run build"))
    assert "cannot find config.json" in conversation(first[1]), "the build must really fail"
    assert "projectmem" not in conversation(first[1])
    (failed,) = world.events("action.finished")
    assert (failed["data"]["outcome"], failed["data"]["exit_code"]) == ("failed", 2)
    assert failed["actor"]["harness"] == name
    assert failed["data"]["duration_ms"] is not None

    second = world.session(SHELL[name]("npm  run 'build' 2>&1 | tail -5"))
    read = conversation(second[1])
    assert "projectmem: `npm run build" in read, f"the model must be told: {read[-3000:]}"
    (proposed,) = world.events("action.proposed")
    assert proposed["data"]["decision"]["record"] == failed["id"]

    (world.repo / "config.json").write_text("{}")
    third = world.session(SHELL[name]("npm run build"))
    assert "built" in conversation(third[1])
    assert "projectmem: `" not in conversation(third[1]), "after the fix the gate must be silent"
    assert world.events("action.finished")[-1]["data"]["outcome"] == "ok"
    assert world.events("gate.degraded") == []


@pytest.mark.parametrize("name", OTHERS)
def test_a_costly_failure_is_refused_once_and_the_considered_repeat_runs(world_of: Any, name: str) -> None:
    """A failure met in Claude Code is refused in this client, with the reason for the model; the repeat goes through."""
    world = world_of(name)
    shop(world)
    setup(world)
    costly(world)
    build = SHELL[name]("npm run build")
    requests = world.session(build, [{"wait_s": 2.5}, build])
    refused = conversation(requests[1])
    assert "projectmem dispute" in refused, refused[-3000:]
    assert "node build.js" not in refused, "a refused build must not run"
    assert "node build.js" in conversation(requests[2]), "the repeat must really run"
    assert world.events("action.proposed")[-1]["data"]["decision"]["rule"] == "override"
    assert world.events("action.finished")[-1]["data"]["outcome"] == "failed"
    assert world.events("gate.degraded") == []


def test_a_failure_met_in_codex_speaks_in_claude_code(world_of: Any) -> None:
    """One log for all: the other client's model is told who met it."""
    world = world_of("codex")
    shop(world)
    setup(world, "codex", "claude")
    world.session(SHELL["codex"]("npm run build"))
    (failed,) = world.events("action.finished")
    assert failed["actor"]["harness"] == "codex"
    world.use("claude")
    requests = world.session(SHELL["claude"]("npm run build"))
    read = conversation(requests[1])
    assert "projectmem: `npm run build` failed" in read, read[-3000:]
    assert "(gpt-5.5)" in read, "who met it is told by its model"
    assert world.events("action.proposed")[-1]["actor"]["harness"] == "claude-code"


# An edit that cannot be made, as each client's model would make it.
EDIT: dict[str, Callable[[str], dict[str, Any]]] = {
    "codex": lambda p: {
        "tool": "apply_patch", "input": f"*** Begin Patch\n*** Update File: {p}\n@@\n-absent\n+x\n*** End Patch\n"
    },
    "gemini": lambda p: {
        "tool": "replace", "args": {"file_path": p, "old_string": "absent", "new_string": "x", "instruction": "i"}
    },
    "qwen": lambda p: {"tool": "edit", "args": {"file_path": p, "old_string": "absent", "new_string": "x"}},
    "copilot": lambda p: {"tool": "edit", "args": {"path": p, "old_str": "absent", "new_str": "x"}},
    "opencode": lambda p: {"tool": "edit", "args": {"filePath": p, "oldString": "absent", "newString": "x"}},
    "droid": lambda p: {"tool": "Edit", "args": {"file_path": p, "old_str": "absent", "new_str": "x", "change_all": False}},
    "cline": lambda p: {"tool": "editor", "args": {"path": p, "old_text": "absent", "new_text": "x"}},
    "pi": lambda p: {"tool": "edit", "args": {"path": p, "edits": [{"oldText": "absent", "newText": "x"}]}},
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_a_failed_edit_and_parallel_calls_are_learned_once_each_and_told_at_the_next_start(world_of: Any, name: str) -> None:
    """Where a client tells of a failed edit differs most; a second session begins with what is open."""
    world = world_of(name)
    shop(world)
    setup(world)
    path = str(world.repo / "build.js")
    shell = SHELL[name]
    read = {"opencode": {"tool": "read", "args": {"filePath": path}}}.get(name, shell("cat build.js"))
    world.session(read, EDIT[name](path), [shell("npm run nothere"), shell("echo fine")], shell("echo last"))
    rows = [(e["data"]["tool"], e["data"]["outcome"]) for e in world.events("action.finished")]
    failed = [tool for tool, outcome in rows if outcome == "failed"]
    assert len(rows) == 5, rows
    assert len(failed) == 2, rows
    assert EDIT[name](path)["tool"] in failed
    assert len({e["data"]["call"] for e in world.events("action.finished")}) == 5
    requests = world.session(shell("echo hi"))
    if name == "cline":  # it takes no text at the start
        return
    assert "nothere" in conversation(requests[0]) or "build.js" in conversation(requests[0]), conversation(requests[0])[-2000:]
    assert world.events("gate.degraded") == []


def test_copilot_beside_claude_code_s_settings_records_each_call_once(world_of: Any) -> None:
    """Copilot also runs hooks of a project's Claude Code settings: nothing is told twice."""
    world = world_of("copilot")
    shop(world)
    setup(world, "copilot", "claude")
    local = world.repo / ".claude" / "settings.local.json"
    local.with_name("settings.json").write_text(local.read_text())
    build = SHELL["copilot"]("npm run build")
    build["args"]["detach"] = False  # no valid Python: where the payload were run as a program, the call would be denied
    world.session(build)
    assert [e["actor"]["harness"] for e in world.events("action.finished")] == ["copilot"]
    assert [e["actor"]["harness"] for e in world.events("session.started")] == ["copilot"]
    requests = world.session(SHELL["copilot"]("npm run build"))
    assert [e["actor"]["harness"] for e in world.events("action.proposed")] == ["copilot"]
    assert conversation(requests[1]).count("Wrong? `projectmem dispute") == 1
    assert world.events("gate.degraded") == []
    lines = (world.home / "hook.log").read_text() if (world.home / "hook.log").exists() else ""
    assert "not understood" not in lines


@pytest.mark.parametrize("name", list(SHELL))
def test_a_session_that_the_client_keeps_is_read_by_an_import(world_of: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hook was there: a failure with its exit code and a success, once, from the files that the real client wrote."""
    world = world_of(name)
    (world.repo / "a.txt").write_text("a\n")
    world.commit()
    world.session(SHELL[name]("echo 'Error: cannot find config.json' >&2; exit 3"), SHELL[name]("cat a.txt"))
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "QWEN_HOME", "COPILOT_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(world.own))
    place, now, harness = locate(str(world.repo), {}), time.time_ns() // 1000, NAMES.get(name, name)
    assert place is not None
    init_home(place.home, now)
    counts = backfill(place, now=now, sources=sessions(place, [harness]))
    assert (counts.recorded, counts.failed, counts.damaged, counts.elsewhere) == (2, 1, 0, 0), counts.to_data()
    failed, fine = world.events("action.finished")
    assert (failed["data"]["outcome"], failed["data"]["exit_code"], fine["data"]["outcome"]) == ("failed", 3, "ok")
    assert "cannot find config.json" in failed["data"]["excerpt"] and fine["data"]["text"] == "cat a.txt"
    assert {(e["actor"]["harness"], e["actor"]["origin"]) for e in (failed, fine)} == {(harness, "import")}
    assert backfill(place, now=now, sources=sessions(place, [harness])).recorded == 0


@pytest.mark.parametrize("name", ["gemini", "qwen", "copilot", "pi", "opencode", "cline"])
def test_a_client_started_in_a_subfolder_has_hooks_once_init_ran_there(world_of: Any, name: str) -> None:
    """Some look for a project's hooks only where they are started: there `init` puts them too. The log is the project's."""
    world = world_of(name)
    shop(world)
    package = world.repo / "packages" / "a"
    package.mkdir(parents=True)
    init(str(world.repo), now=time.time_ns() // 1000, harnesses=[name], import_sessions=False)
    world.session(SHELL[name]("ls nothere"), work=str(package))
    assert len(world.events("action.finished")) == (0 if name in HERE_ONLY else 1)
    init(str(package), now=time.time_ns() // 1000, harnesses=[name], import_sessions=False)
    world.session(SHELL[name]("ls nothere"), work=str(package))
    (*_, found) = world.events("action.finished")
    assert (found["actor"]["harness"], found["data"]["outcome"]) == (name, "failed")
    assert len(world.events("action.finished")) == (1 if name in HERE_ONLY else 2)
