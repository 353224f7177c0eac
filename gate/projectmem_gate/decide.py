"""The gate: a pure, total function from an action, what is recorded, and facts, to allow, warn, ask or deny.

No clock, no disk, no randomness: equal inputs give equal bytes. The ten properties it keeps are in README.md.
"""

from __future__ import annotations

from projectmem_gate import fixes, freshness, history, odds, reach, reason, rules
from projectmem_gate.lines import basename
from projectmem_gate.model import ALLOW, ASK, DENY, VERDICTS, WARN, Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from projectmem_gate.history import Record
    from projectmem_gate.model import Action, Part, Session
    from projectmem_gate.policy import Policy

ENGINE = "10"  # changes whenever equal inputs may give another decision
FUTURE_US = history.AHEAD_US  # a record dated further ahead than this may warn at most
REPEAT_US = 2_000_000  # a repeat this long after an ask is meant, where batches cannot be told apart
HARNESS_MS = 120_000  # what a harness gives a command that asks for no other limit (Claude Code's)
OBSERVE = "observe."  # prefix of the rule where the mode says not to speak

_RANK = {v: i for i, v in enumerate(VERDICTS)}


class Finding:
    """One objection: verdict, rule, the record or the human text behind it, and what the reason needs."""

    __slots__ = ("expires_at", "human", "identical", "odds", "record", "rule", "state", "verdict", "why")

    def __init__(
        self,
        verdict: str,
        rule: str,
        record: Record | None = None,
        *,
        human: Mapping[str, Any] | None = None,
        odds: int = -1,
        state: str = "",
        why: str = "",
        expires_at: int = 0,
        identical: int = 0,
    ) -> None:
        self.verdict, self.rule, self.record, self.human = verdict, rule, record, human
        self.odds, self.state, self.why = odds, state, why
        self.expires_at, self.identical = expires_at, identical

    @property
    def source(self) -> str:
        """Id of the event behind it: the failure, or what set the label; "" for a rule of the policy."""
        return self.record.id if self.record is not None else str((self.human or {}).get("id") or "")

    def order(self) -> tuple[Any, ...]:
        """Strongest first; among equals a person's rule, then the likelier, the newer, and the id."""
        r = self.record
        if r is None:
            return (-_RANK[self.verdict], 0, 0, 0, str((self.human or {}).get("id") or ""), self.rule)
        return (-_RANK[self.verdict], 1, -self.odds, -r.at, r.id, r.key)


def decide(
    action: Action,
    records: Sequence[Record],
    facts: Mapping[str, Mapping[str, Any]],
    session: Session,
    policy: Policy,
    now: int,
    *,
    labels: Iterable[Mapping[str, Any]] = (),
    asks: Iterable[Mapping[str, Any]] = (),
) -> Decision:
    """The verdict on `action`.

    records  folded histories of (at least) the action's keys; others, closed and expired ones are ignored
    facts    record id -> what was compared for it; a missing one means unknown, and permits a warning at most
    labels   label events' data with id and origin;  asks  history entries `ask` and `pass`, "key" set where known
    """
    parts = [p for p in action.parts if not p.trivial]
    judged = [p for p in parts if not _repairs(p) and p.kind != fixes.DERIVED]
    if (parts and not judged) or action.tool.startswith("mcp__projectmem"):
        return Decision(ALLOW, "repair", engine=ENGINE)
    people = rules.by_people(action, judged, policy, labels, now)
    findings = [Finding(verdict, rule, human=human) for verdict, rule, human in people]
    if not rules.exempt(action, judged, policy):
        for record in {(r.id, r.key): r for r in records}.values():
            found = _by_record(action, record, facts.get(record.id), session, policy, now)
            if found is not None:
                findings.append(found)
    if not findings:
        return Decision(ALLOW, engine=ENGINE)
    findings.sort(key=Finding.order)
    return _answer(action, findings, facts, session, policy, now, asks)


def surfaced(decision: Decision) -> bool:
    """Is anybody to be told? False for allow, and for everything decided in the mode `observe`."""
    return decision.verdict != ALLOW and not decision.rule.startswith(OBSERVE)


