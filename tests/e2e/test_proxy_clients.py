"""The proxy between real clients and a server: Claude Code with and without its hooks, and the Inspector."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from projectmem.setup import wrapping
from projectmem.setup.init import init, uninit
from tests.patience import PATIENCE

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("client")]

SERVER = Path(__file__).resolve().parents[1] / "contract" / "proxied_server.py"
TOOL = "mcp__shop__deploy"
DEPLOY = {"tool": TOOL, "args": {"target": "broken"}}
WAIT = {"tool": "Bash", "args": {"command": "sleep 5", "description": "until the server is connected"}}


def _config(world: Any) -> list[str]:
    """Claude Code's words for a server behind the proxy, as `proxy --wrap` writes it."""
    file = world.folder / "mcp.json"
    env = {"PROXIED_CALLS": str(world.folder / "calls.txt"), "PYTHONPATH": os.pathsep.join(sys.path)}
    file.write_text(json.dumps({"mcpServers": {"shop": {"command": sys.executable, "args": [str(SERVER)], "env": env}}}))
    assert wrapping.wrap(file) == ["shop"]
    return ["--mcp-config", str(file)]


def _play(world: Any, argv: list[str]) -> str:
    """What the model read of a call of the tool."""
    requests = world.session(WAIT, DEPLOY, argv=argv, allow=f"Bash,{TOOL}")
    return json.dumps(requests[-1]["messages"][-1], ensure_ascii=False)


@pytest.mark.parametrize("hooks", [False, True])
def test_claude_code_learns_of_a_server_s_failure_and_is_told_once(world: Any, hooks: bool) -> None:
    """Without hooks the proxy does it all; with them they do, and the proxy keeps still: one event of each call."""
    init(str(world.repo), now=time.time_ns() // 1000, import_sessions=False, harnesses=["claude-code"] if hooks else [])
    argv = _config(world)
    first = _play(world, argv)
    assert "401 Unauthorized" in first
    assert "projectmem" not in first
    mine = [e for e in world.events("action.finished") if e["data"]["tool"] == TOOL]
    assert [(e["data"]["outcome"], e["actor"]["harness"]) for e in mine] == [("failed", "claude-code" if hooks else "mcp")]
    second = _play(world, argv)
    assert second.count("Wrong? `projectmem dispute") == 1, second
    assert len(world.events("action.proposed")) == 1
    assert world.events("action.proposed")[0]["data"]["decision"]["record"] == mine[0]["id"]
    assert world.events("gate.degraded") == []


# How each client's model calls the server's tool.
CALLED: dict[str, dict[str, Any]] = {
    "codex": {"tool": "deploy", "namespace": "mcp__shop"},
    "gemini": {"tool": "mcp_shop_deploy"},
    "qwen": {"tool": TOOL},
    "copilot": {"tool": "shop-deploy"},
    "opencode": {"tool": "shop_deploy"},
    "droid": {"tool": "shop___deploy"},
}
# Where it keeps its servers, and what an entry needs besides.
KEPT: dict[str, tuple[str, dict[str, Any]]] = {
    "gemini": (".gemini/settings.json", {"trust": True}),
    "qwen": (".qwen/settings.json", {"trust": True}),
    "copilot": (".copilot/mcp-config.json", {"type": "local", "tools": ["*"]}),
    "droid": (".factory/mcp.json", {"type": "stdio"}),
}


def _kept(world: Any) -> dict[str, str]:
    """Put the server, behind the proxy, where this client looks for it; what its sessions need besides."""
    env = {"PROXIED_CALLS": str(world.folder / "calls.txt"), "PYTHONPATH": os.pathsep.join(sys.path)}
    entry: dict[str, Any] = {"command": sys.executable, "args": [str(SERVER)], "env": env}
    if world.harness == "codex":
        lines = [f"{key} = {json.dumps(entry[key])}" for key in ("command", "args")]
        variables = [f"{key} = {json.dumps(value)}" for key, value in env.items()]
        file = world.folder / "config.toml"
        file.write_text("\n".join(["[mcp_servers.shop] # mine", *lines, "[mcp_servers.shop.env]", *variables, ""]))
        assert wrapping.wrap(file) == ["shop"]
        return {"config": file.read_text()}
    place, more = KEPT.get(world.harness, ("", {}))
    file = world.own / place
    servers: dict[str, Any] = {"mcpServers": {"shop": {**entry, **more}}}
    if world.harness == "opencode":
        file = world.repo / "opencode.json"
        command = [entry["command"], *entry["args"]]
        servers = {"mcp": {"shop": {"type": "local", "command": command, "environment": env, "enabled": True}}}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(servers))
    assert wrapping.wrap(file) == ["shop"]
    return {}


