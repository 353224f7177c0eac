"""Imports of whole histories, a harness at a time: `python -m tests.bench importing`. Needs the shared data (PROJECTMEM_SHARED).

Each import runs in a process of its own, as `projectmem import` does it: read, identify, judge, redact, seal, write, fold, with
the processes that it starts to help. The bar of 20 MB/s is judged by the clock on `whole`: histories as harnesses keep them, of
real commands, edits and reads (histories.py says what is real in them and what is not), 40 to 200 MB each, none of it twice.
`commands` is the worst case: nothing but commands with outputs of a line or two, where what counts is the calls; they are given
in calls a second, too. Beside the clock stands the time of all processors, which other work on the machine changes less.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from projectmem.importers import workers
from tests.bench import bars
from tests.bench.histories import SHARED, Step, steps
from tests.bench.wrapping import FORMS, written

BAR = 20  # MB (10**6 bytes) a second by the clock
CHILD = """
import json, os, resource, sys, time
from pathlib import Path
from projectmem_logs.home import init_home
from projectmem import output
from projectmem.importers.backfill import backfill
from projectmem.importers.reports import reader
from projectmem.place import locate

form, root, listed = sys.argv[1], sys.argv[2], sys.argv[3]
place = locate(root, {})
now = 1_796_100_000_000_000
init_home(place.home, now)
files = [Path(name) for name in json.loads(Path(listed).read_text())]
read = reader(form, root, "")
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
wall, cpu = time.perf_counter(), os.times()
counts = backfill(place, now=now, sources=[(path, read) for path in files], progress=output.reading)
wall, end = time.perf_counter() - wall, os.times()
spent = sum(end[:4]) - sum(cpu[:4])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"wall": wall, "cpu": spent, "mib": peak // 1024, "more": (peak - base) // 1024, **counts.to_data()}))
"""


def measured(form: str, folder: Path, of: list[Step], code: str = CHILD) -> dict[str, Any]:
    """What an import of these calls took, in `folder` (made and removed)."""
    root = folder / "repo"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    files = written(form, folder / "kept", of, str(root))
    listed = folder / "files.json"
    listed.write_text(json.dumps([str(path) for path in files]))
    words = [sys.executable, "-c", code, form.partition(",")[0], str(root), str(listed)]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    size = sum(path.stat().st_size for path in files)
    shutil.rmtree(folder)
    return {"bytes": size, **json.loads(out)}


def main() -> list[str]:
    """The lines of the report."""
    if not SHARED.is_dir():
        return [f"no shared data at {SHARED} (set PROJECTMEM_SHARED)"]
    lines = [
        f"{workers.processors()} processors",
        f"{'':<22} {'MB':>5} {'kB/call':>8} {'MB/s':>7} {'calls/s':>8} {'cpu us/call':>12} MiB",
    ]
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder, "work", "repo"))
        for kind in ("whole", "commands"):
            of = list(steps(root, kind))
            for form in FORMS:
                took = measured(form, Path(folder, "work"), of)
                rate, calls = took["bytes"] / took["wall"] / 1e6, took["recorded"]
                missed = bars.at_least(rate, BAR, " MB/s") if kind == "whole" else ""
                lines.append(
                    f"{kind + ' ' + form:<22} {took['bytes'] / 1e6:5.0f} {took['bytes'] / calls / 1e3:8.1f} {rate:7.1f}"
                    f" {calls / took['wall']:8,.0f} {took['cpu'] / calls * 1e6:12.0f} {took['mib']}{missed}"
                )
    return lines
