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
    known = {
        "excerpt": sig,
        "text": action.text,
        "family": action.parts[-1].family,
        "session": "s1",
        "facts": data["facts"],
        "exit": code,
    }
    return Record(action.key, "id", NOW - MINUTE, cls=cls, sig=sig, **(known | rest))


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


@pytest.mark.parametrize(
    ("kind", "before_s", "command", "said"),
    [
        ("any", 20, "sleep 3 && curl localhost:3000", "allow"),  # npm run dev
        ("service", 20, "sleep 3 && curl localhost:3000", "allow"),  # docker compose up
        ("any", 0, "sleep 3 && curl localhost:3000", "allow"),  # in the very call that failed
        ("any", 20, "curl localhost:3000", "warn"),
        ("any", 900, "sleep 3 && curl localhost:3000", "warn"),
        ("edit", 20, "sleep 3 && curl localhost:3000", "warn"),
    ],
)
def test_who_waits_for_a_server_that_was_just_started_is_let_alone(kind: str, before_s: int, command: str, said: str) -> None:
    """It was not up yet at the failure; long before, or without a wait, it makes no difference."""
    record = failure(call("curl localhost:3000"), "network", REFUSED, 7, dur_ms=90_000, runs=[NOW - MINUTE], ran_by=["s1"])
    facts = SAME | {"changes": [[kind, "x", record.at - before_s * 1_000_000]]}
    assert decide(call(command), [record], {"id": facts}, Session("s1"), Policy(), NOW).verdict == said


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


PRE_COMMIT = """trim trailing whitespace.................................................Failed
- hook id: trailing-whitespace
- exit code: 1
- files were modified by this hook

Fixing a.py
"""


@pytest.mark.parametrize("command", ["pre-commit run --all-files", "git commit -m x"])
def test_what_mended_itself_is_tried_again(command: str) -> None:
    """A hook that rewrote the files failed on what they were. Where the next run does so too, they fight."""
    action = call(command)
    outcome = judge(action, exit_code=1, output=PRE_COMMIT, is_error=True)
    assert outcome.outcome == "failed"
    first: dict[str, Any] = {"excerpt": outcome.excerpt, "dur_ms": 60_000}
    assert verdict(action, failure(action, outcome.cls, outcome.signature, **first, identical=1)) == "allow"
    runs: dict[str, Any] = {"identical": 2, "runs": [NOW - 2 * MINUTE, NOW - MINUTE], "ran_by": ["s1", "s1"]}
    assert verdict(action, failure(action, outcome.cls, outcome.signature, **first, **runs)) == "ask"


@pytest.mark.parametrize(
    ("command", "error", "cls"),
    [
        ("gh run view 12 --log", "run 12 is still in progress; logs will be available when it is complete", "lock"),
        ("kubectl rollout status deploy/web", "error: timed out waiting for the condition", "timeout"),
        ("kubectl rollout status deploy/web", 'error: deployment "web" exceeded its progress deadline', "timeout"),
        ("terraform apply", "Error: Error acquiring the state lock", "lock"),
        ("aws s3 ls", "Error loading SSO Token: Token for default does not exist", "auth"),
        ("./scripts/run.sh", "./scripts/run.sh: line 3: DB: unbound variable", "runtime"),
        ("docker run img build", "panic: boom", "runtime"),
        ("docker compose build web", "boom: bad", "build"),
    ],
)
def test_what_needs_time_or_a_login(command: str, error: str, cls: str) -> None:
    """What is under way, or was waited for in vain, is a matter of time; a token is one of a login."""
    assert judge(call(command), exit_code=1, output=error, is_error=True).cls == cls


def test_a_lock_is_released_by_its_own_tool() -> None:
    """`terraform force-unlock` is what the error asks for."""
    action = call("terraform apply")
    record = failure(action, "lock", "Error: Error acquiring the state lock")
    assert verdict(action, record) == "warn"
    assert verdict(action, record, *call("terraform force-unlock -force 1b2c").parts[0].effects) == "allow"


