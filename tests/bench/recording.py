"""Recording one event: at 200 against at 100,000 events, and against a bare write + fdatasync of the same bytes."""

from __future__ import annotations

import os
import tempfile
import time
from statistics import median
from typing import Any

from projectmem_logs.home import init_home

from projectmem.place import Place
from projectmem.writing import append
from tests.bench import bars

SMALL, LARGE = 200, 100_000
ROUNDS, PER_ROUND = 15, 20
NOW = 1_700_000_000_000_000


def draft(i: int) -> dict[str, Any]:
    """A finished call as the hook records it, about 1 kB."""
    key = f"{i % 5000:032x}"
    part = {"key": key, "kind": "sh", "family": "make", "text": f"make target-{i}", "words": ["make", "target"]}
    part |= {"paths": [], "effects": [["any", "make"]], "trivial": False}
    failed = i % 10 == 0
    data = {"call": f"toolu_{i}", "tool": "Bash", "kind": "sh", "input": '{"command":"make target"}', "input_sha": "0" * 64}
    data |= {"cwd": ".", "key": key, "text": f"make target-{i}", "joins": [], "parsed": True, "parts": [part]}
    data |= {"failed_key": key if failed else "", "outcome": "failed" if failed else "ok", "exit_code": 2 if failed else 0}
    data |= {"class": "build" if failed else "", "signature": "no rule to make target" if failed else ""}
    data |= {"excerpt": "make: *** No rule to make target" if failed else "", "duration_ms": 40, "facts": {}}
    data |= {"as_of": None, "turn": 1, "source": "hook"}
    actor = {"session": f"s{i // 100}", "agent": "", "harness": "claude-code", "model": "", "origin": "observed"}
    return {"kind": "action.finished", "at": NOW + i, "actor": actor, "causes": [], "data": data}


def _filled(folder: str, count: int) -> Place:
    home = os.path.join(folder, f"log-{count}")
    init_home(home, NOW)
    place = Place(folder, home)
    for start in range(0, count, 5000):
        append(place, [draft(i) for i in range(start, min(start + 5000, count))], NOW + start, "batch")
    return place


def _one(place: Place, i: int) -> float:
    begun = time.perf_counter()
    append(place, [draft(i)], NOW + i)
    return time.perf_counter() - begun


def _bare(path: str, line: bytes) -> float:
    begun = time.perf_counter()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line)
    os.fdatasync(fd)
    os.close(fd)
    return time.perf_counter() - begun


def main() -> list[str]:
    """The lines of the report. Rounds alternate, so that a slow minute of the machine hits all three alike."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = _filled(folder, SMALL), _filled(folder, LARGE)
        bare = os.path.join(folder, "bare")
        line = b"x" * 1600 + b"\n"
        times: dict[str, list[float]] = {"small": [], "large": [], "bare": []}
        at = 10_000_000
        for _ in range(ROUNDS):
            for _ in range(PER_ROUND):
                at += 1
                times["small"].append(_one(small, at))
                times["large"].append(_one(large, at))
                times["bare"].append(_bare(bare, line))
    us = {name: median(values) * 1e6 for name, values in times.items()}
    return [
        f"record one event, median: {us['small']:.0f} us at {SMALL}, {us['large']:.0f} us at {LARGE:,}"
        f" -> ratio {us['large'] / us['small']:.2f}{bars.at_most(us['large'] / us['small'], 1.2)}",
        f"bare open + write + fdatasync + close of the same size: {us['bare']:.0f} us"
        f" -> recording with chain, lock and snapshot costs {us['small'] / us['bare']:.2f}x",
    ]
