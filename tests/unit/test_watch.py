"""`watch`: builds when the log has grown, not more often than it may, whatever the system tells, and sleeps otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.home import init_home
from projectmem_logs.store import LogStore
from projectmem_projections import generations

from projectmem import watch as module
from projectmem.errors import ProjectmemError
from projectmem.watch import Watch, build_everything

NOW = 1_790_000_000_000_000
ACTOR = {"session": "", "agent": "", "harness": "", "model": "", "origin": "observed"}


class Watched:
    """A log, and a watch of it whose builds are counted."""

    def __init__(self, home: Path) -> None:
        self.home, self.said, self.builds = home, [], 0
        init_home(str(home), NOW)
        self.store = LogStore(str(home))
        self.fails = False
        self.watch = Watch(str(home), self._build, tell=self.said.append, quiet_s=0.05, pause_s=0.1, min_bytes=1)
        self.thread = threading.Thread(target=self.watch.run)

    def _build(self) -> str:
        self.builds += 1
        if self.fails:
            raise OSError("no space")
        return "built"

    def write(self) -> None:
        """One event more."""
        self.store.append([{"kind": "session.ended", "at": NOW, "actor": ACTOR, "causes": [], "data": {"reason": "x"}}], now=NOW)

    def until(self, builds: int, seconds: float = 15) -> bool:
        """Wait for so many builds."""
        end = time.monotonic() + seconds
        while self.builds < builds and time.monotonic() < end:
            time.sleep(0.01)
        return self.builds >= builds


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Started; ended at the end."""
    made = Watched(tmp_path / "home")
    made.write()
    made.thread.start()
    yield made
    made.watch.stop()
    made.thread.join(15)
    assert not made.thread.is_alive()


def test_what_was_there_and_what_comes_is_built(watched: Watched) -> None:
    """Once for what was there, once for a burst, and not again while nothing is written."""
    assert watched.until(1)
    for _ in range(20):
        watched.write()
    assert watched.until(2)
    time.sleep(0.6)
    assert watched.builds in (2, 3), "a burst is one build, or two where it straddles a pause"
    before = watched.builds
    time.sleep(0.5)
    assert watched.builds == before


def test_a_wake_without_a_write_builds_nothing_and_a_lost_event_is_found(watched: Watched, monkeypatch: Any) -> None:
    """The system's events are only a reason to look: a false one is harmless, and what came unseen is found with the next."""
    assert watched.until(1)
    time.sleep(0.4)
    for _ in range(5):
        watched.watch.wake()
        time.sleep(0.1)
    assert watched.builds == 1
    monkeypatch.setattr(watched.watch._woken, "set", lambda: None)  # the queue overflows
    watched.write()
    time.sleep(0.4)
    assert watched.builds == 1
    monkeypatch.undo()
    watched.watch.wake()
    assert watched.until(2)


def test_a_build_that_fails_is_told_and_the_next_write_tries_again(watched: Watched) -> None:
    """It does not end the watch, and is not repeated without a reason."""
    assert watched.until(1)
    watched.fails = True
    watched.write()
    assert watched.until(2)
    time.sleep(0.5)
    assert watched.builds == 2
    assert "no space" in watched.said[-1]
    watched.fails = False
    watched.write()
    assert watched.until(3)


def test_at_rest_it_takes_no_time_of_the_processor(tmp_path: Path) -> None:
    """A second asleep costs less than a thousandth of a second."""
    made = Watched(tmp_path / "home")
    made.thread.start()
    time.sleep(0.5)
    begun = time.process_time()
    time.sleep(1.5)
    spent = time.process_time() - begun
    made.watch.stop()
    made.thread.join(15)
    assert spent < 0.003
    assert made.builds == 0, "an empty log is not worth a build"


def test_a_folder_that_cannot_be_watched_is_said(tmp_path: Path, monkeypatch: Any) -> None:
    """With what to do about it."""
    watched = Watched(tmp_path / "home")
    import watchdog.observers

    class Refusing(watchdog.observers.Observer):  # type: ignore[misc, valid-type]
        def start(self) -> None:
            raise OSError(28, "no space left on device")

    monkeypatch.setattr(watchdog.observers, "Observer", Refusing)
    with pytest.raises(ProjectmemError, match="max_user_watches"):
        watched.watch._observer()


def test_a_real_build_publishes_a_generation(tmp_path: Path) -> None:
    """Summaries and recall are there afterwards, and the bounds are what the page says."""
    home = tmp_path / "home"
    init_home(str(home), NOW)
    LogStore(str(home)).append(
        [{"kind": "note.recorded", "at": NOW, "actor": ACTOR, "causes": [], "data": {"text": "a note", "tags": []}}], now=NOW
    )
    assert "built summaries and recall" in build_everything(str(home))
    with generations.open_current(str(home)) as summaries:
        assert summaries.cursor()
    assert (module.PAUSE_S, module.SHARE) == (60.0, 10)


def test_beside_other_work_projections_stay_warm_and_nothing_is_said(tmp_path: Path, capsys: Any) -> None:
    """What is appended meanwhile is in a generation without anybody having asked; the thread ends with the block."""
    home = tmp_path / "home"
    init_home(str(home), NOW)
    store = LogStore(str(home))
    note = {"kind": "note.recorded", "at": NOW, "actor": ACTOR, "causes": [], "data": {"text": "a note", "tags": []}}
    pointer = home / "projections" / "duckdb" / "CURRENT"
    before = threading.active_count()
    with module.warming(str(home), quiet_s=0.05, pause_s=0.1, min_bytes=1):
        store.append([note], now=NOW)
        end = time.monotonic() + 60
        while not pointer.exists() and time.monotonic() < end:
            time.sleep(0.05)
    assert pointer.exists()
    assert threading.active_count() == before
    assert capsys.readouterr() == ("", "")


def test_a_build_that_was_begun_is_waited_for(tmp_path: Path, monkeypatch: Any) -> None:
    """A process that ends while DuckDB works in a thread is aborted: the block goes on until the build is done."""
    (tmp_path / "log").mkdir()
    begun, ended = threading.Event(), threading.Event()

    def build(_: str) -> str:
        begun.set()
        time.sleep(0.3)
        ended.set()
        return ""

    monkeypatch.setattr(module, "build_everything", build)
    with module.warming(str(tmp_path), quiet_s=0.01, min_bytes=0):
        assert begun.wait(60)
    assert ended.is_set()


def test_where_nothing_can_be_watched_the_other_work_goes_on(tmp_path: Path, monkeypatch: Any) -> None:
    import watchdog.observers

    class Refusing(watchdog.observers.Observer):  # type: ignore[misc, valid-type]
        def start(self) -> None:
            raise OSError(28, "no space left on device")

    monkeypatch.setattr(watchdog.observers, "Observer", Refusing)
    (tmp_path / "log").mkdir()
    done = []
    with module.warming(str(tmp_path)):
        done.append(1)
    assert done == [1]
