"""OpenAI Agents SDK: tools that ask the gate. Needs the extra `[openai-agents]`.

Read in the library's source (0.24): a tool guardrail can refuse a call with a text, and replace an output, but never learns of an
exception: a function tool turns it into a text of its own before (by default one that says nothing of it). So the tools are
wrapped, which sees what they raise; their own error texts, approvals, timeouts and guardrails stay. Tools of MCP servers and
hosted tools are not function tools of the agent: they are not seen (`projectmem proxy` is for MCP servers).
"""

from __future__ import annotations

import asyncio
import copy
import os
import time
from typing import Any, TypeVar

from agents import Agent, FunctionTool, RunHooks
from agents.tool import maybe_invoke_function_tool_failure_error_function, set_function_tool_failure_error_function
from agents.tool_context import ToolContext
from agents.tracing import get_current_span

from projectmem.integrations.core import Gate, off_loop
from projectmem.integrations.shapes import added

HARNESS = "openai-agents"
REJECTED = "Tool execution was not approved."  # the SDK's own text; an application's formatter may say it otherwise
A = TypeVar("A", bound=Agent[Any])


def with_gate(agent: A, gate: Gate, *, name: str = "") -> A:
    """A copy of the agent whose function tools ask the gate. A session is the run's `group_id`, else the run.

    gate  Gate.open(...);  name  of this agent where several share a session
    """
    return agent.clone(tools=[gated(tool, gate, name=name) if _own(tool) else tool for tool in agent.tools])


def _own(tool: Any) -> bool:
    """A function tool; not an agent that is used as one, whose own tools are what is done."""
    return isinstance(tool, FunctionTool) and not getattr(tool, "_is_agent_tool", False)


def gated(tool: FunctionTool, gate: Gate, *, name: str = "") -> FunctionTool:
    """A copy of one function tool that asks the gate."""
    bare, made = copy.copy(tool), copy.copy(tool)
    set_function_tool_failure_error_function(bare, None)  # raises; what is made of that is up to `made`

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        verdict = await gate.abefore(
            tool.qualified_name,
            arguments,
            session=_session(context),
            agent=name,
            call_id=context.tool_call_id,
            turn=(_run(context), context.usage.requests),
            harness=HARNESS,
            model=_model(context),
        )
        if verdict.refused:
            return verdict.reason
        began = time.monotonic()
        try:
            result = await bare.on_invoke_tool(context, arguments)
        except asyncio.CancelledError:
            limit = tool.timeout_seconds
            gate.after_cancelled(verdict, "timeout" if limit is not None and time.monotonic() - began >= limit else "cancelled")
            raise
        except Exception as exc:
            text = await gate.aafter(verdict, error=exc)
            said = await maybe_invoke_function_tool_failure_error_function(function_tool=made, context=context, error=exc)
            if said is None:
                raise
            get_current_span().set_error({"message": "Error running tool (non-fatal)", "data": {"tool_name": tool.name}})
            return added(said, text)
        return _with(result, await gate.aafter(verdict, result), tool)

    made.on_invoke_tool = invoke
    return made


class GateHooks(RunHooks[Any]):
    """Records what a person rejected: `Runner.run(agent, ..., hooks=GateHooks(gate))`. Not needed for anything else."""

    def __init__(self, gate: Gate, *, name: str = "") -> None:
        self.gate, self.name = gate, name

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: list[Any]) -> None:
        """See RunHooks."""
        calls: dict[Any, Any] = {}
        for item in input_items:
            fields = item if isinstance(item, dict) else getattr(item, "__dict__", {})
            if fields.get("type") == "function_call":
                calls[fields.get("call_id")] = fields
            elif fields.get("type") == "function_call_output" and fields.get("output") == REJECTED:
                call = calls.get(fields.get("call_id"))
                if call is not None:
                    known = {"session": _session(context), "agent": self.name, "call_id": call["call_id"], "harness": HARNESS}
                    await off_loop(lambda call=call, known=known: self.gate.rejected(call["name"], call["arguments"], **known))  # type: ignore[misc]


def _session(context: Any) -> str:
    """The run's group, else the run."""
    group = getattr(getattr(context, "run_config", None), "group_id", None)
    if group:
        return f"openai-agents-{group}"
    return f"openai-agents-{_run(context)}"


def _run(context: Any) -> str:
    """A name for the run: a mark on the count of its usage, which all its calls share."""
    found: str = context.usage.__dict__.setdefault("_projectmem_run", os.urandom(8).hex())
    return found


def _with(result: Any, text: str, tool: FunctionTool) -> Any:
    """The result with the text as the model reads it; a result that must be of a schema as it is."""
    if not text or tool.output_json_schema is not None:
        return result
    if isinstance(result, (str, list)) or result is None:
        return added(result, text)
    kind = result.get("type") if isinstance(result, dict) else getattr(result, "type", None)
    if kind in ("text", "image", "file"):  # the SDK's own parts of an output
        return [result, {"type": "text", "text": text}]
    return f"{result}\n\n{text}"


def _model(context: ToolContext[Any]) -> str:
    model = getattr(context.agent, "model", None)
    return model if isinstance(model, str) else ""
