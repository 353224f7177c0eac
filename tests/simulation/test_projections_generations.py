"""DuckDB generations over real logs: right after every append, through damage, dead builders, rewritten logs and erasure."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import files
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_projections import generations, loading, summaries
from projectmem_projections.errors import CountMismatch
from projectmem_projections.memory import MemoryState
from projectmem_projections.rebuild import rebuild
from projectmem_projections.snapshot import Snapshot

sys.path.insert(0, str(Path(__file__).resolve().parent))  # tests/ is no package: its shared modules lie beside it

from projection_drafts import DAY, NOW, SECOND, action, event, part, write


@pytest.fixture
def home(tmp_path: Path) -> str:
    init_home(str(tmp_path / "home"), NOW)
    return str(tmp_path / "home")


def dump(home: str) -> bytes:
    with generations.open_current(home) as s:
        return s.canonical_dump()


def folder(home: str) -> Path:
    return Path(home, "projections", "duckdb")


def test_an_empty_log_has_empty_summaries(home: str) -> None:
    assert summaries.failures(home, now=NOW) == []
    assert summaries.stats(home, now=NOW)["events"] == 0
    assert rebuild(home)["events"] == 0


def test_an_answer_is_right_after_every_append_and_equals_a_rebuild(home: str) -> None:
    """Folded over an older generation or built at once: equal bytes, from the first event on."""
    for n in range(8):
        write(home, action(n % 3, "failed" if n % 4 else "ok", n), action(9, "ok", -n, "s2"))
        live = dump(home)
        with generations.open_current(home) as s:
            assert s.cursor() == LogStore(home).head()
    assert len(list(folder(home).glob("gen-*"))) == 1  # built once, folded since
    assert json.loads(rebuild_pointer(home))["file"] == "gen-00000002.duckdb"
    assert dump(home) == live


def test_only_what_ever_failed_has_its_history_fetched(home: str) -> None:
    """A success of something that never failed is most of what happens: the entries of a long log need not be looked through."""
    write(home, action(1, "failed", 1), action(1, "ok", 2), *(action(2, "ok", n) for n in range(3, 9)))
    generations.build(home)
    for what, outcome, fetched in ((2, "ok", 0), (1, "ok", 3), (2, "failed", 8)):
        write(home, action(what, outcome, 20 + fetched))
        with generations.open_current(home) as s:
            assert s.attached
            assert s.query("SELECT count(*) AS n FROM k.entries")[0]["n"] == fetched, (what, outcome)
            live = s.canonical_dump()
        generations.discard(home, all=True)
        assert dump(home) == live
        generations.build(home)


def rebuild_pointer(home: str) -> bytes:
    rebuild(home)
    return folder(home).joinpath("CURRENT").read_bytes()


def test_streams_combine_however_they_came_together(home: str, tmp_path: Path) -> None:
    """A second machine's stream copied in, after or before a generation was built."""
    other = str(tmp_path / "other")
    init_home(other, NOW)
    write(home, action(1, "failed", 10), action(2, "failed", 11))
    dump(home)
    write(other, action(1, "ok", 12), action(2, "ok", 5))
    (stream,) = os.listdir(os.path.join(other, "log"))
    shutil.copytree(os.path.join(other, "log", stream), os.path.join(home, "log", stream))
    live = dump(home)
    rebuild(home)
    assert dump(home) == live
    found = {row["text"]: row["state"] for row in summaries.failures(home, now=NOW + 20, all=True)}
    assert found == {"npm run t1": "cleared", "npm run t2": "open"}


def test_far_behind_builds_anew_and_keeps_the_previous_generation(home: str) -> None:
    write(home, action(1, "failed", 1))
    generations.open_current(home).con.close()
    write(home, *(action(n, "failed", n) for n in range(5)))
    with generations.open_current(home, build_when_behind=4) as s:
        assert s.query("SELECT count(*) AS n FROM actions") == [{"n": 6}]
    write(home, *(action(n, "failed", n) for n in range(5)))
    generations.open_current(home, build_when_behind=4).con.close()
    assert sorted(p.name for p in folder(home).glob("gen-*")) == ["gen-00000002.duckdb", "gen-00000003.duckdb"]


