"""What happens at each event of a harness, whatever the harness: look before a call, learn after it, speak at the start.

`run` answers one payload. The common call (nothing recorded could match) opens the snapshot, looks its words up and
leaves a note for the event after the call; no parser and nothing of the gate's judgement is imported for it.
"""

from __future__ import annotations

from projectmem.hook import claude_code as adapter
from projectmem.hook.state import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_projections.snapshot import Snapshot

    from projectmem.hook.claude_code import Call, Payload
    from projectmem.place import Place

    Answer = dict[str, Any] | None


def run(place: Place, payload: Payload, now: int) -> Answer:
    """The harness's answer to `payload`, None for none. Raises what the log and the snapshot raise; entry.py catches it."""
    if payload.kind == "start":
        from projectmem.hook import session

        return session.start(place, payload, now)
    state = open_state(place)
    try:
        if payload.kind == "pre":
            return pre(place, state, payload, now)
        if payload.kind in ("post", "batch"):
            from projectmem.hook.finish import finish

            return finish(place, state, payload, now)
        from projectmem.hook import session

        return session.prompt(place, state, payload, now) if payload.kind == "prompt" else session.end(place, state, payload, now)
    finally:
        state.close()


def pre(place: Place, state: Snapshot, payload: Payload, now: int) -> Answer:
    """Before a call: None without an objection."""
    from projectmem_gate.hints import raw_words

    call = payload.calls[0]
    if not state.hints(raw_words(call["input"])) and not state.labels() and not _rules(state):
        note(state, call, {"t0": now, "as_of": state.cursor()})
        return None
    return _check(place, state, payload, call, now)


def _rules(state: Snapshot) -> bool:
    """Whether the policy in force has rules of a person, which apply without any failure on record."""
    accepted = state.policy()
    policy = accepted.get("policy") if accepted else None
    return bool(isinstance(policy, dict) and policy.get("rules"))


def note(state: Snapshot, call: Call, data: dict[str, Any]) -> None:
    """Leave a note for the event after this call. Without a call id there is nothing to find it by."""
    if call["call"]:
        state.pending_put(call["session"], call["call"], data)


def _check(place: Place, state: Snapshot, payload: Payload, call: Call, now: int) -> Answer:
    """The slow path: identify the action, ask the gate, record what it said."""
    from projectmem_gate.model import Session

    from projectmem.hook import drafts
    from projectmem.hook.facts import Disk
    from projectmem.hook.judge import assess
    from projectmem.hook.state import identified, policy_of
    from projectmem.place import env

    action = identified(place, call)
    asker = Session(call["session"], call["agent"], call["harness"], call["call"], state.turn(call["session"]))
    policy = policy_of(state)
    cursor = state.cursor()
    decision, facts, records = assess(state, action, asker, Disk(place, env("PATH")), policy, now)
    if not records and decision.verdict == "allow":
        note(state, call, {"t0": now, "as_of": cursor})
        return None
    earlier = state.pending_get(call["session"], call["call"]) if call["call"] else None
    if earlier is None or "verdict" not in earlier:  # the same call comes twice where the hook is registered twice
        from projectmem.writing import append

        draft = drafts.proposed_draft(
            call, action, decision, facts, asker, policy_hash=policy.hash, now=now, as_of=cursor, labels=state.labels()
        )
        event = append(place, [draft], now, snapshot=state)
        note(
            state,
            call,
            {
                "t0": now,
                "verdict": decision.verdict,
                "by": decision.by,
                "reason": decision.reason,
                "proposed": event[0]["id"] if event else "",
            },
        )
    if getattr(policy, "mode", "") == "observe":
        return None
    return adapter.answer(payload, decision)