EXISTS = "fatal: destination path '/tmp/y' already exists and is not an empty directory."


@pytest.mark.parametrize(
    ("command", "error", "code", "first", "said"),
    [
        ("git clone https://example.org/u.git /tmp/y", EXISTS, 128, "rm -rf /tmp/y", "allow"),
        ("git clone https://example.org/u.git /tmp/y", EXISTS, 128, "rm -rf /tmp/z", "warn"),
        ("git worktree add ../w main", "fatal: '../w' already exists", 128, "rm -rf ../w", "allow"),
        ("git worktree add /tmp/w main", "fatal: '/tmp/w' already exists", 128, "rm -rf /tmp/w", "allow"),
        ("git worktree add /tmp/w main", "fatal: '/tmp/w' already exists", 128, "rm -rf /tmp/v", "warn"),
        ("python /tmp/s.py", "KeyError: 'x'", 1, "echo '{}' > /tmp/data.json", "allow"),
        ("python /tmp/a/s.py", "KeyError: 'x'", 1, "echo '{}' > /tmp/b/data.json", "warn"),
        ("python s.py", "KeyError: 'x'", 1, "echo '{}' > /tmp/data.json", "warn"),
        ("python s.py", "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/d'", 1, "touch /tmp/d", "allow"),
    ],
)
def test_paths_outside_the_project(command: str, error: str, code: int, first: str, said: str) -> None:
    """A path that the call names or works beside counts wherever it lies, between two calls and in front of one."""
    action = call(command)
    outcome = judge(action, exit_code=code, output=error, is_error=True)
    record = failure(action, outcome.cls, outcome.signature, code, paths=action.parts[-1].paths, excerpt=outcome.excerpt)
    effects = [effect for part in call(first).parts for effect in part.effects]
    assert verdict(action, record, *effects) == said
    assert verdict(call(f"{first} && {command}"), record) == said


def test_a_search_that_handed_on_nothing() -> None:
    """`xargs` gives 123 where one of its runs gave an answer; where nothing was said, nothing failed."""
    for command, output, outcome in (
        ("rg -l foo | xargs ls", "", "ok"),
        ("rg -l foo | xargs grep bar", "a: foo", "ok"),
        ("rg -l foo | xargs ls", "ls: cannot access 'a': No such file or directory", "failed"),
        ("ls | xargs false-positive-rate", "boom: bad", "failed"),
    ):
        assert judge(call(command), exit_code=123, output=output, is_error=True).outcome == outcome


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("pytest tests/a.py", "pytest tests/a.py || true", "allow"),
        ("pytest tests/a.py", "pytest tests/a.py || echo FAILED", "allow"),
        ("pytest tests/a.py", "pytest tests/a.py || exit 0", "allow"),
        ("pytest tests/a.py", "pytest tests/a.py || exit 1", "ask"),
        ("pytest tests/a.py", "pytest tests/a.py || exit", "ask"),
        ("pytest tests/a.py", "pytest tests/a.py || return 2", "ask"),
        ("pytest tests/a.py", "pytest tests/a.py || false", "ask"),
        ("pytest tests/a.py", "pytest tests/a.py || { echo FAILED; exit 1; }", "ask"),
        ("pytest tests/a.py || true", "pytest tests/a.py || true", "warn"),
        ("pytest tests/a.py || true", "pytest tests/a.py || echo FAILED", "warn"),
        ("pytest tests/a.py || true", "pytest tests/a.py", "ask"),
    ],
)
def test_who_does_not_mind(first: str, second: str, said: str) -> None:
    """A call that does not mind its failure is let be, until it failed so itself; one that passes the failure on minds."""
    record = failure(call(first), "test", "FAILED tests/a.py::test_a", dur_ms=60_000)
    assert verdict(call(second), record) == said
