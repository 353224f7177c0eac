"""An MCP server that is reached over HTTP, served over stdio: `python -m projectmem.mcp_bridge`, which the proxy starts.

The official SDK's client transports do the HTTP (sessions, event streams and their resumption, redirects within the origin).
Besides, here: the headers that the protocol of 2026 wants of each message, an answer in words where the server cannot be reached
or wants a login, the older transport where the server has no other, and a new session where it has lost the old one, as it does
when it is restarted. Nothing listens.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared import inbound
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import PROTOCOL_VERSION_META_KEY, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from projectmem import mcp_wire
from projectmem import place as places
from projectmem.errors import BadInputError
from projectmem.mcp_address import Address, address_of
from projectmem.mcp_login import auth_of

CONNECT_SECONDS = 30.0  # how long an answer takes is the client's business: it has its own limits
NEVER = 10.0**9
GONE, LOGIN = 404, (401, 403)
NO_POST = (
    400,
    404,
    405,
)  # what a server of the older transport says to the first POST (MCP, Transports, Backwards compatibility)
UNREACHABLE = -32000
_ONCE = "let a person run `projectmem proxy --login --url URL` once"


class Client(httpx2.AsyncClient):
    """The HTTP client of one server, whose failures are answers.

    address   for words about it, without what may be secret
    opening   the body of the client's `initialize`, kept to ask for a new session;  headers_of_opening  what it was sent with
    renewed   the session that stands for the one that the transport still names, "" while that is good
    older     set once the server turned out to have the older transport alone: the request that showed it is never answered
    """

    def __init__(self, address: Address) -> None:
        super().__init__(headers=address.headers, timeout=httpx2.Timeout(CONNECT_SECONDS, read=None), auth=auth_of(address))
        self.address, self.renewed = address, ""
        self._opening: httpx2.Request | None = None
        self._renewing, self.older = anyio.Lock(), anyio.Event()

    async def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """As the base class, but what went wrong is a response with a JSON-RPC error that says it."""
        session = self._named(request)
        try:
            response = await super().send(request, **more)
            if response.status_code == GONE and session and request.method == "POST" and await self._renew(session):
                await response.aclose()
                self._named(request)
                response = await super().send(request, **more)
        except OAuthFlowError:
            return _answer(request, LOGIN[0], f"{self.address.shown} wants a login: {_ONCE}")
        except httpx2.TransportError as exc:
            why = f"{self.address.shown} cannot be reached ({exc or type(exc).__name__})"
            return _answer(request, httpx2.codes.BAD_GATEWAY, why)
        if response.status_code in NO_POST and not session and request.method == "POST" and _opens(request.content):
            response = await self._without_post(request, response)
        if response.status_code in LOGIN and not await _is_message(response):
            await response.aclose()
            return _answer(request, response.status_code, _unlet(self.address, response.status_code))
        return response

    async def _without_post(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """What becomes of the first message where the server takes no POST: a server of the older transport opens a stream to a
        GET of the same address. Else the answer in words, or the server's own where that is one."""
        if "json" in response.headers.get("content-type", "") and response.status_code == NO_POST[0]:
            return response
        await response.aclose()
        accepted = {"accept": "text/event-stream"}
        opened = await super().send(self.build_request("GET", request.url, headers=accepted), stream=True)
        streams = opened.status_code < 300 and "text/event-stream" in opened.headers.get("content-type", "")
        await opened.aclose()
        if streams:
            self.older.set()
            await anyio.sleep_forever()
        why = f"{self.address.shown} is no MCP server, or not at this address: HTTP {response.status_code} to a POST"
        return _answer(request, response.status_code, f"{why}, and no event stream to a GET (HTTP {opened.status_code})")

    def _named(self, request: httpx2.Request) -> str:
        """Name the session that is good now; returns it, "" for none. The request that opens one is kept."""
        if request.method == "POST" and MCP_SESSION_ID not in request.headers and _opens(request.content):
            self._opening, self.renewed = request, ""
        if self.renewed and MCP_SESSION_ID in request.headers:
            request.headers[MCP_SESSION_ID] = self.renewed
        return str(request.headers.get(MCP_SESSION_ID, ""))

    async def _renew(self, lost: str) -> bool:
        """Ask for a new session in place of the one that the server does not know any more; whether there is one."""
        async with self._renewing:
            if self._opening is None:
                return False
            if self.renewed and self.renewed != lost:
                return True  # another request did
            first = self._opening
            response = await super().send(self.build_request("POST", first.url, content=first.content, headers=first.headers))
            session = response.headers.get(MCP_SESSION_ID, "")
            if response.status_code >= 400 or not session:
                return False
            self.renewed = session
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            headers = {"accept": first.headers["accept"], MCP_SESSION_ID: session}
            await super().send(self.build_request("POST", first.url, json=ready, headers=headers))
            return True


