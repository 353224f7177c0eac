"""Plays a session of a Google ADK agent with a model of its own base class that says what it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from common import finish, inputs, play, spec
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.genai import types


class Model(BaseLlm):
    """Says its steps in turn and keeps what it was sent."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        inputs.append(
            "\n".join(part.text or str(part.function_response.response if part.function_response else "") for part in parts)
        )
        n = sum(any(part.function_call for part in content.parts or ()) for content in llm_request.contents)
        said = [types.Part.from_text(text="done")]
        if n < len(spec["steps"]):
            said = [types.Part(function_call=types.FunctionCall(name="run_shell", args={"command": c})) for c in spec["steps"][n]]
        yield LlmResponse(content=types.Content(role="model", parts=said))


names: dict[str, Any] = {"model": Model(model="scripted")}
if spec["mode"] == "rejected":
    names["FunctionTool"] = FunctionTool
    found = play(
        names,
        lambda source: source.replace("tools=[run_shell]", "tools=[FunctionTool(run_shell, require_confirmation=True)]").replace(
            "asyncio.run(", "events = asyncio.run("
        ),
    )
    (asked,) = [c for e in found["events"] for c in e.get_function_calls() if c.name == "adk_request_confirmation"]
    no = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": False})

    async def refused() -> None:
        """A person says no."""
        said = types.Content(role="user", parts=[types.Part(function_response=no)])
        async for _ in found["runner"].run_async(user_id="debug_user_id", session_id="debug_session_id", new_message=said):
            pass

    asyncio.run(refused())
else:
    play(names)
finish()
