"""An MCP server of the SDK for the proxy's tests: tools that work, fail, crash, wait, are large, and say what they did."""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server: MCPServer[Any] = MCPServer("shop", log_level="ERROR")


def _note(text: str) -> None:
    with open(os.environ["PROXIED_CALLS"], "a", encoding="utf-8") as file:
        file.write(text + "\n")


@server.tool()
def deploy(target: str) -> str:
    """Fails where the target is broken."""
    _note(f"deploy {target}")
    if target.startswith("broken"):
        raise ToolError(f"401 Unauthorized: the token for {target} is invalid")
    return f"deployed {target}"


@server.tool()
async def wait(file: str, ctx: Context[Any, Any]) -> str:
    """Waits until there is such a file, with progress."""
    _note("wait")
    for step in range(3):
        await ctx.report_progress(step, 3)
    while not os.path.exists(file):
        await anyio.sleep(0.01)
    return "waited"


@server.tool()
def large(size: int) -> str:
    """As many characters."""
    return "é" * size


@server.tool()
def die(code: int) -> str:
    """Ends the server in the middle of a call."""
    _note("die")
    sys.stderr.write("the server says goodbye\n")
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    server.run("stdio")