@pytest.mark.parametrize("name", CALLED)
def test_a_client_with_hooks_and_the_proxy_records_each_call_once_and_is_told_once(world_of: Any, name: str) -> None:
    """The hook speaks and records, in each client's own spelling of the tool; without the hook the proxy does."""
    world = world_of(name)
    more = _kept(world)
    init(str(world.repo), now=time.time_ns() // 1000, import_sessions=False, harnesses=[name])
    good, broken = ({**CALLED[name], "args": {"target": target}} for target in ("good", "broken"))
    before = [{"tool": "exec_command", "args": {"cmd": "sleep 6"}}] if name == "codex" else []  # it does not wait for servers

    def recorded() -> list[tuple[str, str]]:
        found = [e for e in world.events("action.finished") if "deploy" in e["data"]["text"]]
        return [(e["actor"]["harness"], e["data"]["outcome"]) for e in found]

    world.session(*before, good, broken, broken, **more)
    assert recorded() == [(name, "ok"), (name, "failed"), (name, "failed")]
    world.session(*before, broken, **more)
    assert {e["actor"]["harness"] for e in world.events("action.proposed")} == {name}
    assert len(recorded()) == 4
    uninit(str(world.repo))
    world.session(*before, good, **more)
    assert recorded()[4:] == [("mcp", "ok")]
    assert (world.folder / "calls.txt").read_text().splitlines() == [f"deploy {t}" for t in ("good", *["broken"] * 3, "good")]
    assert world.events("gate.degraded") == []


@pytest.mark.parametrize("name", ["codex", "gemini", "copilot", "opencode"])
def test_a_server_s_failure_met_in_claude_code_speaks_in(world_of: Any, name: str) -> None:
    """Each client's hook calls server and tool by one name, whatever the client's own is."""
    world = world_of("claude")
    init(str(world.repo), now=time.time_ns() // 1000, import_sessions=False, harnesses=["claude-code", name])
    _play(world, _config(world))
    (failed,) = [e for e in world.events("action.finished") if e["data"]["tool"] == TOOL]
    world.use(name)
    more = _kept(world)
    before = [{"tool": "exec_command", "args": {"cmd": "sleep 6"}}] if name == "codex" else []
    world.session(*before, {**CALLED[name], "args": DEPLOY["args"]}, **more)
    proposed = [e for e in world.events("action.proposed") if e["actor"]["harness"] == name]
    assert [e["data"]["decision"]["record"] for e in proposed] == [failed["id"]]
    assert world.events("gate.degraded") == []


def test_the_inspector_sees_the_server_behind_the_proxy(tmp_path: Path) -> None:
    """A client that validates what it is given; the session is another one each time."""
    path = Path(os.environ.get("PROJECTMEM_CLIENTS", ""), "inspector", "node_modules", ".bin", "mcp-inspector")
    if not os.environ.get("PROJECTMEM_CLIENTS") or not path.exists() or shutil.which("node") is None:
        pytest.skip("no client inspector: set PROJECTMEM_CLIENTS to a folder with inspector/node_modules/.bin/mcp-inspector")
    (tmp_path / "repo").mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)
    init(str(tmp_path / "repo"), now=time.time_ns() // 1000, import_sessions=False, harnesses=[])

    def ask(*args: str) -> Any:
        server = [sys.executable, "-m", "projectmem", "proxy", "--root", str(tmp_path / "repo"), "--name", "shop", "--"]
        settings = ["-e", f"PROXIED_CALLS={tmp_path / 'calls'}", "-e", f"PYTHONPATH={os.pathsep.join(sys.path)}"]
        argv = [str(path), "--cli", *server, sys.executable, str(SERVER), *settings, *args]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "HOME": str(tmp_path)})
        assert done.stdout.strip(), done.stderr
        return json.loads(done.stdout)

    assert {tool["name"] for tool in ask("--method", "tools/list")["tools"]} == {"deploy", "wait", "large", "die"}
    call = ("--method", "tools/call", "--tool-name", "deploy", "--tool-arg", "target=broken")
    first, second = ask(*call), ask(*call)
    assert first["isError"] and len(first["content"]) == 1
    assert second["isError"] and second["content"][:1] == first["content"]
    assert second["content"][1]["text"].startswith("projectmem: `shop deploy")
