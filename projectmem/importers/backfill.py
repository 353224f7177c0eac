"""Records what readers of other tools' files found: once each, with origin `import`, in batches, so that a run may be stopped.

A run that was cut short goes on where it was: what is in the log is known by the call's id, and by a keyed mark where it was
erased from it. Memory stays bounded: a batch of calls, the ids that are known, and what a later call needs of earlier ones.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
from projectmem_gate import verifiers
from projectmem_gate.identify import identify
from projectmem_gate.model import OK, Action, Outcome
from projectmem_gate.moves import renames
from projectmem_gate.outcome import covers_exit
from projectmem_logs.canonical import sanitize
from projectmem_projections.errors import ProjectionError

from projectmem import place as places
from projectmem.hook.drafts import finished_draft
from projectmem.hook.finish import judged, seen_again
from projectmem.hook.naming import naming
from projectmem.hook.state import open_state, redactor
from projectmem.importers.appending import append, bring_in, spooled
from projectmem.importers.earlier import Earlier
from projectmem.importers.reading import Call, Counts
from projectmem.place import Place

Reader = Callable[[Path, Counts], Iterator[Call]]
Sources = Sequence[tuple[Path, Reader]]
BATCH_EVENTS = 1_000
RESOLVED = 100_000  # paths whose real names are kept
KEPT_ACTIONS, SHORT = 4_096, 2_000  # actions that are kept, of inputs of at most so many bytes
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
        return _Backfill(place, Earlier(), now).run(progress(sources))
    try:
        return _Backfill(place, Earlier(state), now).run(progress(sources))
    finally:
        state.close()


class _Backfill:
    """One run: what is known, what was read, and the batch that is not written yet."""

    def __init__(self, place: Place, earlier: Earlier, now: int) -> None:
        self.place, self.now, self.drafts_of = place, now, _Drafts(earlier)
        self.counts, self.owner, self.erased = Counts(), _Owner(place), Erased(place)
        self.known, self.observed = _recorded(place)
        self.sessions: set[str] = set()
        self.drafts: list[dict[str, Any]] = []
        self.chars = 0

    def run(self, sources: Iterable[tuple[Path, Reader]]) -> Counts:
        for path, reader in sources:
            before = self.counts.damaged
            belongs = False
            for call in shaped(reader, path, self.counts):
                belongs = self.take(call) or belongs
            self.counts.files += belongs
            if self.counts.damaged > before:
                self.counts.unread.setdefault(str(path), "")
        self.write()
        self.counts.sessions = len(self.sessions)
        return self.counts

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
            draft = self.drafts_of.make(where, call)
            counts.recorded += 1
            counts.failed += draft["data"]["outcome"] == "failed"
            self.drafts.append(draft)
            self.chars += len(draft["data"]["input"])
            if len(self.drafts) >= BATCH_EVENTS or self.chars >= BATCH_CHARS:
                self.write()
        return True

    def hooked(self, call: Call) -> bool:
        """Whether the hook has seen the call's session under ids of its own."""
        return bool(call.get("unnamed")) and call["session"] in self.observed

    def write(self) -> None:
        """Append the batch."""
        if self.drafts:
            append(self.place, self.drafts, self.now)
        self.drafts, self.chars = [], 0


def shaped(reader: Reader, path: Path, counts: Counts) -> Iterator[Call]:
    """The calls of one file up to where its shape is another than the reader knows."""
    try:
        yield from reader(path, counts)
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


class _Drafts:
    """Makes the `action.finished` draft of a call as the hook would have made it, without asking twice what it knows already."""

    def __init__(self, earlier: Earlier) -> None:
        self.earlier = earlier
        self.resolve = lru_cache(RESOLVED)(os.path.realpath)  # for one run: nobody moves a folder while it lasts
        self.actions: dict[tuple[Any, ...], Action] = {}

    def make(self, place: Place, call: Call) -> dict[str, Any]:
        """The draft, which later calls are compared with. Secrets go before anything is kept."""
        redact = redactor(place)
        call["input"] = redact.tree(call["input"])
        action = self.action(place, call)
        outcome = _plainly(call, action)
        if outcome is None:
            call["output"] = redact.text(sanitize(call["output"]))
            outcome = seen_again(self.earlier, call, action, judged(call, action, {}))
        draft = finished_draft(call, action, outcome, {}, at=call["at"], origin="import", source="backfill")
        self.earlier.learn(draft)
        return draft

    def action(self, place: Place, call: Call) -> Action:
        """What the call is. The same short input in the same folder is the same, as long as nothing was moved in between."""
        moved, sha = self.earlier.moves(call["at"]), call.get("input_sha") or ""
        asked = orjson.dumps(sanitize(call["input"]))
        key = (place.root, call["cwd"], call["harness"], call["tool"], sha, asked, *moved)
        found = self.actions.get(key) if len(asked) <= SHORT else None
        if found is None:
            names = {**naming(place), "resolve": self.resolve, "renames": renames(moved) if moved else None}
            given = {"root": place.root, "cwd": call["cwd"], "harness": call["harness"], "input_sha": sha}
            found = identify(call["tool"], call["input"], **given, **names)
            if len(asked) <= SHORT:
                if len(self.actions) >= KEPT_ACTIONS:
                    self.actions.clear()
                self.actions[key] = found
        return found


def _plainly(call: Call, action: Action) -> Outcome | None:
    """The outcome of a call that went well and whose output says no more than that: nothing of it is kept, so no secret in it can
    be. None where something of the output may have to be kept, or compared."""
    if call["is_error"] or call["exit_code"] or call["error_kind"] or covers_exit(action):
        return None
    family = action.parts[-1].family if action.parts else ""
    if verifiers.report(family, call["output"]) is not None:
        return None
    outcome = judged(call, action, {})
    if outcome.outcome != OK or outcome.excerpt or outcome.signature:
        return None
    call["output"] = ""
    return outcome


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
