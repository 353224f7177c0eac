"""The history of one action key: merge entries in any order, fold them into the record that `decide` reads.

Entry (plain dict; unknown extra keys are kept):
    t        fail | ok | ask | pass | snooze | dispute | supersede | pin | review
    at, stream, seq, id            when it happened (us), where it is in the log, the event's id
    session, agent, harness, model, origin, call, turn     who, and in which batch of the session
    cls, sig, excerpt, exit, dur, facts, text, family, paths      fail only; dur in ms or None
    until, record, by              control entries only: until in us, 0 = not given; the reason a person gave is in text

Order is (at, stream, seq) everywhere: how streams interleave never matters. Only what is dated ahead of the reader's clock, by
more than clocks may differ, was recorded under a wrong one: such an entry goes by its place among its stream's others (settled).
Pure; nothing raises on missing fields.
"""

from __future__ import annotations

from projectmem_gate.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Entry = dict[str, Any]

KEEP = 16  # outcomes kept per key
KEEP_ASKS = 8
KEEP_TOUCHES = 2
EXCERPT_CHARS = 300
AHEAD_US = 300_000_000  # how far apart two right clocks may be
SAME_MOMENT_US = 2_000_000  # two outcomes of one session closer than this were parallel calls where no turn is known

_OUTCOMES = ("fail", "ok")
_ASKS = ("ask", "pass")
_CLOSERS = {"dispute": "disputed", "supersede": "superseded"}


def order(entry: Mapping[str, Any]) -> tuple[int, str, int]:
    """Sort key of an entry."""
    return (entry.get("at") or 0, entry.get("stream") or "", entry.get("seq") or 0)


def _identity(entry: Mapping[str, Any]) -> tuple[int, str, int, str]:
    get = entry.get
    return (get("at") or 0, get("stream") or "", get("seq") or 0, get("t") or "")


def merge(entries: Iterable[Entry], new: Entry) -> list[Entry]:
    """`entries` and `new`, sorted, the newest of each sort kept. Commutative and idempotent: see `merge_all`."""
    return merge_all(entries, (new,))


def merge_all(entries: Iterable[Entry], more: Sequence[Entry]) -> list[Entry]:
    """The same of several new ones at once: what they would come to one after the other, in whatever order.

    Outcomes, asks and each kind of touch have a quota of their own, so that a loop of asks can push out
    neither the failure it is about nor a pin. What a stream recorded last of a sort is kept whatever its date, so that
    entries of a clock that was ahead cannot push it out.
    """
    every = {_identity(e): e for e in entries}
    if not every and len(more) == 1:
        return [*more]
    for new in more:
        every[_identity(new)] = new
    kept: list[Entry] = []
    room: dict[str, int] = {}
    last: dict[tuple[str, str], int] = {}
    for _, stream, seq, t in every:
        place = _sort(t)[0], stream
        last[place] = max(last.get(place, 0), seq)
    for ident in sorted(every, reverse=True):
        sort, quota = _sort(ident[3])
        used = room.get(sort, 0)
        room[sort] = used + 1
        if used < quota or last[sort, ident[1]] == ident[2]:
            kept.append(every[ident])
    kept.reverse()
    return kept


def _sort(t: str) -> tuple[str, int]:
    return ("outcome", KEEP) if t in _OUTCOMES else ("ask", KEEP_ASKS) if t in _ASKS else (t, KEEP_TOUCHES)


def settled(entries: Iterable[Entry], now: int) -> list[Entry]:
    """The entries in the order in which they happened, as far as it can be known at `now` (us).

    One that is dated more than AHEAD_US ahead of `now` cannot have happened then. It comes before what its stream recorded
    after it: its `at` is that time then, `told` what it said. Imports tell of another time than that of their recording.
    """
    ordered = list(entries)
    if len(ordered) > 1:
        ordered.sort(key=_identity)
    horizon = now + AHEAD_US
    if not ordered or (ordered[-1].get("at") or 0) <= horizon:
        return ordered
    after: dict[str, int] = {}
    out: list[Entry] = []
    for e in sorted(ordered, key=lambda e: e.get("seq") or 0, reverse=True):
        at, stream = e.get("at") or 0, e.get("stream") or ""
        if _origin(e) != "import":
            if at <= horizon:
                after[stream] = min(at, after.get(stream, at))
            elif stream in after:
                e = {**e, "at": after[stream], "told": at}
        out.append(e)
    return sorted(out, key=_identity)


