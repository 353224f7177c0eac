"""The log on a simulated disk, a list as its model, and what must hold after any crash.

Two processes append in turn. Every append is an attempt: acknowledged (it returned, or was safely spooled) or not. After a
crash or a kill the log is recovered on a copy of the disk and read: every acknowledged attempt is there once, whole and in
order; any other is there once and whole, or not at all; nothing else is there; recovering again changes nothing.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

from projectmem_logs import files, home, reader, spool, store, tail, verify
from projectmem_logs.errors import AppendError, SpooledError
from projectmem_logs.store import LogStore, init_home
from simulated_disk import Disk, Killed, SimulatedOs

HOME = "/srv/project/projectmem"
NOW = 1_800_000_000_000_000
SEGMENT, BATCH, WINDOW = 6_000, 3_000, 1_500  # bytes: small, so that a short run meets every edge
ACTOR = {"origin": "observed"}
MODULES = (files, home, reader, spool, store, tail, verify)


@contextlib.contextmanager
def simulated(disk: Disk) -> Iterator[SimulatedOs]:
    """The log's modules on `disk` instead of the real one."""
    system = SimulatedOs(disk)
    changed = [(module, "os", system) for module in MODULES] + [(files, "fcntl", system), (files, "_FULLFSYNC", None)]
    changed += [
        (store, "BATCH_BYTES", BATCH),
        (spool, "PIECE_BYTES", BATCH),
        (spool, "TOGETHER_BYTES", BATCH),
        (tail, "WINDOW", WINDOW),
        (home, "machine", lambda: "0" * 16),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in changed]
    for module, name, value in changed:
        setattr(module, name, value)
    try:
        yield system
    finally:
        for module, name, value in before:
            setattr(module, name, value)


class Attempt:
    """One append: its texts, whether it was acknowledged, and whether it may come later than it was made (spooled)."""

    __slots__ = ("acknowledged", "durable", "later", "texts")

    def __init__(self, texts: list[str], durable: bool) -> None:
        self.texts, self.durable = texts, durable
        self.acknowledged = self.later = False


