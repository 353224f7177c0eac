"""Microsoft Agent Framework: function and chat middleware. Needs the extra `[agent-framework]`.

Read in the library's source (agent-framework-core 1.23): function middleware that sets `context.result` and does not call
`call_next` answers the call itself; what comes back of a tool is a list of `Content`; an exception becomes the result `Error:
Function failed.` after the middleware. A person's rejection never comes to function middleware: it is a result among the
messages of the next request, which chat middleware sees, and can add to.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from agent_framework import (
    ChatContext,
    ChatMiddleware,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    MiddlewareFailure,
    MiddlewareTermination,
)

from projectmem.integrations.core import KEPT_MAX, Gate, off_loop

HARNESS = "agent-framework"
_request: ContextVar[object] = ContextVar("request", default=None)  # the request to the model that the calls of a run came of
REJECTED = "Error: Tool call invocation was rejected by user."


def gate_middleware(gate: Gate, *, agent: str = "") -> list[Any]:
    """The middleware of an agent: `Agent(..., middleware=gate_middleware(gate))`. Last in the list, it sees the call that is run.

    gate  Gate.open(...);  agent  a name for this agent where several share a session
    A session is the agent session's id where one is given, else the gate's own.
    """
    shared = _Shared(gate, agent)
    return [GateFunctionMiddleware(shared), GateChatMiddleware(shared)]


class _Shared:
    """What the two know of each other: what is still to be said of calls that raised."""

    def __init__(self, gate: Gate, agent: str) -> None:
        self.gate, self.agent = gate, agent
        self.lock = threading.Lock()
        self.owed: dict[str, str] = {}

    def owe(self, call_id: str, text: str) -> None:
        """Say this with the result of a call that raised."""
        with self.lock:
            self.owed[call_id] = text
            while len(self.owed) > KEPT_MAX:
                del self.owed[next(iter(self.owed))]


class GateFunctionMiddleware(FunctionMiddleware):
    """Asks the gate before each call of a function and tells it after."""

    def __init__(self, shared: _Shared) -> None:
        self.shared = shared

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """See FunctionMiddleware."""
        gate, session, id = self.shared.gate, _session(context.session), str(context.metadata.get("call_id") or "")
        verdict = await gate.abefore(
            context.function.name,
            context.arguments,
            session=session,
            agent=self.shared.agent,
            call_id=id,
            turn=_request.get(),
            harness=HARNESS,
        )
        if verdict.refused:
            context.result = verdict.reason
            return
        try:
            await call_next()
        except (MiddlewareTermination, MiddlewareFailure):
            await gate.aafter(verdict, ended="cancelled")
            raise
        except Exception as exc:
            text = await gate.aafter(verdict, error=exc)
            if text:
                self.shared.owe(id, text)
            raise
        except BaseException:
            gate.after_cancelled(verdict)
            raise
        result = context.result
        if isinstance(result, Content) and result.type == "function_approval_request":
            gate.waits(verdict)
            return
        text = await gate.aafter(verdict, _text(result))
        if text:
            context.result = [
                *(result if isinstance(result, list) else [Content.from_text(str(result))]),
                Content.from_text(text),
            ]


class GateChatMiddleware(ChatMiddleware):
    """Marks the requests, records what a person rejected, and says what could not be said of a call that raised."""

    def __init__(self, shared: _Shared) -> None:
        self.shared = shared

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """See ChatMiddleware."""
        session = _session(context.session)
        _request.set(object())
        calls: dict[str, Any] = {}
        for message in context.messages:
            for content in message.contents:
                if content.type == "function_call":
                    calls[content.call_id] = content
                elif content.type == "function_result":
                    await self._answered(content, calls.get(content.call_id), session)
        await call_next()

    async def _answered(self, content: Any, call: Any, session: str) -> None:
        with self.shared.lock:
            text = self.shared.owed.pop(content.call_id, "")
        if text:
            content.items = [*(content.items or ()), Content.from_text(text)]
            content.result = f"{content.result}\n\n{text}"
        if call is not None and content.result == REJECTED:
            known = {"session": session, "agent": self.shared.agent, "call_id": content.call_id, "harness": HARNESS}
            await off_loop(lambda: self.shared.gate.rejected(call.name, call.arguments, **known))


def _session(session: Any) -> str:
    id = getattr(session, "session_id", None)
    return f"agent-framework-{id}" if id else ""


def _text(result: Any) -> Any:
    """The text of a list of contents; any other value as it is."""
    if isinstance(result, Content):
        result = [result]
    if isinstance(result, list) and all(isinstance(item, Content) for item in result):
        return "\n".join(item.text for item in result if item.text)
    return result
