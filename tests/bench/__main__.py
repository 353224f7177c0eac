"""Every figure on one page: `make bench`. Ratios within this run; absolute times are only there to make them readable.

`python -m tests.bench [--write] [SECTION ...]`; `--write` puts what is printed into README.md beside this file, with a chart.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECTIONS = {
    "hook": "One hook process, against the barest Python that can read JSON (bars: 1.4x without a candidate, 2.0x with one)",
    "phases": "Where a hook process spends its time, and its instruction counts",
    "deciding": "Look-up and decision in one process (bars: p95 50 us, flat within 1.2x)",
    "serving": "The resident hook (bar: p95 2 ms a call)",
    "recording": "Recording one event (bar: 1.2x from 200 to 100,000 events)",
    "log": "The event log",
    "importing": "Importing whole histories (bar: 20 MB/s by the clock)",
    "projections": "Snapshot and summaries",
    "building": "All summaries from the log (bars: 2x DuckDB's own read_json of the same bytes, 1 GB)",
    "querying": "Questions to the summaries, by the size of the log",
    "mcp": "The MCP server's answer to `initialize` (bar: 1.5x the bare SDK)",
    "recalling": "One recall, the embedding of the question included (bars: p95 10 ms at 100,000 memories; controller 100 us)",
    "peers": "The same work by others, and against the size of the log",
}
INTRO = """# Benchmarks

`make bench` measures, `python -m tests.bench --write` also writes this page. Ratios are within one run, rounds are interleaved
and medians compared; still, on a machine with other work they wander by a tenth or two. Instruction counts do not. What misses
its bar says so; a percentile that does may be the machine's (its load stands below), a count never is.
`PROJECTMEM_BENCH_MILLION=1 python -m tests.bench --write deciding building querying recalling peers` adds a million events
(or memories), which takes half an hour and has a page of its own, with its own date: [MILLION.md](MILLION.md).
"""


def machine() -> list[str]:
    """What it was measured on, and when."""
    names = ("duckdb", "orjson", "tree-sitter")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return [
        f"{time.strftime('%Y-%m-%d')}: Python {platform.python_version()}, {platform.system()}"
        f" {platform.machine()}, {os.cpu_count()} processors{load}; {versions}"
    ]


def main() -> int:
    """Run the sections named on the command line, or all of them."""
    wanted = [name for name in sys.argv[1:] if name != "--write"] or list(SECTIONS)
    if unknown := [name for name in wanted if name not in SECTIONS]:
        print(f"no section `{unknown[0]}`; there are {', '.join(SECTIONS)}")
        return 2
    sys.path.insert(0, str(HERE.parents[1]))
    million = os.environ.get("PROJECTMEM_BENCH_MILLION") == "1"
    page = ["# Benchmarks at a million events\n" if million else INTRO, *machine()]
    print(page[-1])
    for name in wanted:
        print(f"\n{name}: {SECTIONS[name]}")
        page += ["", f"## {SECTIONS[name]}", "", "```text"]
        for line in importlib.import_module(f"tests.bench.{name}").main():
            print(f"  {line}".rstrip(), flush=True)
            page.append(line.rstrip())
        page.append("```")
    if "--write" in sys.argv[1:]:
        name, chart = ("MILLION.md", "cost-million.svg") if million else ("README.md", "cost.svg")
        page += _chart(chart)
        (HERE / name).write_text("\n".join(page) + "\n", encoding="utf-8")
    return 0


def _chart(name: str) -> list[str]:
    from tests.bench import chart, peers

    if not peers.FOUND:
        return []
    (HERE / name).write_text(chart.draw(peers.FOUND), encoding="utf-8")
    return ["", f"![Cost of one call against the size of the log]({name})"]


if __name__ == "__main__":
    raise SystemExit(main())
