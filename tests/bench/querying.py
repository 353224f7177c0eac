"""Questions to the summaries at 1,000 and at 100,000 events: build, views, newer events folded over, exports."""

from __future__ import annotations

import os
import tempfile
import time
from statistics import median

from projectmem_logs.store import LogStore, init_home
from projectmem_projections import exporting, generations, parity, querying, summaries

from tests.bench.projections import NOW, draft, timed

SIZES = (1_000, 100_000)
ROUNDS = 5
DAY = 86_400_000_000
QUESTIONS = {
    "open and close": "SELECT 1",
    "count of calls": "SELECT outcome, count(*) FROM actions GROUP BY outcome",
    "failure_states": "SELECT state, count(*) FROM failure_states GROUP BY state",
    "remedies": "SELECT count(*) FROM remedies",
    "sessions": "SELECT * FROM sessions ORDER BY last_at DESC LIMIT 20",
    "gate_outcomes": "SELECT followed, count(*) FROM gate_outcomes GROUP BY followed",
    "models": "SELECT * FROM models",
    "memory": "SELECT type, count(*), max(utility) FROM memory GROUP BY type",
    "record_states": "SELECT kind, count(*) FILTER (waits) FROM record_states GROUP BY kind",
}


def _log(home: str, count: int) -> None:
    """A third of the calls fail; every fiftieth event is what the gate said to one."""
    init_home(home, NOW)
    store = LogStore(home)
    for start in range(0, count, 5_000):
        drafts = []
        for n in range(start, min(start + 5_000, count)):
            made = draft(n * 7919 % (count // 3 or 1), n, ("ok", "ok", "failed")[n % 3])
            if n % 50 == 0:
                decision = {"verdict": ("warn", "ask")[n // 50 % 2], "rule": "repeat", "record": "", "reason": ""}
                data = {**made["data"], "decision": decision, "session": {"turn": 1}}
                made = {**made, "kind": "action.proposed", "data": {k: v for k, v in data.items() if k != "outcome"}}
            drafts.append(made)
        store.append(drafts, now=NOW + start, durability="batch")


def _measured(home: str, count: int) -> dict[str, float]:
    """Milliseconds of each."""
    begun = time.perf_counter()
    generations.build(home)
    took = {"build": (time.perf_counter() - begun) * 1e3}
    now = NOW + count
    for name, statement in QUESTIONS.items():
        took[name] = median(timed(lambda n, s=statement: querying.query(home, s, limit=100, now=now), ROUNDS)) * 1e3  # type: ignore[misc]
    took["stats()"] = median(timed(lambda n: summaries.stats(home, now=now), ROUNDS)) * 1e3
    LogStore(home).append([draft(1, count + n) for n in range(100)], now=now, durability="batch")
    took["failure_states, 100 newer events"] = (
        median(timed(lambda n: querying.query(home, QUESTIONS["failure_states"], limit=100, now=now), ROUNDS)) * 1e3
    )
    for format in ("parquet", "csv"):
        begun = time.perf_counter()
        exporting.export(home, os.path.join(home, f"out-{format}"), format, now=now)
        took[f"export of all as {format}"] = (time.perf_counter() - begun) * 1e3
    begun = time.perf_counter()
    parity.fingerprints(generations.open_current(home))
    took["fingerprints of all tables"] = (time.perf_counter() - begun) * 1e3
    return took


def main() -> list[str]:
    """The lines of the report."""
    columns = []
    sizes = (*SIZES, 1_000_000) if os.environ.get("PROJECTMEM_BENCH_MILLION") else SIZES
    for count in sizes:
        with tempfile.TemporaryDirectory() as folder:
            home = os.path.join(folder, "home")
            _log(home, count)
            columns.append(_measured(home, count))
    lines = [f"{'ms, median':<34}" + "".join(f"{count:>14,}" for count in sizes)]
    lines += [f"{name:<34}" + "".join(f"{column[name]:>14.0f}" for column in columns) for name in columns[0]]
    return lines


if __name__ == "__main__":
    print("\n".join(main()))
