"""The cheapest question to the gate's snapshot [H]: is it certain that nothing on record can object to this input?

Asked before every tool call, and nearly always answered with yes. So it uses SQLite's C module alone: `sqlite3` (through
datetime) and `json` (through re) would double the time a hook process takes. It writes nothing but the note for the event
after the call. Whatever is not certain or not as expected is a no, and the caller opens the `Snapshot`, which explains.
"""

from __future__ import annotations

from .schema_sqlite import VERSION
from .tail import positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HINT_WORDS_MAX = 48  # inputs with more words are looked up by the first word only, and by at most HINT_ROWS_MAX rows
HINT_ROWS_MAX = 400
PENDING_MAX = 2048  # notes from pre-hook to post-hook that are kept; older ones belong to calls that never finished
BUSY_S = 0.1
# Pages of a connection that lives on. The default of 2 MB does not hold the inner pages of a million failures, so that a look-up
# among them cost a third more than among a thousand; no page is read ahead, a small file takes no more than before. No mmap:
# where another process cuts a file that is being replaced, what SQLite says as an error would be the end of this process.
CACHE = "PRAGMA cache_size = -16384"
# The file is derived from the log: no syncs, and the journal is kept for the next process.
FOR_WRITING: tuple[str, ...] = ("PRAGMA synchronous = OFF", "PRAGMA journal_mode = TRUNCATE", "BEGIN IMMEDIATE")


def opened(path: str) -> Any:
    """A connection to the snapshot, which must exist. Raises sqlite3.Error."""
    from .sqlite import quoted, sqlite3

    return sqlite3.connect(
        f"file:{quoted(path)}?mode=rw", timeout=BUSY_S, isolation_level=None, uri=True, check_same_thread=False
    )


def closed(path: str, db: Any) -> None:
    """Nothing is kept."""
    db.close()


connect, disconnect = opened, closed  # a resident process keeps its connections


def nothing_objects(
    path: str,
    home: str,
    words: frozenset[str],
    session: str,
    call: str,
    now: int,
    *,
    tool: str = "",
    tool_input: Any = None,
    mark: str = "",
    named: Callable[[], frozenset[str]] = frozenset,
) -> bool:
    """True when no open failure, label or rule can match an input that holds these words, as of the log's very end.

    path is the snapshot's, home the log's. Where rules are in force, `tool_input` of `tool` is looked at, and `named` gives the
    words of its folder and of its files' real names. With a `call` the note {"as_of": cursor, "t0": now} is left for its
    post-hook, with `mark` (no quotes, no controls) as its member "mcp".
    Never raises what a damaged or busy snapshot raises: that is False.
    """
    from .sqlite import sqlite3

    try:
        db = connect(path)
    except sqlite3.Error:
        return False
    try:
        db.execute("BEGIN")  # one look at the file for all questions
        cursor = _current(db, home)
        known = with_moved(db, words)
        objects = cursor is None or has_hint(db, known) or _ruled(db, tool, tool_input, known, named)
        db.execute("COMMIT")
        if cursor is None or objects:
            return False
        if call:
            note = '{"as_of":{' + ",".join(f'"{stream}":{seq}' for stream, seq in cursor) + f'}},"t0":{now}'
            note += f',"mcp":"{mark}"}}' if mark else "}"
            for statement in FOR_WRITING:
                db.execute(statement)
            put_note(db, session, call, note)
            db.execute("COMMIT")
        return True
    except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError):  # damage reads as anything
        return False
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
        disconnect(path, db)


def _current(db: Any, home: str) -> list[tuple[str, int]] | None:
    """(stream, seq) of each stream when the snapshot is of this version and at the log's end, else None."""
    if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
        return None
    rows = db.execute("SELECT stream, seq, segment, size FROM cursor ORDER BY stream").fetchall()
    known = {stream: (segment, size) for stream, _, segment, size in rows}
    ends = positions(home)
    if any(known.get(stream) != where for stream, where in ends.items()) or not all(_plain(row[0]) for row in rows):
        return None
    return [row[:2] for row in rows]


def _plain(stream: object) -> bool:
    return type(stream) is str and stream.isalnum() and stream.isascii()  # damage reads as any type


