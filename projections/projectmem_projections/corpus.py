"""The documents of a recall generation and their postings: one SQLite file, written once, read by anyone without a lock.

On the hook's path for reading. Rows are numbered from 0 by (at, id). Layout: `meta` (n: its place in META, body), `doc` (row,
body as JSON), `post` (n, token, rows as little-endian uint32, impacts as little-endian uint16) and `bucket` (lookups.py) leads
from a token to its posting, and from an action key, an issue or an event to rows. Every row has a checksum under its own name or
number, and nothing is looked for but what must be there: whatever rots is found out when it is read, never left out.
"""

from __future__ import annotations

import os
import struct

from projectmem_logs.fastjson import loads

from projectmem_projections import calibration, glosses, lexical, lookups, published
from projectmem_projections.documents import TYPES, Document
from projectmem_projections.errors import ProjectionError
from projectmem_projections.scope import Scope
from projectmem_projections.sqlite import quoted, sqlite3
from projectmem_projections.utility import Experience

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from projectmem_projections.following import Position

SCHEMA = "5"
FILE = "corpus.sqlite"
_TABLES = f"""
CREATE TABLE meta (n INTEGER PRIMARY KEY, crc INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE doc (row INTEGER PRIMARY KEY, crc INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE post (n INTEGER PRIMARY KEY, crc INTEGER NOT NULL, token TEXT NOT NULL, rows BLOB NOT NULL, impacts BLOB NOT NULL);
{lookups.TABLE}
"""
META = ("schema", "head", "experience", "scope_of", "expires", "types", "ids")  # names of the rows of `meta`
TOKENS, KEYS, SOURCES = range(3)  # kinds of `bucket`
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


WORDS = f"{lexical.REVISION}/{glosses.REVISION}/{calibration.SCHEMA}"  # what the postings and the background were made with


class CorpusError(ProjectionError):
    """The file cannot be used: missing, damaged, or of another version. Rebuild it from the log."""


def write(
    folder: str,
    documents: Sequence[Document],
    position: Position,
    changed_at: int = 0,
    experience: Mapping[str, Any] | None = None,
    held: Mapping[str, str] | None = None,
) -> None:
    """Write `folder`/corpus.sqlite. `documents`: ordered by (at, id). `position`: of the log they reflect, see `following`.

    experience  `Experience.to_state` of the same log
    held        what waits for a person and is therefore not among the documents: id -> what it contradicts
    """
    from json import dumps  # not for a hook, which only reads

    path = os.path.join(folder, FILE)
    postings, mean = lexical.invert([lexical.counts(d.searched) for d in documents])
    tokens = sorted(postings)
    scopes: dict[Scope, int] = {}
    codes = [scopes.setdefault(d.scope, len(scopes)) for d in documents]
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _TABLES)
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO doc VALUES (?, ?, ?)",
            ((row, lookups.check(f"doc {row}", body), body) for row, body in enumerate(map(_body, documents, codes))),
        )
        connection.executemany(
            "INSERT INTO post VALUES (?, ?, ?, ?, ?)", (_post(n, t, *postings[t]) for n, t in enumerate(tokens))
        )
        buckets = lookups.write(
            connection,
            (
                ((token, n) for n, token in enumerate(tokens)),
                ((d.key, row) for row, d in enumerate(documents) if d.key),
                ((source, row) for row, d in enumerate(documents) for source in d.sources),
            ),
        )
        head = {
            "lexical": WORDS,
            "count": len(documents),
            "mean": repr(mean),
            "changed_at": changed_at,
            "position": dict(position),
            "scopes": [s.to_data() for s in scopes],
            "held": dict(held or {}),
            "buckets": buckets,
        }
        meta = {
            "schema": SCHEMA.encode(),
            "head": dumps(head, sort_keys=True).encode(),
            "experience": dumps(experience or {}, sort_keys=True).encode(),
            "scope_of": struct.pack(f"<{len(codes)}I", *codes),
            "expires": struct.pack(f"<{len(codes)}q", *(d.expires_at for d in documents)),
            "types": bytes(TYPES.index(d.type) for d in documents),
            "ids": "\n".join(d.id for d in documents).encode(),
        }
        rows = ((n, lookups.check(f"meta {name}", meta[name]), meta[name]) for n, name in enumerate(META))
        connection.executemany("INSERT INTO meta VALUES (?, ?, ?)", rows)
        connection.execute("COMMIT")
    finally:
        connection.close()


