"""Generations of recall are published whole or not at all, and the hook's way in stays light."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from projectmem_logs import files
from projectmem_logs.store import LogStore, init_home
from projectmem_projections import published, recollection
from projectmem_projections.following import Follower
from projectmem_projections.glance import Glance, open_generation

NOW = 1_800_000_000_000_000
REPO = Path(__file__).resolve().parents[2]
HEAVY = {
    "numpy",
    "faiss",
    "duckdb",
    "pydantic",
    "typing",
    "dataclasses",
    "logging",
    "subprocess",
    "pathlib",
    "hashlib",
    "asyncio",
    "orjson",
}


def build(text: str):  # type: ignore[no-untyped-def]
    return lambda target: Path(target, "a").write_text(text)


def note(text: str) -> dict[str, object]:
    actor = {"session": "s", "agent": "", "harness": "h", "model": "m", "origin": "agent"}
    return {"kind": "note.recorded", "at": NOW, "actor": actor, "causes": [], "data": {"text": text, "tags": []}}


def test_nothing_is_current_before_the_first_and_the_previous_one_is_kept(tmp_path: Path) -> None:
    folder = str(tmp_path / "g")
    assert published.current(folder) is None
    made = [published.publish(folder, build(str(i))) for i in range(3)]
    assert published.current(folder) == made[2]
    assert Path(made[2] or "", "a").read_text() == "2"
    assert published.generations(folder) == [os.path.basename(made[1] or ""), os.path.basename(made[2] or "")]
    assert oct(Path(made[2] or "", "a").stat().st_mode & 0o777) == "0o600"


def test_a_build_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    folder = str(tmp_path)
    first = published.publish(folder, build("1"))

    def broken(target: str) -> None:
        Path(target, "a").write_text("half")
        raise RuntimeError("no space")

    with pytest.raises(RuntimeError, match="no space"):
        published.publish(folder, broken)
    assert published.current(folder) == first
    assert len(published.generations(folder)) == 1


def test_what_a_dead_builder_left_is_never_served_and_removed_by_the_next(tmp_path: Path) -> None:
    folder = str(tmp_path)
    first = published.publish(folder, build("1"))
    dead = tmp_path / "gen-00000002"
    dead.mkdir()
    (dead / "a").write_text("half")
    assert published.current(folder) == first
    second = published.publish(folder, build("2"))
    assert published.current(folder) == second
    assert Path(second or "", "a").read_text() == "2"
    assert sorted(p.name for p in (Path(second or "")).iterdir()) == ["a"]


def test_one_builder_at_a_time(tmp_path: Path) -> None:
    lock = files.lock(str(tmp_path / published.LOCK), 0)
    assert lock is not None
    assert published.publish(str(tmp_path), build("x")) is None
    files.unlock(lock)
    assert published.publish(str(tmp_path), build("x"))


@pytest.mark.parametrize("pointer", ["", "gen-00000009", "../../etc", "gen-1/../..", "\xff\xfe"])
def test_a_pointer_to_nothing_or_elsewhere_is_no_generation(tmp_path: Path, pointer: str) -> None:
    (tmp_path / published.POINTER).write_text(pointer)
    assert published.current(str(tmp_path)) is None


def test_discarding_removes_every_generation(tmp_path: Path) -> None:
    for i in range(3):
        published.publish(str(tmp_path), build(str(i)))
    published.discard(str(tmp_path))
    assert published.generations(str(tmp_path)) == []
    assert published.current(str(tmp_path)) is None


def test_a_generation_of_another_or_a_shortened_log_is_not_used(tmp_path: Path) -> None:
    home = str(tmp_path / "log")
    init_home(home, NOW)
    LogStore(home).append([note("first")], now=NOW)
    kept = {p: p.read_bytes() for p in Path(home, "log").rglob("*.jsonl")}
    LogStore(home).append([note("second, cut off later")], now=NOW)
    recollection.refresh(home, None)
    generation = recollection.current(home)
    assert open_generation(home, generation).corpus is not None
    for path, data in kept.items():
        path.write_bytes(data)
    opened = open_generation(home, generation)
    assert opened.corpus is None
    assert opened.damaged
    assert [d.text for d in opened.tail.documents()] == ["first"]


def test_a_log_too_long_to_read_at_once_is_said_not_hidden(tmp_path: Path) -> None:
    home = str(tmp_path / "log")
    init_home(home, NOW)
    LogStore(home).append([note("first")], now=NOW)
    glance = Glance(home, None, bytes_max=10)
    assert glance.newer == []
    assert glance.unread and any("projectmem summary" in n for n in glance.notes)


def test_following_reads_each_event_once_and_knows_when_it_is_behind(tmp_path: Path) -> None:
    home = str(tmp_path / "log")
    init_home(home, NOW)
    LogStore(home).append([note("1"), note("2")], now=NOW)
    follower = Follower(home)
    assert [e["data"]["text"] for e in follower] == ["1", "2"]
    assert not follower.behind()
    assert list(follower) == []
    LogStore(home).append([note("3")], now=NOW)
    assert follower.behind()
    assert [e["data"]["text"] for e in Follower(home, follower.position)] == ["3"]


def test_the_hooks_way_in_imports_nothing_heavy() -> None:
    paths = [str(REPO), *(str(REPO / name) for name in ("logs", "gate", "projections"))]
    program = f"import sys; sys.path[:0] = {paths!r}; before = set(sys.modules)\n"
    program += "import projectmem.summary, projectmem.recall_light\nprint(*(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "projectmem_projections.glance" in loaded
    assert not loaded & HEAVY
