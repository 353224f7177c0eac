"""What somebody reads who was handed a log: where it is said to be, whether it is whole, what was erased and by whom."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.store import init_home

from projectmem import place
from projectmem.cli import app

COULD_NOT = 3


class Cli:
    """Runs commands, keeping what they print."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.capsys = home, capsys
        self.out = self.err = ""

    def __call__(self, *args: str, code: int = 0) -> str:
        found = app.run(list(args))
        said = self.capsys.readouterr()
        self.out, self.err = said.out, said.err
        assert found == code, f"{args}: exit {found}, {self.out}{self.err}"
        return self.out

    def events(self) -> list[Any]:
        return list(json.loads(self("log", "-n", "0", "--json")))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """A log with three notes, handed over as a folder that lies in no project."""
    for name in place.HARNESS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "handed"
    init_home(str(home), 1)
    monkeypatch.setenv(place.HOME_VARIABLE, str(home))
    monkeypatch.chdir(tmp_path)
    made = Cli(home, capsys)
    for text in ("one", "two", "three"):
        made("record", "note", text)
    return made


def test_a_log_s_own_folder_is_said_to_be_one_with_the_way_to_read_it(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("verify").startswith("log whole: 3 events")
    monkeypatch.delenv(place.HOME_VARIABLE)
    run("verify", "--root", str(run.home), code=COULD_NOT)
    assert "is a log's own folder and no project" in run.err
    assert f"`{place.HOME_VARIABLE}={run.home} projectmem verify`" in run.err
    assert f"{place.HOME_VARIABLE}={run.home}" in run("doctor", "--root", str(run.home), code=1)


def test_a_log_that_came_with_the_files_is_not_said_to_be_missing(
    run: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(place.HOME_VARIABLE)
    shutil.copytree(run.home, tmp_path / "project" / place.FOLDER_OUTSIDE_GIT)
    run("verify", "--root", str(tmp_path / "project"), code=COULD_NOT)
    assert "was not made on this machine" in run.err and "`projectmem init` to accept it" in run.err
    run("verify", "--root", str(tmp_path), code=COULD_NOT)
    assert "no projectmem log for" in run.err


def damage(home: Path) -> None:
    """Change the first two notes in place."""
    (path,) = home.glob("log/*/*.jsonl")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b'"one"', b'"0ne"').replace(b'"two"', b'"tw0"'))


def test_damage_in_several_places_is_advised_of_once_and_is_no_fault_of_what_is_derived(run: Cli) -> None:
    run("sql", "SELECT 1")
    damage(run.home)
    said = run("verify", code=1).splitlines()
    assert len([line for line in said if "does not match its digest" in line]) == 2
    assert len([line for line in said if "what to do" in line]) == 1
    looked = run("doctor", "--no-fire", code=1)
    assert looked.count("does not match its digest") == 2 and looked.count("restore this segment") == 1
    assert "note  parity: not compared: the log is damaged" in looked and "report this" not in looked


def test_a_replay_of_a_damaged_log_does_not_speak_for_what_is_lost(run: Cli) -> None:
    assert "every decision is what" in run("replay", "--verify") and "damaged" not in run.out
    damage(run.home)
    for args in (("replay",), ("replay", "--verify")):
        assert "the log is damaged" in run(*args).splitlines()[-1]
    assert "every decision that can be read is what its recorded inputs give" in run.out
    assert json.loads(run("replay", "--verify", "--json"))["damaged"] == 1


def test_a_search_by_kind_says_that_lines_are_damaged(run: Cli) -> None:
    run("log", "--kind", "note")
    assert not run.err
    damage(run.home)
    run("verify", code=1)
    assert len(run("log", "--kind", "note").splitlines()) == 1
    assert "the log is damaged, as was seen last (2 places)" in run.err


def test_what_was_erased_by_whom_and_why_is_told_from_either_side(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projectmem.caller.origin", lambda: "human")
    first, second, third = (event["id"] for event in run.events())
    run("forget", first, second, "--reason", "told in confidence", "--yes")
    request = run.events()[-1]["id"]
    told = run("explain", request)
    assert "because: told in confidence" in told and "Erased: 2 events" in told
    assert first[:18] in told and second[:18] in told and third[:18] not in told
    gone = run("explain", second)
    assert "was erased on request" in gone and "because: told in confidence" in gone and request[:18] in gone
    assert "by a person" in gone


def test_an_erasure_that_nobody_asked_for_is_told_as_such() -> None:
    from projectmem import explain_events

    event = {"id": "0" * 36, "kind": "note.recorded", "ts": 5, "tombstone": {"at": 9, "by": "1" * 36}}
    other = {"id": "1" * 36, "kind": "erasure.requested", "actor": {}, "data": {"ids": ["2" * 36], "reason": "x"}}
    for request in (None, other):
        told = "\n".join(explain_events.erased(event, request, 10))
        assert "no request for it is on record" in told and "because" not in told


def test_what_a_recall_showed_is_told_by_its_records(run: Cli) -> None:
    """Also of a session's start, which keeps the ends of ids; what was held back stands apart."""
    from projectmem import place as places
    from projectmem.record import record

    first, second, third = (event["id"] for event in run.events())
    found = places.locate(".")
    assert found is not None
    asked = {"query": "what?", "abstained": False, "items": [{"id": second}], "below_floor": [{"id": first}]}
    start = {"surface": "start", "abstained": False, "items": [], "profile": [third[-8:]]}
    for data, shown, held in ((asked, second, first), (start, third, "")):
        made = record(found, "recall.decided", data, now=1_790_000_000_000_000, origin="observed")
        told = run("explain", made["id"])
        assert told.startswith("Recall ")
        above, _, below = told.partition("Looked at closely and held back")
        assert shown[:18] in above.partition("Shown")[2] and (held[:18] in below if held else not below)


def test_a_span_of_the_log_is_listed(run: Cli) -> None:
    times = [event["ts"] for event in run.events()]
    assert run("log", "--until", "2001-01-01") == "" and "nothing in the log answers" in run.err
    assert len(run("log", "--since", "1h", "--until", "2001-01-02").splitlines()) == 0
    assert len(times) == len(run("log", "--since", "2001-01-01").splitlines())
    assert "not both" in (run("log", "--follow", "--until", "1h", code=2), run.err)[1]


def test_a_person_s_terminal_is_not_overrun(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are cut to one line each, explanations folded; what is piped on stays whole."""
    words = "a note that goes on " * 10
    run("record", "note", words)
    last, id = run("log", "-n", "1").splitlines()[-1], run.events()[-1]["id"]
    assert len(last) > 200 and words.strip() in run("explain", id)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    short = run("log", "-n", "1").splitlines()[-1]
    assert len(short) == 110 and short.endswith(id[:18]) and "…" in short
    folded = run("explain", id)
    assert max(map(len, folded.splitlines())) <= 110 and words.strip() in " ".join(folded.split())
