"""Drafts made by several processes: the same, in the same order, as one would make them, for imports that are worth it.

What a call is and what became of it hardly depends on other calls; where it does (a file was moved before it, a failure of it is
on record), the draft is made again here. Anything that goes wrong with a process ends in one process doing all.
"""

from __future__ import annotations

import marshal
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty, Queue, SimpleQueue
from threading import Thread
from typing import Any

from projectmem.importers.drafting import Drafts
from projectmem.importers.made import Made, Row
from projectmem.importers.worker import HELLO, framed, read_frame
from projectmem.place import Place

MOST = 4  # reading, sealing and folding are one process's work: it keeps no more than these busy
JOB_CALLS, JOB_BYTES = 64, 1 << 20
AHEAD = 8  # jobs of each process that are not answered yet: they have work while a batch is written
AHEAD_BYTES = 16 << 20  # of calls that are not answered yet, of all processes together
PATIENCE_S = 60  # for an answer: a job takes a tenth of a second
CLOSING_S = 5
CODE = "import sys; sys.path[:] = {path!r}; from projectmem.importers.worker import main; main()"

Given = tuple[Place, list[str], bytes]  # where, what was moved before it as far as is known, the call


def processors() -> int:
    """How many this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def started(drafts: Drafts, count: int | None = None) -> Workers | None:
    """Processes for an import, None where there is one processor, or none can be started."""
    count = min(MOST, processors()) if count is None else count
    if count < 2 or not sys.executable or getattr(sys, "frozen", False):
        return None
    found = Workers(drafts)
    try:
        for _ in range(count):
            found.add()
    except (OSError, ValueError, RuntimeError):  # the last: no thread is to be had
        found.close()
        return None
    return found


def alone(drafts: Drafts, place: Place, call: dict[str, Any]) -> Made:
    """A call drafted here, which later ones are compared with."""
    made = Made(drafts.make(place, call))
    drafts.earlier.learn(made)
    return made


class Workers:
    """Processes, and the calls that they have not answered."""

    def __init__(self, drafts: Drafts) -> None:
        self.drafts = drafts
        self.all: list[tuple[subprocess.Popen[bytes], Queue[Any]]] = []
        self.jobs: list[SimpleQueue[bytes]] = []
        self.writers: list[Thread] = []
        self.filling: list[Given] = []
        self.size = self.sent = self.ahead = 0
        self.begun = False
        self.waiting: deque[tuple[int, list[Given], int]] = deque()  # which process, the job, its bytes

    def add(self) -> None:
        """Start one more. Raises OSError where that is not possible."""
        words = [sys.executable, "-c", CODE.format(path=sys.path)]
        hidden = getattr(subprocess, "CREATE_NO_WINDOW", 0)
        given, quiet = subprocess.PIPE, subprocess.DEVNULL
        process = subprocess.Popen(words, stdin=given, stdout=given, stderr=quiet, creationflags=hidden)
        answers: Queue[Any] = Queue()
        jobs: SimpleQueue[bytes] = SimpleQueue()
        self.all.append((process, answers))
        self.jobs.append(jobs)
        self.writers.append(_thread(_give, process.stdin, jobs))
        _thread(_answers, process.stdout, answers)

    def give(self, place: Place, call: dict[str, Any]) -> Iterator[Made]:
        """Take in one call; the drafts of earlier ones that are ready by now, in order. While the processes are being started,
        and once they were given up, its own."""
        if not self.begun and not self._begin():
            yield alone(self.drafts, place, call)
            return
        raw = marshal.dumps(call)
        self.filling.append((place, self.drafts.earlier.moves(call["at"]), raw))
        self.size += len(raw)
        if _may_move(call, raw):
            yield from self.rest()  # each draft that was given out by then would have to be made again
        elif len(self.filling) >= JOB_CALLS or self.size >= JOB_BYTES:
            yield from self._send()

    def rest(self) -> Iterator[Made]:
        """The drafts of all that was given."""
        yield from self._send()
        while self.waiting:
            yield from self._collect()

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for process, _ in self.all:
            process.kill()
        for jobs in self.jobs:
            jobs.put(b"")
        for writer in self.writers:
            writer.join(CLOSING_S)  # nobody reads any more what it writes
        for process, _ in self.all:
            process.wait()
            for file in (process.stdin, process.stdout):
                try:
                    if file is not None:
                        file.close()
                except OSError:
                    pass  # what was still to be written is of no use
        self.all, self.jobs, self.writers = [], [], []

    def _begin(self) -> bool:
        """Whether all processes have said that they are there."""
        if self.all and not any(answers.empty() for _, answers in self.all):
            if all(answers.get() == HELLO for _, answers in self.all):
                self.begun = True
            else:
                self.close()
        return self.begun

    def _send(self) -> Iterator[Made]:
        job, size = self.filling, self.size
        self.filling, self.size = [], 0
        while self.waiting and (len(self.waiting) >= AHEAD * max(1, len(self.all)) or self.ahead + size > AHEAD_BYTES):
            yield from self._collect()
        if not job:
            return
        number = self.sent % len(self.all) if self.all else 0
        self.sent += 1
        self.waiting.append((number, job, size))
        self.ahead += size
        if self.all:
            self.jobs[number].put(framed([(_place(place), moved, raw) for place, moved, raw in job]))

    def _collect(self) -> Iterator[Made]:
        """The drafts of the oldest job."""
        number, job, size = self.waiting.popleft()
        self.ahead -= size
        rows = self._answer(number) if self.all else None
        if rows is None or len(rows) != len(job):
            self.close()
            rows = [None] * len(job)
        for (place, moved, raw), row in zip(job, rows, strict=True):
            yield self._checked(place, moved, row, raw)

    def _checked(self, place: Place, moved: list[str], row: Row | None, raw: bytes) -> Made:
        """What a row says, as if it had been made here: anew (from `raw`, the call as marshal has it) where what other calls said
        makes a difference."""
        earlier = self.drafts.earlier
        if row is not None and earlier.moves(row[0]) == moved and not (row[7] and earlier.failing(row[7])):
            made = Made.of(row)
            earlier.learn(made)
            return made
        return alone(self.drafts, place, marshal.loads(raw))  # noqa: S302 - written by this very process

    def _answer(self, number: int) -> Any:
        process, answers = self.all[number]
        for _ in range(PATIENCE_S):
            try:
                return answers.get(timeout=1)  # without one, Ctrl-C would not get through everywhere
            except Empty:
                if process.poll() is not None and answers.empty():
                    return None
        return None


def _may_move(call: dict[str, Any], raw: bytes) -> bool:
    """Whether it looks like a `git mv` (gate/moves.py), which changes what the calls behind it are."""
    return b"git" in raw and b"mv" in raw and re.search(r"\bgit\b.*\bmv\b", repr(call["input"]), re.DOTALL) is not None


def _place(place: Place) -> tuple[str, ...]:
    return place.root, place.home, place.worktree, place.git_dir, place.common_dir


def _thread(target: Callable[..., None], *given: Any) -> Thread:
    thread = Thread(target=target, args=given, daemon=True, name="projectmem import")
    thread.start()
    return thread


def _give(pipe: Any, jobs: SimpleQueue[bytes]) -> None:
    """Hand a process its jobs as it takes them, so that who has more for it need not wait; b"" is the last."""
    try:
        while job := jobs.get():
            pipe.write(job)
            pipe.flush()
    except (OSError, ValueError):
        pass  # it is gone, which shows where its answers are read


def _answers(pipe: Any, answers: Queue[Any]) -> None:
    """Read what a process says as it says it, so that neither waits for the other to read; at its end put None."""
    try:
        while (found := read_frame(pipe)) is not None:
            answers.put(found)
    except (OSError, ValueError, EOFError, TypeError, MemoryError):
        pass
    answers.put(None)
