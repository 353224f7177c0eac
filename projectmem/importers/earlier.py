"""What an import has read so far, as the outcomes of the hook need it: the newest outcomes of each action key.

A failure that a pipe hides is known by the error that is on record for the same action (`hook.finish.seen_again`). The hook
asks the gate's snapshot for that; an import asks this, which knows what it has just read, and behind it the snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from projectmem_gate import history, moves
from projectmem_projections.fold import fold_event

Entry = dict[str, Any]


class Earlier:
    """The outcomes of every key before a call.

    recorded   the gate's state as of the log's end (a Snapshot), or None where there is none: its entries count as far as they
               are older than the call that is asked about
    """

    def __init__(self, recorded: Any = None) -> None:
        self._recorded = recorded
        self._moved: list[str] = recorded.moves() if recorded is not None else []  # before the import: its own come behind
        self._own: dict[str, list[Entry]] = {}
        self._moves: list[tuple[int, str]] = []
        self._read = 0
        self.at = 0  # of the call that is asked about

    def entries(self, keys: Sequence[str]) -> Mapping[str, Sequence[Entry]]:
        """The newest outcomes of these keys that are not younger than `at`."""
        found: dict[str, list[Entry]] = {}
        recorded = self._recorded.entries(keys) if self._recorded is not None else {}
        for key in keys:
            entries = [*recorded.get(key, ()), *self._own.get(key, ())]
            if older := [entry for entry in entries if entry["at"] <= self.at]:
                found[key] = older
        return found

    def moves(self, at: int) -> list[str]:
        """What was moved before a call at `at` (us): on record, then as it was read. That call is asked about from now on."""
        self.at = at
        return [*self._moved, *(subject for when, subject in sorted(self._moves) if when <= at)]

    def learn(self, draft: Mapping[str, Any]) -> None:
        """Take in the draft of a call that ended."""
        data = draft["data"]
        if data["outcome"] == "ok" and _moves_nothing(data) and not self._own.keys() & {data["key"], *_keys(data)}:
            return  # only a failure is ever looked for, and a success that came behind it
        self._read += 1
        event = {**draft, "id": "", "stream": "import", "seq": self._read}
        for op in fold_event(event):
            if op[0] == "touch" and op[1] == moves.TYPE:
                self._moves.append((op[3], op[2]))
            elif op[0] == "entry" and op[2]["t"] in ("fail", "ok"):
                _, key, entry = op
                self._own[key] = history.merge(self._own.get(key, ()), entry)


def _keys(data: Mapping[str, Any]) -> set[str]:
    return {str(part.get("key")) for part in data["parts"]}


def _moves_nothing(data: Mapping[str, Any]) -> bool:
    return not any(effect[0] == moves.TYPE for part in data["parts"] for effect in part.get("effects") or ())
