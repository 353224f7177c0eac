"""Reports and trajectories that a person names: what they say, once, and nothing lost where they are damaged."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.home import init_home
from projectmem_logs.origin import accept
from projectmem_logs.reader import read_events

from projectmem import caller
from projectmem.cli.app import run
from projectmem.importers import reports
from projectmem.place import locate

JUNIT = """<?xml version="1.0"?>
<testsuites><testsuite name="pytest" tests="3" failures="1" errors="1" timestamp="2026-11-30T10:00:00+00:00">
<testcase classname="tests.test_cart" file="tests/test_cart.py" name="test_total">
<failure message="assert 3 == 4">trace</failure></testcase>
<testcase classname="tests.test_cart" name="test_tax"><error>ImportError: no module tax</error></testcase>
<testcase classname="tests.test_cart" name="test_ok"/>
</testsuite></testsuites>
"""
PASSED = JUNIT.replace("<failure", "<skipped").replace("</failure", "</skipped").replace("<error>", "<system-out>").replace(
    "</error>", "</system-out>"
).replace("10:00:00", "11:00:00")  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a log."""
    folder = tmp_path / "repo"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    found = locate(str(folder), {})
    assert found is not None
    init_home(found.home, 1_796_000_000_000_000)
    return folder


def _events(root: Path) -> list[dict[str, Any]]:
    return [e for e in read_events(str(root / ".git" / "projectmem")) if e["kind"] == "action.finished"]


def _import(root: Path, *args: str) -> int:
    return run(["import", *args, "--root", str(root)])


def test_a_junit_report_is_the_outcome_of_its_command(root: Path, tmp_path: Path) -> None:
    """Failing tests are named; a later report without failures clears it; the same file twice adds nothing."""
    first, second = tmp_path / "a.xml", tmp_path / "b.xml"
    first.write_text(JUNIT)
    second.write_text(PASSED)
    assert _import(root, "junit", str(first), "--command", "pytest -q") == 0
    (event,) = _events(root)
    assert (event["data"]["outcome"], event["data"]["exit_code"], event["actor"]["origin"]) == ("failed", 1, "import")
    assert event["at"] == 1_796_032_800_000_000, "the report's own time"
    assert "tests/test_cart.py::test_total" in event["data"]["excerpt"]
    assert event["data"]["verifier"] != "none"
    assert _import(root, "junit", str(first), "--command", "pytest -q") == 0
    assert len(_events(root)) == 1
    assert _import(root, "junit", str(second), "--command", "pytest -q") == 0
    assert [e["data"]["outcome"] for e in _events(root)] == ["failed", "ok"]


