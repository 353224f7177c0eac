"""Plays a session of LangChain's agent with its own fake chat model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from common import finish, inputs, play, spec
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command


class Model(GenericFakeChatModel):
    """Says its messages in turn and keeps what it was sent."""

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **more: Any) -> Any:
        inputs.append("\n".join(str(message.content) for message in messages))
        return super()._generate(messages, *args, **more)


def answers() -> list[Any]:
    """One message for each step, and a last word."""
    made = []
    for n, commands in enumerate(spec["steps"]):
        calls = [{"name": "run_shell", "args": {"command": c}, "id": f"call_{n}_{at}"} for at, c in enumerate(commands)]
        made.append(AIMessage("", tool_calls=calls))
    return [*made, AIMessage("done")]


def rejecting(source: str) -> str:
    """The example under a person's approval, which is refused."""
    source = source.replace("middleware=[", "checkpointer=saver, middleware=[person, ")
    return source.replace('"build it")]})', '"build it")]}, config)')


names = {"model": Model(messages=iter(answers()))}
if spec["mode"] == "rejected":
    config = {"configurable": {"thread_id": "one"}}
    person = HumanInTheLoopMiddleware(interrupt_on={"run_shell": True})
    found = play({**names, "person": person, "saver": InMemorySaver(), "config": config}, rejecting)
    found["agent"].invoke(Command(resume={"decisions": [{"type": "reject"}]}), config)
elif spec["mode"] == "cancelled":
    found = play(names, lambda source: source.replace("agent.invoke(", "work = agent.ainvoke("))

    async def cancel() -> None:
        """Give up once the command has begun."""
        task = asyncio.create_task(found["work"])
        while not Path("begun").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        Path("given-up").touch()

    asyncio.run(cancel())
elif spec["mode"] == "async":
    found = play(names, lambda source: source.replace("agent.invoke(", "work = agent.ainvoke("))
    asyncio.run(found["work"])
else:
    play(names)
finish()
