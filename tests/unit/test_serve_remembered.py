"""A resident process parses a call once, and again as soon as the disk answers otherwise."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_gate.identify import identify

from projectmem.serve import remembered

COMMANDS = [
    "npm run build",
    "cd src && make 2>&1 | tail -5",
    "cat <<'E' > a.txt\nx\nE",
    "rm -rf ./a b/../c",
    "echo 'half",
    "timeout 5 make &",
]


@pytest.fixture(autouse=True)
def _forgets() -> Iterator[None]:
    remembered.forget()
    yield
    remembered.forget()


def _names(root: Path, **more: Any) -> dict[str, Any]:
    fixed = {"root": str(root), "cwd": str(root), "harness": "claude-code", "worktrees": [], "fold_case": False}
    return {**fixed, "fold_unicode": False, "resolve": os.path.realpath, **more}


def test_asked_twice_it_is_what_a_parser_says_and_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of commands, edits and what no one understands; another folder, tool, move or root is another question."""
    parsed = []

    def counted(*args: Any, **names: Any) -> Any:
        parsed.append(args)
        return identify(*args, **names)

    monkeypatch.setattr(remembered, "identify", counted)
    inputs: list[tuple[str, Any]] = [("Bash", {"command": text}) for text in COMMANDS]
    inputs += [("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}), ("Odd", ["\ud800"]), ("Odd", {"n": 2**70})]
    kinds = [_names(tmp_path), _names(tmp_path, cwd=str(tmp_path / "src")), _names(tmp_path, renames={"b.py": "a.py"})]
    for names in kinds:
        for tool, given in inputs:
            for _ in range(3):
                assert remembered.identity(tool, given, **names) == identify(tool, given, **names)
    odd = sum(1 for tool, _ in inputs if tool == "Odd")
    assert len(parsed) == len(kinds) * (len(inputs) - odd + 3 * odd)


def test_a_link_that_leads_elsewhere_is_followed_again(tmp_path: Path) -> None:
    """The key of a call goes by real names: a link that is set anew makes another action of the same words."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.py").write_text("")
    link = tmp_path / "link"
    link.symlink_to("one")
    given = {"file_path": str(link / "t.py"), "content": "x"}
    before = remembered.identity("Write", given, **_names(tmp_path))
    link.unlink()
    link.symlink_to("two")
    after = remembered.identity("Write", given, **_names(tmp_path))
    assert [before.parts[0].paths, after.parts[0].paths] == [("one/t.py",), ("two/t.py",)]
    assert after == identify("Write", given, **_names(tmp_path))


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least lately asked go first; what is long is not kept at all."""
    monkeypatch.setattr(remembered, "ACTIONS_MAX", 4)
    for n in range(9):
        remembered.identity("Bash", {"command": "make first"}, **_names(tmp_path))
        remembered.identity("Bash", {"command": f"make t{n}"}, **_names(tmp_path))
    remembered.identity("Bash", {"command": "x" * remembered.INPUT_MAX}, **_names(tmp_path))
    kept = [json.loads(key[1])["command"] for key in remembered._actions]
    assert kept == ["make t6", "make t7", "make first", "make t8"]
