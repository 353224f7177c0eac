"""The MCP server as a client sees it, in process and over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import JSONRPCNotification, JSONRPCRequest
from projectmem_logs import files
from projectmem_logs.reader import read_events
from projectmem_logs.store import init_home

from projectmem import mcp_server, mcp_wire
from projectmem.installed import version
from projectmem.place import Place
from tests.patience import PATIENCE

NOW = 1_800_000_000_000_000
REPO = Path(__file__).resolve().parents[2]
TOOLS = {"summary", "check", "recall", "record", "failures", "explain", "dispute"}
BUDGET = 600  # tokens of all tool definitions

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
    assert len(tools) <= 8
    assert mcp_server.definition_tokens(tools) <= BUDGET
    assert all(tool.output_schema and tool.description for tool in tools)
    hints = {tool.name: tool.annotations for tool in tools}
    assert {name for name, hint in hints.items() if hint and hint.read_only_hint} == TOOLS - {"record", "dispute"}
    assert hints["record"] and hints["record"].destructive_hint is False and hints["dispute"] is None


def test_a_note_that_contradicts_is_held_and_the_agent_hears_it(place: Place) -> None:
    async def steps(client: Any) -> Any:
        await call(client, "record", kind="note", text="The staging database listens on port 5433")
        return await call(client, "record", kind="note", text="The staging database listens on port 5432")

    assert "held until a person has decided" in str(talk(server(place), steps))


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
        ("record", {"kind": "note", "text": "x" * 5_000_000}, "5000000 characters"),
        ("recall", {"query": "x" * 5_000_000}, "5000000 characters"),
        ("recall", {"query": "x", "k": 0}, "greater than or equal to 1"),
        ("recall", {"question": "x"}, "it takes query, k"),
        ("recall", {}, "query: field required"),
        ("explain", {"id": "00000000-0000-7000-8000-000000000000"}, "00000000"),
        ("explain", {"id": "no such\nthing"}, "no such"),
        ("summary", {"about": "cccccccc"}, "no issue is called"),
        ("summary", {"about": "3 fortnights"}, "not a length of time"),
    ],
)
def test_errors_reach_the_agent_with_their_text(place: Place, tool: str, arguments: dict[str, Any], says: str) -> None:
    text, failed = talk(server(place), lambda client: call(client, tool, **arguments))
    assert failed
    assert says in text
    assert len(text) < 700 and "Traceback" not in text and "pydantic" not in text


def test_an_empty_log_is_answered_in_words(place: Place) -> None:
    async def act(client: Client) -> list[Answer]:
        return [
            await call(client, "summary"),
            await call(client, "summary", about="2d"),
            await call(client, "summary", about="src/a.py"),
            await call(client, "failures"),
            await call(client, "recall", query="anything"),
            await call(client, "recall", query="データベースの接続に失敗しました"),
            await call(client, "recall", query="🙂 ؟"),
        ]

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
        "def noisy(self, about: str = ''):\n"
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


def test_every_answer_is_text_and_the_same_as_data(place: Place) -> None:
    """By the schema that the client was given (it checks); a block's ids are what its lines cite."""

    async def act(client: Client) -> list[Any]:
        await client.list_tools()
        made = await client.call_tool("record", {"kind": "decision", "text": "Use uv to install packages"})
        answers = [made, await client.call_tool("explain", {"id": made.structured_content["id"]})]
        for tool, arguments in (("summary", {}), ("recall", {"query": "install packages with uv"}), ("check", {"command": "ls"})):
            answers.append(await client.call_tool(tool, arguments))
        return answers

    made, explained, summary, recalled, checked = talk(server(place), act)
    id = made.structured_content["id"]
    assert id in made.content[0].text
    for answer in (explained, summary, recalled):
        assert answer.structured_content["text"] == answer.content[0].text
    for answer in (summary, recalled):
        assert answer.structured_content["ids"] == [id[-8:]]
    assert checked.structured_content == {"verdict": "allow", "reason": "", "record": ""}


def test_resources_and_prompts_give_the_summaries(place: Place) -> None:
    async def act(client: Client) -> list[Any]:
        await call(client, "record", kind="note", text="src/shop/cart.py rounds half to even")
        await call(client, "record", kind="issue", text="Cart totals differ")
        issue = (await client.call_tool("summary", {})).content[0].text
        uris = [str(r.uri) for r in (await client.list_resources()).resources]
        templates = [t.uri_template for t in (await client.list_resource_templates()).resource_templates]
        read = [
            (await client.read_resource(uri)).contents[0].text
            for uri in ("projectmem://summary", "projectmem://path/src/shop/cart.py", "projectmem://period/1d")
        ]
        prompts = [p.name for p in (await client.list_prompts()).prompts]
        start = (await client.get_prompt("start", {})).messages[0].content.text
        debug = (await client.get_prompt("debug", {"error": "cart.py rounds wrongly"})).messages[0].content.text
        with pytest.raises(Exception, match="no issue is called"):
            await client.read_resource("projectmem://issue/cccccccc")
        return [issue, uris, templates, read, prompts, start, debug]

    _, uris, templates, read, prompts, start, debug = talk(server(place), act)
    assert uris == ["projectmem://summary"] and len(templates) == 3
    assert all("rounds half to even" in text for text in read)
    assert "Cart totals differ" in read[2] and "Cart totals differ" not in read[1]
    assert prompts == ["start", "debug"]
    assert "rounds half to even" in start and "This is failing" in debug


