"""What the tests of several clients share: how each model runs a command, and a project whose build fails."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from projectmem.setup.init import init

# How each client's model runs a command.
SHELL: dict[str, Callable[[str], dict[str, Any]]] = {
    "claude": lambda c: {"tool": "Bash", "args": {"command": c, "description": "d"}},
    "codex": lambda c: {"tool": "exec_command", "args": {"cmd": c}},
    "gemini": lambda c: {"tool": "run_shell_command", "args": {"command": c, "description": "d"}},
    "qwen": lambda c: {"tool": "run_shell_command", "args": {"command": c, "description": "d", "is_background": False}},
    "copilot": lambda c: {"tool": "bash", "args": {"command": c, "description": "d"}},
    "opencode": lambda c: {"tool": "bash", "args": {"command": c, "description": "d"}},
    "droid": lambda c: {"tool": "Execute", "args": {"command": c, "summary": "s", "riskLevel": "low", "riskLevelReason": "r"}},
    "pi": lambda c: {"tool": "bash", "args": {"command": c}},
    "cline": lambda c: {"tool": "run_commands", "args": {"commands": [c]}},
}
NAMES = {"claude": "claude-code"}
OTHERS = [name for name in SHELL if name != "claude"]


def setup(world: Any, *clients: str) -> None:
    """Hooks of these clients in the project's own settings."""
    named = [NAMES.get(client, client) for client in clients or (world.harness,)]
    init(str(world.repo), now=time.time_ns() // 1000, harnesses=named, import_sessions=False)


def shop(world: Any) -> None:
    """A project whose build wants a file that is not there."""
    package = {"name": "shop", "version": "1.0.0", "scripts": {"build": "node build.js"}}
    (world.repo / "package.json").write_text(json.dumps(package))
    (world.repo / "build.js").write_text(
        "const fs = require('fs');\n"
        "if (!fs.existsSync('config.json')) { console.error('Error: cannot find config.json'); process.exit(2); }\n"
        "console.log('built');\n"
    )
    world.commit()


def conversation(request: dict[str, Any]) -> str:
    """Everything that the model read."""
    return json.dumps({k: request.get(k) for k in ("messages", "input", "contents")}, ensure_ascii=False)


def costly(world: Any) -> None:
    """Three earlier sessions waited two minutes each for the same failure."""
    from projectmem.hook.entry import respond

    call = {"tool_name": "Bash", "tool_input": {"command": "npm run build"}, "is_interrupt": False, "duration_ms": 120_000}
    for session in ("a", "b", "c"):
        base = {"session_id": session, "transcript_path": "", "cwd": str(world.repo), "hook_event_name": "PostToolUseFailure"}
        payload = {**base, **call, "tool_use_id": f"t_{session}", "error": "Exit code 2\nError: cannot find config.json"}
        respond(["claude-code", "PostToolUseFailure"], json.dumps(payload).encode(), time.time_ns() // 1000)