def _answer(
    action: Action,
    findings: list[Finding],
    facts: Mapping[str, Mapping[str, Any]],
    session: Session,
    policy: Policy,
    now: int,
    asks: Iterable[Mapping[str, Any]],
) -> Decision:
    top = findings[0]
    record = top.record
    live = sorted({f.record.id for f in findings if f.record is not None})
    by = ""
    if top.verdict == ASK:
        by = "person" if policy.ask_by == "person" and policy.mode == "enforce" else "agent"
        if by == "agent" and _meant(action, record, session, now, asks):
            return Decision(ALLOW, "override", top.source, live, odds=top.odds, engine=ENGINE)
    remedy = _remedy(facts.get(record.id)) if record is not None else {}
    prefix = OBSERVE if policy.mode == "observe" else ""
    return Decision(
        top.verdict,
        prefix + top.rule,
        top.source,
        live,
        reason.render(top, by, remedy, now),
        remedy.get("text", ""),
        remedy.get("id", ""),
        top.expires_at,
        top.odds,
        by,
        ENGINE,
    )


def _remedy(found: Mapping[str, Any] | None) -> dict[str, str]:
    remedy = (found or {}).get("remedy")
    if not isinstance(remedy, dict) or not isinstance(remedy.get("text"), str) or not remedy["text"]:
        return {}
    how = {"how": "after"} if remedy.get("how") == "after" else {}
    return {"id": str(remedy.get("id") or ""), "text": remedy["text"], **how}


def _repairs(part: Part) -> bool:
    """Is it one of our own commands? The gate never stands in the way of its own repair."""
    if part.kind != "sh":
        return False
    for text in (part.family, part.text):
        words = [w for w in text.split()[:4] if "=" not in w]
        names = [basename(w.strip("'\"")) for w in words]
        if names[:1] == ["projectmem"]:
            return True
        launched = names[:1] and names[0] in ("uv", "uvx", "pipx", "python", "python3", "sudo", "env", "command")
        own = [n for n, w in zip(names[1:], words[1:], strict=True) if "/" not in w or w.endswith("/projectmem")]
        if launched and ("projectmem" in own or (words[1:2] == ["-m"] and own[1:2] and own[1].startswith("projectmem."))):
            return True
    return False


# --- what was recorded ---------------------------------------------------------------------------------------------


def _by_record(
    action: Action, record: Record, facts: Mapping[str, Any] | None, session: Session, policy: Policy, now: int
) -> Finding | None:
    if record.fix:
        return _by_fix(action, record, facts, session, policy, now)
    near = record.key not in action.keys
    if record.state != "open" or (near and not _is_kin(action, record, facts or {})):
        return None
    lapses = 0 if record.pinned else record.at + policy.ttl_warn.get(record.cls, 0)
    if (lapses and now >= lapses) or _too_far_ahead(record, policy, now):
        return None
    state, why = freshness.judge(record, facts, now, session=session.session, cooldown=policy.cooldown)
    exact = record.key == action.key
    if state == freshness.CHANGED:
        return None
    ignored = record.facts.get("ignored") is True  # it failed in a call that did not mind: once more it may not be meant
    guarded = silent = action.ignores(action.key)
    if not exact and not near:
        guarded, silent = _in_chain(action, record, ignored)
    elif ignored:
        silent = False
    guarded = guarded or _waits_first(action, record)
    if silent or _another_look(action, record, session) or _has_longer(action, record) or _awaits(action, record, facts or {}):
        return None
    identical, flaky = _own_history(record, facts or {})
    chance = odds.estimate(record, state, now, identical=identical, retried=(facts or {}).get("retried"))
    if chance < policy.floor_warn:
        return None
    cap, rule = (WARN, "related") if near else _cap(record, state, policy, now, flaky=flaky, guarded=guarded, exact=exact)
    if cap != WARN and (facts or {}).get("seen") == "elsewhere":  # on another machine, or in a log that came with a folder
        cap, rule = WARN, "repeat.elsewhere"
    verdict = WARN
    if cap != WARN and chance >= policy.floor_ask:
        costly = chance * (record.dur_ms or 0) * 1000 > policy.margin * policy.turn_us
        if cap == DENY and identical >= policy.deny_after:
            verdict, rule = DENY, "repeat.denied"
        elif list(record.ran_by[len(record.runs) - identical :]).count(session.session) >= policy.ask_after:
            verdict, rule = ASK, "repeat.identical"
        elif costly:
            verdict, rule = ASK, "repeat.costly"
    if verdict != WARN and lapses:
        lapses = record.at + policy.ttl_ask.get(record.cls, 0)
    cool = policy.cooldown.get(record.cls)
    if cool is not None:
        lapses = min(lapses or record.at + cool, record.at + cool)
    return Finding(verdict, rule, record, odds=chance, state=state, why=why, expires_at=lapses, identical=identical)


