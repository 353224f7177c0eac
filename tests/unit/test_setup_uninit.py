"""`uninit` where a file is in the way: everything else is undone, the file is named, and what was never ours is let be."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from projectmem.cli.app import app
from projectmem.setup import hook_lists
from projectmem.setup.harnesses import HARNESSES
from projectmem.setup.init import LeftError, init, uninit

NOW = 1_796_000_000_000_000


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "shop"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def _files(repo: Path) -> list[str]:
    return sorted(str(p.relative_to(repo)) for p in repo.rglob("*") if p.is_file() and ".git" not in p.parts)


def test_one_damaged_file_keeps_no_other_from_being_undone(repo: Path) -> None:
    """Those before and those after it in the table are undone, and a second run ends it."""
    init(str(repo), now=NOW, harnesses=list(HARNESSES), import_sessions=False)
    settings = repo / ".gemini" / "settings.json"
    whole = settings.read_text()
    settings.write_text(whole[:-9])
    with pytest.raises(LeftError, match=r"gemini/settings\.json:\d+:\d+ is not valid JSON") as raised:
        uninit(str(repo))
    assert _files(repo) == [".gemini/settings.json"]
    assert len([line for line in raised.value.done if line.startswith("took the hooks of")]) == len(HARNESSES) - 1

    settings.write_text(whole)
    uninit(str(repo))
    assert _files(repo) == []
    assert not (repo / ".gemini").exists(), "its note was kept for the second run"


def test_the_command_says_what_was_undone_and_what_was_not(repo: Path) -> None:
    init(str(repo), now=NOW, harnesses=["claude-code", "qwen"], import_sessions=False)
    (repo / ".claude" / "settings.local.json").write_text('{"hooks": {"x": [{"command": "projectmem.hook.entry"}')
    done = CliRunner().invoke(app, ["uninit", "--json", "--root", str(repo)])
    assert any("Qwen" in line for line in json.loads(done.stdout)["done"])
    assert done.exit_code != 0


@pytest.mark.parametrize("name", ["copilot", "opencode", "pi"])
def test_a_file_of_our_name_that_was_never_ours_is_let_be(repo: Path, name: str) -> None:
    init(str(repo), now=NOW, harnesses=["claude-code"], import_sessions=False)
    theirs = repo / HARNESSES[name].project
    theirs.parent.mkdir(parents=True)
    theirs.write_text("{}")
    uninit(str(repo))
    assert _files(repo) == [HARNESSES[name].project]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_place_of_settings_is_named_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    os.mkfifo(path)
    with pytest.raises(hook_lists.SettingsError, match="is no regular file"):
        hook_lists.add(path, {"Pre": {"hooks": []}})
