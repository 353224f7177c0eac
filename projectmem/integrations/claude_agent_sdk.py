"""Claude Agent SDK: hook callbacks. Needs the extra `[claude-agent-sdk]`.

Measured on the real client (2.1.332) under the SDK (0.2.189): a callback gets the JSON that a registered command would get, and
its answer is taken the same; the SDK passes events on that its own types do not name (`PostToolBatch`). So these are Claude
Code's hooks in process, by the same adapter, call ids and turns: where the client has the command too, nothing is recorded twice.
"""

from __future__ import annotations

import time
from typing import Any

from claude_agent_sdk import HookMatcher
from projectmem_logs.fastjson import encode

from projectmem import place as places
from projectmem.hook import claude_code, entry
from projectmem.integrations.core import Gate, answering, log, off_loop


def gate_hooks(gate: Gate) -> dict[Any, list[HookMatcher]]:
    """The hooks of a client: `ClaudeAgentOptions(hooks=gate_hooks(gate))`. The calls' folder is the client's own (`cwd`)."""
    return {
        event: [HookMatcher(hooks=[_callback(gate, event)], timeout=float(seconds))]
        for event, (seconds, _) in claude_code.EVENTS.items()
    }


def _callback(gate: Gate, event: str) -> Any:
    async def answer(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        return await off_loop(lambda: _answer(gate, event, given))

    return answer


def _answer(gate: Gate, event: str, given: Any) -> dict[str, Any]:
    if places.switched_off():
        return {}
    try:
        raw = encode(given).encode("utf-8", "backslashreplace")
        with answering:
            reply = entry.respond([claude_code.HARNESS, event], raw, time.time_ns() // 1000)
    except Exception as exc:
        gate.failed(f"at {event}", exc)
        return {}
    if reply and reply.get("systemMessage"):
        log.warning("%s", reply["systemMessage"])
    return reply or {}
