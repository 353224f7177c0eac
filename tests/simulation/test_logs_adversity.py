"""Real processes and real files under adverse conditions: full disk, no permission, a lost lock, a stopped holder, clocks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import files
from projectmem_logs.errors import AppendError, SpooledError
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, limits and permissions of POSIX")
NOW = 1_800_000_000_000_000
HOUR = 3_600_000_000
WAIT_MS = PATIENCE * 1000
NOTE = {"kind": "note.recorded", "actor": {"origin": "observed"}}


def note(text: str, **more: Any) -> dict[str, Any]:
    """A draft."""
    return {**NOTE, "data": {"text": text, "tags": []}, **more}


def texts(home: str) -> list[str]:
    """The texts the log serves."""
    return [e["data"]["text"] for e in read_events(home) if e["kind"] == "note.recorded"]


@pytest.fixture
def home(tmp_path: Path) -> str:
    """An empty log."""
    path = str(tmp_path / "home")
    init_home(path, NOW)
    return path


def python(code: str, *args: str, **more: Any) -> subprocess.Popen[str]:
    """A process running `code`."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *args], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    )


FULL = """
import resource, sys
from projectmem_logs.errors import LogError
from projectmem_logs.store import LogStore
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
store = LogStore(sys.argv[1])
for i in range(60):
    draft = {"kind": "note.recorded", "actor": {"origin": "observed"}, "data": {"text": str(i), "tags": []}}
    try:
        store.append([draft, draft] if i % 5 == 0 else [draft], now=1800000000000000 + i)
        print("kept", i)
    except LogError as e:
        print("lost", i, "Free disk space" in str(e))
"""


def test_a_full_disk_keeps_what_was_acknowledged_and_says_so(home: str) -> None:
    """RLIMIT_FSIZE stands for a full disk: appends fail with a clear message, leave nothing half done, and go on later."""
    out, err = python(FULL, home).communicate(timeout=PATIENCE)
    assert not err, err
    kept = [line.split()[1] for line in out.splitlines() if line.startswith("kept")]
    lost = [line for line in out.splitlines() if line.startswith("lost")]
    assert len(kept) > 15 and len(lost) > 10 and all(line.endswith("True") for line in lost)
    assert sorted(set(texts(home)), key=int) == kept and verify(home).ok
    assert LogStore(home).append([note("space again")], now=NOW)[-1]["data"]["text"] == "space again"
    assert verify(home).ok


DENIED = """
import os, sys
from projectmem_logs.errors import LogError
from projectmem_logs.store import LogStore
import projectmem_logs.spool
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
draft = {"kind": "note.recorded", "actor": {"origin": "observed"}, "data": {"text": "x", "tags": []}}
try:
    LogStore(sys.argv[1], project="p").append([draft], now=1800000000000000)
    print("kept")
except LogError as e:
    print(type(e).__name__, e)
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that another user can enter."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    for p in [path, *path.rglob("*")]:
        if p.is_dir():
            p.chmod(0o755)
    shutil.rmtree(path)


def test_a_read_only_folder_is_one_clear_error(public: Path) -> None:
    """No permission to write, in the log or in all of it: AppendError with the reason, and the log is as it was."""
    home = str(public / "home")
    init_home(home, NOW)
    LogStore(home).append([note("before")], now=NOW)
    for p in [public / "home", *(public / "home").rglob("*")]:
        p.chmod(0o555 if p.is_dir() else 0o444)
    out, err = python(DENIED, home).communicate(timeout=PATIENCE)
    assert out.startswith("AppendError") and "Permission denied" in out and "not kept" in out, (out, err)
    assert texts(home) == ["before"]


def test_a_removed_lock_file_does_not_let_two_writers_in(home: str) -> None:
    """The sidecar goes while processes append: whoever waits on the old one takes the new one, and the log stays whole."""
    LogStore(home).append([note("first")], now=NOW)
    (lock,) = Path(home, "locks").glob("*[0-9a-f].lock")
    held = files.lock(str(lock), 0)
    assert held is not None
    lock.unlink()
    other = files.lock(str(lock), 0)
    assert other is not None
    files.unlock(held)
    assert files.lock(str(lock), 0) is None
    files.unlock(other)
    wrong: list[BaseException] = []

    def work(k: int) -> None:
        store = LogStore(home, wait_ms=WAIT_MS)
        for i in range(60):
            try:
                store.append([note(f"{k}:{i}")], now=NOW + i)
            except (AppendError, SpooledError) as e:
                wrong.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        lock.unlink(missing_ok=True)
        time.sleep(0.005)
    LogStore(home).append([note("last")], now=NOW)
    served = texts(home)
    mine = {f"{k}:{i}" for k in range(4) for i in range(60)}
    assert len(served) == len(set(served)) and len(mine - set(served)) <= len(wrong)


@pytest.mark.parametrize("begun", [False, True])
def test_a_lock_removed_under_an_append_costs_nothing_that_was_acknowledged(
    home: str, begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sidecar goes between taking it and writing: two writers hold one each, and the segment's own lock keeps them apart."""
    if begun:
        LogStore(home).append([note("first")], now=NOW)
    write_all, met = files.write_all, []
    others: list[threading.Thread] = []
    outcome: list[str] = []

    def other() -> None:
        try:
            LogStore(home, wait_ms=WAIT_MS).append([note("other")], now=NOW)
            outcome.append("kept")
        except AppendError:
            outcome.append("told")

    def write(fd: int, data: bytes) -> None:
        if b"one" in data and not met:
            met.append(True)
            for lock in Path(home, "locks").glob("*[0-9a-f].lock"):
                lock.unlink()
            others.append(threading.Thread(target=other))
            others[0].start()
            time.sleep(0.3)
            assert not outcome or outcome == ["told"], "two writers at once"
        write_all(fd, data)

    monkeypatch.setattr(files, "write_all", write)
    LogStore(home).append([note("one")], now=NOW)
    others[0].join()
    served = [*(["first"] if begun else []), "one", *(["other"] if outcome == ["kept"] else [])]
    assert outcome == ["kept"] if begun else outcome
    assert texts(home) == served and verify(home).ok


