"""Logs in every damaged form: told apart, served and repaired the same way for ever."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))  # tests/ is no package: its shared modules lie beside it

import make_golden_damage as golden
import make_golden_log as base

FOLDER = Path(__file__).resolve().parents[2] / "logs" / "golden" / "damaged"
VERDICTS = json.loads((FOLDER / "verdicts.json").read_text())
BATCHES = [(1,), (2,), (3, 4), (5,), (6, 7), (8,)]


@pytest.mark.parametrize("much", [0, 1 << 30])
@pytest.mark.parametrize("form", sorted(VERDICTS))
def test_a_damaged_log_is_judged_as_it_always_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, much: int) -> None:
    """The tail's state, what verify names and where, what is served (by the fast and the careful way), what repair offers,
    and what is left after it."""
    monkeypatch.setattr("projectmem_logs.reader.MUCH", much)
    assert golden.verdict(tmp_path, (FOLDER / f"{form}.segment").read_bytes()) == VERDICTS[form]


@pytest.mark.parametrize("form", sorted(VERDICTS))
def test_what_is_served_is_whole_batches_and_repair_only_adds(form: str) -> None:
    """No half batch is ever read; after a repair at least as much is served, and nothing is clean that was not whole."""
    v = VERDICTS[form]
    for served in (v["read"], v["read after"]):
        assert all(set(batch) <= set(served) or not set(batch) & set(served) for batch in BATCHES)
        assert served == sorted(set(served))
    assert set(v["read"]) <= set(v["read after"])
    assert bool(v["verify"]) == (form not in ("whole", "empty-file")) and (v["left"] == [] or len(v["read after"]) < 8)


def test_today_s_writer_damages_the_same_bytes() -> None:
    """The forms are made from the golden log's own lines."""
    made = golden.forms(base.stream(golden.STREAM, base.SAMPLES, [1, 1, 2, 1, 2, 1], golden.NOW))
    assert made.keys() == VERDICTS.keys()
    assert all((FOLDER / f"{name}.segment").read_bytes() == data for name, data in made.items())
