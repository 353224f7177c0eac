"""`sql`, `export` and others as typed: tables, JSON, CSV, the limit, and what is said of a wrong question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from projectmem_projections.querying import Answer

from projectmem import tabular
from projectmem.cli import app


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log in it, and it is the current one."""
    from projectmem_logs.store import init_home

    init_home(str(tmp_path / "home"), 1)
    monkeypatch.setenv("PROJECTMEM_GATE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert app.run(["record", "note", "one,\nline \x1b[31m"]) == 0
    assert app.run(["record", "note", "two"]) == 0
    return tmp_path


def test_a_table_json_and_csv_of_one_question(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    question = "SELECT text, tags, id IS NULL AS none FROM notes ORDER BY at_us"
    assert app.run(["sql", question]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["text", "tags", "none"] and "\x1b" not in out and len(out.splitlines()) == 3
    assert app.run(["sql", question, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1] == {"text": "two", "tags": [], "none": False}
    assert app.run(["sql", question, "--csv"]) == 0
    assert capsys.readouterr().out.startswith('text,tags,none\n"one,')


def test_a_row_that_is_too_wide_is_folded_where_a_person_reads(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is cut, no line is wider than the terminal, and what is piped on stays one line a row."""
    long = "word " * 40
    question = f"SELECT '{'k' * 50}' AS key, '{long}end' AS long, NULL AS nothing, 'last' AS last"
    capsys.readouterr()
    assert app.run(["sql", question]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "70")
    assert app.run(["sql", question]) == 0
    folded = capsys.readouterr().out.splitlines()
    assert (
        folded[0].startswith("-- row 1 -") and folded[1] == f"key      {'k' * 50}" and folded[-2:] == ["nothing", "last     last"]
    )
    assert max(map(len, folded)) <= 70 and " ".join(" ".join(folded[2:-2]).split()) == f"long {long}end"
    assert app.run(["sql", "SELECT 1 AS a, 2 AS b"]) == 0
    assert capsys.readouterr().out.splitlines() == ["a  b", "1  2"]


def test_the_limit_and_no_rows_are_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["sql", "SELECT id FROM notes", "-n", "1"]) == 0
    assert "more than 1 rows" in capsys.readouterr().err
    assert app.run(["sql", "SELECT id FROM failures"]) == 0
    assert "no rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["sql", "DROP TABLE notes"], "DROP is not allowed"),
        (["sql", "SELECT * FROM note"], "notes"),  # DuckDB names the nearest table
        (["sql", "SELECT 1", "--csv", "--json"], "not both"),
        (["sql", "FROM read_text('/etc/passwd')"], "no files"),
        (["export"], "--parquet DIR, --csv DIR, --otel FILE or --atif DIR"),
        (["export", "--csv", "."], "nothing is overwritten"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_or_two(
    project: Path, capsys: pytest.CaptureFixture[str], args: list[str], says: str
) -> None:
    assert app.run(args) == 2
    err = capsys.readouterr().err
    assert says in err and "Traceback" not in err


def test_a_summary_of_what_nobody_knows_names_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert app.run(["summary", "src/unheard.py"]) == 0
    said = capsys.readouterr()
    assert not said.out and "nothing is known about `src/unheard.py`" in said.err


def test_a_login_without_an_address_says_what_to_type(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["proxy", "--login"]) == 2
    assert "`projectmem proxy --login --url URL`" in capsys.readouterr().err


def test_who_types_mcp_is_told_what_it_is_and_a_client_is_not(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projectmem.mcp_server.run", lambda place: None)
    capsys.readouterr()
    for typed in (True, False):
        monkeypatch.setattr("sys.stdin.isatty", lambda typed=typed: typed)
        assert app.run(["mcp"]) == 0
        said = capsys.readouterr()
        assert not said.out and ("MCP server" in said.err) == typed


def test_what_was_left_out_is_said_with_what_it_takes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args, says in (
        (["record", "attempt", "x"], "  --outcome OUTCOME: worked | failed | unclear"),
        (["supersede", "0123456789ab"], "  --by ID: "),
        (["explain"], "  id: Id of an event, or enough of one."),
    ):
        capsys.readouterr()
        assert app.run(args) == 2
        assert says in capsys.readouterr().err


def test_without_a_question_the_tables_are_listed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert app.run(["sql"]) == 0
    assert "failure_states (view)" in capsys.readouterr().out
    assert app.run(["sql", "--json"]) == 0
    assert any(r["name"] == "gate_outcomes" for r in json.loads(capsys.readouterr().out))


def test_an_export_says_where_it_is(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["export", "--parquet", "out"]) == 0
    assert "2 events" in capsys.readouterr().out
    assert (project / "out" / "notes.parquet").exists()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "True"),
        (float("nan"), "nan"),
        (b"\xff", "ff"),
        ([1, {"a": None}], '[1, {"a": null}]'),
        (2**70, str(2**70)),
    ],
)
def test_every_value_has_a_text(value: Any, shown: str) -> None:
    answer = Answer((("a", "X"), ("a", "X")), [(value, 1)], False)
    assert tabular.lines(answer, 80)[1].split("  ")[0].strip() == shown
    assert list(tabular.records(answer)[0]) == ["a", "a_2"]
    json.dumps(tabular.records(answer))
