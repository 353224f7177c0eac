"""Look-up and decision in one process, at 1,000, 100,000 and (with PROJECTMEM_BENCH_MILLION=1) a million live failures.

Time of the processor, not of the wall: on a machine with other work a percentile of the wall is the scheduler's. What is left of
that (caches that others emptied, interrupts) hits any record; to tell it from records that cost more, `decide` is also asked
AGAIN times more for all of them, pass by pass, and the best of each record is shown; and the interpreter's instructions are
counted, which no other work changes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from projectmem_gate.decide import decide
from projectmem_gate.hints import raw_words
from projectmem_gate.model import Action, Part, Session
from projectmem_gate.policy import DEFAULT
from projectmem_projections import quick
from projectmem_projections.snapshot import Snapshot

from projectmem.hook.judge import Unchanged, candidates, gather, look, weigh
from tests.bench import bars
from tests.bench.projections import NOW, event, word

ROUNDS = 2000
AGAIN = 4
P95_US, FLAT = 50, 1.2  # the bars
COUNTED = 20  # of so many records one has its instructions counted
CHUNK = 20_000
SIZES = (1_000, 100_000)
HOUR = 3_600_000_000
BEST = f"decide, best of {AGAIN + 1}"


def _action(n: int) -> Action:
    key, text = f"{n:032x}", f"npm run {word(n)}"
    return Action("Bash", "sh", ".", key, text, (Part(key, "sh", "npm run", text, words=("npm", "run", word(n))),))


def _fill(path: str, count: int) -> None:
    with Snapshot(path) as snapshot:
        snapshot._db.execute("PRAGMA cache_size = -524288")  # only to have it filled sooner: the readers open it anew
        for start in range(0, count, CHUNK):
            snapshot.apply([event(n, n + 1) for n in range(start, min(start + CHUNK, count))])


class Sizes:
    """Filled snapshots, measured in turn so that a slow minute hits all alike."""

    def __init__(self, folder: str, sizes: tuple[int, ...]) -> None:
        self.instructions: list[int] = []
        self.paths = {size: os.path.join(folder, f"{size}.sqlite") for size in sizes}
        for size, path in self.paths.items():
            _fill(path, size)

    def measure(self) -> dict[str, dict[int, list[float]]]:
        """{what: {size: sorted microseconds}}."""
        took: dict[str, dict[int, list[float]]] = {}
        kept: list[tuple[int, int, Callable[[Any], Any]]] = []
        states = {size: Snapshot(path) for size, path in self.paths.items()}
        miss = raw_words({"command": "git log --oneline -5 -- src/app.ts", "description": "what changed"})
        for n in range(ROUNDS):
            for size, state in states.items():
                number = n * 7919 % size
                action, session, now = _action(number), Session("other", call=f"c{n}"), NOW + size + HOUR
                rows = took.setdefault("filter, no candidate", {}).setdefault(size, [])
                rows.append(_us(lambda s: quick.has_hint(s._db, miss), state))
                found: dict[str, Any] = {}

                def look(s: Snapshot) -> None:
                    found["records"], found["asks"] = candidates(s, action.keys, action.key, now)  # noqa: B023

                took.setdefault("look-up of a candidate", {}).setdefault(size, []).append(_us(look, state))
                records = found["records"]
                assert records, "a candidate must be found"
                facts = {record.id: gather(state, record, Unchanged()) for record in records}
                decided = partial(decide, action, records, facts, session, DEFAULT, now, asks=found["asks"])
                ask = lambda _, decided=decided: decided()  # noqa: E731
                took.setdefault("decide", {}).setdefault(size, []).append(_us(ask, state))
                kept.append((size, n, ask))
                took.setdefault("all of it", {}).setdefault(size, []).append(
                    _us(lambda s: _all(s, action, session, now), state)  # noqa: B023
                )
        best = {size: list(rows) for size, rows in took["decide"].items()}
        for _ in range(AGAIN):
            for size, n, ask in kept:
                best[size][n] = min(best[size][n], _us(ask, states[size]))
        took[BEST] = best
        self.instructions = sorted(_instructions(ask) for _, n, ask in kept if n % COUNTED == 0)
        for state in states.values():
            state.close()
        return {what: {size: sorted(us) for size, us in by.items()} for what, by in took.items()}


def _all(state: Snapshot, action: Action, session: Session, now: int) -> None:
    """What the hook does with an action that it has identified."""
    with state.reading():
        seen = look(state, action, session, now)
    weigh(seen, action, session, Unchanged(), DEFAULT, now)


def _instructions(ask: Callable[[Any], Any]) -> int:
    """Bytecode instructions that one call takes."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        ask(None)
    finally:
        sys.settrace(before)
    return count


def _us(action: Any, state: Snapshot) -> float:
    begun = time.thread_time_ns()
    action(state)
    return (time.thread_time_ns() - begun) / 1000


def main() -> list[str]:
    """The lines of the report."""
    sizes = (*SIZES, 1_000_000) if "1" in (os.environ.get("PROJECTMEM_BENCH_MILLION") or "") else SIZES
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        found = Sizes(folder, sizes)
        for what, by in found.measure().items():
            shown = "  ".join(
                f"{size:>9,}: {us[len(us) // 2]:6.1f} / {us[len(us) * 95 // 100]:6.1f} us" for size, us in by.items()
            )
            tail = max(us[len(us) * 95 // 100] for us in by.values())
            first, last = by[sizes[0]], by[sizes[-1]]
            flat = last[len(last) // 2] / first[len(first) // 2]
            lines.append(f"{what:24} median / p95 at {shown}  flat within {flat:.2f}x (medians)")
            lines[-1] += bars.at_most(tail, P95_US, " us at p95") + bars.at_most(flat, FLAT)
        counts = found.instructions
        lines.append(
            f"decide, instructions of the interpreter: {counts[0]:,} to {counts[-1]:,} (median {counts[len(counts) // 2]:,}) over"
            f" {len(counts)} records: what differs between median and p95 of `decide` above is the machine"
            + (" alone" if counts[0] == counts[-1] else " and this")
        )
    return lines