def _was_ahead(entries: Iterable[Mapping[str, Any]]) -> bool:
    """Does some stream's clock show to have been ahead: something it recorded later is dated much earlier?"""
    earliest: dict[str, int] = {}
    for e in sorted(entries, key=lambda e: e.get("seq") or 0, reverse=True):
        if _origin(e) != "import":
            at, stream = e.get("at") or 0, e.get("stream") or ""
            if at > earliest.get(stream, at) + AHEAD_US:
                return True
            earliest[stream] = min(at, earliest.get(stream, at))
    return False


def is_open(entries: Iterable[Mapping[str, Any]]) -> bool:
    """Could `fold` give a record that may object, now or when its snooze ends? Where a clock was ahead, any failure could."""
    entries = list(entries)
    last = ""
    latest: tuple[int, str, int] | None = None
    for e in entries:
        t = e.get("t") or ""
        if t in _OUTCOMES or t in _CLOSERS:
            at = (e.get("at") or 0, e.get("stream") or "", e.get("seq") or 0)
            if latest is None or at >= latest:
                last, latest = t, at
    return last == "fail" or (any(e.get("t") == "fail" for e in entries) and _was_ahead(entries))


class Record(Value):
    """What is known about one key's failures.

    key, id, at      the key; event id and time (us) of the determining failure: the newest one since the last success,
                     observed ones before imported or claimed ones
    first_at         time of the first kept failure since the last success
    cls, sig, excerpt, text, family, paths, facts, exit, dur_ms, origin, session, agent    of that failure
    streak           failures since the last success;  identical  observed ones in a row with its class and signature,
                     newest backwards, parallel calls counted once
    runs             times of those identical failures, oldest first;  ran_by  their sessions
    by               distinct (harness, model, agent) that failed, newest first, at most 4;  sessions  likewise, at most 4
    trail            (at, "fail" | "ok", facts fingerprint) of kept outcomes, oldest first
    flaky            the outcome alternated at least twice with no difference of facts on record
    state            open | cleared | snoozed | disputed | superseded;  state_why  one phrase;  state_id  the event that did it
    pinned           a person pinned it: it does not expire;  review_at  when to look at it again, 0 = not given
    last_ok_at, last_ok_id    newest success, 0 and "" when there is none
    variant          what the key left out of that failure's action, see Part
    fix              of a failed fix what fixes.py knows of the attempt, else {}: the key is then the edit's, the rest
                     the failure's
    """

    __slots__ = (
        "agent",
        "at",
        "by",
        "cls",
        "dur_ms",
        "excerpt",
        "exit",
        "facts",
        "family",
        "first_at",
        "fix",
        "flaky",
        "id",
        "identical",
        "key",
        "last_ok_at",
        "last_ok_id",
        "origin",
        "paths",
        "pinned",
        "ran_by",
        "review_at",
        "runs",
        "session",
        "sessions",
        "sig",
        "state",
        "state_id",
        "state_why",
        "streak",
        "text",
        "trail",
        "variant",
    )  # fmt: skip

    def __init__(
        self,
        key: str,
        id: str,
        at: int,
        *,
        first_at: int | None = None,
        cls: str = "unknown",
        sig: str = "",
        excerpt: str = "",
        text: str = "",
        family: str = "",
        paths: Iterable[str] = (),
        facts: dict[str, Any] | None = None,
        exit: int | None = None,
        dur_ms: int | None = None,
        origin: str = "observed",
        session: str = "",
        agent: str = "",
        streak: int = 1,
        identical: int | None = None,
        runs: Iterable[int] | None = None,
        ran_by: Iterable[str] | None = None,
        by: Iterable[Sequence[str]] = (),
        sessions: Iterable[str] = (),
        trail: Iterable[Sequence[Any]] | None = None,
        flaky: bool = False,
        state: str = "open",
        state_why: str = "",
        state_id: str = "",
        pinned: bool = False,
        review_at: int = 0,
        last_ok_at: int = 0,
        last_ok_id: str = "",
        variant: str = "",
        fix: dict[str, Any] | None = None,
    ) -> None:
        self.key, self.id, self.at = key, id, at
        self.first_at: int = at if first_at is None else first_at
        self.cls, self.sig, self.excerpt, self.text, self.family = cls, sig, excerpt, text, family
        self.paths: tuple[str, ...] = tuple(paths)
        self.facts: dict[str, Any] = {} if facts is None else facts
        self.exit, self.dur_ms = exit, dur_ms
        self.origin, self.session, self.agent = origin, session, agent
        self.streak = streak
        self.identical: int = int(origin == "observed") if identical is None else identical
        self.runs: tuple[int, ...] = ((at,) if self.identical else ()) if runs is None else tuple(runs)
        self.ran_by: tuple[str, ...] = (session,) * len(self.runs) if ran_by is None else tuple(ran_by)
        self.by: tuple[tuple[str, str, str], ...] = tuple([(b[0], b[1], b[2]) for b in by])
        self.sessions: tuple[str, ...] = tuple(sessions)
        self.trail: tuple[tuple[int, str, str], ...] = (
            ((at, "fail", ""),) if trail is None else tuple([(t[0], t[1], t[2]) for t in trail])
        )
        self.flaky, self.state, self.state_why, self.state_id = flaky, state, state_why, state_id
        self.pinned, self.review_at = pinned, review_at
        self.last_ok_at, self.last_ok_id, self.variant = last_ok_at, last_ok_id, variant
        self.fix: dict[str, Any] = {} if fix is None else fix

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Record:
        """The inverse of `to_data`."""
        rest = {k: v for k, v in data.items() if k in cls.__slots__ and k not in ("key", "id", "at")}
        return cls(data["key"], data["id"], data["at"], **rest)


