"""Sixteen processes append to one log, are killed at any moment and started again: nothing acknowledged is lost.

`PROJECTMEM_SECONDS` is how long at least (`make nightly`: 60), `PROJECTMEM_SEED` which processes die when. On a slow machine it
goes on until enough was written and killed to mean something.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from projectmem_logs.reader import Problem, read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

from tests.patience import PATIENCE

NOW = 1_800_000_000_000_000
PROCESSES, APPENDS = 16, 100
SECONDS = int(os.environ.get("PROJECTMEM_SECONDS", "12"))
SEED = int(os.environ.get("PROJECTMEM_SEED", "3"))

WORKER = """
import os, sys
from projectmem_logs.errors import SpooledError
from projectmem_logs.store import LogStore
home, name, i, enough = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
ack = os.open(os.path.join(home, "..", f"ack-{name}"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
store = LogStore(home, wait_ms=150, segment_bytes=400_000)
actor = {"session": name, "origin": "observed"}
while not os.path.exists(enough):
    n = i % 3 + 1
    texts = [f"{name}:{i}:{k}" for k in range(n)]
    try:
        drafts = [{"kind": "note.recorded", "actor": actor, "data": {"text": t, "tags": []}} for t in texts]
        store.append(drafts, now=1800000000000000 + i)
    except SpooledError:
        pass  # durable in the spool: acknowledged all the same
    os.write(ack, f"{i}\\n".encode())
    i += 1
"""


def _acknowledged(folder: Path, name: str) -> list[int]:
    path = folder / f"ack-{name}"
    return [int(x) for x in path.read_text().split()] if path.exists() else []


@pytest.mark.slow
@pytest.mark.timeout(SECONDS * 10 + PATIENCE)
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_nothing_acknowledged_is_lost_when_processes_are_killed(tmp_path: Path) -> None:
    """Appends of 1 to 3 events, killed and restarted: all acknowledged ones there, whole batches, chains and log verify."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    rng = random.Random(SEED)
    until, enough = time.monotonic() + SECONDS, tmp_path / "enough"

    def start(k: int) -> subprocess.Popen[bytes]:
        acked = _acknowledged(tmp_path, str(k))
        begin = acked[-1] + 1 if acked else 0
        # after a kill the last one may have been written without its acknowledgement: it is tried again under the same name
        return subprocess.Popen([sys.executable, "-c", WORKER, home, str(k), str(begin), str(enough)])

    def written() -> int:
        return sum(len(_acknowledged(tmp_path, str(k))) for k in range(PROCESSES))

    running = {k: start(k) for k in range(PROCESSES)}
    kills, grown = 0, 0
    try:
        while running:
            time.sleep(0.05)
            for k, p in list(running.items()):
                if p.poll() is not None:
                    assert p.returncode in (0, -signal.SIGKILL), f"worker {k} failed with {p.returncode}"
                    del running[k]
                    if not enough.exists():
                        running[k] = start(k)
            if time.monotonic() > until and kills > SECONDS and grown >= APPENDS:
                enough.touch()
            elif kills <= (grown := written()) and rng.random() < 0.7:  # not faster than they write: else nobody would get to it
                os.kill(rng.choice(list(running.values())).pid, signal.SIGKILL)
                kills += 1
    finally:
        for p in running.values():
            p.kill()
            p.wait()
    LogStore(home, segment_bytes=400_000).append([], now=NOW)  # drains what is still spooled

    problems: list[Problem] = []
    events = list(read_events(home, problems=problems))
    report = verify(home)
    assert report.ok and not problems and report.events == len(events), (report.problems, problems)
    assert len(report.streams) == 1 and [e["seq"] for e in events] == list(range(1, len(events) + 1))
    found: dict[str, int] = {}
    for event in events:
        if event["kind"] == "note.recorded":
            found[event["data"]["text"]] = found.get(event["data"]["text"], 0) + 1
    appends = 0
    for k in range(PROCESSES):
        acked = _acknowledged(tmp_path, str(k))
        appends += len(acked)
        assert acked == list(range(len(acked)))
        lost = [t for i in acked for part in range(i % 3 + 1) if (t := f"{k}:{i}:{part}") not in found]
        assert not lost, lost[:5]
    assert appends >= APPENDS and kills > SECONDS
    healed = sum(e["kind"] == "log.recovered" for e in events)
    print(
        f"{PROCESSES} writers, {SECONDS} s: {appends:,} appends, {len(events):,} events, {kills} kills, {healed} torn ends healed"
    )
    assert sum(found.values()) - len(found) <= 3 * kills, "only a killed append may be there twice, tried again"
    assert not [n for n in os.listdir(os.path.join(home, "spool")) if n.endswith(".spool")]
