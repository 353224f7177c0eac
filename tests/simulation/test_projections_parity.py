"""Rebuilt equals live: on every golden log, on every damaged one, and after random histories with crashes between any two steps.

`PROJECTMEM_SEED` sets where the seeds of the histories begin, `PROJECTMEM_HISTORIES` how many there are.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import files
from projectmem_logs.store import LogStore, init_home
from projectmem_projections import embed, generations, parity, recollection, summaries, vectors
from projectmem_projections.generations import Summaries
from projectmem_projections.loading import load_log
from projectmem_projections.overlay import connect
from projectmem_projections.snapshot import Snapshot

sys.path.insert(0, str(Path(__file__).resolve().parent))  # tests/ is no package: its shared modules lie beside it

from projection_drafts import NOW, action, event, part, write

REPO = Path(__file__).resolve().parents[2]
GOLDEN = sorted(p.name for p in (REPO / "logs" / "golden").iterdir() if (p / "log").is_dir())
DAMAGED = sorted((REPO / "logs" / "golden" / "damaged").glob("*.segment"))
SEED = int(os.environ.get("PROJECTMEM_SEED", "1"))
HISTORIES = int(os.environ.get("PROJECTMEM_HISTORIES", "6"))
STEPS = 14


def live(home: str) -> bytes:
    """What a reader is served now."""
    with generations.open_current(home) as served:
        return served.canonical_dump()


def anew(home: str) -> bytes:
    """What the log gives, folded in memory from its start."""
    with connect() as con:
        load_log(con, home)
        return Summaries(con, []).canonical_dump()


def assert_parity(home: str) -> None:
    """Byte for byte, and by the comparison that `doctor` makes."""
    assert live(home) == anew(home)
    assert [found for found in parity.compare(home) if found.differs] == []


def cut(home: Path, share: float) -> Callable[[], None]:
    """Cut the last segment of each stream at a line's end; the answer puts it back."""
    whole = {}
    for stream in (home / "log").iterdir():
        for segment in sorted(stream.glob("*.jsonl"))[-1:]:
            whole[segment] = segment.read_bytes()
            segment.chmod(0o600)
            lines = whole[segment].splitlines(keepends=True)
            segment.write_bytes(b"".join(lines[: int(len(lines) * share)]))
    return lambda: [path.write_bytes(data) for path, data in whole.items()] and None


@pytest.mark.parametrize("version", GOLDEN)
def test_every_golden_log_gives_the_same_however_it_came(version: str, tmp_path: Path) -> None:
    """Built whole; folded over a generation of its first third; and rebuilt after that."""
    home = tmp_path / "home"
    shutil.copytree(REPO / "logs" / "golden" / version, home)
    restore = cut(home, 0.34)
    live(str(home))
    recollection.refresh(str(home), None)
    restore()
    grown = live(str(home))
    assert_parity(str(home))
    generations.build(str(home))
    assert live(str(home)) == grown
    with Snapshot(str(home / "projections" / "gate.sqlite")) as snapshot:
        snapshot.catch_up(str(home), 1 << 40)
    assert_parity(str(home))
    assert summaries.stats(str(home), now=NOW)["events"] >= 8


@pytest.mark.parametrize("segment", DAMAGED, ids=lambda p: p.stem)
def test_a_damaged_log_gives_the_same_however_it_is_read(segment: Path, tmp_path: Path) -> None:
    """What can be read of it stands in the summaries once, and what cannot is told; a rebuild changes nothing."""
    home = tmp_path / "home"
    init_home(str(home), NOW)
    stream = json.loads((REPO / "logs/golden/damaged/whole.segment").read_bytes().splitlines()[0])["stream"]
    (home / "log" / stream).mkdir(parents=True)
    shutil.copy(segment, home / "log" / stream / f"{1:020}.jsonl")
    first = live(str(home))
    assert first == anew(str(home))
    generations.build(str(home))
    assert live(str(home)) == first


# --- random histories ----------------------------------------------------------------------------------------------------


class Crash(BaseException):
    """The process is gone: nothing that handles errors may see it, and nothing that cleans up may do anything."""


