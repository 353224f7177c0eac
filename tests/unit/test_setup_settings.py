"""Editing Claude Code's settings: what is there stays, what we add comes out again, and nothing invalid is touched."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from projectmem.hook.claude_code import EVENTS
from projectmem.setup import claude_settings
from projectmem.setup.claude_settings import SettingsError

OTHERS: dict[str, Any] = {
    "permissions": {"allow": ["Bash(ls)"], "deny": []},
    "env": {"A": "ä"},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine.sh"}]}],
        "Stop": [],
        "PostToolUse": [{"hooks": [{"type": "http", "url": "http://127.0.0.1/"}]}],
    },
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the settings go; neither the file nor its folder exists."""
    return tmp_path / ".claude" / "settings.local.json"


def _hooks(path: Path, event: str) -> list[dict[str, Any]]:
    return [hook for group in json.loads(path.read_text())["hooks"][event] for hook in group["hooks"]]


def test_add_registers_every_event_as_one_line(path: Path) -> None:
    """Each event has one command: an absolute interpreter, its arguments, a timeout; nothing relative."""
    claude_settings.add(path)
    for event, (timeout, matched) in EVENTS.items():
        (hook,) = _hooks(path, event)
        assert hook["type"] == "command"
        assert "args" not in hook, "Copilot CLI would run the command without them, the payload on its stdin"
        first, *words = shlex.split(hook["command"])
        assert first == "exec"
        assert Path(words[0]).is_absolute()
        assert words[1:4] == ["-I", "-S", "-c"]
        assert words[-2:] == ["claude-code", event]
        assert hook["timeout"] == timeout
        (group,) = json.loads(path.read_text())["hooks"][event]
        assert group.get("matcher") == ("*" if matched else None)


def test_add_keeps_everything_else(path: Path) -> None:
    """Other settings and other people's hooks stay, in their order and before ours."""
    path.parent.mkdir()
    path.write_text(json.dumps(OTHERS, indent=4, ensure_ascii=False))
    claude_settings.add(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert {k: v for k, v in data.items() if k != "hooks"} == {k: v for k, v in OTHERS.items() if k != "hooks"}
    assert data["hooks"]["PreToolUse"][0] == OTHERS["hooks"]["PreToolUse"][0]
    assert data["hooks"]["PostToolUse"] == OTHERS["hooks"]["PostToolUse"]
    assert '\n    "permissions"' in path.read_text(encoding="utf-8"), "the file's own indentation is kept"
    assert "ä" in path.read_text(encoding="utf-8")


def test_add_twice_changes_nothing(path: Path) -> None:
    """A second init leaves the very same bytes and does not write the file again."""
    claude_settings.add(path)
    before, stamp = path.read_bytes(), path.stat().st_ino
    claude_settings.add(path)
    assert path.read_bytes() == before
    assert path.stat().st_ino == stamp


def test_add_replaces_hooks_of_another_installation(path: Path) -> None:
    """What an older version registered is replaced and not doubled."""
    claude_settings.add(path)
    path.write_text(path.read_text().replace('"timeout": 10', '"timeout": 99').replace("sys.path +=", "sys.path[:0] ="))
    claude_settings.add(path)
    assert len(_hooks(path, "PreToolUse")) == 1
    assert _hooks(path, "PreToolUse")[0]["timeout"] == EVENTS["PreToolUse"][0]


@pytest.mark.parametrize(
    "before", [None, "{}", "", json.dumps(OTHERS, indent=4, ensure_ascii=False), '{"hooks": {}}\n', '{"hooks":{"Stop":[]}}']
)
def test_remove_gives_back_what_was_there(path: Path, before: str | None) -> None:
    """After add and remove the settings are what they were; a file and folder that we made are gone."""
    if before is not None:
        path.parent.mkdir()
        path.write_text(before, encoding="utf-8")
    note = claude_settings.add(path)
    assert claude_settings.registered(path)
    assert claude_settings.remove(path, note)
    if before is None:
        assert not path.parent.exists()
    else:
        assert json.loads(path.read_text(encoding="utf-8") or "{}") == json.loads(before or "{}")


def test_remove_without_a_note_takes_out_only_ours(path: Path) -> None:
    """Where the note is lost, our entries are still known by themselves."""
    path.parent.mkdir()
    path.write_text(json.dumps(OTHERS))
    claude_settings.add(path)
    claude_settings.remove(path)
    hooks = json.loads(path.read_text())["hooks"]
    assert hooks["PreToolUse"] == OTHERS["hooks"]["PreToolUse"]
    assert "PostToolBatch" not in hooks
    assert not claude_settings.remove(path)


def test_remove_keeps_a_hook_that_shares_our_group(path: Path) -> None:
    """A hook that a person put into our group survives."""
    claude_settings.add(path)
    data = json.loads(path.read_text())
    data["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "mine.sh"})
    path.write_text(json.dumps(data))
    claude_settings.remove(path)
    assert _hooks(path, "PreToolUse") == [{"type": "command", "command": "mine.sh"}]


@pytest.mark.parametrize(
    "text", ["{", "[]", '"x"', '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', '{"a": 1} // no', "\ufeff{"]
)
def test_invalid_settings_are_refused_untouched(path: Path, text: str) -> None:
    """A file that cannot be edited safely is named in the error and left as it is."""
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"settings\.local\.json"):
        claude_settings.add(path)
    assert path.read_text(encoding="utf-8") == text


def test_symlink_and_mode_survive(tmp_path: Path, path: Path) -> None:
    """A settings file kept elsewhere stays a link; a private file stays private."""
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o600)
    path.parent.mkdir()
    path.symlink_to(real)
    claude_settings.add(path)
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert claude_settings.registered(real)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(permissions="text"), "permissions"),
        (lambda d: d.update(disableAllHooks=True), "disableAllHooks"),
        (lambda d: d["hooks"]["PreToolUse"][0].update(matcher="bash"), "matcher"),
        (lambda d: d.update(hooks=[]), "hooks"),
    ],
)
def test_problems_names_what_silences_hooks(path: Path, change: Any, said: str) -> None:
    """Each setting that makes the client drop hooks without a word is found; a good file has no problems."""
    claude_settings.add(path)
    assert claude_settings.problems(path) == []
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    assert any(said in text for text in claude_settings.problems(path))


