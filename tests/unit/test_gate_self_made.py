"""What a call writes itself before it runs is the same at every try, whatever became of the file in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from projectmem.backtest.run import run_backtest
from projectmem.hook.facts import Disk
from projectmem.hook.marks import ABSENT
from projectmem.place import Place

SCRIPT = "cat <<EOF > t.py\nimport re\nre.compile('\\g')\nEOF\npython3 t.py"


def call(n: int, tool: str, given: dict[str, Any], code: int = 0, out: str = "") -> dict[str, Any]:
    return {
        "traj_id": "a", "step": n, "ts": f"2026-01-01T00:0{n}:00Z", "tool": tool, "input": given, "output_excerpt": out,
        "exit_code": code, "is_error": bool(code), "error_kind": "exit" if code else None, "cwd": "/w", "harness": "h",
        "source": "s", "turn": n,
    }  # fmt: skip


def verdict(tmp_path: Path, *steps: dict[str, Any]) -> str:
    """Of the last step."""
    lines, out = tmp_path / "s.jsonl", tmp_path / "v.jsonl"
    lines.write_text("".join(json.dumps(s) + "\n" for s in steps))
    run_backtest([lines], "steps", verdicts=out)
    last: dict[str, Any] = json.loads(out.read_text().splitlines()[-1])
    return str(last["verdict"])


@pytest.mark.parametrize(
    ("again", "said"),
    [
        (SCRIPT, "warn"),
        ("python3 t.py", "allow"),  # here the edit counts
        (SCRIPT.replace("g'", "h'"), "allow"),  # another content is another action
        ("cat <<EOF >> t.py\nimport re\nre.compile('\\g')\nEOF\npython3 t.py", "allow"),
    ],
)
def test_an_edit_of_a_file_that_the_call_writes_anew_does_not_clear_its_failure(tmp_path: Path, again: str, said: str) -> None:
    """The edit is undone by the call itself."""
    first = SCRIPT if "<<" in again else again
    first = again if ">> t.py" in again else first
    error = 'Traceback (most recent call last):\n  File "t.py", line 2\nre.error: bad escape \\g at position 0'
    edit = call(2, "Write", {"file_path": "/w/t.py", "content": "print(1)"})
    steps = [call(1, "Bash", {"command": first}, 1, error), edit, call(3, "Bash", {"command": again}, 1, error)]
    assert verdict(tmp_path, *steps) == said


def test_the_disk_says_which_missing_files_are_still_missing(tmp_path: Path) -> None:
    """Whatever the log shows besides."""
    (tmp_path / "b.txt").write_text("x")
    place = Place(str(tmp_path), str(tmp_path / ".home"), "", "", "")
    recorded = {"files": {"a.txt": ABSENT, "b.txt": ABSENT, "c.txt": "0123456789abcdef"}}
    assert Disk(place).compare(recorded)["absent"] == ["a.txt"]
    (tmp_path / "a.txt").write_text("x")
    assert "absent" not in Disk(place).compare(recorded)
