"""Doctor finds what is broken: each way in which a hook can be registered and yet do nothing."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.home import Writer

from projectmem import doctor
from projectmem.cli.app import run
from projectmem.place import find
from projectmem.setup.init import init


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set up project."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    init(str(folder), now=time.time_ns() // 1000)
    return folder


def _examined(repo: Path, fire: bool = True) -> list[doctor.Check]:
    return list(doctor.examine(str(repo), now=time.time_ns() // 1000, fire=fire))


def _failed(checks: list[doctor.Check]) -> str:
    return "\n".join(f"{check.name}: {check.detail}" for check in checks if check.status == doctor.FAIL)


def _settings(repo: Path) -> Path:
    return repo / ".claude" / "settings.local.json"


def _change(repo: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    data = json.loads(_settings(repo).read_text())
    change(data)
    _settings(repo).write_text(json.dumps(data))


def test_a_sound_project_is_healthy(repo: Path) -> None:
    """Every registered event fires; nothing fails."""
    checks = _examined(repo)
    assert doctor.healthy(checks), _failed(checks)
    assert {check.name for check in checks if check.name.startswith("fires")} == {
        f"fires: {event}"
        for event in ("SessionStart", "PreToolUse", "PostToolUseFailure", "PostToolBatch", "UserPromptSubmit", "SessionEnd")
    }


def test_a_harness_is_one_line_until_each_hook_is_asked_for(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that are well are counted; --verbose has them all, and one that is not well is told by its name."""

    def fires(*args: str) -> list[str]:
        run(["doctor", "--root", str(repo), *args])
        return [line for line in capsys.readouterr().out.splitlines() if "fires" in line]

    assert fires() == ["ok    fires: 6 hooks of Claude Code"]
    assert len(fires("--verbose")) == 7  # one is run twice
    _change(repo, lambda data: _program(data, "PreToolUse", "true # projectmem.hook.entry"))
    *failed, last = fires()
    assert failed and all(line.startswith("fail  fires: PreToolUse: ") for line in failed)
    assert last == "ok    fires: 5 hooks of Claude Code"


def _program(data: dict[str, Any], event: str, line: str) -> None:
    """Another command in place of ours."""
    data["hooks"][event][0]["hooks"][0]["command"] = line


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: _program(d, "PreToolUse", "exec /nowhere/python # projectmem.hook.entry"), "could not be run"),
        (lambda d: _program(d, "PreToolUse", "exit 2 # projectmem.hook.entry"), "exits 2"),
        (lambda d: _program(d, "PreToolUse", "true # projectmem.hook.entry"), "did not speak"),
        (
            lambda d: _program(d, "PostToolBatch", "true # projectmem.hook.entry"),
            "recorded no action.finished",
        ),
        (lambda d: _program(d, "SessionStart", "echo hello # projectmem.hook.entry"), "SessionStart"),
        (lambda d: d["hooks"].pop("PostToolBatch"), "lacks the hooks of PostToolBatch"),
        (lambda d: d["hooks"]["PreToolUse"][0].update(matcher="bash"), "matcher"),
        (lambda d: d.update(disableAllHooks=True), "disableAllHooks"),
        (lambda d: d.update(permissions="text"), "permissions"),
        (lambda d: d.pop("hooks"), "no settings file"),
    ],
)
def test_each_way_to_be_silent_is_found(repo: Path, change: Callable[[dict[str, Any]], Any], said: str) -> None:
    """The finding names what is wrong, and there is always something to do about it."""
    _change(repo, change)
    checks = _examined(repo)
    assert not doctor.healthy(checks)
    assert said in _failed(checks)
    assert all(check.remedy for check in checks if check.status == doctor.FAIL)


def test_a_hook_that_lost_its_package_is_found(repo: Path) -> None:
    """The loader says at the start of a session that the program is gone; doctor hears it."""
    text = _settings(repo).read_text()
    start = text.index("sys.path += ") + len("sys.path += ")
    _settings(repo).write_text(text.replace(text[start : text.index("]", start) + 1], "[]"))
    assert "its program is gone" in _failed(_examined(repo))


def test_without_a_project_there_is_one_finding(tmp_path: Path) -> None:
    """Nothing is set up: say so, and how."""
    checks = list(doctor.examine(str(tmp_path), now=1, fire=False))
    assert checks[-1].status == doctor.FAIL
    assert "projectmem init" in checks[-1].remedy


