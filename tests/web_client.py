"""Asks the web page in process, as a browser on this machine would, without a listener."""

from __future__ import annotations

import asyncio
import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from projectmem.place import Place, find
from projectmem.web.doors import COOKIE, Keys
from projectmem.web.pages import application

KEYS = Keys("t" * 43, "s" * 43, "/f0f0")
HOST = "127.0.0.1:8123"
PATIENT_S = 300.0


class Answer:
    """What came back."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status, self.text = status, body.decode()
        self.headers = {name.decode().lower(): value.decode() for name, value in headers}

    @property
    def words(self) -> str:
        """The text of the page without its tags, as it is read."""
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.text)).split())

    def links(self, part: str) -> list[str]:
        """Addresses of links that hold this, in the order of the page, each once."""
        return list(dict.fromkeys(html.unescape(one) for one in re.findall(r'href="([^"]*)"', self.text) if part in one))


class Web:
    """The page of one project, at a time that stands still."""

    def __init__(self, root: Path | str, now: int, wait_s: float = PATIENT_S) -> None:
        found = find(str(root), {})
        assert found is not None
        self.place: Place = found
        self.told: list[str] = []
        self.app = application(found, KEYS, now=lambda: now, tell=self.told.append, waits=(wait_s, wait_s))

    def get(self, path: str, *, method: str = "GET", known: bool = True, headers: dict[str, str] | None = None) -> Answer:
        """A page under the folder, or with a leading slash any address; `known`: with the cookie."""
        address = urlsplit(path if path.startswith("/") else f"{KEYS.folder}/{path}")
        sent = {"host": HOST, **({"cookie": f"{COOKIE}={KEYS.session}"} if known else {}), **(headers or {})}
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": address.path,
            "raw_path": address.path.encode(),
            "query_string": address.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
            "server": ("127.0.0.1", 8123),
            "client": ("127.0.0.1", 50000),
        }
        messages: list[dict[str, Any]] = []

        async def ask() -> None:
            async def receive() -> dict[str, Any]:
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                messages.append(dict(message))

            await self.app(scope, receive, send)

        asyncio.run(ask())
        start = messages[0]
        return Answer(start["status"], start["headers"], b"".join(one.get("body", b"") for one in messages[1:]))
