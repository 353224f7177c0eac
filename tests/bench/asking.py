"""When would the gate ask, and would it be right? `ask` goes by expected cost, and transcripts tell no durations.

So the transcripts are replayed with durations that are assumed: one for all calls, or an estimate from the times of the
calls. The estimate of a batch is the time until the session's next batch, less the lower quartile of these gaps in that session
(what the model itself takes), at most ten minutes. It is too long where a person was waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

from projectmem.backtest.formats import SECOND, read
from projectmem.backtest.model import Problems, Repository, Step
from projectmem.backtest.runner import Summary, replay

LONGEST = 600 * SECOND
ASSUMED = ("estimated", "30", "60", "120")
Key = tuple[str, int]


def rows(paths: Sequence[Path]) -> Iterator[tuple[str, set[Key], Counter[str]]]:
    """(assumed duration, the calls that were asked about, what became of them by their output), for each assumption."""
    with ProcessPoolExecutor(2) as pool:
        yield from pool.map(_replayed, [(assumed, list(paths)) for assumed in ASSUMED])


def _replayed(work: tuple[str, list[Path]]) -> tuple[str, set[Key], Counter[str]]:
    assumed, paths = work
    repositories = read(paths, "steps", Problems())
    for repository in repositories:
        _assume(repository, assumed)
    summary = Summary()
    lines = list(replay(repositories, summary=summary))
    asked = {(line["traj_id"], line["step"]) for line in lines if line["verdict"] in ("ask", "deny")}
    became = Counter({outcome: n for (verdict, outcome), n in summary.spoken.items() if verdict in ("ask", "deny")})
    return assumed, asked, became


def _assume(repository: Repository, assumed: str) -> None:
    if assumed == "estimated":
        sessions: dict[str, list[Step]] = {}
        for step in repository.steps:
            sessions.setdefault(step.call["session"], []).append(step)
        for steps in sessions.values():
            _estimate(steps)
    else:
        for step in repository.steps:
            step.call["duration_ms"] = int(assumed) * 1000


def _estimate(steps: Sequence[Step]) -> None:
    starts: dict[int, int] = {}
    for step in steps:
        starts.setdefault(step.call["turn"], step.at)
    batches = sorted(starts.items(), key=lambda row: row[1])
    gaps = {turn: after - at for (turn, at), (_, after) in pairwise(batches)}
    if not gaps:
        return
    own = sorted(gaps.values())[len(gaps) // 4]
    for step in steps:
        if step.call["turn"] in gaps:
            step.call["duration_ms"] = min(LONGEST, max(0, gaps[step.call["turn"]] - own)) // 1000
