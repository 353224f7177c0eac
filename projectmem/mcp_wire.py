"""Stdio for the MCP server: the SDK's own transport, and an answer to every line that cannot be read.

The SDK drops such a line, and a client that waits for its answer waits for ever: half a surrogate pair in an argument is enough.
A tool call is answered by a tool error, which the model sees and can act on; anything else by an error of the protocol.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCResponse
from pydantic import ValidationError

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server


class Answering:
    """A stream of messages that answers what is none and passes on the rest; everything else is the inner stream's."""

    def __init__(self, inner: Any, replies: Any) -> None:
        self._inner, self._replies = inner, replies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Answering:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._inner.__aexit__(*raised)

    def __aiter__(self) -> Answering:
        return self

    async def __anext__(self) -> Any:
        while True:
            item = await self._inner.__anext__()
            if not isinstance(item, Exception):
                return item
            answer = reply_to(item)
            if answer is not None:
                await self._replies.send(SessionMessage(answer))

    async def receive(self) -> Any:
        """The next message."""
        return await self.__anext__()


def reply_to(error: Exception) -> JSONRPCError | JSONRPCResponse | None:
    """What to answer to a line that could not be read; None where nobody waits for an answer (a blank line, a notification)."""
    line = _line(error)
    if not line.strip():
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "this line is not JSON: send one JSON-RPC message a line")
    id = found.get("id") if isinstance(found, dict) else None
    id = id if isinstance(id, (str, int)) and not isinstance(id, bool) and not _halves(id) else None
    if not _halves(found):
        if isinstance(found, dict) and "id" not in found and isinstance(found.get("method"), str):
            return None
        return _error(id, INVALID_REQUEST, "this is JSON, but no JSON-RPC request: it needs jsonrpc, id, method and params")
    why = "the arguments hold half a surrogate pair (\\ud800 to \\udfff alone): send whole characters and try again"
    if id is not None and isinstance(found, dict) and found.get("method") == "tools/call":
        result = {"content": [{"type": "text", "text": why}], "isError": True}
        return JSONRPCResponse(jsonrpc="2.0", id=id, result=result)
    return _error(id, PARSE_ERROR, why)


def _line(error: Exception) -> str:
    """The line as it came, as the validation's own error holds it."""
    if isinstance(error, ValidationError):
        given = error.errors(include_url=False)[0].get("input")
        if isinstance(given, str):
            return given
        if given is not None:
            return json.dumps(given, default=str)
    return "?"


def _halves(value: object) -> bool:
    """Whether a text in it cannot be encoded."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _error(id: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))


async def serve(server: Server[Any]) -> None:
    """Serve one client over standard input and output until it closes its end."""
    async with stdio_server() as (read, write):
        await server.run(Answering(read, write), write, server.create_initialization_options())
