"""Plays a session of a Microsoft Agent Framework agent with a chat client of its own base class that says what it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from agent_framework import BaseChatClient, ChatMiddlewareLayer, ChatResponse, Content, FunctionInvocationLayer, Message, tool
from common import finish, inputs, play, run_shell, spec


class Client(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Says its steps in turn and keeps what it was sent."""

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Awaitable[ChatResponse]:
        async def answer() -> ChatResponse:
            inputs.append("\n".join(_text(content) for message in messages for content in message.contents))
            n = sum(any(c.type == "function_call" for c in message.contents) for message in messages)
            if n >= len(spec["steps"]):
                return ChatResponse(messages=[Message("assistant", ["done"])])
            calls = [
                Content.from_function_call(f"call_{n}_{i}", "run_shell", arguments={"command": c})
                for i, c in enumerate(spec["steps"][n])
            ]
            return ChatResponse(messages=[Message("assistant", calls)])

        return answer()


def _text(content: Any) -> str:
    return str(content.result if content.type == "function_result" else getattr(content, "text", "") or "")


names: dict[str, Any] = {"client": Client()}
if spec["mode"] == "rejected":
    names["run_shell"] = tool(run_shell, approval_mode="always_require")
    found = play(names, lambda source: source.replace('asyncio.run(agent.run("build it"))', ""))

    async def refused() -> None:
        """A person says no."""
        session = found["agent"].create_session()
        result = await found["agent"].run("build it", session=session)
        (asked,) = result.user_input_requests
        await found["agent"].run(Message("user", [asked.to_function_approval_response(False)]), session=session)

    asyncio.run(refused())
else:
    play(names)
finish()