async def _is_message(response: httpx2.Response) -> bool:
    """Whether a server's own words about a refusal are a message of the protocol, which the client can read."""
    return "json" in response.headers.get("content-type", "") and b'"jsonrpc"' in await response.aread()


def _unlet(address: Address, status: int) -> str:
    """What is said where the server lets nobody in who comes like this."""
    headers = f'`{places.MCP_SERVER_VARIABLE}={{"headers": {{"Authorization": "Bearer ..."}}}}`'
    return (
        f"{address.shown} refuses what it was sent (HTTP {status}). Where it wants a login in a browser: {_ONCE}. Where it wants "
        f"a key: give headers ({headers} in the environment of the proxy, or `headers` in the entry before it is wrapped). Or "
        "take the proxy out, where your client logs in by itself (`projectmem proxy --unwrap FILE`)"
    )


def _opens(content: bytes) -> bool:
    return b'"initialize"' in content and json.loads(content).get("method") == "initialize"


def _answer(request: httpx2.Request, status: int, why: str) -> httpx2.Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": UNREACHABLE, "message": why}}
    return httpx2.Response(status, json=error, request=request)


class Headers:
    """What each message of the client's is sent with: the protocol's version, and from 2026 on what it asks for."""

    def __init__(self) -> None:
        self.version = ""
        self._opening: dict[str | int, anyio.Event] = {}  # requests whose answer tells the session and the version
        self._listing: set[str | int] = set()  # requests whose answer lists tools
        self._mirrored: dict[str, Mapping[tuple[str, ...], str]] = {}  # tool -> which arguments are headers too

    def of(self, message: object) -> dict[str, str]:
        """The headers of a message that is about to be sent."""
        if not isinstance(message, (JSONRPCRequest, JSONRPCNotification)):
            return self._versioned(self.version)
        params = message.params or {}
        meta = params.get("_meta")
        named = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
        if isinstance(message, JSONRPCRequest):
            if message.method == "initialize":
                self._opening[message.id] = anyio.Event()
                return {}
            if message.method == "tools/list":
                self._listing.add(message.id)
        if not isinstance(named, str):
            return self._versioned(self.version)
        found = {**self._versioned(named), inbound.MCP_METHOD_HEADER: message.method}
        key = inbound.NAME_BEARING_METHODS.get(message.method)
        name = params.get(key) if key else None
        if isinstance(name, str):
            found[inbound.MCP_NAME_HEADER] = inbound.encode_header_value(name)
        arguments = params.get("arguments")
        if message.method == "tools/call" and isinstance(arguments, dict) and isinstance(name, str):
            found.update(inbound.mcp_param_headers(self._mirrored.get(name, {}), arguments))
        return found

    async def known(self) -> None:
        """Wait until a session that was asked for is there: over stdio a client may go on at once, over HTTP what it says next
        names the session."""
        for event in list(self._opening.values()):
            await event.wait()

    def learn(self, message: object) -> None:
        """Read what an answer of the server's says of the version and of its tools."""
        if not isinstance(message, (JSONRPCResponse, JSONRPCError)) or message.id is None:
            return
        opened = self._opening.pop(message.id, None)
        if opened is not None:
            opened.set()
        if isinstance(message, JSONRPCError):
            return
        if opened is not None:
            self.version = str(message.result.get("protocolVersion") or "")
        if message.id in self._listing:
            self._listing.discard(message.id)
            tools = message.result.get("tools")
            for tool in tools if isinstance(tools, list) else []:
                schema = tool.get("inputSchema") if isinstance(tool, dict) else None
                if isinstance(schema, dict) and inbound.find_invalid_x_mcp_header(schema) is None:
                    self._mirrored[str(tool.get("name"))] = inbound.x_mcp_header_map(schema)

    def _versioned(self, version: str) -> dict[str, str]:
        return {inbound.MCP_PROTOCOL_VERSION_HEADER: version} if version else {}


