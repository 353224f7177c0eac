"""Records what people and tools wrote down elsewhere (issues, attempts, decisions, notes), once each, with origin `import`.

Each entry has a name of its own, kept in its payload as `call`, as tool calls have: so a second import knows it, also where it
was erased from the log. Notes and decisions pass the gate before memory, as everything does that is to be remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from projectmem.importers.appending import append, bring_in, spooled
from projectmem.importers.backfill import BATCH_EVENTS, Erased
from projectmem.place import Place
from projectmem.render import count

# (name, time in us or 0 for now, kind, payload without `call`)
Entry = tuple[str, int, str, dict[str, Any]]
MEMORY = ("note.recorded", "decision.recorded")


class Written:
    """What an import of entries did: read = recorded + known + refused."""

    __slots__ = ("held", "known", "read", "recorded", "refused")

    def __init__(self) -> None:
        self.read = self.recorded = self.known = self.refused = self.held = 0

    def to_data(self) -> dict[str, int]:
        """The counts by name; `held` are recorded and wait for a person."""
        return {name: getattr(self, name) for name in ("read", "recorded", "known", "refused", "held")}

    def line(self, noun: str) -> str:
        """The counts for a person."""
        more = [f"{self.known} known already"] if self.known else []
        more += [f"{self.refused} that could not be taken"] if self.refused else []
        more += [f"{self.held} held until a person has seen them (`projectmem review`)"] if self.held else []
        return f"read {count(self.read, noun)}: {self.recorded or 'nothing'} recorded" + (f" ({', '.join(more)})" if more else "")


def record_entries(place: Place, entries: Iterable[Entry], *, now: int, harness: str) -> Written:
    """Append the entries that the log does not hold yet; the harness is who wrote them. Raises LogError."""
    from projectmem_logs.errors import KindError

    bring_in(place, now)
    done, known, erased = Written(), _names(place), Erased(place)
    drafts: list[dict[str, Any]] = []
    for name, at, kind, data in entries:
        done.read += 1
        if name in known or name in erased:
            done.known += 1
            continue
        known.add(name)
        try:
            draft = _draft(place, kind, {**data, "call": name}, now, harness)
        except KindError:
            done.refused += 1
            continue
        draft["at"] = at if 0 < at <= now else now
        done.recorded += 1
        done.held += bool(draft["data"].get("held_for"))
        drafts.append(draft)
        if kind in MEMORY or len(drafts) >= BATCH_EVENTS:  # the next is compared with what stands, this one included
            append(place, drafts, now)
            drafts = []
    if drafts:
        append(place, drafts, now)
    return done


def _draft(place: Place, kind: str, data: dict[str, Any], now: int, harness: str) -> dict[str, Any]:
    from projectmem_logs import kinds

    from projectmem.record import redacted

    clean = dict(redacted(place, data))
    if kind in MEMORY:
        from projectmem import write_gate

        clean = write_gate.checked(place, kind, clean, now=now, origin="import")
    actor = {"session": "", "agent": "", "harness": harness, "model": "", "origin": "import"}
    return {"kind": kind, "at": now, "actor": actor, "causes": [], "data": dict(kinds.validate(kind, clean))}


def _names(place: Place) -> set[str]:
    from projectmem_logs.reader import read_events

    found = ((event.get("data") or {}).get("call") for event in chain(spooled(place.home), read_events(place.home)))
    return {name for name in found if isinstance(name, str)}
