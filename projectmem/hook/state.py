"""Opens the gate's snapshot, caught up with the log, and what the slow path needs besides: policy, redactor, identity."""

from __future__ import annotations

import os

from projectmem_projections.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from projectmem_gate.model import Action
    from projectmem_gate.policy import Policy
    from projectmem_logs.redact import Redactor

    from projectmem.hook.payload import Call, Payload
    from projectmem.place import Place

BUSY_MS = 1_000  # parallel calls write at the same time; waiting is better than not checking
INLINE_BYTES = 512 << 10  # what is folded in before a call: about 30 ms; more is left to a process of its own
CATCH_UP_EVENTS = 20_000  # about two seconds' worth; a command shows that it waits for the rest


def _identity(tool: str, given: Any, **names: Any) -> Action:
    from projectmem_gate.identify import identify

    return identify(tool, given, **names)


# A resident process keeps what it opens and remembers what it has parsed: serve/kept.py, serve/remembered.py.
opener: Callable[..., Snapshot] = Snapshot
identity: Callable[..., Action] = _identity
_redactors: dict[str, Redactor] = {}
_mended: dict[str, str] = {}
_compiled: list[Any] = [None, None]  # the accepted policy that was read last, and what it came to
_hashed: list[Any] = [None, ""]  # a policy and its hash


class BehindError(Exception):
    """The snapshot is so far from the log (absent, damaged, long not followed) that bringing it up would hold up a call."""


def open_state(place: Place, *, patient: bool = True) -> Snapshot:
    """The snapshot of the place's log, caught up. One that is damaged, foreign or does not go with the log (which was cut,
    restored or rewritten behind its back) is thrown away and folded again from the log.

    patient  take a few seconds where it needs them; otherwise BehindError where that is more than a call can wait for, and what
             is read next is of the moment that it was found caught up at (`read_on`)
    Raises ProjectionError where it cannot be written, SnapshotBusy where another process holds it.
    """
    from projectmem_projections.errors import SnapshotDamaged

    folder = f"{place.home}/projections"
    path = f"{folder}/gate.sqlite"
    if not os.path.exists(path):
        if not patient:
            _check_size(place, "it is missing")
        from projectmem_logs import files

        files.make_last(folder)
    try:
        return _opened(place, path, patient)
    except SnapshotDamaged as exc:
        if not patient:
            _check_size(place, str(exc))
        from projectmem_projections.snapshot import discard

        from projectmem.hook import degraded

        degraded.note(place.home, "snapshot", "rebuilt from the log", str(exc))
        _mended[place.home] = str(exc)
        discard(path)
        return _opened(place, path, patient)


def _check_size(place: Place, why: str) -> None:
    """Raise BehindError where the whole log is more than a call can wait for."""
    from projectmem_projections.tail import lag

    if lag(place.home, {}) > INLINE_BYTES:
        raise BehindError(why)


def mended(place: Place) -> str:
    """What was wrong with the state that was opened last, "" for nothing; said once."""
    return _mended.pop(place.home, "")


def _opened(place: Place, path: str, patient: bool) -> Snapshot:
    state = opener(path, busy_ms=BUSY_MS)
    try:
        _follow(place, state, patient)
    except BaseException:
        state.close()
        raise
    return state


def _follow(place: Place, state: Snapshot, patient: bool) -> None:
    from projectmem_projections.tail import positions

    if not patient:
        state.read_on()  # whoever is in a hurry asks more at once, and is done soon
    if state.stale(positions(place.home)):
        state.rest()
        if not patient and (behind := state.lag(place.home)) > INLINE_BYTES:
            raise BehindError(f"it is {max(1, behind >> 20)} MB behind the log")
        state.catch_up(place.home, CATCH_UP_EVENTS)


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


def as_tried(place: Place, state: Snapshot, call: Call, action: Action, now: int, moved: Sequence[str] = ()) -> Action:
    """The action; where it amounts to edits that failed as a fix by another tool, with these (rewriting.py)."""
    if not any(effect[0] in ("edit", "checkout") for part in action.parts for effect in part.effects) or not state.suspects():
        return action
    from projectmem.hook.judge import failed_fix
    from projectmem.hook.rewriting import as_tried as with_edits

    return with_edits(place.root, call, action, moved, naming_of(place, call, moved), lambda a: failed_fix(state, a, now))