def test_what_is_asked_wrongly_is_said_in_one_line(place: Place) -> None:
    """A prompt without its argument, an unknown prompt, a resource that cannot be: the code of wrong parameters, no traceback."""

    async def act(client: Client) -> list[Any]:
        asked = (
            client.get_prompt("debug", {}),
            client.get_prompt("debug", {"error": "  "}),
            client.get_prompt("gossip", {}),
            client.read_resource("projectmem://period/2x"),
            client.read_resource("projectmem://issue/cccccccc"),
        )
        return [client.server_info.version, *await asyncio.gather(*asked, return_exceptions=True)]

    number, *errors = talk(server(place), act)
    assert number == version()
    assert [error.code for error in errors] == [-32602] * 5
    assert [str(errors[n]) for n in (0, 1)] == ["debug needs `error`: the text that fails"] * 2
    assert str(errors[2]) == "no prompt is called `gossip`: there are start, debug"


def test_parallel_calls_are_safe_and_lose_nothing(place: Place) -> None:
    """Reads, writes and recalls at once, each on a thread of its own."""

    async def act(client: Client) -> list[Any]:
        calls = []
        for n in range(8):
            calls.append(call(client, "record", kind="note", text=f"job {n} listens on port {5000 + n}"))
            calls.append(call(client, "recall", query=f"job {n} port"))
            calls.append(call(client, "summary"))
            calls.append(call(client, "failures"))
        return await asyncio.gather(*calls)

    answers = talk(server(place), act)
    assert not [text for text, failed in answers if failed or "Note:" in text]
    events = list(read_events(place.home))
    assert sorted(e["data"]["text"] for e in events if e["kind"] == "note.recorded") == [
        f"job {n} listens on port {5000 + n}" for n in range(8)
    ]
    assert sum(e["kind"] == "recall.decided" for e in events) == 8


def test_what_a_busy_log_keeps_for_later_is_no_error(place: Place) -> None:
    """An agent that hears of an error writes it again, and then it is there twice."""
    home = Path(place.home)

    async def act(client: Client) -> list[Answer]:
        await call(client, "record", kind="note", text="the port is 5000")
        (stream,) = (home / "log").iterdir()
        held = files.lock(str(home / "locks" / f"{stream.name}.lock"), 0)
        assert held is not None
        try:
            busy = [
                await call(client, "record", kind="note", text="deploys go by hand"),
                await call(client, "recall", query="port"),
            ]
        finally:
            files.unlock(held)
        return [*busy, await call(client, "record", kind="note", text="tests need a database")]

    kept, recalled, after = talk(server(place), act)
    assert not kept[1] and "is kept" in kept[0] and "not recorded" not in recalled[0] and not after[1]
    events = list(read_events(place.home))
    assert [e["data"]["text"] for e in events if e["kind"] == "note.recorded"] == [
        "the port is 5000",
        "deploys go by hand",
        "tests need a database",
    ]
    assert sum(e["kind"] == "recall.decided" for e in events) == 1


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def program(place: Place, prepare: str = "") -> str:
    """A server of its own."""
    return (
        f"from projectmem import mcp_server\nfrom projectmem.place import Place\n{prepare}\n"
        f"mcp_server.run(Place({place.root!r}, {place.home!r}))"
    )


PATHS = [str(REPO), *(str(REPO / name) for name in ("logs", "gate", "projections"))]
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}


def served(place: Place, lines: list[bytes], prepare: str = "") -> list[dict[str, Any]]:
    """What the server answers to raw lines after the handshake; its input ends with the last of them."""
    hello = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}).encode()
    ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    last = b'{"jsonrpc":"2.0","id":"last","method":"ping"}'
    done = subprocess.run(
        [sys.executable, "-c", program(place, prepare)],
        input=b"\n".join([hello, ready, *lines, last]) + b"\n",
        capture_output=True,
        env=ENV,
        timeout=PATIENCE,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0]["id"] == 0 and any(a.get("id") == "last" for a in answers)
    return [a for a in answers[1:] if a.get("id") != "last"]


