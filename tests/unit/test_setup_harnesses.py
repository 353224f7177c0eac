"""Every harness's hooks go into its settings, beside other people's and under their comments, and come out again."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from projectmem import doctor
from projectmem.cli.app import run
from projectmem.place import find
from projectmem.setup import claude_settings, command, node_bridge
from projectmem.setup import init as setup
from projectmem.setup.harnesses import HARNESSES, detected
from projectmem.setup.hook_lists import SettingsError

NOW = time.time_ns() // 1000
OTHERS = [name for name in HARNESSES if name != "claude-code"]
SHARED = [name for name, harness in HARNESSES.items() if harness.groups is not None]
COMMENTED = """{
  // of this person
  "theme": "dark",   /* kept */
  "hooks": {
    "SessionStart": [ { "hooks": [{"type": "command", "command": "mine.sh"}] } ],
  },
}
"""
PLAIN = '{"theme":"dark","hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"mine.sh"}]}],"Notification":[]}}'


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, a home of its own, and no program on the PATH but the usual ones."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for variable in ("CODEX_HOME", "QWEN_HOME", "COPILOT_HOME", "OPENCODE_CONFIG_DIR"):
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "repo"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def _init(repo: Path, *names: str, **more: Any) -> setup.Report:
    return setup.init(str(repo), now=NOW, harnesses=names, import_sessions=False, **more)


def _content(path: Path) -> dict[Path, bytes]:
    """A file, or all files of a folder."""
    return {p: p.read_bytes() for p in ([path] if path.is_file() else sorted(path.iterdir()))}


@pytest.mark.parametrize("user", [False, True])
@pytest.mark.parametrize("name", list(HARNESSES))
def test_init_twice_is_init_once_and_uninit_gives_everything_back(repo: Path, tmp_path: Path, name: str, user: bool) -> None:
    """No file and no folder is left; the log is."""
    before = {p for p in tmp_path.rglob("*") if ".git/" not in str(p)}
    exclude = (repo / ".git" / "info" / "exclude").read_bytes()
    first = _init(repo, name, user=user)
    path = Path(first.settings[0])
    once = _content(path)
    assert _init(repo, name, user=user).settings == first.settings
    assert _content(path) == once
    status = subprocess.run(["git", "status", "--porcelain"], cwd=repo, capture_output=True, text=True, check=True)
    assert status.stdout == ""
    assert any(HARNESSES[name].title in line for line in setup.uninit(str(repo), user=user))
    assert {p for p in tmp_path.rglob("*") if ".git/" not in str(p)} == before
    assert (repo / ".git" / "info" / "exclude").read_bytes() == exclude
    assert find(str(repo), {}) is not None


MARK = "\ufeff"  # of a byte order, as Windows editors write it
TEXTS = [COMMENTED, PLAIN, "{}", "{\n}\n", "", " \n\n", '{"hooks": {}}\r\n', '{\r\n\t"a": 1\r\n}', '{"n": 1.10e5, "hooks": null}']


@pytest.mark.parametrize("text", [*TEXTS, *(MARK + text for text in TEXTS)])
@pytest.mark.parametrize("name", SHARED)
def test_settings_of_others_stay_and_come_back_byte_for_byte(repo: Path, name: str, text: str) -> None:
    """Comments, spaces, line ends and other people's hooks: all as they were after `uninit`, whatever `init` did twice."""
    harness = HARNESSES[name]
    if COMMENTED in text and not harness.comments:
        pytest.skip("this harness takes no comments")
    path = repo / harness.project
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    for _ in range(2):
        _init(repo, name)
    made = path.read_text()
    assert made.startswith(MARK) == text.startswith(MARK)
    for kept in ("// of this person", "/* kept */", "mine.sh", "dark"):
        assert (kept in made) == (kept in text), made
    assert len(harness.commands(path)) == len(harness.groups() if harness.groups else ())
    setup.uninit(str(repo))
    assert path.read_bytes() == text.encode()


@pytest.mark.parametrize("name", SHARED)
def test_what_others_wrote_after_init_survives_uninit(repo: Path, name: str) -> None:
    """The exact way back is for an untouched file; else ours are taken out and nothing else."""
    harness = HARNESSES[name]
    path = repo / harness.project
    path.parent.mkdir(parents=True)
    path.write_text(PLAIN)
    _init(repo, name)
    path.write_text(path.read_text().replace('"theme":"dark"', '"theme":"light","more":[1, 2]'))
    setup.uninit(str(repo))
    assert json.loads(path.read_text()) == {**json.loads(PLAIN), "theme": "light", "more": [1, 2]}