def damage_pointer(path: Path) -> None:
    path.joinpath("CURRENT").write_bytes(b"\0\0\0")


def damage_cut(path: Path) -> None:
    (gen,) = path.glob("gen-*")
    os.truncate(gen, gen.stat().st_size // 2)


def damage_gone(path: Path) -> None:
    for gen in path.glob("gen-*"):
        gen.unlink()


def damage_noise(path: Path) -> None:
    (gen,) = path.glob("gen-*")
    gen.write_bytes(b"\x5a" * gen.stat().st_size)


def damage_blocks(path: Path) -> None:
    """The header is sound, the data is not: found only when the blocks are read."""
    (gen,) = path.glob("gen-*")
    data = bytearray(gen.read_bytes())
    data[3 * 4096 :] = bytes(b ^ 0x5A for b in data[3 * 4096 :])
    gen.write_bytes(data)


@pytest.mark.parametrize("damage", [damage_pointer, damage_cut, damage_gone, damage_noise, damage_blocks])
def test_a_damaged_generation_is_rebuilt_and_said_aloud(home: str, damage: Any) -> None:
    write(home, action(1, "failed", 1))
    expected = dump(home)
    damage(folder(home))
    notices: list[str] = []
    assert [row["text"] for row in summaries.failures(home, now=NOW, notices=notices)] == ["npm run t1"]
    assert "rebuilt" in " ".join(notices)
    again: list[str] = []
    summaries.failures(home, now=NOW, notices=again)
    assert again == []
    assert dump(home) == expected


def test_another_version_is_built_anew_without_a_word(home: str) -> None:
    write(home, action(1, "failed", 1))
    dump(home)
    pointer = folder(home) / "CURRENT"
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "version": 1}))
    notices: list[str] = []
    assert len(summaries.failures(home, now=NOW, notices=notices)) == 1
    assert notices == []


def test_while_another_process_builds_readers_go_on(home: str) -> None:
    """With the old generation, however far behind; without any, from the log."""
    write(home, action(1, "failed", 1))
    folder(home).mkdir(parents=True)
    held = files.lock(str(folder(home) / "build.lock"), 0)
    assert held is not None
    assert len(summaries.failures(home, now=NOW)) == 1
    assert list(folder(home).glob("gen-*")) == []
    files.unlock(held)
    dump(home)
    held = files.lock(str(folder(home) / "build.lock"), 0)
    assert held is not None
    write(home, *(action(n, "failed", n) for n in range(10)))
    with generations.open_current(home, build_when_behind=2) as s:
        assert s.query("SELECT count(*) AS n FROM actions") == [{"n": 11}]
    files.unlock(held)


