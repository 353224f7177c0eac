"""The tables and views of a DuckDB generation with what they mean, taken from the SQL that makes them.

What is written here cannot go out of date: names and types come from DuckDB, the words from the comments in schema.sql,
failures.sql and views.sql. SCHEMA.md is this as a page (`python -m projectmem_projections.catalogue` prints it); a test holds
the two together.
"""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass

import duckdb

from .loading import SCHEMA_VERSION, VERSION, sql, views

_MADE = re.compile(r"((?:^--.*\n)*)^CREATE (TABLE|VIEW) (\w+)", re.MULTILINE)


_HEAD = """\
    # Tables and views of the summaries

    Schema version {schema} (`SELECT version FROM generation` gives {version}: this and the fold's). Generated from the SQL by
    `python -m projectmem_projections.catalogue`; do not edit. Ask with `projectmem sql`, export with `projectmem export`, or
    open `<home>/projections/duckdb/gen-*.duckdb` read-only with DuckDB. Times are microseconds since the epoch, UTC.

    Most tables share: `id` (event), `stream`, `seq` (its place in the log), `at_us` (when it happened), and of the actor
    `session`, `agent`, `harness`, `model`, `origin` (observed, agent, human, import). Order is always `(at_us, stream, seq)`.
    A view's rows are computed when asked. A column may be added in a later version; none changes its meaning within one.
"""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view: `columns` are (name, DuckDB type) in order, `doc` is one paragraph, `kind` table or view."""

    name: str
    kind: str
    doc: str
    columns: tuple[tuple[str, str], ...]


def relations() -> list[Relation]:
    """Every table and view that may be asked, in the order of the SQL files."""
    documented = {"failures": ("table", _prose(sql("failures.sql").split("\nWITH ")[0].split("\n--\n")[1]))}
    for text in (sql("schema.sql"), sql("views.sql")):
        for comment, kind, name in _MADE.findall(text):
            documented[name] = (kind.lower(), _prose(comment))
    with duckdb.connect(":memory:") as con:
        con.execute(sql("schema.sql"))
        con.execute("CREATE TABLE failures AS " + sql("failures.sql"))
        con.execute(views())
        found = []
        for name, (kind, doc) in documented.items():
            columns = con.execute(f"DESCRIBE {name}").fetchall()
            found.append(Relation(name, kind, doc, tuple((row[0], row[1]) for row in columns)))
    tables = [r for r in found if r.kind == "table"]
    return [*tables, *(r for r in found if r.kind == "view")]


def _prose(comment: str) -> str:
    """The lines of a comment as one paragraph; what a blank comment line separates from it belongs to the file."""
    lines = [line.removeprefix("--").strip() for line in comment.splitlines()]
    return " ".join(line for line in lines if line)


def page() -> str:
    """SCHEMA.md."""
    lines = textwrap.dedent(_HEAD).format(schema=SCHEMA_VERSION, version=VERSION).splitlines()
    for relation in relations():
        columns = ", ".join(f"`{name}` {type}" for name, type in relation.columns)
        lines += ["", f"## {relation.name} ({relation.kind})", ""]
        if relation.doc:
            lines += [*textwrap.wrap(relation.doc, 140), ""]
        lines += textwrap.wrap(columns, 140, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
