"""One session of the real Claude Code client against a scripted model on loopback. Run as a program, alone or in a
network namespace of its own: `python claude_driver.py SPEC.json`.

SPEC: {"client", "work", "home", "steps", "log", "allow", "timeout_s"}. A step is a list of calls [{"tool", "args"}] that the
model makes in one turn; after the last one it says `done`. Every request that offers tools is appended to `log` as one JSON
line. Prints {"returncode", "stderr"} as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Spec = dict[str, Any]


def turn(body: dict[str, Any], steps: list[Any]) -> list[dict[str, Any]]:
    """The model's content blocks: the step after those that the conversation already holds."""
    done = sum(
        1
        for message in body.get("messages", [])
        if message.get("role") == "assistant"
        and isinstance(message.get("content"), list)
        and any(block.get("type") == "tool_use" for block in message["content"])
    )
    if not body.get("tools") or done >= len(steps):
        return [{"type": "text", "text": "done"}]
    return [
        {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:20]}", "name": call["tool"], "input": call["args"]}
        for call in steps[done]
    ]


def message(body: dict[str, Any], blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """A whole answer of the Messages API."""
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_{uuid.uuid4().hex[:20]}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def stream(whole: dict[str, Any]) -> bytes:
    """The same answer as server-sent events."""
    start = {**whole, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            opened, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            opened, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def handler(spec: Spec) -> type[BaseHTTPRequestHandler]:
    """A request handler that plays the script."""
    lock = threading.Lock()

    class Model(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            """Say nothing."""

        def _send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def do_GET(self) -> None:
            self._send(404, "application/json", b'{"error": {"message": "not found"}}')

        do_HEAD = do_GET

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            if self.path.split("?")[0].endswith("/count_tokens"):
                self._send(200, "application/json", b'{"input_tokens": 1}')
                return
            if body.get("tools"):
                with lock, open(spec["log"], "a", encoding="utf-8") as file:
                    file.write(json.dumps(body) + "\n")
            whole = message(body, turn(body, spec["steps"]))
            if body.get("stream"):
                self._send(200, "text/event-stream", stream(whole))
            else:
                self._send(200, "application/json", json.dumps(whole).encode())

    return Model


def play(spec: Spec) -> dict[str, Any]:
    """Run the client once. Its environment holds nothing of the caller's but where programs are."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(spec))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {
        "PATH": spec["path"],
        "HOME": spec["home"],
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "ANTHROPIC_API_KEY": "dummy-key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        **spec.get("env", {}),
    }
    argv = [spec["client"], "-p", "go on", "--model", "claude-sonnet-4-5", "--output-format", "stream-json", "--verbose"]
    argv += ["--allowedTools", spec.get("allow", "Bash,Edit,Write,Read")]
    # its own process group, so that what it leaves behind can be ended and nothing else
    client = subprocess.Popen(
        argv,
        cwd=spec["work"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = client.communicate(timeout=spec.get("timeout_s", 90))
    finally:
        try:
            os.killpg(client.pid, 9)
        except ProcessLookupError:
            pass
        server.shutdown()
    return {"returncode": client.returncode, "stdout": out.decode("utf-8", "replace"), "stderr": err.decode("utf-8", "replace")}


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as spec_file:
        json.dump(play(json.load(spec_file)), sys.stdout)
