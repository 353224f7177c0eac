"""What the log knows of a person's prompt or of a failure, shown and recorded: mostly nothing."""

from __future__ import annotations

import os

from projectmem.hook.state import policy_of, record, redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_projections.snapshot import Snapshot

    from projectmem.hook.payload import Payload
    from projectmem.place import Place

    Answer = dict[str, Any] | None


def recalled(place: Place, state: Snapshot, payload: Payload, now: int) -> Answer:
    """What the log knows of a person's prompt, mostly nothing. The prompt itself is nobody's business and is not recorded."""
    text = payload.raw.get("prompt")
    if not isinstance(text, str) or not text:
        return None
    block = _recall(place, state, payload, text, "prompt", now)
    answer: Answer = payload.adapter.context(payload.event, block) if block else None
    return answer


def after_failure(place: Place, state: Snapshot, payload: Payload, failed: dict[str, Any], now: int) -> list[str]:
    """What the log knows of a failure that was just recorded, besides that very action: one block, mostly none."""
    keys = frozenset(key for key in (failed["key"], failed["failed_key"]) if key)
    query = f"{failed['text'][:300]}: {failed['signature'] or failed['excerpt'][:300]}"
    block = _recall(place, state, payload, query, "failure", now, keys)
    return [block] if block else []


def _recall(
    place: Place, state: Snapshot, payload: Payload, query: str, surface: str, now: int, without: frozenset[str] = frozenset()
) -> str:
    """The block that the log has for a question, "" mostly; what was shown is recorded, the question is not. It costs the same
    however long the log is: where too much of it would have to be read, nothing is said (ahead.py sees that it seldom is)."""
    from projectmem import recall_light

    read_max = recall_light.READ_MAX if surface == "failure" else recall_light.PROMPT_READ_MAX
    if recall_light.is_beyond(place.home, read_max) or policy_of(state).mode == "observe":
        return ""
    from projectmem_projections.scope import Scope

    from projectmem.hook.state import accepted
    from projectmem.recall_policy import RecallPolicy

    found = recall_light.lexical(
        place.home,
        query,
        now=now,
        scope=Scope(place.project, worktree=place.worktree),
        nonce=os.urandom(4).hex(),
        session=payload.session,
        policy=RecallPolicy.from_data((accepted(state) or {}).get("recall")),
        without=without,
        read_max=read_max,
    )
    if found.block:
        append(place, payload, "recall.decided", found.event_data("", surface), now, state)
    return found.block


def append(place: Place, payload: Payload, kind: str, data: dict[str, Any], now: int, state: Snapshot) -> None:
    """Record what a harness itself told, in its own words."""
    harness, agent = payload.adapter.HARNESS, payload.agent
    actor = {"session": payload.session, "agent": agent, "harness": harness, "model": "", "origin": "observed"}
    clean = redactor(place).tree(data)  # a reason, a source
    record(place, state, [{"kind": kind, "at": now, "actor": actor, "causes": [], "data": clean}], now)
