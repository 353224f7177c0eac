"""A resident process parses a call once, and again as soon as the disk answers otherwise."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_gate.identify import identify
from projectmem_logs.home import init_home

from projectmem import place
from projectmem.serve import remembered

real = place.find
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


def test_where_a_log_is_is_seen_anew_when_git_s_folder_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once nothing has changed for a while the folders are not looked at again; a log that comes or goes, a repository that is
    none any more or another's work tree: always what a process that has just started says."""
    monkeypatch.setattr(remembered, "SETTLED_NS", 0)
    root, looked = tmp_path / "repo", []

    def counted(cwd: str) -> Any:
        looked.append(cwd)
        return real(cwd, {})

    monkeypatch.setattr(place, "find", counted)
    monkeypatch.delenv(place.HOME_VARIABLE, raising=False)

    def said(cwd: Path) -> Any:
        found = remembered.find(str(cwd))
        return found and (found.root, found.home, found.worktree, found.git_dir, found.common_dir, found.project)

    def alike() -> int:
        looked.clear()
        for cwd in (root, root / "src"):
            for _ in range(2):
                fresh = real(str(cwd), {})
                want = fresh and (fresh.root, fresh.home, fresh.worktree, fresh.git_dir, fresh.common_dir, fresh.project)
                assert said(cwd) == want
        return len([cwd for cwd in looked if cwd == str(root)])

    (root / "src").mkdir(parents=True)
    assert alike() == 2, "no repository"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert alike() == 2, "no log"
    init_home(str(root / ".git" / "projectmem"), 1)
    assert [alike(), alike()] == [1, 0]
    (root / ".git" / "projectmem" / "project.json").write_text('{"created":1,"format":1,"project":"another"}')
    assert [alike(), alike()] == [1, 0]
    (root / ".git" / "commondir").write_text("../elsewhere")
    assert alike() == 2
    (root / ".git" / "commondir").unlink()
    assert [alike(), alike()] == [1, 0]
    (root / ".git" / "HEAD").rename(root / ".git" / "HEAD.old")
    assert alike() == 2
    (root / ".git" / "HEAD.old").rename(root / ".git" / "HEAD")
    assert [alike(), alike()] == [1, 0]
    (root / ".git" / "projectmem" / "project.json").unlink()
    assert alike() == 2