@pytest.mark.parametrize("text", ["<testsuites/>", '<testsuites tests="0"><testsuite name="pytest" tests="0"/></testsuites>'])
def test_a_report_of_no_test_is_no_success(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    """A run that collected nothing would clear the failure on record."""
    failed, empty = tmp_path / "a.xml", tmp_path / "b.xml"
    failed.write_text(JUNIT)
    empty.write_text(text)
    assert _import(root, "junit", str(failed), "--command", "pytest -q") == 0
    assert _import(root, "junit", str(empty), "--command", "pytest -q") == 3
    assert "not a JUnit report of tests that ran" in capsys.readouterr().err
    assert [e["data"]["outcome"] for e in _events(root)] == ["failed"]


def test_a_trajectory_of_mini_swe_agent_is_its_commands(root: Path, tmp_path: Path) -> None:
    """One call for each command with its exit code; a message without a command is none."""

    def turn(command: str, code: int, output: str) -> list[dict[str, Any]]:
        said = f"THOUGHT: go\n\n```bash\n{command}\n```"
        told = f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"
        return [{"role": "assistant", "content": said}, {"role": "user", "content": [{"type": "text", "text": told}]}]

    start = [{"role": "system", "content": "You are"}, {"role": "user", "content": "```bash\nnot run\n```"}]
    path = tmp_path / "x.traj.json"
    messages = [
        *start,
        *turn("make build", 2, "make: *** [build] Error 2"),
        *turn("ls", 0, "a"),
        {"role": "assistant", "content": "done"},
    ]
    path.write_text(json.dumps({"info": {"config": {"model": {"model_name": "m1"}}}, "messages": messages}))
    assert _import(root, "mini-swe-agent", str(path)) == 0
    rows = [(e["data"]["text"], e["data"]["outcome"], e["data"]["exit_code"], e["actor"]["model"]) for e in _events(root)]
    assert rows == [("make build", "failed", 2, "m1"), ("ls", "ok", 0, "m1")]
    assert {e["actor"]["harness"] for e in _events(root)} == {"mini-swe-agent"}


def _forget(root: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "origin", lambda: "human")
    accept(str(root / ".git" / "projectmem"))
    assert run(["forget", "--text", text, "--yes", "--root", str(root)]) == 0


def _left(root: Path) -> list[str]:
    return [e["data"]["text"] for e in _events(root) if "data" in e]


def test_a_trajectory_that_grew_brings_nothing_erased_back(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is known by what was said up to it, so the longer file adds its new step and no other."""
    step = [
        {"role": "assistant", "content": "```bash\nmake climb\n```"},
        {"role": "user", "content": "<returncode>2</returncode>\n<output>\nKilimanjaro failed\n</output>"},
        {"role": "assistant", "content": "```bash\nmake tea\n```"},
        {"role": "user", "content": "<returncode>2</returncode>\n<output>\nno tea\n</output>"},
    ]
    more = [{**step[0], "content": "```bash\nmake rope\n```"}, {**step[1], "content": "<returncode>0</returncode>"}]
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are"}, {"role": "user", "content": "go"}, *step]
    path = tmp_path / "x.traj.json"
    path.write_text(json.dumps({"messages": messages}))
    assert _import(root, "mini-swe-agent", str(path)) == 0
    _forget(root, "Kilimanjaro", monkeypatch)
    path.write_text(json.dumps({"info": {"exit_status": "Submitted"}, "messages": [*messages, *more]}, indent=1))
    assert _import(root, "mini-swe-agent", str(path)) == 0
    assert _left(root) == ["make tea", "make rope"]


def test_a_report_that_is_only_written_differently_brings_nothing_erased_back(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment or other indentation is no other report; another time is."""
    path = tmp_path / "a.xml"
    path.write_text(JUNIT)
    assert _import(root, "junit", str(path), "--command", "pytest -q") == 0
    _forget(root, "ImportError: no module tax", monkeypatch)
    path.write_text(JUNIT.replace("<testcase", "\n  <!-- x --><testcase"))
    assert _import(root, "junit", str(path), "--command", "pytest -q") == 0 and _left(root) == []
    path.write_text(JUNIT.replace("10:00:00", "12:00:00"))
    assert _import(root, "junit", str(path), "--command", "pytest -q") == 0 and _left(root) == ["pytest"]


@pytest.mark.parametrize("form", ["junit", "mini-swe-agent"])
@pytest.mark.parametrize(
    "content", [b"", b"<testsuites><testcase", b"{", b"\xff\xfe", b'{"messages": 3}', b"[1]", b"null", b"<html/>", b"import os"]
)
def test_a_file_of_another_kind_is_named_and_nothing_is_recorded(
    root: Path, tmp_path: Path, form: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, and not the exit code of success."""
    path = tmp_path / "bad"
    path.write_bytes(content)
    assert _import(root, form, str(path), "--command", "pytest") == 3
    said = capsys.readouterr()
    kind = "not a JUnit report" if form == "junit" else "not a trajectory"
    assert said.out == "" and f"{path} is {kind}" in said.err and said.err.endswith(": nothing was recorded\n")
    assert _events(root) == []


def test_what_was_read_is_said_in_the_words_of_its_kind(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report is an outcome; of several files those that can be read are taken, and the other is named."""
    first, second, bad = tmp_path / "a.xml", tmp_path / "b.xml", tmp_path / "c.py"
    first.write_text(JUNIT)
    second.write_text(PASSED)
    bad.write_text("import os")
    assert _import(root, "junit", str(first), "--command", "pytest -q") == 0
    assert capsys.readouterr().out == "read 1 report: 1 outcome recorded, it failed\n"
    assert _import(root, "junit", str(first), str(second), str(bad), "--command", "pytest -q") == 3
    said = capsys.readouterr()
    assert said.out == "read 2 reports: 1 outcome recorded, it went well (1 known already)\n"
    assert f"{bad} is not a JUnit report" in said.err and said.err.endswith(": nothing was recorded of it\n")
    assert len(_events(root)) == 2


def test_entities_that_blow_up_are_refused(root: Path, tmp_path: Path) -> None:
    """A report is other people's: a billion laughs end in a count of one damaged file."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    path = tmp_path / "bomb.xml"
    path.write_text(f'<?xml version="1.0"?><!DOCTYPE t [<!ENTITY l0 "ha">{entities}]><testsuite>&l11;</testsuite>')
    assert _import(root, "junit", str(path), "--command", "pytest") == 3
    assert _events(root) == []


def test_what_cannot_be_read_is_said(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown format, a report without its command, a file that is not there: wrong usage, exit code not 0."""
    path = tmp_path / "a.xml"
    path.write_text(JUNIT)
    for args, said in (
        (("csv", str(path)), "unknown format"),
        (("junit", str(path)), "--command"),
        (("mini-swe-agent", str(tmp_path / "none")), "is no file"),
    ):
        assert _import(root, *args) != 0
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("told", "body"),
    [
        ("a <output>\nx\ny\n</output> b", "x\ny"), ("<output>x</output><output>y</output>", "x"), ("<output></output>", ""),
        ("<output>\n</output>", ""), ("<output>\n\n\n</output>", "\n"), ("</output>\n<output> x </output>", " x "),
        ("</output> <output>x", "</output> <output>x"), ("none", "none"), ("<output>a<output>b</output>", "a<output>b"),
    ],
)  # fmt: skip
def test_an_output_is_what_stands_between_its_marks(told: str, body: str) -> None:
    """The first of each in their order, without one line break beside each."""
    assert reports._body(told) == body
