"""What every harness's adapter turns its events into [H]: a payload with neutral calls; and what an adapter must offer.

An adapter is a module `projectmem.hook.NAME` with the names of `Adapter`. It reads payloads and writes answers in its
harness's own words; nothing else in the package knows those.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    from projectmem_gate.model import Decision

    Call = dict[str, Any]
    Answer = dict[str, Any] | None

    class Adapter(Protocol):
        """One harness's words. All functions are pure but for the files that a payload names (transcripts)."""

        HARNESS: str
        BATCHES: bool  # an event tells that all calls of one model turn have ended
        SUBAGENT: str  # for people: whose a subagent's calls are by its events; none where it has no such tool
        BACKGROUND: str  # for people: what is learned of a command that is left running; none where it has no such tool
        WARNS_BEFORE: bool  # text given before a call reaches the model; otherwise it is kept for the next event after one

        def parse(self, event: str, raw: Any) -> Payload:
            """The payload. Raises ValueError naming what is wrong with it."""

        def answer(self, payload: Payload, decision: Decision) -> Answer:
            """What the harness is told of a decision; None says nothing, which allows."""

        def refuses(self, reply: Mapping[str, Any] | None) -> bool:
            """Whether an answer keeps the call from running (and not merely asks a person)."""

        def context(self, event: str, text: str) -> Answer:
            """Text for the model beside what happens anyway; None for no text or where the event takes none."""

        def with_message(self, reply: Answer, message: str) -> Answer:
            """The same answer with a line that the person sees, where the harness can show one beside it."""


# name -> module. The name is what `init` writes into the registered command.
ADAPTERS = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "qwen": "qwen",
    "copilot": "copilot",
    "opencode": "opencode",
    "droid": "droid",
    "cline": "cline",
    "pi": "pi",
    "openhands": "openhands",
    "cursor": "cursor",
}


class Payload:
    """One hook call, read.

    event  the harness's own name;  kind  pre | post | batch | prompt | start | end, "" for what another hook tells
    calls  of pre, post and batch
    ended  calls whose end no event told, found in the transcript before a call; adapter  the module that read it
    turn   the batch of the session where whoever calls knows it, -1 where it is counted by the events (BATCHES) or not known
    """

    __slots__ = ("adapter", "agent", "calls", "cwd", "ended", "event", "kind", "raw", "session", "transcript", "turn")

    def __init__(self, event: str, kind: str, raw: dict[str, Any]) -> None:
        self.event, self.kind, self.raw = event, kind, raw
        self.session = text_of(raw, "session_id")
        self.agent = text_of(raw, "agent_id")
        self.cwd = text_of(raw, "cwd")
        self.transcript = text_of(raw, "transcript_path")
        self.calls: list[Call] = []
        self.ended: list[Call] = []
        self.adapter: Any = None
        self.turn = -1


def begun(event: str, kinds: Mapping[str, str], raw: Any) -> Payload:
    """The payload of an event as far as the common fields go. Raises ValueError for what is no payload at all."""
    kind = kinds.get(event)
    if kind is None:
        raise ValueError(f"unknown event {event!r}: this hook knows {', '.join(kinds)}")
    if not isinstance(raw, dict):
        raise ValueError(f"the payload is not a JSON object but {type(raw).__name__}")
    named = raw.get("hook_event_name")
    if named is not None and named != event:
        raise ValueError(f"registered for {event} but called with {str(named)[:60]!r}: run `projectmem init` again")
    return Payload(event, kind, raw)


def checked(payload: Payload) -> Payload:
    """The payload itself. Raises ValueError where it has no session or no folder."""
    if not payload.session:
        raise ValueError("the payload has no session id")
    if not payload.cwd:
        raise ValueError("the payload has no cwd")
    return payload


# A call's outcome before anything is known of it.
OUTCOME_OPEN: dict[str, Any] = {
    "exit_code": None,
    "output": "",
    "is_error": None,
    "error_kind": "",
    "interrupted": False,
    "timed_out": False,
    "duration_ms": None,
    "background": "",
}


