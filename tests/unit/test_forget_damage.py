"""`forget` where the log is damaged: records that run together, damaged lines, files beside it; who stands beside stays."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import erasing, home, spool
from projectmem_logs.envelope import parse, prepare
from projectmem_logs.home import machine
from projectmem_logs.reader import find_event, read_events
from projectmem_logs.selecting import Selector
from projectmem_logs.store import LogStore
from projectmem_logs.verify import verify

from projectmem.cli import app as cli

TEXT = "Kilimanjaro"


class World:
    """A project with a log, at a person's terminal."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.capsys = root / ".projectmem-gate", capsys

    def __call__(self, *args: str, code: int = 0) -> str:
        """Run one command, expect this exit code, return what it printed."""
        found = cli.run(list(args))
        out, err = self.capsys.readouterr()
        assert found == code, f"{args}: exit {found}, {out}{err}"
        return out

    @property
    def segment(self) -> Path:
        """The only one."""
        (path,) = self.home.glob("log/*/*.jsonl")
        return path

    def notes(self) -> list[str]:
        """What the notes that are served say."""
        events: list[dict[str, Any]] = list(read_events(str(self.home)))
        return [e["data"]["text"] for e in events if e["kind"] == "note.recorded" and "data" in e]

    def glue(self, first: int) -> None:
        """Take the newline away between two lines."""
        lines = self.segment.read_bytes().splitlines()
        both = [*lines[:first], lines[first] + lines[first + 1], *lines[first + 2 :]]
        self.segment.write_bytes(b"".join(line + b"\n" for line in both))

    def holding(self) -> list[Path]:
        """Files that hold TEXT."""
        return [p for p in self.home.rglob("*") if p.is_file() and TEXT.encode() in p.read_bytes()]


