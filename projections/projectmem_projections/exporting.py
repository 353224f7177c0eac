"""Writes every table and view of the summaries as Parquet or CSV files, for use by other programs.

The folder is written aside under another name and renamed when it is whole, so that nobody ever finds half an export. Rows are
ordered, so that equal logs give equal CSV files. What is derived from the clock is as of `now`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable

import duckdb
from projectmem_logs import files

from .errors import ProjectionError
from .generations import Summaries, ask_whole
from .loading import DERIVED, SCHEMA_VERSION, TABLES

FORMATS = {"parquet": "(FORMAT parquet, COMPRESSION zstd)", "csv": "(FORMAT csv, HEADER true)"}
MANIFEST = "manifest.json"


class ExportRefused(ProjectionError):  # noqa: N818 - named after what happened to it
    """What was asked for cannot be; what was there before is as it was."""


class ExportFailed(ProjectionError):  # noqa: N818 - the same
    """The disk did not take the export; what was there before is as it was."""


def export(
    home: str,
    target: str,
    format: str,
    *,
    now: int,
    notices: list[str] | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> dict[str, int]:
    """Write `<table>.parquet` or `<table>.csv` for each table and view into the new or empty folder `target`, and a manifest.

    format  parquet | csv;  now  microseconds, for views that depend on the time;  tell  hears (files written, of how many)
    Returns rows by table: for every table as many as the log has events of its kinds. Lists become JSON text in CSV.
    Raises ExportRefused where `target` holds something, ExportFailed where it cannot be written, CountMismatch, OSError.
    """
    if format not in FORMATS:
        raise ExportRefused(f"`{format}` is not a format: give one of {', '.join(FORMATS)}")
    if os.path.exists(target) and not (os.path.isdir(target) and not os.listdir(target)):
        raise ExportRefused(f"{target} exists and is not an empty folder: name a new one, nothing is overwritten")
    aside = f"{target.rstrip('/' + os.sep)}.{os.getpid()}.partial"

    def question(summaries: Summaries) -> dict[str, int]:
        shutil.rmtree(aside, ignore_errors=True)
        os.makedirs(aside, mode=0o700)
        try:
            counts = _write(summaries, aside, format, now, tell)
            if os.path.isdir(target):
                os.rmdir(target)
            shutil.move(aside, target)
        except (duckdb.IOException, duckdb.HTTPException) as error:
            said = str(error).split("{")[0].strip()  # DuckDB adds its error once more, as JSON
            raise ExportFailed(
                f"the export could not be written to {target} ({said}): free space there, or name another"
            ) from None
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return counts

    return ask_whole(home, question, notices)


def _write(summaries: Summaries, folder: str, format: str, now: int, tell: Callable[[int, int], None] | None) -> dict[str, int]:
    summaries.query(f"SET VARIABLE now_us = {int(now)}")
    counts = {}
    names = (*TABLES, *DERIVED, "integrity", "cursors", "generation", *summaries.views())
    for done, name in enumerate(names):
        if tell is not None:
            tell(done, len(names))
        path = os.path.join(folder, f"{name}.{format}")
        columns = "*" if format == "parquet" else _flat(summaries, name)
        quoted = path.replace("'", "''")
        copy = f"COPY (SELECT {columns} FROM {name} ORDER BY ALL) TO '{quoted}' {FORMATS[format]}"  # noqa: S608
        counts[name] = int(summaries.con.execute(copy).fetchall()[0][0])
        os.chmod(path, 0o600)
    manifest = {"schema": SCHEMA_VERSION, "as_of": summaries.cursor(), "now_us": now, "rows": counts}
    files.replace(os.path.join(folder, MANIFEST), json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n")
    return counts


def _flat(summaries: Summaries, name: str) -> str:
    """The columns, those with structure as JSON text: CSV knows no lists."""
    described = summaries.query(f"DESCRIBE {name}")
    parts = []
    for row in described:
        quoted = '"' + row["column_name"].replace('"', '""') + '"'
        nested = row["column_type"].endswith("]") or row["column_type"].startswith(("STRUCT", "MAP", "JSON"))
        parts.append(f"to_json({quoted})::VARCHAR AS {quoted}" if nested else quoted)
    return ", ".join(parts)