def naming_of(place: Place, call: Call, moved: Sequence[str] = ()) -> Callable[[str, dict[str, Any]], Action]:
    """What identifies a call of a tool with these arguments, made from the root in place of `call`."""

    def named(tool: str, given: dict[str, Any]) -> Action:
        other: Any = {**call, "tool": tool, "input": given, "redacted": False, "cwd": place.root}
        return identified(place, other, moved)

    return named


def turn_of(state: Snapshot, session: str) -> int:
    """Finished batches of the session: as far as the log shows, or as far as a batch that added nothing to it has told."""
    told = (state.pending_get(session, _TURN_NOTE) or {}).get("turn")
    return max(state.turn(session), told if isinstance(told, int) else 0)


def turn_in(state: Snapshot, payload: Payload) -> int:
    """The turn that a payload belongs to, -1 where the harness does not tell where one ends."""
    return turn_of(state, payload.session) if payload.adapter.BATCHES else payload.turn


_WORD_NOTE = "#word"


def keep_word(state: Snapshot, payload: Payload, text: str) -> None:
    """Keep a warning that the harness takes only after a call."""
    kept = state.pending_get(payload.session, _WORD_NOTE + payload.agent) or {}
    texts = [t for t in kept.get("texts", ()) if t != text][-3:]
    state.pending_put(payload.session, _WORD_NOTE + payload.agent, {"texts": [*texts, text]})


def kept_words(state: Snapshot, payload: Payload) -> list[str]:
    """The warnings that were kept for the session; they are given once."""
    kept = state.pending_get(payload.session, _WORD_NOTE + payload.agent)
    texts = (kept or {}).get("texts") or []
    if texts:
        state.pending_put(payload.session, _WORD_NOTE + payload.agent, {"texts": []})
    return [text for text in texts if isinstance(text, str)]


def end_turn(state: Snapshot, session: str, turn: int) -> None:
    """Note that a batch ended of which every call was on record already: the log will not tell."""
    state.pending_put(session, _TURN_NOTE, {"turn": turn})


def accepted(state: Snapshot) -> dict[str, Any] | None:
    """The data of the policy that was last accepted on this machine, None for none. What another machine accepted, or a log that
    came with a folder brings, rules nothing here: it could switch the gate off."""
    found = state.policy()
    path = getattr(state, "path", "")
    if found is None or not path:
        return found
    from projectmem_projections.closed import own

    return state.policy(own(path))


def policy_of(state: Snapshot) -> Policy:
    """The policy in force: the one last accepted on this machine, else the shipped defaults. Raises nothing for a bad one."""
    from projectmem_gate.policy import DEFAULT, Policy

    data: Any = (accepted(state) or {}).get("policy")
    if not isinstance(data, dict):
        return DEFAULT
    if _compiled[0] != data:
        _compiled[:] = [data, Policy.from_data(data)]
    found: Policy = _compiled[1]
    return found


def policy_hash(policy: Policy) -> str:
    """`policy.hash`, by way of the canonical bytes that it is defined over (`json` is half of a hook's start)."""
    from projectmem_logs.canonical import canonical
    from projectmem_logs.digest import sha256_hex

    if _hashed[0] is not policy:
        _hashed[:] = [policy, sha256_hex(canonical(policy.to_data()))]
    return str(_hashed[1])


def redactor(place: Place) -> Redactor:
    """The installation's redactor. Raises LogError where its key cannot be read."""
    from projectmem_logs.redact import Redactor
    from projectmem_logs.store import redaction_key

    found = _redactors.get(place.home)
    if found is None:
        found = _redactors[place.home] = Redactor(redaction_key(place.home))
    return found


def identified(place: Place, call: Call, moved: Sequence[str] = (), *, done: bool | None = None) -> Action:
    """The call's action. Secrets in its input are replaced first, in place, so that recording and checking see the same.

    moved  the moves of files on record (`moves()` of the state): a file that was moved has the name it had before
    done   whether the call has ended well, so that its edit is in the file; None where the files of today tell nothing
    """
    from projectmem.hook.naming import naming

    if not call.get("redacted"):
        call["input"] = redactor(place).tree(call["input"])
        call["redacted"] = True
    names = naming(place)
    if moved:
        from projectmem_gate.moves import renames

        names = {**names, "renames": renames(moved)}
    given = call["input"]
    if done is not None and type(given) is dict and "command" not in given:
        from projectmem.hook.widening import widened

        whole = widened(place.root, call["cwd"], given, done=done)
        given = given if whole is given else redactor(place).tree(whole)  # the rest of a line may hold a secret
    return identity(call["tool"], given, root=place.root, cwd=call["cwd"], harness=call["harness"], **names)
