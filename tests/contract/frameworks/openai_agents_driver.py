"""Plays a session of the OpenAI Agents SDK with its own scripted model."""

from __future__ import annotations

import json
from typing import Any

from agents import Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from common import finish, inputs, play, run_shell, spec

set_tracing_disabled(True)
steps: list[Any] = [
    [function_call("run_shell", {"command": c}, call_id=f"call_{n}_{i}") for i, c in enumerate(commands)]
    for n, commands in enumerate(spec["steps"])
]
model = ScriptedModel([*steps, [assistant_message("done")]])
names: dict[str, Any] = {"model": model, "run_shell": function_tool(run_shell)}
if spec["mode"] == "rejected":
    names["run_shell"] = function_tool(run_shell, needs_approval=True)
    found = play(names, lambda source: source.replace("Runner.run_sync(", "result = Runner.run_sync("))
    state = found["result"].to_state()
    for item in found["result"].interruptions:
        state.reject(item)
    Runner.run_sync(found["agent"], state, hooks=found["hooks"])
else:
    play(names)
inputs += [json.dumps(call.input, ensure_ascii=False, default=str) for call in model.calls]
finish()