@pytest.mark.parametrize("name", SHARED)
def test_a_stale_interpreter_is_rewritten_and_still_comes_out_exactly(
    repo: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An upgrade replaces what an older installation registered."""
    path = repo / HARNESSES[name].project
    path.parent.mkdir(parents=True)
    path.write_text(PLAIN)
    with monkeypatch.context() as old:
        for module in (claude_settings, command):
            old.setattr(module, "interpreter", lambda: "/opt/old/bin/python3")
        _init(repo, name)
    assert "/opt/old" in path.read_text()
    _init(repo, name)
    assert "/opt/old" not in path.read_text()
    assert {len(found) for found in HARNESSES[name].commands(path).values()} == {1}
    setup.uninit(str(repo))
    assert path.read_text() == PLAIN


@pytest.mark.parametrize("name", [name for name in OTHERS if name not in SHARED])
def test_a_file_of_somebody_else_s_is_not_overwritten(repo: Path, name: str) -> None:
    """Where our file would go there is another: say so, and make nothing."""
    path = repo / HARNESSES[name].project / ("PreToolUse" if name == "cline" else "")
    path.parent.mkdir(parents=True)
    path.write_text("theirs")
    with pytest.raises(SettingsError, match="was not written by"):
        _init(repo, name)
    assert path.read_text() == "theirs"
    assert find(str(repo), {}) is None


@pytest.mark.parametrize("name", list(HARNESSES))
def test_doctor_fires_every_registered_hook(repo: Path, name: str) -> None:
    """Each event that is registered is fired by its command, and held."""
    _init(repo, name)
    checks = list(doctor.examine(str(repo), now=NOW))
    failed = [f"{c.name}: {c.detail}" for c in checks if c.status == doctor.FAIL]
    assert not failed, failed
    fired = {c.name.rpartition(" ")[2] for c in checks if c.name.startswith("fires")}
    assert fired == set(HARNESSES[name].commands(repo / HARNESSES[name].project))


@pytest.mark.parametrize("name", list(HARNESSES))
def test_who_opens_the_settings_reads_whose_the_command_is_and_how_it_goes(repo: Path, name: str) -> None:
    _init(repo, name)
    commands = HARNESSES[name].commands(repo / HARNESSES[name].project)
    assert commands
    for words in commands.values():
        program = Path(words[0][0]).read_text() if name == "cline" else json.dumps(words)  # Cline's are scripts
        told, loads, _ = program.partition("import gc, sys")
        assert loads and "# projectmem: " in told and "projectmem uninit" in told


LAID_OUT = (PLAIN, '{"hooks":{}}', '{"hooks": {}, "other": [1, 2]}\n')


@pytest.mark.parametrize("text", LAID_OUT)
@pytest.mark.parametrize("name", SHARED)
def test_hooks_are_ours_however_the_file_is_laid_out(repo: Path, name: str, text: str) -> None:
    """A formatter, or the harness itself, writes the file anew: doctor calls that no other installation, and init leaves it."""
    path = repo / HARNESSES[name].project
    path.parent.mkdir(parents=True)
    path.write_text(text)
    _init(repo, name)

    def stale() -> list[str]:
        return [c.detail for c in doctor.examine(str(repo), now=NOW, fire=False) if "another installation" in c.detail]

    assert stale() == []
    path.write_text(json.dumps(json.loads(path.read_text()), indent=7))
    again = path.read_bytes()
    assert stale() == []
    _init(repo, name)
    assert path.read_bytes() == again
    setup.uninit(str(repo))
    assert json.loads(path.read_text()).get("hooks", {}) == {
        event: groups for event, groups in json.loads(text)["hooks"].items() if groups or event == "Notification"
    }


def test_a_symlink_to_no_file_is_one_again_after_uninit(repo: Path, tmp_path: Path) -> None:
    """Settings that are kept elsewhere: what init made is taken away there, and the link stays."""
    path = repo / HARNESSES["claude-code"].project
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "elsewhere.json")
    _init(repo, "claude-code")
    assert (tmp_path / "elsewhere.json").is_file()
    setup.uninit(str(repo))
    assert path.is_symlink()
    assert not (tmp_path / "elsewhere.json").exists()


def test_one_harness_in_the_way_of_all_is_said_to_be_one(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is made, and the way on is named."""
    for folder in (".claude", ".cline"):
        (tmp_path / "home" / folder).mkdir(parents=True)
    (repo / ".cline" / "hooks").mkdir(parents=True)
    (repo / ".cline" / "hooks" / "PreToolUse").write_text("#!/bin/sh\n")
    assert run(["init", "--root", str(repo)]) == 3
    said = capsys.readouterr().err
    assert "name the others with --harness" in said and "move it away first" in said
    assert not (repo / ".claude").exists()


@pytest.mark.parametrize("name", OTHERS)
def test_doctor_hears_a_hook_that_does_nothing(repo: Path, name: str) -> None:
    """A command that runs and says nothing is not a gate."""
    _init(repo, name)
    for path in _content(repo / HARNESSES[name].project):
        path.write_text(path.read_text().replace("import gc, sys", "import gc, sys; sys.exit(0)"))
    checks = list(doctor.examine(str(repo), now=NOW))
    assert not doctor.healthy(checks)
    assert any("recorded no" in c.detail for c in checks if c.status == doctor.FAIL)


@pytest.mark.parametrize("name", SHARED)
def test_doctor_names_a_timeout_and_a_matcher_that_leave_calls_out(repo: Path, name: str) -> None:
    """Seconds where the harness counts milliseconds end a hook before it can answer; the call goes on in silence."""
    _init(repo, name)
    path = repo / HARNESSES[name].project
    good = path.read_text()

    def failed() -> str:
        found = doctor.examine(str(repo), now=NOW, fire=False)
        return "\n".join(check.detail for check in found if check.status == "fail")

    assert failed() == ""
    path.write_text(re.sub(r'"timeout": \d+', '"timeout": 1', good, count=1))
    unit = "ms" if name in ("gemini", "qwen") else "s"
    assert re.search(rf"the timeout of \w+ is 1 {unit} where \d+ {unit} are meant", failed())
    path.write_text(re.sub(r'"timeout": \d+', '"timeout": "9"', good, count=1))
    assert re.search(r"the timeout of \w+ is '9' and no number", failed())
    if '"matcher": "*"' in good:
        path.write_text(good.replace('"matcher": "*"', '"matcher": "Bash("', 1))
        assert "is 'Bash(', so the gate sees only part" in failed()


def test_what_is_installed_is_detected(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By program or by the folder it makes."""
    assert detected() == []
    (tmp_path / "home" / ".gemini").mkdir(parents=True)
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin")
    assert detected() == ["codex", "gemini"]


def test_a_dry_run_says_what_would_be_made_and_how_to_do_it(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line a file, every line on --diff; nothing is made; that no harness was found is said and not passed over."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    def dry(*args: str) -> tuple[list[str], str]:
        assert run(["init", "--dry-run", "--root", str(repo), *args]) == 0
        assert not (repo / ".git" / "projectmem").exists() and not (repo / ".claude").exists()
        said = capsys.readouterr()
        return said.out.splitlines(), said.err

    lines, heard = dry()
    settings = str(repo / ".claude" / "settings.local.json")
    assert "no harness was found" in heard and "Claude Code" in heard and "--harness" in heard
    assert len(lines) == 2 and lines[0].startswith(f"{settings}: new, ")
    assert lines[1].startswith(f"nothing was changed. It would also make the log in {repo}/.git/projectmem. ")
    both, heard = dry("--harness", "claude-code", "--harness", "gemini")
    assert len(both) == 3 and not heard
    assert any("PreToolUse" in line for line in dry("--diff")[0])


def test_a_comment_where_none_is_allowed_is_named(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Claude Code reads its settings without comments, so the file does nothing as it is."""
    path = repo / ".claude" / "settings.local.json"
    path.parent.mkdir()
    for text, line in (('{\n  // mine\n  "a": 1}', 2), ('{"a": 1}\n/* end */', 2), ('{"a": /* one */ 1}', 1)):
        path.write_text(text)
        assert run(["init", "--root", str(repo), "--harness", "claude-code"]) == 3
        assert f"allows no comments in this file (line {line})" in capsys.readouterr().err
        assert path.read_text() == text


def test_changes_shows_what_init_would_do_and_does_nothing(repo: Path) -> None:
    """The file as it is, and as it would be."""
    from projectmem.setup.preview import lines

    ((path, before, after),) = setup.changes(str(repo), harnesses=["gemini"])
    assert (path, before) == (repo / ".gemini" / "settings.json", "")
    assert not path.exists()
    shown = lines(path, before, after)
    assert any("BeforeTool" in line for line in shown)
    assert max(map(len, shown)) <= 110
    _init(repo, "gemini")
    assert path.read_text() == after
    assert setup.changes(str(repo), harnesses=["gemini"]) == []


OWN = [name for name in OTHERS if name not in SHARED]


@pytest.mark.parametrize("name", OWN)
def test_what_a_person_wrote_into_a_file_of_ours_is_kept(repo: Path, name: str) -> None:
    """Aside, where the harness does not look, and that is said: by `uninit`, and by an `init` that writes the file anew."""
    path = repo / HARNESSES[name].project
    _init(repo, name)
    file = path if path.is_file() else path / "PreToolUse"
    ours = file.read_bytes()
    for n, more in enumerate((b"\n", b"\n\n")):
        file.write_bytes(ours + more)
        said = _init(repo, name).warnings if n == 0 else setup.uninit(str(repo))
        aside = file.with_name(f"{file.name}.kept{n or ''}")
        assert any(str(file) in line and line.endswith(f"kept as {aside}") for line in said), said
        assert aside.read_bytes() == ours + more
        assert file.exists() == (n == 0) and (n == 1 or file.read_bytes() == ours)
    assert sorted(p.name for p in file.parent.iterdir()) == [f"{file.name}.kept", f"{file.name}.kept1"]


@pytest.mark.parametrize("name", OWN)
def test_a_file_that_another_version_wrote_is_no_changed_one(repo: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The note has what was written; nothing is left of it."""
    path = repo / HARNESSES[name].project
    with monkeypatch.context() as old:
        for module in (command, node_bridge):
            old.setattr(module, "interpreter", lambda: "/opt/old/bin/python3")
        _init(repo, name)
    assert "/opt/old" in (path if path.is_file() else path / "PreToolUse").read_text()
    assert not any("kept as" in line for line in setup.uninit(str(repo)))
    assert not path.exists()
