"""Lets summaries and recall catch up while nobody asks: off by default, bounded, and asleep while nothing is written.

Watches the log's own folder and nothing else. What the system tells is only ever a reason to look: after each wake the ends of
the log are compared with what was built, so that events that the system lost (a full queue) or told twice change nothing. A build
reads the whole log, so there is at most one in PAUSE_S seconds, and never more than a tenth of the time is spent on them.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from projectmem_projections import tail

from projectmem.errors import ProjectmemError

QUIET_S = 2.0  # a burst of writes is one reason
PAUSE_S = 60.0
SHARE = 10  # times as long as a build took, nothing is built
MIN_BYTES = 64 << 10  # fewer are folded by whoever reads, in milliseconds

Positions = dict[str, tuple[str, int]]


class Watch:
    """Watches the log in `home`. `build` brings what is derived from it up, and returns what there is to tell."""

    def __init__(
        self,
        home: str,
        build: Callable[[], str],
        *,
        tell: Callable[[str], None],
        quiet_s: float = QUIET_S,
        pause_s: float = PAUSE_S,
        min_bytes: int = MIN_BYTES,
    ) -> None:
        self.home, self.build, self.tell = home, build, tell
        self.quiet_s, self.pause_s, self.min_bytes = quiet_s, pause_s, min_bytes
        self.built: Positions = {}
        self._woken = threading.Event()
        self._stopped = False

    def run(self) -> None:
        """Until `stop`. Raises ProjectmemError where the system does not let the folder be watched."""
        observer = self._observer()
        try:
            self._woken.set()  # what happened before we looked
            while True:
                self._woken.wait()
                self._woken.clear()
                if self._stopped:
                    return
                self._settle()
        finally:
            observer.stop()
            observer.join()

    def stop(self) -> None:
        """End `run`, once a build at work is done."""
        self._stopped = True
        self._woken.set()

    def wake(self, *_: object) -> None:
        """Something was written, or may have been."""
        self._woken.set()

    def _observer(self) -> Any:
        from watchdog.events import FileSystemEventHandler
        from watchdog.observers import Observer

        # A folder that is made while watchdog looks through its parent is found twice, which it warns of; nothing is lost by it.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        handler = FileSystemEventHandler()
        for name in ("on_created", "on_modified", "on_deleted", "on_moved"):
            setattr(handler, name, self.wake)
        observer = Observer()
        try:
            observer.schedule(handler, str(Path(self.home, "log")), recursive=True)
            observer.start()
        except OSError as exc:
            raise ProjectmemError(
                f"{self.home}/log cannot be watched ({exc.strerror or exc}): on Linux raise fs.inotify.max_user_watches or "
                "max_user_instances. Nothing depends on `watch`: summaries catch up when they are read"
            ) from None
        return observer

    def _settle(self) -> None:
        """Build until what was built is what the log holds, as far as that is worth a build."""
        while not self._stopped:
            if self._wait(self.quiet_s) and self._behind() >= self.min_bytes:
                continue  # still being written
            ends = tail.positions(self.home)
            if self._behind() < self.min_bytes:
                return
            begun = time.monotonic()
            try:
                self.tell(self.build())
            except Exception as exc:  # the next write tries again; readers build for themselves meanwhile
                self.tell(f"could not build: {type(exc).__name__}: {exc}")
            self.built = ends
            pause = max(self.pause_s, SHARE * (time.monotonic() - begun))
            until = time.monotonic() + pause
            while (left := until - time.monotonic()) > 0 and not self._stopped:
                self._wait(left)

    def _behind(self) -> int:
        """Bytes of the log that were not built from. The length of a stream that was cut counts whole."""
        now = tail.positions(self.home)
        cut = any(stream not in now or now[stream] < where for stream, where in self.built.items())
        return self.min_bytes if cut else tail.lag(self.home, self.built)

    def _wait(self, seconds: float) -> bool:
        """Whether something was written within so many seconds."""
        woken = self._woken.wait(seconds)
        if not self._stopped:
            self._woken.clear()
            if self._stopped:  # in between: `run` would wait for ever
                self._woken.set()
        return woken


@contextmanager
def warming(home: str, **bounds: Any) -> Iterator[None]:
    """Keep what is derived from the log in `home` warm beside other work, in a thread that says nothing and ends before the block
    does: a build that was begun is waited for.

    Where the folder cannot be watched nothing is built ahead: whoever reads does it. `bounds` as of `Watch`.
    """
    watching = Watch(home, lambda: build_everything(home), tell=lambda _: None, **bounds)

    def run() -> None:
        try:
            watching.run()
        except ProjectmemError:
            pass

    thread = threading.Thread(target=run, daemon=True)  # a builder that is killed leaves what was there in use
    thread.start()
    try:
        yield
    finally:
        watching.stop()
        thread.join()  # a process that ends while DuckDB builds in a thread is aborted by C++


def build_everything(home: str) -> str:
    """A new generation of the summaries and of recall. Raises what they raise."""
    from projectmem_projections import generations, minilm, recollection, vectors

    begun = time.monotonic()
    path = generations.build(home)
    notes = recollection.refresh(home, None if vectors.available() else minilm.chosen(home)[0])
    done = "summaries and recall" if path else "recall (somebody else builds the summaries)"
    return "; ".join([f"built {done} in {time.monotonic() - begun:.1f} s", *notes])
