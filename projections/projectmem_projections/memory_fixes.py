"""The rows that failed fixes are derived from, in memory: the twin of snapshot_fixes.py, which also knows earlier positions."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from projectmem_gate import attempts as gate

from .snapshot_fixes import hint_key

Row = tuple[Any, ...]
AsOf = Mapping[str, int]


class FixRows:
    """Mixed into MemoryState, which has the hint table."""

    _set_hint: Callable[[str, tuple[str, str, str] | None], None]

    def _clear_fixes(self) -> None:
        self._verdicts: dict[str, list[Row]] = {}
        self._made: list[Row] = []
        self._made_by_key: dict[str, list[Row]] = {}
        self._restored: list[Row] = []
        self._suspects: dict[str, dict[str, tuple[str, str, str]]] = {}  # track -> key -> words
        self._standing: set[str] = set()
        self._changed: set[str] = set()
        self._newest: Row = ()

    def _do_verdict(self, track: str, row: Row) -> None:
        insort(self._verdicts.setdefault(track, []), row)
        self._newest = max(self._newest, row[:4])
        self._changed.add(track)

    def _do_made(self, row: Row) -> None:
        late = max(self._newest, *(rows[-1][:4] for rows in (self._made, self._restored) if rows), ()) > row[:4]
        if late or row[5] in self._made_by_key or row[7] in self._made_by_key:
            self._changed |= self._standing
        insort(self._made, row)
        insort(self._made_by_key.setdefault(row[5], []), row)

    def _do_restored(self, row: Row) -> None:
        insort(self._restored, row)
        self._changed |= self._standing

    def _refresh(self) -> None:
        for track in sorted(self._changed):
            verdicts = self._verdicts[track][-gate.VERDICTS_MAX :]
            (self._standing.add if gate.standing(verdicts) else self._standing.discard)(track)
            new = {a["key"]: tuple(a["words"]) for a in self._derive(verdicts, None)}
            for key in self._suspects.get(track, {}).keys() - new.keys():
                self._set_hint(hint_key(track, key), None)
            for key, words in new.items():
                self._set_hint(hint_key(track, key), words)
            self._suspects[track] = new
        self._changed.clear()

    def _derive(self, verdicts: list[Row], as_of: AsOf | None) -> list[dict[str, Any]]:
        if not gate.standing(verdicts):
            return []
        first, last = verdicts[0][:4], verdicts[-1][:4]
        low, middle = bisect_right(self._made, (*first, "~")), bisect_right(self._made, (*last, "~"))
        made = _known(self._made[low:middle], as_of)[-gate.MADE_MAX :] + _known(self._made[middle:], as_of)[: gate.AFTER_MAX]
        restored = _known(self._restored[bisect_right(self._restored, (*first, "~")) :], as_of)[-gate.RESTORED_MAX :]
        return gate.attempts(verdicts, made, restored)

    def suspects(self) -> list[str]:
        """See `GateState.suspects`."""
        return sorted({key for keys in self._suspects.values() for key in keys})

    def attempts(self, keys: Iterable[str], as_of: AsOf | None = None) -> list[dict[str, Any]]:
        """See `GateState.attempts`."""
        wanted = [key for key in keys if key in self._made_by_key]
        if not wanted:
            return []
        found: list[dict[str, Any]] = []
        for track in sorted(self._verdicts):
            if as_of is None and not any(key in self._suspects.get(track, ()) for key in wanted):
                continue
            verdicts = _known(self._verdicts[track], as_of)[-gate.VERDICTS_MAX :]
            found += [a for a in self._derive(verdicts, as_of) if a["key"] in wanted]
        return found

    def _fix_tables(self) -> dict[str, Any]:
        return {
            "verdicts": [[track, *row] for track, rows in self._verdicts.items() for row in rows],
            "made": self._made,
            "restored": self._restored,
            "suspects": [[key, track, *words] for track, keys in self._suspects.items() for key, words in keys.items()],
        }


def _known(rows: list[Row], as_of: AsOf | None) -> list[Row]:
    return rows if as_of is None else [row for row in rows if row[2] <= as_of.get(row[1], 0)]
