"""A log that stays locked: commands wait for it longer than hooks do; what was given is then kept and said to be, once; it is no
error. Time is played: no test waits."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from projectmem_logs import files
from projectmem_logs.errors import SpooledError
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore

from projectmem import place, undecided
from projectmem.cli import app
from projectmem.errors import NotFoundError
from projectmem.hook import spooled
from projectmem.hook.payload import call_of
from projectmem.importers import backfill as importing
from projectmem.importers import written
from projectmem.importers.reading import ended, payload_of
from projectmem.mcp_tools import Tools
from projectmem.record import record

NOW = 1_796_100_000_000_000


class Busy:
    """A log that somebody else writes to for `seconds` of a clock that only waiting moves."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.clock, self.seconds, self.held = home, 0.0, 0.0, -1
        played = SimpleNamespace(monotonic=lambda: self.clock, monotonic_ns=time.monotonic_ns, sleep=self._sleep)
        monkeypatch.setattr(files, "time", played)
        monkeypatch.setattr(spooled, "soon", lambda _: None)  # the process that would bring in what waits
        LogStore(str(home)).append([], now=NOW)

    def _sleep(self, seconds: float) -> None:
        self.clock += seconds
        if self.clock >= self.seconds:
            self.free()

    def lock(self, seconds: float = 1e9) -> None:
        """From now on."""
        (path,) = (self.home / "locks").glob("*[0-9a-f].lock")
        held = files.lock(str(path), 0)
        assert held is not None
        self.held, self.clock, self.seconds = held, 0.0, seconds

    def free(self) -> None:
        """It is done."""
        if self.held >= 0:
            files.unlock(self.held)
            self.held = -1

    def kinds(self) -> list[str]:
        """Of all events, once the lock is free and somebody has written."""
        self.free()
        LogStore(str(self.home)).append([], now=NOW)
        return sorted(event["kind"] for event in read_events(str(self.home)))


@pytest.fixture
def root(accepted: Callable[[str], Path]) -> Path:
    """A project of a person's."""
    return accepted("human")


@pytest.fixture
def busy(root: Path, monkeypatch: pytest.MonkeyPatch) -> Busy:
    """Its log."""
    return Busy(root / ".projectmem-gate", monkeypatch)


def test_a_command_waits_longer_than_a_hook_and_tells_the_id(busy: Busy, capsys: pytest.CaptureFixture[str]) -> None:
    """Nine seconds, as long as an import or an erasure may have it."""
    busy.lock(9)
    assert app.run(["record", "note", "the port is 5000", "--json"]) == 0
    (event,) = read_events(str(busy.home))
    assert json.loads(capsys.readouterr().out)["id"] == event["id"]


