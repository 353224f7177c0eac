"""Answers hooks over HTTP on loopback and over a Unix socket: the same code as the command hook (entry.respond).

The standard library's server, with a reader of headers of our own: the library's is half of what a common call costs. Nothing
is imported that a harness would wait for. A request must be a POST to /projectmem.hook.entry/HARNESS/EVENT with `Authorization:
Bearer TOKEN`; over TCP it must name loopback as its Host and no Origin, so that no web page can send one. 200 with the harness's
JSON, 204 for nothing to say; what is refused gets a status and a line, and never an answer that a harness could take for a
decision.
"""

from __future__ import annotations

import hmac
import os
import socket
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

from projectmem_logs.fastjson import encode

from projectmem import place as places
from projectmem.hook import entry
from projectmem.serve.settings import BASE, HOST, Settings

READ_TIMEOUT_S = 30
HEADERS_MAX, LINE_MAX = 100, 65_536
HARNESSES = ("claude-code",)


class Hook:
    """What all listeners of one server share."""

    def __init__(self, home: str, settings: Settings) -> None:
        self.home, self.settings = home, settings
        self.asked_at = time.monotonic()
        self.busy = 0
        self.failed = ""  # what a request failed of, which ends the server
        self._lock = threading.Lock()

    def answer(self, harness: str, event: str, raw: bytes) -> bytes:
        """The harness's JSON, empty for nothing to say."""
        with self._lock:
            self.busy += 1
        try:
            reply = entry.respond([harness, event], raw, time.time_ns() // 1000, home=self.home)
            return b"" if reply is None else encode(reply).encode("utf-8", "backslashreplace")
        finally:
            with self._lock:
                self.busy -= 1
                self.asked_at = time.monotonic()

    def idle(self) -> float:
        """Seconds since the last request ended, 0 while one is answered."""
        return 0.0 if self.busy else time.monotonic() - self.asked_at


class Request(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "projectmem", ""
    timeout = READ_TIMEOUT_S
    disable_nagle_algorithm = True
    hook: Hook
    raw_requestline: bytes
    local = False  # a Unix socket: its file's permissions are what Host and Origin are over TCP

    def log_message(self, *args: object) -> None:
        """Nothing is written: who asks what is in the log."""

    def parse_request(self) -> bool:
        """The request line and its headers, each once and in lower case, without the parser of mail headers that the standard
        library uses: it costs as much as everything else of a common call. What is not as expected is refused."""
        self.command, self.request_version, self.close_connection = "", "HTTP/1.1", True
        self.requestline = self.raw_requestline.decode("iso-8859-1").rstrip("\r\n")
        words = self.requestline.split()
        if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0"):
            return self._bad("this is no request of HTTP/1")
        self.command, self.path, self.request_version = words
        self.fields: dict[str, str] = {}
        for _ in range(HEADERS_MAX):
            line = self.rfile.readline(LINE_MAX)
            if line in (b"\r\n", b"\n"):
                break
            name, colon, value = line.decode("iso-8859-1").partition(":")
            name = name.lower()
            if not colon or not line.endswith(b"\n") or name != name.strip() or name in self.fields:
                return self._bad("a header is not as it should be")
            self.fields[name] = value.strip()
        else:
            return self._bad("too many headers")
        if "transfer-encoding" in self.fields:
            return self._bad("a body needs a Content-Length")
        wanted = self.fields.get("connection", "").lower()
        self.close_connection = wanted == "close" or (words[2] == "HTTP/1.0" and wanted != "keep-alive")
        if self.fields.get("expect", "").lower() == "100-continue":
            return self.handle_expect_100()
        return True

    def _bad(self, why: str) -> bool:
        self.close_connection = True
        self._send(400, "text/plain; charset=utf-8", why.encode())
        return False

    def _refused(self) -> tuple[int, str] | None:
        if not self.local:
            host = self.fields.get("host", "").lower()
            if host not in (f"{HOST}:{self.hook.settings.port}", f"localhost:{self.hook.settings.port}"):
                return 403, "this is not the host that was asked for"
            if "origin" in self.fields:
                return 403, "web pages are not served"
        shown = self.fields.get("authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(shown, b"Bearer " + self.hook.settings.token.encode()):
            return 401, "the token is missing or wrong: run `projectmem init --http` again"
        return None

    def do_POST(self) -> None:
        """One event of a harness."""
        refused = self._refused()
        length = self.fields.get("content-length", "")
        if refused is None and not (length.isascii() and length.isdigit()):
            refused = 411, "a body needs a Content-Length"
        if refused is None and int(length) > entry.MAX_INPUT_BYTES:
            refused = 413, "the body is too large"
        base, _, rest = self.path.partition(f"{BASE}/")
        harness, _, event = rest.partition("/")
        if refused is None and (base or harness not in HARNESSES or not event.isalnum()):
            refused = 404, "no such hook"
        if refused is not None:
            self.close_connection = True  # what else was sent is not read
            self._send(refused[0], "text/plain; charset=utf-8", refused[1].encode())
            return
        body = self.rfile.read(int(length))
        off = places.switched_off({places.SWITCH_VARIABLE: self.fields.get("x-projectmem-gate", "")})
        try:
            reply = b"" if off else self.hook.answer(harness, event, body)
        except Exception as exc:  # `respond` raises nothing: whatever this is, the commands must take over
            self.hook.failed = f"{type(exc).__name__}: {exc}"
            self.close_connection = True
            self._send(500, "text/plain; charset=utf-8", b"the hook failed: see hook.log")
            return
        self._send(200 if reply else 204, "application/json", reply)

    def do_GET(self) -> None:
        """Nothing is served to a browser."""
        self.close_connection = True
        self._send(405, "text/plain; charset=utf-8", b"hooks are posted")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        """The answer in one piece: each write is a packet and a wake-up of the client."""
        head = [f"{self.protocol_version} {status} {self.responses[status][0]}"]
        if body:
            head.append(f"Content-Type: {kind}")
        if status != 204:
            head.append(f"Content-Length: {len(body)}")
        if self.close_connection:
            head.append("Connection: close")
        self.wfile.write("\r\n".join([*head, "", ""]).encode("ascii") + (body if self.command != "HEAD" else b""))


class _Threads(socketserver.ThreadingMixIn):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is its own business."""


class Tcp(_Threads, socketserver.TCPServer):
    """The listener on loopback."""

    allow_reuse_address = True
    request_queue_size = 128


def tcp(hook: Hook) -> socketserver.BaseServer:
    """Listen on loopback. Raises OSError where the port is taken."""
    return Tcp((HOST, hook.settings.port), _handler(hook, local=False))


def unix(hook: Hook, path: str) -> socketserver.BaseServer:
    """Listen on a Unix socket that only its owner may open. The caller holds the server's lock: a left-over socket is dead."""

    class Unix(_Threads, socketserver.TCPServer):
        address_family = socket.AF_UNIX
        request_queue_size = 128

        def server_bind(self) -> None:
            before = os.umask(0o177)
            try:
                self.socket.bind(path)
            finally:
                os.umask(before)

        def get_request(self) -> tuple[Any, Any]:
            request, _ = self.socket.accept()
            return request, ("unix", 0)

    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    return Unix((HOST, 0), _handler(hook, local=True))


def _handler(hook: Hook, *, local: bool) -> type[Request]:
    return type("Bound", (Request,), {"hook": hook, "local": local, "disable_nagle_algorithm": not local})