def _by_fix(
    action: Action, record: Record, facts: Mapping[str, Any] | None, session: Session, policy: Policy, now: int
) -> Finding | None:
    """A failed fix that is proposed again. An edit costs little, and its context may be another: never more than `warn`."""
    lapses = record.at + policy.ttl_warn.get(record.cls, 0)
    if record.state != "open" or now >= lapses or _too_far_ahead(record, policy, now):
        return None
    found = fixes.objection(action, record, facts, now, session.session)
    if found is None or found[3] < policy.floor_warn:
        return None
    rule, state, why, chance = found
    return Finding(WARN, rule, record, odds=chance, state=state, why=why, expires_at=lapses, identical=record.fix["times"])


def _too_far_ahead(record: Record, policy: Policy, now: int) -> bool:
    """Is it dated so far ahead of the clock that it would outlive what the policy gives it, were it believed?"""
    return record.at > now + max(FUTURE_US, policy.ttl_warn.get(record.cls, 0))


def _is_kin(action: Action, record: Record, facts: Mapping[str, Any]) -> bool:
    """Was the tool missing for the same work by another launcher, and has nothing of its family succeeded since?"""
    return record.key in action.kin and record.cls in ("command-not-found", "missing-dependency") and not facts.get("family_ok")


def _another_look(action: Action, record: Record, session: Session) -> bool:
    """Does the action differ from the failed one in what its key leaves out, so that it is no repeat of it?

    An edit whose text was not found is another edit with other text around the same change. A run whose output was cut
    down is run again with another filter, or with more detail, to see why it failed: only the session that saw it does so.
    """
    if record.key not in action.keys:
        return False
    mine = action.variant(record.key)
    if mine == record.variant:
        return False
    if record.cls == "edit-mismatch":
        return bool(mine and record.variant) and not freshness.is_read_bound(record)
    if any(record.sig.startswith(f"{basename(cut.split(' ')[0])}: ") for cut in record.variant.split("| ")[1:]):
        return True  # what failed was the filter, and it is another one now
    if record.cls not in freshness.WORKSPACE or record.session != session.session:
        return False
    return "|" in record.variant or mine.partition("|")[0].strip() != record.variant.partition("|")[0].strip()


def _has_longer(action: Action, record: Record) -> bool:
    """Did its time run out, and is it given more now?"""
    if record.cls != "timeout" or record.key not in action.keys:
        return False
    now, before = action.limit(record.key), record.facts.get("limit")
    before = before if isinstance(before, int) else 0
    if now < 0 or before < 0:
        return before >= 0
    if not now:
        return 0 < before < HARNESS_MS
    return now > (before or record.dur_ms or HARNESS_MS)


def _cap(record: Record, state: str, policy: Policy, now: int, *, flaky: bool, guarded: bool, exact: bool) -> tuple[str, str]:
    """(the strongest verdict this record may lead to, the rule's name if it only warns)."""
    if record.origin != "observed":
        return WARN, "repeat.claimed"
    if state != freshness.SAME:
        return WARN, "repeat.unknown"
    if flaky:
        return WARN, "repeat.flaky"
    if guarded or record.at > now + FUTURE_US or record.cls == "unknown":
        return WARN, "repeat"
    if not record.pinned and now >= record.at + policy.ttl_ask.get(record.cls, 0):
        return WARN, "repeat"
    if not exact or policy.mode != "enforce":
        return ASK, "repeat"
    return DENY, "repeat"


