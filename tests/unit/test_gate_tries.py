"""What makes a call another try, or the same one again, by what it is given and by what happened in between."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_gate.decide import decide
from projectmem_gate.history import Record
from projectmem_gate.identify import identify
from projectmem_gate.model import Action, Outcome, Session
from projectmem_gate.outcome import judge
from projectmem_gate.policy import MINUTE, Policy

from projectmem.hook.drafts import finished_draft

NOW = 10**15
SAME = {"head": "same", "deps": "same", "files": "same", "changes": []}


def call(command: str, **fields: Any) -> Action:
    """The action of a shell call."""
    return identify("Bash", {"command": command, **fields}, root="/r", cwd="/r")


def failure(action: Action, cls: str, sig: str, code: int = 1, **rest: Any) -> Record:
    """The record of a call that failed a minute ago, with the facts that its event carries."""
    outcome = Outcome("failed", code, cls, sig, sig, 0 if len(action.parts) == 1 else -1)
    data = finished_draft({}, action, outcome, {}, at=NOW - MINUTE)["data"]
    known = {"text": action.text, "family": action.parts[-1].family, "session": "s1", "facts": data["facts"], "exit": code}
    return Record(action.key, "id", NOW - MINUTE, cls=cls, sig=sig, excerpt=sig, **(known | rest))


def verdict(action: Action, record: Record, *changes: tuple[str, str], session: str = "s1") -> str:
    """What the gate says to the action after these changes."""
    facts = SAME | {"changes": [[*change, NOW - 1] for change in changes]}
    return decide(action, [record], {"id": facts}, Session(session), Policy(), NOW).verdict


@pytest.mark.parametrize(
    ("first", "given", "second", "then", "said"),
    [
        ("cargo build", {"timeout": 60_000}, "cargo build", {"timeout": 600_000}, "allow"),
        ("cargo build", {"timeout": 60_000}, "cargo build", {"run_in_background": True}, "allow"),
        ("cargo build", {"timeout": 60_000}, "cargo build", {}, "allow"),  # the harness gives two minutes
        ("cargo build", {"timeout": 60_000}, "cargo build", {"timeout": 60_000}, "ask"),
        ("cargo build", {"timeout": 60_000}, "cargo build", {"timeout": 30_000}, "ask"),
        ("cargo build", {"timeout": 60_000}, "timeout 50 cargo build", {"timeout": 600_000}, "ask"),
        ("cargo build", {}, "cargo build", {}, "ask"),
        ("cargo build", {}, "cargo build", {"timeout": 300_000}, "allow"),
        ("cargo build", {}, "cargo build &", {}, "allow"),
        ("cargo build", {}, "nohup cargo build > log 2>&1 &", {}, "allow"),
        ("cargo build", {}, "nohup cargo build", {}, "ask"),
        ("cargo build", {}, "cargo build & wait", {}, "ask"),
        ("timeout 10 cargo build", {}, "timeout 600 cargo build", {}, "allow"),
        ("timeout 10m cargo build", {}, "timeout 600 cargo build", {}, "ask"),
        ("timeout 10 cargo build", {}, "bash -c 'timeout -k 5 1m cargo build'", {}, "allow"),
        ("timeout 10 cargo build", {}, "sudo cargo build", {}, "allow"),  # another action
        ("cargo build &", {}, "cargo build &", {}, "ask"),
        ("cargo build &", {}, "cargo build", {"timeout": 600_000}, "ask"),
    ],
)
def test_more_time_is_another_try(first: str, given: dict[str, Any], second: str, then: dict[str, Any], said: str) -> None:
    """A call whose time ran out may be made again with a longer limit or in the background, and with no other limit."""
    record = failure(call(first, **given), "timeout", "Command timed out after 1m", 143, dur_ms=60_000)
    assert verdict(call(second, **then), record) == said


def test_more_time_mends_nothing_else() -> None:
    """A limit is no part of what a call is: what failed in good time fails with more of it."""
    record = failure(call("cargo build", timeout=60_000), "build", "error[E0308]: mismatched types", dur_ms=60_000)
    assert verdict(call("cargo build", timeout=600_000), record) == "ask"
    assert "limit" not in record.facts


REFUSED = "curl: (7) Failed to connect to localhost port 3000: Connection refused"


@pytest.mark.parametrize(
    ("started", "fields", "said"),
    [
        ("npm run dev &", {}, "allow"),
        ("nohup node server.js > log 2>&1 &", {}, "allow"),
        ("npm run dev", {"run_in_background": True}, "allow"),
        ("python -m http.server &", {}, "allow"),
        ("./start.sh", {}, "allow"),
        ("uvicorn app:app --port 3000 &", {}, "allow"),
        ("docker compose up -d", {}, "allow"),
        ("ls", {}, "warn"),
        ("pytest -q", {}, "warn"),
        ("npm run lint", {}, "warn"),
        ("curl localhost:8080", {}, "warn"),
    ],
)
def test_a_server_was_started(started: str, fields: dict[str, Any], said: str) -> None:
    """An address of this machine may answer once a program was run; looking and checking start none."""
    record = failure(call("curl localhost:3000"), "network", REFUSED, 7)
    effects = [effect for part in call(started, **fields).parts for effect in part.effects]
    assert verdict(call("curl localhost:3000"), record, *effects) == said
    if "log" not in started:
        assert verdict(call(f"{started.removesuffix(' &')} & sleep 2; curl localhost:3000"), record) == said


def test_a_program_here_is_no_server_elsewhere() -> None:
    """Another machine does not answer because something ran here; what asked again is no server either."""
    far = failure(call("curl https://api.example.com"), "network", "curl: (6) Could not resolve host: api.example.com", 6)
    assert verdict(call("curl https://api.example.com"), far, ("any", "./start.sh")) == "warn"
    own = failure(call("./client get"), "network", "connect ECONNREFUSED 127.0.0.1:3000")
    assert verdict(call("./client get"), own, ("any", "./client")) == "warn"
    assert verdict(call("./client get"), own, ("any", "./server")) == "allow"


def test_who_waits_first_is_not_stopped() -> None:
    """What only needs time is tried again after a pause: told at most, never stopped."""
    action = call("curl localhost:3000")
    record = failure(
        action, "network", REFUSED, 7, dur_ms=10, runs=[NOW - 2 * MINUTE, NOW - MINUTE], ran_by=["s1", "s1"], identical=2
    )
    assert verdict(action, record) == "ask"
    assert verdict(call("sleep 3 && curl localhost:3000"), record) == "warn"
    assert verdict(call("curl localhost:3000; sleep 3"), record) == "ask"


def served(tool: str, **arguments: Any) -> Action:
    """The action of a call of a server's tool."""
    return identify(tool, arguments, root="/r", cwd="/r")


