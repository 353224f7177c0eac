"""Logs in to an MCP server over HTTP that wants OAuth, once, by a person with a browser; the proxy uses and renews the tokens.

The official SDK does the protocol (discovery, registration, PKCE, refresh). Here: where tokens are kept (one file a server in the
person's own folder, for them alone to read), the page that the browser is sent back to, and that no flow begins without a person.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from mcp_types import LATEST_PROTOCOL_VERSION
from projectmem_logs import files
from pydantic import AnyUrl, ValidationError

from projectmem.errors import BadInputError, ProjectmemError
from projectmem.mcp_address import Address
from projectmem.place import config_dir

PERSON_SECONDS = 300.0  # how long a login in the browser may take
_PAGE = b"<!doctype html><title>projectmem</title><p>Done: this window can be closed."
_OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "projectmem", "version": "1"},
    },
}


class NobodyThereError(OAuthFlowError):
    """The server wants a person to log in, and none is there."""


class Store:
    """What is kept of one server: the SDK's token storage.  fresh  for a login: nothing that was kept is used."""

    def __init__(self, address: Address, *, fresh: bool = False) -> None:
        name = hashlib.sha256(address.url.encode()).hexdigest()[:32]
        self.path = Path(config_dir("XDG_STATE_HOME", "~/.local/state")) / "projectmem" / "mcp" / f"{name}.json"
        self.fresh = fresh
        self.kept: dict[str, Any] = {} if fresh else self._read()

    async def get_tokens(self) -> OAuthToken | None:
        """What was kept; None for none, or what is not understood."""
        found: OAuthToken | None = self.read(OAuthToken, "tokens")
        return found

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep them, with the time (s) that they hold until."""
        until = time.time() + tokens.expires_in if tokens.expires_in else None
        self.keep(tokens=tokens.model_dump(mode="json", exclude_none=True), until=until)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """How we are registered there."""
        found: OAuthClientInformationFull | None = self.read(OAuthClientInformationFull, "client")
        return found

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep it; of a registration that no login follows nothing."""
        if self.fresh:
            self.kept["client"] = client_info.model_dump(mode="json", exclude_none=True)

    def read(self, model: Any, name: str) -> Any:
        """A part of it as the SDK's data; None where there is none."""
        try:
            return model.model_validate(self.kept[name])
        except (KeyError, ValidationError):
            return None

    def keep(self, **more: Any) -> None:
        """Write it, readable for this person alone. Raises OSError."""
        self.kept |= more
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.replace(str(self.path), json.dumps(self.kept).encode())  # 0600, as every file that is made so

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def auth_of(address: Address) -> httpx2.Auth | None:
    """What adds the tokens of an earlier login to requests, and renews them; None for none, or where headers say who asks."""
    store = Store(address)
    tokens = store.read(OAuthToken, "tokens")
    if tokens is None or any(name.lower() == "authorization" for name in address.headers):
        return None

    async def refused(_: str) -> None:
        raise NobodyThereError("the login is not good any more")

    provider = _provider(address, store, "http://127.0.0.1/callback", refused, None)
    provider.context.oauth_metadata = store.read(OAuthMetadata, "server")  # where tokens are renewed
    until = store.kept.get("until")
    provider.context.token_expiry_time = until if isinstance(until, (int, float)) else None
    return provider


def login(address: Address, say: Callable[[str], None]) -> str:
    """Let a person log in: `say` is told the address to open. Returns what came of it. Raises ProjectmemError."""
    page = _Page(("127.0.0.1", 0), _Answer)
    threading.Thread(target=page.serve_forever, daemon=True).start()
    store = Store(address, fresh=True)

    async def shown(url: str) -> None:
        say(f"Open this address in a browser of this machine and log in:\n{url}")

    async def back() -> AuthorizationCodeResult:
        if not await anyio.to_thread.run_sync(page.came.wait, PERSON_SECONDS, abandon_on_cancel=True):
            raise OAuthFlowError(f"nobody logged in within {PERSON_SECONDS:.0f} s")
        return page.result()

    provider = _provider(address, store, f"http://127.0.0.1:{page.server_port}/callback", shown, back)
    try:
        status = anyio.run(_try, address, provider)
    except httpx2.TransportError as exc:
        why = f"it cannot be reached ({exc or type(exc).__name__})"
        raise ProjectmemError(f"no login to {address.shown}: {why}: check the address, and that the server runs") from None
    except (OAuthFlowError, httpx2.HTTPError, ValueError, OSError) as exc:
        raise ProjectmemError(f"no login to {address.shown}: {exc or type(exc).__name__}") from None
    finally:
        page.shutdown()
        page.server_close()
    if not store.kept.get("tokens"):
        raise BadInputError(f"{address.shown} asked for no login (HTTP {status}): nothing was kept")
    server = provider.context.oauth_metadata
    store.keep(server=server.model_dump(mode="json", exclude_none=True) if server else None)
    return f"logged in to {address.shown}: the proxy uses and renews what is kept in {store.path}"


async def _try(address: Address, provider: httpx2.Auth) -> int:
    headers = {"accept": "application/json, text/event-stream", **address.headers}
    timeout = httpx2.Timeout(PERSON_SECONDS)
    async with httpx2.AsyncClient(headers=headers, auth=provider, timeout=timeout) as client:
        request = client.build_request(
            "GET" if address.events else "POST", address.url, json=None if address.events else _OPENING
        )
        response = await client.send(request, stream=True)
        await response.aclose()
        return response.status_code


def _provider(address: Address, store: Store, back_to: str, redirect: Any, callback: Any) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(client_name="projectmem", redirect_uris=[AnyUrl(back_to)])
    return OAuthClientProvider(address.url, metadata, store, redirect, callback)


class _Page(HTTPServer):
    """Where the browser is sent back to, on loopback, while a login lasts."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.came, self.query = threading.Event(), dict[str, list[str]]()

    def result(self) -> AuthorizationCodeResult:
        """What the server said. Raises OAuthFlowError where it refused."""
        said = {name: values[0] for name, values in self.query.items()}
        if "code" not in said:
            raise OAuthFlowError(said.get("error_description") or said.get("error") or "the server gave no code")
        return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        page = self.server
        good = parts.path == "/callback" and isinstance(page, _Page)
        self.send_response(200 if good else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(_PAGE if good else b"")
        if good and isinstance(page, _Page) and not page.came.is_set():
            page.query = parse_qs(parts.query)
            page.came.set()

    def log_message(self, *_: Any) -> None:
        """Nothing: the address holds the code."""
