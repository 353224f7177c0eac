"""Plays a session of a pydantic-ai agent with its own function model."""

from __future__ import annotations

import json
from typing import Any

from common import finish, inputs, play, spec
from pydantic_ai import DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def answer(messages: list[Any], info: Any) -> ModelResponse:
    """The calls of the next step, or a last word."""
    inputs.append(json.dumps(json.loads(ModelMessagesTypeAdapter.dump_json(messages)), ensure_ascii=False))
    n = sum(isinstance(message, ModelResponse) for message in messages)
    if n >= len(spec["steps"]):
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(
        parts=[ToolCallPart("run_shell", {"command": c}, tool_call_id=f"call_{n}_{i}") for i, c in enumerate(spec["steps"][n])]
    )


names: dict[str, Any] = {"model": FunctionModel(answer, model_name="scripted")}
if spec["mode"] == "rejected":
    names |= {"Tool": Tool, "output": [str, DeferredToolRequests]}
    found = play(
        names,
        lambda source: source.replace(
            "tools=[run_shell]", "tools=[Tool(run_shell, requires_approval=True)], output_type=output"
        ).replace("agent.run_sync(", "result = agent.run_sync("),
    )
    result = found["result"]
    denied = DeferredToolResults(approvals={call.tool_call_id: False for call in result.output.approvals})
    found["agent"].run_sync(message_history=result.all_messages(), deferred_tool_results=denied)
else:
    play(names)
finish()
