"""Hooks that a harness passes over because nobody told it to trust them: doctor says so, as the real clients behave."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from projectmem import doctor
from projectmem.setup import trust
from projectmem.setup.harnesses import HARNESSES
from projectmem.setup.init import init

NOW = 1_796_000_000_000_000


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CODEX_HOME", "COPILOT_HOME", "QWEN_HOME", "GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_CLI_TRUSTED_FOLDERS_PATH"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "a shop"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def _found(repo: Path, name: str, *, user: bool = False) -> list[tuple[str, str]]:
    init(str(repo), now=NOW, harnesses=[name], user=user, import_sessions=False)
    return [(c.status, c.detail) for c in doctor.examine(str(repo), now=NOW, fire=False) if c.name == "trust"]


def _own(repo: Path, relative: str, text: str) -> None:
    path = repo.parent / "home" / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _trusted(repo: Path, **hooks: dict[str, Any]) -> str:
    """Codex's settings once a person trusted the project and every hook; `hooks` says otherwise of some."""
    lines = [f'[projects."{repo}"]\ntrust_level = "trusted"']
    for event, key, digest in trust._keys(HARNESSES["codex"].path(init(str(repo), now=NOW, harnesses=["codex"]).place)):
        state = {"trusted_hash": digest, **hooks.get(event, {})}
        lines.append(f"[hooks.state.{json.dumps(key)}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in state.items()]
    return "\n".join(lines)


def test_the_hash_is_the_one_that_codex_shows() -> None:
    """As Codex 0.171.0 lists them (`hooks/list`)."""

    def of(event: str, matcher: str = "", **hook: Any) -> str:
        hook = {"type": "command", "command": "echo hi", **hook}
        return trust._hash(event, {"matcher": matcher} if matcher else {}, hook)

    hashes = {
        "ddbe6d992b954b1615578369e33b24393456537996cfcdcca0461cafd63a9424": of(
            "pre_tool_use", command="echo 'ü' \"x\" && true", timeout=10
        ),
        "013bfbc42f4dd3f59c717541839e1ffc05d84d6ef214536c4d5d0db269caa922": of("pre_tool_use", "Bash", timeout=10),
        "823aeab1cf10994923a9a4c0236d0b3c702cfbafc61158f8adceebe65399f28d": of("session_end", timeout=3),
        "595a7905c33d96d7adc566bc466d1dcd7a40599c9a75966f214ceb25487b4b23": of(
            "user_prompt_submit", timeout=10, statusMessage="m"
        ),
    }
    assert {f"sha256:{digest}": f"sha256:{digest}" for digest in hashes} == {f"sha256:{k}": v for k, v in hashes.items()}


def test_codex_trusts_the_project_and_each_hook_as_it_is_now(repo: Path) -> None:
    """Nobody was asked: a note. An upgrade changed a hook, one was switched off, the folder is refused: a failure."""
    ((status, said),) = _found(repo, "codex")
    assert (status, "has not been told to trust" in said) == (doctor.NOTE, True)
    _own(repo, ".codex/config.toml", f'[projects."{repo}"]\ntrust_level = "trusted"\n')
    ((status, said),) = _found(repo, "codex")
    assert (status, "trust the hooks in" in said) == (doctor.NOTE, True)
    _own(repo, ".codex/config.toml", _trusted(repo))
    assert _found(repo, "codex") == []
    _own(repo, ".codex/config.toml", _trusted(repo, PreToolUse={"trusted_hash": "sha256:older"}))
    ((status, said),) = _found(repo, "codex")
    assert (status, "other hooks (an upgrade changes them) of PreToolUse in" in said) == (doctor.FAIL, True)
    _own(repo, ".codex/config.toml", _trusted(repo, Stop={"enabled": False}))
    ((status, said),) = _found(repo, "codex")
    assert (status, "switch off the hooks of Stop in" in said) == (doctor.FAIL, True)
    _own(repo, ".codex/config.toml", _trusted(repo, SessionStart={"trusted_hash": ""}))
    ((status, said),) = _found(repo, "codex")
    assert (status, "was not told to trust the hooks of SessionStart" in said) == (doctor.FAIL, True)
    _own(repo, ".codex/config.toml", _trusted(repo).replace('"trusted"', '"untrusted"'))
    ((status, said),) = _found(repo, "codex")
    assert (status, "is told not to trust" in said) == (doctor.FAIL, True)


def test_codex_looks_at_the_repository_of_a_worktree_and_needs_no_trusted_folder_for_a_persons_own(repo: Path) -> None:
    for words in (["commit", "-qm", "x", "--allow-empty"], ["worktree", "add", "-q", str(repo.parent / "other")]):
        subprocess.run(["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@example.invalid", *words], check=True)
    _own(repo, ".codex/config.toml", f'[projects."{repo}"]\ntrust_level = "trusted"\n')
    ((_, said),) = _found(repo.parent / "other", "codex")
    assert "trust the hooks in" in said, "the folder is trusted, the hooks are not"
    _own(repo, ".codex/config.toml", "")
    subprocess.run(["git", "init", "-q", str(repo.parent / "third")], check=True)
    ((_, said),) = _found(repo.parent / "third", "codex", user=True)
    assert "trust the hooks in" in said


def test_what_init_says_of_trust_is_said_only_where_it_is_missing(repo: Path) -> None:
    report = init(str(repo), now=NOW, harnesses=["codex"], import_sessions=False)
    assert any("/hooks" in text for text in report.warnings)
    _own(repo, ".codex/config.toml", _trusted(repo))
    report = init(str(repo), now=NOW, harnesses=["codex"], import_sessions=False)
    assert not any("/hooks" in text for text in report.warnings)


ON = '{"security": {"folderTrust": {"enabled": true}}}'


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("", doctor.NOTE),
        ('{"@W": "TRUST_FOLDER"}', ""),
        ('{"@P": "TRUST_FOLDER"}', ""),
        ('{"@W/deeper": "TRUST_FOLDER"}', doctor.NOTE),
        ('{"@W": "TRUST_PARENT"}', ""),
        ('{"@P/other": "TRUST_PARENT"}', ""),
        ('{"@W": "DO_NOT_TRUST"}', doctor.FAIL),
        ('{"@P": "TRUST_FOLDER", "@W": "DO_NOT_TRUST"}', doctor.FAIL),
        ('{"@P": "DO_NOT_TRUST", "@W": "TRUST_FOLDER"}', ""),
        ('{"": "TRUST_FOLDER", "relative": "TRUST_FOLDER", "/x\\u0000": "TRUST_FOLDER", "@W": 3}', doctor.NOTE),
        ("not json", doctor.NOTE),
    ],
)
@pytest.mark.parametrize("name", ["gemini", "qwen"])
def test_gemini_and_qwen_pass_over_the_hooks_of_a_folder_that_is_not_trusted(
    repo: Path, name: str, rules: str, expected: str
) -> None:
    """The longest rule that speaks of the folder counts."""
    _own(repo, f".{name}/settings.json", ON)
    _own(repo, f".{name}/trustedFolders.json", rules.replace("@W", str(repo)).replace("@P", str(repo.parent)))
    found = _found(repo, name)
    assert [status for status, _ in found] == ([expected] if expected else [])
    assert all(re.search(r"passes over the hooks in it, without a word", said) for _, said in found)


