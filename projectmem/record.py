"""Write what people and agents have to say: issues, attempts, fixes, decisions, notes, labels, and verdicts on records.

Everything is validated against its kind, stripped of secrets and appended in one step. Whoever is not a person at a
terminal is an *agent*: it may note, dispute and make rules that warn; labels, pins and rules that do more are not its to make.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from projectmem import writing
from projectmem.errors import BadInputError, NotFoundError, RefusedError
from projectmem.lookup import data_of, edit_keys, find_one, find_record, lines_with, order

if TYPE_CHECKING:
    from projectmem.place import Place

Event = dict[str, Any]

PERSON_ONLY = frozenset({"label.set", "label.cleared", "record.pinned", "record.reviewed", "policy.changed"})
CURATIONS = ("pinned", "snoozed", "disputed", "superseded", "reviewed")


def new_id() -> str:
    """A short random id for an issue: never counted up, so two writers never give out the same one."""
    return os.urandom(5).hex()


def record(
    place: Place,
    kind: str,
    data: Mapping[str, Any],
    *,
    now: int,
    origin: str,
    actor: Mapping[str, str] | None = None,
    causes: Sequence[str] = (),
    notices: list[str] | None = None,
    at: int | None = None,
) -> Event:
    """Append one event of `kind` and return it as it was sealed. `notices` collects what a person should hear besides.

    origin  human | agent | import; an agent may not write the kinds in PERSON_ONLY (RefusedError)
    actor   session, agent, harness, model where known;  at  when it happened, where that is not `now`
    Raises KindError for data that does not fit the kind, LogError when the log cannot take it.
    """
    if kind in ("note.recorded", "decision.recorded"):
        from projectmem import write_gate

        data = write_gate.checked(place, kind, data, now=now, origin=origin, notices=notices)
    draft = _draft(place, kind, data, now=now, origin=origin, actor=actor, causes=causes)
    if at is not None:
        draft["at"] = at
    return _written(place, [draft], now, notices)[-1]


def write_all(
    place: Place,
    events: Sequence[tuple[str, Mapping[str, Any], Sequence[str]]],
    *,
    now: int,
    origin: str,
    actor: Mapping[str, str] | None = None,
    notices: list[str] | None = None,
) -> list[Event]:
    """Append several events (kind, data, causes) in one batch: all of them or none. Raises as `record`."""
    drafts = [_draft(place, kind, data, now=now, origin=origin, actor=actor, causes=causes) for kind, data, causes in events]
    return _written(place, drafts, now, notices)


def _draft(
    place: Place,
    kind: str,
    data: Mapping[str, Any],
    *,
    now: int,
    origin: str,
    actor: Mapping[str, str] | None,
    causes: Sequence[str],
) -> dict[str, Any]:
    """A draft that may be written: allowed to this caller, without secrets, valid for its kind."""
    from projectmem_logs import kinds

    warns = kind == "label.set" and data.get("label") == "rule" and data.get("effect") == "warn"  # an agent's decision may
    if kind in PERSON_ONLY and origin != "human" and not warns:
        raise RefusedError(f"`{kind}` needs a person at a terminal; an agent can record a note or dispute a record")
    clean = kinds.validate(kind, dict(redacted(place, dict(data))))
    who = {name: str((actor or {}).get(name) or "") for name in ("session", "agent", "harness", "model")}
    return {"kind": kind, "at": now, "actor": {**who, "origin": origin}, "causes": list(causes), "data": dict(clean)}


def _written(place: Place, drafts: list[dict[str, Any]], now: int, notices: list[str] | None) -> list[Event]:
    """The drafts as sealed events, in one batch (what the log healed before them is not returned). A note of what was recalled
    goes beside an answer that somebody waits for, and waits no longer than a hook."""
    wait_ms = 0 if drafts[0]["kind"] == "recall.decided" else writing.COMMAND_WAIT_MS
    return writing.append(place, drafts, now, problems=notices, wait_ms=wait_ms)[-len(drafts) :]


def redacted(place: Place, data: Any) -> Any:
    """A JSON value with every secret replaced under the installation's key."""
    from projectmem_logs.redact import Redactor
    from projectmem_logs.store import redaction_key

    return Redactor(redaction_key(place.home)).tree(data)


