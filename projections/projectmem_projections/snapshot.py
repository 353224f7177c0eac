"""The gate's state on disk [H]: one small SQLite file that a hook process opens, asks and closes in well under a millisecond.

It is derived from the log, so it is written without syncs, and thrown away and rebuilt when it is damaged, foreign or of
another version. A rollback journal and not WAL: with one short-lived process per tool call, opening and closing a WAL
database costs two to three times as much as everything the hook asks of it (measured, see projections/README.md).

The events of one `apply` and the cursor are one transaction. Cost never grows with the log: every statement is a look-up by
key, the histories are bounded, and `hints` gives up (answers True, which is always safe) rather than read many rows.
"""

from __future__ import annotations

from projectmem_gate import history
from projectmem_gate.model import Change
from projectmem_logs.fastjson import encode as _encode

from . import closed, fold, quick, tail
from .errors import ProjectionError, SnapshotDamaged
from .snapshot_file import SnapshotFile, decode, discard
from .snapshot_fixes import FixTables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence
    from typing import Any

    from .fold_rows import Folded

    Entry = dict[str, Any]

PUT = {
    "seen": "INSERT OR IGNORE INTO seen VALUES (?, ?)",
    "touch": "INSERT INTO touch VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (type, subject) DO UPDATE SET at = excluded.at,"
    " stream = excluded.stream, seq = excluded.seq, session = excluded.session, id = excluded.id"
    " WHERE (excluded.at, excluded.stream, excluded.seq) > (at, stream, seq)",
    "ok": "INSERT INTO ok VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (family, key) DO UPDATE SET at = excluded.at,"
    " stream = excluded.stream, seq = excluded.seq, id = excluded.id, text = excluded.text, session = excluded.session"
    " WHERE (excluded.at, excluded.stream, excluded.seq) > (at, stream, seq)",
}
MANY = 8  # events whose rows are written together
CHUNK_EVENTS = 1000  # events per transaction of a catch-up

encode = _encode  # a resident process has a faster way to the same text

__all__ = ["Snapshot", "discard"]


