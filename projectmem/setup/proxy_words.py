"""The words that put the proxy before an MCP server, and when one over HTTP is left to its client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from projectmem.mcp_address import address_of

OURS = ["-P", "-m", "projectmem"]
ASKS = "over HTTP without headers, so it may want a login that only the client can do; --open wraps it all the same"


def here(entry: Mapping[str, Any]) -> bool:
    """Whether the server of a client's entry is on this machine. Raises BadInputError."""
    return address_of(dict(entry)).here