@pytest.mark.skipif(sys.platform == "win32", reason="a console's Ctrl-C goes to all of its processes")
def test_ctrl_c_ends_it_though_the_input_stays_open(place: Place) -> None:
    """A person tries it at a terminal: the thread that reads standard input must not keep the process."""
    server = subprocess.Popen([sys.executable, "-c", program(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
    assert server.stdin and server.stdout
    with server:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}).encode() + b"\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 0
        server.send_signal(signal.SIGINT)
        try:
            assert server.wait(60) == -signal.SIGINT
        finally:
            server.kill()


def test_a_line_that_cannot_be_read_is_answered(place: Place) -> None:
    """Half a surrogate pair, no JSON, no request: an error each, with the id where there is one; and the server goes on."""
    asked = rb'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"recall","arguments":{"query":"a \ud800 b"}}}'
    listed = rb'{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"cursor":"\udfff"}}'
    lines = [
        asked,
        listed,
        b"not json",
        b"[1, 2]",
        b'{"jsonrpc":"2.0","id":9}',
        b"",
        b'{"id": "\\ud800"}',
        b"\xff\xfe{",
        b"[" * 100_000,
    ]
    answers = served(place, lines)
    by_id = {a["id"]: a for a in answers if a["id"] is not None}
    assert by_id[7]["result"]["isError"] and "whole characters" in by_id[7]["result"]["content"][0]["text"]
    assert "whole characters" in by_id[8]["error"]["message"]
    assert by_id[9]["error"]["code"] == -32600
    assert len([a for a in answers if a["id"] is None and "error" in a]) == 5
    assert len(answers) == 8
    assert list(read_events(place.home)) == []


def test_what_is_still_worked_on_when_the_input_ends_is_answered(place: Place) -> None:
    """A script that writes its calls and closes its end gets every answer, however long one takes."""
    slow = """
import time
from projectmem import mcp_tools
real = mcp_tools.Tools.failures
def failures(self, limit: int = 10):
    time.sleep(1)
    return real(self, limit)
mcp_tools.Tools.failures = failures
"""
    calls = [
        json.dumps(
            {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "failures", "arguments": {"limit": n}}}
        ).encode()
        for n in (1, 2, 3)
    ]
    answers = served(place, calls, slow)
    assert sorted(a["id"] for a in answers) == [1, 2, 3]
    assert all(a["result"]["content"][0]["text"] == "No failure stands." for a in answers)


def test_nothing_is_owed_for_what_was_taken_back() -> None:
    """A cancelled request is never answered by the SDK, so the end does not wait for it."""
    asked = JSONRPCRequest(jsonrpc="2.0", id=5, method="tools/call", params={})
    back = JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 5})

    async def owed(*messages: Any) -> bool:
        debt = mcp_wire.Owed()
        for message in messages:
            debt.asked(message)
        return await debt.paid(0)

    assert asyncio.run(owed()) and asyncio.run(owed(asked, back)) and not asyncio.run(owed(asked))


def test_nothing_heavy_is_loaded_before_the_client_has_its_answer(place: Place) -> None:
    """What costs is imported by the call that needs it."""
    program = (
        "import sys\nfrom projectmem import mcp_server\nfrom projectmem.place import Place\n"
        f"server = mcp_server.build(Place({place.root!r}, {place.home!r}), clock=lambda: 1, nonce=lambda: 'n')\n"
        "print(' '.join(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    paths = [str(REPO), *(str(REPO / name) for name in ("logs", "gate", "projections"))]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, env=env, check=True, text=True).stdout.split()
    assert "mcp" in loaded
    assert not {"numpy", "faiss", "duckdb", "tree_sitter", "typer", "sqlite3"} & set(loaded)


@pytest.mark.slow
def test_without_a_log_the_server_starts_and_says_what_to_run(tmp_path: Path) -> None:
    """A client would else say only that the connection was closed. Once `init` was run the same server answers."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PROJECTMEM_GATE_HOME", None)
    words = ["-m", "projectmem", "mcp", "--root", str(tmp_path)]

    async def act(client: Client) -> tuple[Any, ...]:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        before = [await call(client, "summary"), await call(client, "check", command="ls")]
        try:
            await client.read_resource("projectmem://summary")
        except MCPError as exc:
            before.append((str(exc), True))
        init_home(str(tmp_path / ".git" / "projectmem"), NOW)
        return str(client.instructions), listed, before, await call(client, "summary")

    params = StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=str(tmp_path))
    instructions, listed, before, after = talk(params, act)
    assert listed == TOOLS and "not set up here" in instructions
    assert len(before) == 3
    for text, wrong in before:
        assert wrong and "run `projectmem init`" in text and str(tmp_path) in text
    assert after == ("Nothing is recorded yet.", False)
