"""Google ADK: a plugin of a runner or an app. Needs the extra `[google-adk]`.

Read in the library's source (2.13): a dict that `before_tool_callback` returns is the tool's response, and the tool does not run;
the after-callbacks are called with it too. All callbacks of a call share one `tool_context`. A tool that asks a person to confirm
is answered with an error first, without a `tool_confirmation`; after a rejection, with one that is not `confirmed`. An exception
ends the run, unless another plugin answers for it. A call that is cancelled comes to `on_tool_error_callback`.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from google.adk.plugins.base_plugin import BasePlugin

from projectmem.integrations.core import KEPT_MAX, Gate, Verdict
from projectmem.integrations.shapes import added

HARNESS = "google-adk"


class GatePlugin(BasePlugin):
    """Asks the gate before each tool call and tells it after: `InMemoryRunner(agent, plugins=[GatePlugin(gate)])`.

    Last in the list, it is asked of calls that no other plugin has answered. A session is ADK's, an agent has its own name.
    """

    def __init__(self, gate: Gate, name: str = "projectmem") -> None:
        super().__init__(name)
        self.gate = gate
        self._running: dict[int, tuple[Any, Verdict]] = {}  # the context is kept too, so that no other gets its place
        self._lock = threading.Lock()

    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> dict[str, Any] | None:
        """See BasePlugin."""
        verdict = await self.gate.abefore(
            tool.name,
            tool_args,
            session=f"google-adk-{tool_context.session.id}",
            agent=tool_context.agent_name,
            call_id=tool_context.function_call_id or "",
            turn=_turn(tool_context),
            harness=HARNESS,
        )
        if verdict.refused:
            return {"error": verdict.reason}
        with self._lock:
            self._running[id(tool_context)] = (tool_context, verdict)
            while len(self._running) > KEPT_MAX:
                del self._running[next(iter(self._running))]
        return None

    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        """See BasePlugin. A dict is added to in place, so that the callbacks after this one are called too."""
        verdict = self._taken(tool_context)
        if verdict is None:
            return None
        confirmation = tool_context.tool_confirmation
        if confirmation is None and tool_context.function_call_id in tool_context.actions.requested_tool_confirmations:
            self.gate.waits(verdict)
            return None
        refused = confirmation is not None and not confirmation.confirmed
        text = await self.gate.aafter(verdict, result, ended="rejected" if refused else "")
        if not text:
            return None
        if isinstance(result, dict):
            result["projectmem"] = text
            return None
        return {"result": added(result, text)} if isinstance(result, str) else {"result": result, "projectmem": text}

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: BaseException
    ) -> dict[str, Any] | None:
        """See BasePlugin."""
        verdict = self._taken(tool_context)
        if verdict is not None and isinstance(error, asyncio.CancelledError):
            self.gate.after_cancelled(verdict)
        elif verdict is not None:
            await self.gate.aafter(verdict, error=error)
        return None

    def _taken(self, tool_context: Any) -> Verdict | None:
        with self._lock:
            return self._running.pop(id(tool_context), (None, None))[1]


def _turn(tool_context: Any) -> str | None:
    """The event of the model's answer that the call is part of; None where the session does not hold it."""
    for event in reversed(tool_context.session.events):
        if any(call.id == tool_context.function_call_id for call in event.get_function_calls()):
            return str(event.id)
    return None
