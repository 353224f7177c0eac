"""An erasure cut short at every call to the disk, before and after it, and again while it is taken up: it ends the same."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import projectmem_projections.forgetting as projections
import pytest
from projectmem_logs import erasing, files
from projectmem_logs.digest import sha256_hex
from projectmem_logs.errors import LogError
from projectmem_logs.home import machine
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

from projectmem import forget, writing
from projectmem.place import Place

SECRET = "Kilimanjaro expedition"
NOW = 1_800_000_000_000_000
# What of the disk's work may be the last thing that happens.
STEPS = ("open_append", "write_all", "sync", "sync_data", "sync_dir", "truncate", "replace", "remove", "seal_file")
CALLS_MAX = 400


class Crash(BaseException):
    """The process is gone: nothing that handles errors may see it."""


class Disk:
    """Counts the calls to the disk and ends the process before or after the n-th, or lets it fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.stop, self.after, self.error = 0, 0, False, False
        for name in STEPS:
            monkeypatch.setattr(files, name, self._counted(getattr(files, name)))
        monkeypatch.setattr(projections, "rebuild_snapshot", self._counted(projections.rebuild_snapshot))
        monkeypatch.setattr(projections, "_wipe_notes", self._counted(projections._wipe_notes))
        monkeypatch.setattr(shutil, "rmtree", self._counted(shutil.rmtree))

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            self.count += 1
            due = self.count == self.stop
            if due and not self.after:
                raise OSError(5, "the disk says no") if self.error else Crash
            out = real(*args, **more)
            if due:
                raise Crash
            return out

        return call

    def arm(self, stop: int, *, after: bool = False, error: bool = False) -> None:
        """Let it happen at the `stop`-th call from now on; 0 never."""
        self.count, self.stop, self.after, self.error = 0, stop, after, error


def draft(text: str, causes: list[str] | None = None) -> dict[str, Any]:
    """A note."""
    return {"kind": "note.recorded", "actor": {"origin": "human"}, "causes": causes or [], "data": {"text": text, "tags": []}}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that speaks of the text everywhere."""
    return make_template(tmp_path_factory.mktemp("template") / "home")


def make_template(home: Path) -> Path:
    """A log of several segments, two of them with the text, one record derived, and the text everywhere else."""
    init_home(str(home), NOW)
    here = Place(str(home.parent), str(home))
    first = writing.append(here, [draft(f"one {SECRET}"), draft("two")], NOW)
    store = LogStore(str(home), segment_bytes=2_500)
    store.append([draft("derived", [first[0]["id"]]), draft("three")], now=NOW + 1)
    for i in range(4):
        store.append([draft(f"filler {i}")], now=NOW + 2 + i)
    store.append([draft("four"), draft(f"five {SECRET}")], now=NOW + 9)
    writing.append(here, [draft("six")], NOW + 10)
    actor = {"agent": "", "harness": "", "model": "", "origin": "human", "session": ""}
    pair = [{**draft(t), "actor": actor, "at": 5} for t in (f"waits {SECRET}", "waits too")]
    body = json.dumps(
        {"drafts": pair, "ids": [f"01a22cce-9a3c-7cdd-9467-8baa71c666e{i}" for i in (0, 1)], "now": 5},
        sort_keys=True,
        separators=(",", ":"),
    ).encode()
    (home / "spool" / f"{'f' * 16}-{5:020d}-00.spool").write_bytes(sha256_hex(body).encode() + b" " + body + b"\n")
    (home / "quarantine" / "torn").write_text(f"... {SECRET} ...")
    (home / "hook.log").write_text(f"a {SECRET}\nb\n")
    for name in (
        "duckdb/gen-00000001.duckdb",
        "duckdb/gen-00000002.duckdb",
        "duckdb/CURRENT",
        "recall/gen-00000001/corpus.sqlite",
    ):
        path = home / "projections" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    assert len(list(home.glob("log/*/*.jsonl"))) >= 3
    return home


class World:
    """One copy of the template, of which the log does not notice that it is one."""

    def __init__(self, template: Path, folder: Path) -> None:
        self.home = folder / "home"
        shutil.copytree(template, self.home)
        writer = self.home / "writers" / f"{machine()}.json"
        known = json.loads(writer.read_text())
        writer.write_text(json.dumps({**known, "inode": (self.home / "log").stat().st_ino}))
        self.place = Place(str(folder), str(self.home))

    def forget(self) -> None:
        """What a person does: ask; or, where it was cut short, take it up."""
        if forget.resume(self.place, now=NOW + 20) is None and SECRET in self.left():
            wanted = forget.selector(self.place, text=SECRET)
            forget.forget(self.place, wanted, reason="test", now=NOW + 20, origin="human")

    def left(self) -> dict[str, list[str]]:
        """{text: files that hold it}, {} when none does."""
        found = [str(p.relative_to(self.home)) for p in self.home.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]
        return {SECRET: sorted(found)} if found else {}

    def state(self) -> Any:
        """What the end must be equal in: every record, what is spooled and quarantined, segments and their modes."""
        events = {
            e["id"]: e.get("data", {}).get("text", "gone") for e in read_events(str(self.home)) if e["kind"] == "note.recorded"
        }
        requests = [e["data"]["ids"] for e in read_events(str(self.home)) if e["kind"] == "erasure.requested"]
        others = {
            str(p.relative_to(self.home)): p.read_bytes()
            for part in ("spool", "quarantine")
            for p in (self.home / part).iterdir()
        }
        modes = {str(p.relative_to(self.home)): p.stat().st_mode for p in self.home.glob("log/*/*")}
        names = sorted(str(p.relative_to(self.home)) for p in self.home.rglob("*") if "log/" not in str(p) or "new" in p.name)
        return events, sorted({id for ids in requests for id in ids}), others, modes, [n for n in names if "journal" not in n]


@pytest.fixture
def disk() -> Iterator[Disk]:
    """The disk, which can be stopped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erasing, "STALE_S", -1)
        yield Disk(patch)


