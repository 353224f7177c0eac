"""The proxy before servers of the official SDK that are reached over HTTP: what passes, what is said, what is recorded."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from projectmem.setup import wrapping
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow
SERVER = Path(__file__).with_name("http_server.py")
WRONG = "Error executing tool deploy: 401 Unauthorized: the token for broken is invalid"
TOKEN = "tok_9f8e7d6c5b4a39281706"


class Web:
    """A server over HTTP and the proxy before it."""

    def __init__(self, hooked: Any, folder: Path) -> None:
        self.hooked, self.folder = hooked, folder
        self.headers, self.calls, self.errors = folder / "headers.txt", folder / "calls.txt", folder / "stderr.txt"
        self.env = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.server: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def start(self, kind: str = "sessions", token: str = "") -> None:
        """Start the server and wait until it answers."""
        env = {**self.env, "PROXIED_CALLS": str(self.calls), "PROXIED_HEADERS": str(self.headers)}
        self.server = subprocess.Popen([sys.executable, str(SERVER), kind, str(self.port), token], env=env)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the server does not start")

    def stop(self) -> None:
        """End the server."""
        if self.server is not None:
            self.server.kill()
            self.server.wait()

    def wrapped(self, **entry: Any) -> StdioServerParameters:
        """How a client starts it once `--wrap` has put the proxy before the entry."""
        file = self.folder / ".mcp.json"
        file.write_text(json.dumps({"mcpServers": {"shop": {"url": self.url, **entry}}}))
        assert wrapping.wrap(file) == ["shop"]
        made = json.loads(file.read_text())["mcpServers"]["shop"]
        args = [*made["args"], "--root", str(self.hooked.root)]
        return StdioServerParameters(command=made["command"], args=args, env={**self.env, **made["env"]})

    def session(self, act: Callable[[Client], Awaitable[Any]], mode: str = "legacy", **entry: Any) -> Any:
        """What `act` returns, in a session of its own. Standard error goes to a file."""
        from mcp.client.stdio import stdio_client

        async def run() -> Any:
            with self.errors.open("a", encoding="utf-8") as log:
                async with Client(stdio_client(self.wrapped(**entry), errlog=log), mode=mode) as client:
                    return await act(client)

        return asyncio.run(run())

    def call(self, tool: str, mode: str = "legacy", **arguments: Any) -> tuple[str, bool]:
        """(text, isError) of one call in a session of its own."""

        async def act(client: Client) -> tuple[str, bool]:
            return _said(await client.call_tool(tool, arguments))

        said: tuple[str, bool] = self.session(act, mode)
        return said

    def sent(self) -> list[dict[str, str]]:
        """The headers of each request that the server got."""
        return [json.loads(line) for line in self.headers.read_text().splitlines()]

    def reached(self) -> list[str]:
        """What the server was asked to do."""
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def outcomes(self) -> list[tuple[str, str]]:
        """(tool, outcome) of the calls on record."""
        return [(e["data"]["tool"], e["data"]["outcome"]) for e in self.hooked.events("action.finished")]


def _said(result: Any) -> tuple[str, bool]:
    return "\n".join(getattr(part, "text", "") for part in result.content), bool(result.is_error)


@pytest.fixture
def web(hooked: Any, tmp_path: Path) -> Iterator[Web]:
    """A set up project and a server that is started by the test."""
    made = Web(hooked, tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize(
    ("kind", "mode"), [("sessions", "legacy"), ("sessions", "auto"), ("json", "legacy"), ("stateless", "auto")]
)
def test_a_failure_over_http_is_warned_of_in_another_session(web: Web, kind: str, mode: str) -> None:
    """As over stdio, whatever form the server answers in, in the protocols of 2025 and 2026."""
    web.start(kind)
    assert web.call("deploy", mode, target="broken") == (WRONG, True)
    said, is_error = web.call("deploy", mode, target="broken")
    assert is_error and said.startswith(f"{WRONG}\nprojectmem: `"), said
    assert web.call("deploy", mode, target="good") == ("deployed good", False)
    assert web.outcomes() == [("mcp__shop__deploy", o) for o in ("failed", "failed", "ok")]
    assert web.hooked.events("gate.degraded") == []
    assert web.errors.read_text() == ""


def test_a_refused_call_never_reaches_the_server(web: Web) -> None:
    """Four sessions waited long for the same failure: the next is refused with the reason, and nothing is posted."""
    web.start()
    for number in range(4):
        call = {"tool_name": "mcp__shop__deploy", "tool_input": {"target": "broken"}, "tool_use_id": f"t{number}"}
        web.hooked.fails(call, WRONG, f"s{number}", ms=120_000)
    said, is_error = web.call("deploy", target="broken")
    assert is_error and "Refused once" in said
    assert web.reached() == []


def test_headers_go_to_the_server_and_nowhere_else(web: Web) -> None:
    """The token of the settings comes with every request, and stands in no argument, log or message."""
    web.start(token=TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    parameters = web.wrapped(type="http", headers=headers)
    assert not any(TOKEN in word for word in parameters.args)

    async def act(client: Client) -> tuple[str, bool]:
        return _said(await client.call_tool("deploy", {"target": "broken"}))

    assert web.session(act, type="http", headers=headers) == (WRONG, True)
    sent = web.sent()
    assert len(sent) >= 3 and all(one["authorization"] == f"Bearer {TOKEN}" for one in sent)
    named = {one["mcp-session-id"] for one in sent if "mcp-session-id" in one}
    assert len(named) == 1 and "mcp-session-id" not in sent[0]
    assert sent[-1]["method"] == "DELETE", "the session is ended"
    assert TOKEN not in web.errors.read_text()
    kept = [p for p in Path(web.hooked.root).rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]
    assert kept == []


def test_a_server_that_wants_a_login_is_said_to_want_one(web: Web) -> None:
    """The client reads what is wrong and what to do, and no secret."""
    web.start(token=TOKEN)

    async def act(client: Client) -> None:
        raise AssertionError("it must not connect")

    with pytest.raises((MCPError, BaseExceptionGroup)) as caught:
        web.session(act, headers={"Authorization": "Bearer wrong_0123456789"})
    said = _texts(caught.value) + web.errors.read_text()
    assert "HTTP 401" in said and "--unwrap" in said and 'PROJECTMEM_MCP_SERVER={"headers"' in said and "--login" in said
    assert "wrong_0123456789" not in said


def _texts(error: BaseException) -> str:
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return "\n".join([str(error), *map(_texts, inner)])


def test_progress_and_parallel_calls_and_large_answers_pass(web: Web) -> None:
    """Events come while a call runs, fast calls overtake slow ones, and a million characters are whole."""
    web.start()
    seen: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    gate = web.folder / "go"

    async def act(client: Client) -> tuple[list[str], str]:
        order: list[str] = []

        async def one(name: str, tool: str, **arguments: Any) -> None:
            await client.call_tool(tool, arguments, **({"progress_callback": progress} if tool == "wait" else {}))
            order.append(name)
            if len(order) == 6:
                gate.touch()

        await asyncio.gather(one("slow", "wait", file=str(gate)), *(one("fast", "deploy", target=f"good{n}") for n in range(6)))
        return order, _said(await client.call_tool("large", {"size": 1_000_000}))[0]

    order, large = web.session(act)
    assert order[-1] == "slow" and len(order) == 7
    assert seen == [0, 1, 2]
    assert large == "é" * 1_000_000
    assert len(web.outcomes()) == 8


def test_a_server_that_was_restarted_gets_a_new_session_and_one_that_is_gone_an_error(web: Web) -> None:
    """The client goes on; while the server is away each call fails in words, and that is on record."""
    web.start()

    async def act(client: Client) -> list[Any]:
        found: list[Any] = [_said(await client.call_tool("deploy", {"target": "good"}))]
        web.stop()
        with pytest.raises(MCPError) as caught:
            await client.call_tool("deploy", {"target": "good"})
        found.append(str(caught.value))
        web.start()
        found += [_said(await client.call_tool("deploy", {"target": f"good{n}"})) for n in range(2)]
        return found

    before, gone, *after = web.session(act)
    assert before == ("deployed good", False)
    assert "cannot be reached" in gone
    assert after == [("deployed good0", False), ("deployed good1", False)]
    assert [outcome for _, outcome in web.outcomes()] == ["ok", "failed", "ok", "ok"]


def test_the_older_transport_with_a_stream_of_its_own(web: Web) -> None:
    """`"type": "sse"` in the settings."""
    web.start("sse")
    web.url = f"http://127.0.0.1:{web.port}/sse"

    async def act(client: Client) -> tuple[str, bool]:
        return _said(await client.call_tool("deploy", {"target": "broken"}))

    assert web.session(act, type="sse") == (WRONG, True)
    assert web.outcomes() == [("mcp__shop__deploy", "failed")]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_server_of_the_older_transport_is_found_out_without_being_told(web: Web, mode: str) -> None:
    """It answers the first POST with 405 (or 404): the same address is then asked for a stream, as the protocol says."""
    web.start("sse")
    web.url = f"http://127.0.0.1:{web.port}/sse"

    async def act(client: Client) -> list[tuple[str, bool]]:
        return [_said(await client.call_tool("deploy", {"target": target})) for target in ("good", "broken")]

    assert web.session(act, mode, headers={"X-Own": "mine"}) == [("deployed good", False), (WRONG, True)]
    assert web.outcomes() == [("mcp__shop__deploy", "ok"), ("mcp__shop__deploy", "failed")]
    assert {sent.get("x-own") for sent in web.sent()} == {"mine"}


def test_an_address_where_no_mcp_server_is_says_so(web: Web) -> None:
    """Neither transport answers there; what was tried is said."""
    web.start()
    web.url = f"http://127.0.0.1:{web.port}/elsewhere"

    async def act(client: Client) -> None:
        raise AssertionError("it must not connect")

    with pytest.raises((MCPError, BaseExceptionGroup)) as caught:
        web.session(act)
    said = _texts(caught.value)
    assert "no MCP server" in said and "HTTP 404 to a POST" in said and "/elsewhere" in said


def test_a_call_that_is_still_running_when_the_client_leaves_is_waited_for(web: Web) -> None:
    """A script that closes its end has its answers, as from a server over stdio."""
    web.start()
    made, gate = web.wrapped(), web.folder / "go"
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "script", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": {"name": "wait", "arguments": {"file": str(gate)}}},
    ]
    given = "".join(json.dumps(line) + "\n" for line in lines)
    pipe = subprocess.PIPE
    proxy = subprocess.Popen([made.command, *made.args], stdin=pipe, stdout=pipe, stderr=pipe, env=made.env, text=True)
    assert proxy.stdin is not None
    proxy.stdin.write(given)
    proxy.stdin.close()
    proxy.stdin = None
    while not web.reached():
        time.sleep(0.02)
    gate.touch()
    out, errors = proxy.communicate(timeout=PATIENCE)
    assert proxy.returncode == 0 and errors == ""
    answers = {m["id"]: m for m in map(json.loads, out.splitlines()) if "id" in m}
    assert answers["two"]["result"]["content"][0]["text"] == "waited"
