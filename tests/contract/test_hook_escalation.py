"""Escalation and release, end to end: a loop is refused, flaky runs never are, and every release says why it happened."""

from __future__ import annotations

from typing import Any

import pytest

from projectmem import failures, policies, record

ERROR = "Exit code 2\nsrc/app.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'."
BUILD = "npm run build"
MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE


def enforce(hooked: Any) -> None:
    """Accept a policy that may deny."""
    path = hooked.home / "policy.toml"
    path.write_text('mode = "enforce"\n')
    policies.accept(hooked.place, str(path), now=hooked.now)


def spoken(said: dict[str, Any] | None) -> str:
    """allow | warn | ask | deny, as the client sees it."""
    if said is None:
        return "allow"
    return {"deny": "refused", "ask": "person"}.get(said.get("permissionDecision", ""), "warn")


def loop(hooked: Any, times: int, error: str = ERROR) -> list[str]:
    """The same failing call over and over in one session, a minute apart; refused ones do not run."""
    out = []
    for _ in range(times):
        hooked.now += MINUTE
        out.append(spoken(hooked.run(BUILD, error, "s")))
    return out


def reasons(hooked: Any, at: int = 0) -> list[str]:
    """What `failures --all` says of the one record: why the gate is silent, "" where it speaks."""
    now = at or hooked.now
    return [row.silence(now) for row in failures.failures(hooked.place, now, every=True)]


def test_a_loop_with_nothing_changed_is_warned_of_then_refused(hooked: Any) -> None:
    """In the default mode an agent is asked after the second identical failure."""
    assert loop(hooked, 3) == ["allow", "warn", "refused"]
    last = hooked.events("action.proposed")[-1]["data"]["decision"]
    assert (last["verdict"], last["rule"], last["by"]) == ("ask", "repeat.identical", "agent")


def test_enforce_denies_after_the_third_and_a_repeat_does_not_pass(hooked: Any) -> None:
    """What is asked passes when it is repeated, and fails a third time; what is denied stays denied."""
    enforce(hooked)
    assert loop(hooked, 2) == ["allow", "warn"]
    hooked.now += MINUTE
    said = [spoken(hooked.run(BUILD, ERROR, "s")) for _ in range(4)]
    assert said == ["refused", "allow", "refused", "refused"]
    rules = [e["data"]["decision"]["rule"] for e in hooked.events("action.proposed")]
    assert rules == ["repeat", "repeat.identical", "override", "repeat.denied", "repeat.denied"]


def test_a_flaky_action_is_never_refused(hooked: Any) -> None:
    """It fails and passes by itself, with nothing changed."""
    enforce(hooked)
    said = [spoken(hooked.run(BUILD, error, "s")) for error in (ERROR, "", ERROR, "", ERROR, ERROR, ERROR, ERROR)]
    assert set(said) <= {"allow", "warn"}


def test_an_edit_between_ends_the_loop_and_says_so(hooked: Any) -> None:
    """Fix and retest is silent; `failures --all` names the file."""
    loop(hooked, 2)
    (hooked.root / "src").mkdir()
    hooked.run("printf 'x' > src/app.ts")
    assert spoken(hooked.before(hooked.call(BUILD), "s9")) == "allow"
    assert reasons(hooked) == ["app.ts was edited"]


@pytest.mark.parametrize(
    ("release", "why"),
    [
        ("success", "cleared: the same action succeeded later"),
        ("disputed", "disputed: it never failed"),
        ("superseded", "superseded: it never failed"),
        ("snoozed", "snoozed: it never failed"),
        ("ttl", "expired 24 h ago"),
    ],
)
def test_every_release_silences_and_says_why(hooked: Any, release: str, why: str) -> None:
    """Success, dispute, supersede, snooze, and time."""
    loop(hooked, 2)
    failed = [e["id"] for e in hooked.events("action.finished")][-1]
    later = hooked.now + (8 * DAY if release == "ttl" else MINUTE)
    if release == "success":
        hooked.run("pwd", "", "t")
        call = hooked.call(BUILD)
        hooked.batch([(call, "built")], "t")
    elif release != "ttl":
        by = hooked.events()[0]["id"] if release == "superseded" else ""
        until = later + DAY if release == "snoozed" else 0
        record.curate(hooked.place, release, failed, now=hooked.now, origin="agent", until=until, reason="it never failed", by=by)
    hooked.now = later
    assert reasons(hooked) == [why]
    assert spoken(hooked.before(hooked.call(BUILD), "s9")) == "allow"
