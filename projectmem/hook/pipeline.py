"""What happens at each event of a harness, whatever the harness: look before a call, learn after it, speak at the start.

`run` answers one payload. The common call (nothing recorded could match) looks its words up in the snapshot and leaves a
note for the event after the call; no parser, no `json`, no `re` and nothing of the gate's judgement is imported for it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_projections.snapshot import Snapshot

    from projectmem.hook.payload import Call, Payload
    from projectmem.place import Place

    Answer = dict[str, Any] | None


def run(place: Place, payload: Payload, now: int) -> Answer:
    """The harness's answer to `payload`, None for none. Raises what the log and the snapshot raise; entry.py catches it, and
    answers without a snapshot (meanwhile.py) where that is BehindError or SnapshotDamaged."""
    if payload.kind == "pre" and not payload.ended and not _may_object(place, payload.calls[0], now):
        return None
    from projectmem.hook.state import mended, open_state

    state = open_state(place, patient=False)
    try:
        reply = _answer(place, state, payload, now)
    finally:
        state.close()
    if payload.kind == "start":
        from projectmem.hook import health

        reply = health.told(place, payload, reply, now)
    wrong = mended(place)
    return _told(place, payload, reply, wrong) if wrong else reply


def _answer(place: Place, state: Snapshot, payload: Payload, now: int) -> Answer:
    if payload.kind == "pre":
        if payload.ended:  # what failed without an event is known before it is tried again
            from projectmem.hook.finish import catch_up

            catch_up(place, state, payload, now)
        return _check(place, state, payload, payload.calls[0], now)
    return after(place, state, payload, now)


def after(place: Place, state: Snapshot, payload: Payload, now: int) -> Answer:
    """Everything but the event before a call: what there is to record, and sometimes to say."""
    if payload.kind in ("post", "batch"):
        from projectmem.hook.finish import finish

        return finish(place, state, payload, now)
    from projectmem.hook import session

    return session.run(place, state, payload, now)


def _told(place: Place, payload: Payload, reply: Answer, wrong: str) -> Answer:
    """The answer, and once a session a word to the person: what the gate knew was built anew from the log."""
    from projectmem.hook import degraded

    if not degraded.first_time(place.home, payload.session):
        return reply
    text = f"projectmem: what the gate knew was rebuilt from the log ({wrong[:300]}). Run `projectmem verify`."
    found: Answer = payload.adapter.with_message(reply, text)
    return found


def _may_object(place: Place, call: Call, now: int) -> bool:
    """False only where it is certain that nothing on record can object; the note for the event after the call is left then."""
    from projectmem_projections.quick import nothing_objects

    from projectmem.hook.payload import served
    from projectmem.hook.spelling import input_words, real_words

    return not nothing_objects(
        f"{place.home}/projections/gate.sqlite",
        place.home,
        input_words(call, place.root),
        call["session"],
        call["call"],
        now,
        tool=call["tool"],
        tool_input=call["input"],
        mark=served(call),
        named=lambda: real_words(call, place.root),
    )


def note(state: Snapshot, call: Call, data: dict[str, Any]) -> None:
    """Leave a note for the event after this call. Without a call id there is nothing to find it by."""
    if call["call"]:
        state.pending_put(call["session"], call["call"], _marked(call, data))


def _marked(call: Call, data: dict[str, Any]) -> dict[str, Any]:
    from projectmem.hook.payload import served

    mark = served(call)
    return {**data, "mcp": mark} if mark else data


def _check(place: Place, state: Snapshot, payload: Payload, call: Call, now: int) -> Answer:
    """The slow path: identify the action, ask the gate, record what it said."""
    from projectmem_gate.model import Session

    from projectmem.hook import drafts
    from projectmem.hook.facts import Disk
    from projectmem.hook.judge import look, tried, weigh
    from projectmem.hook.state import as_tried, identified, keep_word, policy_hash, policy_of, record, turn_in
    from projectmem.place import env

    moved = state.moves()
    state.rest()  # to parse takes longer than a writer should wait
    action = as_tried(place, state, call, identified(place, call, moved, done=False), now, moved)
    with state.reading():  # the log as of one position, so that replay finds what was decided on
        asker = Session(call["session"], call["agent"], call["harness"], call["call"], turn_in(state, payload))
        policy, cursor = policy_of(state), state.cursor()
        seen = look(state, action, asker, now)
        answered = "verdict" in (state.pending_get(call["session"], call["call"]) or ())  # there is a decision on this very call
    decision, facts, records, labels = weigh(seen, action, asker, Disk(place, env("PATH"), moved), policy, now)
    if not records and decision.verdict == "allow" and decision.rule != "override":  # a pass uses an ask up: it is recorded
        note(state, call, {"t0": now, "as_of": cursor})
        return None
    adapter = payload.adapter
    reply: Answer = None if policy.mode == "observe" else adapter.answer(payload, decision)
    # The same call comes twice where the hook is registered twice: both refuse (one may be killed), one warns and records.
    if not call["call"] or (not answered and state.claim(call["session"], [f"{call['call']}#pre"], now)):
        draft = drafts.proposed_draft(
            call, action, decision, facts, asker, policy_hash=policy_hash(policy), now=now, as_of=cursor, labels=labels
        )
        left = {"t0": now, "verdict": decision.verdict, "reason": decision.reason, "refused": adapter.refuses(reply)}
        left |= {"tried": tried(decision, records, facts, asker, policy, now), "proposed": ""}
        state.beside = (call["session"], call["call"], _marked(call, left)) if call["call"] else None
        events = record(place, state, [draft], now)
        if state.beside is not None:  # spooled, or not folded: the note stands alone
            state.beside = None
            note(state, call, {**left, "proposed": events[-1]["id"] if events else ""})
        if decision.verdict == "warn" and policy.mode != "observe" and not adapter.WARNS_BEFORE:
            keep_word(state, payload, decision.reason)  # no way to say it now: the next event after a call takes it
    elif decision.verdict == "warn":
        return None
    return reply
