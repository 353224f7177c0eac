"""Real clients with the hooks that `init` registers: subagents, parallel calls, and commands in the background."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from scripted_model import SUB
from shop import OTHERS, SHELL, conversation, costly, setup, shop

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("client")]

ERRAND = f"This is a {SUB}: build the shop."
# How each client's model starts a subagent and waits for it. Droid's wants an account, pi has none.
TASK: dict[str, list[dict[str, Any]]] = {
    "codex": [
        {
            "tool": "spawn_agent",
            "namespace": "collaboration",
            "args": {"task_name": "builder", "message": ERRAND, "fork_turns": "none"},
        },
        {"tool": "wait_agent", "namespace": "collaboration", "args": {"timeout_ms": 20_000}},
    ],
    "gemini": [{"tool": "invoke_agent", "args": {"agent_name": "generalist", "prompt": ERRAND}}],
    "qwen": [
        {
            "tool": "agent",
            "args": {
                "description": "build it",
                "prompt": ERRAND,
                "subagent_type": "general-purpose",
                "run_in_background": False,
            },
        }
    ],
    "copilot": [
        {
            "tool": "task",
            "args": {
                "name": "builder",
                "description": "build it",
                "prompt": ERRAND,
                "agent_type": "general-purpose",
                "mode": "sync",
            },
        }
    ],
    "opencode": [{"tool": "task", "args": {"description": "build it", "prompt": ERRAND, "subagent_type": "general"}}],
    "cline": [{"tool": "spawn_agent", "args": {"systemPrompt": "You build.", "task": ERRAND}}],
}
CONFIG = {"codex": "[features]\nmulti_agent_v2 = true\n"}
SLOW = "sleep 1.0101; npm run build"  # a length that no other process sleeps
# How each client's model runs it in the background.
BACKGROUND: dict[str, dict[str, Any]] = {
    "codex": {"tool": "exec_command", "args": {"cmd": SLOW, "yield_time_ms": 250}},
    "gemini": {"tool": "run_shell_command", "args": {"command": SLOW, "description": "d", "is_background": True}},
    "qwen": {"tool": "run_shell_command", "args": {"command": SLOW, "description": "d", "is_background": True}},
    "copilot": {"tool": "bash", "args": {"command": SLOW, "description": "d", "mode": "async"}},
    "droid": {**SHELL["droid"](SLOW), "args": {**SHELL["droid"](SLOW)["args"], "fireAndForget": True}},
}


@pytest.mark.parametrize("name", list(TASK))
def test_a_subagent_and_its_parent_are_told_of_each_other_s_failures(world_of: Any, name: str) -> None:
    """The parent fails at one thing, its subagent at another; then each is about to do what the other failed at."""
    world, shell = world_of(name), SHELL[name]
    shop(world)
    setup(world)
    other, build = shell("npm run nothere"), shell("npm run build")
    requests = world.session(other, *TASK[name], build, sub=[[build], [other]], config=CONFIG.get(name, ""))
    rows = [e for e in world.events("action.finished") if e["data"]["outcome"] == "failed"]
    first, second, third, last = rows
    assert [e["data"]["text"] for e in rows] == ["npm run nothere", "npm run build", "npm run nothere", "npm run build"]
    assert [e["data"]["exit_code"] for e in rows] == [1, 2, 1, 2]
    proposed = [(e["data"]["decision"]["record"], e["data"]["call"]) for e in world.events("action.proposed")]
    assert proposed == [(first["id"], third["data"]["call"]), (second["id"], last["data"]["call"])]
    for command in ("npm run nothere", "npm run build"):
        assert any(f"projectmem: `{command}` failed" in conversation(request) for request in requests), command
    who = [(e["actor"]["session"], e["actor"]["agent"]) for e in rows]
    assert who[0] == who[3] and who[1] == who[2]
    assert (who[0] != who[1]) == (name != "gemini"), "Gemini does not say whose a call is"
    assert world.events("gate.degraded") == []


@pytest.mark.parametrize("name", OTHERS)
def test_parallel_calls_are_recorded_each_and_identical_ones_all_refused(world_of: Any, name: str) -> None:
    """Of two calls of one answer one fails; of two identical ones neither is the considered repeat of the other."""
    world, shell = world_of(name), SHELL[name]
    shop(world)
    setup(world)
    costly(world)
    build = shell("npm run build")
    requests = world.session([shell("echo boom >&2; exit 3"), shell("echo fine")], [build, build], shell("echo last"))
    rows = [e["data"] for e in world.events("action.finished") if e["actor"]["session"] not in ("a", "b", "c")]
    ran = {row["text"]: (row["outcome"], row["exit_code"] or 0) for row in rows if row["outcome"] != "rejected"}
    assert ran == {"echo boom; exit 3": ("failed", 3), "echo fine": ("ok", 0), "echo last": ("ok", 0)}
    assert {e["data"]["decision"]["rule"] for e in world.events("action.proposed")} == {"repeat.costly"}
    assert "node build.js" not in conversation(requests[-1]), "neither may run"
    assert world.events("gate.degraded") == []


@pytest.mark.parametrize("name", list(BACKGROUND))
def test_a_command_in_the_background_clears_no_failure_and_its_end_is_learned_where_it_is_told(world_of: Any, name: str) -> None:
    """It failed before, it is started in the background and fails there: the next try is spoken of."""
    world, shell = world_of(name), SHELL[name]
    shop(world)
    setup(world)
    # Copilot brings the end before the model by a call of its own, which is a step; it writes its file a moment later
    over = {"ended": [SLOW, SLOW.partition(";")[0], "build.js"], "wait_s": 1.5}
    end = [over, shell("echo end")]
    world.session(shell(SLOW), BACKGROUND[name], [over, shell("echo later")], end, end, shell("npm run build"))
    ran = [e["data"] for e in world.events("action.finished")]
    found = [(row["outcome"], row["exit_code"]) for row in ran if row["text"] == "npm run build" and row["outcome"] != "rejected"]
    started = [] if name == "codex" else [("unknown", None)]  # Codex tells nothing at all until it has ended
    ended = [] if name in ("gemini", "droid") else [("failed", 2)]
    assert found[: 1 + len(started + ended)] == [("failed", 2), *started, *ended]
    assert ("ok", 0) not in found
    spoken = [e["data"]["decision"]["verdict"] for e in world.events("action.proposed")]
    assert len(spoken) == 2 and "allow" not in spoken, "the start in the background, and the next try"
    assert world.events("gate.degraded") == []