class World:
    """One seeded run. `states` counts the disks a crash left that were recovered and checked."""

    def __init__(self, system: SimulatedOs, seed: int) -> None:
        self.system, self.seed, self.rng = system, seed, random.Random(seed)
        self.disk = system.disk = Disk(random.Random(seed + 1))
        self.attempts: list[Attempt] = []
        self.stores: dict[int, LogStore] = {}
        self.count = self.states = 0
        self.lied = False  # a failed sync was followed by the end of its process before it could undo
        self.last_call = ""
        init_home(HOME, NOW, allow_network=True)

    # -- what happens -------------------------------------------------------------------------------------------------

    def store(self, process: int) -> LogStore:
        """The long-lived store of a process, opened when it has none."""
        self.disk.process = process
        if process not in self.stores:
            self.stores[process] = LogStore(HOME, segment_bytes=SEGMENT, wait_ms=0)
        return self.stores[process]

    def draft(self, size: int) -> dict[str, Any]:
        """A draft with a text of its own, padded to about `size`."""
        self.count += 1
        return {"kind": "note.recorded", "actor": ACTOR, "data": {"text": f"{self.count}", "tags": ["x" * size]}}

    def append(self, process: int, events: int, *, size: int = 20, durable: bool = True) -> Attempt:
        """One append; raises Killed when the plan ends the process in it."""
        drafts = [self.draft(size) for _ in range(events)]
        attempt = Attempt([d["data"]["text"] for d in drafts], durable)
        self.attempts.append(attempt)
        try:
            self.store(process).append(drafts, now=NOW + self.count, durability="durable" if durable else "batch")
            attempt.acknowledged = True
        except SpooledError:
            attempt.acknowledged = attempt.later = True
        except (AppendError, OSError):
            pass
        return attempt

    def spooled(self, process: int, events: int) -> None:
        """An append while somebody else holds the lock."""
        path = f"{HOME}/locks"
        with contextlib.suppress(OSError):
            names = [n for n in files.names(path) if n.endswith(".lock") and ".writer" not in n]
            self.disk.process = 9
            held = [files.lock(f"{path}/{name}", 0) for name in names]
            self.append(process, events)
            self.disk.process = 9
            for fd in held:
                if fd is not None:
                    files.unlock(fd)

    def kill(self, process: int) -> None:
        """The process ends; its last attempt may or may not have been written, now or from the spool."""
        self.disk.end_process(process)
        self.stores.pop(process, None)
        if self.attempts and not self.attempts[-1].acknowledged:
            self.attempts[-1].later = True

    def fail(self, n: int, what: Any, only: tuple[str, ...] = (), then: int = 0) -> None:
        """From now on the n-th call (of those named) fails with `what`; "kill" ends the process there, "torn" in the middle
        of a write. With `then` the process also ends so many calls later."""
        left, more = [n], [then]

        def plan(name: str) -> Any:
            if left[0] > 0 and only and name not in only:
                return None
            left[0] -= 1
            if left[0] < 0 and more[0]:
                more[0] -= 1
                if not more[0]:
                    self.lied = True
                    return "kill"
            if left[0]:
                return None
            self.last_call = name
            if what in ("short", "torn") and name != "write":
                return "kill" if what == "torn" else None
            return what

        self.disk.plan = plan

    # -- what must hold -----------------------------------------------------------------------------------------------

    def crash(self, images: int, go_on: bool = True) -> None:
        """Recover and check `images` disks that losing power now may leave; then go on from one of them."""
        self.disk.dead, self.disk.plan = False, None
        kept = self.disk
        for i in range(images):
            rng = random.Random(self.rng.getrandbits(64))
            self.system.disk = image = kept.crashed(rng)
            if i % 5 == 1:
                self._crash_while_recovering(image, rng)
            self.check(self.system.disk, verified=i == 0)
            self.states += 1
        if go_on:
            self.disk = self.system.disk if images else kept
            self._forget_what_is_gone()
        self.system.disk = self.disk
        self.stores = {}

    def _crash_while_recovering(self, image: Disk, rng: random.Random) -> None:
        calls = image.calls
        trial = image.crashed(rng)
        self.system.disk = trial
        LogStore(HOME, segment_bytes=SEGMENT).append([], now=NOW)
        total = trial.calls - calls
        at = rng.randrange(1, max(2, total))

        def plan(name: str) -> Any:
            nonlocal at
            at -= 1
            return None if at else rng.choice(("kill", "torn" if name == "write" else "kill"))

        self.system.disk = image
        image.plan = plan
        with contextlib.suppress(Killed):
            LogStore(HOME, segment_bytes=SEGMENT).append([], now=NOW)
        image.dead, image.plan = False, None
        self.system.disk = image.crashed(rng) if rng.random() < 0.7 else image
        self.system.disk.end_process(image.process)

    def check(self, disk: Disk, verified: bool = False) -> None:
        """Recover what is on the disk, read it, compare it with the model; recovering again changes nothing."""
        disk.process = 5
        recovered = LogStore(HOME, segment_bytes=SEGMENT)
        recovered.append([], now=NOW + self.count)
        assert self.lied or not any("DAMAGED" in n for n in recovered.notices), self._say(recovered.notices)
        problems: list[reader.Problem] = []
        events = list(reader.read_events(HOME, problems=problems))
        assert self.lied or not problems, self._say(problems)
        self.compare([e["data"]["text"] for e in events if e["kind"] == "note.recorded"])
        if verified:
            before = disk.tree(HOME)
            LogStore(HOME, segment_bytes=SEGMENT).append([], now=NOW + self.count + 1)
            assert disk.tree(HOME) == before, self._say("recovering a second time changed something")
            report = verify.verify(HOME)
            assert self.lied or report.ok, self._say(report.problems)
        disk.end_process(5)

    def read(self) -> None:
        """What a reader sees right now, with nothing recovered; spooled appends may not be there yet."""
        self.disk.process = 5
        served = [e["data"]["text"] for e in reader.read_events(HOME) if e["kind"] == "note.recorded"]
        self.compare(served, waiting=True)
        self.disk.end_process(5)

    def compare(self, served: list[str], waiting: bool = False) -> None:
        """Whole attempts in order, all acknowledged ones, each once, and nothing else."""
        place = {text: i for i, text in enumerate(served)}
        assert len(place) == len(served), self._say("a text is there twice", served)
        known = 0
        before = later = -1
        for attempt in self.attempts:
            found = [place[t] for t in attempt.texts if t in place]
            known += len(found)
            if attempt.acknowledged and len(found) != len(attempt.texts) and not (waiting and attempt.later and not found):
                raise AssertionError(self._say("an acknowledged append is lost", attempt.texts, served))
            if attempt.durable and len(found) not in (0, len(attempt.texts)):
                raise AssertionError(self._say("half a batch is served", attempt.texts, served))
            if not found:
                continue
            assert found == list(range(found[0], found[0] + len(found))), self._say("an append is not in one piece", served)
            if attempt.later:
                assert self.lied or found[0] > later, self._say("spooled appends changed order", served)
                later = found[0]
            else:
                assert self.lied or found[0] > before, self._say("appends changed order", attempt.texts, served)
                before = found[0]
        assert known == len(served), self._say("something unknown is served", served)

    def _forget_what_is_gone(self) -> None:
        """What a crash took of unacknowledged attempts must not come back."""
        self.system.disk = self.disk
        served = {e["data"]["text"] for e in reader.read_events(HOME) if e["kind"] == "note.recorded"}
        kept = []
        for attempt in self.attempts:
            attempt.texts = [t for t in attempt.texts if t in served]
            attempt.acknowledged = True  # read after recovery: it stays
            if attempt.texts:
                kept.append(attempt)
        self.attempts = kept

    def _say(self, *what: Any) -> str:
        return f"seed {self.seed}, after `{self.last_call}`, {len(self.attempts)} appends: " + "; ".join(map(str, what))


def step(world: World) -> None:
    """One random thing that happens to a world."""
    rng, process = world.rng, world.rng.randrange(2)
    size = rng.choice((5, 20, 20, 300, 900, 2_600))
    events = rng.choice((1, 1, 1, 2, 3, 5))
    roll = rng.random()
    if roll < 0.30:
        world.append(process, events, size=size)
        return
    if roll < 0.40:
        world.append(process, rng.randrange(2, 16), size=size // 3, durable=False)
        return
    if roll < 0.46:
        world.spooled(process, events)
        return
    code = rng.choice((5, 28, "kill", "kill", "torn", "short", "kill"))
    then = rng.randrange(1, 4) if rng.random() < 0.03 else 0
    world.fail(rng.randrange(1, 26), code, rng.choice(((), (), ("write", "fdatasync", "fsync", "ftruncate"))), then)
    try:
        if rng.random() < 0.25:
            world.append(process, rng.randrange(2, 12), size=size // 3, durable=False)
        elif rng.random() < 0.2:
            world.spooled(process, events)
        else:
            world.append(process, events, size=size)
    except Killed:
        world.kill(process)
        world.disk.end_process(9)
    world.disk.plan = None


def run(system: SimulatedOs, seed: int, images: int, steps: int = 12) -> int:
    """One world: a few things happen, the power goes, recovered disks are checked, and on from one of them; twice."""
    world = World(system, seed)
    for _ in range(2):
        for _ in range(world.rng.randrange(1, steps)):
            step(world)
        world.crash(images)
    return world.states
