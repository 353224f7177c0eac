"""What stands recorded as failed, and what the gate makes of each now: `projectmem failures`, and the core of `explain`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from projectmem_gate.history import KEEP
from projectmem_gate.reason import said

from projectmem import output, units
from projectmem.logview import short
from projectmem.lookup import is_failure
from projectmem.standing import ask, disk_of

MANY = 1_000_000

if TYPE_CHECKING:
    from collections.abc import Iterable

    from projectmem_gate.history import Record
    from projectmem_gate.model import Action, Decision

    from projectmem.place import Place

__all__ = ["Standing", "disk_of", "failures", "render", "standing"]


@dataclass(slots=True)
class Standing:
    """One recorded failure as of now.

    decision     what the gate would say to a new session that repeats the action
    fresh, why   same | changed | unknown: whether what failed may have been mended, and by what
    facts        how the recorded state of the workspace compares with now
    lapses       when it expires by the policy, microseconds, 0 for a pinned one
    """

    record: Record
    decision: Decision
    fresh: str
    why: str
    facts: dict[str, Any] = field(default_factory=dict)
    lapses: int = 0

    @property
    def says(self) -> str:
        """`warn`, `ask`, `deny`, or `silent` with the reason in `silence`."""
        return "silent" if self.decision.verdict == "allow" else self.decision.verdict

    def silence(self, now: int) -> str:
        """Why the gate says nothing, "" when it does speak."""
        if self.decision.verdict != "allow":
            return ""
        if self.record.state != "open":
            state, why = self.record.state, self.record.state_why
            return why if why.startswith(state) else f"{state}: {why}" if why else state
        if self.fresh == "changed":
            return self.why
        if self.decision.rule:
            return self.decision.rule
        if self.lapses and now >= self.lapses:
            return f"expired {output.ago(self.lapses, now)}"
        return "not likely enough to fail again" if self.decision.engine else "nothing to say"

    def to_data(self) -> dict[str, Any]:
        """The row as JSON data."""
        return {
            **self.record.to_data(),
            "gate": self.says,
            "decision": self.decision.to_data(),
            "freshness": {"state": self.fresh, "why": self.why},
        }


def failures(place: Place, now: int, *, every: bool = False, limit: int = 0, notices: list[str] | None = None) -> list[Standing]:
    """Failures that may still object, newest first; with `every` also the expired, cleared, disputed and superseded.

    `notices` collects what a person should be told (damage, a rebuilt generation). Raises LogError, ProjectionError.
    """
    from projectmem.state import policy_of, reading

    keys = failed_keys(place, now, every=every, limit=limit, notices=notices)
    with reading(place) as state:
        disk, policy = disk_of(place, state), policy_of(state)
        records = _records(state, keys, now) + failed_fixes(state, now, every=every)
        records.sort(key=lambda record: (-record.at, record.id))
        del records[limit or MANY :]
        return [standing(state, record, None, disk, policy, now) for record in records]


def failed_keys(place: Place, now: int, *, every: bool, limit: int = 0, notices: list[str] | None = None) -> list[str]:
    """The keys of failures, newest first: from the summaries, or from the log itself where those cannot be built."""
    from projectmem_projections import summaries
    from projectmem_projections.errors import ProjectionError

    try:
        with output.Waiting("reading the summaries"):
            rows = summaries.failures(place.home, now=now, all=every, limit=limit or MANY, notices=notices)
        return [row["key"] for row in rows]
    except (ProjectionError, OSError) as exc:
        if notices is not None:
            notices.append(f"the summaries cannot be used ({exc}): the log itself was read")
    from projectmem_logs.reader import read_events

    keys: dict[str, None] = {}
    for event in output.progress(read_events(place.home), "reading the log"):
        if is_failure(event):
            keys.pop(event["data"].get("failed_key") or event["data"].get("key"), None)
            keys[event["data"].get("failed_key") or event["data"].get("key")] = None
    newest = [key for key in reversed(keys) if key]
    return newest[:limit] if limit else newest


def _records(state: Any, keys: Iterable[str], now: int) -> list[Record]:
    """The record of each key, newest first. A call that failed twice over (two keys, one event) is one."""
    from projectmem_gate import history

    found: dict[str, Record] = {}
    for key, entries in state.entries(keys).items():
        record = history.fold(key, entries, now)
        if record is not None:
            found.setdefault(record.id, record)
    return sorted(found.values(), key=lambda record: (-record.at, record.id))


def failed_fixes(state: Any, now: int, *, every: bool = False) -> list[Record]:
    """Edits that did not mend a failure which still stands; with `every` also those that somebody disputed or snoozed."""
    from projectmem_gate import fixes

    found = []
    keys = state.suspects()
    attempts = state.attempts(keys)
    for key in keys:
        attempt = fixes.choose((key,), (a for a in attempts if a["key"] == key))
        if attempt is not None:
            own = state.entries((key, attempt["vkey"]))
            record = fixes.record(attempt, own.get(key, ()), own.get(attempt["vkey"], ()), now)
            if record is not None and (every or record.state == "open"):
                found.append(record)
    return found


def standing(state: Any, record: Record, action: Action | None, disk: Any, policy: Any, now: int) -> Standing:
    """What the gate makes of one record now, asked by a session that is new to it."""
    lapses = 0 if record.pinned else record.at + policy.ttl_warn.get(record.cls, 0)
    return Standing(record, *ask(state, record, disk, policy, now, action), lapses=lapses)


def passed_over(place: Place, action: Action, now: int) -> list[Standing]:
    """Recorded failures of this very action, or of a part of it, that did not work since and that the gate is silent about."""
    from projectmem.state import policy_of, reading

    keys = dict.fromkeys((action.key, *(part.key for part in action.parts)))
    with reading(place) as state:
        disk, policy = disk_of(place, state), policy_of(state)
        found = [standing(state, record, None, disk, policy, now) for record in _records(state, keys, now)]
    return [row for row in found if row.record.state != "cleared" and row.says == "silent"]


def standing_fixes(place: Place, state: Any, now: int) -> list[Record]:
    """The failed fixes that the gate would speak of now, newest first."""
    from projectmem.state import policy_of

    disk, policy = disk_of(place, state), policy_of(state)
    found = [fix for fix in failed_fixes(state, now) if ask(state, fix, disk, policy, now)[0].verdict != "allow"]
    return sorted(found, key=lambda fix: (-fix.at, fix.id))


def fix_line(record: Record, now: int) -> str:
    """A failed fix in one line for an agent: what was tried for which failure, and what says that it failed."""
    fix = record.fix
    what = f"this fix was tried {output.ago(record.at, now)}: {fix['text']}"
    if fix["times"]:
        often = f" {units.count(fix['times'], 'time')}" if fix["times"] > 1 else ""
        proof = f"and failed{often}: {fix['verifier']} showed the same after it in `{said(record.text)}`"
    else:
        proof = f"and taken back unverified; `{said(record.text)}` still fails"
    return f"- [failed fix, {short(record.id)}] {what} {proof}"


def render(rows: list[Standing], now: int, paint: output.Paint, width: int = 110) -> list[str]:
    """The rows as an aligned table with a line below that says how to go on."""
    if not rows:
        return ["nothing stands recorded as failed"]
    cells = []
    for row in rows:
        record = row.record
        count = record.fix["times"] if record.fix else record.streak
        times = f"{count}x{'+' * (count >= KEEP and not record.fix)}" if count > 1 else ""
        note = row.silence(now)
        what = f"{record.fix['text']}  [did not mend {said(record.text)}]" if record.fix else said(record.text)
        text = f"{what}  ({note})" if note else what
        cells.append([row.says, record.cls, output.ago(record.at, now), times, short(record.id), output.safe(text)])
    head, *lines = output.table(cells, ("GATE", "CLASS", "FAILED", "", "ID", "ACTION"), width=width)
    out = [paint("dim", head)]
    for row, line in zip(rows, lines, strict=True):
        colour = {"silent": "dim", **output.VERDICT_COLOURS}[row.says]
        out.append(f"{paint(colour, line[:6])}{line[6:]}" if row.says != "silent" else paint("dim", line))
    out.append(paint("dim", "`projectmem explain ID` says why; `projectmem dispute ID` if it is wrong"))
    return out
