"""The real client with the hooks of `init --http`: a server that the session starts, and the command when there is none."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest

from projectmem.serve import alive
from projectmem.setup.init import init

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("client")]

FAILS = {"tool": "Bash", "args": {"command": "cat missing-file && echo built", "description": "x"}}
SLOW = {"tool": "Bash", "args": {"command": "sleep 1.5", "description": "wait for the server"}}


def test_what_is_posted_is_recorded_and_answered_with_and_without_the_server(world: Any) -> None:
    """Learned through the server; told through the server in a session of its own, and through the command without one."""
    init(str(world.repo), now=time.time_ns() // 1000, import_sessions=False, http=True)
    world.session(SLOW, FAILS, env={"CLAUDE_PID": str(os.getpid())})
    outcomes = [event["data"]["outcome"] for event in world.events("action.finished")]
    assert outcomes == ["ok", "failed"], "once each, although both hooks are registered"
    assert world.events("gate.degraded") == []
    for kill in (False, True):
        pid = alive.server(str(world.home))
        if kill and pid:
            os.kill(pid, signal.SIGKILL)  # leaves its mark behind
        spoken = len(world.events("action.proposed"))
        requests = world.session(FAILS, env={"CLAUDE_PID": str(os.getpid())})
        assert len(world.events("action.proposed")) == spoken + 1
        proposed = world.events("action.proposed")[-1]["data"]["decision"]
        assert proposed["record"][:8] in json.dumps(requests[1]["messages"]), "the model reads what was decided"
    pid = alive.server(str(world.home))
    if pid:
        os.kill(pid, signal.SIGTERM)
    assert len(world.events("action.finished")) >= 4
