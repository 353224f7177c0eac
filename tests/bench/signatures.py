"""How stable signatures are, on recorded transcripts: `python -m tests.bench.signatures [--write]` (or `make signatures`).

Of failures that met an open record of the same command: how many have its class and signature, by whether anything that may
mend it is on record between, and by whether the output was looked at in the same way. And how many pairs of failures of unrelated
commands share one. `--write` puts the lines into gate/EVIDENCE.md. Needs the shared data (PROJECTMEM_SHARED).
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem_gate import freshness
from projectmem_gate.model import FAILED, Session
from projectmem_gate.policy import DEFAULT

from projectmem.backtest.formats import read
from projectmem.backtest.model import Problems
from projectmem.backtest.runner import Replay, Summary
from projectmem.hook import judge
from projectmem.hook.finish import judged, seen_again
from projectmem.hook.judge import Unchanged
from tests.bench.backtest import REPO, SHARED, write

PAGE = REPO / "gate" / "EVIDENCE.md"
BEGIN, END = "<!-- signatures: written by `python -m tests.bench.signatures --write` -->", "<!-- signatures: end -->"
PAIRS, SEED = 20_000, 0


class Signed(Replay):
    """A replay that keeps every failure's signature, and compares it with that of the open record of its command."""

    def __init__(self, repeats: list[dict[str, Any]], failed: list[tuple[str, str]]) -> None:
        super().__init__(DEFAULT, Summary())
        self.repeats, self.failed = repeats, failed

    def _learn(self, step: Any, call: dict[str, Any], action: Any, cursor: dict[str, int]) -> str:
        outcome = seen_again(self.state, call, action, judged(call, action, {}))
        if outcome.outcome == FAILED:
            part = action.parts[outcome.culprit] if 0 <= outcome.culprit < len(action.parts) else None
            key, family = (part.key, part.family) if part else (action.key, action.text)
            session = Session(call["session"], call["agent"], call["harness"], call["call"], call["turn"])
            _, facts, records = judge.assess(self.state, action, session, Unchanged(), self.policy, step.at)
            for record in records:
                if record.key == key and not record.fix:
                    state, _ = freshness.judge(record, facts.get(record.id), step.at, session=session.session)
                    same = (record.cls, record.sig) == (outcome.cls, outcome.signature)
                    looked = record.variant == action.variant(key)
                    self.repeats.append({"fresh": state, "looked": looked, "same": same, "call": call["call"]})
                    self.repeats[-1]["signatures"] = (record.sig, outcome.signature)
            self.failed.append((family, outcome.signature))
        return super()._learn(step, call, action, cursor)


def measured(paths: list[Path]) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """(repeats of a failure on record, (family, signature) of every failure) of these transcripts."""
    repeats: list[dict[str, Any]] = []
    failed: list[tuple[str, str]] = []
    for repository in read(paths, "steps", Problems()):
        run = Signed(repeats, failed)
        for step in repository.steps:
            run.step(step)
    return repeats, failed


def unrelated(failed: list[tuple[str, str]]) -> Counter[str]:
    """The signatures that two failures of unrelated commands share, of PAIRS pairs drawn by a fixed seed."""
    draw, shared, left = random.Random(SEED), Counter[str](), PAIRS
    while left and len({family for family, _ in failed}) > 1:
        (one, a), (other, b) = draw.sample(failed, 2)
        if one.split()[:1] != other.split()[:1]:
            left -= 1
            shared[a] += a == b
    return +shared


def main(*, every: bool = False) -> Iterator[str]:
    """The lines of the page; with `every` the repeats that differ, too."""
    if not (SHARED / "steps").is_dir():
        yield f"no shared data at {SHARED} (set PROJECTMEM_SHARED)"
        return
    repeats, failed = measured(sorted((SHARED / "steps").glob("*.gz")))
    yield f"Of {len(failed):,} failures {len(repeats)} met an open record of the same command. The same class and signature:"
    yield ""
    yield "| between the two | looked at in the same way | otherwise filtered |"
    yield "|---|---|---|"
    for state, said in (
        ("same", "nothing that may mend it"),
        ("changed", "something that may mend it"),
        ("unknown", "not known"),
    ):
        cells = []
        for looked in (True, False):
            rows = [r for r in repeats if (r["fresh"], r["looked"]) == (state, looked)]
            cells.append(f"{sum(r['same'] for r in rows)} of {len(rows)}")
        if any(cell != "0 of 0" for cell in cells):
            yield f"| {said} | {cells[0]} | {cells[1]} |"
    shared = unrelated(failed)
    yield ""
    most = ", ".join(f"`{sig[:60]}` {n}" for sig, n in shared.most_common(3))
    share = f"{shared.total()} have the same signature ({shared.total() / PAIRS:.2%})"
    yield f"Of {PAIRS:,} pairs of failures of unrelated commands {share}: {most}."
    for row in repeats if every else ():
        if not row["same"]:
            yield f"{row['fresh']} {'alike' if row['looked'] else 'filtered'} {row['call']}"
            yield from (f"    {sig}" for sig in row["signatures"])


if __name__ == "__main__":
    lines = list(main(every="--every" in sys.argv[1:]))
    print("\n".join(lines))
    if "--write" in sys.argv[1:] and len(lines) > 1:
        write(lines, PAGE, BEGIN, END)
