"""Shows the answer to an SQL question to a person, as JSON or as CSV. What comes from the log is escaped as everywhere."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from projectmem import output

if TYPE_CHECKING:
    from projectmem_projections.catalogue import Relation
    from projectmem_projections.querying import Answer

CELL_MAX = 60  # characters of one cell in a table; the last column may be longer


def lines(answer: Answer, width: int, *, fold: bool = False) -> list[str]:
    """An aligned table. Lists and structures as JSON, NULL as nothing.

    fold  where the table is wider than `width`, a block for each row with a line for each column, and nothing cut
    """
    head = [output.safe(name) for name, _ in answer.columns]
    last = len(head) - 1
    cells = [[output.safe(_text(v), limit=0 if i == last else CELL_MAX) for i, v in enumerate(row)] for row in answer.rows]
    table = output.table(cells, head, width=width)
    return _folded(answer, head, width) if fold and any(len(line) > width for line in table) else table


def _folded(answer: Answer, head: list[str], width: int) -> list[str]:
    import textwrap

    out, name_width = list[str](), max(map(len, head))
    for number, row in enumerate(answer.rows, 1):
        out.append(f"-- row {number} ".ljust(min(width, 40), "-"))
        for name, value in zip(head, row, strict=True):
            start = f"{name.ljust(name_width)}  "
            text = output.safe(_text(value))
            shown = textwrap.wrap(text, max(16, width - len(start)), drop_whitespace=False, break_on_hyphens=False) or [""]
            out += [f"{start if not i else ' ' * len(start)}{part}".rstrip() for i, part in enumerate(shown)]
    return out


def records(answer: Answer) -> list[dict[str, Any]]:
    """The rows as dicts for JSON. Columns of one name become `name`, `name_2`, ..."""
    names = _distinct([name for name, _ in answer.columns])
    return [dict(zip(names, (_value(v) for v in row), strict=True)) for row in answer.rows]


def csv_text(answer: Answer) -> str:
    """RFC 4180 with a header; lists and structures as JSON, NULL as an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([name for name, _ in answer.columns])
    writer.writerows([[output.hide_secrets(_text(v)) for v in row] for row in answer.rows])
    return out.getvalue().encode("utf-8", "backslashreplace").decode().removesuffix("\n")


def catalogue(relations: list[Relation], width: int) -> list[str]:
    """Every table and view with its columns: what may be asked."""
    import textwrap

    out = []
    for relation in relations:
        out.append(f"{relation.name} ({relation.kind})")
        out += textwrap.wrap(relation.doc, width, initial_indent="  ", subsequent_indent="  ") if relation.doc else []
        columns = ", ".join(name for name, _ in relation.columns)
        out += textwrap.wrap(columns, width, initial_indent="    ", subsequent_indent="    ")
    return out


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return out


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple, dict)):
        return output.to_json(_value(value), indent=None)
    return str(_value(value))


def _value(value: object) -> Any:
    """As JSON has it: what it has no word for is spelled as text, and so are numbers it would round."""
    if isinstance(value, dict):
        return {str(k): _value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    return str(value)
