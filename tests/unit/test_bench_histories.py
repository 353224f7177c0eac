"""The histories that imports are measured with: every call that is written is read, as its harness would have told it."""

from __future__ import annotations

from pathlib import Path

import pytest

from projectmem.importers.backfill import backfill
from projectmem.importers.reports import reader
from projectmem.place import Place
from tests.bench.histories import BEGAN_MS, Step
from tests.bench.wrapping import FORMS, written

NOW = 1_796_100_000_000_000
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch\n"
SHELL_ONLY = ("mini-swe-agent", "swe-agent")


def _steps(root: str) -> list[Step]:
    rows = [
        ("shell", {"command": "make build"}, "make: *** [build] Error 2", 2),
        ("shell", {"command": "git status"}, "On branch main", 0),
        ("read", {"path": f"{root}/a.py"}, "x = 1", 0),
        ("search", {"pattern": "x", "path": root}, "a.py:1:x = 1", 0),
        ("edit", {"path": f"{root}/a.py", "old": "x", "new": "y"}, "done", 0),
        ("write", {"path": f"{root}/b.py", "content": "z"}, "done", 0),
        ("patch", {"patch": PATCH, "path": "a.py"}, "Success", 0),
    ]
    return [
        Step(f"c{n}", f"s{n // 4}", kind, given, output, code if kind == "shell" else None, code > 0, BEGAN_MS + n * 20_000)
        for n, (kind, given, output, code) in enumerate(rows)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_every_call_of_a_history_is_read(place: Place, tmp_path: Path, form: str) -> None:
    """None is passed over, none is damaged, and the one that failed is known to have failed."""
    files = written(form, tmp_path / "kept", _steps(place.root), place.root)
    name = form.partition(",")[0]
    read = reader(name, place.root, "")
    counts = backfill(place, now=NOW, sources=[(path, read) for path in files])
    calls = 4 if name in SHELL_ONLY else 5 if name == "codex" else 7
    assert (counts.recorded, counts.failed, counts.damaged, counts.elsewhere) == (calls, 1, 0, 0)
