"""[H] A failed fix at the check: the derived attempt (attempts.py) as a record, and whether proposing it again speaks."""

from __future__ import annotations

from projectmem_gate import freshness, moves, odds
from projectmem_gate.attempts import is_edit
from projectmem_gate.history import Record, fold, order
from projectmem_gate.verifiers import REPORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from projectmem_gate.model import Action

_KEPT = ("text", "path", "variant", "verifier", "since", "times", "runs", "undone", "paths", "restored", "at", "session")


DERIVED = "derived"  # kind of the parts that a caller adds: the edits that the others amount to, as the files on disk show it


def edit_keys(action: Action) -> tuple[str, ...]:
    """The keys of the edits that an action consists of, or amounts to, each once."""
    derived = [p.key for p in action.parts if p.kind == DERIVED]
    own = [p.key for p in action.parts if not p.trivial and is_edit(p.family, p.effects)]
    return tuple(dict.fromkeys(derived or own))


def choose(keys: Sequence[str], found: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The attempt that the edits `keys` repeat: at a failure which every one of them was tried against, the newest such.

    An action with one edit more, or another one, is another fix.
    """
    by_failure: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for attempt in found:
        by_failure.setdefault((attempt["vkey"], attempt["sig"]), {})[attempt["key"]] = attempt
    same = [mine for mine in by_failure.values() if keys and all(key in mine for key in keys)]
    if not same:
        return None
    best = max(same, key=lambda mine: (max(mine[k]["seen"] for k in keys), mine[keys[0]]["sig"]))
    first = dict(best[keys[0]])
    first["times"] = min(best[k]["times"] for k in keys)
    first["seen"] = max(best[k]["seen"] for k in keys)
    first["undone"] = min(best[k]["undone"] for k in keys)
    return first


def record(attempt: Mapping[str, Any], own: Iterable[Any], verifier: Iterable[Any], now: int) -> Record | None:
    """The attempt as a record that `decide` reads: its key is the edit's, its class, text and facts are the failure's.

    own       the history of the edit's key (what people said of the attempt);  verifier  that of `vkey`
    None where the failure itself was disputed, superseded or snoozed.
    """
    failure = fold(attempt["vkey"], verifier, now)
    if failure is not None and failure.state in ("disputed", "superseded", "snoozed"):
        return None
    state, why = _said(own, attempt["seen"], now)
    told = attempt["verifier"] in REPORTS  # what was run elsewhere looks at all files
    return Record(
        attempt["key"],
        attempt["id"],
        attempt["seen"],
        cls=attempt["cls"],
        sig=attempt["sig"],
        text=f"{attempt['verifier']} report" if told else attempt["vtext"],
        excerpt=failure.excerpt if failure is not None else "",
        family=failure.family if failure is not None else "",
        paths=failure.paths if failure is not None else (),
        facts=failure.facts if failure is not None else {},
        by=failure.by if failure is not None else (),
        runs=(),
        identical=0,
        state=state,
        state_why=why,
        fix={k: attempt[k] for k in _KEPT},
    )


def _said(own: Iterable[Any], seen: int, now: int) -> tuple[str, str]:
    closed = {"dispute": "disputed", "supersede": "superseded"}
    ordered = sorted((e for e in own if e.get("t") in (*closed, "snooze")), key=order)
    for e in ordered:
        if e["t"] in closed and (e.get("at") or 0) >= seen:
            return closed[e["t"]], e.get("text") or closed[e["t"]]
    snooze = next((e for e in reversed(ordered) if e["t"] == "snooze"), None)
    if snooze is not None and (snooze.get("until") or 0) > now:
        return "snoozed", snooze.get("text") or "snoozed"
    return "open", ""


def objection(
    action: Action, record: Record, facts: Mapping[str, Any] | None, now: int, session: str
) -> tuple[str, str, str, int] | None:
    """(rule, state, why, chance per mille) where the action makes a failed attempt again, else None.

    HEAD that moved (the agent's own commit, more often than not) leaves open whether the failure still stands; other
    changes than the attempts and their undoing make it another fix, taken together.
    """
    fix = record.fix
    if record.key not in action.keys or not (fix["undone"] or action.variant(record.key) == fix["variant"]):
        return None  # the same change at another place of the file
    if not fix["times"] and fix["session"] == session:
        return None  # who took it back unverified knows why, and may well be about to verify it
    if not freshness.matters(record, ("edit", fix["path"])):
        return None  # nothing that this verifier looks at
    state, why = freshness.judge(record, None if facts is None else apart(facts, fix), now, session=session)
    if state == freshness.CHANGED:
        return None
    if state == freshness.UNKNOWN and (facts or {}).get("head") == freshness.CHANGED:
        why = "HEAD moved"
    return ("fix.failed" if fix["times"] else "fix.undone"), state, why, odds.prior(record.cls, state, now - record.at)


def apart(facts: Mapping[str, Any], fix: Mapping[str, Any]) -> dict[str, Any]:
    """The facts without what making the attempts and taking them back has changed."""
    tried = set(fix["paths"])
    out = dict(facts)
    changes = [c for c in facts.get("changes") or () if isinstance(c, (list, tuple)) and len(c) >= 3]
    moved = {(new, at) for old, new, at in _moves(changes) if old in tried}
    out["changes"] = [
        c
        for c in changes
        if not (c[0] == "edit" and (c[1] in tried or (c[1], c[2]) in moved))
        and not (c[0] == "checkout" and c[1] == "" and c[2] in fix["restored"])
    ]
    if facts.get("head") == freshness.CHANGED:
        out["head"] = freshness.UNKNOWN
    replaced = facts.get("changed_deps") or ()
    if facts.get("deps") == freshness.CHANGED and replaced and all(p in tried for p in replaced):
        out["deps"] = freshness.SAME  # the attempts themselves, and their undoing
    named = facts.get("changed_files") or ()
    if facts.get("files") == freshness.CHANGED and named:
        out["changed_files"] = [p for p in named if p not in tried]
        out["files"] = freshness.CHANGED if out["changed_files"] else freshness.SAME
    return out


def _moves(changes: Iterable[Sequence[Any]]) -> list[tuple[str, str, Any]]:
    """(old name, new name, when) of the files that were moved as they are: they are known by the old name."""
    found = []
    for kind, subject, at in (c[:3] for c in changes):
        if kind == moves.TYPE and isinstance(subject, str):
            old, _, new = subject.partition(moves.BETWEEN)
            found.append((old, new, at))
    return found
