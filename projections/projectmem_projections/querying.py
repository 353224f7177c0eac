"""Lets a person ask the summaries anything in SQL, and nothing else: no writes, no other files, no extensions, no settings.

Two walls. A statement must be one SELECT (or EXPLAIN), by DuckDB's own parser; and the connection has the generation read-only,
with access to files, loading of extensions and changes of settings switched off before the statement is seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from .errors import GenerationDamaged, ProjectionError
from .generations import Summaries, ask_whole

STATEMENT_MAX = 100_000  # characters
MEMORY_MAX = 1_500_000_000  # bytes that a question may take: DuckDB's own limit of 700 MB does not count long texts
_ALLOWED = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI)
# What a statement may have in its first word: DuckDB counts a PIVOT as several statements in one.
_FIRST = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*([a-z]*)", re.IGNORECASE | re.DOTALL)
_WORDS = {"select", "with", "from", "values", "table", "describe", "desc", "show", "summarize", "explain", "pivot", "unpivot"}
_LOCKED = ("SET temp_directory = ''", "SET enable_external_access = false", "SET lock_configuration = true")

_TOO_MUCH = (
    "the question takes more memory than it may: ask for fewer rows or groups, for shorter texts, or for counts in place of lists"
)


class QueryRefused(ProjectionError):  # noqa: N818 - named after what happened to it
    """A statement that is not one readable question, or that DuckDB cannot answer: says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`columns` (name, DuckDB type), `rows` as DuckDB gives them, and whether there were `more` than the limit."""

    columns: tuple[tuple[str, str], ...]
    rows: list[tuple[Any, ...]]
    more: bool


def query(home: str, statement: str, *, limit: int, now: int | None = None, notices: list[str] | None = None) -> Answer:
    """At most `limit` rows of one SELECT over the log at `home`, the newest events included. 0: all of them.

    now  for what depends on the time, in microseconds; by default the clock of the machine
    Raises QueryRefused; CountMismatch and OSError as `generations.open_current` does.
    """
    refuse(statement)

    def question(summaries: Summaries) -> Answer:
        if now is not None:
            summaries.query(f"SET VARIABLE now_us = {int(now)}")
        for setting in _LOCKED:
            summaries.con.execute(setting)
        with _bounded(MEMORY_MAX):
            return _answer(summaries.con, statement, limit)

    return ask_whole(home, question, notices)


def refuse(statement: str) -> None:
    """Raise QueryRefused unless the text is one statement that only reads."""
    if not statement.strip():
        raise QueryRefused(
            "there is no question: give one SELECT, such as `SELECT state, count(*) FROM failure_states GROUP BY state`"
        )
    if len(statement) > STATEMENT_MAX:
        raise QueryRefused(f"the statement has {len(statement):,} characters: give at most {STATEMENT_MAX:,}")
    try:
        statement.encode()  # a lone surrogate is no text that DuckDB takes
        with duckdb.connect(":memory:") as parser:
            found = parser.extract_statements(statement)
    except (duckdb.Error, UnicodeError, RuntimeError) as error:
        raise QueryRefused(_said(error)) from None
    if len(found) != 1:
        raise QueryRefused(f"there are {len(found)} statements: ask one question at a time")
    first = _FIRST.match(statement)
    word = first.group(1).lower() if first else ""
    if found[0].type not in _ALLOWED or word not in _WORDS:
        name = word.upper() or found[0].type.name
        raise QueryRefused(
            f"{name} is not allowed here: only SELECT (also WITH, FROM, DESCRIBE, SUMMARIZE, EXPLAIN). Nothing is ever written"
        )


def _answer(con: duckdb.DuckDBPyConnection, statement: str, limit: int) -> Answer:
    try:
        cursor = con.execute(statement)
        columns = tuple((str(column[0]), str(column[1])) for column in cursor.description or ())
        rows = cursor.fetchmany(limit + 1) if limit else cursor.fetchall()
    except (duckdb.FatalException, duckdb.InternalException, duckdb.IOException, duckdb.SerializationException) as error:
        raise GenerationDamaged(f"the summaries cannot be read ({_said(error)}): they are rebuilt from the log") from error
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.OutOfMemoryException, MemoryError):
        raise QueryRefused(_TOO_MUCH) from None
    except (duckdb.Error, UnicodeError, RuntimeError, ValueError, OverflowError) as error:
        raise QueryRefused(_said(error)) from None
    return Answer(columns, rows[:limit] if limit else rows, bool(limit) and len(rows) > limit)


@contextmanager
def _bounded(more: int) -> Iterator[None]:
    """Inside, the process gets no more than `more` bytes of memory beside what it has, where the system sees to that: Linux."""
    try:
        import resource

        with open("/proc/self/statm", "rb") as file:
            used = int(file.read().split()[5]) * resource.getpagesize()
    except (ImportError, OSError):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    least = min((limit for limit in before if limit != resource.RLIM_INFINITY), default=used + more)
    resource.setrlimit(resource.RLIMIT_DATA, (min(used + more, least), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _said(error: Exception) -> str:
    """What DuckDB says, without where in its own house it happened."""
    text = str(error).strip()
    if isinstance(error, duckdb.PermissionException):
        return "only the tables of this log may be read: no files, no extensions, no network"
    return text or type(error).__name__
