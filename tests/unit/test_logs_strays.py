"""What does not belong in a log's folder, or was swept out of it, stops nothing: passed over, named, or made again."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import files
from projectmem_logs.errors import NotInitialisedError, SpooledError
from projectmem_logs.home import Writer
from projectmem_logs.origin import own_streams
from projectmem_logs.reader import read_events
from projectmem_logs.repair import plan
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, links and names that are no text")
NOW = 1_800_000_000_000_000


def note(text: str) -> dict[str, Any]:
    """A draft."""
    return {"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": text, "tags": []}}


def test_whose_a_stream_is_is_known_as_soon_as_it_changes(tmp_path: Path) -> None:
    """Asked again and again in one process: a stream that was begun or given up in between is seen, a removed file too."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    assert own_streams(home) == frozenset()
    writer = Writer(home)
    first = writer.stream()
    assert own_streams(home) == own_streams(home) == {first}
    second = Writer(home).retire(first, "damaged")
    assert own_streams(home) == {first, second}
    os.unlink(writer.path)
    assert own_streams(home) == frozenset()


@pytest.mark.parametrize("known", [False, True], ids=["a new store", "a store that lives on"])
def test_folders_that_were_swept_away_are_made_again(tmp_path: Path, known: bool) -> None:
    """Nothing but `log/` holds what is recorded; without a log there is still nothing to append to."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    with LogStore(home) as first, LogStore(home) as second:
        first.append([note("one")], now=NOW)
        first.append([note("two")], now=NOW)
        for name in ("locks", "spool", "quarantine"):
            shutil.rmtree(Path(home, name))
        (first if known else second).append([note("three")], now=NOW)
        (segment,) = Path(home, "log").glob("*/*.jsonl")
        with segment.open("ab") as file:
            file.write(b"torn")
        shutil.rmtree(Path(home, "quarantine"))
        second.append([note("four")], now=NOW)
    assert len(list(read_events(home))) == 5 and verify(home).ok
    shutil.rmtree(Path(home, "spool"))
    held = files.lock(next(str(p) for p in Path(home, "locks").iterdir() if "writer" not in p.name), 0)
    assert held is not None
    with LogStore(home, wait_ms=1) as waits, pytest.raises(SpooledError):
        waits.append([note("five")], now=NOW)
    files.unlock(held)
    shutil.rmtree(Path(home, "locks"))
    Path(home, "project.json").unlink()
    with LogStore(home, project="p") as none, pytest.raises(NotInitialisedError):
        none.append([note("six")], now=NOW)


@pytest.mark.parametrize("stray", ["folder", "pipe", "broken link"])
def test_an_entry_that_is_no_file_stops_nothing(tmp_path: Path, stray: str) -> None:
    """Named as a segment or a spool file: passed over, named by verify, left where it is by repair."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    with LogStore(home) as store:
        store.append([note("one")], now=NOW)
        machine, stream = store._writer.machine, store._stream
    for path in (Path(home, "log", stream, "9".zfill(20) + ".jsonl"), Path(home, "spool", f"{machine}-d.spool"),
                 Path(home, "log", "stray"), Path(home, "log", stream, "odd")):  # fmt: skip
        if stray == "folder":
            path.mkdir()
        elif stray == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(tmp_path / "nowhere")
    with LogStore(home) as store:
        store.append([note("two")], now=NOW)
    assert len(list(read_events(home))) == 2
    found = verify(home).problems
    assert len(found) == 3 and {p.kind for p in found} == {"foreign-file"} and "take it away" in found[0].remedy
    assert not plan(home)


def test_a_stream_is_named_in_hex_and_nothing_else_is_followed(tmp_path: Path) -> None:
    """A folder of another name, even one that is no text, is foreign; a writers file that leads elsewhere is not believed."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    with LogStore(home) as store:
        store.append([note("one")], now=NOW)
        path = Path(store._writer.path)
    for name in (b"\xfd", b"ABCDEF0123456789", b"aa"):
        os.mkdir(os.path.join(os.fsencode(home), b"log", name))
    problems = verify(home).problems
    assert len(problems) == 3 and all(str(p).encode() for p in problems) and not plan(home)
    good = json.loads(path.read_text())
    for change in ({"stream": "../../outside"}, {"stream": 7}, {"stream": "x" * 16}, {"retired": 3}):
        path.write_text(json.dumps({**good, **change}))
        with LogStore(home) as store:
            store.append([note("two")], now=NOW)
    assert not (tmp_path / "outside").exists() and len(list(read_events(home))) == 5
