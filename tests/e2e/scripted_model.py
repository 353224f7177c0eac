"""A scripted model on loopback that speaks the clients' four APIs: Anthropic Messages, OpenAI Responses and Chat Completions,
Gemini. Each answer makes the calls of one step: the one after those that the conversation already holds.

A step is a list of calls {"tool", "args"} or {"tool", "input"} (free text, Responses only; "namespace" too); {"wait_s": N}
in it delays it, {"ended": [TEXT, ...]} until no process has such a text in its command line.
A conversation in which a person or a parent agent says SUB has another script: a subagent's.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

Body = dict[str, Any]
Step = list[dict[str, Any]]
SUB = "subagent's errand"  # in the prompt that a subagent is started with


def new_id(prefix: str) -> str:
    """An id as the services give it."""
    return f"{prefix}_{uuid.uuid4().hex[:20]}"


def step_of(steps: list[Step], done: int, offered: bool) -> Step:
    """The calls of the next turn; [] when the script is at its end or the request offers no tools."""
    if not offered or done >= len(steps):
        return []
    for call in steps[done]:
        while "ended" in call and _run(call["ended"]):
            time.sleep(0.05)
    time.sleep(max((call.get("wait_s", 0) for call in steps[done]), default=0))
    return [call for call in steps[done] if "tool" in call]


def _run(texts: list[str]) -> bool:
    """Whether there is a process with one of the texts in its command line."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if any(text in line for text in texts):
            return True
    return False


def _events(events: list[tuple[str, Any]]) -> bytes:
    lines = (
        f"event: {name}\n" * bool(name) + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
        for name, data in events
    )
    return "".join(lines).encode()


# --- Anthropic Messages


def messages(body: Body, steps: list[Step]) -> tuple[str, bytes]:
    """One turn of the Messages API."""
    said = [m["content"] for m in body.get("messages", []) if m.get("role") == "assistant" and isinstance(m.get("content"), list)]
    done = sum(any(block.get("type") == "tool_use" for block in content) for content in said)
    calls = step_of(steps, done, bool(body.get("tools")))
    blocks: list[Body] = [{"type": "tool_use", "id": new_id("toolu"), "name": c["tool"], "input": c["args"]} for c in calls]
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    blocks = blocks or [{"type": "text", "text": "done"}]
    whole = {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": blocks,
    }
    whole |= {**stop, "usage": {"input_tokens": 1, "output_tokens": 1}}
    if not body.get("stream"):
        return "application/json", json.dumps(whole).encode()
    events: list[tuple[str, Body]] = [("message_start", {"message": {**whole, "content": [], "stop_reason": None}})]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            opened, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            opened, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append(("content_block_start", {"index": index, "content_block": opened}))
        events.append(("content_block_delta", {"index": index, "delta": delta}))
        events.append(("content_block_stop", {"index": index}))
    events += [("message_delta", {"delta": stop, "usage": {"output_tokens": 1}}), ("message_stop", {})]
    return "text/event-stream", _events([(name, {"type": name, **data}) for name, data in events])


# --- OpenAI Responses


def responses(body: Body, steps: list[Step]) -> tuple[str, bytes]:
    """One turn of the Responses API."""
    calling = [isinstance(item, dict) and str(item.get("type")).endswith("_call") for item in body.get("input") or []]
    done = sum(now and not before for before, now in zip([False, *calling], calling, strict=False))
    items: list[Body] = []
    for call in step_of(steps, done, bool(body.get("tools"))):
        common: Body = {"status": "completed", "call_id": new_id("call"), "name": call["tool"]}
        if "input" in call:
            items.append({"type": "custom_tool_call", "id": new_id("ctc"), "input": call["input"], **common})
        else:
            if "namespace" in call:
                common["namespace"] = call["namespace"]
            items.append({"type": "function_call", "id": new_id("fc"), "arguments": json.dumps(call["args"]), **common})
    if not items:
        content = [{"type": "output_text", "text": "done", "annotations": []}]
        items = [{"type": "message", "id": new_id("msg"), "status": "completed", "role": "assistant", "content": content}]
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage_details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "model": body.get("model"),
        "output": items,
    }
    whole |= {"status": "completed", "usage": {**usage, **usage_details}, "error": None}
    events: list[tuple[str, Body]] = [("response.created", {"response": {**whole, "status": "in_progress", "output": []}})]
    for index, item in enumerate(items):
        events.append(("response.output_item.added", {"output_index": index, "item": {**item, "status": "in_progress"}}))
        events.append(("response.output_item.done", {"output_index": index, "item": item}))
    events.append(("response.completed", {"response": whole}))
    numbered = enumerate(events)
    return "text/event-stream", _events([(name, {"type": name, "sequence_number": n, **data}) for n, (name, data) in numbered])


# --- OpenAI Chat Completions


