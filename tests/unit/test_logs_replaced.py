"""A segment is replaced (erasure, repair) while somebody has removed the stream's lock file: no append beside it is lost."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import erasing, files, repair
from projectmem_logs.errors import LogError, SpooledError
from projectmem_logs.locking import Held
from projectmem_logs.reader import read_events
from projectmem_logs.selecting import Selector
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there an open lock file cannot be removed")
NOW = 1_800_000_000_000_000


def note(text: str) -> dict[str, Any]:
    """A draft."""
    return {"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": text, "tags": []}}


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A log of three notes."""
    path = str(tmp_path / "home")
    init_home(path, NOW)
    with LogStore(path) as store:
        for text in ("one", "two", "three"):
            store.append([note(text)], now=NOW)
    return path


def texts(home: str) -> list[str]:
    """The texts the log serves."""
    return [e["data"]["text"] for e in read_events(home) if e["kind"] == "note.recorded" and "data" in e]


def beside(home: str, monkeypatch: pytest.MonkeyPatch, store: LogStore, at: str) -> list[str]:
    """As soon as a file in the folder `at` is to be replaced, its new contents known, the lock file goes and `store` appends;
    what became of that."""
    replace = files.replace
    outcome: list[str] = []

    def interrupted(path: str, data: bytes | Iterable[bytes]) -> None:
        whole = data if isinstance(data, bytes) else b"".join(data)
        if os.path.basename(os.path.dirname(os.path.dirname(path))) == at and not outcome:
            outcome.append("begun")
            for lock in Path(home, "locks").glob("*[0-9a-f].lock"):
                lock.unlink()
            try:
                store.append([note("beside")], now=NOW)
                outcome.append("kept")
            except SpooledError:
                outcome.append("spooled")
        replace(path, whole)

    monkeypatch.setattr(files, "replace", interrupted)
    return outcome


def erase(home: str) -> None:
    """Erase the first note."""
    first = next(iter(read_events(home)))["id"]
    erasing.carry_out(home, {first: first}, Selector(text="one"), at=NOW)


def mend(home: str) -> None:
    """Put right what `damage` did."""
    assert not repair.apply(home, now=NOW).failed


def damage(home: str) -> None:
    """Line ends as an editor leaves them: nothing is lost, and repair offers to rewrite the segment."""
    (path,) = Path(home, "log").glob("*/*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n", 1))


@pytest.mark.parametrize("known", [False, True], ids=["a new store", "a store that knows the end"])
@pytest.mark.parametrize("act", [erase, mend])
def test_an_append_beside_it_is_kept(home: str, act: Callable[[str], None], known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the segment's own lock: written afterwards, to the new file, or spooled and then written."""
    if act is mend:
        damage(home)
    store = LogStore(home, wait_ms=50)
    if known:
        store.append([note("four")], now=NOW)
    outcome = beside(home, monkeypatch, store, "log")
    act(home)
    assert outcome == ["begun", "spooled"]
    store.append([note("after")], now=NOW)
    store.close()
    served = [*(["one"] if act is mend else []), "two", "three", *(["four"] if known else []), "beside", "after"]
    assert texts(home) == served and verify(home).ok


def test_what_waits_in_the_spool_is_not_written_while_an_erasure_rewrites_it(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a draft would be in the log and, kept by the erasure, be written once more."""
    store = LogStore(home, wait_ms=50)
    (lock,) = Path(home, "locks").glob("*[0-9a-f].lock")
    held = files.lock(str(lock), 0)
    assert held is not None
    with pytest.raises(SpooledError):
        store.append([note("one, waiting"), note("waiting too")], now=NOW)
    files.unlock(held)
    replace, seen = files.replace, []

    def interrupted(path: str, data: Any) -> None:
        if path.endswith(".spool") and os.path.exists(path):
            lock.unlink()
            with pytest.raises(SpooledError):
                store.append([note("beside")], now=NOW + 1)
            seen.append(path)
        replace(path, data)

    monkeypatch.setattr(files, "replace", interrupted)
    erase(home)
    store.append([note("after")], now=NOW + 2)
    store.close()
    assert seen and texts(home) == ["two", "three", "waiting too", "beside", "after"] and verify(home).ok


def test_a_segment_that_was_replaced_while_it_was_waited_for_is_held_as_it_is_now(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of a file that is no longer there keeps nobody out."""
    (path,) = Path(home, "log").glob("*/*.jsonl")
    grip, seen = files.grip, []

    def replaced_first(fd: int, wait_ms: int) -> bool:
        if not seen:
            seen.append(os.fstat(fd).st_ino)
            files.replace(str(path), path.read_bytes())
        return grip(fd, wait_ms)

    monkeypatch.setattr(files, "grip", replaced_first)
    with Held(str(path), 0):
        fd = os.open(path, os.O_RDONLY)
        assert os.fstat(fd).st_ino != seen[0]
        with pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(LogError, match="keeps writing"), Held(str(path), 0):
            pass
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)


@pytest.mark.parametrize("known", [False, True], ids=["a new store", "a store that knows the end"])
def test_a_segment_sealed_while_it_was_waited_for_gets_nothing_more(
    home: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other holder of a removed lock file seals it and begins the next one: what was written to it then would be damage."""
    store = LogStore(home)
    other = LogStore(home, segment_bytes=1)
    if known:
        store.append([note("four")], now=NOW)
    opened, seen = files.open_append, []

    def overtaken(path: str, create: bool = False) -> int:
        if not seen:
            seen.append(path)
            for lock in Path(home, "locks").glob("*[0-9a-f].lock"):
                lock.unlink()
            other.append([note("other")], now=NOW)  # a segment of its own
            other.close()
        return opened(path, create=create)

    if known:
        other.append([note("five")], now=NOW)  # so that the store has to look again
        other.close()
    monkeypatch.setattr(files, "open_append", overtaken)
    store.append([note("late")], now=NOW)
    store.close()
    assert seen and texts(home)[3:] == [*(["four", "five"] if known else []), "other", "late"] and verify(home).ok
