"""Times that people type: strict units, UTC dates, and errors that say what is accepted."""

from __future__ import annotations

import pytest

from projectmem import units
from projectmem.errors import BadInputError

NOW = 1_796_000_000_000_000
SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("5m", 300), ("5min", 300), ("2h", 7200), ("3d", 259_200), ("1w", 604_800), (" 7 d ", 604_800)],
)
def test_duration_reads_each_unit(text: str, seconds: int) -> None:
    """A number and a unit."""
    assert units.duration(text) == seconds * SECOND


@pytest.mark.parametrize("text", ["5mo", "5M", "5", "h", "", "1.5h", "-5m", "5 months", "0m", "9999w", "5m5s", "\u0665m"])
def test_duration_refuses_what_it_would_have_to_guess(text: str) -> None:
    """`5mo` is not five minutes, and the message says what is accepted."""
    with pytest.raises(BadInputError, match=r"30m|ten years"):
        units.duration(text)


def test_moment_reads_lengths_both_ways_and_dates_as_utc() -> None:
    """`2h` is back or ahead; a bare date is midnight UTC; an offset is honoured."""
    assert units.moment("2h", NOW, future=False) == NOW - 7200 * SECOND
    assert units.moment("2h", NOW, future=True) == NOW + 7200 * SECOND
    assert units.moment("1970-01-02", NOW, future=True) == 86_400 * SECOND
    assert units.moment("1970-01-01T01:00:00+01:00", NOW, future=False) == 0
    assert units.moment("1970-01-01T00:00:00.5", NOW, future=False) == SECOND // 2


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "2026-02-30", "5mo", "", "12:00"])
def test_moment_refuses_the_rest(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(BadInputError):
        units.moment(text, NOW, future=True)


def test_until_must_lie_ahead() -> None:
    """A snooze until yesterday would be one that never was."""
    with pytest.raises(BadInputError, match="already past"):
        units.until("2001-01-01", NOW)
    assert units.until("1d", NOW) == NOW + 86_400 * SECOND
