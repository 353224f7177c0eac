"""The chance, per mille, that an action fails again.

Shipped priors by class x (same | unknown | changed) x age, shrunk towards what this key's own history shows.

Source of the priors: 1,734 real agent transcripts (82,947 calls, 4,232 failures), the figures of DESIGN.md section 1. Across
sessions with nothing changed 97 % fail again, 56 % when something was edited; by the failure's age 91 % under half an hour,
69 % up to a day, 32 % up to a week (changed and unchanged together, so unchanged decays far less than that). A missing
command, a wrong option and an edit whose text is not there fail again nearly always; the network and locks seldom.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
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
PRIOR_WEIGHT = 6  # the priors count as this many observations


def age_bucket(age_us: int) -> int:
    """0 up to half an hour, 1 up to a day, 2 up to a week, 3 beyond; a failure from the future counts as new."""
    return 0 if age_us <= HALF_HOUR else 1 if age_us <= DAY else 2 if age_us <= WEEK else 3


def prior(cls: str, state: str, age_us: int) -> int:
    """The shipped chance per mille."""
    return SAME_YOUNG.get(cls, SAME_YOUNG["unknown"]) * AGED[age_bucket(age_us)] * STATE.get(state, 800) // 1_000_000


def estimate(record: Record, state: str, now: int, *, identical: int, recovered: int = 0) -> int:
    """Chance per mille of failing again: the prior, moved by this key's own history. Never rises with `now`.

    identical  observed identical failures in a row with nothing changed between them (each beyond the first confirms)
    recovered  times it succeeded after a failure with nothing changed in between
    """
    failed_again = max(0, identical - 1) + max(0, len(record.by) - 1)
    base = prior(record.cls, state, now - record.at)
    if record.cls == "lock" and any(mark in f"{record.sig} {record.excerpt}".lower() for mark in _BUSY_MARKS):
        base = base * BUSY // SAME_YOUNG["lock"]
    return (base * PRIOR_WEIGHT + 1000 * failed_again) // (PRIOR_WEIGHT + failed_again + recovered)
