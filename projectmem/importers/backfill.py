"""Records what readers of other tools' files found: once each, with origin `import`, in batches, so that a run may be stopped.

A run that was cut short goes on where it was: what is in the log is known by the call's id, and by a keyed mark where it was
erased from it. Memory stays bounded: a batch of calls, the ids that are known, and what a later call needs of earlier ones.
"""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from projectmem_projections.errors import ProjectionError

from projectmem import place as places
from projectmem.hook.state import open_state
from projectmem.importers import made, workers
from projectmem.importers.appending import append, bring_in, spooled
from projectmem.importers.drafting import Drafts
from projectmem.importers.earlier import Earlier
from projectmem.importers.made import Made
from projectmem.importers.reading import Call, Counts, unfit
from projectmem.place import Place

Reader = Callable[[Path, Counts], Iterator[Call]]
Sources = Sequence[tuple[Path, Reader]]
BATCH_EVENTS = 1_000  # the log is locked while they are written and folded: a tenth of a second, and twice that on a busy machine
ALONE = 1_000  # calls that are recorded before other processes are asked to help: half a second's work, as starting them is
HELPED_BYTES = 4 << 20  # of files that hold a call that is new: about as many are in them, and help is asked for at once
BATCH_CHARS = 4 << 20  # of inputs: what is derived from one is a few times as long, and a batch of the log ends at 32 MiB
SHAPES = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError, sqlite3.Error, OSError)


def backfill(
    place: Place,
    *,
    now: int,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    sources: Sources | None = None,
) -> Counts:
    """Record the calls of earlier sessions that the log does not hold yet. Idempotent: a call is known by its id.

    sources   (file, reader) of the transcripts (importers/sources.py), by default Claude Code's
    progress  is given the sources and passes them on, as they are or with readers that tell how far they are

    Raises LogError where the log cannot be written. What cannot be read is counted, named and passed over.
    """
    if sources is None:
        from projectmem.importers import claude_code

        sources = [(path, claude_code.read_calls) for path in claude_code.session_files(place)]
    if not sources:
        return Counts()
    bring_in(place, now)
    try:
        state = open_state(place)
    except ProjectionError:  # busy, or not to be written: what is read here is enough but for a call begun before it
        return _Backfill(place, Earlier(), now, sources).run(progress(sources))
    try:
        return _Backfill(place, Earlier(state), now, sources).run(progress(sources))
    finally:
        state.close()