def test_gemini_asks_for_trust_by_itself_and_qwen_only_where_it_is_told_to(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert [status for status, _ in _found(repo, "gemini")] == [doctor.NOTE]
    (tmp_path / "rules.json").write_text(json.dumps({str(repo): "TRUST_FOLDER"}))
    with monkeypatch.context() as patch:
        patch.setenv("GEMINI_CLI_TRUSTED_FOLDERS_PATH", str(tmp_path / "rules.json"))
        assert _found(repo, "gemini") == []
    with monkeypatch.context() as patch:
        patch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
        assert _found(repo, "gemini") == []
    _own(repo, ".gemini/settings.json", '{"security": {"folderTrust": {"enabled": false}}}')
    assert _found(repo, "gemini") == []
    os.remove(repo / ".gemini" / "settings.json")
    assert _found(repo, "qwen") == []


@pytest.mark.parametrize(
    ("config", "notes"),
    [
        ("", 1),
        ('// kept by Copilot\n{"trusted_folders": ["@W"]}', 0),
        ('{"trustedFolders": ["@P"]}', 0),
        ('{"trusted_folders": ["@W/deeper", "", 3]}', 1),
        ('{"trusted_folders": "@W"}', 1),
    ],
)
def test_copilot_passes_over_the_hooks_of_a_folder_that_is_not_trusted(repo: Path, config: str, notes: int) -> None:
    _own(repo, ".copilot/config.json", config.replace("@W", str(repo)).replace("@P", str(repo.parent)))
    assert [status for status, _ in _found(repo, "copilot")] == [doctor.NOTE] * notes


@pytest.mark.parametrize("name", ["gemini", "copilot"])
def test_a_persons_own_hooks_need_no_trusted_folder(repo: Path, name: str) -> None:
    assert _found(repo, name, user=True) == []
