"""The proxy before a server of the official SDK, with the SDK's client: what passes, what is said, what is recorded."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from projectmem.mcp_proxy import hooked_in
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow
WRONG = "Error executing tool deploy: 401 Unauthorized: the token for broken is invalid"
SERVER = Path(__file__).with_name("proxied_server.py")


class Shop:
    """A project's log, and the server behind the proxy."""

    def __init__(self, hooked: Any, folder: Path) -> None:
        self.hooked, self.calls, self.errors = hooked, folder / "calls.txt", folder / "stderr.txt"
        self.env = {"PROXIED_CALLS": str(self.calls), "PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}

    def parameters(self, *options: str) -> StdioServerParameters:
        """How a client starts it."""
        args = ["-m", "projectmem", "proxy", *options, "--root", str(self.hooked.root), "--", sys.executable, str(SERVER)]
        return StdioServerParameters(command=sys.executable, args=args, env=self.env)

    def session(self, act: Callable[[Client], Awaitable[Any]], *options: str) -> Any:
        """What `act` returns, in a session of its own."""

        async def run() -> Any:
            async with Client(self.parameters(*options)) as client:
                return await act(client)

        return asyncio.run(run())

    def call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """(text, isError) of one call in a session of its own."""

        async def act(client: Client) -> tuple[str, bool]:
            return _said(await client.call_tool(tool, arguments))

        said: tuple[str, bool] = self.session(act)
        return said

    def reached(self) -> list[str]:
        """What the server was asked to do."""
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def outcomes(self) -> list[tuple[str, str]]:
        """(action, outcome) of the calls on record."""
        return [(e["data"]["text"], e["data"]["outcome"]) for e in self.hooked.events("action.finished")]


def _said(result: Any) -> tuple[str, bool]:
    return "\n".join(getattr(part, "text", "") for part in result.content), bool(result.is_error)


@pytest.fixture
def shop(hooked: Any, tmp_path: Path) -> Shop:
    """A set up project."""
    return Shop(hooked, tmp_path)


def test_a_failed_call_is_warned_of_in_another_session_and_silent_once_it_works(shop: Shop) -> None:
    """The warning stands behind the server's own words, which are as they were; what never failed has no word more."""
    assert shop.call("deploy", target="broken") == (WRONG, True)
    (failed,) = shop.hooked.events("action.finished")
    assert failed["data"]["outcome"] == "failed"
    assert failed["actor"]["harness"] == "mcp"
    assert failed["data"]["tool"] == "mcp__shop__deploy"
    said, is_error = shop.call("deploy", target="broken")
    assert is_error
    own, _, added = said.partition("\n")
    assert own == WRONG
    assert added.startswith("projectmem: `")
    assert "projectmem dispute" in added
    assert shop.hooked.events("action.proposed")[-1]["data"]["decision"]["record"] == failed["id"]
    assert shop.call("deploy", target="good") == ("deployed good", False)
    assert shop.hooked.events("gate.degraded") == []


def test_a_refused_call_never_reaches_the_server(shop: Shop) -> None:
    """Four sessions waited long for the same failure: the next is refused with the reason; the considered repeat runs."""
    for number in range(4):
        shop.hooked.fails(
            {"tool_name": "mcp__shop__deploy", "tool_input": {"target": "broken"}, "tool_use_id": f"t{number}"},
            WRONG,
            f"s{number}",
            ms=120_000,
        )

    async def act(client: Client) -> list[tuple[str, bool]]:
        found = [_said(await client.call_tool("deploy", {"target": "broken"}))]
        found.append(_said(await client.call_tool("deploy", {"target": "good"})))
        await asyncio.sleep(2.5)
        found.append(_said(await client.call_tool("deploy", {"target": "broken"})))
        return found

    refused, other, repeated = shop.session(act)
    assert refused[1] is True
    assert "Refused once" in refused[0]
    assert other == ("deployed good", False), "the same client goes on"
    assert repeated[0].startswith(WRONG), "the repeat reached the server"
    assert shop.reached() == ["deploy good", "deploy broken"]


def test_progress_and_parallel_calls_pass_while_others_run(shop: Shop, tmp_path: Path) -> None:
    """Nothing waits for a slow call, which ends once all others have their answers and its progress has come; each outcome is of
    its own call."""
    seen: list[float] = []
    others_done = tmp_path / "others-done"

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    async def act(client: Client) -> list[str]:
        order: list[str] = []

        async def one(name: str, tool: str, **arguments: Any) -> None:
            more = {"progress_callback": progress} if tool == "wait" else {}
            await client.call_tool(tool, arguments, **more)
            order.append(name)

        slow = asyncio.create_task(one("slow", "wait", file=str(others_done)))
        fast = [one(f"fast{number}", "deploy", target=f"{'broken' if number % 2 else 'good'}{number}") for number in range(8)]
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*fast)
            while seen != [0, 1, 2]:
                await asyncio.sleep(0.01)
        others_done.touch()
        await slow
        return order

    order = shop.session(act)
    assert order[-1] == "slow"
    rows = dict(shop.outcomes())
    assert len(rows) == 9
    assert sum(outcome == "failed" for outcome in rows.values()) == 4
    assert all(("broken" in text) == (outcome == "failed") for text, outcome in rows.items())


