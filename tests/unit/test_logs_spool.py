"""Appends that found the log locked: many come in with few syncs, each once, and none that is bad keeps the others out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import files, spool
from projectmem_logs.canonical import canonical
from projectmem_logs.errors import AppendError, EventError, SpooledError
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

from tests.locked import locked

NOW = 1_800_000_000_000_000
ID = "01a22cce-9a3c-7cdd-9467-8baa71c666e0"


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A log with one event."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    with LogStore(home) as store:
        store.append([note("first")], now=NOW)
    return home


def note(text: str) -> dict[str, Any]:
    """A draft."""
    return {"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": text, "tags": []}}


def texts(home: str) -> list[str]:
    """What the log says, in its order."""
    return [event["data"]["text"] for event in read_events(home)]


def wait(home: str, *drafts: dict[str, Any], now: int = NOW, durability: str = "durable") -> None:
    """Have an append find the log locked."""
    with locked(home), LogStore(home, wait_ms=0) as store, pytest.raises(SpooledError):
        store.append(list(drafts), now=now, durability=durability)


def test_many_files_come_in_with_few_syncs(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are small together are one batch: one sync of the log, two for all that they leave."""
    names = [f"waits {i}" for i in range(20)]
    for i, name in enumerate(names):
        wait(home, note(name), now=NOW + i)
    synced: list[str] = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)

        def sync(fd: int, real: Any = real, name: str = name) -> None:
            synced.append(name)
            real(fd)

        monkeypatch.setattr(os, name, sync)
    with LogStore(home) as store:
        events = store.append([], now=NOW + 50)
    monkeypatch.undo()
    assert len(synced) == 4, "the end that another process wrote, the batch, the folder, the last file"
    assert [event["left"] for event in events] == list(range(19, -1, -1))
    assert texts(home) == ["first", *names] and verify(home).ok and spool.paths(home) == []


def test_what_is_large_is_a_batch_of_its_own(home: str) -> None:
    """Whoever opens the log next reads the last batch: what came in together is no longer than what is read anyway."""
    for i in range(3):
        wait(home, note(f"{i}" * 20_000), now=NOW + i)
    with LogStore(home) as store:
        assert [event["left"] for event in store.append([], now=NOW + 50)] == [0, 0, 0]
    assert len(texts(home)) == 4


