"""What the gate would have said over a history, and whether it would have been right: counts, time, the best and worst moments.

Right: the call that it spoke of failed. Wrong: the call went well. Else nobody can tell (no result, an interrupt, a refusal).

Time saved, as far as a history shows it. A right word saves one turn (the policy's `cost.turn`): what failed and what worked
instead is known without another try. Where the word is a refusal it also saves what the failed call took, where that is recorded
(0 where it is not). A wrong refusal costs one turn: the call has to be repeated. A wrong warning costs nothing that is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from projectmem_gate.model import FAILED, OK, Decision
from projectmem_gate.policy import Policy

from projectmem import output
from projectmem.backtest.model import Step
from projectmem.render import count

SHOWN = 10
REFUSALS = ("ask", "deny")
MINUTE = 60_000_000


@dataclass(slots=True)
class Moment:
    """One call that the gate would have spoken of. `saved` in microseconds, less than 0 where it would have cost time."""

    repository: str
    harness: str
    session: str
    at: int
    verdict: str
    rule: str
    odds: int
    text: str
    reason: str
    outcome: str
    took_ms: int | None
    saved: int

    @property
    def right(self) -> bool:
        """The call failed."""
        return self.outcome == FAILED

    @property
    def wrong(self) -> bool:
        """The call went well."""
        return self.outcome == OK

    def to_data(self) -> dict[str, Any]:
        """By name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Tally:
    """All moments of a history, as `spoke` of `replay` is told of them."""

    policy: Policy
    moments: list[Moment] = field(default_factory=list)

    def __call__(self, repository: str, step: Step, action: Any, decision: Decision, outcome: str) -> None:
        """Take in one moment."""
        took, refused = step.call.get("duration_ms"), decision.verdict in REFUSALS
        saved = 0
        if outcome == FAILED:
            saved = self.policy.turn_us + (1000 * (took or 0) if refused else 0)
        elif outcome == OK and refused:
            saved = -self.policy.turn_us
        call = step.call
        self.moments.append(
            Moment(
                repository, call["harness"], call["session"], step.at, decision.verdict, decision.rule, decision.odds,
                action.text, decision.reason, outcome, took, saved,
            )
        )  # fmt: skip

    def best(self) -> list[Moment]:
        """The right moments that saved most; refusals before warnings, then the surer ones."""
        found = [m for m in self.moments if m.right]
        return sorted(found, key=lambda m: (-m.saved, m.verdict not in REFUSALS, -m.odds, m.at))[:SHOWN]

    def worst(self) -> list[Moment]:
        """The wrong moments: refusals before warnings, then those it was surest of."""
        found = [m for m in self.moments if m.wrong]
        return sorted(found, key=lambda m: (m.verdict not in REFUSALS, -m.odds, m.at))[:SHOWN]

    def to_data(self) -> dict[str, Any]:
        """The counts, the time in microseconds and its parts, and the moments shown."""
        right, wrong = [m for m in self.moments if m.right], [m for m in self.moments if m.wrong]
        refused = [m for m in right if m.verdict in REFUSALS]
        return {
            "spoken": len(self.moments),
            "right": len(right),
            "wrong": len(wrong),
            "unknown": len(self.moments) - len(right) - len(wrong),
            "saved_us": sum(m.saved for m in self.moments),
            "turn_us": self.policy.turn_us,
            "refused_right": len(refused),
            "refused_took_us": sum(1000 * (m.took_ms or 0) for m in refused),
            "refused_untimed": sum(m.took_ms is None for m in refused),
            "refused_wrong": sum(m.verdict in REFUSALS for m in wrong),
            "best": [m.to_data() for m in self.best()],
            "worst": [m.to_data() for m in self.worst()],
        }


def lines(tally: Tally, days: int, now: int, *, calls: int, repositories: int) -> list[str]:
    """The report for a person, safe for a terminal."""
    said = tally.to_data()
    if not calls:
        return [f"no calls in the sessions that harnesses keep here of the last {count(days, 'day')}"]
    over = f"{count(calls, 'call')} in {count(repositories, 'repository', 'repositories')}"
    if not said["spoken"]:
        return [f"in the last {count(days, 'day')} this would have spoken 0 times ({over})"]
    saved = said["saved_us"]
    about = f"{'saved' if saved >= 0 else 'cost'} {_minutes(abs(saved))}"
    times = f"{count(said['spoken'], 'time')}, right {count(said['right'], 'time')}"
    unknown = f", {said['unknown']} nobody can tell" if said["unknown"] else ""
    rows = [
        f"in the last {count(days, 'day')} this would have spoken {times}, and {about}",
        f"  {over}; wrong {count(said['wrong'], 'time')}{unknown}",
        *_reckoned(said),
    ]
    for title, found in (("best", tally.best()), ("worst", tally.worst())):
        if found:
            rows += ["", f"The {title} {'moment' if len(found) == 1 else f'{len(found)} moments'}"]
            rows += [row for n, moment in enumerate(found, 1) for row in _told(n, moment)]
    return rows


def _reckoned(said: dict[str, Any]) -> list[str]:
    """How the time was reckoned."""
    turn = output.span(said["turn_us"])
    rows = [f"  reckoned: {count(said['right'], 'turn')} of {turn} (the policy's cost.turn) for words that were right"]
    if said["refused_right"]:
        untimed = f", {said['refused_untimed']} of unknown length counted as none" if said["refused_untimed"] else ""
        took = output.span(said["refused_took_us"])
        rows.append(f"    + {took} that {count(said['refused_right'], 'refused call')} took before failing{untimed}")
    if said["refused_wrong"]:
        rows.append(f"    - {count(said['refused_wrong'], 'turn')} for calls that it would have refused though they went well")
    return rows


def _minutes(us: int) -> str:
    return f"about {count(round(us / MINUTE), 'minute')}" if us >= MINUTE else "less than a minute" if us else "no time"


def _told(number: int, moment: Moment) -> list[str]:
    took = f" after {output.span(moment.took_ms * 1000)}" if moment.took_ms and moment.took_ms >= 1000 else ""
    ended = f"it failed{took}" if moment.right else f"it went well{took}"
    where = f"{PurePath(moment.repository).name or moment.repository}, {moment.harness}"
    head = f"{number:>3}. {output.when(moment.at)[:16]}  {moment.verdict}  {moment.text}"
    why = [line for line in moment.reason.split("\n") if line.strip()][:2]
    rows = [output.safe(head, limit=160), output.safe(f"     {ended} ({where})", limit=160)]
    return rows + [output.safe(f"     > {line.removeprefix('projectmem: ')}", limit=160) for line in why]
