"""The proxy's test server over HTTP, with a note of each request's headers and a token that it may want: SDK and uvicorn."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import uvicorn
from proxied_server import server


def _noted(app: Any, want: str) -> Any:
    async def noted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            with open(os.environ["PROXIED_HEADERS"], "a", encoding="utf-8") as file:
                file.write(json.dumps({"method": scope["method"], **headers}) + "\n")
            if want and headers.get("authorization") != f"Bearer {want}":
                await send({"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"text/plain")]})
                await send({"type": "http.response.body", "body": b"who are you?"})
                return
        await app(scope, receive, send)

    return noted


if __name__ == "__main__":
    kind, port, token = sys.argv[1:4]
    app: Any
    if kind == "sse":
        app = server.sse_app()
    else:
        app = server.streamable_http_app(json_response=kind == "json", stateless_http=kind == "stateless")
    uvicorn.run(_noted(app, token), host="127.0.0.1", port=int(port), log_level="error")
