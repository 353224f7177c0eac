"""Opens the gate's snapshot, caught up with the log, and what the slow path needs besides: policy, redactor, identity."""

from __future__ import annotations

import os

from projectmem_projections.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_gate.model import Action
    from projectmem_gate.policy import Policy
    from projectmem_logs.redact import Redactor

    from projectmem.hook.claude_code import Call
    from projectmem.place import Place

BUSY_MS = 1_000  # parallel calls write at the same time; waiting is better than not checking
CATCH_UP_EVENTS = 20_000  # about a second's worth; a longer log is folded in over several calls

_redactors: dict[str, Redactor] = {}
_mended: dict[str, str] = {}


def open_state(place: Place) -> Snapshot:
    """The snapshot of the place's log. One that is damaged, foreign or does not go with the log (which was cut, restored or
    rewritten behind its back) is thrown away and folded again from the log.

    Raises ProjectionError where it cannot be written, SnapshotBusy where another process holds it.
    """
    from projectmem_projections.errors import SnapshotDamaged

    folder = f"{place.home}/projections"
    path = f"{folder}/gate.sqlite"
    try:
        return _opened(place, path, folder)
    except SnapshotDamaged as exc:
        from projectmem_projections.snapshot import discard

        from projectmem.hook import degraded

        degraded.note(place.home, "snapshot", "rebuilt from the log", str(exc))
        _mended[place.home] = str(exc)
        discard(path)
        return _opened(place, path, folder)


def mended(place: Place) -> str:
    """What was wrong with the state that was opened last, "" for nothing; said once."""
    return _mended.pop(place.home, "")


def _opened(place: Place, path: str, folder: str) -> Snapshot:
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700, exist_ok=True)
    state = Snapshot(path, busy_ms=BUSY_MS)
    try:
        _follow(place, state)
    except BaseException:
        state.close()
        raise
    return state


def _follow(place: Place, state: Snapshot) -> None:
    from projectmem_projections.tail import positions

    if state.stale(positions(place.home)) and not state.catch_up(place.home, CATCH_UP_EVENTS):
        from projectmem.hook import degraded

        degraded.note(
            place.home, "snapshot", "still behind the log; the gate knows only the older part. Run `projectmem rebuild`"
        )


def record(place: Place, state: Snapshot, drafts: list[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    """Append the drafts and fold them in; returns the written events, ours last, [] when they had to be spooled.

    What went wrong without losing anything (a busy lock, a healed tail, a snapshot left behind) is a line in hook.log.
    Raises LogError where the drafts could not be kept.
    """
    from projectmem_logs.errors import SpooledError

    from projectmem.writing import append

    problems: list[str] = []
    try:
        events = append(place, drafts, now, snapshot=state, problems=problems)
    except SpooledError as exc:
        events, problems = [], [str(exc)]
    if problems:
        from projectmem.hook import degraded

        for text in problems:
            degraded.note(place.home, "log", text)
    return events


_TURN_NOTE = "#turn"  # no harness's call id


def turn_of(state: Snapshot, session: str) -> int:
    """Finished batches of the session: as far as the log shows, or as far as a batch that added nothing to it has told."""
    told = (state.pending_get(session, _TURN_NOTE) or {}).get("turn")
    return max(state.turn(session), told if isinstance(told, int) else 0)


def end_turn(state: Snapshot, session: str, turn: int) -> None:
    """Note that a batch ended of which every call was on record already: the log will not tell."""
    state.pending_put(session, _TURN_NOTE, {"turn": turn})


def policy_of(state: Snapshot) -> Policy:
    """The policy in force: the one last accepted into the log, else the shipped defaults. Raises nothing for a bad one."""
    from projectmem_gate.policy import DEFAULT, Policy

    accepted = state.policy()
    data: Any = accepted.get("policy") if accepted else None
    if not isinstance(data, dict):
        return DEFAULT
    return Policy.from_data(data)


def policy_hash(policy: Policy) -> str:
    """`policy.hash`, by way of the canonical bytes that it is defined over (`json` is half of a hook's start)."""
    from projectmem_logs.canonical import canonical
    from projectmem_logs.digest import sha256_hex

    return sha256_hex(canonical(policy.to_data()))


def redactor(place: Place) -> Redactor:
    """The installation's redactor. Raises LogError where its key cannot be read."""
    from projectmem_logs.redact import Redactor
    from projectmem_logs.store import redaction_key

    found = _redactors.get(place.home)
    if found is None:
        found = _redactors[place.home] = Redactor(redaction_key(place.home))
    return found


def identified(place: Place, call: Call) -> Action:
    """The call's action. Secrets in its input are replaced first, in place, so that recording and checking see the same."""
    from projectmem_gate.identify import identify

    if not call.get("redacted"):
        call["input"] = redactor(place).tree(call["input"])
        call["redacted"] = True
    return identify(
        call["tool"], call["input"], root=place.root, cwd=call["cwd"], harness=call["harness"], resolve=os.path.realpath
    )
