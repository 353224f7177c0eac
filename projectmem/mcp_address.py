"""Where an MCP server over HTTP is: read from an entry of a client's settings, checked, and shown without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from projectmem.errors import BadInputError

URLS = ("url", "httpUrl", "serverUrl")  # most clients; Gemini and Qwen; Windsurf
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Address:
    """url, headers;  events  the older transport of 2024, which has its own stream for answers;  shown  for messages"""

    __slots__ = ("events", "headers", "shown", "url")

    def __init__(self, url: str, headers: Mapping[str, str], events: bool) -> None:
        self.url, self.headers, self.events = url, headers, events
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        self.shown = f"{parts.scheme}://{parts.hostname}{port}{parts.path}"  # no user, no password, no query: keys stand there

    @property
    def here(self) -> bool:
        """Whether it is on this machine."""
        return (urlsplit(self.url).hostname or "") in LOOPBACK

    def to_text(self) -> str:
        """The same as a client's entry, for the environment of the process that connects to it."""
        kind = {"type": "sse"} if self.events else {}
        return json.dumps({**kind, "url": self.url, "headers": dict(self.headers)})


def address_of(entry: Any) -> Address:
    """The address in a client's entry {url, headers, type}. Raises BadInputError; what it says quotes no header."""
    given = entry if isinstance(entry, dict) else {}
    url = next((given[key] for key in URLS if given.get(key)), "")
    headers = given.get("headers") or {}
    if not isinstance(url, str) or not url:
        raise BadInputError("there is no address of an MCP server: give --url, or an entry with `url`")
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise BadInputError("the headers of an MCP server are an object of texts")
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise BadInputError("the address of an MCP server begins with http:// or https:// and names a host")
    for name, value in headers.items():
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum() or any(c in value for c in "\r\n\0"):
            raise BadInputError(f"header {name!r} of the MCP server cannot be sent")
    return Address(url, headers, given.get("type") == "sse" or given.get("transport") == "sse")
