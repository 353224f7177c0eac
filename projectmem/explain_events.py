"""Explains an event that is neither a call nor a rule: what it says, who wrote it and when, what it belongs to. No raw record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from projectmem import logview, output
from projectmem.lookup import data_of

Event = dict[str, Any]
_WRITTEN = {"observed": "seen by the hook", "import": "imported", "human": "written by a person", "agent": "written by an agent"}
# kind -> (what it is called, [(what a field is called, the field)]); the first field is what it says.
_KINDS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "session.started": ("Start of a session", (("because of", "source"), ("in", "cwd"))),
    "session.ended": ("End of a session", (("because", "reason"),)),
    "issue.opened": ("Issue", (("", "title"), ("issue", "issue"), ("about", "paths"))),
    "issue.closed": ("End of an issue", (("", "resolution"), ("issue", "issue"))),
    "hypothesis.noted": ("Hypothesis", (("", "text"), ("issue", "issue"))),
    "attempt.recorded": ("Attempt", (("", "text"), ("it", "outcome"), ("by the word of", "verifier"), ("issue", "issue"))),
    "fix.recorded": ("Fix", (("", "text"), ("by the word of", "verifier"), ("issue", "issue"))),
    "decision.recorded": ("Decision", (("", "title"), ("", "text"), ("replaces", "supersedes"))),
    "note.recorded": ("Note", (("", "text"), ("tags", "tags"))),
    "label.cleared": ("End of a rule", (("", "reason"), ("rule", "label_event"))),
    "feedback.given": ("Feedback", (("", "note"), ("about", "target"))),
    "erasure.requested": ("Erasure", (("", "selector"), ("because", "reason"))),
    "policy.changed": ("Change of the policy", (("policy", "hash"),)),
    "log.recovered": ("Repair of the log", (("in", "segment"), ("kept aside as", "quarantine"), ("bytes", "bytes"))),
    "checkpoint.sealed": ("Checkpoint", (("records", "size"), ("root", "root"))),
    "gate.degraded": ("The gate could not do its work", (("", "what"), ("", "detail"), ("in", "where"))),
}
_TOUCHED = (("", "reason"), ("record", "record"), ("replaced by", "by_event"))


def told(event: Event, related: Sequence[Event], now: int) -> list[str]:
    """The explanation in lines, escaped for a terminal; `related` are events that name it or that it names."""
    data, actor = data_of(event), event.get("actor") or {}
    kind = str(event.get("kind", ""))
    action = kind.removeprefix("record.")
    name, fields = _KINDS.get(
        kind, (f"Record {action}" if kind.startswith("record.") else f"Event `{output.safe(kind)}`", _TOUCHED)
    )
    lines = [f"{name} {event['id']}", ""]
    said = [(label, _shown(data.get(field))) for label, field in fields if data.get(field) not in (None, "", [], 0)]
    if kind == "feedback.given":
        said.insert(0, ("", "useful" if data.get("useful") else "not useful"))
    if not said:
        said = [("", output.safe(logview.about(event), limit=300))]
    lines += [f"  {label}{': ' * bool(label)}{text}" for label, text in dict.fromkeys(said) if text]
    if isinstance(data.get("until"), int) and data["until"] > 0:
        lines.append(f"  until {output.when(data['until'])}")
    who = ", ".join(output.safe(actor[n]) for n in ("harness", "model", "agent") if actor.get(n))
    session = f", session {output.safe(actor['session'])}" if actor.get("session") else ""
    origin = _WRITTEN.get(str(actor.get("origin")), "origin not known")
    lines.append(f"  {origin}{f' ({who})' if who else ''}{session}, {output.when(event['at'])} ({output.ago(event['at'], now)})")
    if related:
        lines += ["", "Related", *(f"  {logview.line(other, output.Paint(False))}" for other in related)]
    return [*lines, "", f"The whole record: `projectmem explain {logview.short(event['id'])} --json`."]


def _shown(value: Any) -> str:
    """A field's value on one line, or on several that are indented alike."""
    if isinstance(value, list):
        return ", ".join(output.safe(one, limit=120) for one in value[:10] if isinstance(one, (str, int)))
    return output.safe(value, lines=True, limit=2000).replace("\n", "\n  ")
