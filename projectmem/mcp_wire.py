"""Stdio for the MCP server: the SDK's own transport, and an answer to every request.

The SDK drops a line that cannot be read, and a client that waits for its answer waits for ever: half a surrogate pair in an
argument is enough. A tool call is answered by a tool error, which the model sees and can act on; anything else by an error of the
protocol. And the SDK cancels what is still being worked on when the client closes its end, so that the last answers of a
script (`... | projectmem mcp`) came only where it was slow enough: here the end waits for them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server


LAST_ANSWERS_SECONDS = 30  # after the client closed its end: the first recall loads numpy and the index
NEVER_ANSWERED = ("subscriptions/listen",)  # open until the client leaves


class Owed:
    """The requests that were passed on and are not answered yet."""

    def __init__(self) -> None:
        self._ids: set[str | int] = set()
        self._paid = anyio.Event()

    def asked(self, message: object) -> None:
        """A message from the client: a request owes it an answer, unless it takes it back."""
        if isinstance(message, JSONRPCRequest) and message.method not in NEVER_ANSWERED:
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.answered(cancelled_request_id_from_params(message.params))

    def answered(self, id: str | int | None) -> None:
        """The answer to `id` has been handed over, or is not wanted."""
        if id is not None:
            self._ids.discard(id)
        if not self._ids:
            self._paid.set()

    async def paid(self, seconds: float) -> bool:
        """Wait until nothing is owed, at most so long; whether that is so."""
        with anyio.move_on_after(seconds):
            while self._ids:
                self._paid = anyio.Event()
                await self._paid.wait()
        return not self._ids


class Replies:
    """A stream of answers that tells what it has handed over; everything else is the inner stream's."""

    def __init__(self, inner: Any, owed: Owed) -> None:
        self._inner, self._owed = inner, owed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Replies:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._inner.__aexit__(*raised)

    async def send(self, item: SessionMessage) -> None:
        """Pass it on; an answer that cannot be delivered is not waited for either."""
        try:
            await self._inner.send(item)
        finally:
            if isinstance(item.message, (JSONRPCResponse, JSONRPCError)):
                self._owed.answered(item.message.id)


class Answering:
    """A stream of messages that answers what is none and passes on the rest; it ends when the last answer is out. Everything
    else is the inner stream's."""

    def __init__(self, inner: Any, replies: Any, owed: Owed) -> None:
        self._inner, self._replies, self._owed = inner, replies, owed

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
            try:
                item = await self._inner.__anext__()
            except StopAsyncIteration:
                await self._owed.paid(LAST_ANSWERS_SECONDS)
                raise
            if not isinstance(item, Exception):
                self._owed.asked(item.message)
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
    """Serve one client over standard input and output until it closes its end and has its answers."""
    owed = Owed()
    async with stdio_server() as (read, write):
        replies = Replies(write, owed)
        await server.run(Answering(read, replies, owed), replies, server.create_initialization_options())
