"""LangChain: middleware for `create_agent` (langchain 1.x). Needs the extra `[langchain]`.

Read in the library's source (1.5.2): `wrap_tool_call` surrounds the tool node's own run of a call. What it returns is the tool's
message, so a refusal is one; the node turns only bad arguments into such a message, an exception of the tool goes through every
middleware and ends the run unless one handles it. A person's rejection (HumanInTheLoopMiddleware) never comes to the tool node:
it is a message among the state's. What a person edited is put in place by that middleware's own `wrap_tool_call`, so that this
one has to stand after it in the list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain.messages import ToolMessage
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from projectmem.integrations.core import Gate, Verdict, off_loop
from projectmem.integrations.shapes import added

HARNESS = "langchain"
REJECTED = "User rejected the tool call"  # how HumanInTheLoopMiddleware begins its message, whatever the person says
Result: TypeAlias = "ToolMessage | Command[Any]"


class GateMiddleware(AgentMiddleware[Any, Any]):
    """Asks the gate before each tool call and tells it after. Last in the list of middleware, it sees the call that is run.

    gate  Gate.open(...);  agent  a name for this agent where several share a conversation
    A session is a thread (`thread_id`), without one a conversation (its first message), else the gate's own.
    """

    def __init__(self, gate: Gate, *, agent: str = "") -> None:
        super().__init__()
        self.gate, self.agent = gate, agent

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        """See AgentMiddleware."""
        verdict = self._before(request)
        if verdict.refused:
            return _refusal(request, verdict)
        try:
            result = handler(request)
        except GraphBubbleUp:  # the tool asks a person: it is run again with the answer
            self.gate.waits(verdict)
            raise
        except BaseException as exc:
            self.gate.after(verdict, error=exc)
            raise
        content, failed = _told(result)
        return _with(result, self.gate.after(verdict, content, is_error=failed))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]) -> Result:
        """See AgentMiddleware."""
        verdict = await off_loop(lambda: self._before(request))
        if verdict.refused:
            return _refusal(request, verdict)
        try:
            result = await handler(request)
        except GraphBubbleUp:
            self.gate.waits(verdict)
            raise
        except Exception as exc:
            await self.gate.aafter(verdict, error=exc)
            raise
        except BaseException:
            self.gate.after_cancelled(verdict)
            raise
        content, failed = _told(result)
        return _with(result, await self.gate.aafter(verdict, content, is_error=failed))

    def before_model(self, state: Any, runtime: Any) -> None:
        """Records what a person rejected since the model's last answer."""
        for call in _rejected(state):
            self.gate.rejected(
                call["name"],
                call["args"],
                session=_session(state),
                agent=self.agent,
                call_id=str(call.get("id") or ""),
                harness=HARNESS,
            )

    async def abefore_model(self, state: Any, runtime: Any) -> None:
        """See before_model."""
        if _rejected(state):
            await off_loop(lambda: self.before_model(state, runtime))

    def _before(self, request: ToolCallRequest) -> Verdict:
        call = request.tool_call
        return self.gate.before(
            call["name"],
            call["args"],
            session=_session(request.state),
            agent=self.agent,
            call_id=str(call.get("id") or ""),
            turn=_turn(request),
            harness=HARNESS,
            model=_model(request),
        )


def _messages(state: Any) -> list[Any]:
    found = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", state)
    return found if isinstance(found, list) else []


def _session(state: Any) -> str:
    try:
        thread = (get_config().get("configurable") or {}).get("thread_id")
    except RuntimeError:  # outside of a graph
        thread = None
    if thread:
        return f"langchain-{thread}"
    messages = _messages(state)
    return f"langchain-{messages[0].id}" if messages and getattr(messages[0], "id", None) else ""


def _asked(request: ToolCallRequest) -> tuple[int, Any]:
    """Place and message of the model's answer that the call is part of; (-1, None) where the state does not hold it."""
    id = request.tool_call.get("id")
    messages = _messages(request.state)
    for at in range(len(messages) - 1, -1, -1):
        if any(call.get("id") == id for call in getattr(messages[at], "tool_calls", None) or ()):
            return at, messages[at]
    return -1, None


def _turn(request: ToolCallRequest) -> str | None:
    at, message = _asked(request)
    return None if message is None else f"{at} {message.id}"


def _model(request: ToolCallRequest) -> str:
    told = getattr(_asked(request)[1], "response_metadata", None) or {}
    name = told.get("model_name") or told.get("model")
    return name if isinstance(name, str) else ""


def _rejected(state: Any) -> list[Any]:
    """The calls of the model's last answer that a person rejected."""
    messages = _messages(state)
    for at in range(len(messages) - 1, -1, -1):
        calls = {call.get("id"): call for call in getattr(messages[at], "tool_calls", None) or ()}
        if calls:
            said = [m for m in messages[at + 1 :] if isinstance(m, ToolMessage) and m.status == "error"]
            told = [m.tool_call_id for m in said if isinstance(m.content, str) and m.content.startswith(REJECTED)]
            return [calls[id] for id in told if id in calls]
    return []


def _refusal(request: ToolCallRequest, verdict: Verdict) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(content=verdict.reason, tool_call_id=call.get("id") or "", name=call["name"], status="error")


def _told(result: Result) -> tuple[Any, bool | None]:
    """(content, the message's mark). A command that steers the graph says nothing of how the tool went."""
    if isinstance(result, ToolMessage):
        return result.content, result.status == "error"
    return "", None


def _with(result: Result, text: str) -> Result:
    """The result with the text behind its content; a steering command as it is."""
    if text and isinstance(result, ToolMessage):
        return result.model_copy(update={"content": added(result.content, text)})
    return result
