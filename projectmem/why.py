"""Why this verdict and not the next stronger one: the gate is asked again with one thing changed at a time.

So the answer is always the engine's own: what is named here would indeed have made it say more. Pure but for its imports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from projectmem_gate.decide import decide
from projectmem_gate.history import Record
from projectmem_gate.model import ALLOW, VERDICTS, Action, Decision, Session
from projectmem_gate.policy import Policy

from projectmem import output
from projectmem.render import count

MINUTE = 60_000_000
Input = dict[str, Any]
_DOES = {"warn": "warn", "ask": "refuse the call once", "deny": "deny the call"}
_ORIGIN = {"import": "imported", "agent": "reported by an agent", "human": "recorded by a person"}


def stronger(
    decision: Decision,
    action: Action,
    record: Record,
    facts: Mapping[str, Any],
    session: Session,
    policy: Policy,
    now: int,
    *,
    asks: Sequence[Any] = (),
) -> str:
    """What was missing for the next stronger verdict, "" where there is none or nothing that is known here gives it."""
    given: Input = {"record": record, "facts": dict(facts), "session": session, "policy": policy, "now": now, "action": action}
    rank = VERDICTS.index(decision.verdict)
    changes = list(_silent(given)) if decision.verdict == ALLOW else []
    changes += _changes(given, decision.odds)
    for size in (1, 2, 3):
        found = []
        for some in combinations(changes, size):
            changed = {**given}
            for _, name, change in some:
                changed[name] = change(changed[name])
            verdict = _ask(changed, asks)
            if VERDICTS.index(verdict) > rank:
                found.append((VERDICTS.index(verdict), " and ".join(text for text, _, _ in some), verdict))
        if found:
            best = min(place for place, _, _ in found)
            said = [text for place, text, _ in found if place == best][:3]
            return f"it would {_DOES[VERDICTS[best]]} if {'; or if '.join(said)}"
    return ""


def _ask(given: Input, asks: Sequence[Any]) -> str:
    record = given["record"]
    facts = {record.id: given["facts"]}
    return decide(given["action"], [record], facts, given["session"], given["policy"], given["now"], asks=asks).verdict


def _silent(given: Input) -> Iterator[tuple[str, str, Any]]:
    """The same of what lets it say nothing at all."""
    record, action, facts = given["record"], given["action"], given["facts"]
    if any(change[2] > record.at for change in facts.get("changes") or []):
        yield "nothing of that had come between", "facts", lambda f: {**f, "changes": []}
    mine = action.variant(record.key)
    if mine != record.variant:
        how = f"`{mine}`" if mine else "in full"
        yield (
            f"it looked at it in the same way (it failed with `{record.variant or 'all of it'}`, now it is looked at {how})",
            "record",
            lambda r: _with(r, variant=mine),
        )
    part = next((p for p in action.parts if p.key == record.key), None)
    if part is not None and action.joins:
        alone = Action(action.tool, action.kind, action.cwd, part.key, part.text, (part,))
        yield "it stood alone (an earlier part may mend it, or the chain goes on without it)", "action", lambda _: alone
    yield (
        f"it spoke from a lower chance than {given['policy'].floor_warn // 10} %",
        "policy",
        lambda p: Policy(**{**_fields(p), "floor_warn": 0}),
    )


def _changes(given: Input, odds: int) -> Iterator[tuple[str, str, Any]]:
    """(in words, which input, how it changes) of everything that holds a verdict back."""
    record, facts, policy, now = given["record"], given["facts"], given["policy"], given["now"]
    if record.origin != "observed":
        how = _ORIGIN.get(record.origin, "told")
        yield f"the hook itself had seen it fail (it was {how})", "record", lambda r: _with(r, origin="observed")
    names = [n for n in ("head", "deps", "files", "env", "tools", "sources") if facts.get(n) not in (None, "same")]
    if names:
        yield f"it were known that nothing changed ({', '.join(names)})", "facts", lambda f: {**f, **dict.fromkeys(names, "same")}
    if record.fix:
        return
    if now - record.at > 30 * MINUTE:
        yield f"it had failed just now (it was {output.ago(record.at, now)})", "now", lambda _: record.at + MINUTE
    if odds > 0:
        least = policy.margin * policy.turn_us // (odds * 1000) + 1
        if (record.dur_ms or 0) < least:
            took = f"it took {output.span(record.dur_ms * 1000)}" if record.dur_ms else "how long it took is not known"
            what = f"the failure had taken {output.span(least * 1000)} or more ({took})"
            yield what, "record", lambda r: _with(r, dur_ms=least)
    who, times = given["session"].session or "one", policy.ask_after
    yield (
        f"this session itself had run into it {count(times, 'time')} in a row",
        "record",
        lambda r: _with(r, ran_by=[who] * times, runs=[r.at - i for i in range(times)][::-1], session=r.session),
    )
    if len(record.runs) < policy.deny_after:
        yield (
            f"it had failed alike {count(policy.deny_after, 'time')} in a row (it did {count(len(record.runs), 'time')})",
            "record",
            lambda r: _with(r, runs=[r.at - i for i in range(policy.deny_after)][::-1], ran_by=["?"] * policy.deny_after),
        )
    if policy.mode == "advise":
        yield "the policy's mode were `enforce`", "policy", lambda p: Policy(**{**_fields(p), "mode": "enforce"})
    if len(record.trail) > 2:
        yield "it did not fail and work by turns with nothing changed", "record", lambda r: _with(r, trail=[])


def _fields(policy: Policy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in policy.__slots__}


def _with(record: Record, **changed: Any) -> Record:
    return Record.from_data({**record.to_data(), **changed})
