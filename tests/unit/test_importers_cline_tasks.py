"""The history of Cline's editor extension, made by hand to the form that its sources write: no real one could be run here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from projectmem import place as places
from projectmem.importers import cline
from projectmem.importers.reading import Counts
from projectmem.importers.sources import named
from projectmem.setup.init import init

MS = 1_764_000_000_000
DETAILS = "<environment_details>\n# Current Working Directory (%s) Files\na.py\n</environment_details>"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tagged(cwd: str) -> list[dict[str, Any]]:
    edit = "------- SEARCH\nx = 1\n=======\nx = '</diff>'\n+++++++ REPLACE"
    return [
        {"role": "user", "content": [_text("<task>\nmend it\n</task>"), _text(DETAILS % cwd)]},
        {"role": "assistant", "content": [_text(
            "Look.\n<execute_command>\n<command>make &amp; x</command>\n"
            "<requires_approval>false</requires_approval>\n</execute_command>"
        )]},
        {"role": "user", "content": [
            _text("[execute_command for 'make &amp; x'] Result:"), _text("Command executed.\nOutput:\nmake: *** No rule"),
            _text(DETAILS % "/elsewhere"),
        ]},
        {"role": "assistant", "content": f"<replace_in_file>\n<path>a.py</path>\n<diff>\n{edit}\n</diff>\n</replace_in_file>"},
        {"role": "user", "content": "[replace_in_file for 'a.py'] Result:\nThe content was successfully saved to a.py."},
        {"role": "assistant", "content": [_text("<read_file>\n<path>gone.py</path>\n</read_file>")]},
        {"role": "user", "content": [_text(
            "[read_file for 'gone.py'] Result:\n"
            "The tool execution failed with the following error:\n<error>\nno such file\n</error>"
        )]},
        {"role": "assistant", "content": [_text("<execute_command><command>rm -r x</command></execute_command>")]},
        {"role": "user", "content": [_text("[execute_command for 'rm -r x'] Result:\nThe user denied this operation.")]},
    ]  # fmt: skip


def _native(cwd: str) -> list[dict[str, Any]]:
    def use(id: str, command: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": "execute_command", "input": {"command": command}}

    def result(id: str, text: Any) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": id, "content": text}

    model = {"modelId": "m", "providerId": "p"}
    return [
        {"role": "user", "content": [_text("go"), _text(DETAILS % cwd)], "ts": MS},
        {"role": "assistant", "content": [use("a", "pytest"), use("b", "ls")], "ts": MS + 1_000, "modelInfo": model},
        {"role": "user", "content": [
            result("b", "[execute_command for 'ls'] Result:\nCommand executed successfully (exit code 0).\nOutput:\na.py"),
            result("a", [_text("Command failed with exit code 2.\nOutput:\n1 failed")]), result("zz", "nobody's"),
        ], "ts": MS + 4_000},
        {"role": "assistant", "content": [use("c", "sleep 99")], "ts": MS + 5_000},
        {"role": "user", "content": [result("c", "Command execution timed out after 30 seconds.\nOutput:\n")], "ts": MS + 9_000},
        {"role": "assistant", "content": [use("d", "npm start")], "ts": MS + 9_500},
        {"role": "user", "content": [result("d", "Command is still running in the user's terminal.")], "ts": MS + 9_900},
    ]  # fmt: skip


def _kept(folder: Path, messages: Any, task: str = "1764000000000") -> Path:
    path = folder / "globalStorage" / "saoudrizwan.claude-dev" / "tasks" / task / "api_conversation_history.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(messages))
    return path


def test_calls_in_tags_and_their_results(tmp_path: Path) -> None:
    """A result may be one text or go on in the next; the text of a file may hold the tags that end it."""
    path = _kept(tmp_path, _tagged("/srv/shop"))
    shown = [{"ts": MS + n * 1_000, "type": "say", "conversationHistoryIndex": n - 1} for n in range(9)]
    path.with_name("ui_messages.json").write_text(json.dumps([*shown, {"ts": "x"}, 5]))
    counts = Counts()
    make, edit, read, denied = cline.read_calls(path, counts)
    assert counts.damaged == 0
    assert (make["tool"], make["input"]["command"], make["cwd"]) == ("execute_command", "make &amp; x", "/srv/shop")
    assert (make["output"], make["exit_code"], make["is_error"]) == ("make: *** No rule", None, None)
    assert (make["began"], make["at"]) == ((MS + 1_000) * 1_000, (MS + 2_000) * 1_000)
    assert edit["input"]["diff"].endswith("x = '</diff>'\n+++++++ REPLACE") and edit["is_error"] is False
    assert (read["is_error"], read["error_kind"], "no such file" in read["output"]) == (True, "tool", True)
    assert denied["error_kind"] == "denied"
    assert len({call["call"] for call in (make, edit, read, denied)}) == 4
    assert [call["call"] for call in cline.read_calls(path, Counts())] == [c["call"] for c in (make, edit, read, denied)]


def test_calls_as_the_model_s_own_tool_calls(tmp_path: Path) -> None:
    """Results come in any order; exit codes, limits and what is left running are told."""
    listed, failed, late, left = cline.read_calls(_kept(tmp_path, _native("/srv/shop")), Counts())
    assert (listed["call"], listed["exit_code"], listed["output"], listed["model"]) == ("b", 0, "a.py", "m")
    assert (failed["call"], failed["exit_code"], failed["is_error"], failed["output"]) == ("a", 2, True, "1 failed")
    assert (failed["at"], failed["duration_ms"]) == ((MS + 4_000) * 1_000, 3_000)
    assert late["timed_out"] and left["background"] == "async"


@pytest.mark.parametrize("where", [
    ".config/Code", ".config/Code - Insiders", ".config/Cursor", ".config/VSCodium", "Library/Application Support/Code",
    "Library/Application Support/Cursor", "AppData/Roaming/Code", ".vscode-server/data",
])  # fmt: skip
def test_init_learns_from_every_editor_s_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Of this repository and no other; again adds nothing. The folder may stand in the list of tasks alone."""
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    repo = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    user = tmp_path / where / "User"
    _kept(user, _native(str(repo)))
    _kept(user, _native("/another"), "2")
    bare = [{**message, "content": message["content"][:1]} if n == 0 else message for n, message in enumerate(_native(""))]
    _kept(user, json.loads(json.dumps(bare).replace('"a"', '"e"').replace('"b"', '"f"')), "3")
    history = user / "globalStorage/saoudrizwan.claude-dev/state/taskHistory.json"
    history.parent.mkdir()
    history.write_text(json.dumps([{"id": "3", "cwdOnTaskInitialization": str(repo)}]))
    report = init(str(repo), now=(MS + 60_000) * 1_000, harnesses=["cline"])
    assert report.counts is not None and report.counts.files == 2 and report.counts.recorded >= 6
    again = init(str(repo), now=(MS + 60_000) * 1_000, harnesses=["cline"]).counts
    assert again is not None and again.recorded == 0
    place = places.locate(str(repo))
    assert place is not None and len(cline.session_files(place)) == 3


@pytest.mark.parametrize("text", [
    "", "{", "{}", "5", '[1, null, {"role": "assistant"}]', '[{"role": "user", "content": 5}]',
    '[{"role": "assistant", "content": [{"type": "tool_use", "name": 5}, 7]}, '
    '{"role": "user", "content": [{"type": "tool_result"}]}]',
])  # fmt: skip
def test_a_damaged_file_is_named_and_does_no_harm(tmp_path: Path, text: str) -> None:
    """What holds no call gives none; what is no history is said."""
    path = _kept(tmp_path, [])
    path.write_text(text)
    path.with_name("ui_messages.json").write_text("{")
    counts = Counts()
    assert list(named("cline")(path, counts)) == []
    assert counts.damaged == (1 if text in ("", "{", "{}", "5") else 0)