class _Backfill:
    """One run: what is known, what was read, and the batch that is not written yet."""

    def __init__(self, place: Place, earlier: Earlier, now: int, sources: Sources) -> None:
        self.place, self.now, self.drafts_of = place, now, Drafts(earlier)
        self.workers: workers.Workers | None = None
        self.asked = False  # for workers
        self.sizes = {path: _size(path) for path, _ in sources}
        self.left = sum(self.sizes.values())  # bytes of the files that were not read to their end
        self.counts, self.owner, self.erased = Counts(), _Owner(place), Erased(place)
        self.known, self.observed = _recorded(place)
        self.sessions: set[str] = set()
        self.batch: list[Made] = []
        self.chars = 0

    def run(self, sources: Iterable[tuple[Path, Reader]]) -> Counts:
        usual = gc.get_threshold()
        gc.set_threshold(20_000, 50)  # what an import makes has no cycles and is soon gone
        try:
            self.read(sources)
            if self.workers is not None:
                for one in self.workers.rest():
                    self.keep(one)
        finally:
            gc.set_threshold(*usual)
            if self.workers is not None:
                self.workers.close()
        self.write()
        self.counts.sessions = len(self.sessions)
        return self.counts

    def read(self, sources: Iterable[tuple[Path, Reader]]) -> None:
        """Take in what the sources tell."""
        for path, reader in sources:
            before = self.counts.damaged
            belongs = False
            for call in shaped(reader, path, self.counts):
                belongs = self.take(call) or belongs
            self.left -= self.sizes.get(path, 0)
            self.counts.files += belongs
            if self.counts.damaged > before:
                self.counts.unread.setdefault(str(path), "")

    def take(self, call: Call) -> bool:
        """Record one call if it is to be; whether it belongs to this repository."""
        counts, where = self.counts, self.owner.of(call["cwd"])
        if where is None:
            counts.elsewhere += 1
            return False
        counts.calls += 1
        self.sessions.add(call["session"])
        if call["at"] is None:
            counts.unfinished += 1
        elif call["call"] in self.known or call["call"] in self.erased or self.hooked(call):
            counts.known += 1
        else:
            self.known.add(call["call"])
            counts.recorded += 1
            if not self.asked and (counts.recorded >= ALONE or self.left >= HELPED_BYTES):
                self.asked, self.workers = True, workers.started(self.drafts_of)
            if self.workers is None:
                self.keep(workers.alone(self.drafts_of, where, call))
            else:
                for one in self.workers.give(where, call):
                    self.keep(one)
        return True

    def keep(self, one: Made) -> None:
        """Add to the batch, and write it when it is full."""
        self.counts.failed += one.failed
        self.batch.append(one)
        self.chars += one.chars
        if len(self.batch) >= BATCH_EVENTS or self.chars >= BATCH_CHARS:
            self.write()

    def hooked(self, call: Call) -> bool:
        """Whether the hook has seen the call's session under ids of its own."""
        return bool(call.get("unnamed")) and call["session"] in self.observed

    def write(self) -> None:
        """Append the batch."""
        if self.batch:
            encoded = made.encoded(self.batch, self.now)
            if encoded is None:
                append(self.place, made.drafts(self.batch), self.now)
            else:
                append(self.place, [], self.now, encoded=encoded, folded=[one.folded for one in self.batch])
        self.batch, self.chars = [], 0


def shaped(reader: Reader, path: Path, counts: Counts) -> Iterator[Call]:
    """The calls of one file that a log can hold, up to where its shape is another than the reader knows."""
    try:
        for call in reader(path, counts):
            if (why := unfit(call)) is None:
                yield call
            else:
                counts.bad(path, why)
    except SHAPES as exc:
        counts.bad(path, exc if isinstance(exc, OSError) else f"of an unknown shape: {type(exc).__name__}")


def _recorded(place: Place) -> tuple[set[str], set[str]]:
    """(ids of all tool calls on record, sessions that the hook recorded calls of). A resumed session repeats old lines."""
    from projectmem_logs.reader import read_events

    calls: set[str] = set()
    observed: set[str] = set()
    for event in chain(spooled(place.home), read_events(place.home)):
        if event.get("kind") != "action.finished":
            continue
        if call := (event.get("data") or {}).get("call"):
            calls.add(str(call))
        actor = event.get("actor") or {}
        if actor.get("origin") == "observed":
            observed.add(str(actor.get("session")))
    return calls, observed


class Erased:
    """The calls that were in the log and were erased from it: they stay out. Only keyed hashes of their ids are kept."""

    def __init__(self, place: Place) -> None:
        from projectmem.forget import erased_calls

        self.home, self.marks = place.home, erased_calls(place.home)

    def __contains__(self, call: str) -> bool:
        if not self.marks:
            return False
        from projectmem_logs.home import redaction_key

        from projectmem.forget import call_mark

        return call_mark(redaction_key(self.home), call) in self.marks


def _size(path: Path) -> int:
    """Bytes of a file, 0 where it has none or cannot be asked."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


class _Owner:
    """Which calls belong here: those made in a folder of the same repository, each in its own work tree."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._known: dict[str, Place | None] = {}

    def of(self, cwd: str) -> Place | None:
        if cwd not in self._known:
            found = places.locate(cwd) if cwd else None
            if found is not None and found.common_dir == self.place.common_dir and found.root:
                here = Place(found.root, self.place.home, found.worktree, found.git_dir, found.common_dir)
                inside = bool(found.common_dir) or found.root == self.place.root
                self._known[cwd] = here if inside else None
            else:
                self._known[cwd] = None
        return self._known[cwd]
