"""Many processes at one log and one snapshot, as parallel tool calls are: nothing is lost, and who only asks waits for nobody."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_projections import generations
from projectmem_projections.errors import SnapshotBusy
from projectmem_projections.memory import MemoryState
from projectmem_projections.snapshot import Snapshot
from projectmem_projections.tail import lag

NOW = 1_700_000_000_000_000
WRITERS, EVENTS = 3, 25

WRITER = """
import os, sys
from projectmem_logs.store import LogStore
from projectmem_projections import tail
from projectmem_projections.snapshot import Snapshot
home, me, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
path = os.path.join(home, "projections", "gate.sqlite")
for n in range(count):
    key = f"{n % 5:032x}"
    part = {"key": key, "family": "f", "text": "t", "words": ["word"], "effects": [["edit", f"{me}-{n}"]]}
    outcome = "failed" if (n + me) % 3 else "ok"
    data = {"call": f"{me}-{n}", "key": key, "failed_key": key, "outcome": outcome, "parts": [part], "turn": n}
    actor = {"session": f"s{me}", "agent": "", "harness": "h", "model": "m", "origin": "observed"}
    draft = {"kind": "action.finished", "at": 10**15 + n, "actor": actor, "causes": [], "data": data}
    def after(events):
        with Snapshot(path, busy_ms=300_000) as snapshot:
            stream = events[0]["stream"]
            if not snapshot.apply(events, positions={stream: tail.positions(home)[stream]}):
                snapshot.catch_up(home)
    store = LogStore(home, wait_ms=300_000)
    store.append([draft], now=10**15 + n, after=after)
    assert store.after_error is None, store.after_error
"""

READER = """
import os, sys
from projectmem_projections.snapshot import Snapshot
path, done = os.path.join(sys.argv[1], "projections", "gate.sqlite"), 0
while not os.path.exists(sys.argv[2]) or done < 20:
    with Snapshot(path, busy_ms=300_000) as snapshot:
        snapshot.hints(frozenset({"word"}))
        snapshot.pending_put("s", "c", {"n": done})
    done += 1
"""


def test_parallel_writers_and_readers_leave_the_state_of_a_rebuild(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    init_home(home, NOW)
    Snapshot(os.path.join(home, "projections", "gate.sqlite")).close()
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, home, str(n), str(EVENTS)], stderr=subprocess.PIPE)
        for n in range(WRITERS)
    ]
    written = tmp_path / "written"
    reader = subprocess.Popen([sys.executable, "-c", READER, home, str(written)], stderr=subprocess.PIPE)
    for process in writers:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    written.touch()
    _, errors = reader.communicate()
    assert reader.returncode == 0, errors.decode()
    memory = MemoryState()
    memory.apply(read_events(home))
    with Snapshot(os.path.join(home, "projections", "gate.sqlite")) as snapshot:
        assert snapshot.cursor() == LogStore(home).head()
        assert sum(snapshot.cursor().values()) == WRITERS * EVENTS
        assert snapshot.canonical_dump() == memory.canonical_dump()


def test_a_question_waits_for_no_writer_that_has_not_committed(tmp_path: Path) -> None:
    """However long another process is at its transaction: readers are told what was true before it."""
    path = str(tmp_path / "gate.sqlite")
    with Snapshot(path) as writer, Snapshot(path, busy_ms=0) as reader:
        writer.pending_put("s", "c", {"n": 1})
        before = reader.hints(frozenset({"word"}))
        with writer.exclusive():
            assert reader.pending_get("s", "c") == {"n": 1}
            assert reader.hints(frozenset({"word"})) == before
            with pytest.raises(SnapshotBusy):
                reader.pending_put("s", "c", {"n": 2})
        assert reader.pending_get("s", "c") == {"n": 1}


def test_a_writer_that_is_killed_leaves_a_snapshot_that_catches_up(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    init_home(home, NOW)
    path = os.path.join(home, "projections", "gate.sqlite")
    for round in range(4):
        process = subprocess.Popen([sys.executable, "-c", WRITER, home, str(round), "100000"], stderr=subprocess.DEVNULL)
        begun = lag(home, {})
        while not os.path.exists(path) or lag(home, {}) == begun:  # it is at work
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.05 * round)
        process.kill()
        process.wait()
        memory = MemoryState()
        memory.apply(read_events(home))
        with Snapshot(path) as snapshot:
            snapshot.catch_up(home)
            assert snapshot.canonical_dump() == memory.canonical_dump()
    with generations.open_current(home) as summaries:
        assert summaries.cursor() == LogStore(home).head()
