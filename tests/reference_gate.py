"""A naive gate, written from gate/README.md and EVIDENCE.md alone: no speed, no reasons. The real one must agree with it.

`verdict` takes raw histories and answers (verdict, id of the failure behind it). It knows only the small vocabulary of
changes that the tests draw from, for actions of the family `npm run build` with the path src/app.py.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

S, DAY = 1_000_000, 86_400_000_000
RANK = {"allow": 0, "warn": 1, "ask": 2, "deny": 3}

SOURCE, NAMED, DOC, MANIFEST, SCRATCH = "src/other.py", "src/app.py", "README.md", "package.json", "/tmp/x.py"
MAKE = ("any", "make")
ANY_CHANGE = {
    ("edit", SOURCE), ("edit", NAMED), ("edit", DOC), ("edit", MANIFEST), ("install", "npm"), ("login", "gh"), ("env", "PATH"),
    ("checkout", ""), ("service", "db"), MAKE, ("any", "python"),
}  # fmt: skip
EVERYTHING = ANY_CHANGE | {("edit", SCRATCH), ("read", NAMED), ("read", SOURCE)}
# class -> what may have mended it. A `npm run` task may well read documents, and its own manifest always.
MENDS = {
    **dict.fromkeys(("build", "test", "runtime", "unknown"), ANY_CHANGE),
    "command-not-found": {("edit", NAMED), ("edit", MANIFEST), ("install", "npm"), ("env", "PATH"), ("checkout", ""), MAKE},
    "usage": {("edit", NAMED), ("edit", MANIFEST), ("install", "npm")},
    "auth": {("edit", NAMED), ("login", "gh"), ("env", "PATH")},
    "network": {("edit", NAMED), ("login", "gh"), ("env", "PATH"), ("service", "db")},
    "edit-mismatch": {("edit", NAMED), ("checkout", "")},
}
NEEDS = dict.fromkeys(("usage", "auth", "edit-mismatch"), ("files",)) | {"command-not-found": ("deps", "files"), "network": ()}
SAME = {"build": 930, "test": 910, "runtime": 850, "unknown": 700, "command-not-found": 970, "usage": 970, "auth": 920}
SAME |= {"network": 650, "edit-mismatch": 960}


def order(e: dict[str, Any]) -> tuple[int, str, int]:
    return e["at"], e["stream"], e["seq"]


def freshness(cls: str, at: int, facts: dict[str, Any] | None, now: int) -> str:
    if facts is None:
        return "unknown"
    if cls == "network" and now - at >= 600 * S:
        return "changed"
    if any((c[0], c[1]) in MENDS[cls] for c in facts["changes"] if c[2] > at):
        return "changed"
    counts = {"head": cls not in NEEDS, "deps": cls not in ("edit-mismatch", "network", "auth"), "files": cls != "network"}
    if any(counts[n] and facts[n] == "changed" for n in counts):
        return "changed"
    return "unknown" if any(facts[n] == "unknown" for n in NEEDS.get(cls, counts)) else "same"


def placed(entries: list[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    """What is dated more than five minutes ahead happened before all that its stream recorded later at a time that can be."""
    out, limit = [], now + 300 * S
    own = [x for x in entries if x["origin"] != "import"]
    for e in entries:
        later = [x["at"] for x in own if x["stream"] == e["stream"] and x["seq"] > e["seq"] and x["at"] <= limit]
        ahead = later and e in own and e["at"] > limit
        out.append({**e, "at": min(later) if ahead else e["at"], "said": e["at"]})
    return out


def open_failures(entries: list[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    """The failures since the last success, observed ones only where there are any; [] when nothing may object."""
    ordered = sorted(placed(entries, now), key=order)
    ended = max((order(e) for e in ordered if e["t"] == "ok"), default=(0, "", 0))
    since = [e for e in ordered if e["t"] == "fail" and order(e) > ended]
    chosen = [e for e in since if e["origin"] == "observed"] or since
    if not chosen:
        return []
    if any(e["t"] in ("dispute", "supersede") and order(e) > order(chosen[-1]) for e in ordered):
        return []
    snoozes = [e for e in ordered if e["t"] == "snooze"]
    return [] if snoozes and snoozes[-1]["until"] > now else chosen


def looks_again(action: Any, key: str, last: dict[str, Any], session: Any) -> bool:
    """Is it the failed action with other output or other surrounding text, rather than a repeat?"""
    mine, theirs, cls = str(action.variant(key)), str(last["variant"]), last["cls"]
    if cls == "edit-mismatch":
        return "" != mine != theirs != ""
    more = "|" in theirs or mine.split("|")[0].strip() != theirs.split("|")[0].strip()
    return bool(mine != theirs and more and cls not in NEEDS and last["session"] == session.session)


def objection(action: Any, key: str, entries: Any, facts: Any, session: Any, policy: Any, now: int) -> tuple[Any, ...] | None:
    """(verdict, chance, at, id) of one key's history."""
    fails = open_failures(entries, now)
    if not fails or key not in action.keys:
        return None
    last = fails[-1]
    cls, at = last["cls"], last["said"]
    if looks_again(action, key, last, session):
        return None
    facts, pinned = facts.get(last["id"]), "pin" in [e["t"] for e in entries]
    if (not pinned and now >= at + policy.ttl_warn[cls]) or at > now + max(300 * S, policy.ttl_warn[cls]):
        return None
    state = freshness(cls, at, facts, now)
    if state == "changed":
        return None
    spots, guarded = [i for i, p in enumerate(action.parts) if p.key == key], False
    if key != action.key:
        guarded = all(action.joins[i : i + 1] == ("||",) for i in spots)
        if all(any(e in MENDS[cls] for p in action.parts[:i] for e in p.effects) for i in spots):
            return None
    changed_at = [c[2] for c in (facts or {"changes": []})["changes"] if (c[0], c[1]) in MENDS[cls]]
    run, own, newer = 0, 0, None
    for e in reversed([e for e in fails if e["origin"] == "observed"]):
        if (e["cls"], e["sig"]) != (cls, last["sig"]) or (newer and any(e["at"] < c <= newer for c in changed_at)):
            break
        run, own, newer = run + 1, own + (e["session"] == session.session), e["at"]
    more = max(0, run - 1) + min(4, len({(e["harness"], e["model"], e["agent"]) for e in fails})) - 1
    bucket = next(b for limit, b in ((1800 * S, 1000), (DAY, 960), (7 * DAY, 850), (now, 650)) if now - at <= limit)
    base = SAME[cls] * bucket * (1000 if state == "same" else 800) // 1_000_000
    chance = (base * 6 + 1000 * more) // (6 + more)
    if chance < policy.floor_warn:
        return None
    trail = [e for e in sorted(placed(entries, now), key=order) if e["t"] in ("fail", "ok")]
    turns = [(a, b) for a, b in pairwise(trail) if a["t"] != b["t"]]
    turned = sum(not any(a["at"] < c <= b["at"] for c in changed_at) for a, b in turns)
    flaky = turned >= 2 and run < turned + 2
    weak = last["origin"] != "observed" or state != "same" or flaky or guarded or cls == "unknown" or at > now + 300 * S
    stale = not pinned and now >= at + policy.ttl_ask[cls]
    verdict = "warn"
    if not weak and not stale and chance >= policy.floor_ask:
        if run >= policy.deny_after and policy.mode == "enforce" and key == action.key:
            verdict = "deny"
        elif own >= policy.ask_after or chance * (last["dur"] or 0) * 1000 > policy.margin * policy.turn_us:
            verdict = "ask"
    return verdict, chance, at, last["id"]


