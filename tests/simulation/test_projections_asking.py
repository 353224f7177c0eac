"""SQL for people over a real log: it answers, it cannot write, read elsewhere or reach what was erased; exports reconcile."""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
from projectmem_logs.store import LogStore, init_home
from projectmem_projections import exporting, generations, querying, summaries
from projectmem_projections.errors import ProjectionError

sys.path.insert(0, str(Path(__file__).resolve().parent))  # tests/ is no package: its shared modules lie beside it

from projection_drafts import DAY, NOW, action, event, write


@pytest.fixture
def home(tmp_path: Path) -> str:
    init_home(str(tmp_path / "home"), NOW)
    return str(tmp_path / "home")


def ask(home: str, statement: str, limit: int = 0) -> list[tuple[Any, ...]]:
    return querying.query(home, statement, limit=limit, now=NOW + 1000).rows


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE actions",
        "CREATE TABLE mine (a INTEGER)",
        "INSERT INTO actions SELECT * FROM actions",
        "WITH gone AS (DELETE FROM actions RETURNING id) SELECT * FROM gone",
        "UPDATE events SET erased = true",
        "COPY actions TO '{}/out.csv'",
        "EXPORT DATABASE '{}/out'",
        "ATTACH '{}/other.duckdb' AS other",
        "EXPLAIN ANALYZE COPY actions TO '{}/out.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('{}/secret.txt')",
        "FROM '{}/secret.txt'",
        "SELECT * FROM glob('{}/*')",
        "FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM parquet_metadata('{}/x.parquet')",
        "SELECT getenv('HOME')",
        "SET memory_limit = '1TB'",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "LOAD json",
        "CALL pragma_version()",
        "FROM read_csv('https://example.com/x.csv')",
        "SELECT 1; DROP TABLE actions",
        "SELECT 1; SELECT 2",
        "/* SELECT */ DROP TABLE actions",
        "-- SELECT\nDROP TABLE actions",
        "",
        "  \n",
        "SELECT FROM WHERE",
        "SELECT nothing FROM nowhere",
        "SELECT '\udcff'",
        "SELECT 1" + " " * 100_000,
        "SELECT error('planted')",
    ],
)
def test_what_is_no_question_is_refused_and_nothing_happens(home: str, tmp_path: Path, statement: str) -> None:
    """One line that says why; no file comes or goes, and the tables are as they were."""
    write(home, action(1, "failed", 1))
    (tmp_path / "secret.txt").write_text("hidden")
    generations.open_current(home).con.close()
    before = sorted(p.name for p in tmp_path.rglob("*"))
    with pytest.raises(querying.QueryRefused) as refused:
        ask(home, statement.replace("{}", str(tmp_path)))
    assert str(refused.value) and "hidden" not in str(refused.value)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    assert ask(home, "SELECT count(*) FROM actions") == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM actions",
        "select count(*) from actions;",
        "-- how many?\nSELECT count(*) FROM actions",
        "WITH a AS (SELECT * FROM actions) SELECT count(*) FROM a",
        "FROM actions SELECT count(*)",
        "(SELECT count(*) FROM actions)",
    ],
)
@pytest.mark.parametrize("folded", [False, True])
def test_questions_are_answered_with_the_newest_events(home: str, statement: str, folded: bool) -> None:
    write(home, action(1, "failed", 1))
    if folded:
        generations.open_current(home).con.close()
        write(home, action(2, "failed", 2))
    assert ask(home, statement) == [(2 if folded else 1,)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is bounded on Linux alone")
def test_a_question_that_takes_all_memory_is_refused(home: str) -> None:
    """Texts that DuckDB's own limit does not count, and what it does count; afterwards everything is as it was."""
    import resource

    write(home, action(1, "failed", 1))
    before = resource.getrlimit(resource.RLIMIT_DATA)
    for statement in ("SELECT length(repeat('x', 3000000000))", "SELECT list(i) FROM range(1000000000) t(i)"):
        with pytest.raises(querying.QueryRefused, match="more memory than it may"):
            ask(home, statement)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert ask(home, "SELECT count(*) FROM actions") == [(1,)]


def test_what_does_not_fit_into_memory_goes_beside_the_generations(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never into the working folder, where DuckDB would put it; what a builder or a reader that died left there goes."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    folder = Path(home, "projections", "duckdb")
    write(home, action(1, "failed", 1))
    generations.open_current(home).con.close()
    write(home, action(2, "failed", 2))
    with generations.open_current(home) as found, generations.open_current(home) as other:
        assert found.attached
        for summaries in (found, other):
            summaries.con.execute("SET memory_limit = '60MB'")
            summaries.con.execute("CREATE TABLE n.big AS SELECT i, repeat('x', 100) AS s FROM range(2000000) t(i)")
        assert len(list(folder.glob("spill-*"))) == 2
    assert list(folder.glob("spill-*")) == [] and list(Path().iterdir()) == []
    for name, age in (("gen-00000009.duckdb.tmp", 0), ("spill-7-0.tmp", 90_000), ("spill-8-0.tmp", 0)):
        (folder / name).mkdir()
        (folder / name / "duckdb_temp_storage-0.tmp").write_text("x")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    assert generations.build(home)
    assert sorted(p.name for p in folder.glob("*.tmp")) == ["spill-8-0.tmp"]
    (folder / "gen-00000009.duckdb.tmp").mkdir()
    generations.discard(home, all=True)
    assert sorted(p.name for p in folder.iterdir()) == ["build.lock", "spill-8-0.tmp"]


def test_other_forms_of_reading_are_allowed(home: str) -> None:
    write(home, action(1, "failed", 1))
    for statement in ("DESCRIBE actions", "SUMMARIZE actions", "SHOW TABLES", "EXPLAIN SELECT 1", "VALUES (1)", "TABLE actions"):
        assert ask(home, statement)
    assert ask(home, "PIVOT (SELECT outcome, 1 AS n FROM actions) ON outcome USING sum(n)")


def test_the_limit_holds_and_more_is_said(home: str) -> None:
    write(home, *(action(n, "failed", n) for n in range(5)))
    answer = querying.query(home, "SELECT key FROM failures ORDER BY key", limit=3)
    assert (len(answer.rows), answer.more, answer.columns[0][0]) == (3, True, "key")
    assert not querying.query(home, "SELECT key FROM failures", limit=5).more


def test_what_was_erased_is_out_of_reach_by_any_name(home: str) -> None:
    """Also in the generation's own tables, which are attached beside the views."""
    (gone,) = write(home, action(1, "failed", 1, signature="SECRETWORD"))
    write(home, action(2, "failed", 2))
    generations.open_current(home).con.close()
    write(home, action(3, "failed", 3))
    assert len(ask(home, "SELECT * FROM g.actions")) == 2  # the reason for this test: newer events are folded over `g`
    write(home, event("erasure.requested", {"selector": "x", "ids": [gone], "reason": ""}, 4, origin="human"))
    assert ask(home, "SELECT count(*) FROM actions WHERE signature = 'SECRETWORD'") == [(0,)]
    with pytest.raises(querying.QueryRefused):
        ask(home, "SELECT * FROM g.actions")


def test_while_an_erasure_cannot_be_followed_nothing_is_answered(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (gone,) = write(home, action(1, "failed", 1))
    generations.open_current(home).con.close()
    write(home, event("erasure.requested", {"selector": "x", "ids": [gone], "reason": ""}, 4, origin="human"))
    monkeypatch.setattr(generations, "build", lambda home, wait_ms=0: "")
    with pytest.raises(ProjectionError, match="try again"):
        ask(home, "SELECT 1")


def test_what_followed_a_decision(home: str) -> None:
    """Heeded, repeated with what came of it, and told while it ran."""

    def proposed(call: str, verdict: str, key: int, at: int, rule: str = "repeat") -> dict[str, Any]:
        decision = {"verdict": verdict, "rule": rule, "record": "r", "reason": "r"}
        data = {"call": call, "key": f"{key:032x}", "text": "t", "decision": decision, "session": {"turn": 1}}
        return event("action.proposed", data, at)

    write(home, proposed("c1", "ask", 1, 0), action(2, "ok", 1, call="x"))
    write(home, proposed("c2", "ask", 3, 2), proposed("c3", "allow", 3, 3, "override"), action(3, "failed", 4, call="c3"))
    write(home, proposed("c4", "warn", 4, 5), action(4, "failed", 6, call="c4"))
    rows = ask(home, 'SELECT "call", followed, outcome, next_outcome FROM gate_outcomes ORDER BY "call"')
    assert rows == [
        ("c1", "heeded", "", ""),
        ("c2", "repeated", "", "failed"),
        ("c3", "ran", "failed", "failed"),
        ("c4", "ran", "failed", "failed"),
    ]
    assert ask(home, 'SELECT "call", outcome FROM overrides') == [("c3", "failed")]


def test_decisions_memory_rules_and_remedies(home: str) -> None:
    (old,) = write(home, event("decision.recorded", {"title": "A", "text": "a", "supersedes": ""}, 1))
    (new,) = write(home, event("decision.recorded", {"title": "B", "text": "b", "supersedes": old}, 2))
    (label,) = write(home, event("label.set", {"label": "fragile", "target": "path", "pattern": "db/*", "effect": "warn"}, 3))
    policy = {"rules": [{"name": "r", "target": "tool", "pattern": "Bash", "effect": "ask"}], "ttl_warn": {"test": 5}}
    write(home, event("policy.changed", {"text": "", "hash": "ab", "policy": policy}, 4))
    items = {
        "items": [{"id": old, "type": "decision", "score": 7}],
        "below_floor": [{"id": new, "type": "decision", "cosine": None}],
    }
    write(home, event("recall.decided", {"engine": "e", "query": "q", "abstained": False, **items}, 5))
    write(home, event("feedback.given", {"target": old, "useful": True, "note": ""}, 6))
    failed, worked = write(home, action(1, "failed", 7), action(2, "ok", 8))
    assert ask(home, "SELECT title, in_force, superseded_by FROM decisions ORDER BY title") == [
        ("A", False, new),
        ("B", True, ""),
    ]
    assert ask(home, "SELECT target, type, text, shown, below, useful, utility FROM memory ORDER BY shown, below, type") == [
        (failed, "failure", "npm run t1", 0, 0, 0, None),
        (label, "label", "db/*", 0, 0, 0, None),
        (new, "decision", "b", 0, 1, 0, None),
        (old, "decision", "a", 1, 0, 1, 3000),
    ]
    assert sorted(ask(home, "SELECT source, name, pattern FROM rules")) == [("label", "fragile", "db/*"), ("policy", "r", "Bash")]
    assert ask(home, "SELECT failure, remedy_id FROM remedies") == [(failed, worked)]
    assert ask(home, "SELECT state, expires_at FROM failure_states") == [("expired", NOW + 12)]  # by the policy in force


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_an_export_is_whole_and_its_counts_reconcile(home: str, tmp_path: Path, format: str) -> None:
    """As many rows as the log has events of the kinds; read back by another reader."""
    write(home, *(action(n, "failed" if n % 2 else "ok", n) for n in range(7)))
    generations.open_current(home).con.close()
    write(home, event("note.recorded", {"text": 'say "hi",\nthen go', "tags": ["x", "y"]}, 9))
    target = tmp_path / "o'ut" / "there"
    target.parent.mkdir()
    told = list[tuple[int, int]]()
    counts = exporting.export(home, str(target), format, now=NOW + 1000, tell=lambda done, total: told.append((done, total)))
    assert told == [(n, len(counts)) for n in range(len(counts))]
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["rows"] == counts and manifest["as_of"] == LogStore(home).head()
    assert (counts["events"], counts["actions"], counts["notes"]) == (8, 7, 1)
    assert sorted(p.name for p in target.iterdir()) == sorted([*(f"{name}.{format}" for name in counts), "manifest.json"])
    assert not list(tmp_path.rglob("*.partial"))
    if format == "csv":
        (note,) = csv.DictReader((target / "notes.csv").read_bytes().decode().splitlines(keepends=True))
        assert note["text"] == 'say "hi",\nthen go' and json.loads(note["tags"]) == ["x", "y"]
    else:
        with duckdb.connect() as con:
            read = con.execute(
                "SELECT outcome, count(*) FROM read_parquet(?) GROUP BY ALL ORDER BY ALL", [str(target / "actions.parquet")]
            )
            assert read.fetchall() == [("failed", 3), ("ok", 4)]


def test_an_export_overwrites_nothing_and_leaves_no_half(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, action(1, "failed", 1))
    target = tmp_path / "out"
    target.mkdir()
    (target / "mine").write_text("kept")
    with pytest.raises(exporting.ExportRefused, match="nothing is overwritten"):
        exporting.export(home, str(target), "csv", now=NOW)
    monkeypatch.setitem(exporting.FORMATS, "csv", "(FORMAT csv, HEADER true, FILE_EXTENSION 7")
    with pytest.raises(duckdb.Error):
        exporting.export(home, str(tmp_path / "half"), "csv", now=NOW)
    assert sorted(os.listdir(tmp_path)) == ["home", "out"]
    with pytest.raises(exporting.ExportRefused, match="not a format"):
        exporting.export(home, str(tmp_path / "x"), "xls", now=NOW)


def test_states_in_sql_and_in_the_list_agree(home: str) -> None:
    write(home, *(action(n % 5, "failed" if n % 3 else "ok", n * DAY) for n in range(12)))
    now = NOW + 12 * DAY
    listed = {row["key"]: row["state"] for row in summaries.failures(home, now=now, all=True)}
    asked = querying.query(home, "SELECT key, state FROM failure_states WHERE NOT part_of_chain", limit=0, now=now).rows
    assert dict(asked) == listed
