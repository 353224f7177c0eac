"""An import by several processes records what one would record, in the same order, whatever happens to the processes."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.reader import read_events

from projectmem.importers import backfill as importing
from projectmem.importers import worker, workers
from projectmem.importers.backfill import backfill
from projectmem.importers.drafting import Drafts
from projectmem.place import Place
from tests.places import new_place

NOW = 1_796_100_000_000_000
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
BUILD = "Error: cannot find config.json\nnpm ERR! code 1"
CALLS = 600
FAILED = "FAILED b.py::test_x - assert 1 == 2"
ALL = "make: *** [all] Error 2"
LOST = "error: cannot reach host"  # what hides a failure is known by the one on record
COMMANDS = [
    ("npm run build", 1, BUILD), ("npm run build", 0, "built"), ("npm run build | tail -5", 0, BUILD),
    ("npm run build; true", 0, BUILD), ("pytest b.py", 1, FAILED), ("pytest b.py -q | head", 0, FAILED),
    ("git mv a.py b.py", 0, ""), ("git mv b.py src/b.py", 0, ""), ("cat b.py", 0, "x = 1"), ("grep nothing b.py", 1, ""),
    (f"curl -H 'Authorization: Bearer {TOKEN}' x", 7, f"curl: (7) Failed, key {TOKEN}"), ("ls \ud800", 0, "\ud800"),
    ("./sync.sh", 1, LOST), ("./sync.sh | tail -3", 0, LOST),
    ("make", 2, ALL), ("make || true", 0, ALL), ("cd src && make", 2, "no"), ("if then", 2, ""),
]  # fmt: skip


def _place(folder: Path) -> Place:
    found = new_place(folder, NOW)
    key = Path(found.home, "key")
    key.chmod(0o600)
    key.write_text("1" * 64 + "\n")  # the same marks in every one
    return found


def _calls(place: Place, seed: int, count: int = CALLS) -> Iterator[dict[str, Any]]:
    """Commands in any order: failures that others show again, files that are moved, secrets, times that go back."""
    from projectmem.hook.payload import OUTCOME_OPEN, exited

    chance = random.Random(seed)
    for n in range(count):
        command, code, text = chance.choice(COMMANDS)
        call: dict[str, Any] = {
            "harness": "codex",
            "session": f"s{n // 50}",
            "agent": "",
            "model": "",
            "call": f"t{n}",
            "tool": "Bash",
        }
        call |= {"input": {"command": command}, "cwd": place.root, **OUTCOME_OPEN, "turn": -1, "began": 0}
        yield exited({**call, "at": NOW - 10**10 + (n + chance.randrange(-9, 9)) * 10**6}, code, text)


@pytest.fixture
def all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import does not go on by itself while the processes are being started."""
    begin = workers.Workers._begin

    def waits(self: workers.Workers) -> bool:
        for _ in range(30_000):
            if not any(answers.empty() for _, answers in self.all):
                break
            time.sleep(0.01)
        return begin(self)

    monkeypatch.setattr(workers.Workers, "_begin", waits)


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that are drafted here although there are processes for it."""
    found: list[str] = []
    alone = workers.alone

    def counted(drafts: Drafts, place: Place, call: dict[str, Any]) -> Any:
        found.append(call["call"])
        return alone(drafts, place, call)

    monkeypatch.setattr(workers, "alone", counted)
    return found


def _told(place: Place) -> list[str]:
    rows = ([e["kind"], e["at"], e["actor"], e["data"]] for e in read_events(place.home))
    return [json.dumps(row, sort_keys=True).replace(place.root, "/r") for row in rows]


def _imported(place: Place, seed: int, monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    monkeypatch.setattr(workers, "processors", lambda: count)
    counts = backfill(place, now=NOW, sources=[(Path("x"), lambda *_: _calls(place, seed))])
    assert (counts.recorded, counts.calls) == (CALLS, CALLS)
    return _told(place)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("all_there")
def test_several_processes_record_what_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The same events in the same order, from the first call that others draft to the last."""
    monkeypatch.setattr(importing, "ALONE", 1 + seed * 50)
    monkeypatch.setattr(workers, "JOB_CALLS", (1, 7, 64, 1000)[seed])
    anew: list[Any] = []
    make = Drafts.make

    def counted(*given: Any) -> dict[str, Any]:
        anew.append(given)
        return make(*given)

    monkeypatch.setattr(Drafts, "make", counted)
    many = _imported(_place(tmp_path / "many"), seed, monkeypatch, 3)
    assert 0 < len(anew) < CALLS, "some depend on others, most do not"
    assert many == _imported(_place(tmp_path / "one"), seed, monkeypatch, 1)
    assert sum('"outcome": "failed"' in row for row in many) > 100 and TOKEN not in "".join(many)


