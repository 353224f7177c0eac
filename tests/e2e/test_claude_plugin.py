"""The real Claude Code client with the plugin that `init --plugin` writes, alone and beside hooks in the settings."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from projectmem import place as places
from projectmem.setup import checks, extensions, plugin
from projectmem.setup.harnesses import CLAUDE, HARNESSES
from projectmem.setup.init import init

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("client")]

SUMMARY = "mcp__plugin_projectmem_projectmem__summary"
BUILD = {"tool": "Bash", "args": {"command": "npm run build", "description": "Build"}}
WAIT = {"tool": "Bash", "args": {"command": "sleep 4", "description": "until the server is connected"}}


def _shop(world: Any) -> Path:
    """A project whose build fails, and the plugin."""
    (world.repo / "package.json").write_text(json.dumps({"name": "shop", "version": "1.0.0", "scripts": {"build": "node b.js"}}))
    (world.repo / "b.js").write_text(
        "if (!require('fs').existsSync('config.json')) { console.error('Error: cannot find config.json'); process.exit(2) }\n"
    )
    world.commit()
    folder: Path = world.folder / "plugin"
    init(str(world.repo), now=time.time_ns() // 1000, import_sessions=False, plugin=folder)
    return folder


def _read(requests: list[dict[str, Any]]) -> str:
    return json.dumps(requests[-1]["messages"], ensure_ascii=False)


def test_the_plugin_alone_learns_and_speaks_and_serves(world: Any) -> None:
    """Fail; a new session is spoken to, in the model's next request, and may ask the server; mended, silence."""
    argv = ["--plugin-dir", str(_shop(world))]
    assert not (world.repo / ".claude").exists(), "the plugin is all that there is"
    world.session(BUILD, argv=argv)
    (failed,) = world.events("action.finished")
    assert failed["data"]["outcome"] == "failed"
    requests = world.session(BUILD, WAIT, {"tool": SUMMARY, "args": {}}, argv=argv, allow=f"Bash,{SUMMARY}")
    (proposed,) = world.events("action.proposed")
    assert proposed["data"]["decision"]["record"] == failed["id"]
    assert "projectmem: `npm run build` failed" in json.dumps(requests[1]["messages"])
    assert "npm run build" in json.dumps(requests[3]["messages"][-1]), "the server answered the model"
    (world.repo / "config.json").write_text("{}")
    assert "PreToolUse" not in _read(world.session(BUILD, argv=argv))
    assert world.events("gate.degraded") == []


def test_plugin_and_settings_together_speak_once_and_record_once(world: Any) -> None:
    """Both are run for every event: of each thing there is one event, and the model reads each thing once."""
    folder = _shop(world)
    init(str(world.repo), now=time.time_ns() // 1000, import_sessions=False)
    argv = ["--plugin-dir", str(folder)]
    world.session(BUILD, argv=argv)
    requests = world.session(BUILD, argv=argv)
    read = _read(requests)
    assert read.count("Wrong? `projectmem dispute") == 1, read[-3000:]
    assert read.count("<projectmem-") == 1, "one summary at the start"
    kinds = [len(world.events(kind)) for kind in ("session.started", "session.ended", "action.finished", "action.proposed")]
    assert kinds == [2, 2, 2, 1]
    _costly(world)
    refused = json.dumps(world.session(BUILD, argv=argv)[1]["messages"][-1])
    assert "hook error" in refused
    assert refused.count("Wrong? `projectmem dispute") == 1, refused
    assert world.events("gate.degraded") == []


def test_the_plugin_is_installed_the_documented_way_and_fires(world: Any) -> None:
    """By the client's own commands, from the folder that `init --plugin` wrote. `init` then adds no second hook; the hooks run
    where they lie, so that a rewritten plugin counts at once; disabled, `doctor` says so; uninstalled, nothing is left."""
    folder = _shop(world)
    claude = [str(world.client), "plugin"]
    for words in (["marketplace", "add", str(folder)], ["install", plugin.ID]):
        world.run(*claude, *words)
    with _home(world):
        report = init(str(world.repo), now=time.time_ns() // 1000, import_sessions=False)
        assert report.settings == [] and any("has the hooks already" in text for text in report.warnings)
        (holder,) = checks.holders(CLAUDE, HARNESSES[CLAUDE], _place(world))
        assert holder == folder / plugin.HOOKS
    world.session(BUILD)
    requests = world.session(BUILD)
    assert "projectmem: `npm run build` failed" in json.dumps(requests[1]["messages"])
    kinds = [len(world.events(kind)) for kind in ("session.started", "action.finished", "action.proposed")]
    assert kinds == [2, 2, 1]
    whole = (folder / plugin.HOOKS).read_text()
    (folder / plugin.HOOKS).write_text('{"hooks": {}}')
    world.session(BUILD)
    assert len(world.events("session.started")) == 2, "what lies in the folder is what runs, not a copy"
    (folder / plugin.HOOKS).write_text(whole)
    world.run(*claude, "disable", plugin.ID)
    with _home(world):
        found = list(checks.settings(_place(world)))
        assert any(check.name == "plugin" and "is disabled" in check.detail for check in found)
        world.run(*claude, "uninstall", plugin.ID)
        assert [one.id for one in extensions.found(CLAUDE, _place(world))] == []


def _place(world: Any) -> places.Place:
    place = places.locate(str(world.repo))
    assert place is not None
    return place


@contextmanager
def _home(world: Any) -> Iterator[None]:
    """This process has the home that the client has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(world.own))
        patch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        yield


def _costly(world: Any) -> None:
    """Three earlier sessions waited two minutes each for the same failure: worth a refusal."""
    from projectmem.hook.entry import respond

    call = {"tool_name": "Bash", "tool_input": BUILD["args"], "is_interrupt": False, "duration_ms": 120_000}
    for session in ("a", "b", "c"):
        base = {"session_id": session, "transcript_path": "", "cwd": str(world.repo), "hook_event_name": "PostToolUseFailure"}
        payload = {**base, **call, "tool_use_id": f"toolu_{session}", "error": "Exit code 2\nError: cannot find config.json"}
        respond(["claude-code", "PostToolUseFailure"], json.dumps(payload).encode(), time.time_ns() // 1000)
