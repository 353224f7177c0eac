"""Finds events by what people copy from a screen: a whole id, its beginning, or its end (the short form in messages)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from projectmem import output
from projectmem.errors import BadInputError, NotFoundError

if TYPE_CHECKING:
    from projectmem.place import Place

Event = dict[str, Any]
SHORTEST = 6
LISTED = 5


def data_of(event: Event) -> dict[str, Any]:
    """The event's payload; {} for an erased event and for one whose payload is no object."""
    data = event.get("data")
    return data if isinstance(data, dict) else {}


def find_one(place: Place, wanted: str, only: Callable[[Event], bool] | None = None, what: str = "event") -> Event:
    """The one event that `wanted` names, among those that pass `only`.

    Raises BadInputError for something too short or that is no id, NotFoundError for none or several (which are listed).
    """
    text = wanted.strip().lower()
    if len(text) < SHORTEST or any(char not in "0123456789abcdef-" for char in text):
        raise BadInputError(f"`{wanted}` is not an id: give at least {SHORTEST} characters of one, as `projectmem log` shows it")
    found = _scan(place, text, only)
    if not found:
        raise NotFoundError(f"no {what} with id `{text}` in {place.home}: see `projectmem failures --all` or `projectmem log`")
    if len(found) > 1:
        ids = ", ".join(str(event["id"]) for event in found[:LISTED])
        raise NotFoundError(
            f"`{text}` names {len(found)} events: give more of it. They are {ids}{' ...' if len(found) > LISTED else ''}"
        )
    return found[0]


def _scan(place: Place, text: str, only: Callable[[Event], bool] | None) -> list[Event]:
    from projectmem_logs.reader import read_events

    found = []
    for event in output.progress(read_events(place.home), "looking for the event"):
        id = str(event.get("id", ""))
        if id == text:
            return [event] if only is None or only(event) else []
        if (id.startswith(text) or id.endswith(text)) and (only is None or only(event)):
            found.append(event)
    return found


def is_failure(event: Event) -> bool:
    """Whether the event is a failed tool call (one that was erased has no data and is none)."""
    return event.get("kind") == "action.finished" and data_of(event).get("outcome") == "failed"


def find_failure(place: Place, wanted: str) -> Event:
    """The one failed call that `wanted` names."""
    return find_one(place, wanted, is_failure, "recorded failure")
