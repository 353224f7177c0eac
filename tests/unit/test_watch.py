"""`watch`: builds when the log has grown, not more often than it may, whatever the system tells, and sleeps otherwise."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from projectmem_logs.home import init_home
from projectmem_logs.store import LogStore
from projectmem_projections import generations

from projectmem import watch as module
from projectmem.errors import ProjectmemError
from projectmem.watch import Watch, build_everything
from tests.patience import PATIENCE

NOW = 1_790_000_000_000_000
ACTOR = {"session": "", "agent": "", "harness": "", "model": "", "origin": "observed"}


class Log:
    """A log that grows, and builds that are counted."""

    def __init__(self, home: Path) -> None:
        self.home, self.said, self.builds = home, list[str](), 0
        init_home(str(home), NOW)
        self.store = LogStore(str(home))
        self.fails = False

    def build(self) -> str:
        """One more."""
        self.builds += 1
        if self.fails:
            raise OSError("no space")
        return "built"

    def write(self) -> None:
        """One event more."""
        self.store.append([{"kind": "session.ended", "at": NOW, "actor": ACTOR, "causes": [], "data": {"reason": "x"}}], now=NOW)


class Played(Watch):
    """A watch whose time is played: each wait is the next of `script` and lasts as long as it may, or half as long when woken.
    A number is that many events and their wake; "lost" is an event that the system told nobody of, "false" a wake for nothing."""

    def __init__(self, log: Log, monkeypatch: pytest.MonkeyPatch, **bounds: Any) -> None:
        super().__init__(str(log.home), self._build, tell=log.said.append, **{**BOUNDS, **bounds})
        self.log, self.clock, self.script, self.built_at = log, 0.0, list[Any](), list[float]()
        self.takes = 0.0
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.clock))

    def _build(self) -> str:
        self.built_at.append(self.clock)
        self.clock += self.takes
        return self.log.build()

    def _wait(self, seconds: float) -> bool:
        came = self.script.pop(0) if self.script else 0
        for _ in range(1 if came == "lost" else 0 if came == "false" else came):
            self.log.write()
        woken = came not in (0, "lost")
        self.clock += seconds / 2 if woken else seconds
        return woken

    def play(self, *script: Any) -> int:
        """How many builds it makes of a wake and what comes then."""
        before, self.script = self.log.builds, list(script)
        self._settle()
        assert not self.script
        return self.log.builds - before


BOUNDS: dict[str, Any] = {"quiet_s": 2.0, "pause_s": 60.0, "min_bytes": 1}


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """With one event."""
    made = Log(tmp_path / "home")
    made.write()
    return made


@pytest.fixture
def played(log: Log, monkeypatch: pytest.MonkeyPatch) -> Played:
    """A watch of it."""
    return Played(log, monkeypatch)


def test_a_burst_is_one_build_and_a_rest_none(played: Played) -> None:
    """What was there is built once it is quiet, what comes while it is quiet again once more, and nothing is built of nothing."""
    assert played.play() == 1
    assert played.play() == 0
    assert played.play(3, 5, 1) == 1
    assert played.play() == 0


def test_what_comes_during_the_pause_is_one_build_after_it(played: Played) -> None:
    """Not more often than every `pause_s`, however much is written."""
    assert played.play(0, 2, 0, 1) == 2
    first, second = played.built_at
    assert second - first >= played.pause_s


def test_a_build_that_takes_long_is_followed_by_a_longer_pause(played: Played) -> None:
    """At most a tenth of the time is spent on builds."""
    played.takes = 30.0
    assert played.play(0, 1) == 2
    first, second = played.built_at
    assert second - first >= 30.0 + module.SHARE * 30.0


def test_a_wake_without_a_write_builds_nothing_and_a_lost_event_is_found(played: Played) -> None:
    """The system's events are only a reason to look: a false one is harmless, and what came unseen is found with the next."""
    assert played.play() == 1
    assert played.play("false") == 0
    assert played.play("lost") == 1
    played.log.write()  # the queue overflowed while it slept
    assert played.play() == 1


def test_little_is_left_to_whoever_reads(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer bytes than `min_bytes` are no reason."""
    played = Played(log, monkeypatch, min_bytes=1 << 20)
    assert played.play(3) == 0


def test_a_build_that_fails_is_told_and_the_next_write_tries_again(played: Played) -> None:
    """It does not end the watch, and is not repeated without a reason."""
    played.log.fails = True
    assert played.play() == 1
    assert "no space" in played.log.said[-1]
    assert played.play("false") == 0
    played.log.fails = False
    assert played.play(1) == 1


class Watched(Log):
    """A log, and a watch of it in a thread of its own."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.watch = Watch(str(home), self.build, tell=self.said.append, quiet_s=0.05, pause_s=0.1, min_bytes=1)
        self.thread = threading.Thread(target=self.watch.run)

    def until(self, builds: int) -> bool:
        """Wait for so many builds."""
        end = time.monotonic() + PATIENCE
        while self.builds < builds and time.monotonic() < end:
            time.sleep(0.01)
        return self.builds >= builds


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Ended at the end."""
    made = Watched(tmp_path / "home")
    yield made
    made.watch.stop()
    made.thread.join(PATIENCE)
    assert not made.thread.is_alive()


def test_what_was_there_and_what_comes_is_built(watched: Watched) -> None:
    """The system really tells of writes."""
    watched.write()
    watched.thread.start()
    assert watched.until(1)
    for _ in range(3):
        before = watched.builds
        watched.write()
        assert watched.until(before + 1)


def test_what_watchdog_warns_of_while_folders_are_made_is_told_to_nobody(watched: Watched) -> None:
    """A folder that is found twice is no fault, and a warning would end the thread that watches where warnings are errors."""
    watched.write()
    watched.thread.start()
    assert watched.until(1)
    warnings.warn("Callback with id '7' already exists for watch x. It will be Overwritten.", RuntimeWarning, stacklevel=1)


@pytest.mark.skipif(sys.platform != "linux", reason="counts wake-ups in /proc")
def test_at_rest_no_thread_of_it_wakes(watched: Watched) -> None:
    """Once what was begun is done, none of its threads runs even once within a second; an empty log is not worth a build."""
    others = {thread.native_id for thread in threading.enumerate()}

    def wakes() -> dict[Any, str]:
        mine = [id for thread in threading.enumerate() if (id := thread.native_id) and id not in others]
        status = {id: Path(f"/proc/self/task/{id}/status").read_text() for id in mine}
        return {id: text[text.index("voluntary_ctxt_switches") :] for id, text in status.items()}

    watched.thread.start()
    end = time.monotonic() + PATIENCE
    while True:
        before = wakes()
        time.sleep(1)
        if len(before) > 1 and wakes() == before:
            break
        assert time.monotonic() < end, "it never sleeps"
    assert watched.builds == 0


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
        end = time.monotonic() + PATIENCE
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
        assert begun.wait(PATIENCE)
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
