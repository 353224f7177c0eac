"""The log on a simulated disk: a state machine against a list, every call failing in turn, and thousands of crashes.

`PROJECTMEM_CRASHES` sets how many crash states are tried (`make nightly`: a million), `PROJECTMEM_SEED` where the seeds begin.
A failure names its seed: `PROJECTMEM_SEED=<seed> PROJECTMEM_CRASHES=1` runs just that one.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

sys.path.insert(0, str(Path(__file__).resolve().parent))  # tests/ is no package: its shared modules lie beside it

from log_world import NOW, SEGMENT, World, run, simulated
from simulated_disk import Disk, Killed, SimulatedOs

CRASHES = int(os.environ.get("PROJECTMEM_CRASHES", "12000"))
SEED = int(os.environ.get("PROJECTMEM_SEED", "1"))
IMAGES = 12
EIO, ENOSPC = 5, 28


@pytest.fixture
def system() -> Iterator[SimulatedOs]:
    """The log's modules on a disk in memory."""
    with simulated(Disk(random.Random(0))) as found:
        yield found


@pytest.mark.slow
@pytest.mark.timeout(max(300, CRASHES // 100))
def test_nothing_acknowledged_is_lost_in_any_crash(system: SimulatedOs) -> None:
    """Random appends, imports, rotations, spooled events, failing calls and killed processes, then a loss of power."""
    states, seed = 0, SEED
    while states < CRASHES:
        try:
            states += run(system, seed, IMAGES)
        except AssertionError:
            raise
        except Exception as e:
            raise AssertionError(f"seed {seed}: {e!r}") from e
        seed += 1
    print(f"{states:,} crash states recovered and checked, seeds {SEED} to {seed - 1}")
    assert states >= CRASHES


@pytest.mark.parametrize("what", [EIO, ENOSPC, "kill", "torn", "short"])
def test_every_call_failing_in_turn_loses_nothing(system: SimulatedOs, what: object) -> None:
    """The n-th call to the disk of a run fails, or ends the process, or falls short, for every n; then the power goes."""
    for n in range(1, 400):
        world = World(system, n)
        world.append(0, 2, size=300)
        world.fail(n, what)
        done = False
        for i, go in enumerate((
            lambda w: w.append(0, 3, size=900), lambda w: w.append(1, 1, size=2_600), lambda w: w.spooled(0, 2),
            lambda w: w.append(1, 8, size=400, durable=False), lambda w: w.append(0, 1),
        )):  # fmt: skip
            try:
                go(world)
            except Killed:
                world.kill(i % 2)
                world.disk.end_process(1 - i % 2)
                world.disk.end_process(9)
                world.stores = {}
        done = not world.last_call
        world.crash(3)
        world.append(0, 1)
        assert world.attempts[-1].acknowledged, f"call {n} failing with {what} left a log that cannot be written"
        world.crash(1)
        if done:
            break
    assert 40 < n < 399, f"the run makes {n} calls"


def test_a_failed_sync_is_not_believed_afterwards(system: SimulatedOs) -> None:
    """The disk says no and shows the bytes all the same: they are cut, and what follows does not stand on them."""
    world = World(system, 1)
    world.append(0, 1)
    world.fail(1, EIO, ("fdatasync",))
    assert not world.append(0, 2).acknowledged
    world.disk.plan = None
    assert world.append(1, 1).acknowledged
    world.crash(20)


class LogMachine(RuleBasedStateMachine):
    """Hypothesis chooses what happens; the list of attempts in World is the model."""

    def __init__(self) -> None:
        super().__init__()
        self.context = simulated(Disk(random.Random(0)))
        self.world = World(self.context.__enter__(), 0)

    def teardown(self) -> None:
        """Give the modules their real disk back."""
        self.world.crash(2)
        self.context.__exit__(None, None, None)

    @rule(process=st.integers(0, 1), events=st.integers(1, 4), size=st.sampled_from([5, 300, 900]))
    def append(self, process: int, events: int, size: int) -> None:
        """A durable batch is acknowledged when nothing is wrong."""
        assert self.world.append(process, events, size=size).acknowledged

    @rule(process=st.integers(0, 1), events=st.integers(2, 12))
    def batch_append(self, process: int, events: int) -> None:
        """An import of several batches."""
        assert self.world.append(process, events, size=400, durable=False).acknowledged

    @rule(process=st.integers(0, 1))
    def rotate(self, process: int) -> None:
        """Fill the segment, so that the next append begins another."""
        assert self.world.append(process, 1, size=SEGMENT).acknowledged

    @rule(process=st.integers(0, 1), events=st.integers(1, 3))
    def spool(self, process: int, events: int) -> None:
        """Somebody else holds the lock."""
        self.world.spooled(process, events)

    @rule(
        process=st.integers(0, 1), n=st.integers(1, 25), what=st.sampled_from([EIO, ENOSPC, "kill", "torn", "short"]),
        durable=st.booleans(), events=st.integers(1, 6),
    )  # fmt: skip
    def fail(self, process: int, n: int, what: object, durable: bool, events: int) -> None:
        """The n-th call of an append fails, or is the process's last."""
        self.world.fail(n, what)
        try:
            self.world.append(process, events, size=400, durable=durable)
        except Killed:
            self.world.kill(process)
        self.world.disk.plan = None

    @rule(process=st.integers(0, 1))
    def recover(self, process: int) -> None:
        """A new process heals what it finds, without anything to say of its own."""
        self.world.stores.pop(process, None)
        self.world.disk.end_process(process)
        self.world.store(process).append([], now=NOW)

    @rule(images=st.integers(1, 4), seed=st.integers(0, 2**32))
    def crash(self, images: int, seed: int) -> None:
        """The power goes: what it may leave is recovered and checked; the run goes on from one of these disks."""
        self.world.rng = random.Random(seed)
        self.world.crash(images)

    @invariant()
    def a_reader_sees_whole_attempts(self) -> None:
        """Reading never needs a recovery first: whole attempts in order, whatever is just unfinished."""
        self.world.read()


LogMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)
TestLogMachine = LogMachine.TestCase


def _lose_what_was_never_synced(system: SimulatedOs) -> None:
    for seed in range(20):
        world = World(system, seed)
        for _ in range(4):
            world.append(0, 2, size=700)
        world.crash(5)


def test_the_simulated_disk_forgets(system: SimulatedOs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation can fail: without syncs acknowledged appends are lost, and it says so."""
    monkeypatch.setattr("projectmem_logs.files.sync_data", lambda fd: None)
    with pytest.raises(AssertionError, match=r"lost|DAMAGED|Problem"):
        _lose_what_was_never_synced(system)
