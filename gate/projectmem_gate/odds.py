"""The chance, per mille, that an action fails again.

Shipped priors by class x (same | unknown | changed) x age, shrunk towards what this log's own tries of that class showed (the
counts are facts of the decision), and then towards this key's own history.

Source of the priors: 1,734 real agent transcripts (82,947 calls, 4,232 failures), measured before the gate was built. Across
sessions with nothing changed 97 % fail again, 56 % when something was edited; by the failure's age 91 % under half an hour,
69 % up to a day, 32 % up to a week (changed and unchanged together, so unchanged decays far less than that). A missing
command, a wrong option and an edit whose text is not there fail again nearly always; the network and locks seldom.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.history import Record

MINUTE = 60_000_000
HALF_HOUR, DAY, WEEK = 30 * MINUTE, 1440 * MINUTE, 7 * 1440 * MINUTE

# Nothing changed since, failure younger than half an hour.
SAME_YOUNG = {
    "command-not-found": 970,
    "missing-dependency": 960,
    "usage": 970,
    "auth": 920,
    "protected-resource": 950,
    "network": 650,
    "lock": 600,
    "timeout": 800,
    "resource": 750,
    "test": 910,
    "build": 930,
    "runtime": 850,
    "edit-mismatch": 960,
    "unknown": 700,
}
# A lock that another process holds for a moment, unlike a port in use or a stale lock file: in the development transcripts
# each of four retries (SQLite) went through at once, so that only a second failure speaks.
BUSY = 350
_BUSY_MARKS = ("is locked", "sqlite_busy", "resource temporarily unavailable", "try again", "resource busy", "device busy")
# Per mille of the young figure that is left: up to half an hour, a day, a week, older. Falls, never rises.
AGED = (1000, 960, 850, 650)
# Per mille of the `same` figure when facts could not be compared, or when something relevant changed.
STATE = {"same": 1000, "unknown": 800, "changed": 400}
PRIOR_WEIGHT = 6  # the priors count as this many observations of the key itself
CLASS_WEIGHT = 20  # ... of its class in this log
AGE_WEIGHT = 10  # the class's figure counts as this many observations of one age


def age_bucket(age_us: int) -> int:
    """0 up to half an hour, 1 up to a day, 2 up to a week, 3 beyond; a failure from the future counts as new."""
    return 0 if age_us <= HALF_HOUR else 1 if age_us <= DAY else 2 if age_us <= WEEK else 3


def prior(cls: str, state: str, age_us: int) -> int:
    """The shipped chance per mille."""
    return SAME_YOUNG.get(cls, SAME_YOUNG["unknown"]) * AGED[age_bucket(age_us)] * STATE.get(state, 800) // 1_000_000


def estimate(record: Record, state: str, now: int, *, identical: int, retried: Mapping[str, Any] | None = None) -> int:
    """Chance per mille of failing again: the prior, moved by what this log saw, then by this key's own history. Never rises
    with `now`.

    identical  observed identical failures in a row with nothing changed between them (each beyond the first confirms)
    retried    {state: [[failed again, went well] by age bucket]} of this class and this kind of asker, from the log
    """
    failed_again = max(0, identical - 1) + max(0, len(record.by) - 1)
    base = logged(record.cls, state, now - record.at, retried)
    if record.cls == "lock" and any(mark in f"{record.sig} {record.excerpt}".lower() for mark in _BUSY_MARKS):
        base = base * BUSY // SAME_YOUNG["lock"]
    return (base * PRIOR_WEIGHT + 1000 * failed_again) // (PRIOR_WEIGHT + failed_again)


def logged(cls: str, state: str, age_us: int, retried: Mapping[str, Any] | None) -> int:
    """The prior shrunk towards the log's own figures: first those of the class at any age, then those of each age up to this
    one, of which the lowest counts, so that no chance rises by waiting."""
    rows = _rows(retried, state)
    again, total = sum(a for a, _ in rows), sum(a + ok for a, ok in rows)
    best = 1000
    for bucket in range(age_bucket(age_us) + 1):
        chance = (prior(cls, state, _OF_BUCKET[bucket]) * CLASS_WEIGHT + 1000 * again) // (CLASS_WEIGHT + total)
        a, ok = rows[bucket] if bucket < len(rows) else (0, 0)
        best = min(best, (chance * AGE_WEIGHT + 1000 * a) // (AGE_WEIGHT + a + ok))
    return best


def _rows(retried: Any, state: str) -> list[tuple[int, int]]:
    """The counts of one state; [] for what is malformed."""
    found = retried.get(state) if isinstance(retried, dict) else None
    if not isinstance(found, (list, tuple)):
        return []
    rows = [
        row for row in found if isinstance(row, (list, tuple)) and len(row) == 2 and all(type(n) is int and n >= 0 for n in row)
    ]
    return [(row[0], row[1]) for row in rows[:4]] if len(rows) == len(found) else []


def line(record: Record, state: str, now: int, *, identical: int, retried: Any = None) -> str:
    """How the chance came about, in one line for people."""
    age = ("under half an hour", "under a day", "under a week", "over a week")[age_bucket(now - record.at)]
    said = [f"{prior(record.cls, state, now - record.at) // 10} % for {record.cls}, {_STATES.get(state, state)}, {age} old"]
    rows = _rows(retried, state)
    again, total = sum(a for a, _ in rows), sum(a + ok for a, ok in rows)
    if total:
        said.append(f"{again} of {total} such tries in this log failed again")
    more = max(0, identical - 1)
    said += [f"{more + 1} identical failures in a row"] * bool(more)
    said += [f"{len(record.by)} agents or models failed with it"] * (len(record.by) > 1)
    return "; ".join(said)


_STATES = {"same": "nothing relevant changed", "unknown": "not all could be compared", "changed": "something relevant changed"}
_OF_BUCKET = (0, HALF_HOUR + 1, DAY + 1, WEEK + 1)  # an age in each bucket
