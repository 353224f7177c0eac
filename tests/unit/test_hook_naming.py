"""What the disk says about names, and that recording and checking ask the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from projectmem.hook import naming
from projectmem.hook.state import identified
from projectmem.place import locate


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, a linked work tree beside it, and a link to a folder in it."""
    repo = tmp_path / "Acme"
    (repo / "releases/9").mkdir(parents=True)
    (repo / "releases/9/a.py").write_text("x")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", str(repo)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["worktree", "add", "-q", "../feat"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    (repo / "current").symlink_to("releases/9")
    return repo


def key(folder: Path, command: str) -> str:
    """The identity of a command in a folder, as the hook and `check` see it."""
    place = locate(str(folder))
    assert place is not None
    place.home = str(folder)  # only the redaction key is looked for there
    call = {"tool": "Bash", "input": {"command": command}, "cwd": str(folder), "harness": "t", "redacted": True}
    return identified(place, call).key


def test_other_work_trees_are_the_same_project(repository: Path) -> None:
    """From either one, by either one's path."""
    there = repository.parent / "feat"
    want = key(repository, "pytest releases/9/a.py")
    assert key(there, "pytest releases/9/a.py") == want
    assert key(repository, f"cd {there} && pytest releases/9/a.py") == want
    assert key(there, f"pytest {repository}/releases/9/a.py") == want
    assert key(repository, f"pytest {repository.parent}/other/releases/9/a.py") != want


def test_a_work_tree_that_comes_goes_or_is_moved_is_seen(repository: Path) -> None:
    """In a process that goes on: at once, and also where the list of them is old."""
    git = ["git", "-C", str(repository), "worktree"]
    want = key(repository, "pytest releases/9/a.py")
    for words, name in (
        (["add", "-q", "--detach", "../more"], "more"),
        (["move", "../more", "../moved"], "moved"),
        (["move", "../moved", "../again"], "again"),
    ):
        assert key(repository, f"pytest {repository.parent}/{name}/releases/9/a.py") != want
        for path in (repository / ".git/worktrees", *(repository / ".git/worktrees").glob("*/gitdir")):
            os.utime(path, (1, 1))  # long ago
        key(repository, "make")  # read, and remembered
        subprocess.run([*git, *words], check=True, capture_output=True)
        assert key(repository, f"pytest {repository.parent}/{name}/releases/9/a.py") == want
    subprocess.run([*git, "remove", "../again"], check=True, capture_output=True)
    assert key(repository, f"pytest {repository.parent}/again/releases/9/a.py") != want


def test_linked_folders_are_the_folders_they_lead_to(repository: Path) -> None:
    """By path, by `cd`, and by the path of a file in them."""
    assert key(repository, "cd current && make") == key(repository, "cd releases/9 && make")
    assert key(repository, "pytest current/a.py") == key(repository, "pytest releases/9/a.py")
    assert key(repository, "pytest current/b.py") != key(repository, "pytest releases/8/b.py")


def test_what_cannot_be_read_is_no_work_tree(tmp_path: Path) -> None:
    """Damage in git's folder costs nothing but the equality."""
    (tmp_path / ".git/worktrees/gone").mkdir(parents=True)
    (tmp_path / ".git/worktrees/odd").mkdir()
    (tmp_path / ".git/worktrees/odd/gitdir").write_bytes(b"\xff relative")
    assert naming.worktrees(str(tmp_path), str(tmp_path / ".git")) == []
    assert naming.worktrees("/x", "") == []


def test_case_is_probed_not_assumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By asking for the root in the other case."""
    folder = tmp_path / "Project"
    folder.mkdir()
    twin = Path(str(folder).swapcase())
    assert naming.folds_case(str(folder)) == twin.exists()
    monkeypatch.setattr(os.path, "samefile", lambda a, b: a.lower() == b.lower())
    assert naming.folds_case(str(folder))
    assert not naming.folds_case("/1/2")
