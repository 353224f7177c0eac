"""The log as people read it: choose events, and say each in one line or in full."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from projectmem import output
from projectmem.errors import BadInputError
from projectmem.lookup import lines_with, order

if TYPE_CHECKING:
    from projectmem.place import Place

Event = dict[str, Any]

KINDS = (
    *("session.started", "session.ended", "action.proposed", "action.finished", "issue.opened", "issue.closed"),
    *("hypothesis.noted", "attempt.recorded", "fix.recorded", "decision.recorded", "note.recorded"),
    *("label.set", "label.cleared", "record.pinned", "record.snoozed", "record.disputed", "record.superseded"),
    *("record.reviewed", "recall.decided", "feedback.given", "erasure.requested", "policy.changed"),
    *("log.recovered", "checkpoint.sealed", "gate.degraded"),
)
FOREVER = 1 << 63
ROUND = 20 + 2 + 1 + 2 + 18  # columns of a line besides kind, text and mark: the time, the short id and what stands between
SURFACES = {"start": "at the session's start", "prompt": "at a prompt", "failure": "after a failure"}


def select(
    place: Place,
    *,
    kinds: Iterable[str] = (),
    since: int = 0,
    until: int = 0,
    limit: int = 20,
    problems: list[Any] | None = None,
) -> list[Event]:
    """The newest `limit` events (0 = all), oldest first, of these kinds (`action` means every `action.*`), at or after `since`
    and before `until` (0: to the end).

    `problems` collects what the reader had to skip. Raises BadInputError for a kind that does not exist.
    """
    wanted = tuple(kinds)
    check_kinds(wanted)
    chosen: deque[Event] = deque(maxlen=limit or None)
    chosen.extend(e for e in _read(place, wanted, since or until, limit, problems) if since <= e["ts"] < (until or FOREVER))
    return list(chosen)


def _read(place: Place, kinds: tuple[str, ...], since: int, limit: int, problems: list[Any] | None) -> Iterable[Event]:
    """The cheapest way to the events asked for: a search for the kinds, the end of each stream, or everything."""
    from projectmem_logs.reader import read_events

    if kinds:
        texts = [text for kind in kinds for text in (f'"kind":"{kind}"', f'"kind":"{kind}.')]
        return sorted((e for e in lines_with(place.home, *texts) if matches(e["kind"], kinds)), key=order)
    after = None if since or not limit else _tail(place, limit)
    return output.progress(read_events(place.home, after, problems=problems), "reading the log")


def _tail(place: Place, limit: int) -> dict[str, int]:
    """Where to start so that at least the newest `limit` events are read, without reading the whole log."""
    from projectmem_logs.store import heads

    return {stream: max(0, seq - limit) for stream, (seq, _) in heads(place.home).items()}


def matches(kind: str, wanted: tuple[str, ...]) -> bool:
    """Whether an event of `kind` is asked for: by its name, by the part before the dot, or because all are."""
    return not wanted or kind in wanted or kind.split(".")[0] in wanted


def check_kinds(wanted: tuple[str, ...]) -> None:
    """Raise BadInputError, with what may have been meant, for a kind that does not exist."""
    known = {*KINDS, *(kind.split(".")[0] for kind in KINDS)}
    for kind in wanted:
        if kind not in known:
            from difflib import get_close_matches

            near = get_close_matches(kind, sorted(known), 1)
            hint = f"; did you mean `{near[0]}`?" if near else f": the kinds are {', '.join(KINDS)}"
            raise BadInputError(f"`{kind}` is not a kind of event{hint}")


def short(id: str) -> str:
    """The form of an id that warnings show too: enough of its beginning to name one event."""
    return id[:18]


def line(event: Event, paint: output.Paint, width: int = 0) -> str:
    """One event in one line: when, what, how it ended, what it was about, and its short id. width: cut to that (0: hardly)."""
    kind, origin = str(event.get("kind", "?")), str((event.get("actor") or {}).get("origin", ""))
    said = "(erased)" if "tombstone" in event else about(event)
    colour = _colour(event)
    mark = "" if origin in ("observed", "") else f" [{output.safe(origin)}]"
    room = max(28, width - ROUND - len(mark) - max(17, len(kind))) if width else 300
    body = f"{output.safe(kind):<17} {output.safe(output.safe(said, limit=300), limit=room)}"
    text = paint(colour, body) if colour else body
    return f"{paint('dim', output.when(event.get('ts', 0)))}  {text}{mark}  {paint('dim', short(str(event.get('id', ''))))}"


def _colour(event: Event) -> str:
    data = event.get("data") or {}
    if event.get("kind") == "action.finished":
        return {"failed": "red", "ok": "green"}.get(data.get("outcome", ""), "")
    if event.get("kind") == "action.proposed":
        return output.VERDICT_COLOURS.get((data.get("decision") or {}).get("verdict", ""), "")
    return "red" if event.get("kind") in ("gate.degraded", "log.recovered") else ""


def about(event: Event) -> str:
    """What an event says, in a few words. Total: any data gives a string (not yet escaped)."""
    kind, data = event.get("kind", ""), event.get("data")
    if not isinstance(data, dict):
        return ""
    if kind == "action.finished":
        cls = f" [{data.get('class')}]" if data.get("class") else ""
        return f"{data.get('outcome', '')}{cls}: {data.get('text', '')}"
    if kind == "action.proposed":
        decision = data.get("decision") or {}
        return f"{decision.get('verdict', '?')} ({decision.get('rule', '') or 'no rule'}): {data.get('text', '')}"
    if kind.startswith("record."):
        until = f" until {output.when(data['until'])}" if isinstance(data.get("until"), int) and data["until"] > 0 else ""
        reason = f": {data['reason']}" if data.get("reason") else ""
        return f"{short(str(data.get('record', '')))}{until}{reason}"
    if kind == "label.set":
        instead = f" (use {data['instead']})" if data.get("instead") else ""
        what = f"{data.get('label')} {data.get('target')} {data.get('pattern')}{instead}"
        return f"{what} -> {data.get('effect')}: {data.get('reason', '')}"
    if kind == "gate.degraded":
        if data.get("what") == "executed after deny":
            return f"{data.get('detail', '')} ran although it had been refused"
        return f"{data.get('where', '')}: {data.get('what', '')} {data.get('detail', '')}"
    if kind == "recall.decided":
        return _recalled(data)
    if kind == "feedback.given":
        note = f": {data['note']}" if data.get("note") else ""
        return f"{'useful' if data.get('useful') else 'not useful'}: {short(str(data.get('target', '')))}{note}"
    if kind == "policy.changed":
        policy = data.get("policy")
        mode = policy.get("mode") if isinstance(policy, dict) else None
        return f"policy {str(data.get('hash', ''))[:16]}" + (f", mode {mode}" if mode else "")
    for name in ("title", "text", "resolution", "note", "reason", "source", "selector", "hash", "root", "segment"):
        if data.get(name):
            prefix = f"{data['issue']} " if data.get("issue") else ""
            return f"{prefix}{data[name]}"
    return ", ".join(f"{k}={v}" for k, v in data.items() if isinstance(v, (str, int)) and v != "")


def _recalled(data: dict[str, Any]) -> str:
    """How many things a question brought up, or why none; what was told unasked has no question, and says when it was."""
    items, start = data.get("items"), data.get("profile")
    found = start if isinstance(start, list) and start else items
    number = len(found) if isinstance(found, list) and not data.get("abstained") else 0
    why = f" ({data['why']})" if not number and data.get("why") else ""
    unasked = "" if data.get("query") else SURFACES.get(str(data.get("surface")), "")
    asked = f" {unasked}" if unasked else f': "{data.get("query", "")}"'
    return f"{number or 'nothing'} shown{asked}{why}"


def full(event: Event) -> list[str]:
    """Every field of an event, escaped, one a line; text of several lines is indented."""
    lines = []
    for name in ("id", "kind", "ts", "at", "stream", "seq", "actor", "causes", "data", "tombstone"):
        value = event.get(name)
        if value in (None, "", [], {}):
            continue
        if name in ("ts", "at") and isinstance(value, int):
            lines.append(f"{name:<10}{output.when(value)}")
        elif isinstance(value, dict):
            lines.append(name)
            lines += [f"  {output.safe(k):<14} {_value(v)}" for k, v in value.items() if v not in (None, "", [], {})]
        else:
            lines.append(f"{name:<10}{_value(value)}")
    return lines


def _value(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return output.safe(output.to_json(value, indent=None), limit=600)
    text = output.safe(value, lines=True, limit=2000)
    return text.replace("\n", "\n" + " " * 17)
