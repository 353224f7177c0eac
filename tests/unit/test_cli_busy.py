"""A log that stays locked: what was given on the command line is kept and said to be, once; it is no error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from projectmem_logs import files
from projectmem_logs.reader import read_events

from projectmem.cli import app


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Somebody else is writing, for as long as this lasts."""
    (stream,) = (home / "log").iterdir()
    held = files.lock(str(home / "locks" / f"{stream.name}.lock"), 0)
    assert held is not None
    try:
        yield
    finally:
        files.unlock(held)


def test_what_is_recorded_while_the_log_is_locked_is_kept_and_written_once(
    accepted: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    home = accepted("agent") / ".projectmem-gate"
    assert app.run(["record", "note", "the port is 5000"]) == 0
    (first,) = read_events(str(home))
    capsys.readouterr()
    with locked(home):
        assert app.run(["record", "issue", "deploys go by hand"]) == 0
        told = capsys.readouterr()
        assert "kept: the log is busy" in told.out and told.err == ""
        assert app.run(["feedback", first["id"], "--useful", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["id"] == "" and Path(found["kept"]).exists()
    assert app.run(["record", "note", "tests need a database"]) == 0
    kinds = [event["kind"] for event in read_events(str(home))]
    assert sorted(kinds) == ["feedback.given", "issue.opened", "note.recorded", "note.recorded"]