def test_what_is_recorded_while_the_log_is_locked_is_kept_and_written_once(
    busy: Busy, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["record", "note", "the port is 5000"]) == 0
    (first,) = read_events(str(busy.home))
    capsys.readouterr()
    busy.lock()
    assert app.run(["record", "issue", "deploys go by hand"]) == 0
    told = capsys.readouterr()
    assert "kept: the log is busy" in told.out and told.err == ""
    assert app.run(["feedback", first["id"], "--useful", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["id"] == "" and Path(found["kept"]).exists()
    busy.free()
    assert app.run(["record", "note", "tests need a database"]) == 0
    assert busy.kinds() == ["feedback.given", "issue.opened", "note.recorded", "note.recorded"]


def test_an_issue_that_waits_is_known_to_those_who_ask_for_it(busy: Busy, root: Path) -> None:
    """Over MCP: what is recorded about it comes in behind it, and whoever asks for it hears that it waits."""
    found = place.locate(str(root))
    assert found is not None
    tools = Tools(found, clock=lambda: NOW, nonce=lambda: "n")
    tools.record("note", "the port is 5000")
    busy.lock()
    issue = re.findall(r"issue ([0-9a-f]{10}) is kept", tools.record("issue", "deploys hang"))[0]
    assert "is kept" in tools.record("attempt", "restarted it", issue=issue[:6])
    for ask in (tools.explain, tools.summary, lambda name: tools.dispute(name, "no")):
        with pytest.raises(NotFoundError, match="waits until the log is free"):
            ask(issue)
        with pytest.raises(NotFoundError, match="no "):
            ask("abcdef0123")
    assert busy.kinds() == ["attempt.recorded", "issue.opened", "note.recorded"]
    opened, tried = list(read_events(str(busy.home)))[1:]
    assert opened["data"]["issue"] == tried["data"]["issue"] == issue
    assert "deploys hang" in tools.summary(issue)


def test_whatever_a_person_decides_is_kept_too(busy: Busy, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Policy, labels and checkpoints: an error would have it given again. A checkpoint is there all the same."""
    assert app.run(["record", "label", "fragile", "--path", "a.py", "--json"]) == 0
    label = json.loads(capsys.readouterr().out)["id"]
    (busy.home / "policy.toml").write_text('mode = "advise"\n')
    busy.lock()
    for command in (["policy", "accept"], ["rule", "clear", label]):
        assert app.run(command) == 0
        assert "kept: the log is busy" in capsys.readouterr().out, command
    assert app.run(["checkpoint", "--to", str(root / "sealed")]) == 0
    assert "the log is busy" in capsys.readouterr().err and (root / "sealed").exists()
    assert busy.kinds() == ["checkpoint.sealed", "label.cleared", "label.set", "policy.changed"]


def test_a_rule_of_which_only_the_decision_could_be_kept_is_said(busy: Busy, capsys: pytest.CaptureFixture[str]) -> None:
    """And made of it afterwards, without deciding twice."""
    assert app.run(["record", "note", "the port is 5000"]) == 0
    busy.lock()
    assert app.run(["rule", "add", "use pnpm here", "--yes"]) == 3
    assert "rule add --decision" in capsys.readouterr().err
    assert busy.kinds() == ["decision.recorded", "note.recorded"]
    (decision,) = (event["id"] for event in read_events(str(busy.home)) if event["kind"] == "decision.recorded")
    assert app.run(["rule", "add", "--decision", decision, "--yes"]) == 0
    assert busy.kinds() == ["decision.recorded", "label.set", "note.recorded"]


def test_a_review_is_recorded_whole_or_not_at_all(busy: Busy, root: Path) -> None:
    """The old one superseded and the new one released, in one batch: a lock between the two would leave it held."""
    found = place.locate(str(root))
    assert found is not None
    for port in (5433, 5432):
        record(
            found, "note.recorded", {"text": f"The staging database listens on port {port}", "tags": []}, now=NOW, origin="agent"
        )
    (one,) = undecided.waiting(found)
    busy.lock()
    with pytest.raises(SpooledError):
        undecided.settle(found, one, "new", now=NOW)
    assert busy.kinds() == ["note.recorded", "note.recorded", "record.reviewed", "record.superseded"]


def _session(root: str, *ids: str) -> Callable[[Path, Any], Any]:
    def read(path: Path, counts: Any) -> Any:
        for id in ids:
            yield ended(call_of(payload_of("s", root), "codex", "Bash", {"command": f"make {id}"}, id), NOW)

    return read


def test_an_import_that_finds_the_log_locked_goes_on_and_records_nothing_twice(busy: Busy, root: Path, tmp_path: Path) -> None:
    """Not when it is run again while the first one's calls wait, nor once they are in."""
    found = place.locate(str(root))
    assert found is not None
    assert app.run(["record", "note", "the port is 5000"]) == 0
    sources = [(tmp_path / "x.jsonl", _session(str(root), "a", "b"))]
    busy.lock()
    first = importing.backfill(found, now=NOW, sources=sources)
    again = importing.backfill(found, now=NOW, sources=sources)
    assert (first.recorded, first.known, again.recorded, again.known) == (2, 0, 0, 2)
    entries = [("git:1", NOW, "attempt.recorded", {"issue": "", "text": "x", "outcome": "undone", "verifier": "none"})]
    tried = [written.record_entries(found, entries, now=NOW, harness="git") for _ in range(2)]
    assert [(one.recorded, one.known) for one in tried] == [(1, 0), (0, 1)]
    busy.free()
    assert importing.backfill(found, now=NOW, sources=sources).known == 2
    assert busy.kinds() == ["action.finished", "action.finished", "attempt.recorded", "note.recorded"]