@pytest.mark.parametrize(
    ("tool", "error", "cls", "other", "said"),
    [
        ("mcp__web__click", "Error: element #go not found", "unknown", "mcp__web__navigate", "allow"),
        ("mcp__db__query", "relation t does not exist", "unknown", "mcp__db__query", "allow"),
        ("mcp__web__click", "Error: element #go not found", "unknown", "mcp__db__query", "warn"),
        ("mcp__web__click", "Timeout 30000ms exceeded waiting for selector", "unknown", "mcp__web__snapshot", "allow"),
        ("mcp__web__click", "MCP error -32602: Invalid arguments", "usage", "mcp__web__navigate", "warn"),
        ("mcp__web__click", "missing required parameter: ref", "usage", "mcp__web__navigate", "warn"),
    ],
)
def test_a_server_keeps_a_state(tool: str, error: str, cls: str, other: str, said: str) -> None:
    """Another call of the same server may have changed what failed, unless the arguments are at fault."""
    action = served(tool, a="x")
    outcome = judge(action, exit_code=None, output=error, is_error=True)
    assert (outcome.outcome, outcome.cls) == ("failed", cls)
    record = failure(action, outcome.cls, outcome.signature)
    effects = served(other, b="y").parts[0].effects
    assert verdict(action, record, *effects) == said


def test_a_server_mends_no_program() -> None:
    """A tool that only looks, of any server, is nothing to a program that failed."""
    action = call("make all")
    assert verdict(action, failure(action, "runtime", "make: *** [all] Error 1"), ("mcp", "make")) == "warn"


@pytest.mark.parametrize(
    ("command", "other", "said"),
    [
        ("npm run build", "NODE_OPTIONS=--max-old-space-size=8192 npm run build", "ask"),
        ("node build.js", "node --max-old-space-size=8192 build.js", "ask"),
        ("make bundle", "make bundle JOBS=1", "ask"),
        ("cargo build", "cargo build -j 1", "ask"),
        ("npm run build", "npm run clean-cache", "allow"),
        ("npm run build", "rm -rf node_modules/.cache", "allow"),
        ("npm run build", "./free-memory.sh", "allow"),
    ],
)
def test_a_remedy_is_no_cure(command: str, other: str, said: str) -> None:
    """That the work went well with more memory does not make room for the way that had too little."""
    action = call(command)
    record = failure(action, "resource", "FATAL ERROR: JavaScript heap out of memory", 134, dur_ms=60_000)
    effects = [effect for part in call(other).parts for effect in part.effects]
    assert effects
    assert verdict(action, record, *effects) == said
