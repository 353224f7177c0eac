"""Plays the log again and recomputes every decision the gate ever made, byte for byte.

A decision was computed from: the entries of the action's keys as of a position of the log, the facts and labels that were
recorded with it, the session, the policy (by hash) and the time. All of that is in the log, so the answer is one of

    same             the recomputed decision has the same canonical bytes
    different        it has not: the log was altered, or the gate is not deterministic (the only failure)
    engine changed   another revision of the gate made it: nothing to compare
    input erased     what it was made from was erased on request

A rule carries what it would have said to past calls, and up to which position: that is counted again too.

A call that was let through without a candidate carries the position of that check; there *same* means that no record of
its keys stood open at that position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from projectmem_gate.model import Action, Decision, Session

from projectmem import output
from projectmem.lookup import data_of, is_failure
from projectmem.recorded import action_of, keys_of
from projectmem.units import count

SAME, DIFFERENT, ENGINE_CHANGED, ERASED = "same", "different", "engine changed", "input erased"
OUTCOMES = (SAME, DIFFERENT, ENGINE_CHANGED, ERASED)
LISTED = 20

Event = dict[str, Any]
Watch = Callable[[Iterable[Event]], Iterator[Event]]


@dataclass(slots=True)
class Report:
    """What a replay found. `ok` is false only when a decision came out different; damaged: how many stretches of
    the log could not be read."""

    events: int = 0
    until: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    open_failures: int = 0
    verified: bool = False
    decisions: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    differences: list[dict[str, Any]] = field(default_factory=list)
    damaged: int = 0

    @property
    def ok(self) -> bool:
        """Whether every decision came out as recorded (or could not be compared for a stated reason)."""
        return not self.decisions[DIFFERENT] and not self.passed[DIFFERENT] and not self.rules[DIFFERENT]

    def to_data(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "events": self.events,
            "until": self.until,
            "kinds": dict(sorted(self.kinds.items())),
            "open_failures": self.open_failures,
            "verified": self.verified,
            "decisions": {name: self.decisions[name] for name in OUTCOMES},
            "without_candidate": {name: self.passed[name] for name in OUTCOMES},
            "rules": {name: self.rules[name] for name in OUTCOMES},
            "differences": self.differences,
            "damaged": self.damaged,
            "ok": self.ok,
        }


def replay_log(home: str, *, root: str = "", until: int | None = None, verify: bool = False, watch: Watch = iter) -> Report:
    """Fold the log in `home` from the start (up to `until`, microseconds); with `verify` recompute every decision.

    root  the project's top folder, to identify actions again that were recorded without their parts

    Two passes in flat order: the first folds, the second compares, so that a decision may lean on an event of another
    stream that sorts after it. Raises LogError where the log cannot be read.
    """
    from projectmem_logs.reader import read_events
    from projectmem_projections.memory import MemoryState

    report, problems = Report(until=until or 0, verified=verify), list[Any]()
    state, checker = MemoryState(), _Checker(root)
    for event in watch(_upto(read_events(home, problems=problems), until)):
        report.events += 1
        report.kinds[event["kind"]] += 1
        state.apply([event], gaps=True)
        checker.learn(event)
    report.open_failures = checker.open_failures(state)
    report.damaged = sum(problem.kind != "torn" for problem in problems)  # an end that is being written is none
    if verify:
        rules = []
        for event in watch(_upto(read_events(home), until)):
            _verify(state, checker, event, report)
            if event["kind"] == "label.set" and isinstance(data_of(event).get("replay"), dict):
                rules.append(event)
        for event in rules:
            found = checker.rule(lambda: _upto(read_events(home), until), event)
            report.rules[found[0]] += 1
            _differ(report, event, *found)
    return report


def recompute(home: str, event: Event, root: str = "") -> tuple[str, str, str]:
    """(outcome, why, what the gate says now) of one decision, or of one call that met no objection, as `replay_log` finds it for
    all of them. The log is folded whole. Raises LogError where it cannot be read."""
    from projectmem_logs.reader import read_events
    from projectmem_projections.memory import MemoryState

    state, checker = MemoryState(), _Checker(root)
    for one in read_events(home):
        state.apply([one], gaps=True)
        checker.learn(one)
    return checker.decision(state, event) if event["kind"] == "action.proposed" else checker.without_candidate(state, event)


def recomputable(event: Event) -> bool:
    """Whether an event is a decision of the gate, or a call that was let through because nothing stood against it."""
    return event["kind"] == "action.proposed" or (event["kind"] == "action.finished" and data_of(event).get("as_of") is not None)


def _upto(events: Iterable[Event], until: int | None) -> Iterator[Event]:
    return (event for event in events if until is None or event["ts"] <= until)


def _verify(state: Any, checker: _Checker, event: Event, report: Report) -> None:
    if event["kind"] == "action.proposed":
        outcome, why, now_says = checker.decision(state, event)
        report.decisions[outcome] += 1
    elif event["kind"] == "action.finished" and data_of(event).get("as_of") is not None:
        outcome, why, now_says = checker.without_candidate(state, event)
        report.passed[outcome] += 1
    else:
        return
    _differ(report, event, outcome, why, now_says)


def _differ(report: Report, event: Event, outcome: str, why: str, now_says: str) -> None:
    """Add a row where something came out different."""
    if outcome == DIFFERENT:
        data = data_of(event)
        decided = data.get("decision")
        recorded = decided.get("verdict", "?") if isinstance(decided, dict) else "allow"
        report.differences.append(
            {
                "id": event["id"],
                "ts": event["ts"],
                "text": data.get("text") or data.get("reason", ""),
                "recorded": recorded,
                "now": now_says,
                "why": why,
            }
        )


class _Checker:
    """Recomputes decisions. Learns policies and erasures in the first pass."""

    def __init__(self, root: str = "") -> None:
        from projectmem_gate.policy import DEFAULT

        self.root = root

        self.policies: dict[str, Any] = {DEFAULT.hash: DEFAULT}
        self.erased: dict[str, list[int]] = {}  # stream -> positions whose data was erased
        self.erased_ids: set[str] = set()
        self.failed_keys: set[str] = set()
        self.policy_erased = False

    def open_failures(self, state: Any) -> int:
        """How many failed calls stand open in the folded log (one may be remembered under two keys)."""
        from projectmem_gate import history

        ids = set()
        for entries in state.entries(sorted(self.failed_keys)).values():
            if history.is_open(entries):
                record = history.fold("", entries, 0)
                ids.add(record.id if record is not None else "")
        return len(ids)

    def learn(self, event: Event) -> None:
        """Take in what later comparisons need to know."""
        if "tombstone" in event:
            self.erased.setdefault(event["stream"], []).append(event["seq"])
            self.erased_ids.add(event["id"])
            self.policy_erased |= event["kind"] == "policy.changed"
        elif is_failure(event):
            self.failed_keys.update(key for key in (event["data"].get("failed_key"), event["data"].get("key")) if key)
        elif event["kind"] == "policy.changed":
            from projectmem_gate.policy import PolicyError
            from projectmem_gate.policy_text import parse

            try:
                known = parse(event["data"]["text"], f"policy of event {event['id']}")
            except (KeyError, TypeError, AttributeError, PolicyError):
                return  # a policy that cannot be read was never in force
            self.policies[known.hash] = known

    def decision(self, state: Any, event: Event) -> tuple[str, str, str]:
        """(outcome, why, what the gate says now) of one `action.proposed`. Total: malformed data is `different`."""
        from projectmem_gate.decide import ENGINE

        if "tombstone" in event:
            return ERASED, "the decision itself was erased", ""
        data = data_of(event)
        recorded = data.get("decision")
        if not isinstance(recorded, dict):
            return DIFFERENT, "there is no decision in it", "?"
        if recorded.get("engine") not in ("", ENGINE):
            return ENGINE_CHANGED, f"engine {recorded.get('engine')}, now {ENGINE}", ""
        try:
            if self.erased_ids.intersection(recorded.get("records") or ()):
                return ERASED, "a record it was made from was erased", ""
            again = self._decide(state, data)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as exc:
            return DIFFERENT, f"what was recorded cannot be a decision's input ({type(exc).__name__}: {exc})", "?"
        if again is None and self.policy_erased:
            return ERASED, "the policy it was made by was erased", ""
        if again is None:
            return DIFFERENT, f"the policy it names ({str(data.get('policy'))[:16]}) is not in the log", "?"
        if _bytes(again.to_data()) == _bytes(recorded):
            return SAME, "", again.verdict
        if self._erased_before(data["as_of"]):
            return ERASED, "events before it were erased", again.verdict
        fields = [name for name in again.to_data() if again.to_data()[name] != recorded.get(name)]
        return DIFFERENT, f"differs in {', '.join(fields) or 'unknown fields'}", again.verdict

    def _decide(self, state: Any, data: Mapping[str, Any]) -> Decision | None:
        """The decision again, from what was recorded with it; None where its policy is not in the log."""
        from projectmem_gate.decide import decide

        from projectmem.hook.judge import candidates, failed_fix

        policy = self.policies.get(data["policy"])
        if policy is None:
            return None
        action, now = self._action(data), data["now"]
        records, asks = candidates(state, tuple(data["keys"]), action.key, now, data["as_of"])
        records += failed_fix(state, action, now, data["as_of"])
        session, labels = Session(**data["session"]), data.get("labels") or []
        return decide(action, records, data["facts"], session, policy, now, labels=labels, asks=asks)

    def _action(self, data: Mapping[str, Any]) -> Action:
        """The recorded action: as it was written down, else identified again from the recorded input."""
        if data.get("parts") is None and self.root:
            import json
            import os

            from projectmem_gate.identify import identify

            from projectmem.hook.naming import naming
            from projectmem.place import locate

            place = locate(self.root)
            try:
                cwd = os.path.normpath(os.path.join(self.root, data["cwd"]))
                given, harness = json.loads(data["input"]), data["session"].get("harness", "")
                names = naming(place) if place is not None else {}
                again: Action = identify(data["tool"], given, root=self.root, cwd=cwd, harness=harness, **names)
            except ValueError:  # cut to its first characters
                return action_of(data)
            if again.key == data["key"]:
                return again
        return action_of(data)

    def without_candidate(self, state: Any, event: Event) -> tuple[str, str, str]:
        """(outcome, why, what the gate says now) of a call that was let through because nothing stood against it."""
        from projectmem_gate import history

        data = data_of(event)
        try:
            found = state.entries(keys_of(data), data["as_of"])
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            return DIFFERENT, f"the recorded position cannot be used ({type(exc).__name__}: {exc})", "?"
        open_keys = [key for key, entries in found.items() if entries and history.is_open(entries)]
        if not open_keys and not self._fix(state, data):
            return SAME, "", "allow"
        if self._erased_before(data["as_of"]):
            return ERASED, "events before it were erased", ""
        return DIFFERENT, "a failure of this action stood open at that position", "a candidate"

    def rule(self, events: Callable[[], Iterable[Event]], event: Event) -> tuple[str, str, str]:
        """(outcome, why, what is counted now) of what a rule would have said to the calls before it. Total."""
        from projectmem.rules import tried

        data = data_of(event)
        try:
            recorded = data["replay"]
            again = tried(events(), data, recorded["since"], recorded["as_of"]).to_data()
            if _bytes(again) == _bytes(recorded):
                return SAME, "", ""
            if self._erased_before(recorded["as_of"]):
                return ERASED, "calls before it were erased", ""
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            return DIFFERENT, f"what is recorded of its trial cannot be read ({type(exc).__name__}: {exc})", "?"
        said = f"{again['ok']} past successes"
        return DIFFERENT, f"the rule says it would have objected to {recorded.get('ok')} past successes", said

    @staticmethod
    def _fix(state: Any, data: Mapping[str, Any]) -> bool:
        """Whether the call made a failed fix again."""
        from projectmem.hook.judge import failed_fix

        try:
            return bool(failed_fix(state, action_of(data), data.get("now") or 0, data["as_of"]))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            return False

    def _erased_before(self, as_of: Mapping[str, int]) -> bool:
        return any(seq <= as_of.get(stream, 0) for stream, seqs in self.erased.items() for seq in seqs)


def known_policies(place: Any) -> Mapping[str, Any]:
    """Every policy that was ever in force, by its hash, the shipped one included."""
    from projectmem.lookup import lines_with

    checker = _Checker()
    for event in lines_with(place.home, '"kind":"policy.changed"'):
        checker.learn(event)
    return checker.policies


def _bytes(value: Any) -> bytes:
    from projectmem_logs.canonical import canonical

    return canonical(value)


def render(report: Report, paint: output.Paint) -> list[str]:
    """The report in lines for a person."""
    until = f" up to {output.when(report.until)}" if report.until else ""
    lines = [
        f"replayed {count(report.events, 'event')}{until}: {count(report.open_failures, 'failure stands', 'failures stand')} open"
    ]
    lost = "the log is damaged, and what was lost is in none of this: `projectmem verify` names it"
    damaged = [paint("red", lost)] if report.damaged else []
    if not report.verified:
        return lines + [f"  {number:>7} {output.safe(kind)}" for kind, number in sorted(report.kinds.items())] + damaged
    total = sum(report.decisions.values())
    lines.append(f"recomputed {count(total, 'decision')}: {_counts(report.decisions)}")
    lines.append(f"rechecked {count(sum(report.passed.values()), 'call')} that met no objection: {_counts(report.passed)}")
    if report.rules:
        lines.append(f"tried {count(sum(report.rules.values()), 'rule')} on the past again: {_counts(report.rules)}")
    for row in report.differences[:LISTED]:
        said = f"{output.when(row['ts'])}  recorded {row['recorded']}, now {row['now']}: {row['why']}"
        lines.append(paint("red", f"  different  {row['id']}  {output.safe(said)}"))
        lines.append(f"             {output.safe(row['text'], limit=100)}")
    if len(report.differences) > LISTED:
        lines.append(f"  and {len(report.differences) - LISTED} more (--json lists all)")
    which = "every decision that can be read" if report.damaged else "every decision"
    verdict = f"{which} is what its recorded inputs give" if report.ok else "the log does not give what it says"
    lines.append(paint("green" if report.ok and not damaged else "red", verdict))
    return lines + damaged


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{counter[name]} {name}" for name in OUTCOMES if counter[name] or name in (SAME, DIFFERENT))