class Disk:
    """Lets the n-th call to the disk be the last of its process."""

    NAMES = ("sync", "sync_dir", "replace", "remove", "lock", "unlock")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.dead, self.error, self.held = -1, False, None, []  # type: ignore[var-annotated]
        self.real = {name: getattr(files, name) for name in self.NAMES}
        for name in self.NAMES:
            monkeypatch.setattr(files, name, self._counted(name))

    def _counted(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            if self.dead:
                raise Crash
            if self.left == 0:
                if self.error is not None:
                    raise self.error
                self.dead = True
                raise Crash
            self.left -= 1
            out = self.real[name](*args, **more)
            if name == "lock" and out is not None:
                self.held.append(out)
            elif name == "unlock":
                self.held.remove(args[0])
            return out

        return call

    def end_process(self) -> None:
        """The system lets go of what a dead process held."""
        for lock in self.held:
            self.real["unlock"](lock)
        self.held, self.left, self.dead, self.error = [], -1, False, None


class History:
    """A log that grows at random, with two writers, and everything that is derived from it."""

    def __init__(self, home: str, other: str, disk: Disk, seed: int) -> None:
        self.home, self.other, self.disk, self.rng = home, other, disk, random.Random(seed)
        init_home(home, NOW)
        init_home(other, NOW)
        self.ids: list[str] = []
        self.clock = 0

    def draft(self) -> dict[str, Any]:
        """An event of any kind that a projection reads; its time may lie before that of others."""
        rng, at = self.rng, self.clock + self.rng.randint(-50, 50)
        self.clock += 1
        n, session = rng.randint(1, 5), f"s{rng.randint(1, 3)}"
        control = {"record": rng.choice(self.ids or [""]), "key": f"{n:032x}", "until": NOW + at, "reason": "r", "by_event": ""}
        kinds: list[Callable[[], dict[str, Any]]] = [
            lambda: action(n, rng.choice(["ok", "failed", "failed"]), at, session),
            lambda: action(n, "failed", at, session, parts=[part(n), part(n + 1)], failed_key=f"{n + 1:032x}"),
            lambda: event("note.recorded", {"text": f"note {at}", "tags": []}, at, session),
            lambda: event(
                "decision.recorded", {"title": f"d{at}", "text": "", "supersedes": rng.choice(["", *self.ids])}, at, session
            ),
            lambda: event("issue.opened", {"issue": f"i{n}", "title": "t", "paths": []}, at, session),
            lambda: event("issue.closed", {"issue": f"i{n}", "resolution": "done"}, at, session),
            lambda: event("fix.recorded", {"issue": f"i{n}", "text": "f", "verifier": "none"}, at, session),
            lambda: event(f"record.{rng.choice(['snoozed', 'disputed', 'pinned', 'superseded'])}", control, at, session, "human"),
            lambda: event("label.set", {"label": "fragile", "target": "path", "pattern": "x", "effect": "warn"}, at, session),
            lambda: event("feedback.given", {"target": rng.choice(self.ids or ["x"]), "useful": True, "note": ""}, at, session),
            lambda: event("note.recorded", {"text": f"n{at}", "held_for": rng.choice(["itself", *self.ids])}, at, session),
            lambda: event("recall.decided", {"items": [{"id": rng.choice(self.ids or ["x"]), "type": "note"}]}, at, session),
            lambda: action(n, "ok", at, session, verifier="pytest"),
            lambda: event("session.started", {"source": "startup", "cwd": "."}, at, session),
        ]
        return rng.choice(kinds)()

    def append(self) -> None:
        self.ids += write(self.home, *(self.draft() for _ in range(self.rng.randint(1, 5))))

    def arrive(self) -> None:
        """The other machine's stream, as far as it is: its newest events come late."""
        write(self.other, *(self.draft() for _ in range(self.rng.randint(1, 4))))
        (stream,) = os.listdir(os.path.join(self.other, "log"))
        shutil.copytree(os.path.join(self.other, "log", stream), os.path.join(self.home, "log", stream), dirs_exist_ok=True)

    def erase(self) -> None:
        gone = self.rng.sample(self.ids, min(len(self.ids), 2))
        write(self.home, event("erasure.requested", {"selector": "", "ids": gone, "reason": ""}, self.clock, origin="human"))

    def build(self) -> None:
        generations.build(self.home)

    def recall(self) -> None:
        recollection.refresh(self.home, None)

    def catch_up(self) -> None:
        with Snapshot(os.path.join(self.home, "projections", "gate.sqlite")) as snapshot:
            snapshot.catch_up(self.home, self.rng.choice([1, 3, 1 << 40]))

    def read(self) -> None:
        with generations.open_current(self.home, build_when_behind=self.rng.choice([0, 3, 4000])):
            pass

    def step(self) -> None:
        """One of the above; now and then its process dies in the middle, and what it was writing is left as it is or torn."""
        work = self.rng.choice(
            [self.append, self.append, self.append, self.arrive, self.erase, self.build, self.recall, self.read]
        )
        if work in (self.build, self.recall, self.read) and self.rng.random() < 0.6:
            self.disk.left = self.rng.randint(0, 9)
        try:
            work()
        except Crash:
            self.tear()
        finally:
            self.disk.end_process()
        if self.rng.random() < 0.4:
            self.catch_up()

    def tear(self) -> None:
        """Files that nobody points to yet may hold anything after a crash."""
        current = Path(self.home, "projections", "duckdb", "CURRENT")
        pointed = json.loads(current.read_bytes())["file"] if current.exists() else ""
        for path in Path(self.home, "projections", "duckdb").glob("gen-*"):
            if path.name > pointed and self.rng.random() < 0.7:
                os.truncate(path, self.rng.randint(0, path.stat().st_size))


@pytest.mark.parametrize("seed", range(SEED, SEED + HISTORIES))
def test_after_any_history_with_crashes_live_equals_rebuilt(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    history = History(str(tmp_path / "home"), str(tmp_path / "other"), disk, seed)
    for n in range(STEPS):
        history.step()
        assert live(history.home) == anew(history.home), f"seed {seed}, step {n}"
    history.catch_up()
    assert_parity(history.home)
    history.build()
    assert_parity(history.home)


def test_the_histories_do_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call of a build can be its last, and the ones before it left something to clear away."""
    disk = Disk(monkeypatch)
    home = str(tmp_path / "home")
    init_home(home, NOW)
    write(home, action(1, "failed", 1))
    crashed = 0
    for n in range(12):
        disk.left = n
        try:
            generations.build(home)
        except Crash:
            crashed += 1
        finally:
            disk.end_process()
        assert live(home) == anew(home)
    assert 3 <= crashed < 12


# --- a full disk ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", range(6))
def test_a_disk_that_is_full_at_any_step_costs_no_answer(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read from the old generation or from the log, and said."""
    disk = Disk(monkeypatch)
    home = str(tmp_path / "home")
    init_home(home, NOW)
    write(home, action(1, "failed", 1))
    disk.left, disk.error = call, OSError(28, "No space left on device")
    notices: list[str] = []
    assert len(summaries.failures(home, now=NOW, notices=notices)) == 1
    assert notices == [] or "No space left" in notices[0]
    assert notices or disk.left > 0, "what could not be written must be told"
    disk.end_process()
    assert_parity(home)


def test_a_file_system_that_takes_no_more_bytes_costs_no_answer(tmp_path: Path) -> None:
    """The database itself cannot be written: the limit on the size of a file is below what it needs."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    write(home, action(1, "failed", 1))
    program = (
        "import resource, json\n"
        "from projectmem_projections import summaries\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        f"notices = []\nrows = summaries.failures({home!r}, now={NOW}, notices=notices)\n"
        "print(json.dumps([len(rows), notices]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, notices = json.loads(done.stdout)
    assert count == 1 and "read anew" in " ".join(notices)
    assert not list(Path(home, "projections", "duckdb").glob("gen-*"))
    assert_parity(home)


# --- the comparison itself -----------------------------------------------------------------------------------------------


def test_the_comparison_names_what_differs(tmp_path: Path) -> None:
    """Each projection falsified in turn behind its own back."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    write(home, action(1, "failed", 1), action(2, "ok", 2), event("note.recorded", {"text": "n", "tags": []}, 3))
    path = generations.build(home)
    recollection.refresh(home, None)
    with Snapshot(os.path.join(home, "projections", "gate.sqlite")) as snapshot:
        snapshot.catch_up(home)
    assert [found.differs for found in parity.compare(home)] == [()] * 3
    with connect(path) as con:
        con.execute("UPDATE actions SET outcome = 'ok'")
    pointer = Path(home, "projections", "duckdb", "CURRENT")
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "bytes": os.path.getsize(path)}))
    with Snapshot(os.path.join(home, "projections", "gate.sqlite")) as snapshot:
        snapshot._db.execute("DELETE FROM touch")
        snapshot._db.execute("DELETE FROM history")
    (corpus,) = Path(home, "projections", "recall").glob("gen-*/corpus.sqlite")
    corpus.write_bytes(corpus.read_bytes().replace(b'"text": "n"', b'"text": "m"').replace(b'"text":"n"', b'"text":"m"'))
    found = {one.name: one.differs for one in parity.compare(home)}
    assert "actions" in found["summaries"] and "models" in found["summaries"] and "records" not in found["summaries"]
    assert found["snapshot"] and found["recall"]


def test_vectors_that_are_missing_or_of_what_is_gone_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    home, space = str(tmp_path), embed.default()
    init_home(home, NOW)
    write(home, *(event("note.recorded", {"text": f"the {word} is slow", "tags": []}, 1) for word in ("build", "test", "日本")))
    recollection.refresh(home, space)
    assert parity.compare(home)[-1] == parity.Parity("recall")
    where = recollection.current(home) or ""
    manifest = json.loads(Path(where, "manifest.json").read_text())
    ids = json.loads(Path(where, "ids.json").read_text())
    encoded, _ = space.encode(["the build is slow", "something else"])
    vectors.write(where, [ids[0], "ghost"], encoded, space, manifest["position"])
    missing = f"{len(ids) - 1} vectors are missing"
    assert parity.compare(home)[-1].differs == (missing, "1 vectors are of what is no longer there")
    Path(where, "index.faiss").write_bytes(b"noise")
    assert "does not match" in parity.compare(home)[-1].differs[0]


def test_what_was_not_built_is_no_difference(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    init_home(home, NOW)
    LogStore(home)
    assert [(one.name, one.differs) for one in parity.compare(home)] == [("summaries", ()), ("snapshot", ()), ("recall", ())]
    assert parity.log_bytes(home) == 0
