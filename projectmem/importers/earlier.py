"""What an import has read so far, as the outcomes of the hook need it: the newest outcomes of each action key.

A failure that a pipe hides is known by the error that is on record for the same action (`hook.finish.seen_again`). The hook
asks the gate's snapshot for that; an import asks this, which knows what it has just read, and behind it the snapshot.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from projectmem_gate import history, moves
from projectmem_projections.errors import ProjectionError, SnapshotBusy
from projectmem_projections.fold import unpack
from projectmem_projections.fold_rows import row_text

from projectmem.importers.made import Made

Entry = dict[str, Any]
STREAM = "import"  # in place of the log's: the order in which calls were read
WAITING = 64  # outcomes of a key before they are looked at


class Earlier:
    """The outcomes of every key before a call.

    recorded   the gate's state as of the log's end (a Snapshot), or None where there is none: its entries count as far as they
               are older than the call that is asked about
    """

    def __init__(self, recorded: Any = None) -> None:
        self._recorded = recorded
        self._failed = recorded is not None and recorded.ever_failed()  # before the import
        self._moved: list[str] = recorded.moves() if recorded is not None else []  # before the import: its own come behind
        self._own: dict[str, _Outcomes] = {}
        self._moves: list[tuple[int, str]] = []  # by time
        self._read = 0
        self.at = 0  # of the call that is asked about

    def entries(self, keys: Sequence[str]) -> Mapping[str, Sequence[Entry]]:
        """The newest outcomes of these keys that are not younger than `at`; nothing, or all, of keys that never failed."""
        found: dict[str, list[Entry]] = {}
        asked = keys if self._failed else [key for key in keys if key in self._own]
        recorded = self._on_record(asked) if asked else {}
        for key in keys:
            own = self._own.get(key)
            entries = [*recorded.get(key, ()), *(own.kept() if own is not None else ())]
            if older := [entry for entry in entries if entry["at"] <= self.at]:
                found[key] = older
        return found

    def _on_record(self, keys: Sequence[str]) -> Mapping[str, Sequence[Entry]]:
        """Nothing where the snapshot is busy; one that was damaged meanwhile is asked no more: what is read is enough but for a
        call begun before it."""
        if self._recorded is None:
            return {}
        try:
            found: Mapping[str, Sequence[Entry]] = self._recorded.entries(keys)
        except SnapshotBusy:
            return {}
        except ProjectionError:
            self._recorded = None
            return {}
        return found

    def failing(self, keys: Sequence[str]) -> bool:
        """Whether the newest outcome of one of these keys is a failure: only then may a call be another than it says
        (gate/outcome.again)."""
        for entries in self.entries(keys).values():
            outcomes = [entry for entry in entries if entry["t"] in ("fail", "ok")]
            if outcomes and max(outcomes, key=history.order)["t"] == "fail":
                return True
        return False

    def moves(self, at: int) -> list[str]:
        """What was moved before a call at `at` (us): on record, then as it was read. That call is asked about from now on."""
        self.at = at
        if not self._moves:
            return self._moved
        return [*self._moved, *(subject for when, subject in self._moves if when <= at)]

    def learn(self, made: Made) -> None:
        """Take in a call that ended."""
        if made.folded is None:
            return
        _, entries, touches, _, _, _ = made.folded
        for type, subject, at, _ in touches:
            if type == moves.TYPE:
                insort(self._moves, (at, subject))
        if not entries or not _matters(made, self._own):
            return
        self._read += 1
        for key, t, at, _, rest in entries:
            outcomes = self._own.get(key)
            if outcomes is None:
                outcomes = self._own[key] = _Outcomes()
            outcomes.add(row_text(t, at, STREAM, self._read, "", rest))


def _matters(made: Made, known: Mapping[str, Any]) -> bool:
    """Only a failure is ever looked for, and a success that came behind it."""
    return made.failed or made.folded is None or not known.keys().isdisjoint(made.folded[5])


class _Outcomes:
    """Those of one key: most keys are never asked about, so they are read and put in order when they are."""

    __slots__ = ("_entries", "_texts")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        self._texts.append(text)
        if len(self._texts) >= WAITING:
            self.kept()

    def kept(self) -> list[Entry]:
        if self._texts:
            more = unpack(orjson.loads(f"[{','.join(self._texts)}]"))
            self._entries, self._texts = history.merge_all(self._entries, more), []
        return self._entries
