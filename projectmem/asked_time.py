"""The time a question asks about: "yesterday", "3 days ago", "last week", "2026-11-20". Pure; on the hook's path."""

from __future__ import annotations

HOUR, DAY = 3_600_000_000, 86_400_000_000
_UNITS = {"minute": HOUR // 60, "hour": HOUR, "day": DAY, "week": 7 * DAY, "month": 30 * DAY, "year": 365 * DAY}
_PHRASES = (
    ("this morning", 4 * HOUR),
    ("earlier today", 4 * HOUR),
    ("just now", 0),
    ("last night", 14 * HOUR),
    ("day before yesterday", 2 * DAY),
    ("yesterday", DAY),
    ("last week", 7 * DAY),
    ("last month", 30 * DAY),
    ("last year", 365 * DAY),
)


def asked_about(query: str, now: int) -> int | None:
    """The moment (microseconds) a question is about, None where it names none. Relative phrases count back from `now`."""
    words = query.lower().replace(",", " ").replace("?", " ").split()
    text = " ".join(words)
    for i, word in enumerate(words):
        if word == "ago" and i >= 2 and words[i - 1].rstrip("s") in _UNITS:
            number = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3}.get(words[i - 2], _number(words[i - 2]))
            if 0 < number < 10_000:
                return now - number * _UNITS[words[i - 1].rstrip("s")]
        at = _date(word)
        if at is not None:
            return at
    return next((now - ago for phrase, ago in _PHRASES if phrase in text), None)


def _number(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 6 else 0


def _date(word: str) -> int | None:
    """Noon (UTC) of an ISO date, None for anything else. Days from civil: Howard Hinnant's algorithm, in integers."""
    parts = word.split("-")
    if [len(p) for p in parts] != [4, 2, 2] or not all(p.isascii() and p.isdigit() for p in parts):
        return None
    year, month, day = map(int, parts)
    if not (year >= 1970 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    year -= month <= 2
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    of_era = (year % 400) * 365 + (year % 400) // 4 - (year % 400) // 100 + of_year
    return ((year // 400) * 146_097 + of_era - 719_468) * DAY + DAY // 2