def verdict(action: Any, histories: Any, facts: Any, session: Any, policy: Any, now: int, asks: Any) -> tuple[str, str]:
    """(verdict, id) for records alone. `histories`: key -> its entries."""
    found = [o for k, es in histories.items() if (o := objection(action, k, es, facts, session, policy, now))]
    if not found:
        return "allow", ""
    verdict, _, at, id = max(found, key=lambda o: (RANK[o[0]], o[1], o[2], [-ord(c) for c in o[3]]))
    if verdict == "ask" and not (policy.ask_by == "person" and policy.mode == "enforce"):
        mine = [e for e in asks if (e["session"], e["agent"]) == (session.session, session.agent) and at <= e["at"]]
        asked = [e for e in mine if e["t"] == "ask" and e["at"] <= now]
        passed = [e for e in mine if e["t"] == "pass" and e["at"] <= now + 300 * S]
        if any((session.call and session.call == e["call"]) or 0 <= e["turn"] == session.turn for e in passed):
            return "allow", id
        for e in asked:
            meant = e["turn"] < session.turn if e["turn"] >= 0 and session.turn > 0 else now - e["at"] >= 2 * S
            if meant and not (session.call and session.call == e["call"]) and all(order(e) > order(p) for p in passed):
                return "allow", id
    return verdict, id
