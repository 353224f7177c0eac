"""After calls: what became of them is judged, recorded and folded in before the next call can be checked."""

from __future__ import annotations

from projectmem.hook.spooled import waiting_calls
from projectmem.hook.state import end_turn, kept_words, record, turn_in, turn_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from projectmem_gate.model import Action, Outcome
    from projectmem_projections.snapshot import Snapshot

    from projectmem.hook.judge import Known
    from projectmem.hook.payload import Call, Payload
    from projectmem.place import Place

    Draft = dict[str, Any]

RECENT_EDITS_US = 86_400_000_000  # files edited within a day are facts of a failure
RECENT_EDITS_MAX = 16
ASKED_FOR = ("auth", "network", "lock", "protected-resource")  # classes that nothing staged or branched can mend


def finish(place: Place, state: Snapshot, payload: Payload, now: int) -> dict[str, Any] | None:
    """Record what became of the payload's calls, once each. Speaks only of failures that no earlier event could speak of."""
    fresh, first, known = _fresh(place, state, payload, payload.calls, now)
    said = words(state, payload)
    if not fresh:
        if first and payload.kind == "batch":  # every call failed and was told already; the turn is over all the same
            end_turn(state, payload.session, turn_of(state, payload.session) + 1)
    else:
        failed = [d for d in _record(place, state, payload, fresh, known, now, said) if d["data"]["outcome"] == "failed"]
        if failed and payload.adapter.context(payload.event, "x"):
            from projectmem.hook.recalling import after_failure

            said += after_failure(place, state, payload, failed[0]["data"], now)
    found: dict[str, Any] | None = payload.adapter.context(payload.event, "\n".join(said)) if said else None
    return found


def catch_up(place: Place, state: Snapshot, payload: Payload, now: int) -> None:
    """Record what the transcript tells of calls whose end no event told."""
    fresh, _, known = _fresh(place, state, payload, payload.ended, now)
    if fresh:
        _record(place, state, payload, fresh, known, now, [])


def words(state: Snapshot, payload: Payload) -> list[str]:
    """Warnings that the harness took no word of before the call."""
    if payload.adapter.WARNS_BEFORE or not payload.adapter.context(payload.event, "x"):
        return []
    from projectmem_gate.reason import told_afterwards

    return [told_afterwards(text) for text in kept_words(state, payload)]


def _record(
    place: Place, state: Snapshot, payload: Payload, fresh: list[Call], known: Noted, now: int, said: list[str]
) -> list[Draft]:
    try:
        drafts = [_finished(place, state, payload, call, known, now, said) for call in fresh]
        record(place, state, drafts, now)
        return drafts
    except BaseException:
        state.release(payload.session, [call["call"] for call in fresh if call["call"]])
        raise


class Noted:
    """What the state has on calls that ended, read at one moment: the moves of files (`moves()`), and by call id the note of the
    event before it."""

    __slots__ = ("moved", "notes")

    def __init__(self, moved: Sequence[str], notes: dict[str, dict[str, Any]]) -> None:
        self.moved, self.notes = moved, notes


def _fresh(place: Place, state: Snapshot, payload: Payload, calls: list[Call], now: int) -> tuple[list[Call], bool, Noted]:
    """(the calls that are neither on record nor being recorded by another process (a hook registered twice), each once; whether
    no other process is told of this batch; what is on record of them)."""
    if any("match" in call for call in calls):
        from projectmem.hook.matching import found

        calls = found(state, payload.session, calls, now)
    spooled = waiting_calls(place.home)  # before the state is read: in between they may come into the log
    with state.reading():
        named = {call["call"]: call for call in calls if call["call"] and not state.seen(payload.session, call["call"])}
        named = {name: call for name, call in named.items() if (payload.session, name) not in spooled}
        # A failure is told before its batch ends: it belongs to the running turn, and only the batch ends it.
        turn = turn_in(state, payload) + (payload.kind == "batch")
        notes = {id: state.pending_get(call["session"], id) or {} for id, call in named.items()}
        known = Noted(state.moves(), notes)
    batch = [f"{call['call']}#batch" for call in calls[:1] if payload.kind == "batch" and call["call"]]
    won = state.claim(payload.session, [*named, *batch], now) if named or batch else []
    fresh = [call for call in calls if not call["call"]] + [named[id] for id in won if id in named]
    for call in fresh:
        call["turn"] = turn
    return fresh, not batch or batch[0] in won, known