def fold(key: str, entries: Iterable[Entry], now: int) -> Record | None:
    """The record of `key`, or None when no failure is on file. `now` (us) decides whether a snooze still runs, and what was
    recorded under a clock that was ahead."""
    ordered = settled(entries, now)
    fails = [e for e in ordered if e.get("t") == "fail"]
    if not fails:
        return None
    oks = [e for e in ordered if e.get("t") == "ok"]
    last_ok = oks[-1] if oks else None
    since = fails if last_ok is None else [e for e in fails if order(e) > order(last_ok)] or fails[-1:]
    # What was only imported or claimed cannot speak over what was observed, whatever its date.
    observed = [e for e in since if _origin(e) == "observed"]
    chosen = observed or since
    main = chosen[-1]
    lasting = _moments(since)
    prints: dict[int, str] = {}  # by which object it is: each is made once
    run = _identical(lasting if len(observed) == len(since) else _moments(observed), main, len(observed), prints)
    every = [e for e in ordered if e.get("t") in _OUTCOMES]
    outcomes = lasting if len(every) == len(since) else _moments(every)
    trail = [(e.get("at") or 0, e["t"], _print_of(e, prints)) for e in outcomes]
    state, why, state_id = _state(ordered, main, last_ok, now)
    pin = next((e for e in reversed(ordered) if e.get("t") == "pin"), None)
    review = next((e for e in reversed(ordered) if e.get("t") == "review"), None)
    return Record(
        key,
        main.get("id") or "",
        main.get("told") or main.get("at") or 0,
        first_at=chosen[0].get("at") or 0,
        cls=main.get("cls") or "unknown",
        sig=main.get("sig") or "",
        excerpt=(main.get("excerpt") or "")[:EXCERPT_CHARS],
        text=main.get("text") or "",
        family=main.get("family") or "",
        paths=main.get("paths") or (),
        facts=main.get("facts") or {},
        exit=main.get("exit"),
        dur_ms=main.get("dur"),
        origin=_origin(main),
        session=main.get("session") or "",
        agent=main.get("agent") or "",
        streak=len(lasting),
        identical=len(run),
        runs=[e.get("at") or 0 for e in run],
        ran_by=[e.get("session") or "" for e in run],
        by=_distinct([(e.get("harness") or "", e.get("model") or "", e.get("agent") or "") for e in reversed(chosen)]),
        sessions=_distinct([e.get("session") or "" for e in reversed(chosen)]),
        trail=trail,
        flaky=len(trail) > 2 and alternations(trail) >= 2,
        state=state,
        state_why=why,
        state_id=state_id,
        pinned=pin is not None and state in ("open", "snoozed"),
        review_at=max((pin or {}).get("until") or 0, (review or {}).get("until") or 0),
        last_ok_at=(last_ok or {}).get("at") or 0,
        last_ok_id=(last_ok or {}).get("id") or "",
        variant=main.get("variant") or "",
    )


