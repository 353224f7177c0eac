"""The hook in process where the log or the gate's state is locked or has lost its end: nothing is lost, each is recorded once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.locked import locked

BUILD = "npm run build"
ERROR = "Exit code 2\nsrc/app.ts(3,5): error TS2304: Cannot find name 'x'.\nnpm error code 2"


def _locked(hooked: Any) -> AbstractContextManager[None]:
    """While another process holds the log's lock."""
    hooked.run("ls")
    return locked(hooked.home)


def test_a_busy_log_loses_nothing(hooked: Any) -> None:
    """While another process holds the lock, what was learned waits in the spool, and the hook says so in its log."""
    with _locked(hooked):
        hooked.run(BUILD, ERROR)
    assert hooked.log_lines()
    hooked.run("pwd")
    hooked.settle()
    assert hooked.events("gate.degraded") == []
    assert hooked.outcomes().count((BUILD, "failed")) == 1
    assert hooked.before(hooked.call(BUILD), "two") is not None


def test_what_waits_comes_in_without_another_append(hooked: Any) -> None:
    """A failure that found the log locked is on record as soon as it is free: no later event need write anything."""
    with _locked(hooked):
        hooked.fails(hooked.call(BUILD), ERROR)
        assert list((hooked.home / "spool").glob("*.spool"))
    hooked.settle()
    assert hooked.outcomes().count((BUILD, "failed")) == 1
    assert hooked.before(hooked.call(BUILD), "two") is not None


def test_what_had_to_be_put_right_as_it_came_in_is_said(hooked: Any, monkeypatch: Any) -> None:
    """The process that brings it in has nobody to tell: hook.log keeps it."""
    from projectmem.hook import draining, spooled

    monkeypatch.setattr(spooled, "soon", lambda home: None)
    with _locked(hooked):
        hooked.fails(hooked.call(BUILD), ERROR)
    (segment,) = (hooked.home / "log").glob("*/*.jsonl")
    with segment.open("ab") as file:
        file.write(b'{"actor":{"agent":"","har')
    draining.main(str(hooked.home))
    assert any("are no whole batch and were moved to quarantine/" in line for line in hooked.log_lines())
    assert hooked.outcomes().count((BUILD, "failed")) == 1


def test_what_may_not_be_read_is_not_waited_for(hooked: Any, monkeypatch: Any) -> None:
    """A file that root left: no process tries for half a minute."""
    import os

    from projectmem.hook import draining, spooled

    monkeypatch.setattr(spooled, "soon", lambda home: None)
    with _locked(hooked):
        hooked.fails(hooked.call(BUILD), ERROR)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(draining, "drain", lambda place: pytest.fail("nothing can come in"))
    draining.main(str(hooked.home))
    assert list((hooked.home / "spool").glob("*.spool"))


def test_what_waits_is_on_record_for_the_batch(hooked: Any, monkeypatch: Any) -> None:
    """Though the state that the event left its claim in is another one by now: it is not recorded a second time."""
    from projectmem.hook import spooled

    monkeypatch.setattr(spooled, "soon", lambda home: None)
    call = hooked.call(BUILD)
    with _locked(hooked):
        hooked.fire("PostToolUseFailure", **call, error=ERROR, is_interrupt=False, duration_ms=9)
    (hooked.home / "projections" / "gate.sqlite.claims").unlink()
    hooked.batch([(call, ERROR)])
    hooked.run("pwd")
    assert hooked.outcomes().count((BUILD, "failed")) == 1


@pytest.mark.parametrize("damage", ["torn", "emptied", "deleted", "restored"])
def test_a_log_that_lost_its_end_is_said_once_and_learning_goes_on(hooked: Any, damage: str) -> None:
    """The gate's state is ahead of the log then: it is folded anew, whatever the hook was called for."""
    hooked.run(BUILD, ERROR)
    (segment,) = (hooked.home / "log").glob("*/*.jsonl")
    early = segment.read_bytes()
    hooked.run("ls")
    hooked.run("make x", ERROR)
    if damage == "deleted":
        segment.unlink()
    else:
        segment.write_bytes({"torn": segment.read_bytes()[:-30], "emptied": b"", "restored": early}[damage])
    call = hooked.call(BUILD)
    reply = hooked.fire("PreToolUse", "two", **call)
    assert reply is not None
    assert "projectmem verify" in reply["systemMessage"]
    assert ("hookSpecificOutput" in reply) is (damage in ("torn", "restored")), "what is whole in the log still speaks"
    hooked.fails(call, ERROR, "two")
    assert hooked.outcomes()[-1] == (BUILD, "failed")
    said = hooked.fire("PreToolUse", "two", **hooked.call(BUILD))
    assert said is not None
    assert "systemMessage" not in said
    assert hooked.events("gate.degraded") == []


def test_what_happened_is_kept_while_the_gate_s_state_is_locked(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot is derived: a process that sits on it costs a check, never what was learned."""
    import sqlite3

    monkeypatch.setattr("projectmem.hook.state.BUSY_MS", 20)
    hooked.run("ls")
    db = sqlite3.connect(hooked.home / "projections" / "gate.sqlite", isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    try:
        hooked.fails(hooked.call(BUILD), ERROR)
    finally:
        db.close()
    assert (BUILD, "failed") in hooked.outcomes()
    assert hooked.events("gate.degraded")
    said = hooked.before(hooked.call(BUILD), "two")
    assert said is not None
    assert "permissionDecision" not in said, "told by two events, it failed once"
