"""The documents of a recall generation and their postings: one SQLite file, written once, read by anyone without a lock.

On the hook's path for reading. Rows are numbered from 0 by (at, id). Layout: `meta` (name, value), `doc` (row, id, type, at, key,
body: its CRC-32 in eight hexadecimal digits and then JSON), `post` (token, rows as little-endian uint32, impacts as little-endian
uint16).
"""

from __future__ import annotations

import os
import struct

from projectmem_logs.fastjson import loads

from projectmem_projections import glosses, lexical, published
from projectmem_projections.documents import Document
from projectmem_projections.errors import ProjectionError
from projectmem_projections.scope import Scope
from projectmem_projections.sqlite import quoted, sqlite3
from projectmem_projections.utility import Experience

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from projectmem_projections.following import Position

SCHEMA = "4"
FILE = "corpus.sqlite"
CHECK = 8  # characters in front of a body
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE doc (row INTEGER PRIMARY KEY, id TEXT NOT NULL, type TEXT NOT NULL, at INTEGER NOT NULL, key TEXT NOT NULL,
                  body TEXT NOT NULL);
CREATE TABLE source (id TEXT NOT NULL, row INTEGER NOT NULL);
CREATE TABLE post (token TEXT PRIMARY KEY, rows BLOB NOT NULL, impacts BLOB NOT NULL) WITHOUT ROWID;
"""
_INDEXES = """
CREATE INDEX by_type ON doc (type, at);
CREATE INDEX by_key ON doc (key);
CREATE INDEX by_source ON source (id);
"""
_FIELDS = (
    "id",
    "type",
    "text",
    "at",
    "origin",
    "verifier",
    "key",
    "remedy",
    "remedy_id",
    "count",
    "review_at",
    "expires_at",
    "causes",
    "corrects",
    "cls",
)


WORDS = f"{lexical.REVISION}/{glosses.REVISION}"  # what the postings were made with


class CorpusError(ProjectionError):
    """The file cannot be used: missing, damaged, or of another version. Rebuild it from the log."""


def write(
    folder: str,
    documents: Sequence[Document],
    position: Position,
    changed_at: int = 0,
    experience: Mapping[str, Any] | None = None,
) -> None:
    """Write `folder`/corpus.sqlite. `documents`: ordered by (at, id). `position`: of the log they reflect, see `following`.

    experience  `Experience.to_state` of the same log
    """
    from json import dumps  # not for a hook, which only reads

    path = os.path.join(folder, FILE)
    postings, mean = lexical.invert([lexical.counts(d.searched) for d in documents])
    scopes: dict[Scope, int] = {}
    codes = [scopes.setdefault(d.scope, len(scopes)) for d in documents]
    meta = {
        "schema": SCHEMA,
        "lexical": WORDS,
        "count": len(documents),
        "mean": repr(mean),
        "changed_at": changed_at,
        "experience": dumps(experience or {}, sort_keys=True),
        "position": dumps(dict(position), sort_keys=True),
        "scopes": dumps([s.to_data() for s in scopes]),
        "scope_of": struct.pack(f"<{len(codes)}I", *codes),
        "expires": struct.pack(f"<{len(codes)}q", *(d.expires_at for d in documents)),
    }
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _TABLES)
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", sorted(meta.items()))
        connection.executemany(
            "INSERT INTO doc VALUES (?, ?, ?, ?, ?, ?)",
            ((row, d.id, d.type, d.at, d.key, _body(d, codes[row])) for row, d in enumerate(documents)),
        )
        connection.executemany(
            "INSERT INTO post VALUES (?, ?, ?)",
            (
                (token, struct.pack(f"<{len(rows)}I", *rows), struct.pack(f"<{len(rows)}H", *impacts))
                for token, (rows, impacts) in sorted(postings.items())
            ),
        )
        connection.executemany(
            "INSERT INTO source VALUES (?, ?)", ((s, row) for row, d in enumerate(documents) for s in d.sources)
        )
        connection.execute("COMMIT")
        connection.executescript(_INDEXES)
    finally:
        connection.close()


class Corpus:
    """An open corpus, read-only. Raises CorpusError when the file cannot be used.

    One that turns out damaged while it is read is put aside: the next question is answered from the log and builds a new one.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        path = os.path.join(folder, FILE)
        if not os.path.isfile(path):
            raise CorpusError(f"no recall corpus at {path}")
        try:
            # immutable: published generations are never written again, so no lock and no journal are looked for.
            uri = f"file:{quoted(path)}?immutable=1"
            self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            meta = dict(self._db.execute("SELECT name, value FROM meta"))
            if (meta["schema"], meta["lexical"]) != (SCHEMA, WORDS):
                raise CorpusError(f"{path} was written by another version")
            self.count = int(meta["count"])
            self.mean = float(meta["mean"])
            self.changed_at = int(meta["changed_at"])
            self._experience: str = meta["experience"]
            self.position: Position = {s: (p[0], p[1], p[2]) for s, p in loads(meta["position"]).items()}
            self.scopes = [Scope(**s) for s in loads(meta["scopes"])]
            self.scope_bytes: bytes = meta["scope_of"]  # uint32 per row: index into scopes
            self.expiry_bytes: bytes = meta["expires"]  # int64 per row: us, 0 = never
            if len(self.scope_bytes) != 4 * self.count or len(self.expiry_bytes) != 8 * self.count:
                raise CorpusError(f"{path} is damaged: its columns do not have {self.count} rows")
        except (sqlite3.Error, KeyError, ValueError, TypeError) as error:
            raise CorpusError(f"{path} cannot be read ({type(error).__name__}: {error})") from error

    def experience(self) -> Experience:
        """What recalls had led to up to this generation. Raises CorpusError when it is damaged."""
        found = Experience()
        try:
            state = loads(self._experience)
            if state:
                found.add_state(state)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.damaged(error) from error
        return found

    def damaged(self, error: Exception | str) -> CorpusError:
        """Put this generation aside; the error to raise."""
        published.disown(self._folder)
        return CorpusError(f"the recall corpus is damaged ({error}): it is put aside and built anew from the log; ask again")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def __del__(self) -> None:
        # Python 3.13 complains of a connection that is collected open, also after a constructor that raised.
        if hasattr(self, "_db"):
            self._db.close()

    def documents(self, rows: Iterable[int]) -> dict[int, Document]:
        """The documents of some rows."""
        out = {}
        for row in rows:
            for (body,) in self._execute("SELECT body FROM doc WHERE row = ?", row):
                out[row] = self._document(body)
            if row not in out:
                raise self.damaged(f"document {row} is gone")
        return out

    def newest(self, type: str, limit: int) -> list[tuple[int, Document]]:
        """(row, document) of the newest documents of a type, newest first."""
        query = "SELECT row, body FROM doc WHERE type = ? ORDER BY at DESC, row DESC LIMIT ?"
        return [(row, self._document(body)) for row, body in self._execute(query, type, limit)]

    def keyed(self, key: str) -> list[tuple[int, str, int]]:
        """(row, type, at) of the documents with an action key or issue name."""
        return self._execute("SELECT row, type, at FROM doc WHERE key = ? ORDER BY row", key)

    def derived(self, ids: Iterable[str]) -> set[int]:
        """Rows made from any of these events: as themselves, their remedy, or one of their causes."""
        return {row for id_ in ids for (row,) in self._execute("SELECT row FROM source WHERE id = ?", id_)}

    def ids(self) -> list[str]:
        """The id of every row, in order."""
        found = [id_ for (id_,) in self._execute("SELECT id FROM doc ORDER BY row")]
        if len(found) != self.count:
            raise self.damaged(f"{self.count - len(found)} of {self.count} documents are gone")
        return found

    def postings(self, tokens: Iterable[str]) -> dict[str, tuple[bytes, bytes]]:
        """Token -> (rows, impacts) as stored; tokens that no document has are absent."""
        out = {}
        for token in tokens:
            for rows, impacts in self._execute("SELECT rows, impacts FROM post WHERE token = ?", token):
                out[token] = (rows, impacts)
        return out

    def _execute(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self.damaged(error) from error

    def _document(self, body: str) -> Document:
        try:
            if body[:CHECK] != _check(body[CHECK:]):
                raise ValueError("a document is not as it was written")
            fields = loads(body[CHECK:])
            return Document(**{**fields, "scope": self.scopes[fields["scope"]], "causes": tuple(fields["causes"])})
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise self.damaged(error) from error


def unpack(postings: Mapping[str, tuple[bytes, bytes]]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Stored postings as integers (without numpy)."""
    return {
        token: (struct.unpack(f"<{len(rows) // 4}I", rows), struct.unpack(f"<{len(impacts) // 2}H", impacts))
        for token, (rows, impacts) in postings.items()
    }


def _body(document: Document, scope: int) -> str:
    from json import dumps

    fields = {name: getattr(document, name) for name in _FIELDS}
    text = dumps({**fields, "scope": scope}, ensure_ascii=False, sort_keys=True)
    return _check(text) + text


def _check(text: str) -> str:
    from zlib import crc32  # only where a document is read or written

    return f"{crc32(text.encode()):08x}"