_THEIRS: dict[str, Any] = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true", "timeout": 5}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(model=3), "`model` is not a text"),
        (lambda d: d.update(model=None), "`model` is not a text"),
        (lambda d: d.update(includeCoAuthoredBy="no"), "`includeCoAuthoredBy` is not true or false"),
        (lambda d: d.update(statusLine="x"), "`statusLine` is not an object"),
        (lambda d: d.update(availableModels="x"), "`availableModels` is not a list"),
        (lambda d: d.update(permissions={"allow": "x"}), "`allow` is not a list"),
        (lambda d: d.update(permissions={"defaultMode": 3}), "`defaultMode` is not a text"),
        (lambda d: d["hooks"]["PreToolUse"].append("x"), "no object with a list `hooks`"),
        (lambda d: d["hooks"]["PreToolUse"].append({"matcher": "x"}), "no object with a list `hooks`"),
        (lambda d: d["hooks"]["PreToolUse"].append({"hooks": [{"command": "true"}]}), "has no `type`"),
        (lambda d: d["hooks"]["PreToolUse"].append({"hooks": ["true"]}), "has no `type`"),
        (lambda d: d["hooks"]["PreToolUse"].append({"hooks": [{"type": "command"}]}), "has no `command`"),
        (lambda d: d["hooks"]["PreToolUse"].append({"hooks": [{"type": "http"}]}), "has no `url`"),
        (lambda d: d["hooks"]["PreToolUse"].append({**_THEIRS, "matcher": 3}), "a `matcher` of PreToolUse is not a text"),
        (lambda d: d["hooks"]["PreToolUse"][0]["hooks"][0].update(timeout="10"), "is no number above 0"),
        (lambda d: d["hooks"]["PreToolUse"][0]["hooks"][0].update(timeout=None), "is no number above 0"),
    ],
)
def test_what_makes_claude_code_ignore_the_whole_file_is_named(path: Path, change: Any, said: str) -> None:
    """Each was tried on the client (2.1.332): no hook of the file ran, and nothing was said."""
    claude_settings.add(path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    (text,) = claude_settings.problems(path)
    assert said in text and text.endswith("so Claude Code ignores the whole file")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(unknown=3, env={"A": 1}, permissions={"allow": [3], "defaultMode": "plan"}, effortLevel=3),
        lambda d: d["hooks"]["PreToolUse"].append(_THEIRS),
        lambda d: d["hooks"]["PreToolUse"].append({"hooks": []}),
        lambda d: d["hooks"].update(Stop=[{"hooks": [{"command": "true"}]}], Nope=[3]),
        lambda d: d["hooks"]["PreToolUse"][0]["hooks"][0].update(more=1),
    ],
)
def test_what_the_client_takes_is_no_problem(path: Path, change: Any) -> None:
    """These were tried too: the hooks ran."""
    claude_settings.add(path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    assert claude_settings.problems(path) == []