def test_a_builder_that_died_bricks_nobody(home: str) -> None:
    write(home, action(1, "failed", 1))
    code = f"""
import os
from projectmem_projections import generations
generations._publish = lambda *_: os._exit(9)
generations.build({home!r})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    half = folder(home) / "gen-00000001.duckdb"
    assert half.exists()
    half.write_bytes(half.read_bytes()[:5000])
    assert len(summaries.failures(home, now=NOW)) == 1
    assert not half.exists()


def test_where_nothing_can_be_written_the_log_is_read_into_memory(home: str) -> None:
    write(home, action(1, "failed", 1))
    folder(home).parent.mkdir(exist_ok=True)
    folder(home).write_text("in the way")
    notices: list[str] = []
    assert len(summaries.failures(home, now=NOW, notices=notices)) == 1
    assert "read anew" in notices[0]


def segment(home: str) -> Path:
    (path,) = Path(home, "log").glob("*/*.jsonl")
    return path


def test_damage_in_the_log_is_read_around_and_stands_in_the_answer(home: str) -> None:
    for n in range(4):
        write(home, action(n, "failed", n))
    lines = segment(home).read_bytes().splitlines(keepends=True)
    segment(home).write_bytes(lines[0] + lines[1][:50] + b"\0" * 20 + lines[1][70:] + lines[2] + lines[3])
    stats = summaries.stats(home, now=NOW)
    assert stats["events"] == 3
    assert len(stats["damage"]) == 1
    assert stats["damage"][0]["at_byte"] == len(lines[0])
    assert rebuild(home)["events"] == 3


def test_a_line_that_was_tampered_with_is_in_no_projection_and_rebuild_still_stands(home: str) -> None:
    """One letter of an earlier event's data: its digest does not match, and no reader of the log takes it in."""
    store = LogStore(home)
    for n in range(4):
        store.append([action(n, "failed", n * SECOND)], now=NOW + n * SECOND)
    (segment,) = (Path(home) / "log").rglob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b"boom at line 3", b"doom at line 3", 1))
    counts = rebuild(home)
    assert counts["events"] == 3
    notices: list[str] = []
    assert len(summaries.failures(home, now=NOW + DAY, notices=notices)) == 3
    assert "projectmem verify" in notices[-1]


def test_a_half_written_line_at_the_end_is_left_for_the_next_append(home: str) -> None:
    write(home, action(1, "failed", 1))
    whole = dump(home)
    with segment(home).open("ab") as file:
        file.write(b'{"actor":')
    assert dump(home) == whole
    rebuild(home)
    assert dump(home) == whole
    write(home, action(2, "failed", 2))  # heals, and says so
    assert summaries.stats(home, now=NOW)["by_kind"] == {"action.finished": 2, "log.recovered": 1}


def test_a_log_that_lost_its_end_is_noticed(home: str) -> None:
    write(home, action(1, "failed", 1))
    size = segment(home).stat().st_size
    write(home, action(1, "ok", 2))
    dump(home)
    os.truncate(segment(home), size)
    assert [row["state"] for row in summaries.failures(home, now=NOW)] == ["open"]
    write(home, action(3, "failed", 3))
    assert len(summaries.failures(home, now=NOW)) == 2


def test_a_build_that_does_not_account_for_every_event_is_not_published(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, action(1, "failed", 1))
    dump(home)
    before = folder(home).joinpath("CURRENT").read_bytes()
    real = loading.sql
    kept = "FROM raw WHERE kind = 'action.finished' AND NOT erased;"
    skewed = {"load.sql": real("load.sql").replace(kept, kept.replace(";", " LIMIT 0;"), 1)}
    monkeypatch.setattr(loading, "sql", lambda name: skewed.get(name) or real(name))
    with pytest.raises(CountMismatch, match="actions has 0 rows instead of 1"):
        generations.build(home)
    assert folder(home).joinpath("CURRENT").read_bytes() == before


def test_an_erasure_counts_at_once_and_leaves_no_older_generation(home: str) -> None:
    (gone,) = write(home, action(1, "failed", 1, signature="SECRETWORD", excerpt="SECRETWORD"))
    write(home, action(2, "failed", 2))
    dump(home)
    write(home, event("erasure.requested", {"selector": "x", "ids": [gone], "reason": "asked"}, 3, origin="human"))
    live = dump(home)
    assert b"SECRETWORD" not in live
    assert [row["text"] for row in summaries.failures(home, now=NOW)] == ["npm run t2"]
    assert summaries.stats(home, now=NOW)["erased"] == 1
    notices: list[str] = []
    rebuild(home, notices)
    assert notices == []
    assert dump(home) == live
    assert not any(b"SECRETWORD" in path.read_bytes() for path in folder(home).parent.rglob("*") if path.is_file())


