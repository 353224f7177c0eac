"""Builds the events of tool calls. Hook, importers and backtest share it, so that what one records the others understand.

A call is the adapters' neutral dict, already redacted: `session`, `agent`, `harness`, `model`, `call`, `tool`, `input`,
`cwd`, `duration_ms`, `turn` (absent keys read as "" or None). A draft is {"kind", "at", "actor", "causes", "data"}.
"""

from __future__ import annotations

from projectmem_logs.canonical import MAX_INT, canonical, sanitize
from projectmem_logs.digest import sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from projectmem_gate.model import Action, Decision, Outcome, Part, Session

MAX_INPUT = 8_000  # characters of tool input kept; the hash beside it is of the whole
MAX_EXCERPT = 1_000


def actor_of(call: Mapping[str, Any], origin: str = "observed") -> dict[str, str]:
    """Who made the call, as an event's actor. `origin` is observed | agent | human | import."""
    return {
        "session": str(call.get("session") or ""),
        "agent": str(call.get("agent") or ""),
        "harness": str(call.get("harness") or ""),
        "model": str(call.get("model") or ""),
        "origin": origin,
    }


def input_text(call: Mapping[str, Any]) -> tuple[str, str]:
    """(canonical JSON of the tool's input, cut to 8,000 characters with a mark; sha256 of the whole). Total."""
    raw = canonical(sanitize(call.get("input")))
    return shortened(raw), str(call.get("input_sha") or sha256_hex(raw))


def shortened(raw: bytes) -> str:
    """The canonical JSON of an input as it is kept."""
    text = raw.decode()
    return f"{text[:MAX_INPUT]}...[{len(text) - MAX_INPUT} more characters]" if len(text) > MAX_INPUT else text


def finished_draft(
    call: Mapping[str, Any],
    action: Action,
    outcome: Outcome,
    facts: Mapping[str, Any],
    *,
    at: int,
    as_of: Mapping[str, int] | None = None,
    origin: str = "observed",
    source: str = "hook",
    causes: Sequence[str] = (),
    tried: Mapping[str, Any] | None = None,
    asked: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """An `action.finished` draft. `as_of` is the log position of a check that found no candidate, None if unknown; `tried`
    what kind of try of a known failure the check saw in it (judge.tried); `asked` is `input_text(call)`, where that is known."""
    failed = outcome.outcome == "failed"
    culprit = action.parts[outcome.culprit] if failed and 0 <= outcome.culprit < len(action.parts) else None
    failed_key = (culprit.key if culprit else action.key) if failed else ""
    data = {
        **_described(call, action, asked),
        "failed_key": failed_key,
        "outcome": outcome.outcome,
        "exit_code": _int_or_none(outcome.exit_code),
        "class": outcome.cls,
        "signature": outcome.signature,
        "excerpt": outcome.excerpt[:MAX_EXCERPT],
        "duration_ms": _int_or_none(call.get("duration_ms")),
        "facts": {**facts, **_terms(action, outcome, failed_key)} if failed else {},
        "as_of": dict(as_of) if as_of is not None else None,
        "turn": _turn(call),
        "source": source,
        **_verified(call, action, outcome, culprit),
        "tried": dict(tried) if tried else None,
    }
    return _draft("action.finished", at, call, origin, causes, data)


def _terms(action: Action, outcome: Outcome, key: str) -> dict[str, Any]:
    """On what terms the call failed, where these matter: its limit where its time ran out (-1 in the background: another try may
    get longer), and that it did not mind (`... || true`)."""
    limit = action.limit(key) if outcome.cls == "timeout" else 0
    return {**({"limit": limit} if limit else {}), **({"ignored": True} if action.ignores(key) else {})}


def _verified(call: Mapping[str, Any], action: Action, outcome: Outcome, culprit: Part | None) -> dict[str, Any]:
    """The verifier whose word this record is, or `none`; and what a report that the call merely showed says."""
    from projectmem_gate import verifiers

    parts = [culprit] if culprit else [p for p in reversed(action.parts) if p.kind == "sh" and not p.trivial]
    named = next((name for p in parts if (name := verifiers.name(p.family, p.text))), verifiers.NONE)
    if outcome.outcome not in ("ok", "failed") or not action.parts or action.parts[-1].kind not in ("sh", "read"):
        return {"verifier": named}
    output = call.get("output")
    told = verifiers.report(action.parts[-1].family, output) if isinstance(output, str) and output else None
    if told is None:
        return {"verifier": named}
    from projectmem_gate.signature import signature

    shown = signature("test", told["signature"]) if told["signature"] else ""
    return {"verifier": told["verifier"], "report": {**told, "part": len(action.parts) - 1, "signature": shown}}


def proposed_draft(
    call: Mapping[str, Any],
    action: Action,
    decision: Decision,
    facts: Mapping[str, Any],
    session: Session,
    *,
    policy_hash: str,
    now: int,
    as_of: Mapping[str, int],
    labels: Sequence[Any] = (),
    origin: str = "observed",
    causes: Sequence[str] = (),
) -> dict[str, Any]:
    """An `action.proposed` draft: the decision and everything that `replay` needs to compute it again."""
    data = {
        **_described(call, action),
        "keys": list(action.keys + action.kin),
        "escalated": action.escalated,
        "decision": decision.to_data(),
        "facts": dict(facts),
        "session": session.to_data(),
        "policy": policy_hash,
        "now": now,
        "as_of": dict(as_of),
        "labels": list(labels),
    }
    return _draft("action.proposed", now, call, origin, causes, data)


def _described(call: Mapping[str, Any], action: Action, asked: tuple[str, str] | None = None) -> dict[str, Any]:
    """What both events say of a call: what was asked for, and the action it was understood as."""
    text, sha = asked or input_text(call)
    return {
        "call": str(call.get("call") or ""),
        "tool": action.tool,
        "kind": action.kind,
        "input": text,
        "input_sha": sha,
        "cwd": action.cwd,
        "key": action.key,
        "text": action.text,
        "joins": list(action.joins),
        "parsed": action.parsed,
        "parts": [part.to_data() for part in action.parts],
    }


def _draft(
    kind: str, at: int, call: Mapping[str, Any], origin: str, causes: Sequence[str], data: dict[str, Any]
) -> dict[str, Any]:
    return {"kind": kind, "at": at, "actor": actor_of(call, origin), "causes": list(causes), "data": data}


def _int_or_none(value: Any) -> int | None:
    """A number as the log holds it; None for none, and for one that is none of this world."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return int(value) if number and -MAX_INT < value < MAX_INT else None


def _turn(call: Mapping[str, Any]) -> int:
    turn = _int_or_none(call.get("turn"))
    return -1 if turn is None else turn
