"""Forgetting: what is meant, the control record, and every place that held it. Can be cut short anywhere and taken up again.

    <home>/erasure.json      the plan of an erasure at work, 0600; it alone names what is to be forgotten, and goes at the end
    <home>/locks/erasure.lock    one erasure at a time

1 the plan is synced; 2 `erasure.requested` is synced (from here on nothing of it is served); 3 what came in meanwhile is added
to both; 4 segments, spool, quarantine; 5 projections; 6 logs for people; 7 the chain is verified; 8 the plan goes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson
from projectmem_logs import erasing, files
from projectmem_logs.canonical import canonical
from projectmem_logs.digest import hmac_sha256_hex
from projectmem_logs.envelope import parse
from projectmem_logs.erasing import Found, Reached
from projectmem_logs.errors import ErasureError
from projectmem_logs.home import redaction_key, restore_folders
from projectmem_logs.redact import Redactor
from projectmem_logs.selecting import Selector, needles
from projectmem_logs.store import LogStore
from projectmem_logs.upcasting import current

from projectmem.errors import BadInputError, RefusedError

if TYPE_CHECKING:
    from projectmem.place import Place

PLAN = "erasure.json"
LOCK_WAIT_MS = 10_000
CHUNK = 20_000  # ids in one control record
ROUNDS = 5  # how often what came in meanwhile is added
NEEDLES_MAX = 5_000  # more than that, and a log for people is emptied instead of searched
CALL_MARK = 16  # hex digits kept of a source call's keyed hash
LOGS = ("hook.log", "errors.log", "hook.told")
SEARCH_CHUNK = 1 << 20
ESCAPED = 16  # bytes of one character that was escaped, and escaped again


@dataclass
class Outcome:
    """What an erasure came to.

    requests   ids of the control records;  problems  what verification found afterwards;  remains  files that still hold the text
    """

    events: int = 0
    requests: list[str] = field(default_factory=list)
    reached: Reached = field(default_factory=Reached)
    problems: list[str] = field(default_factory=list)
    remains: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """The log verifies, and the text is found nowhere any more."""
        return not self.problems and not self.remains


def selector(
    place: Place,
    *,
    ids: tuple[str, ...] = (),
    record: str = "",
    session: str = "",
    actor: str = "",
    path: str = "",
    text: str = "",
    since: int = 0,
    until: int = 0,
) -> Selector:
    """What to forget, from what a person gives. Raises BadInputError when it is nothing or too little, NotFoundError."""
    from projectmem.lookup import find_failure, find_one
    from projectmem.record import keys_of

    keys = tuple(keys_of(find_failure(place, record))) if record else ()
    if text and len(text.strip()) < 4:
        raise BadInputError("the text is too short to search for: give at least 4 characters")
    if path:
        path = os.path.relpath(path, place.root) if os.path.isabs(path) else os.path.normpath(path)
        if path.startswith("..") or path == ".":
            raise BadInputError(f"`{path}` is not a file or folder below {place.root}")
    marks = (Redactor(redaction_key(place.home)).mark(text),) if text else ()
    full = tuple(str(find_one(place, id)["id"]) for id in ids)
    found = Selector(full, keys, session, actor, path.replace(os.sep, "/"), text, marks, since, until, place.root)
    if found.empty:
        raise BadInputError("say what to forget: an event's id, --record, --session, --actor, --path, --text, --since or --until")
    return found


def preview(place: Place, wanted: Selector) -> Found:
    """What would be erased; changes nothing."""
    found = erasing.select(place.home, wanted)
    found.others = [*erasing.elsewhere(place.home, wanted), *_told(place.home, wanted)]
    return found


def _told(home: str, wanted: Selector) -> list[str]:
    """Logs for people that hold what is named."""
    said = _said(wanted)
    return [name for name in LOGS if _file_holds(os.path.join(home, name), said, wanted)]


def _said(wanted: Selector) -> list[bytes]:
    """What is looked for in logs for people."""
    named = (*wanted.spellings(), wanted.path, wanted.session, *wanted.ids)
    return [text.encode("utf-8", "replace") for text in named if text]


def pending(home: str) -> bool:
    """Whether an erasure was begun and not finished."""
    return os.path.exists(os.path.join(home, PLAN))


def forget(
    place: Place, wanted: Selector, *, reason: str, now: int, origin: str, actor: Mapping[str, str] | None = None
) -> Outcome:
    """Erase everywhere what `wanted` means. Raises RefusedError for an agent, ErasureError, LogError, OSError: what was begun
    then is finished by `resume`."""
    if origin != "human":
        raise RefusedError("forgetting needs a person at a terminal")
    with _Working(place.home):
        if pending(place.home):
            _finish(place, now)
        found = preview(place, wanted)
        if found.nothing:
            return Outcome()
        _write_plan(place, wanted, found.ids, {"reason": reason, "actor": dict(actor or {}), "origin": origin})
        return _finish(place, now)


def resume(place: Place, *, now: int) -> Outcome | None:
    """Finish an erasure that was cut short, or one that another machine's log only asked for; None when there is nothing."""
    with _Working(place.home):
        if pending(place.home):
            return _finish(place, now)
        if not erasing.unfinished(place.home):
            return None
        asked = erasing.requested(place.home)
        return _everywhere(place, Selector(ids=tuple(asked)), asked, set(), now)