def test_rebuild_reconciles_and_gives_the_snapshot_the_same_state(home: str) -> None:
    ids = write(home, *(action(n % 4, "failed" if n % 3 else "ok", n) for n in range(12)))
    write(home, event("erasure.requested", {"selector": "", "ids": ids[:2], "reason": ""}, 99, origin="human"))
    with Snapshot(os.path.join(home, "projections", "gate.sqlite")) as old:
        old.catch_up(home)
        old.pending_put("s", "c", {"t0": 1})
    counts = rebuild(home)
    assert counts["events"] == 13
    assert counts["actions"] == 10
    memory = MemoryState()
    memory.apply(read_events(home))
    with Snapshot(os.path.join(home, "projections", "gate.sqlite")) as new:
        assert new.canonical_dump() == memory.canonical_dump()
        assert not new.dirty
        assert new.pending_get("s", "c") == {"t0": 1}
    # an empty journal stays, nothing else
    assert {p.name for p in folder(home).parent.iterdir() if p.is_dir() or p.stat().st_size} == {
        "duckdb",
        "gate.sqlite",
        "recall",
    }


def test_rebuild_replaces_a_snapshot_that_is_damaged(home: str) -> None:
    write(home, action(1, "failed", 1))
    path = Path(home, "projections", "gate.sqlite")
    path.write_bytes(b"noise" * 1000)
    rebuild(home)
    with Snapshot(str(path)) as snapshot:
        assert snapshot.cursor() == LogStore(home).head()


# --- what is answered --------------------------------------------------------------------------------------------------


def test_a_failure_says_its_state_its_remedy_and_when_it_expires(home: str) -> None:
    (id,) = write(home, action(1, "failed", 0))
    write(home, action(1, "failed", 1, "s2"), action(2, "ok", 2, "s2"))
    (row,) = summaries.failures(home, now=NOW + 10)
    assert (row["count"], row["streak"], row["sessions"], row["state"]) == (2, 2, 2, "open")
    assert row["remedy"] == "npm run t2"
    assert row["by"] == [{"harness": "claude-code", "model": "m1", "agent": ""}]
    assert row["expires_at"] == NOW + 1 + 7 * DAY
    assert summaries.failures(home, now=row["expires_at"]) == []
    assert summaries.failures(home, now=row["expires_at"], all=True)[0]["state"] == "expired"
    key = row["key"]
    snooze = {"record": id, "key": key, "until": NOW + 50, "reason": "later", "by_event": ""}
    write(home, event("record.snoozed", snooze, 3, origin="human"))
    assert [(r["state"], r["state_why"]) for r in summaries.failures(home, now=NOW + 49)] == [("snoozed", "later")]
    assert [r["state"] for r in summaries.failures(home, now=NOW + 50)] == ["open"]
    write(home, event("record.disputed", {**snooze, "until": 0, "reason": "not so"}, 4, origin="human"))
    assert summaries.failures(home, now=NOW + 60) == []
    assert [(r["state"], r["state_why"]) for r in summaries.failures(home, now=NOW, key=key)] == [("disputed", "not so")]


def test_a_pinned_failure_does_not_expire(home: str) -> None:
    (id,) = write(home, action(1, "failed", 0))
    pin = {"record": id, "key": f"{1:032x}", "until": 0, "reason": "", "by_event": ""}
    write(home, event("record.pinned", pin, 1, origin="human"))
    (row,) = summaries.failures(home, now=NOW + 400 * DAY)
    assert (row["state"], row["pinned"], row["expires_at"]) == ("open", True, 0)


def test_a_chain_stands_in_the_list_once_as_the_part_that_failed(home: str) -> None:
    write(home, action(9, "failed", 0, parts=[part(1), part(2)], failed_key=f"{2:032x}"))
    assert [row["text"] for row in summaries.failures(home, now=NOW)] == ["npm run t2"]
    assert len(summaries.failures(home, now=NOW, key=f"{9:032x}")) == 1


