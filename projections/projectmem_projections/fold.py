"""The gate's fold [H]: one event in, a list of small operations out. Pure and total.

Both stores of the gate's state (`snapshot.py` on disk, `memory.py` in process) apply exactly these operations, and each
operation commutes with every other: histories are sets of entries ordered by `(at, stream, seq)` of which the newest are
kept, touches and the policy are last-write-wins by the same order, the rest are sets and maxima. So it does not matter how
streams interleave, and a rebuild from the log equals what grew event by event.

Operations (plain tuples):

    ("entry", key, entry)                                    one entry of the key's history, see ENTRY_FIELDS
    ("touch", type, subject, at, stream, seq, session, id)   something that may have mended a failure
    ("ok", family, key, at, stream, seq, id, text, session)  a success, for remedies
    ("seen", session, call)                                  this tool call has been recorded
    ("turn", session, turn)                                  highest finished batch of the session
    ("label", id, label)      ("unlabel", id)                a label or a decision's clause; what ends it, see `in_force`
    ("policy", at, stream, seq, id, data)                    the policy in force
    ("verdict", track, row)   ("made", row)   ("restored", row)   what fixes that failed are derived from: fold_fixes.py
    ("erase", ids)                                           nothing derived from these events may be served
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence
    from typing import Any

# Bumped whenever an event folds to something else than before: snapshots and generations of another version are rebuilt.
FOLD_VERSION = 7

# One entry of a key's history. `at`, `until` in microseconds since the epoch, `dur` in milliseconds.
#   t       fail | ok | ask | pass | snooze | dispute | supersede | pin | review
#   words   the hint words of the key (fail only)
#   record, by   of a control entry: the failure it speaks of, and the event that stands in its place; text is the reason
ENTRY_FIELDS = (
    "t",
    "at",
    "stream",
    "seq",
    "id",
    "session",
    "agent",
    "harness",
    "model",
    "origin",
    "cls",
    "sig",
    "excerpt",
    "exit",
    "dur",
    "facts",
    "text",
    "family",
    "call",
    "turn",
    "paths",
    "until",
    "record",
    "by",
    "words",
    "source",
    "variant",
)

EXCERPT_MAX, SIGNATURE_MAX, TEXT_MAX, VARIANT_MAX, PATHS_MAX, EFFECTS_MAX = 300, 200, 400, 200, 16, 64

CONTROL = {
    "record.pinned": "pin",
    "record.snoozed": "snooze",
    "record.disputed": "dispute",
    "record.superseded": "supersede",
    "record.reviewed": "review",
}
# Kinds of parts whose failure is known to have changed nothing: the tool refuses as a whole.
_NOBODY: Mapping[str, Any] = {}
_ATOMIC = ("edit", "write", "patch")


def fold_event(event: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The operations of one event; [] for kinds the gate does not read, for erased events and for malformed data."""
    kind, data = event.get("kind"), event.get("data")
    if type(data) is not dict or type(kind) is not str:
        return []
    if kind == "action.finished":
        return _finished(event, data)
    if kind == "action.proposed":
        return _proposed(event, data)
    if kind in CONTROL:
        return _control(event, data, CONTROL[kind])
    if kind == "label.set":
        return [("label", _s(event, "id"), _label(event, data))]
    if kind == "label.cleared":
        return _ended(event, _s(data, "label_event"))
    if kind == "decision.recorded":
        return _ended(event, _s(data, "supersedes"))
    if kind == "policy.changed":  # a person's to change: what an agent or an import brings is kept, and rules nothing
        return (
            []
            if not _by_person(event)
            else [("policy", _n(event, "at"), _s(event, "stream"), _n(event, "seq"), _s(event, "id"), data)]
        )
    if kind == "erasure.requested":
        ids = data.get("ids")
        return [("erase", tuple(i for i in ids if type(i) is str))] if type(ids) is list else []
    return []


def order(entry: Mapping[str, Any]) -> tuple[int, str, int]:
    """Where an entry stands in its key's history."""
    return entry["at"], entry["stream"], entry["seq"]