RULES_MAX = 64  # that are looked at one by one; where there are more, the call is looked at


def rules_in_force(db: Any) -> list[Any]:
    """Labels, clauses of decisions and rules of policies: those speak without any failure on record. At most RULES_MAX and one;
    more than are in force may be among them. Raises ValueError for what does not read."""
    labels = db.execute(f"SELECT data FROM label WHERE id NOT IN (SELECT id FROM unlabelled) LIMIT {RULES_MAX + 1}").fetchall()  # noqa: S608
    policies = db.execute("""SELECT data FROM policy WHERE instr(data, '"rules":[]') = 0""").fetchall()
    if not labels and not policies:
        return []
    from projectmem_logs.fastjson import loads

    found = [loads(row[0]) for row in labels]
    for row in policies:
        found += loads(row[0])["policy"].get("rules", ())
    return found


def _ruled(db: Any, tool: str, tool_input: Any, words: frozenset[str], named: Callable[[], frozenset[str]]) -> bool:
    """Whether a label or a rule may cover the call."""
    rules = rules_in_force(db)
    if not rules:
        return False
    from projectmem_gate.rule_words import may_cover

    return len(rules) > RULES_MAX or may_cover(rules, tool, tool_input, words, with_moved(db, named()))


MOVES = "SELECT subject FROM touch WHERE type = 'move' ORDER BY at DESC, stream DESC, seq DESC, subject DESC LIMIT 256"


def moves(db: Any) -> list[str]:
    """The subjects of the newest moves of files, oldest first."""
    return [row[0] for row in reversed(db.execute(MOVES).fetchall())]


def with_moved(db: Any, words: frozenset[str]) -> frozenset[str]:
    """The words, and those of the names before of files that were moved on record and may be named in the input."""
    found = moves(db)
    if not found:
        return words
    from projectmem_gate.moves import words as moved

    return moved(words, found)


def has_hint(db: Any, words: frozenset[str]) -> bool:
    """Whether an open failure's key may occur in an input that holds these words. False is certain."""
    if "*" in words:
        return db.execute("SELECT 1 FROM hint LIMIT 1").fetchone() is not None
    known = [w for w in words if w]
    if len(known) <= HINT_WORDS_MAX:
        # One index look-up per word, deeper only where the words before matched: flat in the number of rows.
        marks = ", ".join("?" * (len(known) + 1))
        sql = f"SELECT 1 FROM hint WHERE w1 IN ({marks}) AND w2 IN ({marks}) AND w3 IN ({marks}) LIMIT 1"  # noqa: S608
        return db.execute(sql, ["", *known] * 3).fetchone() is not None
    return _has_hint_among_many(db, known, words)


def _has_hint_among_many(db: Any, known: list[str], words: frozenset[str]) -> bool:
    rows = db.execute(f"SELECT w1, w2, w3 FROM hint LIMIT {HINT_ROWS_MAX}").fetchall()  # noqa: S608
    if len(rows) < HINT_ROWS_MAX:  # all there is: cheaper to ask the rows about the words than the other way round
        return any(all(not w or w in words for w in row) for row in rows)
    seen = 0
    for start in range(0, len(known), 500):
        chunk = ["", *known[start : start + 500]]
        marks = ", ".join("?" * len(chunk))
        sql = f"SELECT w2, w3 FROM hint WHERE w1 IN ({marks}) LIMIT {HINT_ROWS_MAX}"  # noqa: S608
        for second, third in db.execute(sql, chunk):
            if (not second or second in words) and (not third or third in words):
                return True
            seen += 1
            if seen >= HINT_ROWS_MAX:  # not worth reading on: parsing the input costs no more
                return True
    return False


def put_note(db: Any, session: str, call: str, data: str) -> None:
    """A note of a pre-hook. The caller holds a write transaction. Only the newest PENDING_MAX are kept."""
    newest = db.execute("REPLACE INTO pending (session, call, data) VALUES (?, ?, ?)", (session, call, data)).lastrowid
    db.execute("DELETE FROM pending WHERE n <= ?", (newest - PENDING_MAX,))
