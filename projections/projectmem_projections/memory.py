"""The gate's state in process memory: for backtests, replay and tests. Same answers as the snapshot on disk, and it keeps
each key's whole history, so it can also say what was known as of an earlier position of the log."""

from __future__ import annotations

import json
from bisect import bisect_right, insort
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Protocol

from projectmem_gate import history, moves
from projectmem_gate.model import Change

from . import fold
from .memory_fixes import FixRows

Entry = dict[str, Any]
Event = Mapping[str, Any]
AsOf = Mapping[str, int]


class GateState(Protocol):
    """What the gate reads. `Snapshot` and `MemoryState` give equal answers to equal events (one shared contract test)."""

    def apply(self, events: Iterable[Event], *, gaps: bool = False) -> bool:
        """Fold events in. Events already applied are skipped. An event that is not the next of its stream is not applied,
        nor is what follows it, and the answer is False (catch up first), unless `gaps` says that what lies between is lost."""
        ...

    def cursor(self) -> dict[str, int]:
        """Last sequence number applied, of each stream."""
        ...

    def entries(self, keys: Iterable[str], as_of: AsOf | None = None) -> dict[str, list[Entry]]:
        """History of each key that has one, oldest first (see `fold.ENTRY_FIELDS`)."""
        ...

    def changes(self, since: int, limit: int = 64, paths: Sequence[str] = ()) -> list[Change]:
        """What happened after `since` (us), newest first, the last of each (type, subject). Where there is more than
        `limit`: edits and reads of `paths` first, then what is no read, then reads."""
        ...

    def touched(self, type: str, subject: str) -> int:
        """When this last happened (us), 0 when never."""
        ...

    def moves(self) -> list[str]:
        """The subjects of the newest moves (`projectmem_gate.moves`), oldest first."""
        ...

    def ok_after(self, family: str, at: int, limit: int = 8) -> list[dict[str, Any]]:
        """Successes of the family after `at`, newest first, the last of each key: {key, at, stream, seq, id, text, session}."""
        ...

    def attempts(self, keys: Iterable[str], as_of: AsOf | None = None) -> list[dict[str, Any]]:
        """The failed attempts at failures that stand, among these edits (see `projectmem_gate.attempts.attempts`)."""
        ...

    def suspects(self) -> list[str]:
        """The keys of all edits that are failed attempts at failures that stand."""
        ...

    def retried(self, cls: str, by: str) -> dict[str, list[list[int]]]:
        """How tries of known failures of this class went, by asker (`self`, `other`): {state: [[failed again, went well] of
        each age bucket of `projectmem_gate.odds`]}."""
        ...

    def labels(self) -> list[dict[str, Any]]:
        """Labels and decisions' clauses in force, oldest first: {id, at, stream, seq, origin, session, label, target, pattern,
        instead, effect, reason, decision, review_at, hits}."""
        ...

    def policy(self, streams: Container[str] | None = None) -> dict[str, Any] | None:
        """The data of the newest policy.changed (of these streams) with its `id` and `at`, None before the first."""
        ...

    def seen(self, session: str, call: str) -> bool:
        """Whether an action.finished of this call has been applied."""
        ...

    def turn(self, session: str) -> int:
        """Highest turn of the session's action.finished events, 0 before the first."""
        ...

    def hints(self, words: frozenset[str]) -> bool:
        """Whether an open failure's key may occur in an input that holds these words ("*" among them: it cannot be told from
        the words). False is certain, True is not."""
        ...

    def canonical_dump(self) -> bytes:
        """Everything folded, as canonical bytes: equal for equal sets of events, whatever the interleaving."""
        ...


