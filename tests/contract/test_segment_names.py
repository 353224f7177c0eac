"""One rule says which files of a stream's folder are segments: all readers read the same, `verify` names the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import repair, tail
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify
from projectmem_projections import loading, parity
from projectmem_projections import tail as following
from projectmem_projections.snapshot import Snapshot

FOREIGN = [
    f"{1:012d}.jsonl", f"{2:019d}.jsonl", f"{2:021d}.jsonl", f"{9:020d}.jsonl.bak", f"{9:020d}.json", f" {9:019d}.jsonl",
    f"+{9:019d}.jsonl", "٣" * 20 + ".jsonl", ".jsonl", "copy of 1.jsonl", f"{9:020d}.jsonl.1-2.new", "_" * 20 + ".jsonl",
]  # fmt: skip


def note(text: str) -> dict[str, Any]:
    """A draft."""
    return {"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": text, "tags": []}}


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A log of several segments, and files beside them that look like some."""
    path = str(tmp_path / "home")
    init_home(path, 1)
    with LogStore(path, segment_bytes=1_500) as store:
        for i in range(6):
            store.append([note(f"n{i}")], now=10 + i)
    (folder,) = Path(path, "log").iterdir()
    first = min(folder.iterdir())
    for name in FOREIGN:
        (folder / name).write_bytes(first.read_bytes())
    return path


def test_all_readers_take_the_same_files_for_segments(home: str) -> None:
    """The log's own, the gate's snapshot, the loader of the summaries; sizes count these alone."""
    (folder,) = Path(home, "log").iterdir()
    mine = tail.segments(str(folder))
    assert len(mine) > 2 and not set(mine) & set(FOREIGN)
    assert following.segments(home, folder.name) == mine
    assert [Path(p).name for run in loading._runs(home, [folder.name]) for p in run] == mine
    sizes = [(folder / name).stat().st_size for name in mine]
    assert following.positions(home) == {folder.name: (mine[-1], sizes[-1])} and following.lag(home, {}) == sum(sizes)
    assert parity.log_bytes(home) == sum(sizes)


def test_what_is_no_segment_is_named_and_disturbs_nobody(home: str) -> None:
    """Readers and appends go on beside it; `verify` calls it a foreign file, and repair moves it away."""
    with LogStore(home) as store:
        store.append([note("later")], now=99)
    texts = [e["data"]["text"] for e in read_events(home)]
    assert texts == [*(f"n{i}" for i in range(6)), "later"]
    with Snapshot(str(Path(home, "projections.sqlite"))) as state:
        state.catch_up(home, 1_000)
        assert list(state.cursor().values()) == [7]
    found = verify(home)
    assert {p.segment for p in found.problems} == set(FOREIGN) and {p.kind for p in found.problems} == {"foreign-file"}
    assert not repair.apply(home, now=100).failed and verify(home).ok
    assert [e["data"]["text"] for e in read_events(home) if e["kind"] == "note.recorded"] == texts
