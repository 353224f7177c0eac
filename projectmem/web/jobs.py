"""Work that may take longer than a reader waits: begun once, waited for a little, and found again by whoever asks next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

AT_ONCE = 2  # that compute; each may take much memory
WAITING_MAX = 12
FORGOTTEN_S = 300.0  # how long a result waits to be fetched


class BusyError(Exception):
    """Too much is being worked out already."""


class Pending:
    """Not done yet.  seconds  since it was begun"""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = int(seconds)


class _Job:
    def __init__(self) -> None:
        self.begun, self.ended = time.monotonic(), 0.0
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None


class Jobs:
    """The work of one process. Threads cannot be ended: they are daemons, and no more than AT_ONCE compute."""

    def __init__(self) -> None:
        self._jobs: dict[Hashable, _Job] = {}
        self._lock, self._turns = threading.Lock(), threading.Semaphore(AT_ONCE)

    def ask(self, name: Hashable, work: Callable[[], Any], wait_s: float, keep_s: float = 0.0) -> Any:
        """What `work` gives, if it does within `wait_s` seconds; else Pending, and who asks for the same name later gets it.

        keep_s  so long a result is good for others too; 0: for whoever waited for it
        Raises what the work raised, once; BusyError where too much waits.
        """
        job = self._begun(name, work, keep_s)
        if not job.done.wait(wait_s):
            return Pending(time.monotonic() - job.begun)
        with self._lock:
            if (job.error is not None or not keep_s) and self._jobs.get(name) is job:
                del self._jobs[name]
        if job.error is not None:
            raise job.error
        return job.value

    def begin(self, name: Hashable, work: Callable[[], Any]) -> None:
        """Have it worked out while something else is waited for, unless too much waits already."""
        try:
            self._begun(name, work, 0.0)
        except BusyError:
            pass

    def _begun(self, name: Hashable, work: Callable[[], Any], keep_s: float) -> _Job:
        with self._lock:
            now = time.monotonic()
            for other, job in list(self._jobs.items()):
                if job.ended and now - job.ended > max(FORGOTTEN_S, keep_s if other == name else 0):
                    del self._jobs[other]
            found = self._jobs.get(name)
            if found is not None and not (keep_s and found.ended and now - found.ended > keep_s):
                return found
            if sum(not job.ended for job in self._jobs.values()) >= WAITING_MAX:
                raise BusyError
            made = self._jobs[name] = _Job()
        threading.Thread(target=self._run, args=(made, work), daemon=True).start()
        return made

    def _run(self, job: _Job, work: Callable[[], Any]) -> None:
        with self._turns:
            try:
                job.value = work()
            except Exception as exc:
                job.error = exc
            finally:
                job.ended = time.monotonic()
                job.done.set()

    def drop(self, name: Hashable) -> None:
        """Forget a result that is kept, so that it is worked out anew; not one that is just being worked out."""
        with self._lock:
            job = self._jobs.get(name)
            if job is not None and job.ended:
                del self._jobs[name]
