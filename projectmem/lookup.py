"""Finds events by what people copy from a screen: a whole id, its beginning, or its end (the short form in messages)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from projectmem import output
from projectmem.errors import BadInputError, NotFoundError

if TYPE_CHECKING:
    from projectmem.place import Place

Event = dict[str, Any]
SHORTEST = 6
LISTED = 5
REMARKS = ("gate.degraded", "log.recovered")  # what the product notes about itself, beside what is asked about


def data_of(event: Event) -> dict[str, Any]:
    """The event's payload; {} for an erased event and for one whose payload is no object."""
    data = event.get("data")
    return data if isinstance(data, dict) else {}


def find_one(place: Place, wanted: str, only: Callable[[Event], bool] | None = None, what: str = "event") -> Event:
    """The one event that `wanted` names, among those that pass `only`.

    Several that begin alike were recorded at the same moment: a call comes before the remark that was made about it, a rule
    before its own decision.

    Raises BadInputError for something too short or that is no id, NotFoundError for none or several (which are listed).
    """
    text = wanted.strip().lower()
    if len(text) < SHORTEST or any(char not in "0123456789abcdef-" for char in text):
        shown = f"{wanted[:60]}…" if len(wanted) > 60 else wanted
        raise BadInputError(f"`{shown}` is not an id: give at least {SHORTEST} characters of one, as `projectmem log` shows it")
    found = _meant(_scan(place, text, only))
    if not found:
        refuse_waiting(place, text)
        raise NotFoundError(f"no {what} with id `{text}` in {place.home}: see `projectmem failures --all` or `projectmem log`")
    if len(found) > 1:
        ids = ", ".join(str(event["id"]) for event in found[:LISTED])
        raise NotFoundError(
            f"`{text}` names {len(found)} events: give more of it. They are {ids}{' ...' if len(found) > LISTED else ''}"
        )
    return found[0]


def refuse_waiting(place: Place, text: str) -> None:
    """Raise NotFoundError where what `text` names (an event or an issue) was recorded and only waits for the log's lock."""
    from projectmem_logs.spool import drafts

    for draft in drafts(place.home):
        if any(id.startswith(text) or id.endswith(text) for id in (draft["id"], str(data_of(draft).get("issue") or "")) if id):
            raise NotFoundError(
                f"`{text}` is recorded and waits until the log is free, which another process has locked: ask again in a moment"
            )


def _meant(found: list[Event]) -> list[Event]:
    """Without the decisions whose own rule is found as well: older logs have both under ids that begin alike, and what was
    shown and is asked about is the rule, which names its decision. So with a remark of the hook beside the call it is about."""
    made_of = {data_of(event).get("decision") for event in found if event["kind"] == "label.set"}
    named = [event for event in found if event["id"] not in made_of]
    return [event for event in named if event["kind"] not in REMARKS] or named


def _scan(place: Place, text: str, only: Callable[[Event], bool] | None) -> list[Event]:
    found: dict[str, Event] = {}
    for event in lines_with(place.home, text):
        id = str(event["id"])
        if id == text:
            return [event] if only is None or only(event) else []
        if (id.startswith(text) or id.endswith(text)) and (only is None or only(event)):
            found[id] = event
    return list(found.values())


def lines_with(home: str, *texts: str) -> Iterator[Event]:
    """Every whole event whose line holds one of these texts, stream by stream: a scan that parses only what it returns.

    The texts must be free of characters that JSON escapes. Damaged lines are passed over. Raises OSError.
    """
    import os

    from projectmem_logs import files
    from projectmem_logs.envelope import parse
    from projectmem_logs.reader import whole_records
    from projectmem_logs.tail import segments, streams
    from projectmem_logs.upcasting import current

    wanted = [text.encode() for text in texts]
    for stream in streams(home):
        folder = os.path.join(home, "log", stream)
        for name in output.progress(segments(folder), "searching the log"):
            for _, raw in files.read_lines(os.path.join(folder, name)):
                if any(text in raw for text in wanted):
                    for record in whole_records(raw[:-1] if raw.endswith(b"\n") else raw):
                        if any(text in record for text in wanted):
                            yield current(parse(record))


def order(event: Event) -> tuple[int, str, int]:
    """The log's order of display: when it was recorded, then its place."""
    return event["ts"], event["stream"], event["seq"]


def is_failure(event: Event) -> bool:
    """Whether the event is a failed tool call (one that was erased has no data and is none)."""
    return event.get("kind") == "action.finished" and data_of(event).get("outcome") == "failed"


def find_failure(place: Place, wanted: str) -> Event:
    """The one failed call that `wanted` names."""
    return find_one(place, wanted, is_failure, "recorded failure")


def edit_keys(event: Event) -> list[str]:
    """The keys of the edits that a successful call made, [] for any other event: what a failed fix is known by."""
    from projectmem_gate.attempts import is_edit

    data = data_of(event)
    if event.get("kind") != "action.finished" or data.get("outcome") != "ok":
        return []
    parts = [
        part
        for part in data.get("parts") or []
        if part.get("key") and is_edit(part.get("family") or "", part.get("effects") or ())
    ]
    return list(dict.fromkeys(part["key"] for part in parts))


def find_record(place: Place, wanted: str) -> Event:
    """The one failed call, or edit that did not mend a failure, that `wanted` names."""
    return find_one(place, wanted, lambda event: is_failure(event) or bool(edit_keys(event)), "recorded failure")
