"""`init` and `uninit`: nothing half done, nothing of others touched, the same again the second time."""

from __future__ import annotations

import json
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from projectmem import doctor
from projectmem.errors import BadInputError, NoProjectError, ProjectmemError
from projectmem.place import find
from projectmem.setup import compiled
from projectmem.setup import init as setup
from projectmem.setup.claude_settings import SettingsError, registered

NOW = 1_790_000_000_000_000


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, and a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def _local(repo: Path) -> Path:
    return repo / ".claude" / "settings.local.json"


def _status(repo: Path) -> str:
    return subprocess.run(["git", "status", "--porcelain"], cwd=repo, capture_output=True, text=True, check=True).stdout


def test_init_sets_everything_up_and_leaves_nothing_to_commit(repo: Path) -> None:
    """Log, policy, hooks, compiled files; git has nothing to say about it."""
    report = setup.init(str(repo), now=NOW)
    place = find(str(repo), {})
    assert place is not None
    assert report.created
    assert place.project
    assert (Path(place.home) / "policy.toml").read_text()
    assert len(registered(_local(repo))) == 6
    assert _status(repo) == ""
    assert compiled.uncompiled() == []
    assert Path(place.home).stat().st_mode & 0o077 == 0


def test_init_twice_changes_nothing(repo: Path) -> None:
    """The second run finds everything in place."""
    setup.init(str(repo), now=NOW)
    place = find(str(repo), {})
    assert place is not None
    files = {
        p: p.read_bytes() for p in [_local(repo), *Path(place.home).glob("*"), repo / ".git" / "info" / "exclude"] if p.is_file()
    }
    report = setup.init(str(repo), now=NOW + 1)
    assert not report.created
    assert {p: p.read_bytes() for p in files} == files


def test_an_edited_policy_survives_init(repo: Path) -> None:
    """What a person wrote is not overwritten."""
    setup.init(str(repo), now=NOW)
    path = repo / ".git" / "projectmem" / "policy.toml"
    path.write_text('mode = "observe"\n')
    setup.init(str(repo), now=NOW)
    assert path.read_text() == 'mode = "observe"\n'


def test_uninit_after_two_inits_gives_the_work_tree_back(repo: Path) -> None:
    """Settings, folder and exclude line go; the log stays."""
    before = (repo / ".git" / "info" / "exclude").read_bytes()
    for _ in range(2):
        setup.init(str(repo), now=NOW)
    done = setup.uninit(str(repo))
    assert any("hooks" in line for line in done)
    assert not (repo / ".claude").exists()
    assert (repo / ".git" / "info" / "exclude").read_bytes() == before
    assert find(str(repo), {}) is not None


def test_a_log_that_cannot_be_written_does_not_keep_the_hooks_in(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `init` had noted of the settings is wanted no more: uninit says so and ends well."""
    setup.init(str(repo), now=NOW)

    def refused(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("projectmem.setup.init._save_notes", refused)
    said = "\n".join(setup.uninit(str(repo)))
    assert "took the hooks of Claude Code" in said and "Read-only file system): nothing depends on it" in said


def test_invalid_settings_stop_init_before_anything_is_made(repo: Path) -> None:
    """A settings file that cannot be edited is the first thing found out."""
    _local(repo).parent.mkdir()
    _local(repo).write_text("{ nope")
    with pytest.raises(SettingsError):
        setup.init(str(repo), now=NOW)
    assert find(str(repo), {}) is None
    assert _local(repo).read_text() == "{ nope"


def test_a_harness_that_looks_only_where_it_is_started_has_hooks_there_too(repo: Path) -> None:
    """In a monorepo the hooks are at its root, where some do not look. Doctor says so, `init` in the folder mends it, `uninit`
    gives everything back; a person's own settings are read everywhere."""
    package = repo / "packages" / "a"
    (package / ".gemini").mkdir(parents=True)
    mine = package / ".gemini" / "settings.json"
    mine.write_text('{"theme": "dark"} // mine\n')
    names = ("claude-code", "gemini", "codex", "pi")

    def noted(start: Path) -> list[str]:
        checks = doctor.examine(str(start), now=NOW, fire=False)
        return [c.detail for c in checks if "reads no hooks" in c.detail or "times" in c.detail or c.status == doctor.FAIL]

    setup.init(str(repo), now=NOW, harnesses=names, import_sessions=False)
    assert noted(repo) == []
    assert [line.split(" started")[0] for line in noted(package)] == ["Gemini CLI", "pi"]
    changed = {path for path, _, _ in setup.changes(str(package), harnesses=names)}
    assert changed == {mine, package / ".pi" / "extensions" / "projectmem.ts"}
    report = setup.init(str(package), now=NOW, harnesses=names, import_sessions=False)
    assert any("only where the program is started" in text for text in report.warnings)
    assert setup.changes(str(package), harnesses=names) == []
    assert noted(package) == [] and noted(repo) == []
    assert not (package / ".claude").exists() and not (package / ".codex").exists()
    fired = [c for c in doctor.examine(str(package), now=NOW) if c.name.startswith("fires: gemini")]
    assert len(fired) == 14 and all(c.status == doctor.OK for c in fired), "both files' hooks are run"
    status = ["git", "-C", str(repo), "status", "--porcelain"]
    assert ".pi" not in subprocess.run(status, capture_output=True, text=True, check=True).stdout
    setup.uninit(str(repo))
    assert mine.read_text() == '{"theme": "dark"} // mine\n'
    assert sorted(path.name for path in package.iterdir()) == [".gemini"]
    assert "packages" not in (repo / ".git" / "info" / "exclude").read_text()
    setup.init(str(package), now=NOW, harnesses=names, user=True, import_sessions=False)
    assert mine.read_text() == '{"theme": "dark"} // mine\n' and noted(package) == []


def test_user_hooks_go_into_the_person_s_settings(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--user edits the file in CLAUDE_CONFIG_DIR and no file of the project."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    setup.init(str(repo), now=NOW, user=True)
    assert registered(tmp_path / "config" / "settings.json")
    assert not _local(repo).exists()
    setup.uninit(str(repo), user=True)
    assert not (tmp_path / "config").exists()


def test_outside_git_the_log_lies_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git, a folder of its own holds the log."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    setup.init(str(tmp_path), now=NOW)
    assert (tmp_path / ".projectmem-gate" / "project.json").exists()


def test_unknown_harness_and_missing_project(repo: Path, tmp_path: Path) -> None:
    """Both are errors that say what would do."""
    with pytest.raises(BadInputError, match="claude-code"):
        setup.init(str(repo), now=NOW, harnesses=["emacs"])
    with pytest.raises(NoProjectError):
        setup.uninit(str(tmp_path))


def test_the_unrelated_distribution_is_refused(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the other `projectmem` is installed, nothing is set up."""

    class Rival:
        version = "9.9"

    def found(name: str) -> Any:
        if name == "projectmem":
            return Rival()
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(setup.metadata, "distribution", found)
    with pytest.raises(ProjectmemError, match=r"projectmem` 9\.9"):
        setup.init(str(repo), now=NOW)
    with pytest.raises(ProjectmemError, match=r"projectmem` 9\.9"):
        setup.changes(str(repo))  # no list of changes before the refusal
    assert find(str(repo), {}) is None


def test_report_is_json_and_lines(repo: Path) -> None:
    """What `init` prints: counts and notes for people, the same as data."""
    report = setup.init(str(repo), now=NOW)
    assert json.dumps(report.to_data())
    assert any("settings.local.json" in line for line in report.lines())