@pytest.fixture
def world(accepted: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> World:
    """An empty log, and a person at a terminal."""
    return World(accepted("human"), capsys)


def test_a_record_that_runs_together_with_another_is_found_and_the_other_stays(world: World) -> None:
    """It is served, so it is found; only it goes, and the chain is whole afterwards."""
    for text in ("one", f"two {TEXT}", "three", "four"):
        world("record", "note", text)
    lines = world.segment.read_bytes().splitlines()
    at = next(i for i, line in enumerate(lines) if TEXT.encode() in line)
    world.glue(at)
    assert world.notes() == ["one", f"two {TEXT}", "three", "four"]
    world("forget", "--text", TEXT, "--yes")
    assert world.notes() == ["one", "three", "four"] and world.holding() == [] and verify(str(world.home)).ok


def test_a_bystander_survives_when_the_other_match_is_elsewhere(world: World) -> None:
    """The line of the match and of the innocent is parted, not blanked."""
    for text in (f"one {TEXT}", "two", f"three {TEXT}", "four"):
        world("record", "note", text)
    lines = world.segment.read_bytes().splitlines()
    world.glue(next(i for i, line in enumerate(lines) if f"one {TEXT}".encode() in line))
    out = world("forget", "--text", TEXT, "--yes")
    assert "erased 2 events" in out and "blanked" not in out
    assert world.notes() == ["two", "four"] and world.holding() == [] and verify(str(world.home)).ok


def test_an_event_that_runs_together_with_another_is_found_by_its_id(world: World) -> None:
    """Both of them."""
    world("record", "note", "one")
    world("record", "note", f"two {TEXT}")
    ids = [parse(line)["id"] for line in world.segment.read_bytes().splitlines()][-2:]
    world.glue(len(world.segment.read_bytes().splitlines()) - 2)
    assert [(find_event(str(world.home), id) or {}).get("id") for id in ids] == ids
    world("forget", ids[1], "--yes")
    assert world.notes() == ["one"] and world.holding() == []


def test_a_text_that_only_a_damaged_line_holds_is_found_and_blanked(world: World) -> None:
    """Said before, done, on record, and nothing is left to find."""
    world("record", "note", f"one {TEXT}")
    world("record", "note", "two")
    world.segment.write_bytes(world.segment.read_bytes().replace(b"one ", b"0ne "))
    assert json.loads(world("forget", "--text", TEXT, "--json"))["damaged"] == 1
    assert "1 damaged lines hold it" in world("forget", "--text", TEXT)
    out = world("forget", "--text", TEXT, "--yes", code=1)
    assert "damaged lines blanked: 1" in out and world.holding() == [] and world.notes() == ["two"]
    assert [e["data"]["ids"] for e in read_events(str(world.home)) if e["kind"] == "erasure.requested"] == [[]]
    world("forget", "--text", TEXT, "--yes", code=3)


@pytest.mark.parametrize("name", ["quarantine/torn", "hook.log", "errors.log"])
def test_a_text_that_only_a_file_beside_the_log_holds_is_found(world: World, name: str) -> None:
    """Quarantined bytes go as a file, logs for people line by line."""
    world("record", "note", "one")
    (world.home / name).write_text(f"something about {TEXT}\nand more\n")
    assert json.loads(world("forget", "--text", TEXT, "--json"))["others"] == [name]
    assert name in world("forget", "--text", TEXT)
    world("forget", "--text", TEXT, "--yes")
    assert world.holding() == [] and world.notes() == ["one"]


def test_time_alone_takes_no_damaged_line_for_found(world: World) -> None:
    """Of bytes that are no event nobody knows when they were written."""
    world("record", "note", "one")
    world("record", "note", "two")
    world.segment.write_bytes(world.segment.read_bytes().replace(b"one", b"0ne"))
    before = world.segment.read_bytes()
    assert "nothing in the log answers" in world("forget", "--until", "2001-01-01")
    world("forget", "--until", "2001-01-01", "--yes", code=3)
    assert world.segment.read_bytes() == before


def test_an_issue_takes_its_fix_and_hypothesis_along(world: World) -> None:
    """They are linked by the issue's id in their payload."""
    world("record", "issue", f"about {TEXT}")
    (issue,) = [e["data"]["issue"] for e in read_events(str(world.home)) if e["kind"] == "issue.opened"]
    world("record", "hypothesis", "the rope is short", "--issue", issue)
    world("record", "attempt", "a knot", "--issue", issue, "--outcome", "failed")
    world("record", "fix", "a longer rope", "--issue", issue)
    world("record", "fix", "of another")
    world("record", "issue", "closing", "--close", issue, "--resolution", "bought one")
    world("record", "note", "unrelated")
    world("forget", "--text", TEXT, "--yes")
    left = {e["kind"] for e in read_events(str(world.home)) if "data" in e}
    assert left.isdisjoint({"issue.opened", "issue.closed", "hypothesis.noted", "attempt.recorded"})
    fixes = [e["data"]["text"] for e in read_events(str(world.home)) if e["kind"] == "fix.recorded" and "data" in e]
    assert fixes == ["of another"] and world.notes() == ["unrelated"]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
@pytest.mark.parametrize("folder", ["spool", "quarantine", "projections"])
def test_an_entry_that_is_no_file_stops_no_erasure(world: World, folder: str) -> None:
    """A folder cannot be read, and whoever opens a pipe waits for ever."""
    world("record", "note", f"one {TEXT}")
    for name in (f"{machine()}-x.spool", "y.new"):
        (world.home / folder / f"folder-{name}").mkdir()
        os.mkfifo(world.home / folder / f"pipe-{name}")
        os.utime(world.home / folder / f"folder-{name}", (0, 0))
    assert "erased 1 event" in world("forget", "--text", TEXT, "--yes")
    assert world.notes() == [] and verify(str(world.home)).ok
    assert (world.home / folder / "folder-y.new").is_dir()


@pytest.mark.parametrize("folder", ["spool", "quarantine", "locks"])
def test_a_folder_that_was_swept_away_stops_no_erasure(world: World, folder: str) -> None:
    """An empty one is, by tools that keep none."""
    world("record", "note", f"one {TEXT}")
    shutil.rmtree(world.home / folder)
    assert "erased 1 event" in world("forget", "--text", TEXT, "--yes")
    assert world.notes() == [] and world.holding() == [] and verify(str(world.home)).ok


def test_what_comes_in_from_the_spool_while_an_erasure_is_at_work_is_erased(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine's process brings it in whenever the lock is free: before the spool is gone through, the log is not."""
    world("record", "note", "one")
    there = "another machine"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, "machine", lambda: there)
        store = LogStore(str(world.home))
    store.append([], now=1)
    draft = {"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": f"two {TEXT}", "tags": []}}
    spool.keep(str(world.home), there, [prepare(draft, 1)], 1, False)
    erase = erasing._erase_spooled

    def late(*args: Any) -> None:
        store.append([], now=2)
        erase(*args)

    monkeypatch.setattr(erasing, "_erase_spooled", late)
    world("forget", "--text", TEXT, "--yes")
    assert world.notes() == ["one"] and world.holding() == [] and verify(str(world.home)).ok


def test_what_waits_is_erased_under_the_lock_of_the_stream_that_it_goes_to(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the machine gave up one stream for another while the first one's lock was waited for."""
    world("record", "note", "one")
    draft = {"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": f"two {TEXT}", "tags": []}}
    path = spool.keep(str(world.home), machine(), [prepare(draft, 1)], 1, False)
    stream, taken = erasing._stream_of(str(world.home), machine()), list[str]()
    streams = ["ab" * 8]
    monkeypatch.setattr(erasing, "_stream_of", lambda root, of: streams.pop() if streams else stream)
    enter = erasing._Lock.__enter__

    def entered(lock: erasing._Lock) -> None:
        taken.append(Path(lock.path).stem)
        enter(lock)

    monkeypatch.setattr(erasing._Lock, "__enter__", entered)
    erasing._erase_spooled(str(world.home), path, {}, Selector(text=TEXT), erasing.Reached())
    assert taken == ["ab" * 8, stream] and not Path(path).exists()