def connected(address: Address, client: Client) -> AbstractAsyncContextManager[Any]:
    """The SDK's transport to the server: a pair of streams of messages."""
    if address.events:
        return sse_client(
            address.url, dict(address.headers), timeout=CONNECT_SECONDS, sse_read_timeout=NEVER, auth=auth_of(address)
        )
    return streamable_http_client(address.url, http_client=client, max_sse_event_size=None)


async def serve(address: Address) -> None:
    """Serve one client over standard input and output until it closes its end and has its answers, or the server is gone."""
    async with stdio_server() as (read, write), read, write:
        owed, headers = mcp_wire.Owed(), Headers()
        replies = mcp_wire.Replies(write, owed)
        source = mcp_wire.Answering(read, replies, owed)
        again = await _carried(address, source, replies, headers, None)
        if again is not None:
            await _carried(Address(address.url, address.headers, True), source, replies, headers, again)


async def _carried(
    address: Address, source: mcp_wire.Answering, replies: mcp_wire.Replies, headers: Headers, first: SessionMessage | None
) -> SessionMessage | None:
    """Carry messages both ways, `first` before those that are read. Returns the message that showed that the server has the older
    transport alone, which opened the session and is answered by that one; else None."""
    client, sent = Client(address), first
    async with connected(address, client) as (answers, asks), anyio.create_task_group() as group:

        async def pass_on(item: SessionMessage) -> None:
            nonlocal sent
            sent = item
            await asks.send(SessionMessage(item.message, metadata=ClientMessageMetadata(headers=headers.of(item.message))))
            await headers.known()

        async def from_client() -> None:
            if first is not None:
                await pass_on(first)
            async for item in source:
                await pass_on(item)
            group.cancel_scope.cancel()

        async def from_server() -> None:
            async for item in answers:
                if not isinstance(item, Exception):
                    headers.learn(item.message)
                    await replies.send(SessionMessage(item.message))
            group.cancel_scope.cancel()

        async def turned_down() -> None:
            await client.older.wait()
            group.cancel_scope.cancel()

        for task in (from_client, from_server, turned_down):
            group.start_soon(task)
    return sent if client.older.is_set() else None


def main() -> int:
    """Serve the server that the environment names; returns the exit code."""
    for name in ("mcp", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they quote addresses and messages
    try:
        address = address_of(json.loads(places.env(places.MCP_SERVER_VARIABLE, "{}")))
    except (ValueError, BadInputError) as exc:
        sys.stderr.write(f"projectmem: {exc}\n")
        return 2
    try:
        anyio.run(serve, address)
    except KeyboardInterrupt:
        return 130
    except Exception as exc:
        cause = exc
        while isinstance(cause, ExceptionGroup):
            cause = cause.exceptions[0]
        sys.stderr.write(f"projectmem: {address.shown} cannot be reached ({type(cause).__name__})\n")
        return 3
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a thread may still wait for standard input
