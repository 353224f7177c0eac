"""Many imported calls in one transaction of the gate's snapshot: each row is written once, however many of them tell of it.

The result is that of applying one operation after the other, which all commute (fold.py).
"""

from __future__ import annotations

from projectmem_gate import history

from . import fold
from .fold_rows import fix_op, row_text
from .snapshot_file import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .fold_rows import Folded

    Piece = tuple[int, str, int, str, tuple[str, str, str], str]  # at, stream, seq, t, words, the entry's row as text
    Put = Callable[[str, list[dict[str, Any]], tuple[Any, ...] | None], None]

ASKED = 500  # keys that are looked up together


class Rows:
    """What is to be written at the end of a transaction."""

    def __init__(self, of: Mapping[str, Folded]) -> None:
        self.of = of  # what the events with these ids fold to
        self.seen: list[tuple[str, str]] = []
        self.touches: dict[tuple[str, str], tuple[int, str, int, str, str]] = {}
        self.oks: dict[tuple[str, str], tuple[int, str, int, str, str, str]] = {}
        self.entries: dict[str, list[Piece]] = {}
        self.fixes: list[tuple[Any, ...]] = []

    def take(self, stream: str, seq: int, id: str) -> bool:
        """Take in the event at this place, if it is known what it folds to."""
        folded = self.of.get(id)
        if folded is None:
            return False
        seen, entries, touches, oks, fixes, _ = folded
        self.seen += seen
        for key, t, at, words, rest in entries:
            piece = at, stream, seq, t, words, row_text(t, at, stream, seq, id, rest)
            self.entries.setdefault(key, []).append(piece)
        for type, subject, at, session in touches:
            touch = at, stream, seq, session, id
            known = self.touches.get((type, subject))
            if known is None or touch > known:
                self.touches[type, subject] = touch
        for family, key, at, text, session in oks:
            ok = at, stream, seq, id, text, session
            known_ok = self.oks.get((family, key))
            if known_ok is None or ok > known_ok:
                self.oks[family, key] = ok
        for fix in fixes:
            self.fixes.append(fix_op(fix, stream, seq, id))
        return True

    def write(self, db: Any, sql: dict[str, str], put: Put) -> None:
        """Write all but the fixes. `sql`: the statements by table; `put` writes a history that has a row, or too many entries."""
        db.executemany(sql["seen"], sorted(self.seen))
        touches = sorted(self.touches.items())
        db.executemany(sql["touch"], [(*of, int(of[0] == "read"), *touch) for of, touch in touches])
        db.executemany(sql["ok"], [(*of, *ok) for of, ok in sorted(self.oks.items())])
        self._write_histories(db, put)

    def _write_histories(self, db: Any, put: Put) -> None:
        keys = sorted(self.entries)
        known: dict[str, tuple[Any, ...]] = {}
        for begin in range(0, len(keys), ASKED):
            some = keys[begin : begin + ASKED]
            marks = ", ".join("?" * len(some))
            found = db.execute(f"SELECT key, w1, w2, w3, open, data FROM history WHERE key IN ({marks})", some)  # noqa: S608
            known.update((row[0], row[1:]) for row in found)
        fresh: list[tuple[Any, ...]] = []
        hints: list[tuple[str, ...]] = []
        for key in keys:
            pieces, row = self.entries[key], known.get(key)
            if row is None and len(pieces) <= history.KEEP:
                words, is_open, data = _fresh(pieces)
                fresh.append((*words, is_open, data, key))
                if is_open:
                    hints.append((*words, key))
            else:
                more = fold.unpack(decode(f"[{','.join([piece[5] for piece in pieces])}]"))
                put(key, history.merge_all(fold.unpack(decode(row[4])) if row else (), more), row)
        db.executemany("INSERT INTO history (w1, w2, w3, open, data, key) VALUES (?, ?, ?, ?, ?, ?)", fresh)
        db.executemany("INSERT OR IGNORE INTO hint VALUES (?, ?, ?, ?)", hints)


def _fresh(pieces: list[Piece]) -> tuple[tuple[str, str, str], int, str]:
    """(hint words, whether it is open, the text) of a key's first entries: imported outcomes, no more than are kept."""
    if len(pieces) == 1:
        (_, _, _, t, words, text) = pieces[0]
        return words, int(t == "fail"), f"[{text}]"
    pieces.sort()
    last = next((piece[4] for piece in reversed(pieces) if piece[3] == "fail"), ("", "", ""))
    return last, int(pieces[-1][3] == "fail"), f"[{','.join([piece[5] for piece in pieces])}]"
