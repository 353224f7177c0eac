"""Facts of the work tree: HEAD without git, marks of files, and what each comparison calls the same."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from projectmem_gate.model import Action, Part

from projectmem.hook import facts, marks
from projectmem.hook.facts import Disk
from projectmem.place import Place

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def _git(*args: str, cwd: Path) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    return subprocess.run(["git", *who, *args], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def _action(*paths: str, text: str = "make all", cwd: str = ".") -> Action:
    part = Part("k" * 32, "sh", "make", text, paths=paths)
    return Action("Bash", "sh", cwd, part.key, text, (part,))


def _disk(root: Path, search_path: str = "") -> Disk:
    return Disk(Place(str(root), str(root / ".projectmem-gate")), search_path)


def _head(root: Path) -> str:
    return marks.head_of(str(root / ".git"), str(root / ".git"))


@needs_git
def test_head_agrees_with_git_in_every_storage(tmp_path: Path) -> None:
    """Unborn, loose, packed, detached, a branch with slashes, a linked worktree: always what git says."""
    _git("init", "-q", "-b", "main", cwd=tmp_path)
    assert _head(tmp_path) == marks.NO_COMMIT
    _git("commit", "-q", "--allow-empty", "-m", "one", cwd=tmp_path)
    first = _git("rev-parse", "HEAD", cwd=tmp_path)
    assert _head(tmp_path) == first
    _git("pack-refs", "--all", cwd=tmp_path)
    assert _head(tmp_path) == first
    _git("checkout", "-q", "-b", "feature/deep", cwd=tmp_path)
    _git("commit", "-q", "--allow-empty", "-m", "two", cwd=tmp_path)
    second = _git("rev-parse", "HEAD", cwd=tmp_path)
    assert _head(tmp_path) == second != first
    _git("checkout", "-q", "--detach", first, cwd=tmp_path)
    assert _head(tmp_path) == first
    _git("worktree", "add", "-q", str(tmp_path / "wt"), "feature/deep", cwd=tmp_path)
    assert marks.head_of(str(tmp_path / ".git" / "worktrees" / "wt"), str(tmp_path / ".git")) == second


@pytest.mark.parametrize("head", ["", "ref: refs/../../x", "ref: /etc/passwd", "ref: refs/heads/.invalid", "\x00\xff", "abc"])
def test_unreadable_head_is_unknown(tmp_path: Path, head: str) -> None:
    """Damage and reftable repositories are not taken for a commit, nor for none."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert _head(tmp_path) == ""


def _edit(path: Path) -> None:
    path.write_text(path.read_text() + "x")


def _changed(recorded: dict[str, Any], root: Path) -> dict[str, Any]:
    return _disk(root).compare(recorded)


def test_nothing_changed_is_the_same(tmp_path: Path) -> None:
    """Compared at once, every group is the same, also where a named file does not exist."""
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "a.ts").write_text("a")
    recorded = _disk(tmp_path).record(_action("a.ts", "gone.ts"), "a.ts(3,1): error")
    assert recorded["files"]["gone.ts"] == marks.ABSENT
    found = _changed(recorded, tmp_path)
    assert (found["head"], found["deps"], found["files"], found["here"]) == ("same", "same", "same", "same")


@pytest.mark.parametrize("change", ["edit", "delete", "create"])
def test_a_change_of_a_named_file_is_seen_and_named(tmp_path: Path, change: str) -> None:
    """Edited, deleted or created by anyone: the file counts as changed."""
    (tmp_path / "a.ts").write_text("a")
    recorded = _disk(tmp_path).record(_action("a.ts", "gone.ts"))
    {
        "edit": lambda: _edit(tmp_path / "a.ts"),
        "delete": lambda: (tmp_path / "a.ts").unlink(),
        "create": lambda: (tmp_path / "gone.ts").write_text("now"),
    }[change]()
    found = _changed(recorded, tmp_path)
    assert found["files"] == "changed"
    assert found["changed_files"] == ["gone.ts" if change == "create" else "a.ts"]


def test_undoing_an_edit_is_the_same_again(tmp_path: Path) -> None:
    """Content decides, not times."""
    (tmp_path / "a.ts").write_text("a")
    recorded = _disk(tmp_path).record(_action("a.ts"))
    _edit(tmp_path / "a.ts")
    (tmp_path / "a.ts").write_text("a")
    assert _changed(recorded, tmp_path)["files"] == "same"