@pytest.mark.usefixtures("all_there")
def test_a_move_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anew: list[str]) -> None:
    """No draft of a call behind it is made twice, however many are asked for."""
    monkeypatch.setattr(importing, "ALONE", 1)
    monkeypatch.setattr(sys.modules[__name__], "COMMANDS", [("cat b.py", 0, "x = 1"), ("ls", 0, "b.py")])

    def moves(place: Place) -> Iterator[dict[str, Any]]:
        for call in _calls(place, 5):
            if call["call"] == "t300":
                call["input"] = {"command": "git mv a.py b.py"}
            yield call

    monkeypatch.setattr(workers, "processors", lambda: 3)
    place = _place(tmp_path / "repo")
    backfill(place, now=NOW, sources=[(Path("x"), lambda *_: moves(place))])
    assert not anew
    keys = [event["data"]["key"] for event in read_events(place.home) if "cat b.py" in event["data"]["input"]]
    assert len(set(keys)) == 2, "the file has another name from then on"


@pytest.mark.usefixtures("all_there")
@pytest.mark.parametrize(("mended", "before"), [(False, False), (True, False), (False, True)])
def test_only_a_failure_that_stands_makes_a_draft_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anew: list[str], mended: bool, before: bool
) -> None:
    """What was mended hides nothing; what was on record before the import counts too."""
    from projectmem.hook.payload import OUTCOME_OPEN, exited

    place = _place(tmp_path / "repo")

    def call(n: int, command: str, code: int, text: str) -> dict[str, Any]:
        plain = {"harness": "codex", "session": "s", "agent": "", "model": "", "call": f"t{n}", "tool": "Bash", **OUTCOME_OPEN}
        plain |= {"input": {"command": command}, "cwd": place.root, "turn": -1, "began": 0, "at": NOW - 10**9 + n * 10**6}
        return exited(plain, code, text)

    told = [call(0, "./sync.sh", 1, LOST), *([call(1, "./sync.sh", 0, "done")] if mended else [])]
    shown = [call(n, "./sync.sh | tail -3", 0, LOST) for n in range(2, 5)]
    monkeypatch.setattr(importing, "ALONE", 1)
    monkeypatch.setattr(workers, "processors", lambda: 2)
    for calls in [told, shown] if before else [told + shown]:
        backfill(place, now=NOW, sources=[(Path("x"), lambda *_, calls=calls: iter(calls))])
    assert anew == ([] if mended else ["t2", "t3", "t4"])
    outcomes = [event["data"]["outcome"] for event in read_events(place.home)][-3:]
    assert outcomes == (["ok"] * 3 if mended else ["failed"] * 3)


@pytest.mark.parametrize("code", ["raise SystemExit", "import sys; sys.stdout.write('no frame' * 99)", "while True: input()"])
def test_processes_that_do_not_do_their_work_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """They end, or say something else, or nothing: one process does it all."""
    monkeypatch.setattr(importing, "ALONE", 10)
    expected = _imported(_place(tmp_path / "one"), 1, monkeypatch, 1)
    monkeypatch.setattr(workers, "CODE", f"{code}  # {{path}}")
    monkeypatch.setattr(workers, "PATIENCE_S", 1)
    assert _imported(_place(tmp_path / "many"), 1, monkeypatch, 2) == expected


@pytest.mark.usefixtures("all_there")
def test_a_process_that_is_killed_meanwhile_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had not answered is drafted here."""
    monkeypatch.setattr(importing, "ALONE", 10)
    expected = _imported(_place(tmp_path / "one"), 2, monkeypatch, 1)
    give, killed = workers.Workers.give, list[int]()

    def give_and_kill(self: workers.Workers, place: Place, call: dict[str, Any]) -> Iterator[Any]:
        if call["call"] == "t300" and self.all:
            self.all[0][0].kill()
            killed.append(self.all[0][0].pid)
        return give(self, place, call)

    monkeypatch.setattr(workers.Workers, "give", give_and_kill)
    assert _imported(_place(tmp_path / "many"), 2, monkeypatch, 2) == expected and killed


def test_processes_that_cannot_be_started_are_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many processes, an interpreter that is gone, none that is named."""
    assert workers.started(Drafts(), 1) is None
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    assert workers.started(Drafts(), 2) is None
    monkeypatch.setattr(sys, "executable", "")
    assert workers.started(Drafts(), 2) is None


