"""The gate snapshot at 1,000 and at 100,000 open failures, and how long summaries take to answer."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from projectmem_logs.store import LogStore, init_home
from projectmem_projections import generations, summaries
from projectmem_projections.snapshot import Snapshot

NOW = 1_700_000_000_000_000
ROUNDS = 300
EVENTS = 100_000


def word(n: int) -> str:
    """A different word for every number."""
    letters = ""
    for _ in range(6):
        letters += chr(97 + n % 26)
        n //= 26
    return letters


def draft(n: int, at: int, outcome: str = "failed") -> dict[str, Any]:
    """A finished call of a key of its own, about 1 kB."""
    key, text = f"{n:032x}", f"npm run {word(n)}"
    part: dict[str, Any] = {"key": key, "kind": "sh", "family": "npm run", "text": text, "words": ["npm", "run", word(n)]}
    part |= {"paths": [f"src/{n}.py"], "effects": [["edit", f"src/{n % 500}.py"]], "trivial": False}
    failed = outcome == "failed"
    data: dict[str, Any] = {
        "call": f"toolu_{at}",
        "tool": "Bash",
        "kind": "sh",
        "input": text * 10,
        "input_sha": "0" * 64,
        "cwd": ".",
    }
    data |= {"key": key, "text": text, "joins": [], "parsed": True, "parts": [part], "failed_key": key if failed else ""}
    data |= {
        "outcome": outcome,
        "exit_code": int(failed),
        "class": "test" if failed else "",
        "signature": "boom" if failed else "",
    }
    data |= {"excerpt": "E " * 50, "duration_ms": 40, "facts": {}, "as_of": None, "turn": at % 50, "source": "hook"}
    actor = {"session": f"s{at // 100}", "agent": "", "harness": "claude-code", "model": "m", "origin": "observed"}
    return {"kind": "action.finished", "at": NOW + at, "actor": actor, "causes": [], "data": data}


def event(n: int, seq: int, outcome: str = "failed") -> dict[str, Any]:
    return {**draft(n, seq, outcome), "id": f"e{seq}", "stream": "s1", "seq": seq}


def timed(action: Callable[[int], Any], rounds: int = ROUNDS) -> list[float]:
    """Sorted seconds of each round."""
    took = []
    for n in range(rounds):
        begun = time.perf_counter()
        action(n)
        took.append(time.perf_counter() - begun)
    return sorted(took)


def _filled(path: str, count: int) -> None:
    with Snapshot(path) as snapshot:
        for start in range(0, count, 1000):
            snapshot.apply([event(n, n + 1) for n in range(start, min(start + 1000, count))])


def _snapshot(path: str, count: int) -> dict[str, list[float]]:
    miss = frozenset({"npm", "run", "install", "command", "description", "please", "now", "list"})

    def hook(n: int) -> None:
        with Snapshot(path) as snapshot:
            snapshot.hints(miss)

    took = {"open, hints, close": timed(hook)}
    with Snapshot(path) as snapshot:
        seq = snapshot.cursor()["s1"]
        took["hints, miss"] = timed(lambda n: snapshot.hints(miss))
        took["hints, hit"] = timed(lambda n: snapshot.hints(miss | {word(n * 37 % count)}))
        took["entries of 3 keys"] = timed(lambda n: snapshot.entries([f"{(n * k) % count:032x}" for k in (7, 11, 13)]))
        took["apply one event"] = timed(lambda n: snapshot.apply([event(n * 7 % count, seq + 1 + n, ("ok", "failed")[n % 2])]))
    return took


def _answers(folder: str) -> str:
    home = os.path.join(folder, "home")
    init_home(home, NOW)
    store = LogStore(home)
    for start in range(0, EVENTS, 5000):
        drafts = [draft(n * 7919 % 30_000, n, ("ok", "ok", "failed")[n % 3]) for n in range(start, start + 5000)]
        store.append(drafts, now=NOW + start, durability="batch", returning=False)
    generations.build(home)
    current = timed(lambda n: summaries.failures(home, now=NOW + EVENTS), 5)
    store.append([draft(1, EVENTS)], now=NOW + EVENTS)
    behind = timed(lambda n: summaries.failures(home, now=NOW + EVENTS), 5)
    return f"failures(): {median(current) * 1e3:.0f} ms; one event after the generation {median(behind) * 1e3:.0f} ms"


def main() -> list[str]:
    """The lines of the report."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = os.path.join(folder, "small"), os.path.join(folder, "large")
        _filled(small, 1000)
        _filled(large, 100_000)
        few, many = _snapshot(small, 1000), _snapshot(large, 100_000)
        lines = []
        for name, took in few.items():
            a, b = took[len(took) // 2] * 1e6, many[name][len(took) // 2] * 1e6
            p95 = many[name][int(len(took) * 0.95)] * 1e6
            lines.append(f"snapshot, {name}: {a:.0f} us at 1,000 failures, {b:.0f} us (p95 {p95:.0f}) at 100,000: {b / a:.2f} x")
        return [*lines, _answers(folder)]
