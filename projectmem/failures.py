"""What stands recorded as failed, and what the gate makes of each now: `projectmem failures`, and the core of `explain`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from projectmem import output
from projectmem.logview import short
from projectmem.lookup import is_failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from projectmem_gate.history import Record
    from projectmem_gate.model import Action, Decision

    from projectmem.hook.facts import Disk
    from projectmem.place import Place


@dataclass(slots=True)
class Standing:
    """One recorded failure as of now.

    decision     what the gate would say to a new session that repeats the action
    fresh, why   same | changed | unknown: whether what failed may have been mended, and by what
    facts        how the recorded state of the workspace compares with now
    """

    record: Record
    decision: Decision
    fresh: str
    why: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def says(self) -> str:
        """`warn`, `ask`, `deny`, or `silent` with the reason in `silence`."""
        return "silent" if self.decision.verdict == "allow" else self.decision.verdict

    def silence(self, now: int) -> str:
        """Why the gate says nothing, "" when it does speak."""
        if self.decision.verdict != "allow":
            return ""
        if self.record.state != "open":
            return f"{self.record.state}: {self.record.state_why}" if self.record.state_why else self.record.state
        if self.fresh == "changed":
            return self.why
        if self.decision.rule:
            return self.decision.rule
        return "expired" if self.decision.engine else "nothing to say"

    def to_data(self) -> dict[str, Any]:
        """The row as JSON data."""
        return {
            **self.record.to_data(),
            "gate": self.says,
            "decision": self.decision.to_data(),
            "freshness": {"state": self.fresh, "why": self.why},
        }


def failures(place: Place, now: int, *, every: bool = False, limit: int = 0) -> list[Standing]:
    """Failures that stand open, newest first; with `every` also those that were cleared, snoozed, disputed or superseded.

    Raises LogError, ProjectionError.
    """
    from projectmem.state import policy_of, reading

    with reading(place) as state:
        records = _records(state, failed_keys(place), now, every)
        records = records[:limit] if limit else records
        disk, policy = disk_of(place), policy_of(state)
        return [standing(state, record, _action(record), disk, policy, now) for record in records]


def failed_keys(place: Place) -> list[str]:
    """Every key under which a failure was ever recorded."""
    from projectmem_logs.reader import read_events

    keys: dict[str, None] = {}
    for event in output.progress(read_events(place.home), "reading the log"):
        if is_failure(event):
            keys.update((key, None) for key in (event["data"].get("failed_key"), event["data"].get("key")) if key)
    return list(keys)


def _records(state: Any, keys: Iterable[str], now: int, every: bool) -> list[Record]:
    """One record for each failed call, though a chain is remembered under two keys: the part that failed goes first."""
    from projectmem_gate import history

    found: dict[str, Record] = {}
    for key, entries in state.entries(keys).items():
        record = history.fold(key, entries, now)
        if record is not None and (every or record.state == "open"):
            found.setdefault(record.id, record)
    return sorted(found.values(), key=lambda record: (-record.at, record.id))


def _action(record: Record) -> Action:
    """The recorded action, as far as its history tells: enough to ask the gate about it."""
    from projectmem_gate.model import Action, Part

    part = Part(record.key, "sh", record.family, record.text, paths=record.paths)
    return Action("", "sh", ".", record.key, record.text, (part,))


def disk_of(place: Place) -> Disk:
    """The workspace on disk."""
    from projectmem.hook.facts import Disk
    from projectmem.place import env

    return Disk(place, env("PATH"))


def standing(state: Any, record: Record, action: Action, disk: Any, policy: Any, now: int) -> Standing:
    """What the gate makes of one record now, asked by a session that is new to it."""
    from projectmem_gate import freshness
    from projectmem_gate.model import Session

    from projectmem.hook.judge import assess, gather

    decision, facts, _ = assess(state, action, Session(""), disk, policy, now)
    own = facts.get(record.id) or gather(state, record, disk)
    fresh, why = freshness.judge(record, own, now, cooldown=policy.cooldown)
    return Standing(record, decision, fresh, why, own)


def render(rows: list[Standing], now: int, paint: output.Paint, width: int = 110) -> list[str]:
    """The rows as an aligned table with a line below that says how to go on."""
    if not rows:
        return ["nothing stands recorded as failed"]
    cells = []
    for row in rows:
        record = row.record
        times = f"{record.streak}x" if record.streak > 1 else ""
        note = row.silence(now)
        text = f"{record.text}  ({note})" if note else record.text
        cells.append([row.says, record.cls, output.ago(record.at, now), times, short(record.id), output.safe(text)])
    head, *lines = output.table(cells, ("GATE", "CLASS", "FAILED", "", "ID", "ACTION"), width=width)
    out = [paint("dim", head)]
    for row, line in zip(rows, lines, strict=True):
        colour = {"silent": "dim", **output.VERDICT_COLOURS}[row.says]
        out.append(f"{paint(colour, line[:6])}{line[6:]}" if row.says != "silent" else paint("dim", line))
    out.append(paint("dim", "`projectmem explain ID` says why; `projectmem dispute ID` if it is wrong"))
    return out
