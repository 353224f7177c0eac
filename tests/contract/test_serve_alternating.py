"""The resident hook and the command take turns at one log: neither answers from what the other, or a third, has changed since."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_gate.policy_text import parse
from projectmem_logs.store import LogStore
from projectmem_logs.verify import verify

from projectmem.replay import replay_log
from projectmem.serve import run
from tests.contract.test_serve import ERROR, Client
from tests.patience import PATIENCE

COMMAND = "import sys; from projectmem.hook import entry; entry.main(['claude-code', sys.argv[1]])"
COMMANDS = ["npm run build", "make all", "rm -rf build"]
EDITED = "src/app.ts"
STEPS = 9


@pytest.fixture
def hooked(hooked: Any) -> Iterator[Any]:
    """In a folder with a short name: a Unix socket's path may not be long."""
    with tempfile.TemporaryDirectory(prefix="pm") as folder:
        yield type(hooked)(Path(folder).resolve())


@pytest.fixture
def client(hooked: Any) -> Iterator[Client]:
    """Of a running server of the project."""
    made, ready = run.Server(str(hooked.home)), threading.Event()
    thread = threading.Thread(target=made.run, args=(lambda _: ready.set(),))
    thread.start()
    assert ready.wait(PATIENCE)
    yield Client(hooked, made)
    made.end("the test is over")
    thread.join(PATIENCE)
    assert not thread.is_alive()


class Turns:
    """One project, and two ways to tell it and to ask it."""

    def __init__(self, hooked: Any, client: Client, seed: int) -> None:
        self.hooked, self.client, self.random, self.n = hooked, client, random.Random(seed), 0
        (hooked.root / "src").mkdir()
        self.edit()
        self.ways: list[Callable[[str, Any], bytes]] = [self.http, self.command]

    def http(self, event: str, payload: Any) -> bytes:
        """The server's answer."""
        status, body = self.client.post(event, payload)
        assert status in (200, 204), body
        return body

    def command(self, event: str, payload: Any) -> bytes:
        """The command's, in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, event], input=json.dumps(payload).encode(), capture_output=True, timeout=PATIENCE
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    def call(self, command: str) -> dict[str, Any]:
        """Fields of a call with an id of its own."""
        self.n += 1
        return {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"t{self.n}"}

    def told(self, event: str, session: str, **fields: Any) -> None:
        """One event, told by either."""
        self.random.choice(self.ways)(event, self.hooked.payload(event, session, **fields))

    def fail(self) -> None:
        """A command fails."""
        fields = {"error": ERROR, "is_interrupt": False, "duration_ms": 5_000}
        self.told("PostToolUseFailure", f"w{self.n}", **self.call(self.random.choice(COMMANDS)), **fields)

    def succeed(self) -> None:
        """A command, or another that does the same work, goes well."""
        command = self.random.choice(COMMANDS) + self.random.choice(["", " --force"])
        self.told("PostToolBatch", f"w{self.n}", tool_calls=[{**self.call(command), "tool_response": "fine"}])

    def edit(self) -> None:
        """A person edits a file that the error names."""
        self.n += 1
        (self.hooked.root / EDITED).write_text(f"let a{self.n} = 1")

    def commit(self) -> None:
        """HEAD moves."""
        (self.hooked.root / ".git" / "HEAD").write_text(f"{self.random.getrandbits(160):040x}\n")

    def third(self, kind: str, data: dict[str, Any]) -> None:
        """Somebody else appends, and folds nothing in."""
        now = time.time_ns() // 1000
        actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}
        LogStore(str(self.hooked.home)).append([{"kind": kind, "at": now, "actor": actor, "causes": [], "data": data}], now=now)

    def label(self) -> None:
        """A person protects something."""
        fixed = {"label": "protected", "target": "command", "effect": "ask", "reason": "", "review_at": 0}
        self.third("label.set", {**fixed, "pattern": self.random.choice(COMMANDS)})

    def policy(self) -> None:
        """A person changes the policy."""
        self.n += 1
        mode = self.random.choice(["advise", "enforce", "observe"])
        rule = f'[[rule]]\nname = "r{self.n}"\ntarget = "command"\npattern = "rm *"\neffect = "deny"\n'
        text = f'mode = "{mode}"\n' + self.random.choice(["", rule])
        policy = parse(text)
        self.third("policy.changed", {"text": text, "hash": policy.hash, "policy": policy.to_data()})

    def dispute(self) -> None:
        """A person takes the last failure back."""
        failed = [event for event in self.hooked.events("action.finished") if event["data"]["outcome"] == "failed"]
        if failed:
            named = {"record": failed[-1]["id"], "key": failed[-1]["data"]["key"]}
            self.third("record.disputed", {**named, "until": 0, "reason": "wrong", "by_event": ""})

    def asked(self, way: Callable[[str, Any], bytes], command: str) -> Any:
        """What one of them decides, and on what."""
        before = len(self.hooked.events("action.proposed"))
        call = self.call(command)
        said = way("PreToolUse", self.hooked.payload("PreToolUse", f"q{self.n}", **call))
        proposed = self.hooked.events("action.proposed")[before:]
        kind = sorted(json.loads(said)["hookSpecificOutput"]) if said else []
        if not proposed:
            return kind, None
        data = proposed[0]["data"]
        decision = {k: v for k, v in data["decision"].items() if k != "reason"}  # tells how long ago
        return kind, decision, *(data[name] for name in ("facts", "keys", "labels", "policy", "parts", "cwd", "text"))


@pytest.mark.parametrize("seed", range(2))
def test_whoever_is_asked_knows_what_all_have_done(hooked: Any, client: Client, seed: int) -> None:
    """After each change, by the server, the command, a third writer, or on the disk, both decide the same on the same facts; and
    all of it can be replayed."""
    turns = Turns(hooked, client, seed)
    changes = [turns.fail, turns.fail, turns.succeed, turns.edit, turns.commit, turns.label, turns.policy, turns.dispute]
    spoken = 0
    turns.fail()
    for step in range(STEPS):
        command = turns.random.choice(COMMANDS)
        first, second = turns.random.sample(turns.ways, 2)
        one, other = turns.asked(first, command), turns.asked(second, command)
        assert one == other, (seed, step, command)
        spoken += one[1] is not None
        turns.random.choice(changes)()
    assert spoken
    assert verify(str(hooked.home)).ok
    report = replay_log(str(hooked.home), root=str(hooked.root), verify=True)
    assert report.ok, report.differences
