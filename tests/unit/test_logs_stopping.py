"""What an import appends: Ctrl-C while it is on its way to the disk, no threads, drafts beside what was made of others."""

from __future__ import annotations

import gc
import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from projectmem_logs import bulk, files
from projectmem_logs.errors import LogError
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

NOW = 1_800_000_000_000_000


def _drafts(count: int) -> list[dict[str, Any]]:
    actor = {"session": "s", "origin": "import"}
    return [{"kind": "note.recorded", "at": n, "actor": actor, "data": {"text": f"{n:01000d}", "tags": []}} for n in range(count)]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_the_lock_is_kept_until_what_is_being_written_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C where the next batch waits for the one before it."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    asked, given_back = threading.Event(), threading.Event()
    too_early: list[bool] = []
    sync = files.sync_data

    def stops(_: int, frame: FrameType | None) -> None:
        while frame is not None and not asked.is_set():
            if frame.f_code is bulk.Behind.join.__code__:
                asked.set()
                raise KeyboardInterrupt
            frame = frame.f_back

    def slow(fd: int) -> None:
        if threading.current_thread() is not threading.main_thread() and not too_early:
            while not asked.wait(0.01):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            too_early.append(given_back.wait(0.5))
        sync(fd)

    usual = signal.signal(signal.SIGUSR1, stops)
    gc.disable()  # what is raised within a callback of a collection is lost
    try:
        with LogStore(home) as store:
            monkeypatch.setattr(files, "sync_data", slow)
            with pytest.raises(KeyboardInterrupt):
                store.append(_drafts(9000), now=NOW, durability="batch")
            given_back.set()
            assert too_early == [False]
            monkeypatch.undo()
            store.append(_drafts(1), now=NOW)
    finally:
        gc.enable()
        signal.signal(signal.SIGUSR1, usual)
    report = verify(home)
    assert not report.problems and report.streams[0].events > 1000


def test_without_threads_an_import_is_written_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system gives none."""

    def none(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    home = str(tmp_path / "home")
    init_home(home, NOW)
    monkeypatch.setattr(threading.Thread, "start", none)
    with LogStore(home) as store:
        assert len(store.append(_drafts(9000), now=NOW, durability="batch")) == 9000
    assert not verify(home).problems


def test_drafts_beside_encoded_ones_are_refused(tmp_path: Path) -> None:
    """Neither is left out without a word."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    for durability in ("durable", "batch"):
        with LogStore(home) as store, pytest.raises(LogError, match="not both"):
            store.append(_drafts(2), now=NOW, encoded=bulk.prepare_many(_drafts(2), NOW), durability=durability)
    assert not verify(home).streams