def test_a_store_that_keeps_its_lock_open_notices_that_it_was_removed(home: str) -> None:
    """From the second append on the descriptor stays open: a removed and remade sidecar is taken anew."""
    store = LogStore(home, wait_ms=0)
    for i in range(3):
        store.append([note(str(i))], now=NOW)
    (lock,) = Path(home, "locks").glob("*[0-9a-f].lock")
    lock.unlink()
    held = files.lock(str(lock), 0)
    assert held is not None
    with pytest.raises(SpooledError):
        store.append([note("3")], now=NOW)
    files.unlock(held)
    store.append([note("4")], now=NOW)
    lock.unlink()
    store.append([note("5")], now=NOW)
    assert texts(home) == [str(i) for i in range(6)] and lock.exists() and verify(home).ok
    store.close()
    assert store.append([note("6")], now=NOW)[0]["seq"] == 7


def test_a_forked_child_holds_nothing_of_its_parent(home: str) -> None:
    """Its copies of the descriptors are closed, so no lock outlives the parent in it; it appends with its own."""
    store = LogStore(home)
    for i in range(3):
        store.append([note(str(i))], now=NOW)
    kept = set(files._private)
    assert len(kept) >= 2
    pid = os.fork()
    if not pid:
        code = 1
        try:
            closed = not any(os.path.exists(f"/dev/fd/{fd}") for fd in kept)
            store.append([note("child")], now=NOW)
            code = 0 if closed else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    store.append([note("parent")], now=NOW)
    assert texts(home) == ["0", "1", "2", "child", "parent"] and verify(home).ok


APPENDING = """
import sys
from projectmem_logs.errors import AppendError, SpooledError
from projectmem_logs.store import LogStore
store, i = LogStore(sys.argv[1], wait_ms=int(sys.argv[3])), 0
print("begun", flush=True)
while True:
    text = f"{sys.argv[2]}:{i}"
    draft = {"kind": "note.recorded", "actor": {"origin": "observed"}, "data": {"text": text, "tags": []}}
    i += 1
    try:
        store.append([draft], now=1800000000000000 + i)
    except SpooledError:
        pass
    except AppendError:
        print("told", flush=True)
        continue
    print(text, flush=True)
"""
REMOVALS, APPENDS = 150, 150


