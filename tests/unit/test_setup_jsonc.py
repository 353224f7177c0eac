"""Edits of settings in cases that no generator draws: spaces that JSON does not know, comments beside ours, repeated names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from projectmem.setup import claude_settings, hook_lists, jsonc

HOOK = {"type": "command", "command": "exec python -c 'projectmem.hook.entry'"}
GROUPS: dict[str, Any] = {"Pre": {"hooks": [HOOK]}}
OURS = json.dumps([{"hooks": [HOOK]}])


@pytest.mark.parametrize("space", ["\u00a0", "\f", "\v", "\u2028", "\u3000", "\x85"])
@pytest.mark.parametrize("text", ['{@"a": 1}', '{"a":@1}', '{"a": 1}@', '{"a": [1,@2]}'])
def test_a_space_that_json_does_not_know_is_named_and_nothing_changed(tmp_path: Path, space: str, text: str) -> None:
    """A harness drops such a file, without a word: `init` must not take it for whole, nor doctor."""
    path = tmp_path / "settings.json"
    path.write_text(text.replace("@", space), encoding="utf-8")
    before = path.read_bytes()
    for comments in (False, True):
        with pytest.raises(hook_lists.SettingsError, match=r"settings\.json:1:\d+ is not valid JSON"):
            hook_lists.add(path, GROUPS, comments=comments)
    assert len(claude_settings.problems(path)) == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "before", ['{\n  "a": 1, // keep\n  // of a\n  ', '{"a": 1, /* keep */ ', '{"a": 1 /* keep */, // of a\n']
)
@pytest.mark.parametrize("after", ["\n}\n", "}", " // end\n}\n", " /* end */ }", ",}"])
def test_a_comment_before_our_hooks_stays(tmp_path: Path, before: str, after: str) -> None:
    """Where somebody wrote in the file since, ours are cut out of it: what stands before them is theirs."""
    path = tmp_path / "settings.json"
    path.write_text(f'{before}"hooks": {{"Pre": {OURS}}}{after}')
    assert hook_lists.remove(path, comments=True)
    left = path.read_text()
    assert jsonc.parse(left).data == {"a": 1}
    assert left.count("keep") == 1 and left.count("of a") == before.count("of a") and left.count("end") == after.count("end")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f'{{"hooks": {{}}, "x": 1, "hooks": {{"Pre": {OURS}}}}}', '{"hooks": {}, "x": 1}'),
        (f'{{"x": 1, "hooks": {{"Pre": {OURS}}}, "x": 2}}', '{"x": 1, "x": 2}'),
        (f'{{"x": 1, "x": 2, "hooks": {{"Pre": {OURS}}}}}', '{"x": 1, "x": 2}'),
        (f'{{"hooks": {{"Pre": {OURS}, "B": [], "B": [1]}}}}', '{"hooks": {"B": [], "B": [1]}}'),
    ],
)
def test_names_that_come_twice_are_left_as_they_are(tmp_path: Path, text: str, left: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    assert hook_lists.remove(path)
    assert path.read_text() == left


def test_what_is_added_beside_a_name_that_comes_twice_stands_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"b": 1, "a": 1, "b": 2}')
    hook_lists.add(path, GROUPS)
    assert json.loads(path.read_text(), object_pairs_hook=lambda rows: [name for name, _ in rows]) == ["b", "a", "b", "hooks"]