def pack(entries: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """Entries as positional rows (a third of the size of the dicts)."""
    return [[e[f] for f in ENTRY_FIELDS] for e in entries]


def unpack(rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """The reverse of `pack`."""
    return [dict(zip(ENTRY_FIELDS, row, strict=True)) for row in rows]


def hint_words(entries: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    """The words a raw input must hold to be worth looking at for this key, longest (rarest) first, "" for none."""
    for entry in reversed(entries):
        if entry["t"] == "fail":
            words = sorted(set(entry["words"]), key=lambda w: (-len(w), w))
            first, second, third, *_ = [*words, "", "", ""]
            return first, second, third
    return "", "", ""


def succeeded(joins: Sequence[str], count: int) -> list[int]:
    """Which parts of a call that ended well are certain to have run and succeeded: the trailing `&&` run, without its
    first part where that came after `||` (it may have been skipped)."""
    i = count - 1
    if not i:
        return [0]
    certain = [i]
    while i > 0 and i <= len(joins) and joins[i - 1] == "&&":
        i -= 1
        certain.append(i)
    if 0 < i <= len(joins) and joins[i - 1] == "||":
        certain.remove(i)
    return sorted(certain)


def _tried(event: Mapping[str, Any], data: dict[str, Any], outcome: str) -> list[tuple[Any, ...]]:
    """A try of a known failure and how it went: what the log's own odds are counted from. Observed ones only."""
    tried = data.get("tried")
    if type(tried) is not dict or outcome not in ("ok", "failed") or (_s(_actor(event), "origin") or "observed") != "observed":
        return []
    age = tried.get("age")
    if type(age) is not int or not 0 <= age <= 3:
        return []
    return [("tried", _s(event, "id"), _s(tried, "class"), _s(tried, "by"), _s(tried, "state"), age, int(outcome == "failed"))]


def retried(rows: Iterable[Sequence[Any]]) -> dict[str, list[list[int]]]:
    """Rows (state, age, again, count) as {state: [[failed again, went well] of each age bucket]}."""
    out: dict[str, list[list[int]]] = {}
    for state, age, again, count in rows:
        out.setdefault(state, [[0, 0], [0, 0], [0, 0], [0, 0]])[age][0 if again else 1] += count
    return dict(sorted(out.items()))


def _finished(event: Mapping[str, Any], data: dict[str, Any]) -> list[tuple[Any, ...]]:
    outcome, key = _s(data, "outcome"), _s(data, "key")
    parts = [p for p in _list(data, "parts") if type(p) is dict]
    joins = [j for j in _list(data, "joins") if type(j) is str]
    session, call, turn = _session(event), _s(data, "call"), _n(data, "turn")
    certain = succeeded(joins, len(parts)) if outcome == "ok" and parts else []
    ops: list[tuple[Any, ...]] = []
    if call:
        ops.append(("seen", session, call))
    if turn > 0:
        ops.append(("turn", session, turn))
    if outcome == "ok":
        ops += _entries_ok(event, data, key, parts, certain)
        ops += _touches(event, parts, None)
    elif outcome == "failed":
        ops += _entries_failed(event, data, key, parts)
        ops += _touches_failed(event, parts, joins, _s(data, "failed_key"))
    elif outcome == "interrupted":
        ops += _touches(event, [p for p in parts if p.get("kind") not in _ATOMIC], ("edit",))
    elif outcome == "unknown":
        ops += _touches(event, parts, None)
    ops += _tried(event, data, outcome)
    from . import fold_fixes  # not for `quick`, which only wants to know the fold's version

    place = _n(event, "at"), _s(event, "stream"), _n(event, "seq"), _s(event, "id")
    return ops + fold_fixes.ops(place, _s(_actor(event), "origin"), session, data, parts, joins, certain)


def _entries_ok(
    event: Mapping[str, Any], data: dict[str, Any], key: str, parts: list[dict[str, Any]], certain: Sequence[int]
) -> list[tuple[Any, ...]]:
    main = _main(parts)
    targets = {key: (_s(main, "family"), _s(data, "text"), _paths(parts))} if key else {}
    for i in certain:
        part = parts[i]
        own = _s(part, "key")
        if own and own not in targets and part.get("trivial") is not True:
            targets[own] = _s(part, "family"), _s(part, "text"), _paths([part])
    if not targets:
        return []
    ops: list[tuple[Any, ...]] = []
    plain = _entry(event, data, "ok")
    where = plain["at"], plain["stream"], plain["seq"], plain["id"]
    for k, (family, text, paths) in targets.items():
        text = text[:TEXT_MAX]
        ops.append(("entry", k, {**plain, "family": family, "text": text, "paths": paths}))
        if family:
            ops.append(("ok", family, k, *where, text, plain["session"]))
    return ops


def _entries_failed(
    event: Mapping[str, Any], data: dict[str, Any], key: str, parts: list[dict[str, Any]]
) -> list[tuple[Any, ...]]:
    failed = _s(data, "failed_key")
    culprit = next((p for p in parts if _s(p, "key") == failed and failed), None)
    shared: dict[str, Any] = {
        "cls": _s(data, "class"),
        "sig": _s(data, "signature")[:SIGNATURE_MAX],
        "excerpt": _s(data, "excerpt")[:EXCERPT_MAX],
        "facts": data["facts"] if type(data.get("facts")) is dict else {},
    }
    ops: list[tuple[Any, ...]] = []
    if culprit is not None and failed != key:
        own = {"family": _s(culprit, "family"), "text": _s(culprit, "text")[:TEXT_MAX], "variant": _variant(failed, [culprit])}
        entry = _entry(event, data, "fail", **own, paths=_paths([culprit]), words=_words([culprit]), **shared)
        ops.append(("entry", failed, entry))
    if key:
        family = _s(culprit if culprit is not None else _main(parts), "family")
        text = _s(data, "text")[:TEXT_MAX]
        own = {"family": family, "text": text, "variant": _variant(key, parts)}
        asked = [p for p in parts if p.get("trivial") is not True] or parts  # the key leaves trivial parts out
        entry = _entry(event, data, "fail", **own, paths=_paths(asked), words=_words(asked), **shared)
        ops.append(("entry", key, entry))
    return ops


def _touches_failed(
    event: Mapping[str, Any], parts: list[dict[str, Any]], joins: list[str], failed: str
) -> list[tuple[Any, ...]]:
    """What a failed call may have changed all the same: all that ran before the culprit of an `&&` chain, or was started in the
    background before it, and the files that the rest writes. An edit tool that failed changed nothing."""
    at = next((i for i, p in enumerate(parts) if failed and _s(p, "key") == failed), 0)
    chained = all(j == "&&" for j in joins[:at])
    done = [i for i in range(at) if chained or joins[i : i + 1] == ["&"] or parts[i].get("limit") == -1]
    rest = [p for i, p in enumerate(parts) if i not in done and p.get("kind") not in _ATOMIC]
    return _touches(event, [parts[i] for i in done], None) + _touches(event, rest, ("edit",))


def _touches(event: Mapping[str, Any], parts: list[dict[str, Any]], types: tuple[str, ...] | None) -> list[tuple[Any, ...]]:
    where = _n(event, "at"), _s(event, "stream"), _n(event, "seq"), _session(event), _s(event, "id")
    pairs: dict[tuple[str, str], None] = {}
    for part in parts:
        for effect in _list(part, "effects"):
            if type(effect) not in (list, tuple) or len(effect) != 2 or len(pairs) >= EFFECTS_MAX:
                continue
            type_, subject = effect
            if type(type_) is str and type(subject) is str and (types is None or type_ in types):
                pairs[type_, subject] = None
    return [("touch", type_, subject, *where) for type_, subject in pairs]


def _proposed(event: Mapping[str, Any], data: dict[str, Any]) -> list[tuple[Any, ...]]:
    decision, key = data.get("decision"), _s(data, "key")
    if type(decision) is not dict or not key:
        return []
    if _s(decision, "rule") == "override":
        t = "pass"
    elif _s(decision, "verdict") in ("ask", "deny"):
        t = "ask"
    else:
        return []
    # the session as the gate saw it: it is what the repeat will be compared with
    seen = data.get("session")
    turn = _n(seen, "turn", -1) if type(seen) is dict else -1
    return [("entry", key, _entry(event, data, t, text=_s(data, "text")[:TEXT_MAX], record=_s(decision, "record"), turn=turn))]


def _control(event: Mapping[str, Any], data: dict[str, Any], t: str) -> list[tuple[Any, ...]]:
    key = _s(data, "key")
    if not key or (t in ("pin", "review") and not _by_person(event)):  # a pin outlives every TTL
        return []
    own = {"until": _n(data, "until"), "record": _s(data, "record"), "by": _s(data, "by_event")}
    return [("entry", key, _entry(event, data, t, text=_s(data, "reason")[:TEXT_MAX], **own))]


def _ended(event: Mapping[str, Any], id: str) -> list[tuple[Any, ...]]:
    """A label that was cleared, or a decision that another one supersedes. `~`: not by a person."""
    return [("unlabel", id if _by_person(event) else f"~{id}")] if id else []


def in_force(labels: Iterable[dict[str, Any]], ended: Container[str]) -> list[dict[str, Any]]:
    """Labels that nobody cleared, and whose decision nobody superseded, oldest first. Only a person ends what a person set."""

    def stands(label: Mapping[str, Any]) -> bool:
        ids = [id for id in (label["id"], label["decision"]) if id]
        return not any(id in ended or (label["origin"] != "human" and f"~{id}" in ended) for id in ids)

    return sorted((label for label in labels if stands(label)), key=order)


def _label(event: Mapping[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    replay = data.get("replay")
    return {
        "id": _s(event, "id"),
        "at": _n(event, "at"),
        "stream": _s(event, "stream"),
        "seq": _n(event, "seq"),
        "origin": _s(_actor(event), "origin"),
        "session": _session(event),
        **{f: _s(data, f) for f in ("label", "target", "pattern", "instead", "effect", "reason", "decision")},
        "review_at": _n(data, "review_at"),
        "hits": _n(replay, "ok", -1) if type(replay) is dict else -1,  # past successes that it would have objected to
    }


def _entry(event: Mapping[str, Any], data: dict[str, Any], t: str, **own: Any) -> dict[str, Any]:
    about = _actor(event).get
    get = data.get
    session, agent, harness, model, origin = about("session"), about("agent"), about("harness"), about("model"), about("origin")
    exit_code, duration, call, turn, source = get("exit_code"), get("duration_ms"), get("call"), get("turn"), get("source")
    entry: dict[str, Any] = {
        "t": t,
        "at": _n(event, "at"),
        "stream": _s(event, "stream"),
        "seq": _n(event, "seq"),
        "id": _s(event, "id"),
        "session": session if type(session) is str else "",
        "agent": agent if type(agent) is str else "",
        "harness": harness if type(harness) is str else "",
        "model": model if type(model) is str else "",
        "origin": origin if type(origin) is str else "",
        "cls": "",
        "sig": "",
        "excerpt": "",
        "exit": exit_code if type(exit_code) is int else None,
        "dur": duration if type(duration) is int else None,
        "facts": {},
        "text": "",
        "family": "",
        "call": call if type(call) is str else "",
        "turn": turn if type(turn) is int else -1,
        "paths": [],
        "until": 0,
        "record": "",
        "by": "",
        "words": [],
        "source": source if type(source) is str else "",
        "variant": "",
    }
    entry.update(own)
    return entry


def _main(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The part a chain is about when the output blames none: the last that is not trivial."""
    blank: dict[str, Any] = {}
    return next((p for p in reversed(parts) if p.get("trivial") is not True), parts[-1] if parts else blank)


def _variant(key: str, parts: list[dict[str, Any]]) -> str:
    """The variant of the part with this key, of a whole call those of its parts (as `Action.variant` gives it)."""
    for part in parts:
        if _s(part, "key") == key:
            return _s(part, "variant")[:VARIANT_MAX]
    return "; ".join(_s(p, "variant") for p in parts if p.get("trivial") is not True)[:VARIANT_MAX]


def _words(parts: list[dict[str, Any]]) -> list[str]:
    """Words that every spelling of these parts together must hold. One part without words still leaves the others'."""
    found = {w for p in parts for w in _list(p, "words") if type(w) is str and w}
    return sorted(found, key=lambda w: (-len(w), w))[:3]


def _paths(parts: list[dict[str, Any]]) -> list[str]:
    found: dict[str, None] = {}
    for part in parts:
        for path in _list(part, "paths"):
            if type(path) is str:
                found[path] = None
    return list(found)[:PATHS_MAX]


def _actor(event: Mapping[str, Any]) -> Mapping[str, Any]:
    actor: Any = event.get("actor")
    return actor if type(actor) is dict else _NOBODY


def _by_person(event: Mapping[str, Any]) -> bool:
    return _s(_actor(event), "origin") == "human"


def _session(event: Mapping[str, Any]) -> str:
    return _s(_actor(event), "session")


def _s(d: Mapping[str, Any], field: str) -> str:
    value = d.get(field)
    return value if type(value) is str else ""


def _n(d: Mapping[str, Any], field: str, default: int = 0) -> int:
    value = d.get(field)
    return value if type(value) is int else default


def _list(d: Mapping[str, Any], field: str) -> Sequence[Any]:
    value = d.get(field)
    return value if isinstance(value, (list, tuple)) else ()