class MemoryState(FixRows):
    """See `GateState`. Raises nothing on any event (what is malformed folds to nothing)."""

    def __init__(self) -> None:
        self._cursor: dict[str, int] = {}
        self._applied: list[tuple[str, list[tuple[Any, ...]]]] = []
        self._erased: set[str] = set()
        self._clear()

    def _clear(self) -> None:
        self._full: dict[str, list[Entry]] = {}
        self._top: dict[str, list[Entry]] = {}
        self._touches: list[tuple[Any, ...]] = []  # (at, stream, seq, type, subject, session, id), in this order
        self._last_touch: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._moves: list[tuple[Any, ...]] = []
        self._oks: dict[str, list[tuple[Any, ...]]] = {}  # family -> (at, stream, seq, key, id, text, session)
        self._seen: set[tuple[str, str]] = set()
        self._turns: dict[str, int] = {}
        self._tried: dict[str, tuple[str, str, str, int, int]] = {}  # event id -> (class, by, state, age, again)
        self._retried: dict[tuple[str, str], dict[tuple[str, int, int], int]] = {}
        self._labels: dict[str, dict[str, Any]] = {}
        self._unlabelled: set[str] = set()
        self._policies: list[tuple[Any, ...]] = []  # (at, stream, seq, id, data)
        self._hint: dict[str, tuple[str, str, str]] = {}  # open key -> words
        self._by_word: dict[str, dict[tuple[str, str], int]] = {}  # first word -> (second, third) -> number of keys
        self._clear_fixes()

    def apply(self, events: Iterable[Event], *, gaps: bool = False) -> bool:
        complete = True
        for event in events:
            stream, seq = event["stream"], event["seq"]
            last = self._cursor.get(stream, 0)
            if seq <= last:
                continue
            if seq != last + 1 and not gaps:
                complete = False
                continue
            self._cursor[stream] = seq
            ops = fold.fold_event(event)
            if ops:
                id = event.get("id", "")
                self._applied.append((id, ops))
                if id not in self._erased:
                    self._run(ops)
        self._refresh()
        return complete

    def _run(self, ops: list[tuple[Any, ...]]) -> None:
        for op in ops:
            getattr(self, "_do_" + op[0])(*op[1:])

    def _do_entry(self, key: str, entry: Entry) -> None:
        insort(self._full.setdefault(key, []), entry, key=fold.order)
        top = history.merge(self._top.get(key, []), entry)
        self._top[key] = top
        self._set_hint(key, fold.hint_words(top) if history.is_open(top) else None)

    def _set_hint(self, key: str, words: tuple[str, str, str] | None) -> None:
        old = self._hint.get(key)
        if old == words:
            return
        if old is not None:
            rest = self._by_word[old[0]]
            rest[old[1:]] -= 1
            if not rest[old[1:]]:
                del rest[old[1:]]
            if not rest:
                del self._by_word[old[0]]
            del self._hint[key]
        if words is not None:
            self._hint[key] = words
            rest = self._by_word.setdefault(words[0], {})
            rest[words[1:]] = rest.get(words[1:], 0) + 1

    def _do_touch(self, type: str, subject: str, at: int, stream: str, seq: int, session: str, id: str) -> None:
        row = (at, stream, seq, type, subject, session, id)
        insort(self._touches, row)
        if row > self._last_touch.get((type, subject), ()):
            self._last_touch[type, subject] = row
            if type == moves.TYPE:
                self._moves.append(row)

    def _do_ok(self, family: str, key: str, at: int, stream: str, seq: int, id: str, text: str, session: str) -> None:
        insort(self._oks.setdefault(family, []), (at, stream, seq, key, id, text, session))

    def _do_seen(self, session: str, call: str) -> None:
        self._seen.add((session, call))

    def _do_turn(self, session: str, turn: int) -> None:
        self._turns[session] = max(turn, self._turns.get(session, 0))

    def _do_tried(self, id: str, cls: str, by: str, state: str, age: int, again: int) -> None:
        if id not in self._tried:
            self._tried[id] = (cls, by, state, age, again)
            counts = self._retried.setdefault((cls, by), {})
            counts[state, age, again] = counts.get((state, age, again), 0) + 1

    def _do_label(self, id: str, label: dict[str, Any]) -> None:
        self._labels[id] = label

    def _do_unlabel(self, id: str) -> None:
        self._unlabelled.add(id)

    def _do_policy(self, at: int, stream: str, seq: int, id: str, data: dict[str, Any]) -> None:
        insort(self._policies, (at, stream, seq, id, data), key=lambda row: row[:3])

    def _do_erase(self, ids: tuple[str, ...]) -> None:
        fresh = set(ids) - self._erased
        self._erased |= fresh
        if any(id in fresh for id, _ in self._applied):
            # Exactness over speed: erasures are rare, and an erased event may have hidden an older one.
            self._applied = [(id, ops) for id, ops in self._applied if id not in self._erased]
            self._clear()
            for _, ops in self._applied:
                self._run([op for op in ops if op[0] != "erase"])

    def cursor(self) -> dict[str, int]:
        return dict(self._cursor)

    def entries(self, keys: Iterable[str], as_of: AsOf | None = None) -> dict[str, list[Entry]]:
        if as_of is None:
            return {k: list(self._top[k]) for k in keys if k in self._top}
        found: dict[str, list[Entry]] = {}
        for key in keys:
            top: list[Entry] = []
            for entry in self._full.get(key, ()):
                if entry["seq"] <= as_of.get(entry["stream"], 0):
                    top = history.merge(top, entry)
            if top:
                found[key] = top
        return found

    def changes(self, since: int, limit: int = 64, paths: Sequence[str] = ()) -> list[Change]:
        first: list[tuple[Any, ...]] = []
        other: list[tuple[Any, ...]] = []
        reads: list[tuple[Any, ...]] = []
        wanted = set(paths)
        for row in reversed(self._touches[bisect_right(self._touches, since, key=lambda row: row[0]) :]):
            if self._last_touch[row[3], row[4]] is not row:
                continue
            if row[3] in ("edit", "read") and row[4] in wanted:
                first.append(row)
            elif row[3] != "read":
                other.append(row)
            elif len(reads) < limit:
                reads.append(row)
            if len(first) + len(other) >= limit and not wanted:
                break
        chosen = sorted((first + other + reads)[:limit], reverse=True)
        return [Change(type, subject, at, stream, seq) for at, stream, seq, type, subject, _, _ in chosen]

    def touched(self, type: str, subject: str) -> int:
        row = self._last_touch.get((type, subject))
        return row[0] if row else 0

    def moves(self) -> list[str]:
        rows = sorted(row for row in self._moves if self._last_touch[row[3], row[4]] is row)
        return [row[4] for row in rows[-moves.MOVES_MAX :]]

    def ok_after(self, family: str, at: int, limit: int = 8) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for row in reversed(self._oks.get(family, ())):
            if row[0] <= at or len(found) >= limit:
                break
            fields = ("at", "stream", "seq", "key", "id", "text", "session")
            found.setdefault(row[3], dict(zip(fields, row, strict=True)))
        return list(found.values())

    def retried(self, cls: str, by: str) -> dict[str, list[list[int]]]:
        return fold.retried((*what, count) for what, count in self._retried.get((cls, by), {}).items())

    def labels(self) -> list[dict[str, Any]]:
        return fold.in_force(self._labels.values(), self._unlabelled)

    def policy(self, streams: Container[str] | None = None) -> dict[str, Any] | None:
        row = next((row for row in reversed(self._policies) if streams is None or row[1] in streams), None)
        return {**row[4], "id": row[3], "at": row[0]} if row else None

    def seen(self, session: str, call: str) -> bool:
        return (session, call) in self._seen

    def turn(self, session: str) -> int:
        return self._turns.get(session, 0)

    def hints(self, words: frozenset[str]) -> bool:
        if "" in self._by_word or ("*" in words and self._by_word):
            return True
        words = moves.words(words, self.moves()) if self._moves else words
        for word in words & self._by_word.keys():
            for second, third in self._by_word[word]:
                if (not second or second in words) and (not third or third in words):
                    return True
        return False

    def canonical_dump(self) -> bytes:
        touches = [[t, s, *row[:3], *row[5:]] for (t, s), row in self._last_touch.items()]
        oks = {(family, row[3]): [family, row[3], *row[:3], *row[4:]] for family, rows in self._oks.items() for row in rows}
        return dump(
            cursor=self._cursor,
            history={k: fold.pack(v) for k, v in self._top.items()},
            touches=touches,
            oks=oks.values(),
            seen=self._seen,
            turns=self._turns.items(),
            labels=self._labels,
            unlabelled=self._unlabelled,
            policies={row[1]: list(row) for row in self._policies},
            erased=self._erased,
            hints=[[*words, key] for key, words in self._hint.items()],
            tried=[[id, *row] for id, row in self._tried.items()],
            **self._fix_tables(),
        )


def dump(**tables: Any) -> bytes:
    """Tables of a gate state as canonical bytes; collections that are not mappings or lists of fields are sorted."""
    plain: dict[str, Any] = {"fold": fold.FOLD_VERSION}
    for name, table in tables.items():
        plain[name] = (
            table if isinstance(table, dict) else sorted(list(row) if not isinstance(row, str) else row for row in table)
        )
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
