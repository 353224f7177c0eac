"""pydantic-ai: a capability (pydantic-ai 2.x). Needs the extra `[pydantic-ai]`.

Read in the library's source (2.68): `wrap_tool_execute` surrounds a validated call of any toolset, MCP included, and is not asked
for output tools. `ToolFailed` is a result that the model reads as a failure, without using up retries; a tool's `ModelRetry`
comes here as `ToolRetryError`, whose part can be added to. A denied approval skips execution: its part has the outcome `denied`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, SkipToolExecution, ToolFailed, ToolFailedError, ToolRetryError
from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturnPart

from projectmem.integrations.core import Gate, off_loop
from projectmem.integrations.shapes import added

HARNESS = "pydantic-ai"


class GateCapability(AbstractCapability[Any]):
    """Asks the gate before each tool call and tells it after: `Agent(..., capabilities=[GateCapability(gate)])`.

    gate  Gate.open(...);  agent  a name for this agent where several share a conversation
    A session is the run's conversation.
    """

    def __init__(self, gate: Gate, *, agent: str = "") -> None:
        self.gate, self.agent = gate, agent

    def get_ordering(self) -> CapabilityOrdering:
        """Nearest to the tool: what others change is seen as it is run."""
        return CapabilityOrdering(position="innermost")

    async def wrap_tool_execute(self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any, handler: Any) -> Any:
        """See AbstractCapability."""
        verdict = await self.gate.abefore(
            call.tool_name,
            args,
            session=_session(ctx),
            agent=self.agent,
            call_id=call.tool_call_id,
            turn=(ctx.run_id, ctx.run_step),
            harness=HARNESS,
            model=getattr(ctx.model, "model_name", ""),
        )
        if verdict.refused:
            raise ToolFailed(verdict.reason)
        try:
            result = await handler(args)
        except (SkipToolExecution, CallDeferred, ApprovalRequired):  # it has not run, or goes on elsewhere
            self.gate.waits(verdict)
            raise
        except (ToolRetryError, ToolFailedError) as exc:
            part = exc.tool_retry if isinstance(exc, ToolRetryError) else exc.tool_failed
            part.content = added(part.content, await self.gate.aafter(verdict, part.content, is_error=True))
            raise
        except Exception as exc:
            await self.gate.aafter(verdict, error=exc)
            raise
        except BaseException:
            self.gate.after_cancelled(verdict)
            raise
        value = result.return_value if isinstance(result, ToolReturn) else result
        return _with(result, await self.gate.aafter(verdict, value))

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        """Records what was denied since the model's last answer."""
        for call in _denied(request_context.messages):
            known = {"session": _session(ctx), "agent": self.agent, "call_id": call.tool_call_id, "harness": HARNESS}
            await off_loop(lambda call=call, known=known: self.gate.rejected(call.tool_name, call.args, **known))  # type: ignore[misc]
        return request_context


def _session(ctx: RunContext[Any]) -> str:
    id = ctx.conversation_id or ctx.run_id
    return f"pydantic-ai-{id}" if id else ""


def _denied(messages: list[Any]) -> list[ToolCallPart]:
    """The calls of the model's last answer that a person, or the application for one, denied."""
    if len(messages) < 2 or not isinstance(messages[-2], ModelResponse):
        return []
    denied = {p.tool_call_id for p in messages[-1].parts if isinstance(p, ToolReturnPart) and p.outcome == "denied"}
    return [p for p in messages[-2].parts if isinstance(p, ToolCallPart) and p.tool_call_id in denied]


def _with(result: Any, text: str) -> Any:
    """The result with the text: in it where it is text or an object, else as content of its own beside it."""
    if not text:
        return result
    if isinstance(result, ToolReturn):
        if isinstance(result.return_value, (str, dict)):
            return replace(result, return_value=added(result.return_value, text))
        return replace(result, content=added(result.content, text)) if isinstance(result.content, (str, type(None))) else result
    if result is None or isinstance(result, (str, dict)):
        return added(result, text)
    return ToolReturn(return_value=result, content=text)
