"""The resident hook: what one call costs its server in processor time, and how long the client waits."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from projectmem.serve import settings
from projectmem.setup.command import interpreter
from tests.bench import bars
from tests.bench.hook import ERROR, Project

CALLS = 400
P95_MS = 2  # the bar, of processor time
HALF, LATE = CALLS // 2, CALLS * 95 // 100


def _spent(pid: int) -> float:
    """Processor time of a process so far, in milliseconds (all threads, at the scheduler's precision)."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e6


def _floor(runs: int = 15) -> float:
    """Processor time of the barest Python that can read JSON, in milliseconds: how fast this machine is just now."""
    import resource

    spent = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([interpreter(), "-I", "-S", "-c", "import json"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return sorted(spent)[runs // 2]


def _append(folder: str) -> tuple[list[float], list[float]]:
    """Sorted milliseconds (processor, waited) of one durable append alone, in a process that goes on: part of every call that
    records."""
    from projectmem_logs.store import LogStore, init_home

    from tests.bench.projections import NOW, draft

    home = f"{folder}/append"
    init_home(home, NOW)
    store = LogStore(home)
    cost, wall = [], []
    for n in range(CALLS):
        made, before, begun = draft(n, n), time.thread_time(), time.perf_counter()
        store.append([made], now=NOW + n)
        cost.append((time.thread_time() - before) * 1000)
        wall.append((time.perf_counter() - begun) * 1000)
    return sorted(cost), sorted(wall)


def _shown(name: str, cost: list[float], wall: list[float], floor: float) -> str:
    return (
        f"{name:20} processor, median {cost[HALF]:5.2f} ms ({cost[HALF] / floor:.2f}x), p95 {cost[LATE]:5.2f} ms;"
        f" waited, median {wall[HALF]:5.2f} ms, p95 {wall[LATE]:6.2f} ms{bars.at_most(cost[LATE], P95_MS, ' ms at p95')}"
    )


class Server:
    """A server of the project, in a process of its own."""

    def __init__(self, project: Project) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "projectmem", "serve", "--hook-only", "--root", project.folder],
            stderr=subprocess.PIPE,
            cwd=os.getcwd(),
        )
        assert self.process.stderr is not None
        self.process.stderr.readline()
        found = settings.read(f"{project.folder}/.git/projectmem")
        assert found is not None
        self.settings = found
        self.kept = http.client.HTTPConnection("127.0.0.1", found.port, timeout=30)

    def post(self, event: str, body: bytes) -> tuple[int, bytes]:
        """One call over the kept connection."""
        headers = {"Authorization": f"Bearer {self.settings.token}"}
        self.kept.request("POST", f"{settings.BASE}/claude-code/{event}", body, headers)
        answer = self.kept.getresponse()
        return answer.status, answer.read()

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.communicate(timeout=60)


def main() -> list[str]:
    """The lines of the report."""
    floor = _floor()
    lines = [f"floor: python -I -S -c 'import json' takes {floor:.1f} ms of the processor"]
    with tempfile.TemporaryDirectory() as folder:
        project = Project(folder)
        server = Server(project)

        def fields(command: str, n: int, **more: Any) -> bytes:
            return project.payload("PreToolUse", f"s{n}", **project.call(command, f"c{n}{command[:4]}"), **more)

        def anew(n: int) -> bytes:
            call = project.call("npm run build", f"a{n}")
            call["tool_input"] = {**call["tool_input"], "description": f"once more, {n}"}
            return project.payload("PreToolUse", f"a{n}", **call)

        def failure(n: int) -> bytes:
            call = project.call("make all", f"f{n}")
            return project.payload("PostToolUseFailure", "bench", **call, error=ERROR, is_interrupt=False, duration_ms=50)

        def batch(n: int) -> bytes:
            row = {**project.call("git log --oneline -5", f"b{n}"), "tool_response": "a1b2c3 one"}
            return project.payload("PostToolBatch", "bench", tool_calls=[row])

        kinds: dict[str, tuple[str, Callable[[int], bytes]]] = {
            "pre, no candidate": ("PreToolUse", lambda n: fields("git log --oneline -5", n)),
            "pre, candidate": ("PreToolUse", lambda n: fields("npm run build", n)),
            "pre, in other words": ("PreToolUse", anew),  # an input that the server has not parsed before
            "batch, one success": ("PostToolBatch", batch),
            "failure": ("PostToolUseFailure", failure),
        }
        try:
            for name, (event, make) in kinds.items():
                for n in range(5):
                    server.post(event, make(-1 - n))
                took, spent = [], []
                for n in range(CALLS):
                    body = make(n)
                    before, begun = _spent(server.process.pid), time.perf_counter()
                    status, said = server.post(event, body)
                    took.append((time.perf_counter() - begun) * 1000)
                    spent.append(_spent(server.process.pid) - before)
                    speaks = name in ("pre, candidate", "pre, in other words")
                    if status != (200 if speaks else 204) or bool(said) != (status == 200):
                        raise SystemExit(f"{name}: {status} {json.dumps(said.decode()[:200])}")
                cost, wall = sorted(spent), sorted(took)
                lines.append(_shown(name, cost, wall, floor))
        finally:
            server.stop()
        cost, wall = _append(folder)
        lines.append(_shown("durable append alone", cost, wall, floor))
    return lines