class _Working:
    """One erasure at a time. Folders that were swept away are there inside."""

    def __init__(self, home: str) -> None:
        self.home, self.path = home, os.path.join(home, "locks", "erasure.lock")

    def __enter__(self) -> None:
        restore_folders(self.home)
        fd = files.lock(self.path, LOCK_WAIT_MS)
        if fd is None:
            raise ErasureError("another erasure is at work in this log: wait for it")
        self.fd = fd

    def __exit__(self, *_: object) -> None:
        files.unlock(self.fd)


def _write_plan(place: Place, wanted: Selector, ids: set[str], more: Mapping[str, Any]) -> dict[str, Any]:
    """Sync what is to be done, with what betrays it elsewhere, before anything is done."""
    key = redaction_key(place.home)
    calls, betraying = set(more.get("calls") or ()), set(more.get("needles") or ())
    for event in erasing.chosen(place.home, ids):
        if isinstance(event.get("data"), dict) and event["data"].get("call"):
            calls.add(call_mark(key, str(event["data"]["call"])))
        if len(betraying) <= NEEDLES_MAX:
            betraying |= needles(event)
    plan = {**more, "selector": wanted.to_data(), "ids": sorted(ids), "calls": sorted(calls), "needles": sorted(betraying)}
    files.replace(os.path.join(place.home, PLAN), canonical(plan))
    return plan


def call_mark(key: bytes, call: str) -> str:
    """What is kept of an erased tool call's id, so that a later import knows it and leaves it out."""
    return hmac_sha256_hex(key, f"erased call {call}".encode("utf-8", "surrogatepass"))[:CALL_MARK]


def _plan(home: str) -> dict[str, Any]:
    path = os.path.join(home, PLAN)
    try:
        return dict(orjson.loads(files.read(path)))
    except (ValueError, TypeError):
        raise ErasureError(f"{path} is damaged: remove it and ask for the erasure again") from None


def _finish(place: Place, now: int) -> Outcome:
    """Carry the plan out to its end, whatever part of it was done before."""
    plan = _plan(place.home)
    wanted = Selector.from_data(plan["selector"])
    for _ in range(ROUNDS):
        asked = erasing.requested(place.home)
        if not plan["ids"] and not plan.get("request"):  # damaged bytes and other files alone
            plan["request"] = _request(place, plan, wanted, [], now)
            files.replace(os.path.join(place.home, PLAN), canonical(plan))
        _request(place, plan, wanted, [id for id in plan["ids"] if id not in asked], now)
        more = erasing.select(place.home, wanted, set(plan["ids"])).ids - set(plan["ids"])
        if not more:
            break
        plan = _write_plan(place, wanted, set(plan["ids"]) | more, plan)
    else:
        _request(place, plan, wanted, [id for id in plan["ids"] if id not in erasing.requested(place.home)], now)
    asked = erasing.requested(place.home)
    outcome = _everywhere(place, wanted, asked, set(plan["needles"]), now)
    outcome.requests = sorted({asked[id] for id in plan["ids"] if id in asked} | set(filter(None, [plan.get("request")])))
    outcome.events = len(plan["ids"])
    files.remove(os.path.join(place.home, PLAN))
    files.sync_dir(place.home)
    outcome.remains = _remains(place.home, wanted)
    return outcome


