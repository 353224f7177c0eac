"""Fills table `utilities` of the summaries: what experience taught about each memory.

The one fold is `utility.Experience`; here it is given the rows that it needs, of the connection's own tables: the newest recalls,
what followed them in their sessions, and everything that was said. So a generation, the newest events over it, and a rebuild
agree whatever the order in which anything came.
"""

from __future__ import annotations

from typing import Any

import duckdb

from .utility import RECALLS_KEPT, WITHIN, Experience

_KEPT = f"""CREATE OR REPLACE TEMP TABLE kept_recalls AS SELECT id, at_us, stream, seq, session, surface FROM recalls
    ORDER BY at_us DESC, stream DESC, seq DESC LIMIT {RECALLS_KEPT}"""  # noqa: S608 - numbers of our own
_ITEMS = """SELECT i.id, i.item, i.type, i.key FROM recall_items i JOIN kept_recalls USING (id)
    WHERE i.shown AND i.item <> '' ORDER BY i.rank"""
_OUTCOMES = f"""SELECT a.at_us, a.stream, a.seq, a.session, a.outcome, a.failed_key, a.key, a.verifier
    FROM actions a
    JOIN (SELECT session, min(at_us) AS first, max(at_us) AS last FROM kept_recalls GROUP BY session) r USING (session)
    WHERE a.at_us BETWEEN r.first AND r.last + {WITHIN}
        AND (a.outcome = 'failed' OR (a.outcome = 'ok' AND a.verifier NOT IN ('', 'none')))"""  # noqa: S608
_SAID = """SELECT at_us, stream, seq, 'feedback.given', target, useful FROM feedback WHERE target <> ''
    UNION ALL
    SELECT at_us, stream, seq, 'record.disputed', record, NULL FROM curations WHERE what = 'disputed' AND record <> ''"""
# What was said of a failure is said of its action, also where it was recalled long ago.
_NAMED = """SELECT DISTINCT item, key FROM recall_items WHERE shown AND type = 'failure' AND key <> '' AND item IN
    (SELECT target FROM feedback UNION SELECT record FROM curations WHERE what = 'disputed')"""


def fill(con: duckdb.DuckDBPyConnection, into: str = "utilities") -> None:
    """Fill the empty table `into` from the tables or views `recalls`, `recall_items`, `actions`, `feedback` and `curations`."""
    experience = _experience(con)
    rows = [
        [memory, found.value, found.visits, found.variance, found.refreshed_at, found.contradicted]
        for memory, found in sorted(experience.utilities().items())
    ]
    if rows:
        con.executemany(f"INSERT INTO {into} VALUES (?, ?, ?, ?, ?, ?)", rows)  # noqa: S608 - a name of our own


def _experience(con: duckdb.DuckDBPyConnection) -> Experience:
    found = Experience()
    con.execute(_KEPT)
    items: dict[str, list[dict[str, Any]]] = {}
    for id, item, type, key in con.execute(_ITEMS).fetchall():
        items.setdefault(id, []).append({"id": item, "type": type, "key": key})
    for id, at, stream, seq, session, surface in con.execute("SELECT * FROM kept_recalls").fetchall():
        _apply(found, "recall.decided", session, {"items": items.get(id, []), "surface": surface}, (at, stream, seq))
    for at, stream, seq, session, outcome, failed_key, key, verifier in con.execute(_OUTCOMES).fetchall():
        data = {"outcome": outcome, "failed_key": failed_key, "key": key, "verifier": verifier}
        _apply(found, "action.finished", session, data, (at, stream, seq))
    for at, stream, seq, kind, target, useful in con.execute(_SAID).fetchall():
        _apply(found, kind, "", {"target": target, "record": target, "useful": useful}, (at, stream, seq))
    found.names.update(con.execute(_NAMED).fetchall())
    con.execute("DROP TABLE kept_recalls")
    return found


def _apply(found: Experience, kind: str, session: str, data: dict[str, Any], order: tuple[int, str, int]) -> None:
    found.apply({"kind": kind, "actor": {"session": session}}, data, order)