def alternations(trail: Sequence[tuple[int, str, str]], changed_at: Sequence[int] = ()) -> int:
    """How often the outcome turned with nothing known to have changed: neither the facts nor (`changed_at`, us) the log."""
    count = 0
    for (a_at, a, a_facts), (b_at, b, b_facts) in zip(trail, trail[1:], strict=False):  # noqa: RUF007
        if a == b or (a_facts and b_facts and a_facts != b_facts):
            continue
        if not any(a_at < c <= b_at for c in changed_at):
            count += 1
    return count


def fingerprint(facts: object) -> str:
    """A short text equal for equal facts, "" when there are none."""
    if not isinstance(facts, dict):
        return ""
    groups = facts.get("head"), facts.get("deps"), facts.get("files"), facts.get("env")
    if not any(groups):
        return ""
    flat = [
        (",".join([f"{k}={value[k]}" for k in sorted(value)]) if isinstance(value, dict) else str(value)) if value else ""
        for value in groups
    ]
    return "|".join(flat)


def _origin(entry: Mapping[str, Any]) -> str:
    return entry.get("origin") or "observed"


def _distinct(values: list[Any]) -> list[Any]:
    return list(dict.fromkeys(values))[:4]


def _same_moment(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Were `a` and `b` parallel (or doubly reported) calls of one batch? They are one observation."""
    if (a.get("session") or "") != (b.get("session") or "") or a.get("t") != b.get("t"):
        return False
    if a.get("call") and a.get("call") == b.get("call"):
        return True
    turn_a, turn_b = a.get("turn"), b.get("turn")
    if isinstance(turn_a, int) and isinstance(turn_b, int) and turn_a >= 0 and turn_b >= 0:
        return turn_a == turn_b and (a.get("agent") or "") == (b.get("agent") or "")
    return abs((a.get("at") or 0) - (b.get("at") or 0)) < SAME_MOMENT_US and bool(a.get("call") and b.get("call"))


def _moments(ordered: list[Entry]) -> list[Entry]:
    out: list[Entry] = []
    for e in ordered:
        if out and _same_moment(out[-1], e):
            out[-1] = e
        else:
            out.append(e)
    return out


def _print_of(entry: Entry, prints: dict[int, str]) -> str:
    found = prints.get(id(entry))
    if found is None:
        found = prints[id(entry)] = fingerprint(entry.get("facts"))
    return found


def _identical(observed: list[Entry], main: Entry, count: int, prints: dict[int, str]) -> list[Entry]:
    """Of the observed failures, one a moment, the last ones that are alike; `count`: how many there are, parallel ones too."""
    run: list[Entry] = []
    known, before = (main.get("cls"), main.get("sig")), ""
    for e in reversed(observed):
        if (e.get("cls"), e.get("sig")) != known:
            break
        facts = _print_of(e, prints) if count > 1 else ""
        if run and facts != before:
            break  # something was different in between: the count starts anew
        run.append(e)
        before = facts
    run.reverse()
    return run


def _state(ordered: list[Entry], main: Entry, last_ok: Entry | None, now: int) -> tuple[str, str, str]:
    """(state, why, id of the event that caused it) for the newest failure `main`."""
    at = order(main)
    if last_ok is not None and order(last_ok) > at:
        return "cleared", "the same action succeeded later", last_ok.get("id") or ""
    for e in reversed(ordered):
        t = e.get("t") or ""
        if t in _CLOSERS and order(e) > at:
            why = e.get("text") or f"{_CLOSERS[t]} by {_origin(e)}"
            return _CLOSERS[t], why, e.get("by") or e.get("id") or ""
    for e in reversed(ordered):
        if e.get("t") == "snooze":
            if (e.get("until") or 0) > now:
                return "snoozed", e.get("text") or "snoozed", e.get("id") or ""
            break  # only the newest snooze counts: a shorter one set later ends an earlier longer one
    return "open", "", ""
