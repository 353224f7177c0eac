"""Every recorded decision is recomputed from the log: same, different, engine changed, input erased."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.envelope import GENESIS, seal
from projectmem_logs.origin import accept
from projectmem_logs.reader import read_events
from projectmem_logs.store import init_home

from projectmem import output, replay
from projectmem.hook import entry

NOW = 1_796_000_000_000_000
MINUTE = 60_000_000
COMMAND = {"command": "make build"}
Event = dict[str, Any]


class Agent:
    """Drives the hook in process, with a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.now, self.calls = folder, str(folder / ".projectmem-gate"), NOW, 0
        init_home(self.home, NOW)
        accept(self.home)

    def fire(self, event: str, session: str, **payload: Any) -> Any:
        """The hook's answer to one event."""
        self.now += 5_000_000
        raw = {"session_id": session, "cwd": str(self.folder), "hook_event_name": event, **payload}
        return entry.respond(["claude-code", event], json.dumps(raw).encode(), self.now)

    def build(self, session: str, fails: bool = True, command: dict[str, str] = COMMAND) -> Any:
        """One build: before it, its end, its batch. Returns what the hook said before it."""
        self.calls += 1
        call = {"tool_name": "Bash", "tool_input": command, "tool_use_id": f"t{self.calls}"}
        said = self.fire("PreToolUse", session, **call)
        error = "Exit code 2\nprice.py:2: error: '(' was never closed\nmake: *** [build] Error 1"
        if fails:
            self.fire("PostToolUseFailure", session, **call, error=error, duration_ms=60_000)
        self.fire("PostToolBatch", session, tool_calls=[{**call, "tool_response": error if fails else "build ok"}])
        return said


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """A failed build; another session that is spoken to; a mended build; a silent third session; a good other command."""
    agent = Agent(tmp_path)
    (tmp_path / "price.py").write_text("broken")
    agent.build("s1")
    agent.now += 10 * MINUTE
    assert agent.build("s2") is not None
    (tmp_path / "price.py").write_text("mended")
    agent.build("s2", fails=False)
    assert agent.build("s3", fails=False) is None
    agent.build("s3", fails=False, command={"command": "ls"})
    return agent


def reseal(home: str, change: Callable[[Event], None]) -> None:
    """Rewrite the log with `change` applied to each event and every digest, hash and link recomputed: a careful forger."""
    (stream,) = (Path(home) / "log").iterdir()
    (segment,) = stream.iterdir()
    prev, lines = GENESIS, []
    for raw in segment.read_bytes().splitlines():
        event = json.loads(raw)
        change(event)
        draft = {name: event[name] for name in ("kind", "at", "actor", "causes", "data")}
        place = {name: event[name] for name in ("stream", "seq", "batch", "ts", "id", "scope", "left")}
        event, line = seal(draft, **place, prev=prev, salt=bytes.fromhex(event["salt"]))
        prev = event["hash"]
        lines.append(line)
    segment.chmod(0o600)
    segment.write_bytes(b"".join(lines))