def test_an_install_by_a_person_changes_deps(tmp_path: Path) -> None:
    """`npm install` in another terminal leaves its mark although no manifest changed."""
    (tmp_path / "package.json").write_text("{}")
    recorded = _disk(tmp_path).record(_action())
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / ".package-lock.json").write_text("{}")
    assert _changed(recorded, tmp_path)["deps"] == "changed"


def test_manifests_of_the_call_s_own_folder_count(tmp_path: Path) -> None:
    """In a repository of many packages, the package's own manifest is among the facts."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "go.mod").write_text("m")
    recorded = _disk(tmp_path).record(_action(cwd="pkg"))
    assert "pkg/go.mod" in recorded["deps"]


def test_files_named_in_the_output_are_facts(tmp_path: Path) -> None:
    """The file that the error points at is watched, whatever its spelling; what does not exist or lies outside is not."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.ts").write_text("x")
    text = f"./src/app.ts:3:5 error\n{tmp_path}/src/app.ts\n/etc/passwd.txt v1.2 nope.ts ../../x.y"
    assert list(_disk(tmp_path).record(_action(), text)["files"]) == ["src/app.ts"]


@pytest.mark.parametrize(
    ("said", "made"),
    [
        ("Error: cannot find config.json", "config.json"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'web/.env.local'", "web/.env.local"),
        ("Error: ENOENT: no such file, open './dist/app.js'", "web/dist/app.js"),
    ],
)
def test_making_the_file_that_was_missing_is_a_change(tmp_path: Path, said: str, made: str) -> None:
    """The error names a file that is not there: whoever makes it may have mended the failure."""
    (tmp_path / "web").mkdir()
    recorded = _disk(tmp_path).record(_action(cwd="web"), f"> build\n{said}\n")
    assert _disk(tmp_path).compare(recorded)["files"] == "same"
    (tmp_path / made).parent.mkdir(exist_ok=True)
    (tmp_path / made).write_text("{}")
    after = _disk(tmp_path).compare(recorded)
    assert (after["files"], after["changed_files"]) == ("changed", [made])


def test_a_named_folder_is_known_by_names_and_sizes(tmp_path: Path) -> None:
    """A new file in a folder that the command names is a change."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text("a")
    recorded = _disk(tmp_path).record(_action("tests"))
    assert _changed(recorded, tmp_path)["files"] == "same"
    (tmp_path / "tests" / "b.py").write_text("b")
    assert _changed(recorded, tmp_path)["files"] == "changed"


def test_bounds(tmp_path: Path) -> None:
    """At most 64 files are read, a huge one is not."""
    for number in range(100):
        (tmp_path / f"f{number}.txt").write_text("x")
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(marks.FILE_BYTES_MAX + 1)
    recorded = _disk(tmp_path).record(_action("huge.bin", *(f"f{n}.txt" for n in range(100))))
    assert len(recorded["files"]) == facts.FILES_MAX
    assert recorded["files"]["huge.bin"].startswith("~")


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    """A named pipe is not opened; nothing recorded is not taken for unchanged."""
    import os

    os.mkfifo(tmp_path / "pipe")
    recorded = _disk(tmp_path).record(_action("pipe"))
    assert recorded["files"]["pipe"] == ""
    assert _changed(recorded, tmp_path)["files"] == "unknown"
    empty = _changed({}, tmp_path)
    assert {empty[name] for name in ("head", "deps", "files", "tools")} == {"unknown"}


def test_a_program_that_appears_is_a_change(tmp_path: Path) -> None:
    """Where a command was not found, its program's place on the search path is a fact."""
    bin = tmp_path / "bin"
    bin.mkdir()
    recorded = _disk(tmp_path, str(bin)).record(_action(), tools=["pnpm"])
    assert _disk(tmp_path, str(bin)).compare(recorded)["tools"] == "same"
    (bin / "pnpm").write_text("#!/bin/sh\n")
    (bin / "pnpm").chmod(0o755)
    assert _disk(tmp_path, str(bin)).compare(recorded)["tools"] == "changed"


def test_another_worktree_is_elsewhere(tmp_path: Path) -> None:
    """A record of another work tree says so; one from before worktrees were recorded counts as here."""
    disk = Disk(Place(str(tmp_path), str(tmp_path / "h"), worktree="wt"))
    assert disk.compare({"worktree": ""})["here"] == "elsewhere"
    assert disk.compare({"worktree": "wt"})["here"] == "same"
    assert disk.compare({})["here"] == "same"
