"""Labelled questions: documents, questions that some of them answer, and questions that none answers.

One JSON object a line: `{"type": "doc", "id", "text", "kind"}`, or
`{"type": "query", "id", "text", "kind", "family", "relevant": [ids]}`. Of a question that nothing answers `relevant` is empty and
`kind` says how near it sounds: none_far, none_near (the same field), none_close (written against one document), none_sibling (it
shares an error's name, a program or a folder with one). A question with `"against": NAME` is asked of the documents of that file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from projectmem_projections import corpus as corpora
from projectmem_projections import vectors
from projectmem_projections.corpus import Corpus
from projectmem_projections.documents import Document, Facts
from projectmem_projections.scope import Scope
from projectmem_projections.searching import Search
from projectmem_projections.vectors import Vectors

from projectmem.errors import BadInputError

if TYPE_CHECKING:
    from projectmem_projections.embed import Space

OWN = Path(corpora.__file__).parent / "data" / "recall-labelled.jsonl"
SCOPE = Scope("labelled")
NOW = 1_000_000_000  # every document is as old: only what it says counts


class Query:
    """One question, of the documents of the set named `against`, "" for its own.

    `relevant` ids of the documents that answer it, empty when none does; `family` groups what belongs together.
    """

    __slots__ = ("against", "family", "id", "kind", "relevant", "text")

    def __init__(self, id: str, text: str, kind: str, family: str, relevant: frozenset[str], against: str = "") -> None:
        self.against = against
        self.id, self.text, self.kind, self.family, self.relevant = id, text, kind, family, relevant


class Labelled:
    """A set of documents with questions about it. `name` for people."""

    __slots__ = ("documents", "name", "queries")

    def __init__(self, name: str, documents: list[tuple[str, str]], queries: list[Query]) -> None:
        self.name, self.documents, self.queries = name, documents, queries


def read(path: Path) -> Labelled:
    """A labelled file. Raises BadInputError naming the line that is wrong."""
    documents: list[tuple[str, str]] = []
    queries: list[Query] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise BadInputError(f"{path} does not exist: give a file of labelled questions") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInputError(f"{path} cannot be read ({why}): give a file of labelled questions") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if row["type"] == "doc":
                documents.append((str(row["id"]), str(row["text"])))
            else:
                family = str(row.get("family") or row["id"])
                relevant = frozenset(str(r) for r in row["relevant"])
                against = str(row.get("against", ""))
                queries.append(Query(str(row["id"]), str(row["text"]), str(row["kind"]), family, relevant, against))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInputError(
                f"{path}:{number}: not a labelled document or question ({type(error).__name__}: {error})"
            ) from error
    missing = {r for q in queries for r in q.relevant} - {id_ for id_, _ in documents}
    if missing:
        raise BadInputError(f"{path}: questions name documents that are not in the file: {', '.join(sorted(missing)[:5])}")
    return Labelled(path.stem, documents, queries)


def together(sets: Sequence[Labelled]) -> list[Labelled]:
    """The sets, with each question in the set whose documents it is asked of: its own where the other is not given."""
    known = {one.name for one in sets}
    out = []
    for one in sets:
        queries = [q for q in one.queries if q.against not in known or q.against == one.name]
        queries += [q for other in sets if other is not one for q in other.queries if q.against == one.name]
        out.append(Labelled(one.name, one.documents, queries))
    return out


@contextmanager
def searching(documents: Sequence[tuple[str, str]], embedder: Space | None) -> Iterator[Search]:
    """A search over texts, through the same corpus and index files that a log's recall uses. `documents`: (id, text)."""
    made = [Document(id_, "note", text, NOW, SCOPE, origin="agent") for id_, text in documents]
    made.sort(key=lambda d: (d.at, d.id))
    with tempfile.TemporaryDirectory() as folder:
        corpora.write(folder, made, {})
        index = None
        if embedder is not None:
            encoded, known = embedder.encode([d.searched for d in made])
            ids = [d.id for d, has in zip(made, known, strict=True) if has]
            vectors.write(folder, ids, encoded[known], embedder, {})
            index = Vectors(folder, embedder, {})
        corpus = Corpus(folder)
        try:
            yield Search(corpus, index, embedder, Facts())
        finally:
            corpus.close()
