"""Claims: the first has it, for ten seconds, whichever process it is."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_logs import files
from projectmem_projections import claims
from projectmem_projections.errors import ProjectionError, SnapshotBusy

from tests.patience import PATIENCE

NOW = 1_800_000_000_000_000
LATER = NOW + claims.CLAIM_US
WAIT_MS = 10_000


def _claimed(path: str, session: str, names: list[str], now: int = NOW) -> list[str]:
    return claims.claim(path, session, names, now, WAIT_MS)


def test_the_first_has_it_until_it_is_old_or_given_back(tmp_path: Path) -> None:
    """By session and name; what was not claimed is not given back to anybody."""
    path = str(tmp_path / "gate.sqlite")
    assert _claimed(path, "s", ["a", "b", "a"]) == ["a", "b"]
    assert _claimed(path, "s", ["a", "b", "c"], LATER) == ["c"]
    assert _claimed(path, "t", ["a"]) == ["a"]
    assert _claimed(path, "s", ["a"], LATER + 1) == ["a"]
    claims.claim(path, "s", ["a", "never"], 0, WAIT_MS)
    assert _claimed(path, "s", ["a", "never"]) == ["a", "never"]
    assert _claimed(path, "sa", [""]) == [""], "no other way to say (s, a)"
    assert os.stat(claims.path_of(path)).st_mode & 0o777 == 0o600 or sys.platform == "win32"


def test_a_claim_of_a_clock_that_was_set_back_does_not_count(tmp_path: Path) -> None:
    """It would hold until that time comes again."""
    path = str(tmp_path / "gate.sqlite")
    assert _claimed(path, "s", ["a"], NOW + 3_600_000_000) == ["a"]
    assert _claimed(path, "s", ["a"]) == ["a"]
    assert _claimed(path, "s", ["a"], NOW - 1) == [], "two hooks read the clock one after the other"


@given(names=st.lists(st.text(max_size=3), unique=True, max_size=claims.WAYS))
def test_a_claim_that_others_share_a_slot_with_is_kept(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    """As many as there are ways in one set; of more, the oldest gives way."""
    path = str(tmp_path_factory.mktemp("claims") / "gate.sqlite")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "SETS", 1)
        assert _claimed(path, "s", names) == names
        assert _claimed(path, "s", names) == []
        more = [f"more {n}" for n in range(claims.WAYS)]
        assert _claimed(path, "s", more, NOW + 1) == more
        assert _claimed(path, "s", more, NOW + 1) == []
        assert _claimed(path, "s", names, NOW + 2) == names


def _race(path: str, start: object, out: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    out.put(_claimed(path, "s", [f"n{n}" for n in range(50)]))  # type: ignore[attr-defined]


@pytest.mark.skipif(sys.platform == "win32", reason="processes by fork")
def test_of_many_processes_one_has_each(tmp_path: Path) -> None:
    """Every name is won once."""
    context = multiprocessing.get_context("fork")
    start, out = context.Event(), context.Queue()
    running = [context.Process(target=_race, args=(str(tmp_path / "x"), start, out)) for _ in range(4)]
    for process in running:
        process.start()
    start.set()
    won = [name for _ in running for name in out.get(timeout=PATIENCE)]
    for process in running:
        process.join(60)
    assert sorted(won) == sorted(f"n{n}" for n in range(50))


def test_what_is_in_the_way_is_said(tmp_path: Path) -> None:
    """A lock that is held, a folder that is gone, damage of any kind: an error of ours, or claims that start anew."""
    path = str(tmp_path / "gate.sqlite")
    assert _claimed(path, "s", ["a"]) == ["a"]
    fd = os.open(claims.path_of(path), os.O_RDWR)
    assert files.grip(fd, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "unlock", lambda fd: pytest.fail("it is not locked: Windows would say so instead"))
        with pytest.raises(SnapshotBusy, match="locked by another process"):
            claims.claim(path, "s", ["b"], NOW, 1)
    files.unlock(fd)
    with pytest.raises(ProjectionError, match="cannot be used"):
        _claimed(str(tmp_path / "gone" / "gate.sqlite"), "s", ["a"])
    Path(claims.path_of(path)).write_bytes(b"\xff" * 100)
    assert _claimed(path, "s", ["a"]) in ([], ["a"])
    Path(claims.path_of(path)).unlink()
    assert _claimed(path, "s", ["a"]) == ["a"]
