"""Plays a session of the Claude Agent SDK: the real Claude Code client under it, a scripted model on loopback behind it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from common import finish, inputs, play, spec

sys.path.insert(0, str(Path(__file__).parents[2] / "e2e"))
import clients
from scripted_model import handler

log = Path(tempfile.mkdtemp()) / "model.jsonl"
steps = [[{"tool": "Bash", "args": {"command": c}} for c in commands] for commands in spec["steps"]]
server = ThreadingHTTPServer(("127.0.0.1", 0), handler(steps, str(log)))
threading.Thread(target=server.serve_forever, daemon=True).start()
_, env = clients.claude({}, Path(os.environ["HOME"]), f"http://127.0.0.1:{server.server_address[1]}")
mode = "default" if spec["mode"] == "rejected" else "bypassPermissions"


async def no(*asked: Any) -> Any:
    """A person says no."""
    from claude_agent_sdk import PermissionResultDeny

    return PermissionResultDeny(message="not now")


names: dict[str, Any] = {
    "own": {
        "cli_path": spec["client"],
        "model": "claude-sonnet-4-5",
        "env": {**env, "IS_SANDBOX": "1"},
        "permission_mode": mode,
        **({"can_use_tool": no} if spec["mode"] == "rejected" else {}),
    }
}
found = play(names, lambda source: source.replace("hooks=gate_hooks(gate)", "hooks=gate_hooks(gate), **own"))
asyncio.run(found["build"]())
server.shutdown()
for line in log.read_text(encoding="utf-8").splitlines():
    inputs.append(json.dumps(json.loads(line), ensure_ascii=False))
finish()
