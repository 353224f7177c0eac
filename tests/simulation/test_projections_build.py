"""How a log is taken in: in runs of segments or at once, verified beside the load, without what was asked to be erased."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from projectmem_logs.store import LogStore, init_home
from projectmem_projections import generations, loading, wholeness

sys.path.insert(0, str(Path(__file__).resolve().parent))  # tests/ is no package: its shared modules lie beside it

from projection_drafts import NOW, SECOND, action, event, part


def made(home: Path, events: int = 12) -> str:
    """A log of small segments, with chains, and an erasure at its end that names the first event of all."""
    init_home(str(home), NOW)
    store = LogStore(str(home), segment_bytes=2_000)
    ids = []
    for n in range(events):
        chain = [part(n, trivial=True), part(n + 1)] if n % 3 == 2 else [part(n)]
        draft = action(n % 4, "failed" if n % 2 else "ok", n * SECOND, parts=chain, signature=f"SIGN{n}")
        ids.append(store.append([draft], now=NOW + n)[0]["id"])
    request = {"selector": "", "ids": [ids[1]], "reason": ""}
    store.append([event("erasure.requested", request, events * SECOND, origin="human")], now=NOW + events)
    return str(home)


def built(home: str) -> tuple[bytes, str, bytes]:
    """(canonical dump, how the log was read, the file's bytes) of a new generation."""
    path = generations.build(home)
    with generations.open_current(home) as s:
        return s.canonical_dump(), s.query("SELECT read_as FROM generation")[0]["read_as"], Path(path).read_bytes()


def test_runs_of_segments_the_whole_log_and_event_by_event_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = made(tmp_path / "home")
    assert len(list((tmp_path / "home" / "log").rglob("*.jsonl"))) > 5
    at_once = built(home)
    monkeypatch.setattr(loading, "RUN_BYTES", 1)
    monkeypatch.setattr(loading, "RUN_EVENTS", 5)
    by_segment = built(home)
    monkeypatch.setattr(wholeness, "ends", lambda home: None)
    one_by_one = built(home)
    assert [x[1] for x in (at_once, by_segment, one_by_one)] == ["bulk", "bulk", "careful"]
    assert at_once[0] == by_segment[0] == one_by_one[0]
    for _, _, raw in (at_once, by_segment, one_by_one):  # asked to be erased at the end: never written down
        assert b"SIGN3" in raw and b"SIGN1\x00" not in raw and b"SIGN1S" not in raw
    assert b'SIGN1"' not in at_once[0]


def test_an_erasure_that_could_not_be_seen_beforehand_counts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path / "home")
    expected = built(home)[0]
    monkeypatch.setattr(wholeness, "erased_ids", lambda home: set())
    assert built(home)[0] == expected


def test_what_is_tampered_with_is_never_taken_in_bulk(tmp_path: Path) -> None:
    home = made(tmp_path / "home")
    segment = sorted((tmp_path / "home" / "log").rglob("*.jsonl"))[1]
    segment.write_bytes(segment.read_bytes().replace(b"boom at line 3", b"doom at line 3", 1))
    dump, how, _ = built(home)
    assert how == "careful" and b"doom" not in dump


def test_what_was_appended_while_a_build_read_is_left_to_its_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = made(tmp_path / "home")
    real = wholeness.ends

    def ends(home: str) -> dict[str, wholeness.End] | None:
        found = real(home)
        LogStore(home).append([action(9, "failed", 99 * SECOND)], now=NOW + 99)
        return found

    monkeypatch.setattr(wholeness, "ends", ends)
    path = generations.build(home)
    monkeypatch.undo()
    with generations.connect(path, read_only=True) as con:
        assert con.execute("SELECT count(*), max(seq) FROM events").fetchone() == (13, 13)
        assert con.execute("SELECT read_as FROM generation").fetchone() == ("bulk",)
    with generations.open_current(home) as s:
        assert s.query("SELECT count(*) AS n FROM events") == [{"n": 14}]


def test_a_home_may_be_named_like_a_pattern(tmp_path: Path) -> None:
    plain, odd = made(tmp_path / "home"), made(tmp_path / "it's [a] *home")
    assert built(plain)[1] == built(odd)[1] == "bulk"


def test_a_build_that_fails_leaves_no_verification_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = made(tmp_path / "home", 60)
    real = loading.sql
    monkeypatch.setattr(loading, "sql", lambda name: "SELEKT" if name == "load.sql" else real(name))
    with pytest.raises(loading.duckdb.Error):
        generations.build(home)
    assert not [t for t in threading.enumerate() if t.name == "verify"]
    assert not list((tmp_path / "home" / "projections").rglob("gen-*"))
