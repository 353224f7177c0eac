"""The README says of each harness what its adapter really does."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from projectmem.hook.payload import ADAPTERS
from projectmem.setup.harnesses import HARNESSES
from projectmem.setup.trial_payloads import SCRIPTS

SOURCE = Path(__file__).resolve().parents[1] / "harness_matrix.py"


def test_the_readme_s_table_is_what_the_adapters_do() -> None:
    """`make matrix` writes it."""
    spec = importlib.util.spec_from_file_location("harness_matrix", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    matrix = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(matrix)
    text = matrix.README.read_text(encoding="utf-8")
    assert matrix.written(text) == text, "run `make matrix`"
    assert matrix.table().count("\n") == len(HARNESSES) + 3


def test_every_harness_has_an_adapter_a_setup_and_a_trial() -> None:
    """The three tables name the same harnesses."""
    assert set(ADAPTERS) == set(HARNESSES) == set(SCRIPTS)
    assert all(harness.proof for harness in HARNESSES.values())