def curate(
    place: Place,
    what: str,
    wanted: str,
    *,
    now: int,
    origin: str,
    actor: Mapping[str, str] | None = None,
    until: int = 0,
    reason: str = "",
    by: str = "",
    notices: list[str] | None = None,
) -> list[Event]:
    """Pin, snooze, dispute, supersede or review the failure `wanted` (an id or a part of one).

    what   one of CURATIONS;  until  when a snooze or a pin's review falls due (microseconds, 0 where it does not apply)
    by     for `superseded`: the id of what replaces it
    Returns one event per key that the failure is remembered under (a chain of commands has two).
    Raises NotFoundError, RefusedError, BadInputError, LogError.
    """
    if what not in CURATIONS:
        raise BadInputError(f"`{what}` is not one of {', '.join(CURATIONS)}")
    failure = find_record(place, wanted)
    if what in ("pinned", "reviewed") and edit_keys(failure):
        raise BadInputError("a fix that failed lapses with the failure it was for: pin that failure instead")
    if what == "superseded":
        by = str(find_one(place, by)["id"])
        if by == failure["id"]:
            raise BadInputError("a record cannot supersede itself: name the event that replaces it with --by")
    if origin != "human":
        _not_a_persons(place, failure)
    data = {"record": failure["id"], "until": until, "reason": reason, "by_event": by}
    drafts = [
        _draft(place, f"record.{what}", {**data, "key": key}, now=now, origin=origin, actor=actor, causes=[failure["id"]])
        for key in keys_of(failure)
    ]
    return _written(place, drafts, now, notices)


def disputed_already(place: Place, wanted: str) -> str:
    """The id of the failure `wanted` where it is disputed and nobody pinned it since, "" otherwise. Raises NotFoundError."""
    id = str(find_record(place, wanted)["id"])
    said = [e for e in lines_with(place.home, f'"record":"{id}"') if data_of(e).get("record") == id]
    last = [e["kind"] for e in sorted(said, key=order) if e["kind"] in ("record.disputed", "record.pinned")][-1:]
    return id if last == ["record.disputed"] else ""


def _not_a_persons(place: Place, failure: Event) -> None:
    """Raise RefusedError where a person recorded or pinned the failure: an agent cannot say otherwise."""
    from projectmem_gate import history

    from projectmem.state import reading

    if (failure.get("actor") or {}).get("origin") == "human":
        raise RefusedError(f"record {failure['id']} was made by a person; only a person can say otherwise")
    with reading(place) as state:
        for key, entries in state.entries(keys_of(failure)).items():
            record = history.fold(key, entries, 0)
            if record is not None and record.pinned:
                raise RefusedError(f"record {failure['id']} was pinned by a person; only a person can say otherwise")


def keys_of(failure: Event) -> list[str]:
    """The keys a failed call is remembered under: the part that failed, and the whole call. Of a failed fix, its edits."""
    data = data_of(failure)
    keys = edit_keys(failure) or [key for key in dict.fromkeys((data.get("failed_key"), data.get("key"))) if key]
    if not keys:
        raise NotFoundError(f"event {failure['id']} carries no action (it was erased, or it is not a failure)")
    return keys


def find_issue(place: Place, wanted: str) -> str:
    """The id of the issue that `wanted` names (its id, the beginning of it, or the id of the event that opened it); also of one
    that waits for the log's lock: what is recorded about it comes in behind it."""
    from projectmem_logs.spool import drafts

    text = wanted.strip().lower()
    found = {}
    for event in (*drafts(place.home), *lines_with(place.home, '"kind":"issue.opened"')):  # what waits may be in the log by now
        data = data_of(event)
        if event["kind"] == "issue.opened" and (str(data.get("issue", "")).startswith(text) or event["id"] == text):
            found[str(data["issue"])] = str(data.get("title", ""))
    if text in found:
        return text
    if len(found) != 1 or not text:
        known = ", ".join(f"{id} ({title[:40]})" for id, title in list(found.items())[:5])
        raise NotFoundError(
            f"`{wanted}` names {len(found)} issues{': ' + known if known else ''}; see `projectmem log --kind issue.opened`"
        )
    return next(iter(found))
