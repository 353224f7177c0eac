"""The gate snapshot: what it answers, how it follows a real log, and what it does about files that are not its own."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.store import LogStore, init_home
from projectmem_projections import quick, tail
from projectmem_projections.errors import ProjectionError, SnapshotBusy, SnapshotDamaged
from projectmem_projections.memory import MemoryState
from projectmem_projections.snapshot import Snapshot, discard

KEY, CHAIN = "a" * 32, "c" * 32
NOW = 1_700_000_000_000_000


def part(key: str = KEY, **more: Any) -> dict[str, Any]:
    return {
        "key": key,
        "kind": "sh",
        "family": "npm run",
        "text": "npm run build",
        "words": ["npm", "run", "build"],
        "paths": [],
        "effects": [],
        "trivial": False,
        **more,
    }


def draft(outcome: str = "failed", at: int = NOW, parts: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    """An action.finished as the hook would write it."""
    some = parts or [part()]
    key = some[0]["key"] if len(some) == 1 else CHAIN
    data = {
        "call": "",
        "tool": "Bash",
        "kind": "sh",
        "key": key,
        "text": "npm run build",
        "joins": ["&&"] * (len(some) - 1),
        "parts": some,
        "failed_key": key if outcome == "failed" else "",
        "outcome": outcome,
        "exit_code": 1,
        "class": "build",
        "signature": "boom",
        "excerpt": "boom",
        "duration_ms": 10,
        "facts": {},
        "turn": 0,
        "source": "hook",
        **more,
    }
    actor = {"session": "s", "agent": "", "harness": "h", "model": "m", "origin": "observed"}
    return {"kind": "action.finished", "at": at, "actor": actor, "causes": [], "data": data}


def sealed(*drafts: dict[str, Any], start: int = 1) -> list[dict[str, Any]]:
    return [{**d, "id": f"e{n}", "stream": "s1", "seq": n} for n, d in enumerate(drafts, start)]


@pytest.fixture
def home(tmp_path: Path) -> str:
    init_home(str(tmp_path / "home"), NOW)
    return str(tmp_path / "home")


@pytest.fixture(params=["snapshot", "memory"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Snapshot | MemoryState]:
    """Each of the two stores in turn: one contract."""
    if request.param == "memory":
        yield MemoryState()
    else:
        with Snapshot(str(tmp_path / "gate.sqlite")) as snapshot:
            yield snapshot


WORDS = frozenset({"npm", "run", "build", "please"})


def test_a_failure_opens_a_hint_and_a_success_closes_it(state: Snapshot | MemoryState) -> None:
    assert not state.hints(WORDS)
    state.apply(sealed(draft()))
    assert state.hints(WORDS)
    assert not state.hints(WORDS - {"build"})
    state.apply(sealed(draft("ok", NOW + 1), start=2))
    assert not state.hints(WORDS)
    assert [e["t"] for e in state.entries([KEY])[KEY]] == ["fail", "ok"]


def test_a_success_that_happened_before_does_not_clear_whenever_it_arrives(state: Snapshot | MemoryState) -> None:
    state.apply(sealed(draft(), draft("ok", NOW - 1)))
    assert state.hints(WORDS)


def test_a_key_without_words_is_always_a_candidate_and_an_unreadable_input_too(state: Snapshot | MemoryState) -> None:
    state.apply(sealed(draft()))
    assert state.hints(frozenset({"*"}))
    assert not state.hints(frozenset())
    state.apply(sealed(draft(parts=[part("b" * 32, words=[])]), start=2))
    assert state.hints(frozenset())


def test_inputs_of_many_words_get_the_same_answer(state: Snapshot | MemoryState) -> None:
    noise = frozenset(f"{a}{b}q" for a in "abcdefghij" for b in "abcdefghij")
    state.apply(sealed(draft()))
    assert state.hints(noise | WORDS)
    assert not state.hints(noise | {"npm", "run"})


def test_a_chain_blames_its_culprit_and_itself_and_not_the_part_before(state: Snapshot | MemoryState) -> None:
    first, second = part("1" * 32, text="npm ci", effects=[["install", "npm"]]), part("2" * 32)
    state.apply(sealed(draft(parts=[first, second], failed_key="2" * 32)))
    found = state.entries(["1" * 32, "2" * 32, CHAIN])
    assert sorted(found) == ["2" * 32, CHAIN]
    # what ran before the culprit did its work: the install counts as a change
    assert [(c.type, c.subject) for c in state.changes(NOW - 1)] == [("install", "npm")]


def test_a_trivial_part_gets_no_history(state: Snapshot | MemoryState) -> None:
    state.apply(sealed(draft("ok", parts=[part("1" * 32, trivial=True), part("2" * 32)])))
    assert sorted(state.entries(["1" * 32, "2" * 32, CHAIN])) == ["2" * 32, CHAIN]


def test_an_edit_that_the_tool_refused_changed_nothing(state: Snapshot | MemoryState) -> None:
    effects = [["edit", "a.py"]]
    state.apply(sealed(draft(parts=[part(kind="edit", effects=effects)])))
    assert state.changes(0) == []
    state.apply(sealed(draft(parts=[part(kind="sh", effects=effects)]), start=2))
    assert state.touched("edit", "a.py") == NOW


def test_changes_give_way_to_the_paths_asked_for_and_reads_come_last(state: Snapshot | MemoryState) -> None:
    def step(type: str, subject: str, at: int) -> dict[str, Any]:
        return draft("ok", NOW + at, parts=[part(effects=[[type, subject]])])

    state.apply(sealed(step("read", "old.py", 1), step("edit", "b.py", 2), step("read", "c.py", 3), step("read", "d.py", 4)))
    assert [c.subject for c in state.changes(NOW, 2)] == ["d.py", "b.py"]
    assert [c.subject for c in state.changes(NOW, 2, ["old.py"])] == ["b.py", "old.py"]
    assert state.changes(NOW + 4) == []


def test_an_event_offered_twice_counts_once_and_a_gap_is_refused(state: Snapshot | MemoryState) -> None:
    one, two, three = sealed(draft(), draft(at=NOW + 1), draft(at=NOW + 2))
    assert state.apply([one])
    assert state.apply([one])
    assert not state.apply([three])
    assert state.cursor() == {"s1": 1}
    assert len(state.entries([KEY])[KEY]) == 1
    assert state.apply([three], gaps=True)
    assert state.cursor() == {"s1": 3}
    assert state.apply([two])
    assert len(state.entries([KEY])[KEY]) == 2


def test_asks_and_overrides_stand_beside_the_failure(state: Snapshot | MemoryState) -> None:
    def proposed(rule: str, verdict: str) -> dict[str, Any]:
        data = {"key": KEY, "call": "c", "text": "t", "decision": {"verdict": verdict, "rule": rule, "record": "e1"}}
        return {**draft(), "kind": "action.proposed", "data": {**data, "session": {"session": "s", "turn": 4}}}

    state.apply(sealed(draft(), proposed("repeat", "ask"), proposed("override", "allow"), proposed("repeat", "warn")))
    assert [e["t"] for e in state.entries([KEY])[KEY]] == ["fail", "ask", "pass"]
    assert state.entries([KEY])[KEY][1]["turn"] == 4
    assert state.hints(WORDS)


def test_the_snapshot_refuses_to_answer_about_the_past(tmp_path: Path) -> None:
    with Snapshot(str(tmp_path / "g")) as snapshot, pytest.raises(ProjectionError, match="MemoryState"):
        snapshot.entries([KEY], as_of={})


def test_pending_notes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "PENDING_MAX", 20)
    with Snapshot(str(tmp_path / "g")) as snapshot:
        for n in range(30):
            snapshot.pending_put("s", f"c{n}", {"n": n})
        assert snapshot.pending_get("s", "c29") == {"n": 29}
        assert snapshot.pending_get("s", "c9") is None
        assert snapshot.pending_get("s", "c10") == {"n": 10}
        snapshot.pending_put("s", "c29", {"n": 0})
        assert snapshot.pending_get("s", "c29") == {"n": 0}


# --- following a log ---------------------------------------------------------------------------------------------------


def opened(home: str) -> Snapshot:
    return Snapshot(os.path.join(home, "projections", "gate.sqlite"))


def test_it_is_stale_after_an_append_and_not_after_catching_up(home: str) -> None:
    store = LogStore(home)
    with opened(home) as snapshot:
        assert not snapshot.stale(tail.positions(home))
        store.append([draft()], now=NOW)
        assert snapshot.stale(tail.positions(home))
        assert snapshot.catch_up(home)
        assert not snapshot.stale(tail.positions(home))
        assert snapshot.hints(WORDS)


def test_applied_under_the_lock_it_is_not_stale(home: str) -> None:
    with opened(home) as snapshot:
        store = LogStore(home)

        def after(events: list[dict[str, Any]]) -> None:
            assert snapshot.apply(events, positions=tail.positions(home))

        store.append([draft()], now=NOW, after=after)
        assert store.after_error is None
        assert not snapshot.stale(tail.positions(home))
        assert snapshot.cursor() == store.head()


def test_a_catch_up_stops_at_its_limit_and_goes_on_next_time(home: str) -> None:
    LogStore(home).append([draft(at=NOW + n) for n in range(30)], now=NOW, durability="batch")
    for n in range(10):
        LogStore(home).append([draft(at=NOW + 100 + n)], now=NOW)
    with opened(home) as snapshot:
        assert not snapshot.catch_up(home, 35)
        assert snapshot.stale(tail.positions(home))
        while not snapshot.catch_up(home, 3):
            pass
        assert snapshot.cursor() == LogStore(home).head()


def test_segments_are_followed_across_their_ends(home: str) -> None:
    store = LogStore(home, segment_bytes=2000)
    with opened(home) as snapshot:
        for n in range(12):
            store.append([draft(at=NOW + n)], now=NOW)
            if n % 3 == 0:
                snapshot.catch_up(home)
        assert len(os.listdir(os.path.join(home, "log", next(iter(store.head()))))) > 2
        assert snapshot.catch_up(home)
        assert snapshot.cursor() == store.head()


def test_half_a_batch_is_not_taken_in(home: str) -> None:
    """It may yet be cut off, and its numbers given to other events."""
    store = LogStore(home)
    store.append([draft()], now=NOW)
    stream, (segment, size) = next(iter(tail.positions(home).items()))
    path = os.path.join(home, "log", stream, segment)
    store.append([draft(at=NOW + 1), draft(at=NOW + 2)], now=NOW)
    with open(path, "rb") as file:
        second = file.read()[size:].splitlines(keepends=True)[0]
    os.truncate(path, size + len(second))
    with opened(home) as snapshot:
        snapshot.catch_up(home)
        assert snapshot.cursor() == {stream: 1}
        LogStore(home).append([draft("ok", NOW + 3)], now=NOW)  # heals, and numbers go on from 2
        snapshot.catch_up(home)
        assert snapshot.cursor() == LogStore(home).head()
        assert snapshot.entries([KEY])[KEY][-1]["t"] == "ok"


@pytest.mark.parametrize("again", [0, 1, 3])
def test_a_log_that_lost_its_end_makes_the_snapshot_unfit(home: str, again: int) -> None:
    """Also when as much, or more, has been written in its place."""
    store = LogStore(home)
    store.append([draft()], now=NOW)
    stream, (segment, size) = next(iter(tail.positions(home).items()))
    store.append([draft("ok", NOW + 1)], now=NOW)
    with opened(home) as snapshot:
        snapshot.catch_up(home)
        os.truncate(os.path.join(home, "log", stream, segment), size)
        for n in range(again):
            LogStore(home).append([draft(at=NOW + 2 + n)], now=NOW + n)
        if again == 1:  # the same number of events: found as soon as there is one more
            LogStore(home).append([draft(at=NOW + 9)], now=NOW + 9)
        assert snapshot.stale(tail.positions(home))
        with pytest.raises(SnapshotDamaged, match="rebuild"):
            snapshot.catch_up(home)


def test_damage_in_the_middle_is_read_around(home: str) -> None:
    store = LogStore(home)
    for n in range(3):
        store.append([draft(at=NOW + n)], now=NOW + n)
    stream, (segment, _) = next(iter(tail.positions(home).items()))
    path = os.path.join(home, "log", stream, segment)
    lines = Path(path).read_bytes().splitlines(keepends=True)
    Path(path).write_bytes(lines[0] + b"x" * 20 + lines[1][20:] + lines[2])
    with opened(home) as snapshot:
        assert snapshot.catch_up(home)
        assert snapshot.cursor() == {stream: 3}
        assert len(snapshot.entries([KEY])[KEY]) == 2
        assert not snapshot.stale(tail.positions(home))


# --- files that are not a snapshot of ours -------------------------------------------------------------------------------


def test_noise_a_foreign_database_and_another_version_are_refused(tmp_path: Path) -> None:
    noise, foreign, newer = (str(tmp_path / n) for n in ("noise", "foreign", "newer"))
    Path(noise).write_bytes(b"not a database, but long enough to look at " * 50)
    with closing(sqlite3.connect(foreign)) as db, db:
        db.execute("CREATE TABLE other (a)")
    db.close()
    Snapshot(newer).close()
    db = sqlite3.connect(newer)
    db.execute("PRAGMA user_version = 99")
    db.close()
    for path in (noise, foreign, newer):
        with pytest.raises(SnapshotDamaged, match="rebuild it from the log"):
            Snapshot(path)
        discard(path)
        with Snapshot(path) as snapshot:
            assert snapshot.cursor() == {}


def test_a_file_with_its_pages_overwritten_says_so_and_never_answers_wrongly(tmp_path: Path) -> None:
    path = str(tmp_path / "g")
    with Snapshot(path) as snapshot:
        snapshot.apply(sealed(*(draft(at=NOW + n, parts=[part(f"{n:032x}")]) for n in range(50))))
    data = bytearray(Path(path).read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)
    Path(path).write_bytes(data)
    with Snapshot(path) as snapshot, pytest.raises(SnapshotDamaged):
        snapshot.hints(WORDS)


def test_a_long_writer_makes_others_wait_only_so_long(tmp_path: Path) -> None:
    path = str(tmp_path / "g")
    Snapshot(path).close()
    with Snapshot(path) as one, Snapshot(path, busy_ms=20) as other, one.exclusive():
        assert other.cursor() == {}  # reading goes on
        with pytest.raises(SnapshotBusy):
            other.apply(sealed(draft()))
    with Snapshot(path) as again:
        assert again.apply(sealed(draft()))


def test_a_process_that_dies_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    """The journal of the unfinished transaction is rolled back by the next who opens the file."""
    path = str(tmp_path / "g")
    with Snapshot(path) as snapshot:
        snapshot.apply(sealed(draft()))
        before = snapshot.canonical_dump()
    pid = os.fork()
    if not pid:
        dying = Snapshot(path)
        dying._begin()
        dying._db.execute("PRAGMA cache_size = 1")
        dying._db.execute("PRAGMA cache_spill = 1")
        for n in range(2000):
            dying._do_touch("edit", f"f{n}" * 50, n, "s1", n, "s", "e")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.path.getsize(path + "-journal") > 0
    with Snapshot(path) as snapshot:
        assert snapshot.canonical_dump() == before


def test_a_folder_that_cannot_be_written_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(ProjectionError) as caught:
        Snapshot(str(tmp_path / "missing" / "gate.sqlite"))
    assert not isinstance(caught.value, SnapshotDamaged)


def test_discard_takes_the_journals_too(tmp_path: Path) -> None:
    path = tmp_path / "g"
    Snapshot(str(path)).close()
    shutil.copy(path, f"{path}-journal")
    discard(str(path))
    assert list(tmp_path.iterdir()) == []
