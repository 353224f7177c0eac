"""The MCP server as a client sees it, in process and over stdio."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from projectmem_logs.reader import read_events
from projectmem_logs.store import init_home

from projectmem import mcp_server
from projectmem.place import Place

NOW = 1_800_000_000_000_000
REPO = Path(__file__).resolve().parents[2]
TOOLS = {"summary", "check", "recall", "record", "failures", "explain", "dispute"}
BUDGET = 500  # tokens of all tool definitions

Answer = tuple[str, bool]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home = str(tmp_path / "log")
    init_home(home, NOW)
    return Place(str(tmp_path), home)


def server(place: Place) -> Any:
    counter = iter(range(10_000))
    return mcp_server.build(place, clock=lambda: NOW + next(counter), nonce=lambda: f"n{next(counter)}")


def talk(target: Any, act: Callable[[Client], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with Client(target) as client:
            return await act(client)

    return asyncio.run(main())


async def call(client: Client, tool: str, **arguments: Any) -> Answer:
    result = await client.call_tool(tool, arguments)
    return "\n".join(getattr(part, "text", "") for part in result.content), bool(result.is_error)


def test_the_tools_are_few_and_their_definitions_small(place: Place) -> None:
    async def act(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = talk(server(place), act)
    assert {tool.name for tool in tools} == TOOLS
    assert mcp_server.definition_tokens(tools) < BUDGET
    assert all(tool.output_schema is None and tool.description for tool in tools)


def test_what_is_recorded_is_recalled_with_the_origin_agent(place: Place) -> None:
    async def act(client: Client) -> list[Answer]:
        return [
            await call(client, "record", kind="decision", text="Use uv to install packages\npip ignores the lock file"),
            await call(client, "record", kind="issue", text="Login redirects for ever"),
            await call(client, "record", kind="fix", text="Clear the cookie jar", verifier="make test"),
            await call(client, "recall", query="install packages with uv"),
            await call(client, "recall", query="sourdough bread recipe"),
            await call(client, "summary"),
        ]

    answers = talk(server(place), act)
    assert not any(failed for _, failed in answers)
    assert "Use uv to install packages" in answers[3][0]
    assert "<projectmem-n" in answers[3][0]
    assert "projectmem-n" not in answers[4][0]
    assert "Login redirects for ever" in answers[5][0]
    events = [e for e in read_events(place.home) if e["kind"] != "recall.decided"]
    assert {e["actor"]["origin"] for e in events} == {"agent"}
    assert [e["kind"] for e in events] == ["decision.recorded", "issue.opened", "fix.recorded"]
    assert events[0]["data"]["title"] == "Use uv to install packages"
    recalls = [e["data"] for e in read_events(place.home) if e["kind"] == "recall.decided"]
    assert [r["abstained"] for r in recalls] == [False, True]


def test_secrets_are_gone_before_they_are_written(place: Place) -> None:
    secret = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    talk(server(place), lambda client: call(client, "record", kind="note", text=f"the token is {secret}"))
    logged = b"".join(p.read_bytes() for p in Path(place.home).rglob("*.jsonl"))
    assert b"the token is" in logged
    assert secret.encode() not in logged


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("record", {"kind": "note", "text": "  "}, "give 1 to"),
        ("record", {"kind": "note", "text": "x" * 3000}, "3000 characters"),
        ("record", {"kind": "gossip", "text": "x"}, "kind"),
        ("record", {"kind": "fix", "text": "x", "issue": "abcdef"}, "names 0 issues"),
        ("dispute", {"id": "abcdef01", "reason": "no"}, "no recorded failure"),
        ("check", {}, "exactly one"),
    ],
)
def test_errors_reach_the_agent_with_their_text(place: Place, tool: str, arguments: dict[str, Any], says: str) -> None:
    text, failed = talk(server(place), lambda client: call(client, tool, **arguments))
    assert failed
    assert says in text


def test_an_empty_log_is_answered_in_words(place: Place) -> None:
    async def act(client: Client) -> list[Answer]:
        return [await call(client, "summary"), await call(client, "failures"), await call(client, "recall", query="anything")]

    for text, failed in talk(server(place), act):
        assert text
        assert not failed
        assert "<projectmem" not in text


def test_a_check_gives_a_verdict_and_writes_nothing(place: Place) -> None:
    text, failed = talk(server(place), lambda client: call(client, "check", command="make test"))
    assert (text, failed) == ("allow", False)
    assert list(read_events(place.home)) == []


def test_over_stdio_with_a_noisy_library_only_the_protocol_is_on_stdout(place: Place) -> None:
    program = (
        "import os, sys\n"
        "from projectmem import mcp_server\nfrom projectmem.place import Place\n"
        "real = mcp_server.Tools.summary\n"
        "def noisy(self):\n"
        "    print('stray print'); os.write(1, b'stray write\\n')\n"
        "    return real(self)\n"
        "noisy.__name__, noisy.__doc__ = 'summary', real.__doc__\n"
        "mcp_server.Tools.summary = noisy\n"
        f"mcp_server.run(Place({place.root!r}, {place.home!r}))\n"
    )
    paths = [str(REPO), *(str(REPO / name) for name in ("logs", "gate", "projections"))]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    target = StdioServerParameters(command=sys.executable, args=["-c", program], env=env)

    async def act(client: Client) -> list[Answer]:
        return [
            await call(client, "record", kind="note", text="The staging database listens on 5433"),
            await call(client, "summary"),
            await call(client, "recall", query="staging database port"),
        ]

    recorded, summary, recalled = talk(target, act)
    assert recorded[0].startswith("Recorded note as ")
    assert "listens on 5433" in summary[0]
    assert "listens on 5433" in recalled[0]
    assert not any(failed for _, failed in (recorded, summary, recalled))