class Corpus:
    """An open corpus, read-only. Raises CorpusError when the file cannot be used.

    One that turns out damaged while it is read is put aside: the next question is answered from the log and builds a new one.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._types: bytes | None = None
        path = os.path.join(folder, FILE)
        if not os.path.isfile(path):
            raise CorpusError(f"no recall corpus at {path}")
        try:
            # immutable: published generations are never written again, so no lock and no journal are looked for.
            uri = f"file:{quoted(path)}?immutable=1"
            self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            if self._meta("schema") != SCHEMA.encode():
                raise CorpusError(f"{path} was written by another version")
            head = loads(self._meta("head"))
            if head["lexical"] != WORDS:
                raise CorpusError(f"{path} was written by another version")
            self.count = int(head["count"])
            self.mean = float(head["mean"])
            self.changed_at = int(head["changed_at"])
            self.position: Position = {s: (p[0], p[1], p[2]) for s, p in head["position"].items()}
            self.scopes = [Scope(**s) for s in head["scopes"]]
            self.held: dict[str, str] = head["held"]
            self._buckets: list[int] = head["buckets"]
        except (sqlite3.Error, KeyError, ValueError, TypeError, AttributeError) as error:
            if str(error).startswith("no such column"):  # a version of other tables, whose own mark cannot be read
                raise CorpusError(f"{path} was written by another version") from error
            raise CorpusError(f"{path} cannot be read ({type(error).__name__}: {error})") from error

    def _meta(self, name: str) -> bytes:
        """Raises ValueError where it is not as it was written, sqlite3.Error where it cannot be read."""
        for crc, body in self._db.execute("SELECT crc, body FROM meta WHERE n = ?", (META.index(name),)):
            if type(body) is bytes and crc == lookups.check(f"meta {name}", body):
                return body
        raise ValueError(f"its {name} is not as it was written")

    def _column(self, name: str, width: int) -> bytes:
        try:
            body = self._meta(name)
            if len(body) != width * self.count:
                raise ValueError(f"its {name} are not of {self.count} documents")
        except (sqlite3.Error, ValueError) as error:
            raise self.damaged(error) from error
        return body

    @property
    def scope_bytes(self) -> bytes:
        """uint32 per row: index into `scopes`."""
        return self._column("scope_of", 4)

    @property
    def expiry_bytes(self) -> bytes:
        """int64 per row: us, 0 = never."""
        return self._column("expires", 8)

    def experience(self) -> Experience:
        """What recalls had led to up to this generation. Raises CorpusError when it is damaged."""
        found = Experience()
        try:
            state = loads(self._meta("experience"))
            if state:
                found.add_state(state)
        except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError) as error:
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
        return {row: self._document(row) for row in rows}

    def newest(self, type: str, limit: int) -> list[tuple[int, Document]]:
        """(row, document) of the newest documents of a type, newest first."""
        if self._types is None:
            self._types = self._column("types", 1)
        code, found, end = TYPES.index(type), list[int](), self.count
        while len(found) < limit and (end := self._types.rfind(code, 0, end)) >= 0:
            found.append(end)
        return list(self.documents(found).items())

    def keyed(self, key: str) -> list[tuple[int, str, int]]:
        """(row, type, at) of the documents with an action key or issue name."""
        found = self.documents(self._find(KEYS, key))
        return [(row, d.type, d.at) for row, d in found.items() if d.key == key]

    def derived(self, ids: Iterable[str]) -> set[int]:
        """Rows made from any of these events: as themselves, their remedy, or one of their causes."""
        found = ((id_, self.documents(self._find(SOURCES, id_))) for id_ in ids)
        return {row for id_, documents in found for row, d in documents.items() if id_ in d.sources}

    def ids(self) -> list[str]:
        """The id of every row, in order."""
        try:
            found = self._meta("ids").decode().split("\n") if self.count else []
        except (sqlite3.Error, ValueError) as error:
            raise self.damaged(error) from error
        if len(found) != self.count:
            raise self.damaged(f"{self.count - len(found)} of {self.count} documents are gone")
        return found

    def postings(self, tokens: Iterable[str]) -> dict[str, tuple[bytes, bytes]]:
        """Token -> (rows, impacts) as stored; tokens that no document has are absent."""
        out = {}
        for token in tokens:
            for n in self._find(TOKENS, token):
                found = self._execute("SELECT crc, token, rows, impacts FROM post WHERE n = ?", n)
                try:
                    ((crc, name, rows, impacts),) = found
                    if crc != lookups.check(f"post {n} {name}", rows, impacts):
                        raise ValueError("a posting is not as it was written")
                except (ValueError, TypeError, AttributeError) as error:
                    raise self.damaged(error) from error
                if name == token:  # else its hash is the same
                    out[token] = (rows, impacts)
        return out

    def _find(self, kind: int, text: str) -> list[int]:
        try:
            return lookups.find(self._execute, self._buckets, kind, text)
        except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
            raise self.damaged(error) from error

    def _execute(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self.damaged(error) from error

    def _document(self, row: int) -> Document:
        try:
            ((crc, body),) = self._execute("SELECT crc, body FROM doc WHERE row = ?", row)
            if crc != lookups.check(f"doc {row}", body):
                raise ValueError("a document is not as it was written")
            fields = loads(body)
            return Document(**{**fields, "scope": self.scopes[fields["scope"]], "causes": tuple(fields["causes"])})
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise self.damaged(error) from error


def unpack(postings: Mapping[str, tuple[bytes, bytes]]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Stored postings as integers (without numpy)."""
    return {
        token: (struct.unpack(f"<{len(rows) // 4}I", rows), struct.unpack(f"<{len(impacts) // 2}H", impacts))
        for token, (rows, impacts) in postings.items()
    }


def _post(n: int, token: str, rows: Sequence[int], impacts: Sequence[int]) -> tuple[int, int, str, bytes, bytes]:
    packed = struct.pack(f"<{len(rows)}I", *rows), struct.pack(f"<{len(impacts)}H", *impacts)
    return (n, lookups.check(f"post {n} {token}", *packed), token, *packed)


def _body(document: Document, scope: int) -> bytes:
    from json import dumps

    fields = {name: getattr(document, name) for name in _FIELDS}
    return dumps({**fields, "scope": scope}, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
