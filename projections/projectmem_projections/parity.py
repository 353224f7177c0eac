"""Does what is served equal what the log gives when it is folded anew? For `doctor`, and for tests of any history.

Each projection is compared with a fresh fold of the same events, made in memory and thrown away: the summaries table by table,
the gate's snapshot and the recall corpus byte by byte. Nothing is written and nothing is mended; `rebuild` does that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from projectmem_logs.reader import read_events

from . import generations, published
from .corpus import Corpus, CorpusError
from .documents import Document, Facts
from .errors import ProjectionError
from .generations import Summaries
from .glance import folder
from .loading import DERIVED, TABLES, load_log
from .memory import MemoryState
from .overlay import connect
from .snapshot import Snapshot
from .tail import positions, segments

TRIES = 3  # the log may grow while it is looked at


@dataclass(frozen=True, slots=True)
class Parity:
    """One projection: `differs` names what is not as the log has it, [] where all is; `note` why it was not compared, else ""."""

    name: str
    differs: tuple[str, ...] = ()
    note: str = ""


def log_bytes(home: str) -> int:
    """The size of the log: what a comparison has to read."""
    total = 0
    for stream in positions(home):
        where = os.path.join(home, "log", stream)
        total += sum(os.path.getsize(os.path.join(where, name)) for name in segments(home, stream))
    return total


def compare(home: str, tell: Callable[[int, int], None] | None = None) -> list[Parity]:
    """Every projection against the log. `tell` hears (compared, of how many). Raises OSError where the log cannot be read."""
    found = list[Parity]()
    for name, check in (("summaries", _summaries), ("snapshot", _snapshot), ("recall", _recall)):
        if tell is not None:
            tell(len(found), 3)
        try:
            found.append(check(home))
        except ProjectionError as error:
            found.append(Parity(name, (str(error),)))
    return found


def fingerprints(summaries: Summaries) -> dict[str, tuple[int, int]]:
    """Of each table and view (rows, a sum of hashes of the rows): equal for equal rows in any order, by one version of DuckDB.

    Views that need a clock are asked at the time of the newest event.
    """
    summaries.query("SET VARIABLE now_us = (SELECT coalesce(max(at_us), 0) FROM events)")
    found = {}
    for name in (*TABLES, *DERIVED, *summaries.views()):
        statement = f"SELECT count(*) AS n, coalesce(sum(hash(t)::HUGEINT), 0) AS h FROM {name} t"  # noqa: S608
        (row,) = summaries.query(statement)
        found[name] = (int(row["n"]), int(row["h"]))
    summaries.query("RESET VARIABLE now_us")
    return found


def _summaries(home: str) -> Parity:
    for _ in range(TRIES):
        with generations.open_current(home) as served:
            live, cursor = fingerprints(served), served.cursor()
        with connect(spill=generations.spill_of(home)) as con:
            load_log(con, home)
            fresh = Summaries(con, [])
            if fresh.cursor() == cursor:
                anew = fingerprints(fresh)
                return Parity("summaries", tuple(name for name in anew if anew[name] != live[name]))
    return Parity("summaries", note="the log grew faster than it could be compared")


def _snapshot(home: str) -> Parity:
    path = os.path.join(home, "projections", "gate.sqlite")
    if not os.path.exists(path):
        return Parity("snapshot", note="not built yet")
    with Snapshot(path) as snapshot:
        if snapshot.dirty:
            return Parity("snapshot", note="an erasure is not worked in yet")
        cursor, live = snapshot.cursor(), snapshot.canonical_dump()
        if snapshot.cursor() != cursor:
            return Parity("snapshot", note="it was written meanwhile")
    memory = MemoryState()
    memory.apply(read_events(home, upto=cursor), gaps=True)
    if memory.cursor() != cursor:
        return Parity("snapshot", ("the log no longer holds what it was made from",))
    return Parity("snapshot", () if memory.canonical_dump() == live else ("the gate's state",))


def _recall(home: str) -> Parity:
    where = published.current(folder(home))
    if where is None:
        return Parity("recall", note="not built yet")
    try:
        corpus = Corpus(where)
    except CorpusError as error:
        return Parity("recall", (str(error),))
    try:
        live = [corpus.documents([row])[row] for row in range(corpus.count)]
        upto = {stream: seq for stream, (_, _, seq) in corpus.position.items()}
    finally:
        corpus.close()
    facts = Facts()
    facts.apply(read_events(home, upto=upto))
    documents = facts.documents()
    differs, note = _index(home, where, documents, {stream: seq for stream, seq in upto.items() if seq})
    return Parity("recall", (*(() if documents == live else ("the documents",)), *differs), note)


def _index(home: str, where: str, documents: list[Document], position: dict[str, int]) -> tuple[tuple[str, ...], str]:
    """What the index of vectors lacks or has too much of beside these documents, and why it was not compared, else ""."""
    from . import minilm
    from .vectors import MANIFEST, Vectors, VectorsError, available

    if available() or not os.path.exists(os.path.join(where, MANIFEST)):
        return (), available() or "no index of vectors was built"
    embedder, _ = minilm.chosen(home)
    try:
        ids = set(Vectors(where, embedder, position).ids)
    except VectorsError as error:
        return (str(error),), ""
    absent = [d.searched for d in documents if d.id not in ids]
    missing = int(embedder.encode(absent)[1].sum()) if absent else 0
    ghosts = len(ids - {d.id for d in documents})
    found = ((missing, "vectors are missing"), (ghosts, "vectors are of what is no longer there"))
    return tuple(f"{number} {what}" for number, what in found if number), ""
