"""Ten real moments of the shared transcripts, explained: `python -m tests.bench.moments [COUNT]` (or `make moments`).

What `projectmem explain` prints of a decision, for calls of six public repositories: of each rule and failure class one or
two, sources in turn, and some where a failure was on record and the gate kept silent. Needs the shared data (PROJECTMEM_SHARED).
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem_gate import freshness
from projectmem_gate.model import Session
from projectmem_gate.policy import DEFAULT

from projectmem import moment
from projectmem.backtest.formats import read
from projectmem.backtest.model import Problems
from projectmem.backtest.runner import Replay, Summary
from projectmem.hook import judge
from projectmem.hook.judge import Unchanged

SHARED = Path(os.environ.get("PROJECTMEM_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "eval" / "steps"
SILENT = 3  # of ten, those where it said nothing though a failure stood


class Watched(Replay):
    """A replay that keeps every moment at which a failure was on record: (kind, source, what `moment.told` needs, outcome)."""

    def __init__(self, source: str, kept: list[dict[str, Any]]) -> None:
        super().__init__(DEFAULT, Summary())
        self.source, self.kept = source, kept

    def _judge(self, step: Any, call: dict[str, Any], action: Any, cursor: dict[str, int]) -> Any:
        session = Session(call["session"], call["agent"], call["harness"], call["call"], call["turn"])
        decision, facts, records = judge.assess(self.state, action, session, Unchanged(), self.policy, step.at)
        if records:
            record = next((r for r in records if r.id == decision.record), records[0])
            told = (action, decision, record, facts.get(record.id, {}), session, self.policy, step.at)
            state, _ = freshness.judge(record, facts.get(record.id), step.at, session=session.session)
            kind = decision.verdict, decision.rule or state, record.cls
            self.kept.append(
                {
                    "kind": kind,
                    "source": self.source.partition(":")[0],
                    "told": told,
                    "call": call["call"],
                    "ended": "",
                    "order": len(self.kept),
                }
            )
        return super()._judge(step, call, action, cursor)

    def _learn(self, step: Any, call: dict[str, Any], action: Any, cursor: dict[str, int]) -> str:
        outcome = super()._learn(step, call, action, cursor)
        if self.kept and self.kept[-1]["call"] == call["call"]:
            self.kept[-1]["ended"] = outcome
        return outcome


def moments(paths: list[Path]) -> list[dict[str, Any]]:
    """Every moment at which a failure was on record, in the order of the transcripts."""
    kept: list[dict[str, Any]] = []
    for repository in read(paths, "steps", Problems()):
        run = Watched(repository.name, kept)
        for step in repository.steps:
            run.step(step)
    return kept


def chosen(kept: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """A spread: the kind seen least so far goes first, then the source seen least, then the earlier."""
    out: list[dict[str, Any]] = []
    seen: Counter[Any] = Counter()
    for silent, wanted in ((False, count - count * SILENT // 10), (True, count * SILENT // 10)):
        pool = [m for m in kept if (m["kind"][0] == "allow") == silent]
        for _ in range(min(wanted, len(pool))):
            best = min(
                pool, key=lambda m: (seen[m["kind"]], seen[m["kind"][1]], seen[m["source"]], seen[m["kind"][2]], m["order"])
            )
            pool.remove(best)
            seen.update([best["kind"], best["kind"][1], best["source"], best["kind"][2]])
            out.append(best)
    return out


def main(count: int = 10) -> Iterator[str]:
    """The moments, a line at a time."""
    if not SHARED.is_dir():
        yield f"no shared data at {SHARED} (set PROJECTMEM_SHARED)"
        return
    kept = moments(sorted(SHARED.glob("*.gz")))
    kinds = Counter(m["kind"][0] for m in kept)
    yield f"{len(kept)} calls met a failure on record: {', '.join(f'{n} {verdict}' for verdict, n in sorted(kinds.items()))}"
    for number, found in enumerate(chosen(kept, count), 1):
        yield ""
        yield f"=== {number}. {found['source']}: {found['call']}"
        yield ""
        yield from moment.told(*found["told"])
        yield ""
        yield f"What became of the call: {found['ended'] or 'not known'}"


if __name__ == "__main__":
    for line in main(*(int(arg) for arg in sys.argv[1:2])):
        print(line)