def test_issues_decisions_labels_notes_and_sessions(home: str) -> None:
    (label,) = write(home, event("label.set", {"label": "fragile", "target": "path", "pattern": "db/*", "effect": "warn"}, 0))
    write(home, event("label.set", {"label": "protected", "target": "path", "pattern": "x", "effect": "deny"}, 1))
    write(home, event("label.cleared", {"label_event": label, "reason": ""}, 2))
    (old,) = write(home, event("decision.recorded", {"title": "A", "text": "a", "supersedes": ""}, 3))
    write(home, event("decision.recorded", {"title": "B", "text": "b", "supersedes": old}, 4))
    write(home, event("issue.opened", {"issue": "i1", "title": "one", "paths": ["a.py"]}, 5))
    write(home, event("issue.opened", {"issue": "i2", "title": "two", "paths": []}, 6))
    write(home, event("attempt.recorded", {"issue": "i1", "text": "t", "outcome": "failed", "verifier": "pytest"}, 7))
    write(home, event("issue.closed", {"issue": "i2", "resolution": "done"}, 8))
    write(home, event("note.recorded", {"text": "n", "tags": ["x"]}, 9))
    write(home, event("session.started", {"source": "startup", "cwd": "sub"}, 10, "s3"), action(1, "failed", 11, "s3"))
    assert [row["pattern"] for row in summaries.labels(home)] == ["x"]
    assert summaries.labels(home, label="fragile") == []
    assert [row["title"] for row in summaries.decisions(home)] == ["B"]
    assert len(summaries.decisions(home, all=True)) == 2
    (issue,) = summaries.issues(home)
    assert (issue["issue"], issue["paths"], issue["attempts"], issue["failed_attempts"]) == ("i1", ["a.py"], 1, 1)
    assert [(row["issue"], row["resolution"]) for row in summaries.issues(home, all=True)] == [("i2", "done"), ("i1", "")]
    assert [row["kind"] for row in summaries.about_issue(home, "i1")] == ["issue", "attempt"]
    assert [(row["text"], row["tags"]) for row in summaries.notes(home)] == [("n", ["x"])]
    newest = summaries.sessions(home)[0]
    assert (newest["session"], newest["cwd"], newest["actions"], newest["failed"]) == ("s3", "sub", 1, 1)
    assert summaries.actions(home, session="s3")[0]["at"] == NOW + 11


def test_stats_tell_what_became_of_each_verdict(home: str) -> None:
    def proposed(call: str, verdict: str, rule: str, at: int) -> dict[str, Any]:
        decision = {"verdict": verdict, "rule": rule, "record": "", "records": [], "reason": "r"}
        return event("action.proposed", {"call": call, "key": "k", "text": "t", "decision": decision, "session": {"turn": 1}}, at)

    write(home, proposed("c1", "warn", "repeat", 0), action(1, "failed", 1, call="c1"))
    write(home, proposed("c2", "ask", "repeat", 2), proposed("c3", "allow", "override", 3), action(1, "ok", 4, call="c3"))
    stats = summaries.stats(home, now=NOW)
    assert {(g["verdict"], g["rule"]): (g["then_failed"], g["then_ok"], g["not_run"], g["heeded"]) for g in stats["gate"]} == {
        ("warn", "repeat"): (1, 0, 0, 0),
        ("ask", "repeat"): (0, 0, 1, 1),
        ("allow", "override"): (0, 1, 0, 0),
    }
    assert stats["overrides"] == 1
    assert stats["outcomes"] == {"failed": 1, "ok": 1}
    assert stats["streams"] == LogStore(home).head()


def test_an_event_is_found_by_either_end_of_its_id(home: str) -> None:
    ids = write(home, action(1, "failed", 0), action(2, "failed", 1))
    assert [row["id"] for row in summaries.events_by_id(home, ids[1][-8:])] == [ids[1]]
    assert [row["id"] for row in summaries.events_by_id(home, ids[0])] == [ids[0]]
