"""What the gate makes of a recorded failure now: the one judgement behind `failures`, `explain` and every summary [H].

A failure *stands* when the gate would say something to a new session that repeats the action. So a summary never lists what
the gate is silent about (changed since, lapsed, cleared, disputed), and never leaves out what it would object to.
"""

from __future__ import annotations

from projectmem_gate.model import Action, Part, Session

from projectmem.hook.facts import Disk
from projectmem.hook.judge import assess, gather
from projectmem.hook.state import policy_of
from projectmem.place import env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_gate.history import Record
    from projectmem_gate.model import Decision

    from projectmem.place import Place


def disk_of(place: Place, state: Any) -> Disk:
    """The workspace on disk, files that were moved on record under the names they had before."""
    return Disk(place, env("PATH"), state.moves())


def action_of(record: Record) -> Action:
    """The recorded action, as far as its history tells: enough to ask the gate about it."""
    if record.fix:
        path, text = record.fix["path"], record.fix["text"]
        edit = Part(record.key, "edit", f"edit {path}", text, paths=(path,), variant=record.fix["variant"])
        return Action("", "edit", ".", record.key, text, (edit,))
    part = Part(record.key, "sh", record.family, record.text, paths=record.paths)
    return Action("", "sh", ".", record.key, record.text, (part,))


def ask(
    state: Any, record: Record, disk: Any, policy: Any, now: int, action: Action | None = None
) -> tuple[Decision, str, str, dict[str, Any]]:
    """(decision, freshness, why, facts) for one record, asked by a session new to it. freshness: same | changed | unknown.

    action  where it is known in full; by default what the record tells of it
    """
    from projectmem_gate import freshness

    decision, facts, _ = assess(state, action or action_of(record), Session(""), disk, policy, now)
    own = facts.get(record.id) or gather(state, record, disk)
    fresh, why = freshness.judge(record, own, now, cooldown=policy.cooldown)
    return decision, fresh, why, own


class Judge:
    """Asked by action key whether a failure stands, for one state, workspace and time. Each key is judged once."""

    def __init__(self, place: Place, state: Any, now: int) -> None:
        self.state, self.now, self.policy = state, now, policy_of(state)
        self._disk = disk_of(place, state)
        self._known: dict[str, str] = {}
        self._times: dict[str, int] = {}

    def verdict(self, key: str) -> str:
        """What the gate would say to the action of this key: "" for nothing, else warn, ask or deny."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._verdict(key)
        return found

    def stands(self, key: str) -> bool:
        """Whether the gate would say anything."""
        return bool(self.verdict(key))

    def times(self, key: str) -> int:
        """How often the action failed since it last worked, parallel calls of one batch counted once; 0 where it is not known."""
        self.verdict(key)
        return self._times.get(key, 0)

    def _verdict(self, key: str) -> str:
        from projectmem_gate import history

        record = history.fold(key, self.state.entries((key,)).get(key, ()), self.now)
        if record is None or record.state != "open":
            return ""
        self._times[key] = record.streak
        decision, _, _, _ = ask(self.state, record, self._disk, self.policy, self.now)
        return "" if decision.verdict == "allow" else decision.verdict
