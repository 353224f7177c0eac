"""The rows that failed fixes are derived from, in the gate's snapshot [H], and the hint rows that follow from them.

Verdicts, edits and restorations are kept as they come. What follows from them is a function of the rows of one track
(`attempts.attempts`), worked out again at the end of each transaction for the tracks that it may have changed: the track of a
new verdict; where an edit came late, or takes something back, the tracks in which a failure stands. So rebuilt equals grown.
"""

from __future__ import annotations

from projectmem_gate import attempts as gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Row = tuple[Any, ...]

NAMES = ("verdict", "made", "restored")


class FixTables:
    """Mixed into Snapshot, which has the open database and the guard of its errors."""

    _db: Any
    _guard: Any
    _changed: set[str]

    def _do_verdict(self, track: str, row: Row) -> None:
        self._db.execute("INSERT OR IGNORE INTO verdict VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (track, *row))
        self._changed.add(track)

    def _do_made(self, row: Row) -> None:
        db = self._db
        newer = "SELECT 1 FROM {} WHERE (at, stream, seq, n) > (?, ?, ?, ?) LIMIT 1"
        late = any(db.execute(newer.format(table), row[:4]).fetchone() for table in ("track", "made", "restored"))
        if late or db.execute("SELECT 1 FROM made WHERE key IN (?, ?) LIMIT 1", (row[5], row[7])).fetchone():
            self._standing_changed()
        db.execute("INSERT OR IGNORE INTO made VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _do_restored(self, row: Row) -> None:
        self._db.execute("INSERT OR IGNORE INTO restored VALUES (?, ?, ?, ?, ?, ?)", row)
        self._standing_changed()

    def _standing_changed(self) -> None:
        self._changed.update(row[0] for row in self._db.execute("SELECT track FROM track WHERE standing"))

    def _erase_fixes(self, id: str) -> None:
        for table in NAMES:
            self._db.execute(f"DELETE FROM {table} WHERE id = ?", (id,))  # noqa: S608 - names from above
        self._changed.update(row[0] for row in self._db.execute("SELECT track FROM track"))

    def _refresh(self) -> None:
        """Work out the attempts of the tracks that changed. The last thing in a transaction."""
        db = self._db
        for track in sorted(self._changed):
            verdicts = self._verdicts(track)
            old = db.execute("SELECT key, w1, w2, w3 FROM suspect WHERE track = ?", (track,)).fetchall()
            if not verdicts:
                db.execute("DELETE FROM track WHERE track = ?", (track,))
            else:
                stands = int(bool(gate.standing(verdicts)))
                db.execute("REPLACE INTO track VALUES (?, ?, ?, ?, ?, ?)", (track, *verdicts[-1][:4], stands))
            new = {a["key"]: tuple(a["words"]) for a in self._derive(verdicts)}
            for key, *words in old:
                if new.get(key) != tuple(words):
                    db.execute("DELETE FROM suspect WHERE key = ? AND track = ?", (key, track))
                    db.execute("DELETE FROM hint WHERE w1 = ? AND w2 = ? AND w3 = ? AND key = ?", (*words, hint_key(track, key)))
            for key, found in new.items():
                db.execute("INSERT OR IGNORE INTO suspect VALUES (?, ?, ?, ?, ?)", (key, track, *found))
                db.execute("INSERT OR IGNORE INTO hint VALUES (?, ?, ?, ?)", (*found, hint_key(track, key)))
        self._changed.clear()

    def _verdicts(self, track: str) -> list[Row]:
        sql = "SELECT at, stream, seq, n, id, key, red, sig, cls, verifier, text, whole, session FROM verdict WHERE track = ?"
        newest = " ORDER BY at DESC, stream DESC, seq DESC, n DESC LIMIT ?"
        return list(reversed(self._db.execute(sql + newest, (track, gate.VERDICTS_MAX)).fetchall()))

    def _derive(self, verdicts: list[Row]) -> list[dict[str, Any]]:
        if not gate.standing(verdicts):
            return []
        first, last = verdicts[0][:4], verdicts[-1][:4]
        db, place = self._db, "(at, stream, seq, n)"
        up, down = " ORDER BY at, stream, seq, n LIMIT ?", " ORDER BY at DESC, stream DESC, seq DESC, n DESC LIMIT ?"
        between = f"SELECT * FROM made WHERE {place} > (?, ?, ?, ?) AND {place} <= (?, ?, ?, ?)"  # noqa: S608
        after = f"SELECT * FROM made WHERE {place} > (?, ?, ?, ?)"  # noqa: S608
        back = f"SELECT * FROM restored WHERE {place} > (?, ?, ?, ?)"  # noqa: S608
        made = list(reversed(db.execute(between + down, (*first, *last, gate.MADE_MAX)).fetchall()))
        made += db.execute(after + up, (*last, gate.AFTER_MAX)).fetchall()
        by_path = down.replace(" LIMIT", ", path DESC LIMIT")
        restored = list(reversed(db.execute(back + by_path, (*first, gate.RESTORED_MAX)).fetchall()))
        return gate.attempts(verdicts, made, restored)

    def suspects(self) -> list[str]:
        """See `GateState.suspects`."""
        with self._guard:
            return [row[0] for row in self._db.execute("SELECT DISTINCT key FROM suspect ORDER BY key")]

    def attempts(self, keys: Iterable[str], as_of: Any = None) -> list[dict[str, Any]]:
        """See `GateState.attempts`."""
        found: list[dict[str, Any]] = []
        wanted = tuple(keys)
        with self._guard:
            marks = ", ".join("?" * len(wanted))
            sql = f"SELECT DISTINCT track FROM suspect WHERE key IN ({marks}) ORDER BY track"  # noqa: S608
            for (track,) in self._db.execute(sql, wanted).fetchall():
                found += [a for a in self._derive(self._verdicts(track)) if a["key"] in wanted]
        return found


def hint_key(track: str, key: str) -> str:
    """The name of an attempt's row in the hint table, beside those of keys with an open failure."""
    return f"fix {key} {track}"
