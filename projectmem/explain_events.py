"""Explains an event that is neither a call nor a rule: what it says, who wrote it and when, what it belongs to. No raw record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from projectmem import logview, output, units
from projectmem.lookup import data_of

Event = dict[str, Any]
ERASED_MAX = 20  # erased events that are listed
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
    "recall.decided": ("Recall", ()),
    "checkpoint.sealed": ("Checkpoint", (("records", "size"), ("root", "root"))),
    "gate.degraded": ("The gate could not do its work", (("", "what"), ("", "detail"), ("in", "where"))),
}
_TOUCHED = (("", "reason"), ("record", "record"), ("replaced by", "by_event"))


def told(
    event: Event,
    related: Sequence[Event],
    now: int,
    *,
    erased: Sequence[Event] = (),
    listed: Sequence[tuple[str, Sequence[Event]]] = (),
) -> list[str]:
    """The explanation in lines, escaped for a terminal; `related` are events that name it or that it names, `erased` what an
    erasure left the places of, `listed` what else it is about, under titles."""
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
    if erased:
        lines += [
            "",
            f"Erased: {units.count(len(data['ids']), 'event')}, of which the log keeps the place, the kind and the time",
        ]
        lines += [f"  {logview.line(other, output.Paint(False))}" for other in erased[:ERASED_MAX]]
        lines += [f"  and {len(erased) - ERASED_MAX} more (--json has every id)"] if len(erased) > ERASED_MAX else []
    for title, events in listed:
        lines += ["", title, *(f"  {logview.line(other, output.Paint(False))}" for other in events)] if events else []
    if related:
        lines += ["", "Related", *(f"  {logview.line(other, output.Paint(False))}" for other in related)]
    return [*lines, "", f"The whole record: `projectmem explain {logview.short(event['id'])} --json`."]


def erased(event: Event, request: Event | None, now: int) -> list[str]:
    """What can still be said of an event that was erased: what it was, and who asked for that, when and why."""
    at = (event.get("tombstone") or {}).get("at")
    when = f" {output.when(at)} ({output.ago(at, now)})" if isinstance(at, int) else ""
    lines = [
        f"Event {event['id']} ({output.safe(event['kind'])}) was erased on request; nothing of it is kept but its place.",
        "",
        f"  recorded {output.when(event['ts'])}, erased{when}",
    ]
    if request is None or request["kind"] != "erasure.requested" or event["id"] not in (data_of(request).get("ids") or ()):
        return [*lines, "  no request for it is on record: `projectmem verify` lists what nobody asked for"]
    why, origin = (
        data_of(request).get("reason"),
        _WRITTEN.get(str((request.get("actor") or {}).get("origin")), "origin not known"),
    )
    lines += [f"  because: {output.safe(why, limit=300)}"] if why else []
    return [
        *lines,
        f"  asked for in {logview.short(request['id'])}, {origin}: `projectmem explain {logview.short(request['id'])}`",
    ]


def _shown(value: Any) -> str:
    """A field's value on one line, or on several that are indented alike."""
    if isinstance(value, list):
        return ", ".join(output.safe(one, limit=120) for one in value[:10] if isinstance(one, (str, int)))
    return output.safe(value, lines=True, limit=2000).replace("\n", "\n  ")
