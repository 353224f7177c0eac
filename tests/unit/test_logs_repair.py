"""Repair: what is safe is offered, done only when asked, loses nothing, and is itself safe to interrupt."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import files
from projectmem_logs.envelope import BOM
from projectmem_logs.reader import read_events
from projectmem_logs.repair import apply, plan
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

NOW = 1_800_000_000_000_000


def note(text: str) -> dict[str, Any]:
    """A draft."""
    return {"kind": "note.recorded", "actor": {"origin": "observed"}, "data": {"text": text, "tags": []}}


def made(tmp_path: Path, segment_bytes: int = 1 << 26) -> tuple[str, list[Path]]:
    """A log of twelve records in batches of one and two: its home and its segments."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    store = LogStore(home, segment_bytes=segment_bytes)
    for i in range(0, 12, 3):
        store.append([note(f"n{i}")], now=NOW + i)
        store.append([note(f"n{i + 1}"), note(f"n{i + 2}")], now=NOW + i)
    return home, sorted(Path(home, "log").glob("*/*.jsonl"))


def texts(home: str) -> list[str]:
    """What the log serves, without what repair recorded."""
    return [e["data"]["text"] for e in read_events(home) if e["kind"] == "note.recorded"]


Damage = Callable[[list[bytes]], list[bytes]]
MENDED: list[tuple[str, Damage, str]] = [
    ("CRLF everywhere", lambda x: [line[:-1] + b"\r\n" for line in x], "rewrite"),
    ("a byte-order mark and CRLF", lambda x: [BOM + x[0][:-1] + b"\r\n", *x[1:]], "rewrite"),
    ("glued records", lambda x: [*x[:3], x[3][:-1], x[4][:-1], *x[5:]], "rewrite"),
    ("swapped records", lambda x: [*x[:6], x[9], x[7], x[8], x[6], *x[10:]], "rewrite"),
    ("records that are there twice", lambda x: [*x[:4], *x[2:6], *x[4:]], "rewrite"),
    ("empty and strange lines between", lambda x: [*x[:3], b"\n", b"<<<<<<< HEAD\n", bytes(40) + b"\n", *x[3:]], "rewrite"),
    ("no last newline", lambda x: [*x[:-1], x[-1][:-1]], "finish"),
    ("a torn end", lambda x: [*x, x[-1][:99]], "cut"),
    ("CRLF in front of a torn end", lambda x: [*(i[:-1] + b"\r\n" for i in x[:3]), *x[3:], x[-1][:99]], "cut"),
]


@pytest.mark.parametrize(("name", "damage", "kind"), MENDED, ids=[m[0] for m in MENDED])
@pytest.mark.parametrize("segment_bytes", [1 << 26, 3_000])
def test_what_can_be_undone_is_offered_then_done_and_recorded(
    tmp_path: Path, name: str, damage: Damage, kind: str, segment_bytes: int
) -> None:
    """A dry run changes nothing; afterwards the log is whole, serves everything, and says what was done."""
    home, paths = made(tmp_path, segment_bytes)
    path = paths[-1] if kind in ("cut", "finish") or len(paths) == 1 else paths[1]
    lines = path.read_bytes().splitlines(keepends=True)
    if len(lines) < 12 and kind == "rewrite":
        damage = {"glued records": lambda x: [x[0][:-1], *x[1:]], "swapped records": lambda x: [x[1], x[0], *x[2:]]}.get(
            name, damage
        )
        damage = {"records that are there twice": lambda x: [*x[:2], *x]}.get(name, damage)
    sealed = files.is_sealed(path.stat().st_mode)
    os.chmod(path, 0o600)
    path.write_bytes(b"".join(damage(lines)))
    before = path.read_bytes()
    if sealed:
        os.chmod(path, 0o444)
    steps = plan(home)
    assert (
        (kind in [s.kind for s in steps] or name.startswith("CRLF in front"))
        and path.read_bytes() == before
        and not verify(home).ok
    )
    done = apply(home, now=NOW + 99)
    assert not done.failed and verify(home).ok and not plan(home), (done, verify(home).problems)
    assert texts(home) == [f"n{i}" for i in range(12)]
    assert files.is_sealed(path.stat().st_mode) == sealed
    recorded = [e["data"] for e in read_events(home) if e["kind"] == "log.recovered"]
    assert sum(r["state"] == "repaired" for r in recorded) == len(done.steps)  # an append may heal a torn end on the way
    for fact in recorded:
        if fact["bytes"]:
            kept = Path(home, "quarantine", fact["quarantine"]).read_bytes()
            assert len(kept) == fact["bytes"] and before.endswith(kept[-50:])