@pytest.mark.parametrize("removed", range(3))
def test_files_that_were_written_and_not_removed_are_written_once(
    home: str, removed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of a batch's files a stop leaves there; and though the log lost its end since."""
    for i in range(3):
        wait(home, note(f"waits {i}"), now=NOW + i)
    left, remove = [removed], files.remove

    def stops(path: str) -> None:
        if path.endswith(".spool"):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        remove(path)

    monkeypatch.setattr(files, "remove", stops)
    with LogStore(home) as store, pytest.raises(KeyboardInterrupt):
        store.append([], now=NOW + 50)
    monkeypatch.undo()
    assert len(spool.paths(home)) == 3 - removed
    (segment,) = Path(home, "log").glob("*/*.jsonl")
    with segment.open("ab") as file:
        file.write(b'{"actor":{"agent":"","har')
    with LogStore(home) as store:
        store.append([note("last")], now=NOW + 60)
    kinds = [event["kind"] for event in read_events(home)]
    assert kinds == ["note.recorded"] * 4 + ["log.recovered", "note.recorded"] and spool.paths(home) == [] and verify(home).ok


def test_an_import_of_any_length_waits_and_comes_in(home: str) -> None:
    """More than a batch may have: it is cut; what must be one batch is refused before anybody hears that it is safe."""
    drafts = [note(f"{i}" * (12 << 20)) for i in range(3)]
    with locked(home), LogStore(home, wait_ms=0) as store, pytest.raises(EventError, match="append less at a time"):
        store.append(drafts, now=NOW)
    assert spool.paths(home) == []
    wait(home, *drafts, durability="batch")
    wait(home, note("then"), now=NOW + 1)
    assert len(spool.paths(home)) == 4
    with LogStore(home) as store:
        store.append([note("last")], now=NOW + 60)
    assert [text[:4] for text in texts(home)] == ["firs", "0000", "1111", "2222", "then", "last"] and verify(home).ok


def _made(home: str, *drafts: Any, **more: Any) -> Path:
    body = canonical({"drafts": list(drafts), "ids": [ID] * len(drafts), "now": NOW, **more})
    path = Path(home, "spool", f"{LogStore(home)._writer.machine}-{NOW:020d}-0.spool")
    path.write_bytes(spool.packed(body))
    return path


@pytest.mark.parametrize(
    "bad", [{"kind": "NOT A KIND"}, {"kind": "note.recorded", "at": -1}, {"kind": "a.b", "later": 1}, "text"]
)
def test_a_draft_that_no_log_takes_keeps_nothing_out(home: str, bad: Any) -> None:
    """It is put aside and said; what waits beside it and what is appended come in."""
    path = _made(home, bad)
    wait(home, note("waits"), now=NOW + 9)
    with LogStore(home) as store:
        store.append([note("last")], now=NOW + 10)
        assert any(path.name in notice and "quarantine" in notice for notice in store.notices)
    assert texts(home) == ["first", "waits", "last"]
    assert not path.exists() and Path(home, "quarantine", path.name).exists()


def test_what_keeps_an_append_out_is_named(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file cannot be written to or removed, which one it is."""
    wait(home, note("waits"))

    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(files, "discard", refused)
    with LogStore(home) as store, pytest.raises(AppendError, match=r"Permission denied \(.*\.spool\)"):
        store.append([note("last")], now=NOW + 10)
    monkeypatch.undo()
    with LogStore(home) as store:
        store.append([note("last")], now=NOW + 20)
    assert texts(home) == ["first", "waits", "last"]


@pytest.mark.parametrize("more", [{"ids": ["x"]}, {"ids": []}, {"now": "noon"}, {"drafts": 3}, {"drafts": [3]}])
def test_a_file_that_somebody_made_is_put_aside_and_said(home: str, more: dict[str, Any]) -> None:
    """Its hash is right, and it is none of ours all the same."""
    path = _made(home, note("x"), **more)
    with LogStore(home) as store:
        store.append([note("last")], now=NOW + 10)
        assert path.name in store.notices[0]
    assert texts(home) == ["first", "last"] and not path.exists()


def test_a_file_that_may_not_be_read_keeps_nothing_out(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's, made as root: it is said and stays until it can be read."""
    path = _made(home, note("theirs"))
    read = files.read

    def refused(name: str, *args: Any) -> bytes:
        if name == str(path):
            raise PermissionError(13, "Permission denied", name)
        return read(name, *args)

    monkeypatch.setattr(files, "read", refused)
    assert spool.drafts(home) == []
    with LogStore(home) as store:
        store.append([note("last")], now=NOW + 10)
        assert str(path) in store.notices[0] and "Permission denied" in store.notices[0]
        monkeypatch.undo()
        store.append([note("more")], now=NOW + 20)
    assert texts(home) == ["first", "last", "theirs", "more"]


def test_a_folder_whose_sync_failed_is_not_believed(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk may have dropped what it should have kept: the names are put back, and removed anew."""
    for i in range(3):
        wait(home, note(f"waits {i}"), now=NOW + i)
    left, sync = [1], files.sync_dir

    def fails(path: str) -> None:
        if path.endswith("spool") and left[0]:
            left[0] -= 1
            raise OSError(5, "Input/output error")
        sync(path)

    monkeypatch.setattr(files, "sync_dir", fails)
    with LogStore(home) as store:
        with pytest.raises(AppendError, match="Input/output error"):
            store.append([note("lost")], now=NOW + 50)
        assert sorted(os.path.getsize(path) > 0 for path in spool.paths(home)) == [False, False, True]
        store.append([note("last")], now=NOW + 60)
    assert texts(home) == ["first", "waits 0", "waits 1", "waits 2", "last"] and spool.paths(home) == [] and verify(home).ok


def test_a_folder_that_was_not_synced_is_synced_by_whoever_finds_the_last_file(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stopped had removed the others, whose names could come back once more is written."""
    for i in range(3):
        wait(home, note(f"waits {i}"), now=NOW + i)
    synced: list[str] = []

    def sync(path: str) -> None:
        synced.append(os.path.basename(path))
        if synced == ["spool"]:
            raise KeyboardInterrupt

    monkeypatch.setattr(files, "sync_dir", sync)
    with LogStore(home) as store, pytest.raises(KeyboardInterrupt):
        store.append([], now=NOW + 50)
    assert len(spool.paths(home)) == 1
    with LogStore(home) as store:
        store.append([note("last")], now=NOW + 60)
    assert synced == ["spool", "spool"] and len(texts(home)) == 5 and spool.paths(home) == []


def test_what_one_process_keeps_at_one_time_comes_in_as_it_was_kept(home: str) -> None:
    """An import's batches: all have the time at which it began."""
    for n in range(12):
        wait(home, note(f"{n} a"), note(f"{n} b"), durability="batch")
    with LogStore(home) as store:
        store.append([], now=NOW)
    assert texts(home) == ["first", *(f"{n} {part}" for n in range(12) for part in "ab")]
