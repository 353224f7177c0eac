"""Whatever agents and people do, every decision of the hook is recomputed to the same bytes, in any order of sessions."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_logs.origin import accept
from projectmem_logs.store import init_home

from projectmem import policies, record, replay
from projectmem.hook import entry
from projectmem.place import Place

NOW = 1_796_000_000_000_000
SECOND = 1_000_000
COMMANDS = (
    "make build",
    "make   build 2>&1 | tail -5",
    "cd sub && make build",
    "make build && ls",
    "make lint; make build",
    "pytest -q tests/test_a.py",
    "rm -rf build",
)
POLICY = '[[rule]]\nname = "no-rm"\ntarget = "command"\npattern = "rm *"\neffect = "ask"\n'
FILES = ("price.py", "sub/other.py", "README.md")

steps = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.sampled_from("abc"), st.sampled_from(COMMANDS), st.booleans()),
        st.tuples(st.just("run"), st.sampled_from("abc"), st.sampled_from(COMMANDS[:4]), st.just(True)),
        st.tuples(st.just("edit"), st.sampled_from("abc"), st.sampled_from(FILES), st.booleans()),
        st.tuples(st.just("person"), st.sampled_from(("label", "policy", "dispute", "snooze", "touch")), st.none(), st.none()),
        st.tuples(st.just("wait"), st.sampled_from((1, 600, 90_000)), st.none(), st.none()),
    ),
    min_size=10,
    max_size=30,
)


class Workshop:
    """A folder, its log, and a clock; steps are done to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now, self.calls = folder, NOW, 0
        home = str(folder / ".projectmem-gate")
        init_home(home, NOW)
        accept(home)
        self.place = Place(str(folder), home)
        (folder / "sub").mkdir()
        for name in FILES:
            (folder / name).write_text("one")

    def do(self, step: tuple[Any, ...]) -> None:
        """One step."""
        self.now += 3 * SECOND
        kind, who, what, flag = step
        if kind == "wait":
            self.now += who * SECOND
        elif kind == "person":
            self.person(who)
        elif kind == "run":
            error = "Exit code 2\nprice.py:2: error: '(' was never closed\nmake: *** [build] Error 1"
            self.call(who, "Bash", {"command": what}, error if flag else "", "done")
        else:
            path = str(self.folder / what)
            error = "<tool_use_error>String to replace not found in file.</tool_use_error>" if flag else ""
            self.call(who, "Edit", {"file_path": path, "old_string": "one", "new_string": "two"}, error, "edited")

    def call(self, session: str, tool: str, given: dict[str, str], error: str, good: str) -> None:
        """Before a call, its end and its batch, unless the gate refuses it."""
        self.calls += 1
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": f"t{self.calls}"}
        answer = self.fire("PreToolUse", session, **call) or {}
        refused = (answer.get("hookSpecificOutput") or {}).get("permissionDecision") == "deny"
        text = "PreToolUse:Bash hook error: no" if refused else error or good
        if error and not refused and tool == "Bash":
            self.fire("PostToolUseFailure", session, **call, error=error, duration_ms=90_000)
        self.fire("PostToolBatch", session, tool_calls=[{**call, "tool_response": text}])

    def fire(self, event: str, session: str, **payload: Any) -> Any:
        """One call of the hook."""
        self.now += SECOND // 10
        raw = {"session_id": session, "cwd": str(self.folder), "hook_event_name": event, **payload}
        return entry.respond(["claude-code", event], json.dumps(raw).encode(), self.now)

    def person(self, what: str) -> None:
        """Something a person does."""
        if what == "touch":
            (self.folder / "price.py").write_text(str(self.now))
        elif what == "label":
            data = {"label": "fragile", "target": "path", "pattern": "sub/**", "effect": "ask", "reason": "old", "review_at": 0}
            record.record(self.place, "label.set", data, now=self.now, origin="human")
        elif what == "policy":
            (self.folder / "p.toml").write_text(POLICY)
            policies.accept(self.place, str(self.folder / "p.toml"), now=self.now)
        else:
            from projectmem_logs.reader import read_events

            failed = [e["id"] for e in read_events(self.place.home) if (e.get("data") or {}).get("outcome") == "failed"]
            if failed:
                how = {"dispute": "disputed", "snooze": "snoozed"}[what]
                record.curate(self.place, how, failed[-1], now=self.now, origin="agent", until=self.now + 600 * SECOND)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_every_history_replays_to_the_same_decisions(todo: list[tuple[Any, ...]]) -> None:
    """Warnings, asks, overrides, labels, rules, disputes, chains: nothing comes out different, and the hook never failed."""
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder).resolve())
        for step in todo:
            workshop.do(step)
        report = replay.replay_log(workshop.place.home, root=workshop.place.root, verify=True)
        assert report.ok, report.differences
        assert not (report.decisions + report.passed)[replay.ERASED]
        assert report.kinds["gate.degraded"] == 0, (Path(workshop.place.home) / "hook.log").read_text()
        assert sum(report.passed.values()) + sum(report.decisions.values()) > 0 or not any(s[0] in ("run", "edit") for s in todo)


def test_a_failure_before_or_true_is_looked_up_under_its_own_words(tmp_path: Path) -> None:
    """`make build || true` and `make build` have one key: the cheap filter must not hide the one from the other."""
    workshop = Workshop(tmp_path)
    workshop.do(("run", "a", "make build || true", True))
    workshop.do(("run", "b", "make build", True))
    assert replay.replay_log(workshop.place.home, root=workshop.place.root, verify=True).ok
