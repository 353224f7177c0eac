"""[H] Lengths of time and numbers of things in words: one way for the hook, the commands and the page.

A length is given in the largest unit of which it holds two, rounded to the nearest: `90 s`, `47 h`, `2 days`, `5 weeks`. So the
same moment has the same age wherever it is read, and a week that has just begun is one.
"""

from __future__ import annotations

SECOND = 1_000_000
MINUTE, HOUR, DAY, WEEK = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND, 7 * 86_400 * SECOND
_UNITS = ((5 * WEEK, WEEK, "weeks"), (2 * DAY, DAY, "days"), (2 * HOUR, HOUR, "h"), (2 * MINUTE, MINUTE, "min"), (0, SECOND, "s"))
_NOW = 10 * SECOND


def span(us: int) -> str:
    """A length of time in microseconds: `45 s`, `12 min`, `24 h`, `6 days`, `5 weeks`; without its sign."""
    us = abs(us)
    size, name = next((size, name) for least, size, name in _UNITS if us + size // 120 >= least)
    return f"{(us + size // 2) // size} {name}"


def ago(us: int) -> str:
    """How long ago: `just now` (under ten seconds, or ahead), `45 s ago`, `6 days ago`."""
    return "just now" if us < _NOW else f"{span(us)} ago"


def within(us: int) -> str:
    """How long from now: `within a minute`, `in 10 min`, `in 7 days`."""
    return "within a minute" if us < MINUTE else f"in {span(us)}"


def count(number: int, noun: str, many: str = "") -> str:
    """`1 event`, `2,000 events`; `many` where the plural is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
