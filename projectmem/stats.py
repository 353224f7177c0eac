"""Counts of what is in a log: calls and outcomes, failures by class, what the gate said, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from projectmem import output
from projectmem.lookup import data_of

Event = dict[str, Any]
TOP = 8


@dataclass(slots=True)
class Stats:
    """The counts. `heard` says what agents did after an objection: what became of the calls that were spoken of."""

    events: int = 0
    first: int = 0
    last: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    failing: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    heard: Counter[str] = field(default_factory=Counter)
    failed_ms: int = 0

    def to_data(self) -> dict[str, Any]:
        """The counts as plain data."""
        data: dict[str, Any] = {"events": self.events, "first": self.first, "last": self.last, "sessions": len(self.sessions)}
        for name in ("kinds", "outcomes", "classes", "tools", "verdicts", "rules", "heard"):
            data[name] = dict(getattr(self, name).most_common())
        return {**data, "failing": dict(self.failing.most_common(TOP)), "failed_ms": self.failed_ms}


def stats(home: str, *, since: int = 0) -> Stats:
    """Count the events of the log in `home` that were recorded at or after `since` (us). Raises OSError, LogError."""
    from projectmem_logs.reader import read_events

    found = Stats()
    spoken: dict[tuple[str, str], str] = {}
    for event in output.progress(read_events(home), "counting"):
        if event["ts"] >= since:
            _count(found, event, spoken)
    for verdict in spoken.values():  # refused, or the session ended before the call did
        found.heard[f"{verdict}: not run"] += 1
    return found


def _count(found: Stats, event: Event, spoken: dict[tuple[str, str], str]) -> None:
    data, actor = data_of(event), event.get("actor") or {}
    found.events += 1
    found.first = min(found.first or event["ts"], event["ts"])
    found.last = max(found.last, event["ts"])
    found.kinds[event["kind"]] += 1
    session = str(actor.get("session") or "")
    if session:
        found.sessions.add(session)
    call = (session, str(data.get("call") or ""))
    if event["kind"] == "action.proposed":
        decision = data.get("decision") or {}
        found.verdicts[str(decision.get("verdict", "?"))] += 1
        found.rules[str(decision.get("rule") or "no rule")] += 1
        if decision.get("verdict") not in ("allow", None):
            spoken[call] = str(decision["verdict"])
    elif event["kind"] == "action.finished":
        _finished(found, data)
        verdict = spoken.pop(call, None)
        if verdict is not None:
            found.heard[f"{verdict}: {'not run' if data.get('outcome') == 'rejected' else data.get('outcome')}"] += 1


def _finished(found: Stats, data: dict[str, Any]) -> None:
    outcome = str(data.get("outcome", "?"))
    found.outcomes[outcome] += 1
    found.tools[str(data.get("tool", "?"))] += 1
    if outcome == "failed":
        found.classes[str(data.get("class") or "unknown")] += 1
        found.failing[str(data.get("text", ""))[:80]] += 1
        found.failed_ms += data.get("duration_ms") or 0


def render(found: Stats, paint: output.Paint) -> list[str]:
    """The counts in lines for a person."""
    if not found.events:
        return ["the log holds nothing from that time"]
    lines = [
        f"{found.events:,} events in {len(found.sessions):,} sessions, {output.when(found.first)} to {output.when(found.last)}",
        _row("calls", found.outcomes, paint),
        _row("failures by class", found.classes, paint),
        _row("tools", found.tools, paint),
        _row("the gate said", found.verdicts, paint),
        _row("by rule", found.rules, paint),
        _row("and then", found.heard, paint),
    ]
    if found.failed_ms:
        lines.append(f"{'spent on failures':<20}{output.span(found.failed_ms * 1000)}")
    if found.failing:
        lines.append(paint("dim", "failing most"))
        lines += [f"  {count:>5}x  {output.safe(text)}" for text, count in found.failing.most_common(TOP)]
    return lines


def _row(name: str, counts: Iterable[Any] | Counter[str], paint: output.Paint) -> str:
    pairs = counts.most_common(TOP) if isinstance(counts, Counter) else []
    return f"{paint('dim', name.ljust(20))}{', '.join(f'{output.safe(k)} {n:,}' for k, n in pairs) or 'none'}"
