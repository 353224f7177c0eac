"""The MCP session in projectmem/MCP.md, line by line with the SDK's client over stdio; and the Inspector as a second client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from projectmem_logs.store import init_home

from tests.patience import PATIENCE

REPO = Path(__file__).resolve().parents[2]


def session() -> list[tuple[str, dict[str, Any], str]]:
    """(tool, arguments, expected answer) of each call, in order."""
    (block,) = re.findall(r"```mcp\n(.*?)```", (REPO / "projectmem" / "MCP.md").read_text(encoding="utf-8"), re.DOTALL)
    calls = re.split(r"^> ", block, flags=re.MULTILINE)[1:]
    return [
        (head.split(" ", 1)[0], json.loads(head.split(" ", 1)[1]), said.strip())
        for head, _, said in (c.partition("\n") for c in calls)
    ]


def like(expected: str, said: str) -> bool:
    """Whether the answer is as shown: `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in re.split(r"\.\.\.", expected))
    return re.fullmatch(pattern, said, re.DOTALL) is not None


@pytest.fixture
def command(tmp_path: Path) -> StdioServerParameters:
    """The server of an empty log, as a client starts it."""
    home = str(tmp_path / "home")
    init_home(home, 1)
    env = {**os.environ, "PROJECTMEM_GATE_HOME": home, "PYTHONPATH": os.pathsep.join(sys.path)}
    return StdioServerParameters(command=sys.executable, args=["-m", "projectmem", "mcp", "--root", str(tmp_path)], env=env)


@pytest.mark.slow
def test_the_session_on_the_page_goes_as_it_stands(command: StdioServerParameters) -> None:
    async def act() -> list[tuple[str, bool]]:
        async with Client(command) as client:
            answers = []
            for tool, arguments, _ in session():
                result = await client.call_tool(tool, arguments)
                answers.append(("\n".join(getattr(part, "text", "") for part in result.content), bool(result.is_error)))
            return answers

    steps, answers = session(), asyncio.run(act())
    assert len(steps) >= 10
    for (tool, arguments, expected), (said, failed) in zip(steps, answers, strict=True):
        assert failed == expected.startswith("! "), f"{tool} {arguments}: {said}"
        assert like(expected.removeprefix("! "), said), f"{tool} {arguments}: {said}"


def inspector() -> str:
    """The Inspector, or skip with the reason."""
    folder = os.environ.get("PROJECTMEM_CLIENTS", "")
    path = Path(folder, "inspector", "node_modules", ".bin", "mcp-inspector")
    if not folder or not path.exists() or shutil.which("node") is None:
        pytest.skip("no client inspector: set PROJECTMEM_CLIENTS to a folder with inspector/node_modules/.bin/mcp-inspector")
    return str(path)


@pytest.mark.slow
@pytest.mark.client
def test_the_inspector_reads_and_calls_everything(command: StdioServerParameters, tmp_path: Path) -> None:
    """Its command line validates what it is given; a wrong call is told in the answer, not as a broken connection."""
    path = inspector()
    home = (command.env or {})["PROJECTMEM_GATE_HOME"]

    def ask(*args: str) -> Any:
        server = [command.command, *command.args]
        settings = ["-e", f"PROJECTMEM_GATE_HOME={home}", "-e", f"PYTHONPATH={os.pathsep.join(sys.path)}"]
        env = {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run(
            [path, "--cli", *server, *settings, *args], capture_output=True, text=True, timeout=PATIENCE, env=env
        )
        assert done.stdout.strip(), done.stderr
        return json.loads(done.stdout)

    tools = ask("--method", "tools/list")["tools"]
    assert len(tools) == 7 and all(tool["outputSchema"] for tool in tools)
    note = ask("--method", "tools/call", "--tool-name", "record", "--tool-arg", "kind=note", "text=made by the inspector")
    assert note["structuredContent"]["id"] in note["content"][0]["text"]
    assert "made by the inspector" in ask("--method", "resources/read", "--uri", "projectmem://summary")["contents"][0]["text"]
    assert len(ask("--method", "resources/templates/list")["resourceTemplates"]) == 3
    assert [p["name"] for p in ask("--method", "prompts/list")["prompts"]] == ["start", "debug"]
    wrong = ask("--method", "tools/call", "--tool-name", "explain", "--tool-arg", "id=00000000")
    assert wrong["isError"] and "00000000" in wrong["content"][0]["text"]