LOST: list[tuple[str, Damage]] = [
    ("a changed payload", lambda x: [*x[:3], x[3].replace(b'"n3"', b'"m3"'), *x[4:]]),
    ("a missing record", lambda x: x[:3] + x[4:]),
    ("NUL bytes in a record", lambda x: [*x[:3], x[3][:50] + bytes(40) + x[3][90:], *x[4:]]),
    ("a strange segment", lambda x: [b"hello\n", b"world\n"]),
]


@pytest.mark.parametrize(("name", "damage"), LOST, ids=[m[0] for m in LOST])
def test_what_is_lost_is_never_papered_over(tmp_path: Path, name: str, damage: Damage) -> None:
    """Nothing is offered for a lost record, not a byte changes, and verify goes on naming it."""
    home, (path,) = made(tmp_path)
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))
    before, kinds = path.read_bytes(), [p.kind for p in verify(home).problems]
    assert [s for s in plan(home) if s.kind == "rewrite"] == []
    apply(home, now=NOW)
    assert path.read_bytes() == before and [p.kind for p in verify(home).problems] == kinds


def test_what_can_be_undone_is_undone_beside_what_cannot(tmp_path: Path) -> None:
    """CRLF lines come right though another record is lost."""
    home, (path,) = made(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([x[:-1] + b"\r\n" for x in [*lines[:3], *lines[4:]]]))
    done = apply(home, now=NOW)
    assert [s.kind for s in done.steps] == ["rewrite"] and [p.kind for p in verify(home).problems] == ["gap"]
    assert b"\r" not in path.read_bytes()


def test_two_different_records_for_one_place_are_left_alone(tmp_path: Path) -> None:
    """A forked chain is not repair's to judge."""
    home, (path,) = made(tmp_path)
    common = path.read_bytes()
    LogStore(home).append([note("one"), note("two")], now=NOW)
    first = path.read_bytes()
    path.write_bytes(common)
    LogStore(home).append([note("another one")], now=NOW)
    fork = path.read_bytes()
    path.write_bytes(first)
    LogStore(home).append([note("later")], now=NOW)
    path.write_bytes(fork + path.read_bytes()[len(common) :])
    before = path.read_bytes()
    apply(home, now=NOW)
    assert path.read_bytes() == before and not verify(home).ok


def test_strangers_and_leftovers_go(tmp_path: Path) -> None:
    """Foreign files move to quarantine with their contents; what a stopped process had begun is removed once it is old."""
    home, (path,) = made(tmp_path)
    path.with_name("notes.txt").write_text("keep me")
    Path(home, "log", "stray").write_text("me too")
    old, new = Path(home, "spool", "a.spool.1-1.new"), Path(home, "spool", "b.spool.1-1.new")
    old.write_text("x")
    new.write_text("x")
    os.utime(old, (1, 1))
    assert [s.kind for s in plan(home)] == ["move", "move", "remove"]
    apply(home, now=NOW)
    kept = {p.read_text() for p in Path(home, "quarantine").iterdir()}
    assert kept == {"keep me", "me too"} and not old.exists() and new.exists() and verify(home).ok


def test_a_whole_log_needs_nothing(tmp_path: Path) -> None:
    """No step, no event."""
    home, _ = made(tmp_path)
    assert plan(home) == [] and apply(home, now=NOW).steps == [] and len(list(read_events(home))) == 12


def test_a_repair_that_is_cut_short_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever call fails, the segment is as it was or as it should be, and nothing is lost."""
    real = {
        name: getattr(files, name) for name in ("replace", "open_append", "sync", "sync_dir", "sync_data", "seal_file", "lock")
    }
    for n in range(1, 40):
        home, paths = made(tmp_path / str(n), 3_000)
        os.chmod(paths[0], 0o600)
        paths[0].write_bytes(paths[0].read_bytes().replace(b"\n", b"\r\n"))
        os.chmod(paths[0], 0o444)
        left = [n]

        def failing(name: str, left: list[int]) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] == 0:
                    raise OSError(5, "broken")
                return real[name](*args, **kwargs)

            return call

        for name in real:
            monkeypatch.setattr(files, name, failing(name, left))
        apply(home, now=NOW)
        monkeypatch.undo()
        assert texts(home) == [f"n{i}" for i in range(12)]
        apply(home, now=NOW)
        assert verify(home).ok and texts(home) == [f"n{i}" for i in range(12)]
        if left[0] > 0:
            break
    assert left[0] > 0
