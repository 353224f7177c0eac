"""Where harnesses are told to look, what turns their hooks off, and what stands in git's exclude file before and after."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from projectmem import doctor
from projectmem.place import config_dir, locate
from projectmem.setup import gitignore
from projectmem.setup.harnesses import HARNESSES
from projectmem.setup.init import init, uninit

NOW = time.time_ns() // 1000


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository and a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.mark.parametrize(
    "before", [None, b"", b"*.log\n", b"*.log", b"*.log\r\n*.tmp\r\n", b"*.log\r\n*.tmp", b"\xff\xfe\n", b"\n\n"]
)
def test_git_s_exclude_file_comes_back_byte_for_byte(repo: Path, before: bytes | None) -> None:
    """Line ends, a last line without one, and bytes that are no text. A file with nothing in it is as good as none."""
    file = repo / ".git" / "info" / "exclude"
    file.unlink(missing_ok=True)
    if before is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(before)
    init(str(repo), now=NOW, harnesses=("claude-code", "gemini", "cline"), import_sessions=False)
    status = subprocess.run(["git", "status", "--porcelain"], cwd=repo, capture_output=True, text=True, check=True)
    assert status.stdout == ""
    uninit(str(repo))
    assert (file.read_bytes() if file.exists() else b"") == (before or b"")


def test_lines_that_a_person_added_after_ours_keep_lines_of_their_own(repo: Path) -> None:
    """Ours stood between a line without an end and theirs."""
    file = repo / ".git" / "info" / "exclude"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"*.log")
    place = locate(str(repo))
    assert place is not None
    assert gitignore.exclude(place, "/one")
    assert gitignore.exclude(place, "/two")
    assert not gitignore.exclude(place, "/two")
    with file.open("ab") as more:
        more.write(b"mine\n")
    assert gitignore.include(place, "/one")
    assert file.read_bytes().splitlines()[-2:] == [b"/two", b"mine"]
    assert gitignore.include(place, "/two")
    assert not gitignore.include(place, "/two")
    assert file.read_bytes() == b"*.log\nmine\n"


@pytest.mark.parametrize(("harness", "variable", "folder"), [
    ("claude-code", "CLAUDE_CONFIG_DIR", ""), ("codex", "CODEX_HOME", ""), ("qwen", "QWEN_HOME", ""),
    ("copilot", "COPILOT_HOME", ""), ("pi", "PI_CODING_AGENT_DIR", ""), ("opencode", "OPENCODE_CONFIG_DIR", ""),
    ("opencode", "XDG_CONFIG_HOME", "opencode"), ("gemini", "GEMINI_CLI_HOME", ".gemini"),
    ("droid", "FACTORY_HOME_OVERRIDE", ".factory"), ("cline", "CLINE_DIR", ""),
])  # fmt: skip
def test_a_harness_s_folder_is_where_its_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: str, variable: str, folder: str
) -> None:
    """Otherwise `init --user` writes hooks that the harness never reads, and its sessions are not found."""
    monkeypatch.setenv(variable, str(tmp_path / "there"))
    assert HARNESSES[harness].home == tmp_path / "there" / folder


def test_opencode_s_own_variable_goes_before_the_common_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the client has it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", "/common")
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", "/own")
    assert HARNESSES["opencode"].home == Path("/own")


@pytest.mark.skipif(os.name != "posix", reason="HOME is another thing there")
@pytest.mark.parametrize("home", ["", "here", "./x"])
def test_a_home_that_is_none_is_not_used(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    """With HOME empty, `~/.claude` is not `/.claude`; with a relative one, not a folder of the repository."""
    monkeypatch.setenv("HOME", home)
    assert config_dir("", "~/.claude") == os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".claude")


@pytest.mark.parametrize(("harness", "file", "settings", "said"), [
    ("gemini", ".gemini/settings.json", {"hooksConfig": {"enabled": False}}, "hooksConfig.enabled"),
    ("gemini", ".gemini/settings.json", {"hooksConfig": {"disabled": ["projectmem"]}}, "hooksConfig.disabled"),
    ("gemini", "~/.gemini/settings.json", {"hooksConfig": {"enabled": False}}, "hooksConfig.enabled"),
    ("qwen", ".qwen/settings.json", {"disableAllHooks": True}, "disableAllHooks"),
    ("qwen", "~/.qwen/settings.json", {"disableAllHooks": True}, "disableAllHooks"),
    ("copilot", ".github/copilot/settings.json", {"disableAllHooks": True}, "disableAllHooks"),
    ("copilot", ".github/copilot/settings.local.json", {"disableAllHooks": True}, "disableAllHooks"),
    ("copilot", ".claude/settings.json", {"disableAllHooks": True}, "disableAllHooks"),
])  # fmt: skip
def test_hooks_that_are_turned_off_are_found(repo: Path, harness: str, file: str, settings: dict[str, Any], said: str) -> None:
    """They are registered and fire when they are tried, and the harness runs none of them."""
    init(str(repo), now=NOW, harnesses=(harness,), import_sessions=False)
    path = Path(file).expanduser() if file.startswith("~") else repo / file
    before = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)

    def failed(more: dict[str, Any]) -> list[str]:
        path.write_text(json.dumps({**before, **more}))
        checks = doctor.examine(str(repo), now=NOW, fire=False)
        return [check.detail for check in checks if check.status == doctor.FAIL]

    assert failed({"hooksConfig": {"enabled": True, "disabled": ["other"]}, "disableAllHooks": False}) == []
    (found,) = [text for text in failed(settings) if text.endswith(f" in {HARNESSES[harness].title}")]
    assert found.startswith(f"{path}: `{said}`")


@pytest.mark.parametrize("name", ["hooks", "codex_hooks"])
def test_codex_s_hooks_that_are_turned_off_are_found(repo: Path, name: str) -> None:
    """By the feature's name of today or the older one; a file that is no TOML turns nothing off."""
    init(str(repo), now=NOW, harnesses=("codex",), import_sessions=False)
    config = Path("~/.codex/config.toml").expanduser()
    config.parent.mkdir(parents=True)
    found = []
    for text in (f"[features]\n{name} = true\n", "features = 1", "no toml", f"[features]\n{name} = false\n"):
        config.write_text(text)
        checks = doctor.examine(str(repo), now=NOW, fire=False)
        found.append([check.detail for check in checks if check.status == doctor.FAIL])
    assert found == [[], [], [], [f"{config}: `features.{name}` is false, so no hook of ours runs in Codex CLI"]]