def erase(home: str, wanted: Callable[[Event], bool]) -> None:
    """Take salt and data out of the lines that are wanted, as an erasure does: the chain still holds."""
    (stream,) = (Path(home) / "log").iterdir()
    (segment,) = stream.iterdir()
    lines = []
    for raw in segment.read_bytes().splitlines():
        event = json.loads(raw)
        if wanted(event):
            del event["data"], event["salt"]
            event["tombstone"] = {"by": "e"}
        lines.append(json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    segment.write_bytes(b"".join(lines))


def verified(agent: Agent, **how: Any) -> replay.Report:
    """The report of `replay --verify`."""
    return replay.replay_log(agent.home, root=str(agent.folder), verify=True, **how)


def test_an_honest_log_replays_to_the_same_bytes(agent: Agent) -> None:
    """Every decision and every call that met no objection."""
    report = verified(agent)
    assert report.ok
    assert report.decisions[replay.SAME] == sum(report.decisions.values()) >= 1
    assert report.passed[replay.SAME] == sum(report.passed.values()) >= 2
    assert report.open_failures == 0
    assert report.to_data()["differences"] == []
    assert "every decision is what its recorded inputs give" in "\n".join(replay.render(report, output.Paint(False)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("verdict", "allow"),
        ("reason", "all is well"),
        ("odds", 0),
        ("expires_at", 0),
        ("record", ""),
        ("rule", "human.deny"),
        ("extra", 1),
    ],
)
def test_a_forged_decision_is_different_even_with_a_valid_chain(agent: Agent, field: str, value: Any) -> None:
    """The chain verifies, the decision does not follow from its inputs: that is what replay is for."""
    from projectmem_logs.verify import verify

    def change(event: Event) -> None:
        if event["kind"] == "action.proposed":
            event["data"]["decision"][field] = value

    reseal(agent.home, change)
    assert verify(agent.home).ok
    report = verified(agent)
    assert not report.ok
    assert report.decisions[replay.DIFFERENT] >= 1
    assert report.differences[0]["why"]
    assert "does not give what it says" in replay.render(report, output.Paint(False))[-1]


@pytest.mark.parametrize(
    "broken",
    [
        {"facts": None}, {"session": {}}, {"session": {"bogus": 1}}, {"policy": "0" * 64}, {"keys": "x"}, {"as_of": []},
        {"now": "soon"},
        {"facts": {}}, {"as_of": {}}, {"keys": []}, {"policy": None}, {"labels": 3}, {"parts": [{}]},
    ],
)  # fmt: skip
def test_forged_inputs_are_different_and_never_a_crash(agent: Agent, broken: dict[str, Any]) -> None:
    """Whatever stands in the record, the answer is a finding."""

    def change(event: Event) -> None:
        if event["kind"] == "action.proposed":
            event["data"].update(broken)

    reseal(agent.home, change)
    assert not verified(agent).ok


def test_a_hidden_failure_is_found(agent: Agent) -> None:
    """A call that is said to have met no objection, at a position where a failure of it stood open."""

    def change(event: Event) -> None:
        if event["kind"] == "action.finished" and event["data"]["outcome"] == "failed" and event["seq"] > 2:
            event["data"]["as_of"] = {event["stream"]: event["seq"] - 1}

    reseal(agent.home, change)
    report = verified(agent)
    assert report.passed[replay.DIFFERENT] == 1
    assert not report.ok


def test_another_engine_is_not_compared(agent: Agent) -> None:
    """An old decision of an older gate is no evidence of tampering."""

    def change(event: Event) -> None:
        if event["kind"] == "action.proposed":
            event["data"]["decision"]["engine"] = "0"

    reseal(agent.home, change)
    report = verified(agent)
    assert report.ok
    assert report.decisions[replay.ENGINE_CHANGED] == sum(report.decisions.values()) >= 1


def test_what_was_erased_is_not_called_different(agent: Agent) -> None:
    """Erasing the failure that a decision leaned on, or the decision itself, leaves a statement and not an accusation."""
    failure = next(e["id"] for e in read_events(agent.home) if e["kind"] == "action.finished")
    erase(agent.home, lambda event: event["id"] == failure)
    report = verified(agent)
    assert report.ok
    assert report.decisions[replay.ERASED] >= 1
    erase(agent.home, lambda event: event["kind"] == "action.proposed" and "data" in event)
    report = verified(agent)
    assert report.ok
    assert report.decisions[replay.ERASED] == sum(report.decisions.values())


def test_until_stops_in_time(agent: Agent) -> None:
    """The state as of then: the failure still stood."""
    report = verified(agent, until=NOW + 5 * MINUTE)
    assert (report.events, report.open_failures) == (1, 1)
    assert verified(agent, until=NOW - 1).events == 0


def test_without_verify_nothing_is_recomputed(agent: Agent) -> None:
    """A plain replay counts and folds."""
    report = replay.replay_log(agent.home)
    assert not report.decisions
    assert report.kinds["action.finished"] >= 4
    assert "action.finished" in "\n".join(replay.render(report, output.Paint(False)))


def test_a_decision_is_explained(agent: Agent) -> None:
    """What was proposed, what the gate said and why, what it went by, and where to read on."""
    from projectmem import explain
    from projectmem.place import Place

    proposed = next(e for e in read_events(agent.home) if e["kind"] == "action.proposed")
    text = explain.explain(Place(str(agent.folder), agent.home), proposed["id"], agent.now)
    for wanted in (
        "make build",
        "What the gate said",
        "How likely it is to fail again",
        "the agent read",
        "replay --verify",
    ):
        assert wanted in text, wanted
    assert "Engine " not in text
    assert "{" not in text
    assert f"recorded as {proposed['data']['decision']['record'][:18]}" in text


def test_a_loop_of_one_failing_command_is_asked_about(tmp_path: Path) -> None:
    """Identical failures in turn after turn with nothing changed are several, not one: the third is refused once."""
    agent = Agent(tmp_path)
    said = []
    for _ in range(3):
        agent.calls += 1
        call = {"tool_name": "Bash", "tool_input": COMMAND, "tool_use_id": f"t{agent.calls}"}
        error = "Exit code 2\nprice.py:2: error: '(' was never closed\nmake: *** [build] Error 1"
        said.append(agent.fire("PreToolUse", "s1", **call))
        agent.fire("PostToolUseFailure", "s1", **call, error=error, duration_ms=900)
        agent.fire("PostToolBatch", "s1", tool_calls=[{**call, "tool_response": error}])
    assert said[0] is None
    assert said[2]["hookSpecificOutput"]["permissionDecision"] == "deny"
