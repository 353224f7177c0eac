"""Counts of what is in a log: calls and outcomes, failures by class, what the gate said, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from projectmem import clock, output
from projectmem.units import count

TOP = 8


def stats(home: str, *, now: int, notices: list[str] | None = None) -> dict[str, Any]:
    """The counts as plain data (see `summaries.stats`), from the summaries with the newest events folded in.

    `notices` collects what a person should be told. Raises ProjectionError, OSError.
    """
    from projectmem_projections import summaries

    return summaries.stats(home, now=now, notices=notices)


def render(found: Mapping[str, Any], paint: output.Paint) -> list[str]:
    """The counts in lines for a person."""
    if not found["events"]:
        return ["nothing is recorded yet"]
    span = f"{output.when(found['first_at'])} to {output.when(found['last_at'])}"
    lines = [
        f"{count(found['events'], 'event')} of {count(found['sessions'], 'session')}, {span}",
        _row("calls", found["outcomes"], paint),
        _row("failures by class", found["classes"], paint),
        _row("failures now", found["failures"], paint),
        _row("events", found["by_kind"], paint),
    ]
    lines += _gate(found["gate"], paint)
    if found["issues_open"]:
        lines.append(_row("issues", {"open": found["issues_open"]}, paint))
    if any(found["incidents"].values()):
        lines.append(paint("yellow", _row("incidents", found["incidents"], output.Paint(False))))
    if found["erased"]:
        lines.append(_row("erased", {"events": found["erased"]}, paint))
    for damage in found["damage"][:TOP]:
        where = f"{damage['stream']}/{damage['segment']} at byte {damage['at_byte']}"
        lines.append(paint("red", f"damaged: {output.safe(where)}: {output.safe(damage['detail'])}; run `projectmem verify`"))
    lines += [paint("yellow", f"clock: {output.safe(text)}") for text in clock.of_stats(found)]
    return lines


def _gate(rows: list[dict[str, Any]], paint: output.Paint) -> list[str]:
    """What the gate said by rule, and how those calls ended."""
    if not rows:
        return [_row("the gate said", {}, paint)]
    lines = [paint("dim", "the gate said")]
    strength = {"deny": 0, "ask": 1, "warn": 2}
    for row in sorted(rows[: 2 * TOP], key=lambda row: strength.get(row["verdict"], 3)):  # the counts' order within each
        ended = {
            "then failed": row["then_failed"],
            "then ok": row["then_ok"],
            "not run": row["not_run"],
            "of these never repeated in that session": row["heeded"],
            "other": row["then_other"],
        }
        said = ", ".join(f"{count:,} {name}" for name, count in ended.items() if count)
        verdict = paint(output.VERDICT_COLOURS.get(row["verdict"], "dim"), output.safe(row["verdict"]).ljust(6))
        lines.append(f"  {verdict}{row['count']:>7,}  {output.safe(row['rule'] or 'no objection')}: {said}")
    return lines


def _row(name: str, counts: Mapping[str, int], paint: output.Paint) -> str:
    pairs = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:TOP]
    return f"{paint('dim', name.ljust(20))}{', '.join(f'{output.safe(k)} {n:,}' for k, n in pairs if n) or 'none'}"