def test_a_call_that_took_the_client_too_long_is_a_failure(shop: Shop) -> None:
    """A timeout of the client's is told by a cancellation that says so."""

    async def act(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.call_tool("wait", {"file": "/never"}, read_timeout_seconds=1)

    shop.session(act)
    (event,) = shop.hooked.events("action.finished")
    assert (event["data"]["outcome"], event["data"]["class"]) == ("failed", "timeout")


def test_large_answers_pass_whole(shop: Shop) -> None:
    """A million characters of two bytes."""
    assert shop.call("large", size=1_000_000) == ("é" * 1_000_000, False)
    assert [outcome for _, outcome in shop.outcomes()] == ["ok"]


def test_a_server_that_dies_over_a_call_is_told_and_recorded(shop: Shop) -> None:
    """The client gets an error in place of silence; the next session is warned."""

    async def act(client: Client) -> str:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("die", {"code": 7})
        return str(caught.value)

    assert "exit code 7" in shop.session(act)
    assert [outcome for _, outcome in shop.outcomes()] == ["failed"]
    shop.session(act)
    assert len(shop.hooked.events("action.proposed")) == 1


_DYING = """import json, os, sys, time
for line in sys.stdin:
    id = json.loads(line)["id"]
    os.write(1, {said})
    os.close(1)
    {then}
"""


@pytest.mark.parametrize(
    ("said", "then", "why"),
    [
        ('b\'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"ty\' % id', "os._exit(4)", "ended before it answered (exit code 4)"),
        ("b''", "time.sleep(600)", "closed its output before it answered"),
        ("b'half a line'", "time.sleep(600)", "closed its output before it answered"),
    ],
)
def test_a_server_that_breaks_off_or_falls_silent_is_told_and_recorded(hooked: Any, said: str, then: str, why: str) -> None:
    """The client's end stays open: it must get an error for its call, whole, and not wait for ever."""
    code = _DYING.replace("{said}", said).replace("{then}", then)
    argv = [sys.executable, "-m", "projectmem", "proxy", "--root", str(hooked.root), "--", sys.executable, "-c", code]
    env = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as proxy:
        assert proxy.stdin is not None and proxy.stdout is not None
        proxy.stdin.write(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":{}}}\n')
        proxy.stdin.flush()
        answers = [json.loads(line) for line in proxy.stdout.read().splitlines() if line.endswith(b"}")]
        assert proxy.wait(PATIENCE) != 0
    assert [(answer["id"], why in answer["error"]["message"]) for answer in answers] == [(5, True)]
    assert [event["data"]["outcome"] for event in hooked.events("action.finished")] == ["failed"]


def test_a_project_without_a_log_is_passed_through(tmp_path: Path, hooked: Any) -> None:
    """Nothing is made, nothing is said."""
    bare = tmp_path / "bare"
    (bare / ".git").mkdir(parents=True)
    shop = Shop(hooked, tmp_path)
    hooked.root = bare
    assert shop.call("deploy", target="broken") == (WRONG, True)
    assert [path.name for path in bare.rglob("*")] == [".git"]


def test_a_call_that_the_client_s_hook_was_asked_about_is_the_hook_s(hooked: Any) -> None:
    """Whichever way the hook went: the quick one, where nothing is on record, and the one that warns. Each note is one call's,
    and none once that call has its outcome."""
    from projectmem.hook.entry import respond

    def codex(event: str, id: str, **more: Any) -> Any:
        base = {"session_id": "s", "cwd": str(hooked.root), "hook_event_name": event, "model": "m", "transcript_path": ""}
        call = {"tool_name": "mcp__shop__deploy", "tool_input": {"target": "broken"}, "tool_use_id": id}
        return respond(["codex", event], json.dumps({**base, **call, **more}).encode(), time.time_ns() // 1000)

    def asked(target: str = "broken", client: str = "codex-mcp-client") -> bool:
        return hooked_in(str(hooked.root))("", "deploy", {"target": target}, client)

    hooked.run("ls")  # makes the snapshot that the quick way asks
    assert not asked()
    codex("PreToolUse", "one")
    same = hooked_in(str(hooked.root))
    assert same("", "deploy", {"target": "broken"}, "codex-mcp-client")
    assert not same("", "deploy", {"target": "broken"}, "codex-mcp-client"), "a second call has a note of its own"
    assert asked() and not asked("other") and not asked(client="opencode")
    codex("PostToolUse", "one", tool_response={"content": [{"type": "text", "text": WRONG}], "isError": True})
    assert not asked(), "that call has ended"
    assert "projectmem" in json.dumps(codex("PreToolUse", "two"))
    assert asked()