def call_of(payload: Payload, harness: str, tool: Any, given: Any, id: str) -> Call:
    """The neutral call; of its outcome nothing yet. Raises ValueError where the tool has no name."""
    if not isinstance(tool, str) or not tool:
        raise ValueError("the payload has no tool name")
    return {
        "harness": harness,
        "session": payload.session,
        "agent": payload.agent,
        "model": text_of(payload.raw, "model"),
        "call": id,
        "tool": tool,
        "input": given,
        "cwd": payload.cwd,
        **OUTCOME_OPEN,
    }


def unnamed(payload: Payload, call: Call, stamp: Any) -> Call:
    """The same call where the harness gives it no id. Before the call it gets one of its own, of the tool, a few bits of the
    input and the harness's clock (which is the same for a hook that is registered twice); after it, what to find that by.

    Only 16 bits of the input: an id is kept in the log, and the input may hold a secret.
    """
    name = f"{call['tool'][:40]}-{mark_of(call['input'])}@"
    if payload.kind == "pre":
        call["call"] = f"{name}{stamp}"
    else:
        call["match"], call["stamp"] = name, str(stamp)
    return call


def mark_of(given: Any) -> str:
    """A few bits of an input, as four digits. Raises ValueError, TypeError for what is no JSON."""
    from projectmem_logs.fastjson import encode

    return f"{int.from_bytes(encode(given).encode('utf-8', 'surrogatepass'), 'big') % 65521:04x}"


PROXIED = "mcp"  # the harness of calls that come through the proxy


def served(call: Call) -> str:
    """What the proxy finds a call by that the client's own hook has been asked about: whose it is, the tool and a few bits of the
    input; "" for a tool that by its name is no MCP server's, and for the proxy's own calls."""
    tool = call["tool"]
    foreign = "_" in tool or "-" in tool or tool[:3].lower() == "mcp"
    if not foreign or call["harness"] == PROXIED or not tool.isascii() or not tool.isprintable() or '"' in tool or "\\" in tool:
        return ""
    try:
        return f"{call['harness']} {tool[:200]}-{mark_of(call['input'])}"
    except (ValueError, TypeError, RecursionError):  # an input that is no JSON: the proxy has no such call either
        return ""


MAX_OUTPUT = 262_144  # characters of a tool's output that are judged: its head and its tail
MAX_TAIL = 262_144  # bytes that are read of the end of a transcript


def head_and_tail(text: str) -> str:
    """A text cut in the middle to at most MAX_OUTPUT characters."""
    if len(text) <= MAX_OUTPUT:
        return text
    half = MAX_OUTPUT // 2
    return f"{text[:half]}\n...\n{text[-half:]}"


def read_tail(path: str, limit: int = MAX_TAIL) -> str:
    """The end of a text file, "" where it cannot be read or is a pipe. At most `limit` bytes."""
    import os

    flag = getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | flag)) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - limit))
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def exited(call: Call, code: Any, output: str) -> Call:
    """The same call with its exit code, where that is a number, and its output."""
    call["output"] = head_and_tail(output)
    if isinstance(code, int) and not isinstance(code, bool):
        call["exit_code"], call["is_error"] = code, code != 0
        call["error_kind"] = "exit" if code else ""
    return call


def errored(call: Call, output: str) -> Call:
    """The same call as one that its tool failed at."""
    call["output"], call["is_error"], call["error_kind"] = head_and_tail(output), True, "tool"
    return call


def ours(text: str) -> bool:
    """Whether a tool's error is the gate's own refusal: nothing is learned from that."""
    return text.startswith(("projectmem: ", "projectmem refused "))


def number_after(text: str, mark: str) -> int | None:
    """The number right after the last `mark` in a text, None where there is none."""
    at = text.rfind(mark)
    if at < 0:
        return None
    digits = text[at + len(mark) :].lstrip()[:6]
    end = 0
    while end < len(digits) and digits[end].isdigit() and digits[end].isascii():
        end += 1
    return int(digits[:end]) if end else None


def text_of(row: Mapping[str, Any], name: str) -> str:
    """A field that should hold text, "" where it does not."""
    value = row.get(name)
    return value if isinstance(value, str) else ""
