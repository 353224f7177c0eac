"""Finding a project and its log from git's files alone agrees with git, and never needs a folder to exist."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from projectmem_logs.home import init_home
from projectmem_logs.origin import accept

from projectmem import place
from projectmem.place import Place

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def _git(*args: str, cwd: Path) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", *who, *args], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "repo"
    folder.mkdir()
    _git("init", "-q", "-b", "main", cwd=folder)
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "a.txt").write_text("a\n")
    _git("add", ".", cwd=folder)
    _git("commit", "-qm", "one", cwd=folder)
    return folder


def _located(folder: Path) -> Place:
    found = place.locate(str(folder), {})
    assert found is not None
    return found


@needs_git
@pytest.mark.parametrize("inside", [".", "sub", "sub/deep", "sub/gone/already"])
def test_locate_gives_the_top_folder_from_anywhere_inside(repo: Path, inside: str) -> None:
    """A subfolder, also one that was deleted, belongs to the work tree around it."""
    found = _located(repo / inside)
    assert found.root == str(repo)
    assert found.home == str(repo / ".git" / "projectmem")
    assert found.worktree == ""


@needs_git
def test_worktrees_share_the_log_and_have_their_own_root(repo: Path, tmp_path: Path) -> None:
    """A linked worktree's root is its own folder, its log the main repository's."""
    _git("worktree", "add", "-q", str(tmp_path / "wt"), cwd=repo)
    found = _located(tmp_path / "wt" / "sub")
    assert found.root == str(tmp_path / "wt")
    assert found.home == _located(repo).home
    assert found.worktree == "wt"
    assert Path(found.common_dir) == Path(_git("rev-parse", "--path-format=absolute", "--git-common-dir", cwd=tmp_path / "wt"))


@needs_git
def test_bare_repository_and_its_worktree(repo: Path, tmp_path: Path) -> None:
    """A bare repository holds the log itself, also for its worktrees."""
    bare = tmp_path / "bare.git"
    _git("clone", "-q", "--bare", str(repo), str(bare), cwd=tmp_path)
    _git("worktree", "add", "-q", str(tmp_path / "wt"), cwd=bare)
    assert _located(bare).home == str(bare / "projectmem")
    assert _located(bare / "refs").home == str(bare / "projectmem")
    assert _located(tmp_path / "wt").home == str(bare / "projectmem")


@needs_git
def test_submodule_is_a_repository_of_its_own(repo: Path, tmp_path: Path) -> None:
    """A submodule's log lies in its own git folder under the outer one."""
    outer = tmp_path / "outer"
    outer.mkdir()
    _git("init", "-q", cwd=outer)
    _git("submodule", "add", "-q", str(repo), "lib", cwd=outer)
    found = _located(outer / "lib" / "sub")
    assert found.root == str(outer / "lib")
    assert found.home == str(outer / ".git" / "modules" / "lib" / "projectmem")
    assert found.worktree == ""


@needs_git
def test_inside_the_git_folder_is_still_the_project(repo: Path) -> None:
    """A command run inside .git belongs to the work tree around it."""
    assert _located(repo / ".git" / "refs").home == str(repo / ".git" / "projectmem")


def test_outside_git_only_a_log_folder_makes_a_project(tmp_path: Path) -> None:
    """Without git, the nearest parent with a log's folder counts; without that there is no project."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert place.locate(str(tmp_path / "a" / "b"), {}) is None
    (tmp_path / "a" / place.FOLDER_OUTSIDE_GIT).mkdir()
    assert _located(tmp_path / "a" / "b").root == str(tmp_path / "a")


def test_empty_git_folder_is_not_a_repository(tmp_path: Path) -> None:
    """A stray `.git` folder without a HEAD is passed over, as git does."""
    (tmp_path / "a" / ".git").mkdir(parents=True)
    assert place.locate(str(tmp_path / "a"), {}) is None


@pytest.mark.parametrize("pointer", [b"", b"gitdir: /nowhere/at/all", b"nonsense", b"\xff\xfe\x00", b"gitdir:"])
def test_broken_git_pointer_is_no_crash(tmp_path: Path, pointer: bytes) -> None:
    """Whatever stands in a `.git` file, looking for a project does not raise."""
    (tmp_path / ".git").write_bytes(pointer)
    place.locate(str(tmp_path), {})


def test_override_moves_the_log_and_keeps_the_root(tmp_path: Path) -> None:
    """PROJECTMEM_GATE_HOME says where the log is; the root stays what it was, or is the folder itself."""
    home = str(tmp_path / "elsewhere")
    found = place.locate(str(tmp_path), {place.HOME_VARIABLE: home})
    assert found is not None
    assert (found.root, found.home) == (str(tmp_path), home)


def test_find_wants_a_log_that_was_set_up(tmp_path: Path) -> None:
    """A folder without project.json is not set up."""
    (tmp_path / place.FOLDER_OUTSIDE_GIT).mkdir()
    assert place.find(str(tmp_path), {}) is None
    project = init_home(str(tmp_path / place.FOLDER_OUTSIDE_GIT), 1)
    accept(str(tmp_path / place.FOLDER_OUTSIDE_GIT))
    found = place.find(str(tmp_path), {})
    assert found is not None
    assert found.project == project


def test_a_log_that_came_with_the_files_counts_only_once_it_is_accepted(tmp_path: Path) -> None:
    """An archive may hold a log with rules and failures of its own; `init` accepts it, nothing else does."""
    init_home(str(tmp_path / "theirs" / place.FOLDER_OUTSIDE_GIT), 1)
    accept(str(tmp_path / "theirs" / place.FOLDER_OUTSIDE_GIT))
    shutil.copytree(tmp_path / "theirs", tmp_path / "ours")
    assert place.find(str(tmp_path / "ours"), {}) is None
    assert _located(tmp_path / "ours").foreign
    accept(str(tmp_path / "ours" / place.FOLDER_OUTSIDE_GIT))
    assert place.find(str(tmp_path / "ours"), {}) is not None


@needs_git
@pytest.mark.parametrize("shipped", [place.FOLDER_OUTSIDE_GIT, "projectmem"])
def test_a_log_among_a_repository_s_files_is_not_its_log(repo: Path, shipped: str) -> None:
    """Neither a log's folder nor something shaped like a bare repository takes a subfolder away from the repository."""
    init_home(str(repo / "sub" / shipped), 1)
    for name in ("objects", "refs"):
        (repo / "sub" / name).mkdir()
    (repo / "sub" / "HEAD").write_text("ref: refs/heads/main\n")
    found = _located(repo / "sub" / "deep")
    assert (found.root, found.home) == (str(repo), str(repo / ".git" / "projectmem"))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"project": 3}', "\x00"])
def test_damaged_project_file_gives_no_id(tmp_path: Path, text: str) -> None:
    """A damaged project.json is no crash in the hook."""
    init_home(str(tmp_path / place.FOLDER_OUTSIDE_GIT), 1)
    accept(str(tmp_path / place.FOLDER_OUTSIDE_GIT))
    (tmp_path / place.FOLDER_OUTSIDE_GIT / "project.json").write_text(text)
    found = place.find(str(tmp_path), {})
    assert found is not None
    assert found.project == ""


@pytest.mark.parametrize(("value", "off"), [("off", True), ("OFF", True), ("0", True), ("", False), ("on", False)])
def test_switch(value: str, off: bool) -> None:
    """The off switch takes the usual words and nothing else."""
    assert place.switched_off({place.SWITCH_VARIABLE: value}) is off
