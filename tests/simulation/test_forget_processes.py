"""`forget` in real processes that end by SIGKILL at any call of a function, again and again, and taken up by the next command.

`PROJECTMEM_ROUNDS` is how many erasures (CI: 40), `PROJECTMEM_SEED` when they die.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")]
ROUNDS = int(os.environ.get("PROJECTMEM_ROUNDS", "40"))
SEED = int(os.environ.get("PROJECTMEM_SEED", "5"))

# One process without threads that forks a child for every command, so that a round costs no start of an interpreter.
DRIVER = """
import json, os, random, shutil, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_forget_crashes as crashes
from projectmem_logs import erasing
from projectmem_logs.verify import verify
from projectmem import forget
from projectmem_projections.rebuild import rebuild

erasing.STALE_S = -1
folder, rounds, rng = Path(sys.argv[2]), int(sys.argv[3]), random.Random(int(sys.argv[4]))
template = crashes.make_template(folder / "template")
ends = {"killed": 0, "ended": 0, "erasing": 0, "before": 0, "done": 0}

def command(world, calls=None, dies=True):
    child = os.fork()
    if child == 0:
        try:
            done = 0
            def call(frame, event, arg):
                nonlocal done
                done += 1
                if done == calls and dies:
                    os.kill(os.getpid(), signal.SIGKILL)
            sys.setprofile(call if calls else None)
            world.forget()
            sys.setprofile(None)
            if not dies:
                (folder / "calls").write_text(str(done))
            os._exit(0)
        except BaseException as error:
            print("the command failed:", repr(error), file=sys.stderr, flush=True)
            os._exit(9)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WIFSIGNALED(status)

def uncut():
    world = crashes.World(template, folder / "uncut")
    assert not command(world, calls=-1, dies=False)
    assert world.left() == {} and verify(str(world.home)).ok
    return int((folder / "calls").read_text()), world.state()

calls, end = uncut()
for n in range(rounds):
    world = crashes.World(template, folder / str(n))
    for _ in range(rng.randrange(1, 4)):
        killed = command(world, rng.randrange(1, calls + calls // 10))
        ends["killed" if killed else "ended"] += 1
        state = "erasing" if forget.pending(str(world.home)) else "before" if world.left() else "done"
        ends[state] += 1
        damage = [p for p in verify(str(world.home)).problems if p.kind not in ("foreign-file", "torn")]
        assert not damage, (n, damage)
    assert not command(world)
    assert world.left() == {}, (n, world.left())
    assert verify(str(world.home)).ok and not forget.pending(str(world.home)), n
    events, ids, *rest = world.state()
    assert (events, ids, *rest) == end, n
    rebuild(str(world.home))
    assert world.left() == {}, (n, "after a rebuild")
    shutil.rmtree(folder / str(n))
print(json.dumps({**ends, "calls": calls}))
"""


@pytest.mark.timeout(ROUNDS * 60 + 300)
def test_killed_at_any_moment_nothing_of_it_is_left_in_the_end(tmp_path: Path) -> None:
    """No byte of the text anywhere below the home, the chain verifies, and the end is that of an erasure nobody cut short."""
    folder = str(Path(__file__).resolve().parent)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, folder, str(tmp_path), str(ROUNDS), str(SEED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    print(f"{ROUNDS} erasures of {counts['calls']:,} calls each: {counts}")
    assert counts["killed"] >= ROUNDS // 2 and counts["erasing"] >= ROUNDS // 8, counts


MEMORY = """
import resource, sys
from projectmem_logs import erasing
from projectmem_logs.selecting import Selector
wanted = Selector(text="SECRET")
ids = erasing.select(sys.argv[1], wanted).ids
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
done = erasing.carry_out(sys.argv[1], dict.fromkeys(ids, "01a22cce-9a3c-7cdd-9467-8baa71c666e0"), wanted, at=5)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(done.events, grown >> (20 if sys.platform == "darwin" else 10))
"""


def test_a_large_segment_is_rewritten_in_little_memory(tmp_path: Path) -> None:
    """Of a segment of 30 MiB a few are in memory at a time."""
    from projectmem_logs.store import LogStore, init_home

    home = str(tmp_path / "home")
    init_home(home, 1)
    store = LogStore(home)
    for k in range(30):
        texts = [f"{k}:{i} {'x' * 600}{' SECRET' if i == 500 else ''}" for i in range(1000)]
        drafts = [{"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": t, "tags": []}} for t in texts]
        store.append(drafts, now=1, durability="batch")
    (segment,) = Path(home, "log").glob("*/*.jsonl")
    assert segment.stat().st_size > 30 << 20
    out = subprocess.run([sys.executable, "-c", MEMORY, home], capture_output=True, text=True, check=True).stdout
    events, grown = map(int, out.split())
    assert events == 30 and grown < 12, f"{grown} MiB"
