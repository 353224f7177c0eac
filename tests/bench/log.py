"""The event log: verifying, importing, appending and reading, with what each must be held against in the same run.

Events are lines of about 1 kB. Rates of one core are by processor time, so that other work on the machine counts less; appends
are held against a bare write + fdatasync of the same bytes, turn by turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

from tests.bench import bars

NOW = 1_700_000_000_000_000
EVENTS, ROUNDS, APPENDS = 100_000, 3, 300
ACTOR = {"session": "s-000001", "agent": "", "harness": "claude-code", "model": "", "origin": "observed"}
MEMORY = """
import resource, sys
from projectmem_logs.reader import read_events
from projectmem_logs.verify import verify
from projectmem_logs import sweep
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
what = sys.argv[2]
n = verify(sys.argv[1]).events if what == "verify" else sum(1 for _ in read_events(sys.argv[1]))
print(n, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) // 1024)
"""


def draft(i: int) -> dict[str, Any]:
    """A finished call, about 1 kB as a line."""
    key = f"{i % 5000:032x}"
    data = {
        "call": f"toolu_{i}",
        "tool": "Bash",
        "kind": "sh",
        "input": f'{{"command":"make target-{i}"}}',
        "cwd": ".",
        "key": key,
    }
    data |= {"text": f"make target-{i}", "joins": [], "parsed": True, "parts": [{"key": key, "kind": "sh", "words": ["make"]}]}
    data |= {"as_of": None, "tried": None, "outcome": "ok", "exit_code": 0, "excerpt": "", "duration_ms": 40, "turn": 1}
    return {"kind": "action.finished", "at": NOW + i, "actor": ACTOR, "causes": [], "data": data}


def _timed(call: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def _import(folder: str, drafts: list[dict[str, Any]], round_: int) -> tuple[str, float, float]:
    home = os.path.join(folder, f"import-{round_}")
    init_home(home, NOW)
    store = LogStore(home)
    return home, *_timed(lambda: store.append(drafts, now=NOW, durability="batch", returning=False))


def _appends(folder: str) -> tuple[float, float, int]:
    """Medians of a durable append of one event and of a bare write + fdatasync of as many bytes, in turns."""
    home = os.path.join(folder, "append")
    init_home(home, NOW)
    store = LogStore(home)
    store.append([draft(0)], now=NOW)
    (stream,) = os.listdir(os.path.join(home, "log"))
    path = os.path.join(home, "log", stream, f"{1:020d}.jsonl")
    line = b"x" * (os.path.getsize(path) - 1) + b"\n"
    bare = os.open(os.path.join(folder, "bare"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write() -> None:
        os.write(bare, line)
        os.fdatasync(bare)

    write()
    time.sleep(1.2)  # a process that has lived for a second knows that nothing is spooled
    store.append([draft(0)], now=NOW)
    ours, theirs = [], []
    for i in range(APPENDS):
        drafts = [draft(i)]
        ours.append(_timed(lambda drafts=drafts, i=i: store.append(drafts, now=NOW + i))[0])  # type: ignore[misc]
        theirs.append(_timed(write)[0])
    os.close(bare)
    return median(ours), median(theirs), len(line)


def _memory(home: str, what: str) -> int:
    out = subprocess.run([sys.executable, "-c", MEMORY, home, what], capture_output=True, text=True, check=True).stdout
    return int(out.split()[1])


def main() -> list[str]:
    """The lines of the report."""
    drafts = [draft(i) for i in range(EVENTS)]
    with tempfile.TemporaryDirectory() as folder:
        imports = [_import(folder, drafts, i) for i in range(ROUNDS)]
        home = imports[0][0]
        checks = [_timed(lambda: verify(home)) for _ in range(ROUNDS)]
        reads = _timed(lambda: sum(1 for _ in read_events(home)))
        segments = [os.path.join(at, n) for at, _, names in os.walk(os.path.join(home, "log")) for n in names]
        size = sum(os.path.getsize(p) for p in segments)
        hashing = min(_timed(lambda: [sha256(Path(p).read_bytes()).digest() for p in segments])[1] for _ in range(ROUNDS))
        ours, bare, length = _appends(folder)
        small = os.path.join(folder, "small")
        init_home(small, NOW)
        LogStore(small).append(drafts[: EVENTS // 10], now=NOW, durability="batch", returning=False)
        memory = {what: (_memory(small, what), _memory(home, what)) for what in ("verify", "replay")}
    wall, cpu = min(w for _, w, _ in imports), min(c for _, _, c in imports)
    checked = min(c for _, c in checks)
    tuned = "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS"))
    return [
        f"Python {sys.version.split()[0]} ({'profile-guided build' if tuned else 'not known to be profile-guided'})",
        f"verify: {EVENTS / checked:,.0f} events a second of one core, {size / EVENTS:.0f} bytes each (bar 150,000);"
        f" {checked / hashing:.1f}x the time of SHA-256 over the same files"
        f"{bars.at_least(EVENTS / checked, 150_000, ' a second')}",
        f"import, encode + chain + write: {EVENTS / cpu:,.0f} events a second of one core, {EVENTS / wall:,.0f} by the clock"
        f" (bar 150,000){bars.at_least(EVENTS / cpu, 150_000, ' a second')}",
        f"read: {EVENTS / reads[1]:,.0f} events a second of one core",
        f"durable append: {ours * 1e6:.0f} us, bare write + fdatasync of the same {length} bytes {bare * 1e6:.0f} us"
        f" -> {bare / ours:.2f}x its rate (bar 0.8){bars.at_least(bare / ours, 0.8)}",
        *(f"memory of {what}, above the bare process: {a} MiB at {EVENTS // 10:,} events, {b} MiB at {EVENTS:,}"
          for what, (a, b) in memory.items()),
    ]  # fmt: skip


if __name__ == "__main__":
    print("\n".join(main()))
