"""What a summary says is readable, and true of a long log: errors in words, room for them, counts that are not cut short."""

from __future__ import annotations

import re
from typing import Any

import pytest
from projectmem_projections import glance, recollection

from projectmem import mcp_server, render, writing
from projectmem.record import record
from projectmem.standing import Judge
from projectmem.state import EVERYTHING, reading
from projectmem.summary import of_place
from tests.contract.test_summaries_gate import brief

LONG = f"./check {' '.join(f'tests/test_part_{n}.py' for n in range(20))}"
FAILED = "Exit code 2\nConnectionError: no route to 10.0.0.7:5433"
PLACEHOLDER = re.compile(r"<(n|t|tmp|time|hex|id|pod)>")


def tools(hooked: Any) -> mcp_server.Tools:
    return mcp_server.Tools(hooked.place, clock=lambda: hooked.now, nonce=lambda: "n0")


def every(hooked: Any) -> list[str]:
    """All that a session, a period and a tool are told of failures."""
    return [brief(hooked), brief(hooked, "2d"), str(tools(hooked).failures())]


def test_an_error_is_told_in_words(hooked: Any) -> None:
    """What stands for a number or a temporary name in a signature looks like a tag; reasons read it out, so do summaries."""
    hooked.run("make lint", "Exit code 2\nengine.ts(12,3): error TS7006: parameter p has an any type, at 0x7fabc3d2e110")
    event = hooked.events("action.finished")[0]["data"]
    assert PLACEHOLDER.search(event["signature"]), "or this shows nothing"
    for text in every(hooked):
        assert "make lint failed" in text and not PLACEHOLDER.search(text), text
    found = str(tools(hooked).recall("make lint failed: error TS7006: parameter p has an any type"))
    assert "make lint failed" in found and not PLACEHOLDER.search(found)


def test_a_long_command_leaves_room_for_its_error(hooked: Any) -> None:
    hooked.run(LONG, FAILED)
    for text in every(hooked):
        (line,) = (line for line in text.splitlines() if line.startswith("- ./check tests/test_part_0.py"))
        assert "ConnectionError: no route to" in line and len(line) < 300, line


def test_where_a_command_ran_is_told_as_one_would_type_it(hooked: Any) -> None:
    (hooked.root / "web").mkdir()
    hooked.run("cd web && npm test", "Exit code 1\nError: no test specified")
    assert "# in web" in hooked.events("action.finished")[0]["data"]["text"], "or this shows nothing"
    for text in every(hooked):
        assert "- cd web && npm test failed" in text


def test_what_a_chain_cleared_is_said_once(hooked: Any) -> None:
    for command in ("make fmt", "make lint", "make fmt && make lint"):
        hooked.run(command, "Exit code 2\nerror: unused\nmake: *** [all] Error 1")
    hooked.run("touch src.c")
    hooked.run("make fmt && make lint")
    (section,) = re.findall(r"Failed, and succeeded since:\n((?:- .*\n)+)", brief(hooked, "2d"))
    assert section.count("- ") == 1 and section.startswith("- make fmt && make lint")


def test_more_failures_than_are_kept_are_said_to_be_more(hooked: Any) -> None:
    """The gate's state has the newest outcomes of an action: as many failures as it keeps may be any number."""
    for n in range(20):
        hooked.run("make lint", f"Exit code 2\nerror: unused {n}", session=f"s{n}")
    with reading(hooked.place) as state:
        judge = Judge(hooked.place, state, hooked.now)
        key = hooked.events("action.finished")[0]["data"]["key"]
        assert 1 < judge.times(key) < 20
    for text in every(hooked):
        assert "x or more" in text, text
    assert render.times(3) == "3x"


@pytest.fixture
def long_log(hooked: Any) -> Any:
    """One failure, one note and much more log than is read at a session's start, without a generation of recall."""
    hooked.run("make lint", "Exit code 2\nerror: unused\nmake: *** [lint] Error 1")
    record(hooked.place, "note.recorded", {"text": "Deploys go out on Tuesdays", "tags": []}, now=hooked.now, origin="human")
    folder = next((hooked.home / "log").iterdir())
    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}
    filler = {"kind": "later.kind", "at": hooked.now, "actor": actor, "causes": [], "data": {"text": "y" * 60_000}}
    while sum(path.stat().st_size for path in folder.iterdir()) < glance.BYTES_MAX:
        writing.append(hooked.place, [filler] * 100, hooked.now, "batch")
    return hooked


def test_a_long_log_without_a_generation_is_read_whole(long_log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`No failure stands` was said of a log that nobody had read."""
    begun: list[Any] = []
    from projectmem.hook import ahead

    monkeypatch.setattr(ahead, "soon", begun.append)
    found = tools(long_log)
    assert "make lint failed" in str(found.failures()) and "make lint failed" in str(found.summary())
    assert "Deploys go out" in str(found.summary()) and begun
    with reading(long_log.place) as state:
        of = {"now": long_log.now, "nonce": "n0"}
        assert "`projectmem summary`" in of_place(long_log.place, state, **of)
        assert "make lint failed" in of_place(long_log.place, state, bytes_max=EVERYTHING, **of)
    heard: list[str] = []
    note = {"text": "Deploys go out on Fridays", "tags": []}
    record(long_log.place, "note.recorded", note, now=long_log.now, origin="agent", notices=heard)
    assert "not compared" in " ".join(heard)
    recollection.refresh(long_log.place.home, None)
    begun.clear()
    assert "make lint failed" in str(found.failures()) and not begun