def _finished(place: Place, state: Snapshot, payload: Payload, call: Call, known: Noted, now: int, said: list[str]) -> Draft:
    """The `action.finished` draft of one call; adds to `said` what the agent should hear of it."""
    before = known.notes.get(call["call"], {})
    draft, action = _draft(place, state, call, before, known.moved, now)
    outcome = draft["data"]["outcome"]
    if outcome == "ok" and payload.kind == "batch" and _weighs(state, action, call) and _told_as_error(payload, call):
        draft["data"]["outcome"] = "rejected"  # a refusal in words that are not known here
    elif outcome in ("ok", "failed") and before.get("refused"):
        _ran_after_refusal(place, call, action, now)
    elif outcome == "failed" and payload.kind == "batch" and not before:
        said += _spoken(place, state, call, action, known.moved, now)  # no event came before this call: an edit that was refused
    if call["background"]:
        kept = {"tool": call["tool"], "input": call["input"], "cwd": call["cwd"], "agent": call["agent"]}
        state.pending_put(call["session"], call["call"], {**before, "background": kept})
    return draft


def _told_as_error(payload: Payload, call: Call) -> bool | None:
    from projectmem.hook.claude_results import told_as_error  # only Claude Code's batch tells of refusals in words alone

    return told_as_error(payload, call)


def _weighs(state: Snapshot, action: Action, call: Call) -> bool:
    """Whether much hangs on a success: it would clear a failure on record, or is an edit that nothing known says was made."""
    from projectmem_gate import history

    from projectmem.hook.claude_results import written

    if action.kind in ("edit", "write") and not written(call["output"]):
        return True
    return any(history.is_open(entries) for entries in state.entries(action.keys).values())


def _ran_after_refusal(place: Place, call: Call, action: Action, now: int) -> None:
    """The harness ran what the gate refused: nobody would know if it were not said here."""
    from projectmem.hook import degraded

    degraded.event(place, call["session"], call["harness"], now, "batch", "executed after deny", action.text[:200])


def record_call(place: Place, state: Snapshot, call: Call, before: dict[str, Any], now: int) -> None:
    """Record one call that ended outside a batch (a background command)."""
    call["turn"] = turn_of(state, call["session"])
    record(place, state, [_draft(place, state, call, before, state.moves(), now)[0]], now)


