"""`sql` and `export`: the summaries for people who want to ask for themselves, and for other programs."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from projectmem import output
from projectmem.cli import common
from projectmem.cli.common import EXITS, Json, Root


def register(parent: typer.Typer) -> None:
    """Add the commands to the application."""
    parent.command(epilog=EXITS)(sql)
    parent.command(epilog=EXITS)(export)


def sql(
    query: Annotated[str, typer.Argument(help="One SELECT; `-` reads it from standard input.", show_default=False)] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="At most so many rows; 0 for all.")] = 100,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Ask the summaries in SQL, read-only.

    Without a question it lists the tables and views. DuckDB's dialect; times are microseconds since the epoch.
    Nothing can be written, and no other file read.

    `projectmem sql "SELECT state, count(*) FROM failure_states GROUP BY state"`
    """
    from projectmem import tabular
    from projectmem.errors import BadInputError

    if as_csv and as_json:
        raise BadInputError("give --json or --csv, not both")
    place = common.open_place(root)
    if not query:
        from projectmem_projections.catalogue import relations

        found = relations()
        if as_json:
            common.emit([{"name": r.name, "kind": r.kind, "doc": r.doc, "columns": dict(r.columns)} for r in found])
        else:
            for line in tabular.catalogue(found, common.width()):
                common.say(line)
        return
    _ask(place.home, sys.stdin.read() if query == "-" else query, limit, as_csv, as_json)


def _ask(home: str, statement: str, limit: int, as_csv: bool, as_json: bool) -> None:
    from projectmem_projections import querying

    from projectmem import tabular
    from projectmem.errors import BadInputError

    notices = list[str]()
    try:
        with output.Waiting("asking"):
            answer = querying.query(home, statement, limit=limit, now=common.now(), notices=notices)
    except querying.QueryRefused as exc:
        raise BadInputError(str(exc)) from None
    common.notices(notices)
    if as_json:
        common.emit(tabular.records(answer))
    elif as_csv:
        common.say(tabular.csv_text(answer))
    else:
        for line in tabular.lines(answer, common.width()):
            common.say(line)
        if not answer.rows:
            common.note("no rows")
    if answer.more:
        common.note(f"there are more than {limit} rows: --limit 0 shows all")


def export(
    parquet: Annotated[str, typer.Option("--parquet", metavar="DIR", help="Write Parquet files there.", show_default=False)] = "",
    csv: Annotated[str, typer.Option("--csv", metavar="DIR", help="Write CSV files there.", show_default=False)] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Write the summaries as files for other programs.

    One file for each table and view of `projectmem sql`, and a manifest with the log position and the counts.
    DIR must be new or empty. One of --parquet and --csv is needed.
    """
    from projectmem_projections import exporting

    from projectmem.errors import BadInputError

    wanted = [(format, target) for format, target in (("parquet", parquet), ("csv", csv)) if target]
    if len(wanted) != 1:
        raise BadInputError("say where to and as what: --parquet DIR or --csv DIR")
    place, notices = common.open_place(root), list[str]()
    format, target = wanted[0][0], os.path.abspath(wanted[0][1])
    try:
        with output.Waiting("exporting"):
            counts = exporting.export(place.home, target, format, now=common.now(), notices=notices)
    except exporting.ExportRefused as exc:
        raise BadInputError(str(exc)) from None
    common.notices(notices)
    if as_json:
        common.emit({"folder": target, "format": format, "rows": counts})
    else:
        common.say(f"wrote {len(counts)} tables of {counts['events']:,} events to {output.safe(target)}")
