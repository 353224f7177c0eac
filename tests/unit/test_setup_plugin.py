"""`init --plugin`: a Claude Code plugin in a folder, written, found by `doctor`, and taken away again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from projectmem import doctor
from projectmem.cli.app import run
from projectmem.errors import BadInputError
from projectmem.hook.claude_code import EVENTS
from projectmem.setup import claude_settings, plugin
from projectmem.setup import init as setup

NOW = 1_790_000_000_000_000


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, and a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    folder = tmp_path / "repo"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def test_the_plugin_has_the_hooks_of_the_settings_and_the_server(repo: Path, tmp_path: Path) -> None:
    """Every event with the very commands that settings would have; nothing goes into the settings."""
    folder = tmp_path / "deep" / "plugin"
    report = setup.init(str(repo), now=NOW, plugin=folder, import_sessions=False)
    hooks = json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
    assert {event: groups[0] for event, groups in hooks.items()} == claude_settings.entries()
    assert set(hooks) == set(EVENTS)
    manifest = json.loads((folder / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["name"] == "projectmem"
    server = json.loads((folder / ".mcp.json").read_text())["mcpServers"]["projectmem"]
    assert Path(server["command"]).is_absolute()
    asked = [server["command"], *server["args"], "--help"]
    assert "over MCP" in subprocess.run(asked, capture_output=True, text=True, check=True, cwd="/").stdout
    assert not (repo / ".claude").exists()
    assert str(folder / "hooks" / "hooks.json") in report.settings


def test_written_again_it_is_the_same_and_uninit_takes_it_away(repo: Path, tmp_path: Path) -> None:
    """What others put beside it stays."""
    folder = tmp_path / "plugin"
    setup.init(str(repo), now=NOW, plugin=folder, import_sessions=False)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert setup.changes(str(repo), plugin=folder) == []
    setup.init(str(repo), now=NOW, plugin=folder, import_sessions=False)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before
    (folder / "commands").mkdir()
    (folder / "commands" / "mine.md").write_text("x")
    setup.uninit(str(repo))
    assert [str(path.relative_to(folder)) for path in folder.rglob("*")] == ["commands", "commands/mine.md"]
    exclude = repo / ".git" / "info" / "exclude"
    lines = exclude.read_text()
    setup.init(str(repo), now=NOW, plugin=repo / "other", import_sessions=False)
    said = subprocess.run(["git", "status", "--porcelain"], cwd=repo, capture_output=True, text=True, check=True)
    assert said.stdout == "", "the paths of this machine are not committed"
    setup.uninit(str(repo))
    assert not (repo / "other").exists()
    assert exclude.read_text() == lines


def test_a_stale_interpreter_is_rewritten_and_doctor_names_it(repo: Path, tmp_path: Path) -> None:
    """An upgrade moves the installation; the plugin that names the old one is said and mended."""
    folder = tmp_path / "plugin"
    setup.init(str(repo), now=NOW, plugin=folder, import_sessions=False)
    path = folder / "hooks" / "hooks.json"
    good = path.read_text()
    path.write_text(good.replace("exec /", "exec /gone/"))
    found = list(doctor.examine(str(repo), now=NOW, fire=False))
    assert any(check.status == "note" and "another installation" in check.detail for check in found)
    setup.init(str(repo), now=NOW, plugin=folder, import_sessions=False)
    assert path.read_text() == good
    found = list(doctor.examine(str(repo), now=NOW, fire=False))
    assert any(check.status == "ok" and str(path) in check.detail for check in found)


@pytest.mark.slow
def test_doctor_fires_the_plugin_s_hooks(repo: Path, tmp_path: Path) -> None:
    """As it does those of settings."""
    setup.init(str(repo), now=NOW, plugin=tmp_path / "plugin", import_sessions=False)
    fired = [check for check in doctor.examine(str(repo), now=NOW) if check.name.startswith("fires: ")]
    assert len(fired) >= len(EVENTS)
    assert {check.status for check in fired} == {"ok"}, [check.detail for check in fired]


@pytest.mark.parametrize("name", [plugin.MANIFEST, plugin.HOOKS, plugin.SERVERS])
def test_a_plugin_of_others_is_not_touched(repo: Path, tmp_path: Path, name: str) -> None:
    """Neither overwritten nor completed; nothing of the log is made either."""
    folder = tmp_path / "plugin"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text('{"name": "theirs", "mcpServers": {"projectmem": {}, "theirs": {}}}')
    with pytest.raises(BadInputError, match="not written by projectmem"):
        setup.init(str(repo), now=NOW, plugin=folder, import_sessions=False)
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / name]
    assert not (repo / ".git" / "projectmem").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInputError, match="is a file"):
        plugin.write(tmp_path / "file")


def test_what_is_in_the_way_is_said_without_numbers(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file where a folder should be, bytes where text should be; a relative folder is shown as what it is."""
    (tmp_path / "file").write_text("x")
    assert run(["init", "--plugin", str(tmp_path / "file" / "below"), "--root", str(repo)]) == 3
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes" / ".mcp.json").write_bytes(b"ab\xff")
    assert run(["init", "--plugin", str(tmp_path / "x" / ".." / "bytes"), "--root", str(repo)]) == 3
    said = capsys.readouterr().err
    assert "Errno" not in said and "codec" not in said and ".." not in said
    assert "(Not a directory)" in said and "bytes/.mcp.json cannot be read (not UTF-8 text, byte 3)" in said