def test_double_registration_is_noted(repo: Path, tmp_path: Path) -> None:
    """Works, and costs every call twice."""
    init(str(repo), now=time.time_ns() // 1000, user=True, import_sessions=False)
    checks = _examined(repo, fire=False)
    assert doctor.healthy(checks)
    assert any("2 times" in check.detail for check in checks if check.status == doctor.NOTE)


def test_a_damaged_log_fails(repo: Path) -> None:
    """A changed byte in the log is found."""
    place = find(str(repo), {})
    assert place is not None
    from projectmem.writing import append

    actor = {"session": "s", "agent": "", "harness": "", "model": "", "origin": "observed"}
    for reason in ("one", "two", "three"):
        draft = {"kind": "session.ended", "at": 1, "actor": actor, "causes": [], "data": {"reason": reason}}
        append(place, [draft], time.time_ns() // 1000)
    (segment,) = Path(place.home).glob("log/*/*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"one"', b'"0ne"'))
    assert "log" in _failed(_examined(repo, fire=False))


def test_a_log_that_cannot_be_written_fails(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hooks fire in a scratch project; that proves nothing of a read-only file system under this one."""
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).startswith(str(repo)))
    assert "cannot be written" in _failed(_examined(repo, fire=False))


def test_switched_off_fails(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The off switch in the environment is the first thing to look at."""
    monkeypatch.setenv("PROJECTMEM_GATE", "off")
    assert "PROJECTMEM_GATE" in _failed(_examined(repo, fire=False))


@pytest.mark.parametrize("name", ["locks", "spool", "quarantine", "key"])
def test_what_an_append_needs_besides_the_log_is_tried(repo: Path, name: str) -> None:
    """A key that is gone, or a file where a folder should be: doctor fails where recording does."""
    path = repo / ".git" / "projectmem" / name
    if name == "key":
        path.unlink()
    else:
        shutil.rmtree(path)
        path.write_text("")
    checks = _examined(repo, fire=False)
    assert not doctor.healthy(checks) and "recording: " in _failed(checks) and "nothing is recorded" in _failed(checks)


def test_a_full_disk_fails(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file can be made there, and nothing be written into it; nothing is left behind."""
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if data == bytes(doctor.EVENT_BYTES):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    (found,) = [check for check in _examined(repo, fire=False) if check.status == "fail"]
    assert found.name == "recording" and "No space left on device: nothing is recorded" in found.detail
    assert found.remedy == "free disk space" and not list((repo / ".git" / "projectmem").rglob(".doctor-*"))


def test_folders_that_were_swept_away_cost_nothing(repo: Path) -> None:
    """Empty ones may be removed by a cleaner; the next append makes them again, and doctor says what is true."""
    home = repo / ".git" / "projectmem"
    for name in ("locks", "spool", "quarantine"):
        shutil.rmtree(home / name)
    assert doctor.healthy(_examined(repo, fire=False))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"project": 5}', '{"format": 99, "project": "x"}'])
def test_a_damaged_identity_fails(repo: Path, text: str) -> None:
    """No call is recorded then, though every line of the log is whole."""
    (repo / ".git" / "projectmem" / "project.json").write_text(text)
    failed = _failed(_examined(repo, fire=False))
    assert "project.json" in failed and "nothing is recorded" in failed


def test_a_folder_in_the_place_of_what_names_our_stream_fails(repo: Path) -> None:
    home = repo / ".git" / "projectmem"
    Writer(str(home)).stream()
    (mine,) = (home / "writers").iterdir()
    mine.unlink()
    mine.mkdir()
    assert f"{mine} is no file: nothing is recorded" in _failed(_examined(repo, fire=False))


@pytest.mark.parametrize(("plan", "said"), [("{}", "is damaged"), ("[", "is damaged"), ('{"ids":[],"selector":{}}', "cut short")])
def test_an_erasure_that_was_not_finished_is_found(repo: Path, plan: str, said: str) -> None:
    """Its plan can be read or not: either way somebody has to do something."""
    (repo / ".git" / "projectmem" / "erasure.json").write_text(plan)
    assert said in _failed(_examined(repo, fire=False))


def test_hooks_of_an_interpreter_that_is_gone_are_one_finding(repo: Path) -> None:
    """After an upgrade no hook starts: that is said once, with the reason, and not for each event."""
    _change(repo, lambda data: data.update(json.loads(json.dumps(data).replace("exec /", "exec /gone/"))))
    checks = [check for check in _examined(repo) if check.name.startswith("fires")]
    assert [check.status for check in checks] == [doctor.FAIL]
    assert "none of the hooks" in checks[0].detail and "not found" in checks[0].detail


def test_harnesses_without_hooks_are_one_note(repo: Path, tmp_path: Path) -> None:
    """Whoever has eleven harnesses and uses one here reads one line about the others."""
    for folder in (".codex", ".gemini"):
        (tmp_path / "home" / folder).mkdir(parents=True)
    (found,) = [check for check in _examined(repo, fire=False) if "installed, and the hooks" in check.detail]
    assert "Codex CLI, Gemini CLI" in found.detail and "are installed" in found.detail
    assert "--harness codex --harness gemini" in found.remedy
