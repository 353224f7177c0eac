"""Processes that are started in the background: none stays behind as a zombie of one that goes on, no other child is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from projectmem_projections import generations, glance, published, refold

from projectmem import writing
from projectmem.hook import background, draining, meanwhile, refolding, spooled, state
from projectmem.place import Place
from tests.patience import PATIENCE
from tests.places import new_place

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="without processes that leave zombies")


def _ended(pid: int) -> bool:
    """Whether the child has ended; it stays to be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _wait(pid: int) -> None:
    until = time.monotonic() + PATIENCE
    while not _ended(pid):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_what_was_started_and_has_ended_is_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the next one is started; a child of the program's own keeps its status."""
    monkeypatch.setattr(background, "_children", [])
    own = subprocess.Popen([sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"])
    background.start("projectmem.hook.draining", "/nowhere")
    (first,) = background._children
    _wait(first)
    _wait(own.pid)
    background.start("projectmem.hook.draining", "/nowhere")
    assert first not in background._children
    with pytest.raises(ChildProcessError):
        os.waitpid(first, os.WNOHANG)
    (second,) = background._children
    _wait(second)
    background.reap()
    assert background._children == [] and own.wait() == 3


def test_whoever_records_something_reaps_what_it_started_earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An MCP server that found the log locked once starts nothing for hours."""
    monkeypatch.setattr(background, "_children", [])
    place = new_place(tmp_path / "project", 1)
    background.start("projectmem.hook.draining", "/nowhere")
    _wait(background._children[0])
    writing.append(place, [{"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": "x", "tags": []}}], 2)
    assert background._children == []


def test_a_child_that_somebody_else_waited_for_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reaps all its children, or a fork, which has none."""
    monkeypatch.setattr(background, "_children", [])
    background.start("projectmem.hook.draining", "/nowhere")
    os.waitpid(background._children[0], 0)
    background.reap()
    assert background._children == []


def test_a_log_that_was_removed_meanwhile_does_not_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by whoever wants something brought in nor by the process that should do it."""
    monkeypatch.setattr(background, "_children", [])
    home = tmp_path / "home"
    spooled.soon(str(home))
    draining.main(str(home))
    assert background._children == [] and not home.exists()
    home.mkdir()
    assert background.start_alone(spooled.lock_path(str(home)), "projectmem.hook.draining", str(home))
    _wait(background._children[0])
    background.reap()


@pytest.mark.parametrize(
    "make",
    [
        lambda place: state.open_state(place),
        lambda place: writing._fold(place.home, [], None, {}, {}),
        lambda place: meanwhile._opened(refolding.meantime_path(place.home)),
        lambda place: refold.rebuild_snapshot(place.home),
        lambda place: generations.build(place.home),
        lambda place: published.publish(glance.folder(place.home), lambda _: None),
    ],
    ids=["snapshot", "fold", "meantime", "refold", "summaries", "recall"],
)
def test_nor_by_whoever_makes_what_can_be_folded_again(tmp_path: Path, make: Callable[[Place], object]) -> None:
    """Each makes its folder within the log's, and never that itself."""
    place = new_place(tmp_path / "project", 1)
    make(place)
    shutil.rmtree(place.home)
    with pytest.raises(FileNotFoundError):
        make(place)
    assert not os.path.exists(place.home)