def uncut(template: Path, folder: Path, disk: Disk) -> tuple[Any, int]:
    """(the end of an erasure that nothing cut short, how many calls to the disk it took)."""
    world = World(template, folder)
    disk.arm(0)
    world.forget()
    assert world.left() == {} and verify(str(world.home)).ok and not forget.pending(str(world.home))
    return world.state(), disk.count


@pytest.mark.parametrize("how", ["before", "after", "error"])
def test_cut_short_at_any_call_it_ends_the_same(template: Path, tmp_path: Path, disk: Disk, how: str) -> None:
    """Every call in turn. Once the control record is synced, nothing of it is served, even before the lines are rewritten."""
    end, calls = uncut(template, tmp_path / "uncut", disk)
    assert 20 < calls < CALLS_MAX
    for n in range(1, calls + 1):
        world = World(template, tmp_path / f"{n}")
        disk.arm(n, after=how == "after", error=how == "error")
        try:
            world.forget()
        except (Crash, OSError, LogError):
            pass
        disk.arm(0)
        assert not [p for p in verify(str(world.home)).problems if p.kind != "foreign-file"], n
        world.forget()
        assert world.left() == {}, n
        assert world.state() == end, n
        assert verify(str(world.home)).ok and not forget.pending(str(world.home)), n
        shutil.rmtree(world.home)


def test_cut_short_again_and_again_it_ends_the_same(template: Path, tmp_path: Path, disk: Disk) -> None:
    """Crashes while taking up, several in a row; the seed is in the assertion."""
    end, calls = uncut(template, tmp_path / "uncut", disk)
    for seed in range(40):
        rng = random.Random(seed)
        world = World(template, tmp_path / f"{seed}")
        for _ in range(rng.randrange(2, 6)):
            disk.arm(rng.randrange(1, calls), after=rng.random() < 0.5, error=rng.random() < 0.2)
            try:
                world.forget()
            except (Crash, OSError, LogError):
                pass
        disk.arm(0)
        world.forget()
        assert world.left() == {} and world.state() == end and verify(str(world.home)).ok, f"seed {seed}"
        shutil.rmtree(world.home)


def test_an_event_that_comes_in_meanwhile_is_forgotten_too(
    template: Path, tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook writes the text between the look and the control record."""
    world = World(template, tmp_path)
    real, done = forget._request, []

    def request(*args: Any) -> None:
        if not done:
            done.append(writing.append(world.place, [draft(f"late {SECRET}")], NOW + 15))
        real(*args)

    monkeypatch.setattr(forget, "_request", request)
    world.forget()
    assert world.left() == {} and done[0][0]["id"] in world.state()[1] and verify(str(world.home)).ok