def _request(place: Place, plan: Mapping[str, Any], wanted: Selector, ids: list[str], now: int) -> str:
    """Append the control records: who, when, why, which events, and what a later import must leave out; never the text.

    Returns the id of the last one. Without `ids` there is one only when the plan has none at all: then it is about damaged bytes.
    """
    if not ids and (plan["ids"] or plan.get("request")):
        return ""
    redactor = Redactor(redaction_key(place.home))
    mark = redactor.mark(wanted.text or wanted.path or "-")
    reason = plan["reason"]
    for spelling in (*wanted.spellings(), *([wanted.path] if wanted.path else [])):
        reason = reason.replace(spelling, mark)
    actor = {**plan["actor"], "origin": plan["origin"]}
    with LogStore(place.home, project=place.project, wait_ms=LOCK_WAIT_MS) as store:
        id = ""
        for start in range(0, max(len(ids), 1), CHUNK):
            data = {
                "selector": redactor.text(wanted.describe(mark)),
                "ids": ids[start : start + CHUNK],
                "reason": redactor.text(reason)[:500],
                "calls": plan["calls"],
            }
            draft = {"kind": "erasure.requested", "at": now, "actor": actor, "causes": [], "data": data}
            id = str(store.append([draft], now=now)[-1]["id"])
    return id


def _everywhere(place: Place, wanted: Selector, asked: Mapping[str, str], betraying: set[str], now: int) -> Outcome:
    from projectmem_logs.verify import verify
    from projectmem_projections import forgetting

    reached = erasing.carry_out(place.home, asked, wanted, at=now)
    reached.places.update(forgetting.forget(place.home))
    said = _said(wanted)
    if len(betraying) > NEEDLES_MAX:
        said.append(b"")  # in every line
    said += [text.encode("utf-8", "replace") for text in betraying]
    said += [text.encode("utf-8", "backslashreplace") for text in betraying if not text.isascii()]
    for name in LOGS:
        count = erasing.scrub_lines(os.path.join(place.home, name), lambda line: _betrays(line, said, wanted))
        if count:
            reached.places[f"{name}, lines removed"] = count
    report = verify(place.home)
    return Outcome(reached.events, sorted(set(asked.values())), reached, [str(problem) for problem in report.problems])


def _betrays(line: bytes, said: list[bytes], wanted: Selector) -> bool:
    return any(text in line for text in said) or bool(wanted.text and wanted.said_in(line.decode("utf-8", "replace")))


def _remains(home: str, wanted: Selector) -> list[str]:
    """Files below the log's folder that still hold the text: in an envelope (an actor's name), or a file of the person's own."""
    spelled = [text.encode("utf-8", "surrogatepass") for text in wanted.spellings() if text not in wanted.marks]
    if not spelled:
        return []
    bare = replace(wanted, marks=())
    out = []
    for folder, _, names in os.walk(home):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if _file_holds(path, spelled, bare):
                out.append(os.path.relpath(path, home))
    return sorted(out)


def _file_holds(path: str, spelled: list[bytes], wanted: Selector) -> bool:
    """Whether a file holds one of these, or the selector's text in another spelling."""
    more = max(map(len, spelled), default=0) + ESCAPED * len(wanted.text)
    try:
        size, at = os.stat(path).st_size, 0
        while at < size:
            block = files.read(path, at, min(SEARCH_CHUNK + more, size - at))
            if any(text in block for text in spelled) or (wanted.text and wanted.said_in(block.decode("utf-8", "replace"))):
                return True
            at += SEARCH_CHUNK
    except OSError:
        return False
    return False


def erased_calls(home: str) -> set[str]:
    """The marks (`call_mark`) of every tool call that was erased from this log: an import leaves these out."""
    out: set[str] = set()
    for _, raw, line in erasing.lines(home, erasing.REQUEST):
        if line.ok:
            out.update(_marks(current(parse(raw))))
    return out


def _marks(event: Mapping[str, Any]) -> list[str]:
    data = event.get("data")
    calls = data.get("calls") if isinstance(data, dict) else None
    return [call for call in calls if isinstance(call, str)] if isinstance(calls, list) else []


__all__ = ["Outcome", "call_mark", "erased_calls", "forget", "pending", "preview", "resume", "selector"]