def chat(body: Body, steps: list[Step]) -> tuple[str, bytes]:
    """One turn of the Chat Completions API."""
    done = sum(1 for m in body.get("messages", []) if m.get("role") == "assistant" and m.get("tool_calls"))
    calls = [
        {"id": new_id("call"), "type": "function", "function": {"name": c["tool"], "arguments": json.dumps(c["args"])}}
        for c in step_of(steps, done, bool(body.get("tools")))
    ]
    finish = "tool_calls" if calls else "stop"
    base = {"id": new_id("chatcmpl"), "created": int(time.time()), "model": body.get("model", "scripted")}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    text = None if calls else "done"
    if not body.get("stream"):
        message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return "application/json", json.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
    deltas: list[tuple[Body, str | None]] = [({"role": "assistant", "content": text or ""}, None)]
    deltas += [({"tool_calls": [{"index": index, **call}]}, None) for index, call in enumerate(calls)]
    chunk = {**base, "object": "chat.completion.chunk"}
    events: list[tuple[str, Any]] = [
        ("", {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}) for delta, end in [*deltas, ({}, finish)]
    ]
    return "text/event-stream", _events([*events, ("", {**chunk, "choices": [], "usage": usage}), ("", "[DONE]")])


# --- Gemini


def gemini(body: Body, steps: list[Step], stream: bool) -> tuple[str, bytes]:
    """One turn of Gemini's API. A request for JSON of a schema (which model to use, who speaks next) gets some."""
    said = [c.get("parts", []) for c in body.get("contents", []) if c.get("role") == "model"]
    done = sum(any("functionCall" in part for part in parts) for parts in said)
    settings = body.get("generationConfig") or {}
    schema = settings.get("responseJsonSchema") or settings.get("responseSchema")
    if schema and not body.get("tools"):
        parts = [{"text": json.dumps({name: _any_of(kind) for name, kind in schema.get("properties", {}).items()})}]
    else:
        calls = step_of(steps, done, bool(body.get("tools")))
        parts = [{"functionCall": {"name": c["tool"], "args": c["args"], "id": new_id("fc")}} for c in calls] or [
            {"text": "done"}
        ]
    content = {"role": "model", "parts": parts}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    whole = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
    if stream:
        return "text/event-stream", _events([("", whole)])
    return "application/json", json.dumps(whole).encode()


def _any_of(kind: Body) -> Any:
    if kind.get("enum"):
        return kind["enum"][0]
    return {"number": 1, "integer": 1, "boolean": False, "array": [], "object": {}}.get(str(kind.get("type")).lower(), "x")


def answer(path: str, body: Body, steps: list[Step]) -> tuple[str, bytes] | None:
    """(content type, bytes) of the answer to a request, None for a path that no API has."""
    simple = {"/count_tokens": {"input_tokens": 1}, ":countTokens": {"totalTokens": 1}}
    for end, data in simple.items():
        if path.endswith(end):
            return "application/json", json.dumps(data).encode()
    for end, api in (("/messages", messages), ("/responses", responses), ("/chat/completions", chat)):
        if path.endswith(end):
            return api(body, steps)
    if path.endswith((":streamGenerateContent", ":generateContent")):
        return gemini(body, steps, path.endswith(":streamGenerateContent"))
    return None


def is_subagent(body: Body) -> bool:
    """Whether the conversation is a subagent's: its prompt says so, in whatever of its messages that is."""
    rows = body.get("messages") or body.get("contents") or body.get("input") or []
    told = [row for row in rows if isinstance(row, dict) and (row.get("role") == "user" or row.get("type") == "agent_message")]
    return any(SUB in text for row in told for text in _texts(row.get("content") or row.get("parts")))


def _texts(content: Any) -> list[str]:
    parts = content if isinstance(content, list) else [content]
    held = [part.get("text") or part.get("encrypted_content") for part in parts if isinstance(part, dict)]
    return [text for text in [*parts, *held] if isinstance(text, str)]


def handler(steps: list[Step], log: str, sub: list[Step] | None = None) -> type[BaseHTTPRequestHandler]:
    """A request handler that plays the script; `sub` is a subagent's. Requests that offer tools are appended to `log`, one JSON
    line each."""
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
            if self.path.split("?")[0].endswith("/models"):
                models = [{"id": "scripted", "object": "model", "created": 1, "owned_by": "test"}]
                self._send(200, "application/json", json.dumps({"object": "list", "data": models, "models": []}).encode())
                return
            self._send(404, "application/json", b'{"error": {"message": "not found"}}')

        do_HEAD = do_GET

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        def do_POST(self) -> None:
            body = json.loads(self._body() or b"{}")
            if body.get("tools"):
                with lock, open(log, "a", encoding="utf-8") as file:
                    file.write(json.dumps(body) + "\n")
            script = sub if sub is not None and is_subagent(body) else steps
            found = answer(self.path.split("?")[0], body, script)
            if found is None:
                self._send(404, "application/json", b'{"error": {"message": "not found"}}')
            else:
                self._send(200, *found)

    return Model
