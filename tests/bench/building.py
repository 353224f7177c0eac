"""All DuckDB summaries built from the log, against DuckDB's own `read_json` of the same bytes, each in a process of its own.

The bar is held against `CREATE TABLE AS SELECT * FROM read_json(...)` with columns found by DuckDB, all columns kept, in memory,
under the memory limit that the build has. The build writes its file, and verifies digests, hashes and chain of every line in a
thread beside it; what that alone costs is shown apart, and is part of the build's figures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median

from projectmem_logs.store import LogStore, init_home
from projectmem_projections.overlay import _CONFIG

from tests.bench.projections import NOW, draft

ROUNDS = 3
_PROGRAM = """
import glob, resource, sys, time
what, home, limit = sys.argv[1:]
began = time.perf_counter()
if what == "read_json":
    import duckdb
    con = duckdb.connect()
    con.execute(f"SET memory_limit = '{limit}'; SET enable_progress_bar = false")
    files = sorted(glob.glob(glob.escape(home) + "/log/*/*.jsonl"))
    con.execute("CREATE TABLE x AS SELECT * FROM read_json(?, format = 'newline_delimited')", [files])
elif what == "build":
    from projectmem_projections import generations
    assert generations.build(home)
else:
    from projectmem_logs.verify import verify
    assert verify(home, canonical=False).ok
wall, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
peak = used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
print(wall, used.ru_utime + used.ru_stime, peak)
"""


def _run(what: str, home: str) -> list[float]:
    """[seconds by the clock, seconds of processor, peak MiB]."""
    argv = [sys.executable, "-c", _PROGRAM, what, home, str(_CONFIG["memory_limit"])]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return [float(x) for x in done.stdout.split()]


def _made(home: str, events: int) -> None:
    init_home(home, NOW)
    store = LogStore(home)
    for start in range(0, events, 5000):
        drafts = [draft(n * 7919 % 30_000, n, ("ok", "ok", "failed")[n % 3]) for n in range(start, start + 5000)]
        store.append(drafts, now=NOW + start, durability="batch", returning=False)


def _lines(events: int, rounds: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.join(folder, "home")
        _made(home, events)
        found: dict[str, list[list[float]]] = {}
        for _ in range(rounds):
            for what in ("read_json", "build", "verification alone"):
                found.setdefault(what, []).append(_run(what, home))
        size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(f"{home}/log") for f in fs) >> 20
    lines = [f"{events:,} events, {size} MiB"]
    bar = [median(run[i] for run in found["read_json"]) for i in (0, 1)]
    for what, runs in found.items():
        wall, cpu, peak = (median(run[i] for run in runs) for i in range(3))
        lines.append(
            f"  {what:20} {wall:6.2f} s by the clock ({wall / bar[0]:.2f}x), {cpu:6.2f} s of processor ({cpu / bar[1]:.2f}x),"
            f" peak {peak:5.0f} MiB"
        )
    return lines


def main() -> list[str]:
    """The lines of the report."""
    lines = _lines(100_000, ROUNDS)
    if os.environ.get("PROJECTMEM_BENCH_MILLION") == "1":
        lines += _lines(1_000_000, 1)
    return lines
