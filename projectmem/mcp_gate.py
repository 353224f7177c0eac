"""The gate between an MCP client and a server: which lines are tool calls, which are their answers, and what is said of them.

Knows nothing of processes and pipes (mcp_proxy.py). A line is passed on as it came, unless the gate refuses a call (then the
client gets the reason as the call's result and the server never sees it) or has something to say with a result.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any, Protocol

from projectmem import mcp_splice

HARNESS = "mcp"
CALL_ID = "claudecode/toolUseId"  # Claude Code's name of the call, which its own hooks have too (measured on 2.1.332)
_VERSION, _CLIENT_INFO, _SERVER_INFO = (
    f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientInfo", "serverInfo")
)
_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]{1,20})(?=\s*[,}])')
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
REFUSED = -32000  # JSON-RPC's first number for a server's own errors

Message = dict[str, Any]


class Verdict(Protocol):
    """What the gate says of a call."""

    reason: str

    @property
    def refused(self) -> bool:
        """Whether the call must not run."""


class Gate(Protocol):
    """integrations.core.Gate, as far as it is used here. Raises nothing."""

    def before(self, tool: str, args: Any, *, call_id: str, harness: str, model: str) -> Any:
        """What the gate says of a call that is about to run."""

    def after(self, verdict: Any, result: Any = None, *, is_error: bool | None = None, ended: str = "") -> str:
        """Record what became of it; what is to be said with the result."""


class Gated:
    """One client and one server.

    gate   asked before and told after each call
    hooked  whether a hook of the client's already has the call: of this id ("" for none), tool, arguments and client's name
    name   the server's for the gate (`mcp__NAME__TOOL`), "" takes the one that the server gives itself
    """

    def __init__(
        self, gate: Gate, hooked: Callable[[str, str, Any, str], bool], name: str = "", fallback: str = "server"
    ) -> None:
        self.gate, self.hooked, self.name, self.fallback = gate, hooked, _clean(name), _clean(fallback) or "server"
        self.client = ""
        self._running: dict[str, Any] = {}  # the id of a request, as JSON -> the gate's verdict on its call
        self._tasks: dict[str, Any] = {}  # the same for calls that go on as a task, by the task's id
        self._hello: set[str] = set()  # requests whose answer says what the server is called
        self._lock = threading.Lock()

    def from_client(self, line: bytes) -> tuple[bytes, bytes]:
        """(what the server gets, what the client gets at once) of one line of the client."""
        data = _read(line)
        messages = data if isinstance(data, list) else [data]
        refused = [(m, reason) for m in messages if isinstance(m, dict) and (reason := self._asked(m))]
        if not refused:
            return line, b""
        gone = [id(m) for m, _ in refused]
        rest = [m for m in messages if id(m) not in gone]
        answers = [_refusal(m, reason) for m, reason in refused]
        return _line(rest) if rest else b"", _line(answers if isinstance(data, list) else answers[0])

    def from_server(self, line: bytes) -> bytes:
        """What the client gets of one line of the server."""
        with self._lock:
            if not self._running and not self._hello:
                return line
        data = _read(line)
        if data is None and line.endswith(b"\n"):  # else the server broke off over it: `lost` answers
            self._unread(line)
        for message in data if isinstance(data, list) else [data]:
            if isinstance(message, dict) and "id" in message and "method" not in message:
                words = self._answered(message)
                line = _added(line, words, message["id"]) if words else line
        return line

    def lost(self, why: str, *, failed: bool) -> list[bytes]:
        """The answers to the calls that the server never answered. failed: it died over them, else the client left."""
        with self._lock:
            running, self._running = self._running, {}
            tasks, self._tasks = self._tasks, {}
        for verdict in (*running.values(), *tasks.values()):
            if failed:
                self.gate.after(verdict, why, is_error=True)
            else:
                self.gate.after(verdict, why, ended="interrupted")
        error = {"code": REFUSED, "message": why}
        return [_line({"jsonrpc": "2.0", "id": json.loads(id), "error": error}) for id in running]

    def _asked(self, message: Message) -> str:
        """Note what a message of the client asks for; the reason where it must not."""
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        if method == "tools/call" and "id" in message:
            return self._call(message, params)
        if method in ("initialize", "server/discover") and "id" in message:
            meta = params.get("_meta")
            info = params.get("clientInfo") or (meta if isinstance(meta, dict) else {}).get(_CLIENT_INFO)
            self.client = str(info.get("name") or "")[:80] if isinstance(info, dict) else self.client
            with self._lock:
                self._hello.add(_key(message["id"]))
        elif method == "tasks/result" and "id" in message:
            with self._lock:
                verdict = self._tasks.pop(str(params.get("taskId")), None)
                if verdict is not None:
                    self._running[_key(message["id"])] = verdict
        elif method in ("notifications/cancelled", "tasks/cancel"):
            self._cancelled(params)
        return ""

    def _call(self, message: Message, params: Message) -> str:
        tool, meta = params.get("name"), params.get("_meta")
        if not isinstance(tool, str) or not tool:
            return ""
        own = meta.get(CALL_ID) if isinstance(meta, dict) else None
        given = params.get("arguments")
        given = {} if given is None else given
        if self.hooked(own if isinstance(own, str) else "", tool, given, self.client):
            return ""
        name = f"mcp__{self.name or self.fallback}__{tool}"
        verdict = self.gate.before(name, given, call_id="", harness=HARNESS, model=self.client)
        if verdict.refused:
            return str(verdict.reason)
        with self._lock:
            self._running[_key(message["id"])] = verdict
        return ""

    def _unread(self, line: bytes) -> None:
        """An answer that the client may read and we may not (nested too deep, a number too long): the call it ends is over, and
        nothing is learned of it."""
        if not line.lstrip().startswith(b"{") or b'"jsonrpc"' not in line:
            return
        with self._lock:
            keys = (_key(json.loads(found, strict=False)) for found in _ID.findall(line))
            verdict = next((self._running.pop(key) for key in keys if key in self._running), None)
        if verdict is not None:
            self.gate.after(verdict, "", ended="cancelled")

    def _cancelled(self, params: Message) -> None:
        with self._lock:
            verdict = self._running.pop(_key(params.get("requestId")), None) or self._tasks.pop(str(params.get("taskId")), None)
        if verdict is not None:
            why = str(params.get("reason") or "")
            late = any(mark in why.lower() for mark in ("timed out", "timeout"))
            self.gate.after(verdict, why, ended="timeout" if late else "cancelled")

    def _answered(self, message: Message) -> str:
        """Record what an answer tells; what is to be said with it."""
        key, result, error = _key(message["id"]), message.get("result"), message.get("error")
        with self._lock:
            verdict = self._running.pop(key, None)
            hello = key in self._hello
            self._hello.discard(key)
        result = result if isinstance(result, dict) else {}
        if hello:
            meta = result.get("_meta")
            info = result.get("serverInfo") or (meta if isinstance(meta, dict) else {}).get(_SERVER_INFO)
            if isinstance(info, dict) and not self.name:
                self.name = _clean(str(info.get("name") or ""))
        if verdict is None:
            return ""
        if error is not None:
            return self.gate.after(verdict, _said(error), is_error=True)
        if "result" not in message:  # neither: it tells nothing
            return self.gate.after(verdict, "", ended="cancelled")
        task = result.get("task")
        if isinstance(task, dict) and "content" not in result:
            with self._lock:
                self._tasks[str(task.get("taskId"))] = verdict
            return ""
        if result.get("resultType") == "input_required":  # the client asks again with what is wanted of it
            return self.gate.after(verdict, "", ended="cancelled")
        return self.gate.after(verdict, _text(result), is_error=result.get("isError") is True)


def _said(error: Any) -> str:
    """The text of an error, also of one that is no object."""
    text = error.get("message") or error if isinstance(error, dict) else error
    return text if isinstance(text, str) else json.dumps(text)


def _read(line: bytes) -> Any:
    """The line as data, None for what is no JSON (which is passed on all the same)."""
    try:
        return json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return None


def _key(id: Any) -> str:
    return json.dumps(id)


def _line(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def _clean(name: str) -> str:
    """A server's name as clients write it into the names of tools."""
    return _NO_NAME.sub("_", name)[:64]


def _refusal(message: Message, reason: str) -> Message:
    """The answer to a call that is not passed on. One that asks for a task takes no plain result, so it gets an error; the
    protocol of 2026 wants to be told that a result is whole, and names itself in each request."""
    params = message["params"]
    if params.get("task") is not None:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": REFUSED, "message": reason}}
    meta = params.get("_meta")
    kind = {"resultType": "complete"} if isinstance(meta, dict) and _VERSION in meta else {}
    result = {**kind, "content": [{"type": "text", "text": reason}], "isError": True}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _text(result: Message) -> str:
    """What a model reads of a result: its blocks of text, else the structured content."""
    content = result.get("content")
    texts = [block.get("text") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    said = [text for text in texts if isinstance(text, str)]
    structured = result.get("structuredContent")
    return "\n".join(said) if said or structured is None else json.dumps(structured, ensure_ascii=False)


def _added(line: bytes, words: str, id: Any) -> bytes:
    try:
        return mcp_splice.added(line.decode("utf-8", "surrogateescape"), words, id).encode("utf-8", "surrogateescape")
    except (ValueError, IndexError, RecursionError):
        return line