def _draft(
    place: Place, state: Snapshot, call: Call, before: dict[str, Any], moved: Sequence[str], now: int
) -> tuple[Draft, Action]:
    """The `action.finished` draft of one call. `before` is the note of the event before it, `moved` the moves on record."""
    from projectmem_logs.canonical import sanitize

    from projectmem.hook.drafts import finished_draft
    from projectmem.hook.state import identified, redactor

    done = not call["is_error"] and not call["error_kind"]
    action = identified(place, call, moved, done=done)
    call["output"] = redactor(place).text(sanitize(call["output"]))  # a client cuts long output in the middle of a character
    outcome = seen_again(state, call, action, judged(call, action, before))
    if call["duration_ms"] is None and isinstance(before.get("t0"), int):
        call["duration_ms"] = max(0, (now - before["t0"]) // 1000)
    facts = disk_facts(place, state, action, outcome, call["output"], now, moved) if outcome.outcome == "failed" else {}
    as_of = before.get("as_of") if isinstance(before.get("as_of"), dict) else None
    causes = [before["proposed"]] if before.get("proposed") else []
    tried = before.get("tried") if isinstance(before.get("tried"), dict) else None
    draft = finished_draft(call, action, outcome, facts, at=now, as_of=as_of, causes=causes, tried=tried)
    if action.kind == "sh" and any(effect[0] in ("edit", "checkout") for part in action.parts for effect in part.effects):
        _add_amounts(place, call, action, draft, moved)
    return draft, action


def _add_amounts(place: Place, call: Call, action: Action, draft: Draft, moved: Sequence[str]) -> None:
    """What a shell's edits of files came to (`edits` of a part), so that the same by another tool is known again."""
    from projectmem.hook.rewriting import amounts_to
    from projectmem.hook.state import naming_of

    for number, rows in amounts_to(place.root, action, moved, naming_of(place, call, moved)).items():
        draft["data"]["parts"][number]["edits"] = rows


def judged(call: Call, action: Action, before: dict[str, Any]) -> Outcome:
    """What became of the call. Our own refusal is `rejected`: nothing is learned from it but that a turn went by."""
    from projectmem_gate.model import Outcome

    if call["background"]:
        return Outcome("unknown")  # only started: its end is told by a later prompt
    reason = before.get("reason")
    if call["error_kind"] == "hook" or (reason and call["output"].strip() == str(reason).strip()):
        return Outcome("rejected")
    from projectmem_gate.outcome import judge

    outcome = judge(
        action,
        exit_code=call["exit_code"],
        output=call["output"],
        is_error=call["is_error"],
        error_kind=call["error_kind"],
        interrupted=call["interrupted"],
        timed_out=call["timed_out"],
    )
    return Outcome("unknown", outcome.exit_code) if outcome.outcome == "ok" and _left_running(call, action) else outcome


def _left_running(call: Call, action: Action) -> bool:
    """Whether the command line itself puts everything that could fail into the background (`make &`): nothing of it has ended.
    What the harness was asked to put there is another thing: it tells of the start, and of the end where it can."""
    for part in action.parts:
        if part.limit < 0:
            break
    else:
        return False
    from projectmem_gate.tools import limit

    given = call["input"]
    return all(part.limit < 0 or part.trivial for part in action.parts) and not (isinstance(given, dict) and limit(given) < 0)


def seen_again(state: Known, call: Call, action: Action, outcome: Outcome) -> Outcome:
    """The outcome, or the failure on record that shows again in the output of a call whose exit code is not its own."""
    from projectmem_gate import outcome as outcomes

    if outcome.outcome != "ok" or not outcomes.covers_exit(action):
        return outcome
    return outcomes.again(action, outcome, call["output"], state.entries(action.keys))


def disk_facts(
    place: Place, state: Snapshot, action: Action, outcome: Outcome, output: str, now: int, moved: Sequence[str]
) -> dict[str, Any]:
    """FACTS of a failure that has just happened (see facts.py)."""
    from projectmem_gate.freshness import is_misspelt

    from projectmem.hook import surroundings
    from projectmem.hook.facts import Disk
    from projectmem.place import env

    with state.reading():
        changes = state.changes(now - RECENT_EDITS_US, RECENT_EDITS_MAX)
    edits = [c.subject for c in changes if c.type == "edit" and c.subject]
    tools, variables = surroundings.programs_of(action), surroundings.variables_of(action, output)
    asks = outcome.cls not in ASKED_FOR and not (outcome.cls == "usage" and is_misspelt(outcome.signature))
    git = asks and any(p.text.startswith(("git ", "gh ")) for p in action.parts)
    return Disk(place, env("PATH"), moved).record(action, output, edits, tools=tools, variables=variables, git=git)


def _spoken(place: Place, state: Snapshot, call: Call, action: Action, moved: Sequence[str], now: int) -> list[str]:
    """The gate's reason for a call that could not be spoken of before it failed again; [] where it has none."""
    from projectmem_gate.model import Session

    from projectmem.hook.facts import Disk
    from projectmem.hook.judge import look, weigh
    from projectmem.hook.state import policy_of
    from projectmem.place import env

    policy = policy_of(state)
    if getattr(policy, "mode", "") == "observe":
        return []
    with state.reading():
        asker = Session(call["session"], call["agent"], call["harness"], call["call"], turn_of(state, call["session"]))
        seen = look(state, action, asker, now)
    decision = weigh(seen, action, asker, Disk(place, env("PATH"), moved), policy, now)[0]
    if decision.verdict == "allow" or not decision.reason:
        return []
    from projectmem_gate.reason import told_afterwards

    return [told_afterwards(decision.reason)]