class Snapshot(FixTables, SnapshotFile):
    """See `GateState` in memory.py. An absent file becomes an empty snapshot, which is merely behind: catch up.

    busy_ms   how long to wait for another process' transaction
    Raises SnapshotDamaged (discard and rebuild), SnapshotBusy (nothing was changed) and ProjectionError (permissions, space).
    """

    _erasures = False
    _rows: dict[str, list[tuple[Any, ...]]] | None = None
    _held: dict[str, list[Any]]  # key -> [entries, the row as it is stored or None]
    FOLLOWS = True  # False: a state of a few events that misses none of those before them

    # --- writing -----------------------------------------------------------------------------------------------------

    def apply(
        self,
        events: Iterable[Mapping[str, Any]],
        *,
        gaps: bool = False,
        positions: Mapping[str, tuple[str, int]] | None = None,
        folded: Mapping[str, Folded] | None = None,
    ) -> bool:
        """See `GateState.apply`. `positions` says where each stream's log ends after these events (`tail.positions`, taken
        while the append lock is still held); without it the next `stale` answers True and a catch-up finds nothing to do.
        `folded`: what events of these ids fold to (fold_rows.py); only their places are read."""
        with self._guard:
            self._begin()
            self._changed, self._held = set(), {}
            self._rows = {} if type(events) is list and len(events) > MANY else None
            try:
                self._erasures = self._db.execute("SELECT 1 FROM erased LIMIT 1").fetchone() is not None
                rows = self._db.execute("SELECT stream, seq, hash FROM cursor").fetchall()
                cursor = {stream: (seq, hash) for stream, seq, hash in rows}
                before = dict(cursor)
                complete, last_id = self._take_in(events, cursor, gaps, folded)
                if self._changed:
                    self._refresh()
                if self.beside is not None:
                    session, call, note = self.beside
                    note["proposed"] = last_id
                    quick.put_note(self._db, session, call, encode(note))
                self._save_cursor(cursor, before, positions if complete and self.FOLLOWS else None)
            except BaseException:
                self._rollback()
                raise
            self._db.execute("COMMIT")
            self.beside = None
        return complete

    def _take_in(
        self,
        events: Iterable[Mapping[str, Any]],
        cursor: dict[str, tuple[int, str]],
        gaps: bool,
        folded: Mapping[str, Folded] | None,
    ) -> tuple[bool, str]:
        """Apply what the cursor does not know yet and move it on: (whether nothing was missing, the last event's id)."""
        complete, last_id = True, ""
        made = _rows_of(folded) if folded else None
        for event in events:
            last_id = event.get("id", "")
            stream, seq = event["stream"], event["seq"]
            last, hash = cursor.get(stream, (0, ""))
            if seq <= last:
                continue
            if seq != last + 1:
                if not gaps and self.FOLLOWS:
                    complete = False
                    continue
            elif hash and event.get("prev", hash) != hash:
                raise SnapshotDamaged(
                    f"the gate snapshot {self.path} follows a log that was rewritten ({stream}, event {seq}):"
                    " rebuild it from the log"
                )
            cursor[stream] = seq, event.get("hash", "")
            if made is not None and made.take(stream, seq, last_id):
                continue
            ops = fold.fold_event(event)
            if ops and not (self._erasures and self._is_erased(event.get("id", ""))):
                self._do(ops)
        self._put_held()
        if made is not None:
            made.write(self._db, PUT, self._put_history)
            self._do(made.fixes)
        return complete, last_id

    def _do(self, ops: Iterable[tuple[Any, ...]]) -> None:
        for op in ops:
            getattr(self, "_do_" + op[0])(*op[1:])

    def _save_cursor(
        self,
        cursor: dict[str, tuple[int, str]],
        before: dict[str, tuple[int, str]],
        positions: Mapping[str, tuple[str, int]] | None,
    ) -> None:
        put = self._db.execute
        for stream, (seq, hash) in cursor.items():
            if positions and stream in positions:
                put("REPLACE INTO cursor VALUES (?, ?, ?, ?, ?)", (stream, seq, hash, *positions[stream]))
            elif stream not in before:
                put("INSERT INTO cursor VALUES (?, ?, ?, '', 0)", (stream, seq, hash))
            elif before[stream][0] != seq:
                put("UPDATE cursor SET seq = ?, hash = ? WHERE stream = ?", (seq, hash, stream))

    def _is_erased(self, id: str) -> bool:
        return self._db.execute("SELECT 1 FROM erased WHERE id = ?", (id,)).fetchone() is not None

    def _do_entry(self, key: str, entry: Entry) -> None:
        held = self._held.get(key)
        if held is None:
            row = self._db.execute("SELECT w1, w2, w3, open, data FROM history WHERE key = ?", (key,)).fetchone()
            held = self._held[key] = [fold.unpack(decode(row[4])) if row else [], row]
        held[0] = history.merge(held[0], entry)

    def _put(self, sql: str, row: tuple[Any, ...]) -> None:
        """Write a row; of many events, with those of its table."""
        if self._rows is None:
            self._db.execute(sql, row)
        else:
            self._rows.setdefault(sql, []).append(row)

    def _put_held(self) -> None:
        """Write the rows that wait, and the histories that this transaction changed, each once however many events told of it."""
        if self._rows:
            for sql, rows in self._rows.items():
                self._db.executemany(sql, rows)
            self._rows = {}
        for key, (entries, row) in self._held.items():
            self._put_history(key, entries, row)
        self._held = {}

    def _put_history(self, key: str, entries: list[Entry], row: tuple[Any, ...] | None) -> None:
        db = self._db
        words, is_open = fold.hint_words(entries), history.is_open(entries)
        if row and row[3] and (not is_open or row[:3] != words):
            db.execute("DELETE FROM hint WHERE w1 = ? AND w2 = ? AND w3 = ? AND key = ?", (*row[:3], key))
        if is_open and not (row and row[3] and row[:3] == words):
            db.execute("INSERT OR IGNORE INTO hint VALUES (?, ?, ?, ?)", (*words, key))
        values = (*words, int(is_open), encode(fold.pack(entries)), key)
        if row:
            db.execute("UPDATE history SET w1 = ?, w2 = ?, w3 = ?, open = ?, data = ? WHERE key = ?", values)
        else:
            db.execute("INSERT INTO history (w1, w2, w3, open, data, key) VALUES (?, ?, ?, ?, ?, ?)", values)

    def _do_touch(self, type: str, subject: str, at: int, stream: str, seq: int, session: str, id: str) -> None:
        self._put(PUT["touch"], (type, subject, int(type == "read"), at, stream, seq, session, id))

    def _do_ok(self, family: str, key: str, at: int, stream: str, seq: int, id: str, text: str, session: str) -> None:
        self._put(PUT["ok"], (family, key, at, stream, seq, id, text, session))

    def _do_seen(self, session: str, call: str) -> None:
        self._put(PUT["seen"], (session, call))

    def _do_turn(self, session: str, turn: int) -> None:
        self._db.execute(
            "INSERT INTO turn VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET turn = max(turn, excluded.turn)", (session, turn)
        )

    def _do_tried(self, id: str, cls: str, by: str, state: str, age: int, again: int) -> None:
        self._db.execute("INSERT OR IGNORE INTO tried VALUES (?, ?, ?, ?, ?, ?)", (id, cls, by, state, age, again))

    def _do_label(self, id: str, label: dict[str, Any]) -> None:
        self._db.execute("REPLACE INTO label VALUES (?, ?)", (id, encode(label)))

    def _do_unlabel(self, id: str) -> None:
        self._db.execute("INSERT OR IGNORE INTO unlabelled VALUES (?)", (id,))

    def _do_policy(self, at: int, stream: str, seq: int, id: str, data: dict[str, Any]) -> None:
        row = self._db.execute("SELECT at, seq FROM policy WHERE stream = ?", (stream,)).fetchone()
        if row is None or (at, seq) > row:
            self._db.execute("REPLACE INTO policy VALUES (?, ?, ?, ?, ?)", (stream, at, seq, id, encode(data)))
            self._mark_closed()

    def _mark_closed(self) -> None:
        given = (self.policy(closed.own(self.path)) or {}).get("policy")
        closed.mark(self.path, type(given) is dict and given.get("on_error") == "deny")

    def _do_erase(self, ids: tuple[str, ...]) -> None:
        """Nothing derived from these events is served from now on. What they had hidden (an older entry, an older touch) is
        only known to the log: `dirty` asks for a rebuild."""
        db = self._db
        fresh = [id for id in ids if not self._is_erased(id)]
        if not fresh:
            return
        self._put_held()
        self._erasures = True
        db.execute("PRAGMA secure_delete = ON")
        for id in fresh:
            db.execute("INSERT INTO erased VALUES (?)", (id,))
            for table in ("touch", "ok", "label", "tried"):
                db.execute(f"DELETE FROM {table} WHERE id = ?", (id,))  # noqa: S608 - names from the line above
            if db.execute("DELETE FROM policy WHERE id = ?", (id,)).rowcount:
                self._mark_closed()
            found = db.execute("SELECT key, w1, w2, w3, open, data FROM history WHERE instr(data, ?)", (id,)).fetchall()
            for key, *row in found:
                entries = [e for e in fold.unpack(decode(row[4])) if e["id"] != id]
                self._put_history(key, entries, tuple(row))
                if not entries:
                    db.execute("DELETE FROM history WHERE key = ?", (key,))
            self._erase_fixes(id)
        db.execute("REPLACE INTO meta VALUES ('dirty', '1')")

    def erase_ahead(self, ids: Iterable[str]) -> None:
        """Name erased events before they are folded, so that a rebuild never takes them in."""
        with self._guard:
            self._begin()
            self._db.executemany("INSERT OR IGNORE INTO erased VALUES (?)", [(id,) for id in ids])
            self._db.execute("COMMIT")

    def erased(self) -> list[str]:
        """Ids of the events that were named as erased."""
        with self._guard:
            return [row[0] for row in self._db.execute("SELECT id FROM erased ORDER BY id")]

    @property
    def dirty(self) -> bool:
        """An erasure took something away that only a rebuild can replace exactly. Answers are safe meanwhile."""
        with self._guard:
            return self._db.execute("SELECT 1 FROM meta WHERE name = 'dirty'").fetchone() is not None

    # --- following the log -------------------------------------------------------------------------------------------

    def stale(self, positions: Mapping[str, tuple[str, int]]) -> bool:
        """Whether the log (`tail.positions`) ends elsewhere than where this snapshot left it."""
        return self._known() != {stream: tuple(where) for stream, where in positions.items()}

    def _known(self) -> dict[str, tuple[str, int]]:
        with self._guard:
            rows = self._db.execute("SELECT stream, segment, size FROM cursor").fetchall()
        return {stream: (segment, size) for stream, segment, size in rows}

    def check(self) -> None:
        """Read the whole file. Raises SnapshotDamaged where SQLite finds a fault in it."""
        with self._guard:
            fault = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if fault != "ok":
            raise SnapshotDamaged(f"the gate snapshot {self.path} is damaged ({fault}): rebuild it from the log")

    def lag(self, home: str) -> int:
        """Bytes of the log that were not folded in. More than there are to read where a position was forgotten."""
        return tail.lag(home, self._known())

    def catch_up(self, home: str, limit_events: int = 5000) -> bool:
        """Fold in what the log at `home` holds beyond the cursor, at most about `limit_events`. True when all of it is in.

        Falls back to `projectmem_logs.reader`, which knows how to read around damage, where the tail is not as expected."""
        complete = True
        streams = tail.positions(home)
        gone = sorted(set(self.cursor()) - set(streams))
        if gone:
            raise SnapshotDamaged(
                f"the gate snapshot {self.path} knows {gone[0]}, which the log has no more: rebuild it from the log"
            )
        for stream in sorted(streams):
            while complete:
                with self._guard:
                    row = self._db.execute("SELECT seq, segment, size FROM cursor WHERE stream = ?", (stream,)).fetchone()
                seq, segment, offset = row or (0, "", 0)
                found = tail.read_tail(home, stream, segment, offset, seq, min(CHUNK_EVENTS, limit_events))
                if found.shortened:
                    raise SnapshotDamaged(
                        f"the gate snapshot {self.path} is ahead of the log ({found.problem}): rebuild it from the log"
                    )
                if found.problem:
                    return self._catch_up_around_damage(home)
                self.apply(found.events, positions={stream: (found.segment, found.offset)})
                limit_events -= len(found.events)
                if found.reached_end:
                    break
                complete = limit_events > 0
        return complete

    def _catch_up_around_damage(self, home: str) -> bool:
        from projectmem_logs.reader import read_events

        positions = tail.positions(home)
        events: list[Mapping[str, Any]] = []
        for event in read_events(home, after=self.cursor()):
            events.append(event)
            if len(events) >= CHUNK_EVENTS:
                self.apply(events, gaps=True)
                events = []
        self.apply(events, gaps=True)
        self.apply((), positions=positions)
        return True

    # --- reading -----------------------------------------------------------------------------------------------------

    def cursor(self) -> dict[str, int]:
        with self._guard:
            return dict(self._db.execute("SELECT stream, seq FROM cursor ORDER BY stream").fetchall())

    def entries(self, keys: Iterable[str], as_of: Mapping[str, int] | None = None) -> dict[str, list[Entry]]:
        if as_of is not None:
            raise ProjectionError("the gate snapshot only knows the present: fold the log into a MemoryState for `as_of`")
        found = {}
        with self._guard:
            for key in keys:
                row = self._db.execute("SELECT data FROM history WHERE key = ?", (key,)).fetchone()
                if row:
                    found[key] = fold.unpack(decode(row[0]))
        return found

    def ever_failed(self) -> bool:
        """Whether any failure is on record. Reads up to the first: all of the file where there is none."""
        with self._guard:
            return self._db.execute("""SELECT 1 FROM history WHERE instr(data, '["fail",') LIMIT 1""").fetchone() is not None

    def changes(self, since: int, limit: int = 64, paths: Sequence[str] = ()) -> list[Change]:
        select = "SELECT at, stream, seq, type, subject FROM touch WHERE "
        newest = " ORDER BY at DESC, stream DESC, seq DESC, type DESC, subject DESC LIMIT ?"
        found: list[tuple[Any, ...]] = []
        with self._guard:
            for path in dict.fromkeys(paths):
                found += self._db.execute(
                    select + "type IN ('edit', 'read') AND subject = ? AND at > ?", (path, since)
                ).fetchall()
            found = sorted(found, reverse=True)[:limit]
            known = frozenset(found)  # mostly empty, or a few
            for is_read in (0, 1):
                if (room := limit - len(found)) > 0:
                    rows = self._db.execute(select + "is_read = ? AND at > ?" + newest, (is_read, since, limit)).fetchall()
                    found += [row for row in rows if row not in known][:room] if known else rows[:room]
        return [Change(type, subject, at, stream, seq) for at, stream, seq, type, subject in sorted(found, reverse=True)]

    def touched(self, type: str, subject: str) -> int:
        with self._guard:
            row = self._db.execute("SELECT at FROM touch WHERE type = ? AND subject = ?", (type, subject)).fetchone()
        return row[0] if row else 0

    def moves(self) -> list[str]:
        with self._guard:
            return quick.moves(self._db)

    def ok_after(self, family: str, at: int, limit: int = 8) -> list[dict[str, Any]]:
        fields = ("at", "stream", "seq", "key", "id", "text", "session")
        with self._guard:
            rows = self._db.execute(
                "SELECT at, stream, seq, key, id, text, session FROM ok WHERE family = ? AND at > ?"
                " ORDER BY at DESC, stream DESC, seq DESC, key DESC LIMIT ?",
                (family, at, limit),
            ).fetchall()
        return [dict(zip(fields, row, strict=True)) for row in rows]

    def retried(self, cls: str, by: str) -> dict[str, list[list[int]]]:
        with self._guard:
            rows = self._db.execute(
                "SELECT state, age, again, count(*) FROM tried WHERE cls = ? AND by = ? GROUP BY state, age, again", (cls, by)
            ).fetchall()
        return fold.retried(rows)

    def labels(self) -> list[dict[str, Any]]:
        with self._guard:
            rows = self._db.execute("SELECT data FROM label WHERE id NOT IN (SELECT id FROM unlabelled)").fetchall()
            ended = {row[0] for row in self._db.execute("SELECT id FROM unlabelled")} if rows else ()
            return fold.in_force((decode(row[0]) for row in rows), ended)

    def policy(self, streams: Container[str] | None = None) -> dict[str, Any] | None:
        with self._guard:
            rows = self._db.execute("SELECT at, id, data, stream FROM policy ORDER BY at DESC, stream DESC, seq DESC")
            row = next((row for row in rows if streams is None or row[3] in streams), None)
            return {**decode(row[2]), "id": row[1], "at": row[0]} if row else None

    def seen(self, session: str, call: str) -> bool:
        with self._guard:
            return self._db.execute("SELECT 1 FROM seen WHERE session = ? AND call = ?", (session, call)).fetchone() is not None

    def turn(self, session: str) -> int:
        with self._guard:
            row = self._db.execute("SELECT turn FROM turn WHERE session = ?", (session,)).fetchone()
        return row[0] if row else 0

    def hints(self, words: frozenset[str]) -> bool:
        with self._guard:
            return quick.has_hint(self._db, quick.with_moved(self._db, words))

    def canonical_dump(self) -> bytes:
        from .memory import dump

        db = self._db
        with self._guard:
            return dump(
                cursor=self.cursor(),
                history={k: decode(v) for k, v in db.execute("SELECT key, data FROM history")},
                touches=db.execute("SELECT type, subject, at, stream, seq, session, id FROM touch"),
                oks=db.execute("SELECT * FROM ok"),
                seen=db.execute("SELECT * FROM seen"),
                turns=db.execute("SELECT * FROM turn"),
                labels={id: decode(data) for id, data in db.execute("SELECT * FROM label")},
                unlabelled=[row[0] for row in db.execute("SELECT id FROM unlabelled")],
                policies={
                    row[1]: [*row[:4], decode(row[4])] for row in db.execute("SELECT at, stream, seq, id, data FROM policy")
                },
                erased=[row[0] for row in db.execute("SELECT id FROM erased")],
                hints=db.execute("SELECT * FROM hint"),
                verdicts=db.execute("SELECT * FROM verdict"),
                made=db.execute("SELECT * FROM made"),
                restored=db.execute("SELECT * FROM restored"),
                suspects=db.execute("SELECT * FROM suspect"),
                tried=db.execute("SELECT * FROM tried"),
            )


def _rows_of(folded: Mapping[str, Folded]) -> Any:
    from .snapshot_rows import Rows  # an import's: not for the hook

    return Rows(folded)
