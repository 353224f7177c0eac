"""Crashes and rot, simulated on a small log: every cut, lost sectors, flipped bits, and every call failing in turn."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import files
from projectmem_logs.envelope import GENESIS
from projectmem_logs.errors import LogError
from projectmem_logs.reader import Problem, read_events
from projectmem_logs.recovery import CLEAN, CORRUPT, TORN, UNTERMINATED, assess
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.tail import read_tail, split
from projectmem_logs.verify import verify

NOW = 1_800_000_000_000_000
BATCHES = [1, 3, 2, 1]


def note(text: str) -> dict[str, Any]:
    """A draft."""
    return {"kind": "note.recorded", "actor": {"origin": "observed"}, "data": {"text": text, "tags": []}}


class Small:
    """A small log, its bytes, and the seq and offset at which each batch ends."""

    def __init__(self, folder: Path) -> None:
        self.home = str(folder / "home")
        init_home(self.home, NOW)
        store = LogStore(self.home)
        self.ends, seq = [(0, 0)], 0
        for n in BATCHES:
            store.append([note(f"event {seq + i} é") for i in range(n)], now=NOW + seq)
            seq += n
            (self.path,) = Path(self.home, "log").glob("*/*.jsonl")
            self.ends.append((seq, self.path.stat().st_size))
        self.stream = self.path.parent.name
        self.data = self.path.read_bytes()
        self.total = seq

    def put(self, data: bytes) -> None:
        """Replace the segment's bytes."""
        self.path.write_bytes(data)

    def judge(self, data: bytes) -> Any:
        """The verdict on these bytes as the stream's end."""
        self.put(data)
        return read_tail(str(self.path), self.stream, 1, len(data))

    def served(self) -> list[int]:
        """The seqs the reader gives out."""
        return [e["seq"] for e in read_events(self.home)]


