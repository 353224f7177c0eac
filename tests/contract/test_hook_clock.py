"""A clock that jumps: what was recorded while it was ahead hides nothing that comes later, and outlives nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from projectmem_logs.verify import verify

from projectmem import place as places
from projectmem import policies
from projectmem.replay import replay_log

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
YEARS = 3650 * DAY
ERROR = "Exit code 2\nsrc/app.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'."
COMMAND = "npm run build"


class Jumped:
    """While in this context the clock is ahead by so much."""

    def __init__(self, hooked: Any, by: int) -> None:
        self.hooked, self.by = hooked, by

    def __enter__(self) -> None:
        self.hooked.now += self.by

    def __exit__(self, *_: object) -> None:
        self.hooked.now -= self.by


def verdict(hooked: Any, session: str) -> str:
    """allow, warn or ask: what a look at the command says, with no outcome recorded."""
    said = hooked.before(hooked.call(COMMAND), session)
    if not said:
        return "allow"
    return "ask" if "permissionDecision" in said else "warn"


def known(hooked: Any, session: str = "one") -> str:
    """What the gate says after two failures of a session in a row; `ask` where no clock ever jumped."""
    for _ in range(2):
        hooked.run(COMMAND, ERROR, session)
        hooked.now += 60 * SECOND
    return verdict(hooked, session)


def test_without_a_jump_it_asks(hooked: Any) -> None:
    """Else the tests below would hold by silence."""
    assert known(hooked) == "ask"


@pytest.mark.parametrize("by", [HOUR, DAY, YEARS])
def test_failures_of_a_clock_that_was_ahead_warn_at_most_and_lapse(hooked: Any, by: int) -> None:
    """More of them than a history keeps; far ahead they say nothing, and a week beyond their date never more."""
    with Jumped(hooked, by):
        for i in range(20):
            hooked.run(COMMAND, ERROR, f"s{i}")
    assert verdict(hooked, "later") == ("allow" if by == YEARS else "warn")
    hooked.now += by + 40 * DAY
    assert verdict(hooked, "much later") == "allow"


@pytest.mark.parametrize("by", [HOUR, DAY, YEARS])
def test_a_success_under_the_right_clock_clears_them(hooked: Any, by: int) -> None:
    """Although it is dated before them; and what fails again afterwards is spoken of as ever."""
    with Jumped(hooked, by):
        for i in range(20):
            hooked.run(COMMAND, ERROR, f"s{i}")
    hooked.run(COMMAND, "", "right")
    assert verdict(hooked, "right") == "allow"
    assert known(hooked) != "allow"


@pytest.mark.parametrize("by", [HOUR, YEARS])
def test_a_success_of_a_clock_that_was_ahead_hides_no_failure(hooked: Any, by: int) -> None:
    """Twenty successes in the future, then the command begins to fail."""
    with Jumped(hooked, by):
        for i in range(20):
            hooked.run(COMMAND, "", f"s{i}")
    assert known(hooked) != "allow"


def loop(hooked: Any, times: int) -> list[str]:
    """What is said to one session that tries the same failing command again and again."""
    out = []
    for _ in range(times):
        hooked.now += 60 * SECOND
        said = hooked.run(COMMAND, ERROR, "loop")
        out.append("allow" if not said else "ask" if "permissionDecision" in said else "warn")
    return out


def test_a_pass_of_a_clock_that_was_ahead_leaves_a_way_through(hooked: Any) -> None:
    """Refused, and repeated on purpose: it passes, as it did while the clock was ahead."""
    with Jumped(hooked, YEARS):
        ahead = loop(hooked, 12)
    again = loop(hooked, 8)
    for said in (ahead, again):
        assert said.count("ask") >= 2 and all(b == "allow" for a, b in pairwise(said) if a == "ask"), said


def test_a_clock_that_goes_back_loses_no_failure(hooked: Any) -> None:
    """By an hour, and by ten years: what fails now is spoken of now."""
    for by in (HOUR, YEARS):
        hooked.run(COMMAND, "", "before")
        with Jumped(hooked, -by):
            assert known(hooked, f"{by}") != "allow"


def test_a_policy_accepted_later_is_in_force_whatever_the_clock_said_before(hooked: Any) -> None:
    """The last one a person accepted counts."""
    place = places.find(str(hooked.root), {})
    assert place is not None
    path = hooked.home / "policy.toml"
    path.write_text('mode = "enforce"\n')
    policies.accept(place, str(path), now=hooked.now + YEARS)
    assert policies.in_force(place)[0].mode == "enforce"
    path.write_text('mode = "observe"\n')
    event = policies.accept(place, str(path), now=hooked.now)
    assert policies.in_force(place)[0].mode == "observe" and event["ts"] == hooked.now


def test_decisions_made_around_a_jump_can_be_recomputed(hooked: Any) -> None:
    """Byte for byte, and the log is whole."""
    with Jumped(hooked, DAY):
        known(hooked)
    verdict(hooked, "right")
    hooked.run(COMMAND, "", "right")
    known(hooked)
    report = replay_log(str(hooked.home), root=str(hooked.root), verify=True).to_data()
    assert report["ok"] and report["decisions"]["same"] >= 3 and verify(str(hooked.home)).ok


def test_failures_dated_ahead_are_said_where_failures_are_listed(hooked: Any, monkeypatch: Any, capsys: Any) -> None:
    """Beside the list, not in it; nothing where the clock is right."""
    from projectmem.cli import app, common

    monkeypatch.chdir(hooked.root)
    monkeypatch.setattr(common, "now", lambda: hooked.now)
    hooked.run("npm test", ERROR, "right")
    assert app.run(["failures"]) == 0 and "ahead" not in capsys.readouterr().err
    with Jumped(hooked, DAY):
        hooked.run(COMMAND, ERROR, "wrong")
    assert app.run(["failures", "--json"]) == 0
    found = capsys.readouterr()
    assert "1 of these is dated ahead" in found.err and "ahead" not in found.out
    hooked.now += DAY
    assert app.run(["failures"]) == 0 and "ahead" not in capsys.readouterr().err
