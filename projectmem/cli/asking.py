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
    Nothing can be written, and no other file read. On a terminal a row that is too wide is shown a column a line.

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
        for line in tabular.lines(answer, common.width(), fold=sys.stdout.isatty()):
            common.say(line)
        if not answer.rows:
            common.note("no rows")
    if answer.more:
        common.note(f"there are more than {limit} rows: --limit 0 shows all")


def export(
    parquet: Annotated[str, typer.Option("--parquet", metavar="DIR", help="Summaries as Parquet.", show_default=False)] = "",
    csv: Annotated[str, typer.Option("--csv", metavar="DIR", help="Summaries as CSV.", show_default=False)] = "",
    otel: Annotated[
        str, typer.Option("--otel", metavar="FILE", help="Calls as OpenTelemetry spans (OTLP JSON lines).", show_default=False)
    ] = "",
    atif: Annotated[
        str, typer.Option("--atif", metavar="DIR", help="Calls as ATIF trajectories, one a session.", show_default=False)
    ] = "",
    arguments: Annotated[bool, typer.Option("--arguments", help="With --otel: what was called with, too.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Write the summaries or the calls as files.

    --parquet, --csv: one file for each table and view of `projectmem sql`, and a manifest with the log position and the counts.

    --otel, --atif: every recorded call. Neither what was erased nor a secret is in any of them. One of the four is needed; FILE
    or DIR must be new (for the tables it may be an empty folder).
    """
    from projectmem.errors import BadInputError

    targets = {"parquet": parquet, "csv": csv, "otel": otel, "atif": atif}
    wanted = [(format, target) for format, target in targets.items() if target]
    if len(wanted) != 1:
        raise BadInputError("say where to and as what: --parquet DIR, --csv DIR, --otel FILE or --atif DIR")
    format, target = wanted[0][0], os.path.abspath(wanted[0][1])
    if arguments and format != "otel":
        raise BadInputError("--arguments goes with --otel alone: the others have them anyway")
    if format in ("parquet", "csv"):
        _tables(root, format, target, as_json)
    else:
        _calls(root, format, target, arguments, as_json)


def _tables(root: str, format: str, target: str, as_json: bool) -> None:
    from projectmem_projections import exporting

    from projectmem.errors import BadInputError

    place, notices = common.open_place(root), list[str]()
    try:
        with output.Waiting("exporting") as waiting:
            counts = exporting.export(place.home, target, format, now=common.now(), notices=notices, tell=waiting.tell)
    except exporting.ExportRefused as exc:
        raise BadInputError(str(exc)) from None
    common.notices(notices)
    if as_json:
        common.emit({"folder": target, "format": format, "rows": counts})
    else:
        common.say(f"wrote {len(counts)} tables of {counts['events']:,} events to {output.safe(target)}")


def _calls(root: str, format: str, target: str, arguments: bool, as_json: bool) -> None:
    from projectmem import render
    from projectmem.exporters import atif, otlp

    place, problems = common.open_place(root), list[object]()
    with output.Waiting("exporting"):
        if format == "otel":
            count, files = otlp.export(place, target, arguments=arguments, problems=problems), 1
        else:
            files, count = atif.export(place, target, problems=problems)
    common.notices([f"the log is damaged: {problem}" for problem in problems])
    if as_json:
        common.emit({"path": target, "format": format, "calls": count, "files": files})
    elif format == "otel":
        common.say(f"wrote {render.count(count, 'span')} to {output.safe(target)}")
    else:
        what = render.count(files, "trajectory", "trajectories")
        common.say(f"wrote {what} of {render.count(count, 'call')} to {output.safe(target)}")
