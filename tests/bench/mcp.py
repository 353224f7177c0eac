"""How long an MCP client waits for the answer to `initialize`, against the bare SDK in the same run; and the first calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from projectmem_logs.store import init_home

ROUNDS = 12
BAR = 1.5
NOW = 1_800_000_000_000_000
PROTOCOL = "2025-06-18"
BARE = "from mcp.server.mcpserver import MCPServer; MCPServer('bare').run('stdio')"
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


class Talk:
    """A server over stdio, spoken to line by line."""

    def __init__(self, command: list[str], home: str = "") -> None:
        env = {**os.environ, **({"PROJECTMEM_GATE_HOME": home} if home else {})}
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )
        self.n = 0

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while "id" not in (answer := json.loads(self.process.stdout.readline())):
            continue
        return dict(answer)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request by method."""
        self.n += 1
        return self.ask({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params})

    def close(self) -> None:
        """Close its input and wait."""
        self.process.communicate()


def hello(command: list[str], home: str = "") -> float:
    """Seconds from the start of the process to its answer to `initialize`."""
    talk = Talk(command, home)
    try:
        assert "result" in talk.ask(HELLO)
        return time.perf_counter() - talk.begun
    finally:
        talk.close()


def _calls(command: list[str], home: str) -> str:
    talk = Talk(command, home)
    try:
        talk.ask(HELLO)
        assert talk.process.stdin is not None
        talk.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        took = []
        for name, arguments in (
            ("summary", {}),
            ("summary", {}),
            ("recall", {"query": "npm build"}),
            ("recall", {"query": "npm build"}),
        ):
            begun = time.perf_counter()
            answer = talk.call("tools/call", name=name, arguments=arguments)
            assert not answer["result"].get("isError"), answer
            took.append(f"{name} {(time.perf_counter() - begun) * 1e3:.0f} ms")
        return "calls, in turn: " + ", ".join(took)
    finally:
        talk.close()


def main() -> list[str]:
    """The lines of the report."""
    with tempfile.TemporaryDirectory() as folder:
        home = str(Path(folder, "home"))
        init_home(home, NOW)
        ours = [sys.executable, "-m", "projectmem", "mcp", "--root", folder]
        bare = [sys.executable, "-c", BARE]
        times: dict[str, list[float]] = {"bare": [], "ours": []}
        for _ in range(ROUNDS):
            times["bare"].append(hello(bare))
            times["ours"].append(hello(ours, home))
        floor, here = median(times["bare"]) * 1e3, median(times["ours"]) * 1e3
        first = f"initialize: {here:.0f} ms, bare SDK {floor:.0f} ms -> {here / floor:.2f}x (bar {BAR})"
        return [first, _calls(ours, home)]


if __name__ == "__main__":
    print("\n".join(main()))