def test_four_processes_lose_nothing_while_their_lock_file_is_removed_again_and_again(home: str, tmp_path: Path) -> None:
    """However fast they are. What they were told is kept is there, once; were two ever in at a time, `verify` would name it."""
    LogStore(home).append([note("first")], now=NOW)
    (lock,) = Path(home, "locks").glob("*[0-9a-f].lock")
    said = [tmp_path / str(k) for k in range(4)]
    workers = []
    for k, path in enumerate(said):
        with path.open("w") as out:
            workers.append(subprocess.Popen([sys.executable, "-c", APPENDING, home, str(k), str(WAIT_MS)], stdout=out))
    removed, until = 0, time.monotonic() + PATIENCE
    try:
        while removed < REMOVALS or sum(path.read_text().count(":") for path in said) < APPENDS:
            assert all(p.poll() is None for p in workers) and time.monotonic() < until
            removed += lock.exists()
            lock.unlink(missing_ok=True)
            time.sleep(0.003)
    finally:
        for p in workers:
            p.kill()
            p.wait()
    kept = [text for path in said for text in path.read_text().split("\n")[:-1] if ":" in text]
    LogStore(home).append([note("last")], now=NOW)
    served, report = texts(home), verify(home)
    assert all("begun" in path.read_text() for path in said) and len(kept) >= APPENDS
    assert not report.ok or (set(kept) <= set(served) and len(served) == len(set(served))), set(kept) - set(served)


STOPPED = """
import sys, time
from projectmem_logs import files
fd = files.lock(sys.argv[1], 1000)
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.timeout(PATIENCE)
def test_a_stopped_lock_holder_costs_a_bounded_wait_and_no_event(home: str) -> None:
    """SIGSTOP while it holds the lock: others wait as long as they were told, spool, and the next append drains."""
    store = LogStore(home, wait_ms=150)
    store.append([note("before")], now=NOW)
    (lock,) = Path(home, "locks").glob("*[0-9a-f].lock")
    holder = python(STOPPED, str(lock))
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        os.kill(holder.pid, signal.SIGSTOP)
        for i in range(3):
            begun = time.monotonic()
            with pytest.raises(SpooledError, match="wait in"):
                store.append([note(f"spooled {i}")], now=NOW + i)
            assert time.monotonic() - begun >= 0.15
        assert texts(home) == ["before"]
    finally:
        os.kill(holder.pid, signal.SIGCONT)
        holder.kill()
        holder.communicate()
    events = LogStore(home).append([note("after")], now=NOW + 9)
    assert [e["data"]["text"] for e in events] == ["spooled 0", "spooled 1", "spooled 2", "after"]
    assert texts(home) == ["before", "spooled 0", "spooled 1", "spooled 2", "after"] and verify(home).ok
    assert not files.names(os.path.join(home, "spool"), ".spool")


def test_a_clock_that_jumps_harms_nothing(home: str, tmp_path: Path) -> None:
    """Back by an hour, forward by ten years: each stream keeps its order, cursors and verify do not mind, times are as told."""
    store = LogStore(home)
    jumps = [0, -HOUR, 87_600 * HOUR, 5, -HOUR, 6]
    for i, jump in enumerate(jumps):
        store.append([note(str(i))], now=NOW + jump)
    assert texts(home) == [str(i) for i in range(6)] and verify(home).ok
    assert [e["ts"] - NOW for e in read_events(home)] == jumps
    (stream,) = store.head()
    for seq in range(7):
        assert [e["seq"] for e in read_events(home, {stream: seq})] == list(range(seq + 1, 7))
    assert LogStore(home).append([note("6")], now=NOW + 7)[0]["seq"] == 7
    # a second stream beside it: the merge keeps both orders, whatever their clocks say
    other = str(tmp_path / "other")
    init_home(other, NOW)
    theirs = LogStore(other)
    for i in range(4):
        theirs.append([note(f"b{i}")], now=NOW - i * HOUR)
    (name,) = os.listdir(os.path.join(other, "log"))
    shutil.copytree(os.path.join(other, "log", name), os.path.join(home, "log", name))
    served = texts(home)
    assert [t for t in served if t[0] == "b"] == [f"b{i}" for i in range(4)]
    assert [t for t in served if t[0] != "b"] == [str(i) for i in range(7)]


def test_an_import_keeps_when_it_happened_apart_from_when_it_was_recorded(home: str) -> None:
    """`at` is the draft's, to the microsecond, in the past or ahead; `ts` is the recorder's clock; live ones have both equal."""
    ats = [NOW - 400 * 24 * HOUR, NOW + 2 * HOUR, 0]
    for durability in ("durable", "batch"):
        events = LogStore(home).append([note(str(a), at=a) for a in ats], now=NOW, durability=durability)
        assert [e["at"] for e in events] == ats and {e["ts"] for e in events} == {NOW}
    live = LogStore(home).append([note("live")], now=NOW + 5)[0]
    assert live["at"] == live["ts"] == NOW + 5
    assert [e["at"] for e in read_events(home)] == [*ats, *ats, NOW + 5]
