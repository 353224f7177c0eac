"""What a person writes between two sessions is seen, whatever it is: uncommitted edits, new files, staging, modes, packages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from projectmem_gate.model import Action, Part

from projectmem.hook import sources
from projectmem.hook.facts import Disk
from projectmem.place import Place, locate
from tests.file_time import tick

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def _git(*args: str, cwd: Path) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    return subprocess.run(["git", *who, *args], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def _action(*paths: str, text: str = "pytest") -> Action:
    part = Part("k" * 32, "sh", "pytest", text, paths=paths)
    return Action("Bash", "sh", ".", part.key, text, (part,))


def _disk(root: Path) -> Disk:
    place = locate(str(root))
    assert place is not None
    return Disk(place)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a few files, all of them older than anything that is recorded."""
    _git("init", "-q", "-b", "main", cwd=tmp_path)
    for name in ("src/app.py", "tests/test_app.py", "README.md", "run.sh"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {name}\n")
    (tmp_path / ".gitignore").write_text("out/\n*.log\n.env\n*.cache\n")
    _git("add", "-A", cwd=tmp_path)
    _git("commit", "-q", "-m", "one", cwd=tmp_path)
    tick(tmp_path)
    return tmp_path


def _recorded(root: Path, *, git: bool = False) -> dict[str, Any]:
    recorded = _disk(root).record(_action("tests/test_app.py"), "FAILED tests/test_app.py", git=git)
    tick(root)
    return recorded


def _swap(root: Path) -> None:
    """Another file, older than the failure, put in the place of the first."""
    other = root.parent / f"{root.name}-other.py"
    other.write_text("# another\n# one\n")
    os.utime(other, (1_000_000_000, 1_000_000_000))
    other.rename(root / "src/app.py")


CHANGES: dict[str, Callable[[Path], Any]] = {
    "src/app.py": lambda root: (root / "src/app.py").write_text("x = 1\n"),
    "src/b.py": lambda root: (root / "src/b.py").write_text("x = 1\n"),
    "jest.config.js": lambda root: (root / "jest.config.js").write_text("x"),
    ".env": lambda root: (root / ".env").write_text("A=1"),
    "Makefile": lambda root: (root / "Makefile").write_text("all:"),
    "prod.tfvars": lambda root: (root / "prod.tfvars").write_text("a=1"),
    "db.sqlite3": lambda root: (root / "db.sqlite3").write_text("a"),
    "run.sh": lambda root: (root / "run.sh").chmod(0o755),
    "lib/new.py": lambda root: ((root / "lib").mkdir(), (root / "lib/new.py").write_text("x")),
    "README.md": lambda root: (root / "README.md").unlink(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_person_writes_is_named(tree: Path, name: str) -> None:
    """Files that neither the command nor its output named, present at the failure or not."""
    recorded = _recorded(tree)
    assert _disk(tree).compare(recorded)["files"] == "same"
    CHANGES[name](tree)
    found = _disk(tree).compare(recorded)
    assert (found["files"], found["changed_files"]) == ("changed", [name])


def test_a_file_put_in_place_of_another_is_seen_though_it_is_older(tree: Path) -> None:
    """A rename leaves the time of writing alone; git's index tells that it is another file."""
    recorded = _recorded(tree)
    _swap(tree)
    assert _disk(tree).compare(recorded)["changed_files"] == ["src/app.py"]


def test_what_runs_leave_behind_is_nothing(tree: Path) -> None:
    """Ignored files, caches, bytecode; and a file that `git mv` moved."""
    recorded = _recorded(tree)
    (tree / "out").mkdir()
    (tree / "out/x.js").write_text("x")
    (tree / "debug.log").write_text("x")
    (tree / ".coverage").write_text("x")
    (tree / "src/__pycache__").mkdir()
    (tree / "src/__pycache__/app.cpython-311.pyc").write_text("x")
    _git("mv", "src/app.py", "src/main.py", cwd=tree)
    found = _disk(tree).compare(recorded)
    assert (found["files"], found["changed_files"]) == ("same", [])


def test_a_tree_too_large_to_look_at_is_unknown(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the gate does not say that no change is known."""
    from projectmem_gate.freshness import judge
    from projectmem_gate.history import Record

    recorded = _recorded(tree)
    monkeypatch.setattr(sources, "FILES_MAX", 2)
    found = _disk(tree).compare(recorded)
    assert (found["files"], found["sources"]) == ("same", "unknown")
    state, why = judge(Record("k", "i", 1, cls="test"), {**found, "changes": []}, 2)
    assert (state, why) == ("unknown", "could not compare the other files")


def test_many_changes_are_not_told_by_name(tree: Path) -> None:
    """Where the names do not fit, none is left to stand for all."""
    recorded = _recorded(tree)
    for i in range(40):
        (tree / f"src/new{i}.py").write_text("x")
    found = _disk(tree).compare(recorded)
    assert (found["files"], found["changed_files"]) == ("changed", [])


@pytest.mark.parametrize(
    "args", [("add", "src/app.py"), ("branch", "feature"), ("remote", "add", "up", "x"), ("config", "user.email", "a@b")]
)
def test_what_a_person_does_with_git_counts_for_its_failures(tree: Path, args: tuple[str, ...]) -> None:
    """Staging, branches, remotes, settings; a `git status`, which rewrites the index, does not."""
    (tree / "src/app.py").write_text("x = 2\n")
    tick(tree)
    recorded, plain = _recorded(tree, git=True), _recorded(tree)
    _git("status", cwd=tree)
    assert _disk(tree).compare(recorded)["files"] == "same"
    _git(*args, cwd=tree)
    assert (_disk(tree).compare(recorded)["files"], _disk(tree).compare(recorded)["changed_files"]) == ("changed", [])
    assert _disk(tree).compare(plain)["files"] == "same"


def test_a_named_file_made_executable_is_a_change(tree: Path) -> None:
    """Its content is as it was."""
    recorded = _disk(tree).record(_action("run.sh"), "")
    (tree / "run.sh").chmod(0o755)
    assert _disk(tree).compare(recorded)["changed_files"] == ["run.sh"]


def test_a_package_put_in_a_venv_is_an_install(tree: Path) -> None:
    """No manifest of the project tells of it."""
    packages = tree / ".venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    recorded = _recorded(tree)
    (packages / "thing-1.dist-info").mkdir()
    assert _disk(tree).compare(recorded)["deps"] == "changed"


def test_outside_git_every_file_is_looked_at(tmp_path: Path) -> None:
    """Those that tools put down aside."""
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "node_modules").mkdir()
    disk = lambda: Disk(Place(str(tmp_path), str(tmp_path / ".projectmem-gate")))  # noqa: E731
    tick(tmp_path)
    recorded = disk().record(_action("t.py"), "")
    tick(tmp_path)
    (tmp_path / "node_modules/x.js").write_text("a")
    assert disk().compare(recorded)["files"] == "same"
    (tmp_path / "a.py").write_text("b")
    assert disk().compare(recorded)["changed_files"] == ["a.py"]


def test_facts_recorded_before_are_compared_as_they_were(tree: Path) -> None:
    """Without a time of reading nothing is said of other files."""
    recorded = {k: v for k, v in _recorded(tree).items() if k not in ("written", "modes")}
    (tree / "src/app.py").write_text("x = 1\n")
    assert _disk(tree).compare(recorded)["files"] == "same"


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_the_index_is_read_as_git_lists_it(tree: Path, version: str) -> None:
    """In each of its versions; damage is no list."""
    _git("update-index", "--index-version", version, cwd=tree)
    entries = sources.index(str(tree / ".git"))
    assert entries is not None
    assert [path for path, *_ in entries] == _git("ls-files", cwd=tree).split("\n")
    data = (tree / ".git/index").read_bytes()
    for cut in range(0, len(data), 7):
        (tree / ".git/index").write_bytes(data[:cut])
        sources.index(str(tree / ".git"))  # whatever it says, it does not raise


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("src/.env.local", True),
        ("src/settings.local.json", True),
        ("src/config.json", True),
        ("out/db.yaml", True),  # a folder at the root that is ignored as a whole
        ("out/report.json", False),
        ("out/deep/db.yaml", False),
        ("src/run.cache", False),
        ("src/data.json", False),
        ("build/config.json", False),
        ("node_modules/x/config.json", False),
    ],
)
def test_settings_that_git_ignores_are_seen_when_they_are_edited_in_place(tree: Path, name: str, seen: bool) -> None:
    """No folder changes by that. Of other ignored files only those that the command or its output name are looked at."""
    with (tree / ".gitignore").open("a") as file:
        file.write("*.local*\nconfig.json\ndata.json\nbuild/\nnode_modules/\n")
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a: 1")
    tick(tree)
    recorded = _recorded(tree)
    path.write_text("a: 2")
    found = _disk(tree).compare(recorded)
    assert (name in found["changed_files"]) is seen
    assert found["files"] == ("changed" if seen else "same")


def test_another_worktree_is_looked_at_too(tree: Path) -> None:
    """Made after the failure all its files are young, and the same: what was changed there is what git did not put there."""
    recorded = _recorded(tree)
    other = tree.parent / f"{tree.name}-wt"
    _git("worktree", "add", "-q", str(other), cwd=tree)
    found = _disk(other).compare(recorded)
    assert (found["here"], found["files"], found["changed_files"]) == ("elsewhere", "same", [])
    tick(tree)
    (other / "src/app.py").write_text("x = 1\n")
    found = _disk(other).compare(recorded)
    assert (found["here"], found["files"], found["changed_files"]) == ("elsewhere", "changed", ["src/app.py"])


class Listing(list[SimpleNamespace]):
    """Like what `os.scandir` gives: also for `with`."""

    def __enter__(self) -> Listing:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class CoarseDisk:
    """`os` on a disk that keeps every other second, as FAT does."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _cut(self, status: os.stat_result) -> SimpleNamespace:
        at = status.st_mtime_ns - status.st_mtime_ns % sources.COARSE_NS
        return SimpleNamespace(st_mode=status.st_mode, st_size=status.st_size, st_mtime_ns=at, st_ctime_ns=at)

    def stat(self, path: str) -> SimpleNamespace:
        """Its time of writing, cut; that of its change is the same."""
        return self._cut(os.stat(path))

    lstat = stat

    def scandir(self, path: str) -> Listing:
        """Entries whose times are cut."""
        with os.scandir(path) as found:
            return Listing(self._entry(entry) for entry in found)

    def _entry(self, entry: os.DirEntry[str]) -> SimpleNamespace:
        same = {name: getattr(entry, name) for name in ("name", "path", "is_dir", "is_file", "is_symlink")}
        return SimpleNamespace(**same, stat=lambda **how: self._cut(entry.stat(**how)))


@pytest.mark.parametrize("git", [True, False])
@pytest.mark.parametrize("name", ["src/app.py", "src/new.py", ".env"])
def test_a_change_within_the_second_of_the_failure_is_not_taken_for_none(
    tree: Path, monkeypatch: pytest.MonkeyPatch, name: str, git: bool
) -> None:
    """Where a file's time is a second or two: it may have been written after it, and nobody knows."""
    place = locate(str(tree))
    assert place is not None
    folders = (place.git_dir, place.common_dir) if git else ("", "")
    for path in [tree, *tree.rglob("*")]:
        os.utime(path, (1_000_000_000, 1_000_000_000))
    _git("update-index", "-q", "--refresh", cwd=tree)
    monkeypatch.setattr(sources, "os", CoarseDisk())
    failed = 1_700_000_000_500_000
    assert sources.newer(str(tree), *folders, failed) == ("same", [])
    (tree / name).write_text("x = 2\n")
    for path in (tree / name, (tree / name).parent):
        os.utime(path, ns=(0, 1_700_000_001_700_000_000))
    assert sources.newer(str(tree), *folders, failed) == ("unknown", [])
    assert sources.newer(str(tree), *folders, failed - 1_000_000) == ("changed", [name])
    assert sources.newer(str(tree), *folders, failed + 2_000_000) == ("same", [])
