"""The start and end of a session, a person's prompt, and the end of a background command, which comes as a prompt."""

from __future__ import annotations

import os

from projectmem.hook.recalling import append, recalled
from projectmem.hook.state import policy_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_projections.snapshot import Snapshot

    from projectmem.hook.payload import Call, Payload
    from projectmem.place import Place

    Answer = dict[str, Any] | None

CLAUDE = "claude-code"


def run(place: Place, state: Snapshot, payload: Payload, now: int) -> Answer:
    """The answer to a start, end or prompt; None where another hook that is told of it gives it (a plugin's beside settings')."""
    if not state.claim(payload.session, [_moment(payload)], now):
        return None
    if payload.kind == "start":
        return start(place, state, payload, now)
    return prompt(place, state, payload, now) if payload.kind == "prompt" else end(place, state, payload, now)


def _moment(payload: Payload) -> str:
    """What two hooks that are told the same have in common. Of a prompt only 16 bits: it is nobody's business."""
    words = payload.raw.get({"start": "source", "end": "reason"}.get(payload.kind, "prompt"))
    text = words if isinstance(words, str) else ""
    return f"#{payload.kind}-{int.from_bytes(text.encode('utf-8', 'surrogatepass'), 'big') % 65521:04x}"


def start(place: Place, state: Snapshot, payload: Payload, now: int) -> Answer:
    """Record the session (the hook's heartbeat) and tell the agent in a few lines what is on record."""
    if payload.adapter.HARNESS == CLAUDE:
        _resident(place)
    source = payload.raw.get("source")
    data = {"source": source if isinstance(source, str) else "", "cwd": payload.cwd}
    append(place, payload, "session.started", data, now, state)
    if policy_of(state).mode == "observe":
        return None
    from projectmem.hook import ahead

    ahead.soon(place)
    going_on = data["source"] == "resume"  # its context still has what it was shown; after a compaction it has not
    text = summary(place, state, now, payload.session if going_on else "")
    found: Answer = payload.adapter.context(payload.event, text)
    if found is not None:
        append(place, payload, "recall.decided", profile(text), now, state)
    return found


def profile(text: str) -> dict[str, Any]:
    """What a session was told at its start, as a recall: its short ids, so that no prompt brings the same again."""
    from projectmem import ranking

    cited = [piece[:8] for piece in text.split("[")[1:] if piece[8:9] == "]" and piece[:8].isalnum()]
    return {"engine": ranking.ENGINE, "surface": "start", "abstained": False, "items": [], "profile": cited}


def _resident(place: Place) -> None:
    """Where `init --http` was said, see that a server runs for as long as this session does."""
    if not os.path.exists(f"{place.home}/serve.json"):
        return
    from projectmem.hook import background
    from projectmem.place import env
    from projectmem.serve import alive

    harness = env("CLAUDE_PID")
    if not alive.server(place.home):
        background.start("projectmem.serve.run", place.home, int(harness) if harness.isdigit() else os.getppid())


def end(place: Place, state: Snapshot, payload: Payload, now: int) -> Answer:
    """Record the end of the session."""
    reason = payload.raw.get("reason")
    append(place, payload, "session.ended", {"reason": reason if isinstance(reason, str) else ""}, now, state)
    return None


def prompt(place: Place, state: Snapshot, payload: Payload, now: int) -> Answer:
    """A background command's end is recorded as the end of its call; a person's prompt may recall something."""
    ended = payload.adapter.HARNESS == CLAUDE and _background(payload, state)
    if not ended:
        from projectmem.hook.finish import words

        said = words(state, payload)  # a warning that no event could take before outranks what may be of use
        if said:
            found: Answer = payload.adapter.context(payload.event, "\n".join(said))
            return found
        return recalled(place, state, payload, now)
    call, started = ended
    if call is not None and not state.seen(payload.session, call["call"]):
        from projectmem.hook.finish import record_call

        record_call(place, state, call, started, now)
    return None


def _background(payload: Payload, state: Snapshot) -> tuple[Call | None, dict[str, Any]] | None:
    from projectmem.hook.claude_results import ended_background

    return ended_background(payload, lambda call: state.pending_get(payload.session, call))


def summary(place: Place, state: Snapshot, now: int, known_to: str = "") -> str:
    """What the agent reads at the start of a session, "" where there is nothing (new) to say. At most about 600 tokens."""
    from projectmem.summary import of_place

    return of_place(place, state, now=now, nonce=os.urandom(4).hex(), known_to=known_to)
