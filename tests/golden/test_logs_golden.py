"""A log of every released format must verify, hold every kind, and replay to the same digest for ever."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from projectmem_logs.kinds import KINDS, upcast, validate
from projectmem_logs.reader import Problem, read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

REPO = Path(__file__).resolve().parents[2]
VERSIONS = sorted(p.name for p in (REPO / "logs" / "golden").glob("v*"))


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_golden_log", Path(__file__).with_name("make_golden_log.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


GENERATOR = _generator()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_released_log_verifies_and_replays_to_its_digest(version: str) -> None:
    """No problem, every kind of the time, one erased event, and the recorded digest."""
    home = str(REPO / "logs" / "golden" / version)
    report = verify(home)
    assert report.ok and report.problems == [] and sum(s.erased for s in report.streams) == 1
    problems: list[Problem] = []
    events = list(read_events(home, problems=problems))
    assert not problems and len(events) == report.events
    assert GENERATOR.digest(home) == (Path(home) / "digest").read_text().strip()
    for event in events:
        if "data" in event:
            validate(event["kind"], upcast(event["kind"], event["data"]))


def test_the_newest_golden_log_has_every_kind() -> None:
    """A kind that is added needs a sample, and so a new golden log when it is released."""
    home = str(REPO / "logs" / "golden" / VERSIONS[-1])
    assert {e["kind"] for e in read_events(home)} == {*KINDS, "future.kind"}


def test_the_generator_still_writes_the_newest_log_byte_for_byte(tmp_path: Path) -> None:
    """Today's writer makes exactly the released bytes."""
    GENERATOR.main(tmp_path / "new")
    golden = REPO / "logs" / "golden" / VERSIONS[-1]
    files = [p.relative_to(golden) for p in golden.rglob("*") if p.is_file()]
    assert files and all((tmp_path / "new" / p).read_bytes() == (golden / p).read_bytes() for p in files)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_log_can_be_written_on(tmp_path: Path, version: str) -> None:
    """init completes an old folder without touching its log, and appending works."""
    home = tmp_path / "home"
    shutil.copytree(REPO / "logs" / "golden" / version, home)
    init_home(str(home), 1)
    LogStore(str(home)).append(
        [{"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": "x", "tags": []}}], now=1
    )
    assert verify(str(home)).ok
