"""Reads lengths of time and dates that a person typed; says ages, lengths and numbers of things in one way (the gate's `spans`).

Strict in reading: an unknown unit is an error, never a guess.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from projectmem_gate.spans import ago, count, span, within

from projectmem.errors import BadInputError

__all__ = ["ago", "count", "duration", "moment", "span", "until", "within"]

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_ACCEPTED = "a number and one of s, m, h, d, w (`30m`, `2h`, `5d`, `2w`)"
LONGEST = 3650 * 86_400 * 1_000_000


def duration(text: str) -> int:
    """`2h` -> microseconds. Raises BadInputError naming what is accepted (`5mo` is not five minutes)."""
    match = re.fullmatch(r"\s*([0-9]{1,9})\s*([a-z]+)\s*", text)
    if match is None or match.group(2) not in _UNITS:
        raise BadInputError(f"`{text}` is not a length of time: give {_ACCEPTED}")
    us = int(match.group(1)) * _UNITS[match.group(2)] * 1_000_000
    if not 0 < us <= LONGEST:
        raise BadInputError(f"`{text}` is out of range: more than nothing, at most ten years")
    return us


def moment(text: str, now: int, *, future: bool) -> int:
    """A point in time in microseconds: a length of time from now (ahead if `future`, else back), or an ISO date or time.

    A date or time without an offset is UTC. Raises BadInputError.
    """
    if re.fullmatch(r"\s*[0-9]+\s*[a-z]+\s*", text):
        return now + duration(text) if future else now - duration(text)
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text.strip()):
            day = date.fromisoformat(text.strip())
            parsed = datetime(day.year, day.month, day.day, tzinfo=UTC)
        else:
            parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInputError(f"`{text}` is not a time: give {_ACCEPTED}, or a date like 2026-12-31 (UTC)") from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    gap = parsed - datetime(1970, 1, 1, tzinfo=UTC)
    return (gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds


def until(text: str, now: int) -> int:
    """As `moment` ahead of now. Raises BadInputError also for a time that is already past."""
    at = moment(text, now, future=True)
    if at <= now:
        raise BadInputError(f"`{text}` is already past: give a time ahead, such as `2h` or a later date")
    return at