@pytest.fixture(scope="module", autouse=True)
def _one_machine() -> Iterator[None]:
    """The machine's name must not depend on a read that a test lets fail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("projectmem_logs.home.machine", lambda: "0" * 16)
        yield


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """One log for the whole module; every test puts its own bytes in."""
    return Small(tmp_path_factory.mktemp("crash"))


def test_every_cut_recovers_exactly_the_whole_batches(small: Small) -> None:
    """Cut at each byte: the verdict, and what is served, is the longest prefix of whole batches."""
    for cut in range(len(small.data) + 1):
        seq, end = max(e for e in small.ends if e[1] <= cut or e[1] == cut + 1)  # a lost newline is put back
        data = small.data[:cut]
        tail = small.judge(data) if cut % 11 == 0 else assess(split(data, 0), small.stream, (0, GENESIS), cut)
        state = CLEAN if cut == end else UNTERMINATED if cut == end - 1 else TORN
        assert (tail.state, tail.seq) == (state, seq), cut
        assert tail.cut == (end if state == TORN else cut)
    for cut in range(0, len(small.data), 97):
        seq, _ = max(e for e in small.ends if e[1] <= cut or e[1] == cut + 1)
        small.put(small.data[:cut])
        assert small.served() == list(range(1, seq + 1))


def test_appending_after_any_cut_gives_a_log_that_verifies(small: Small) -> None:
    """Sampled cuts, healed by a real append: whole again, nothing acknowledged lost, the cut recorded."""
    for cut in [*range(0, len(small.data), 331), *(e[1] for e in small.ends), *(e[1] - 1 for e in small.ends if e[1])]:
        small.put(small.data[:cut])
        seq, end = max(e for e in small.ends if e[1] <= cut or e[1] == cut + 1)
        store = LogStore(small.home)
        events = store.append([note("after the crash")], now=NOW + 99)
        torn = cut not in (end, end - 1)
        assert [e["kind"] for e in events] == ["log.recovered"] * torn + ["note.recorded"]
        assert small.served() == list(range(1, seq + 1 + len(events))) and verify(small.home).ok, cut


def test_lost_sectors_of_the_last_batch_are_torn_and_cost_nothing_else(small: Small) -> None:
    """Any subset of 512-byte sectors of the batch that was being written may be missing: always torn, never corrupt."""
    rng = random.Random(7)
    for _ in range(400):
        i = rng.randrange(1, len(small.ends))
        (seq, begin), end = small.ends[i - 1], small.ends[i][1]
        image = bytearray(small.data[:end])
        at = begin
        while at < end:
            stop = min(end, (at // 512 + 1) * 512)
            if rng.random() < 0.5:
                image[at:stop] = bytes(stop - at)
            at = stop
        if rng.random() < 0.3:
            image = image[: rng.randrange(begin, end)]
        tail = small.judge(bytes(image))
        if bytes(image) == small.data[:end]:
            assert tail.state == CLEAN
        elif tail.state != UNTERMINATED and len(image) != begin:
            assert (tail.state, tail.seq, tail.cut) == (TORN, seq, begin)


def test_sectors_of_the_last_batch_that_hold_older_bytes_are_torn(small: Small) -> None:
    """As above, but a sector that was not written holds zeros, noise, or what was on the disk before: pieces of this log."""
    rng = random.Random(13)
    for _ in range(400):
        i = rng.randrange(2, len(small.ends))
        (seq, begin), end = small.ends[i - 1], small.ends[i][1]
        image = bytearray(small.data[:end])
        for at in range(begin, end, 512):
            stop, old = min(end, at + 512), rng.randrange(max(1, begin - 512))
            stale = rng.choice([bytes(512), rng.randbytes(512), bytes(image[old : old + 512]).ljust(512, b"\n")])
            if rng.random() < 0.5:
                image[at:stop] = stale[: stop - at]
        tail = small.judge(bytes(image))
        if bytes(image) != small.data[:end]:
            assert (tail.state, tail.seq, tail.cut) == (TORN, seq, begin)


def test_an_editor_s_change_to_the_last_batches_is_never_cut(tmp_path: Path) -> None:
    """Three acknowledged batches, each changed by one replacement: no line is whole, but they say that they are three."""
    small = Small(tmp_path)
    with LogStore(small.home) as store:
        for n in range(3):
            store.append([note(f"told Anna {n}")], now=NOW + 50 + n)
    changed = small.path.read_bytes().replace(b"Anna", b"Hanna")
    small.put(changed)
    with LogStore(small.home) as store:
        store.append([note("later")], now=NOW + 60)
        assert any("DAMAGED LOG" in n for n in store.notices)
    assert small.path.read_bytes() == changed and not list(Path(small.home, "quarantine").iterdir())
    assert {p.kind for p in verify(small.home).problems} == {"digest"}


def test_no_notice_of_a_cut_claims_what_cannot_be_known(tmp_path: Path) -> None:
    """A change inside the last batch alone looks like a crash: it is kept in quarantine, and people are told to look there."""
    small = Small(tmp_path)
    small.put(small.data.replace(f"event {small.total - 1} ".encode(), b"changed "))
    assert "if something else changed the file" in verify(small.home).problems[0].remedy
    with LogStore(small.home) as store:
        store.append([note("later")], now=NOW + 60)
        assert len(store.notices) == 1 and "if something else changed the file, look there" in store.notices[0]


def test_a_flipped_bit_before_the_last_batch_is_corrupt_and_never_cut(small: Small) -> None:
    """Sampled flips: in front of the last batch corrupt, inside it torn; the reader never serves the damaged record."""
    rng = random.Random(11)
    last = small.ends[-2][1]
    for _ in range(600):
        at = rng.randrange(len(small.data))
        image = bytearray(small.data)
        image[at] ^= 1 << rng.randrange(8)
        tail = small.judge(bytes(image))
        if at >= last:
            assert tail.state in (TORN, UNTERMINATED, CORRUPT) and tail.seq == small.ends[-2][0]
        elif tail.state != CLEAN:  # the tail is clean, and this is verify's to find
            assert tail.state == CORRUPT
        problems: list[Problem] = []
        served = [e["data"]["text"] for e in read_events(small.home, problems=problems)]
        assert problems and not verify(small.home).ok, at
        assert set(served) <= {f"event {i} é" for i in range(small.total)} and len(served) >= small.total - 5


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_any_failing_call_loses_nothing_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Let the n-th call to the disk fail, for every n; what was acknowledged is there, in order, and the log verifies."""
    names = ("write_all", "sync_data", "sync", "sync_dir", "truncate", "open_append", "replace", "remove", "seal_file", "read")
    real = {name: getattr(files, name) for name in names}
    for n in range(1, 60):
        home = str(tmp_path / f"h{n}")
        init_home(home, NOW)
        left = [n]

        def failing(name: str, left: list[int]) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] == 0:
                    if name == "write_all":
                        os.write(args[0], args[1][: len(args[1]) // 3])
                    raise OSError(code, os.strerror(code))
                return real[name](*args, **kwargs)

            return call

        for name in names:
            monkeypatch.setattr(files, name, failing(name, left))
        acknowledged: list[str] = []
        store: LogStore | None = None
        for i in range(6):
            try:
                store = store or LogStore(home, segment_bytes=1500)
                store.append([note(f"{i}a"), note(f"{i}b")], now=NOW + i)
                acknowledged += [f"{i}a", f"{i}b"]
            except (LogError, OSError):
                if i == 3:
                    store = None
        monkeypatch.undo()
        LogStore(home, segment_bytes=1500).append([note("end")], now=NOW + 9)
        served = [e["data"]["text"] for e in read_events(home) if e["kind"] == "note.recorded"]
        assert [t for t in served if t in acknowledged] == acknowledged and verify(home).ok, n
        assert len(os.listdir(os.path.join(home, "log"))) == 1, n
        assert served[-1] == "end" and len(set(served)) == len(served)
        assert len(acknowledged) >= 10
    assert left[0] > 0, "the last rounds should have run without a failure"
