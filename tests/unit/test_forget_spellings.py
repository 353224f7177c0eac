"""What a selector means: a text in every spelling, a path in every form, and what was said about an issue."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from projectmem_logs.canonical import canonical
from projectmem_logs.selecting import Selector, derived, opened, sources

TEXT = "Müller/Straße \U0001f600"
EVENT: dict[str, Any] = {"id": "x", "kind": "note.recorded", "at": 1, "actor": {}, "causes": []}


def escaped(text: str, times: int) -> str:
    """In JSON's ASCII, this often."""
    for _ in range(times):
        text = json.dumps(text)
    return text


SPELLINGS = [
    TEXT,
    unicodedata.normalize("NFD", TEXT),
    escaped(TEXT, 1),
    escaped(TEXT, 2),
    escaped(TEXT, 3),
    escaped(unicodedata.normalize("NFD", TEXT), 2),
    escaped(TEXT, 1).replace("fc", "FC").replace("df", "DF"),
    TEXT.replace("/", "\\/"),
    escaped(TEXT, 1).replace("/", "\\/"),
    json.dumps(json.dumps(TEXT, ensure_ascii=False).replace("/", "\\/")),
]


@pytest.mark.parametrize("given", [TEXT, unicodedata.normalize("NFD", TEXT)], ids=["composed", "decomposed"])
@pytest.mark.parametrize("spelling", SPELLINGS, ids=range(len(SPELLINGS)))
def test_a_text_is_found_in_every_spelling(given: str, spelling: str) -> None:
    """In an event, in its line before it is parsed, and in bytes of which no event can be made."""
    wanted = Selector(text=given)
    event = {**EVENT, "data": {"text": f"of {spelling} and others"}}
    assert wanted.matches(event) and wanted.may_concern(canonical(event)) and wanted.in_bytes(canonical(event)[5:])
    other = {**EVENT, "data": {"text": f"of {spelling.replace('ller', 'lle')} and others"}}
    assert not wanted.matches(other) and not wanted.may_concern(canonical(other)) and not wanted.in_bytes(canonical(other)[5:])


@pytest.mark.parametrize("given", ['say "4711" twice', "C:\\new\\table", "two\nlines", "plain words"])
@pytest.mark.parametrize("times", range(5))
def test_what_json_escapes_is_found_however_often_it_was(given: str, times: int) -> None:
    """Quotes, backslashes, line ends."""
    event = {**EVENT, "data": {"text": escaped(given, times)}}
    assert Selector(text=given).matches(event) and Selector(text=given).may_concern(canonical(event))
    assert not Selector(text=given + "x").matches(event)


def test_a_path_is_found_in_a_patch_and_with_other_separators() -> None:
    """`a/` and `b/` count where a patch writes them, and nowhere else."""
    wanted = Selector(path="src/f.py", root="/repo")
    for text in (
        "diff --git a/src/f.py b/src/f.py", "--- a/src/f.py", "+++ b/src/f.py", "diff a/src/g.py b/src/f.py", "src//f.py",
        "src\\f.py", ".\\src\\f.py", '"src\\\\f.py"', "/repo//src/f.py",
    ):  # fmt: skip
        assert wanted.matches({**EVENT, "data": {"text": text}}), text
    for text in ("a/src/f.py", "lib\\src\\f.py", "--- c/src/f.py", "src f.py", "diff --git a/src/f.pyc b/src/g.py"):
        assert not wanted.matches({**EVENT, "data": {"text": text}}), text


@pytest.mark.parametrize("kind", ["hypothesis.noted", "attempt.recorded", "fix.recorded", "issue.closed"])
def test_what_was_said_about_an_issue_goes_with_it(kind: str) -> None:
    """They name it in their payload and not as a cause; the line that names it is looked at whatever it says."""
    event = {**EVENT, "kind": kind, "data": {"issue": "k3x9", "text": "something"}}
    issue = {**EVENT, "id": "y", "kind": "issue.opened", "data": {"issue": "k3x9", "title": "t"}}
    edges = {"x": sources(event), opened(issue): {"y"}, "y": sources(issue)}
    assert "x" in derived(["y"], edges) and derived(["x"], edges) == set()
    assert Selector(text="Kilimanjaro").may_concern(canonical(event))