def test_without_threads_nothing_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system gives none."""
    begun: list[Any] = []
    popen = subprocess.Popen

    def noted(*given: Any, **how: Any) -> Any:
        begun.append(popen(*given, **how))
        return begun[-1]

    def none(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(subprocess, "Popen", noted)
    monkeypatch.setattr(threading.Thread, "start", none)
    assert workers.started(Drafts(), 2) is None
    assert [process.returncode is not None for process in begun] == [True]


@pytest.mark.parametrize("printed", [b"\t\t\t\t", b"hello, here is sitecustomize", b"\xff\xff\xff\xff"])
def test_what_was_printed_before_the_frames_is_no_length(printed: bytes) -> None:
    """Nothing is waited for, and no gigabytes are asked for."""
    reads: list[int] = []

    class Told(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            reads.append(size or 0)
            return super().read(size)

    with pytest.raises(ValueError, match="a frame of"):
        worker.read_frame(Told(printed))
    assert reads == [4]


@pytest.mark.usefixtures("all_there")
def test_an_import_that_is_stopped_leaves_no_process_and_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of a file."""
    monkeypatch.setattr(importing, "ALONE", 10)
    monkeypatch.setattr(importing, "BATCH_EVENTS", 50)
    monkeypatch.setattr(workers, "processors", lambda: 2)
    begun: list[Any] = []
    add = workers.Workers.add

    def noted(self: workers.Workers) -> None:
        add(self)
        begun.append(self.all[-1][0])

    monkeypatch.setattr(workers.Workers, "add", noted)
    place = _place(tmp_path / "repo")

    def stops(*_: Any) -> Iterator[dict[str, Any]]:
        yield from _calls(place, 3, 390)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backfill(place, now=NOW, sources=[(Path("x"), stops)])
    assert len(begun) == 2 and all(process.returncode is not None for process in begun)
    kept = len(_told(place))
    assert 0 < kept < 390 and kept % 50 == 0
    counts = backfill(place, now=NOW, sources=[(Path("x"), lambda *_: _calls(place, 3))])
    assert (counts.known, counts.recorded) == (kept, CALLS - kept)


@pytest.mark.usefixtures("all_there")
def test_no_more_is_given_out_than_is_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many bytes of calls that are not answered, of all processes together, however slow these are."""
    monkeypatch.setattr(workers, "AHEAD_BYTES", 100_000)
    monkeypatch.setattr(workers, "JOB_BYTES", 40_000)
    most: list[int] = []
    send = workers.Workers._send

    def noted(self: workers.Workers) -> Iterator[Any]:
        yield from send(self)
        most.append(self.ahead)
        assert self.ahead == sum(size for _, _, size in self.waiting)

    monkeypatch.setattr(workers.Workers, "_send", noted)

    def long(place: Place) -> Iterator[dict[str, Any]]:
        for call in _calls(place, 6):
            yield {**call, "input": {"command": f"echo {'x' * 3000}"}}

    place = _place(tmp_path / "repo")
    monkeypatch.setattr(importing, "ALONE", 1)
    monkeypatch.setattr(workers, "processors", lambda: 2)
    backfill(place, now=NOW, sources=[(Path("x"), lambda *_: long(place))])
    assert 60_000 < max(most) <= 100_000 and len(_told(place)) == CALLS


def test_processes_are_started_with_the_first_new_call_of_files_that_are_worth_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left to read by then counts; where all is known, or little, none is started."""
    asked: list[str] = []
    monkeypatch.setattr(workers, "started", lambda drafts: asked.append("x"))
    monkeypatch.setattr(importing, "HELPED_BYTES", 100)
    place = _place(tmp_path / "repo")
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"x" * 1000)
    new.write_bytes(b"x" * 99)
    calls = list(_calls(place, 7, 20))

    def read(path: Path, _: Any) -> Iterator[dict[str, Any]]:
        yield from ({**call} for call in (calls[:10] if path == old else calls))

    backfill(place, now=NOW, sources=[(old, read)])
    assert len(asked) == 1
    backfill(place, now=NOW, sources=[(old, read)])
    backfill(place, now=NOW, sources=[(old, read), (new, read)])
    assert len(asked) == 1 and len(_told(place)) == 20


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_process_ends_with_who_asked_and_not_by_ctrl_c() -> None:
    """It leaves Ctrl-C to the one that asked it, and is gone when that is."""
    words = [sys.executable, "-c", workers.CODE.format(path=sys.path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert worker.read_frame(process.stdout) == worker.HELLO
        worker.write_frame(process.stdin, [])
        assert worker.read_frame(process.stdout) == []
        process.send_signal(signal.SIGINT)
        worker.write_frame(process.stdin, [])
        assert worker.read_frame(process.stdout) == []
        process.stdin.close()
        for _ in range(3000):
            if process.poll() is not None:
                break
            time.sleep(0.1)
        assert process.returncode == 0