def _in_chain(action: Action, record: Record, ignored: bool) -> tuple[bool, bool]:
    """(guarded by `||`, not to be spoken of) for a record of one part of a chain: mended by an earlier part, or ignored."""
    guarded = silent = True
    for i, part in enumerate(action.parts):
        if part.key != record.key:
            continue
        before = [effect for earlier in action.parts[:i] for effect in earlier.effects]
        guarded = guarded and action.joins[i : i + 1] == ("||",)
        silent = silent and ((action.ignored(i) and not ignored) or any(freshness.matters(record, effect) for effect in before))
    return guarded, silent


def _waits_first(action: Action, record: Record) -> bool:
    """Does the call wait before it tries again what only needs time (`sleep 3 && curl localhost:3000`)?"""
    if record.cls not in freshness.COOLED:
        return False
    first = next((i for i, p in enumerate(action.parts) if p.key == record.key), 0)
    return any(p.text.startswith("sleep ") for p in action.parts[:first])


def _awaits(action: Action, record: Record, facts: Mapping[str, Any]) -> bool:
    """Does it wait for a server of this machine that was started shortly before the failure, and was not up yet?"""
    if record.cls != "network" or not reach.is_local(record) or not _waits_first(action, record):
        return False
    rows = freshness.each_change(facts, record.at - freshness.STARTING_US, record.at)
    return any(kind in ("any", "service") for kind, _, _ in rows)


def _own_history(record: Record, facts: Mapping[str, Any]) -> tuple[int, bool]:
    """(identical failures in a row with nothing changed between, flaky).

    Flaky: the outcome turned at least twice by itself, and no run of failures since is too long for that. What turns by a
    coin's toss fails four times in a row one time in sixteen; whatever was unseen then, it no longer turns. Of each change
    only the last time is known, so that a turn may wrongly seem one by itself: that holds back, and never escalates.
    """
    relevant = [
        at for kind, subject, at in freshness.changes_after(record, facts, 0) if freshness.matters(record, (kind, subject))
    ]
    identical = 0
    newer = 0
    for at in reversed(record.runs):
        if newer and any(at < c <= newer for c in relevant):
            break
        identical += 1
        newer = at
    turns = history.alternations(record.trail, relevant)
    return identical, 2 <= turns > identical - 2


# --- a repeated ask ------------------------------------------------------------------------------------------------


def _meant(action: Action, record: Record | None, session: Session, now: int, asks: Iterable[Mapping[str, Any]]) -> bool:
    """Has this session's agent been asked about this very action already, and now repeats it on purpose?

    Parallel calls of one batch and doubly registered hooks are one call. An ask is used up by the pass it led to, and by
    a newer failure.
    """
    mine = [
        e
        for e in asks
        if (e.get("session") or "") == session.session
        and (e.get("agent") or "") == session.agent
        and e.get("key", action.key) == action.key
    ]
    asked = [
        e
        for e in mine
        if e.get("t") == "ask" and (e.get("at") or 0) <= now and (record is None or (e.get("at") or 0) >= record.at)
    ]
    # A pass dated ahead was made under a wrong clock: it must not use up the asks of the right one.
    passes = [e for e in mine if e.get("t") == "pass" and (e.get("at") or 0) <= now + FUTURE_US]
    if any((record is None or (e.get("at") or 0) >= record.at) and _one_call(e, session) for e in passes):
        return True  # this call has passed: it is told by a second hook, or was made beside it
    passed = max((history.order(e) for e in passes), default=(0, "", 0))
    for e in asked:
        if history.order(e) <= passed:
            continue
        if session.call and e.get("call") == session.call:
            continue
        turn = e.get("turn")
        if isinstance(turn, int) and turn >= 0 and session.turn > 0:  # before a batch has ended nobody knows that any will
            if turn < session.turn:
                return True
        elif now - (e.get("at") or 0) >= REPEAT_US:
            return True
    return False


def _one_call(entry: Mapping[str, Any], session: Session) -> bool:
    """Is `entry` of the very call that is asked about, or of one in the same batch?"""
    turn = entry.get("turn")
    return bool(session.call and entry.get("call") == session.call) or (isinstance(turn, int) and 0 <= turn == session.turn)
