"""The first look never hides a rule: whatever a rule, a label or a decision's clause covers, its words are in the call."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_gate.globs import writes
from projectmem_gate.identify import identify
from projectmem_gate.rule_words import may_cover, sure
from projectmem_gate.rules import OR, _bare, matches

from projectmem.hook.spelling import input_words, real_words
from tests.property.test_hook_quick import VECTORS, _spellings


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A work tree with a folder and a file behind symbolic links."""
    made = tmp_path_factory.mktemp("w").resolve()
    (made / "src").mkdir()
    (made / "src" / "app.py").touch()
    (made / "handbook.md").symlink_to("src/app.py")
    (made / "via").symlink_to("src")
    return str(made)


def _texts(action: Any) -> Iterator[tuple[str, str]]:
    """(target, text that a pattern could name) of an action."""
    yield "tool", action.tool
    for part in action.parts:
        if part.kind == "sh":
            for text in (part.family, part.text, _bare(part.text)):
                words = text.split()
                yield from (("command", " ".join(words[:n])) for n in range(1, min(len(words), 4) + 1))
        for path in writes(part):
            names = path.split("/")
            yield from (("path", "/".join(names[:n])) for n in range(1, len(names) + 1))
            yield from (("path", "/".join(names[n:])) for n in range(1, len(names)))


def _globs(text: str) -> Iterator[str]:
    """The text, and patterns that cover it."""
    yield text
    yield f"{text}*"
    yield f"*{text}"
    for at in range(1, len(text), 2):
        yield f"{text[:at]}*{text[at + 1 :]}"
        yield f"{text[:at]}?{text[at + 1 :]}"
    yield f"nothing{OR}{text}"


def _hidden(root: str, tool: str, given_input: Any, cwd: str) -> list[tuple[str, str]]:
    """Rules that cover the call and that the first look would not see."""
    given_input = json.loads(json.dumps(given_input))
    call: Any = {"tool": tool, "input": given_input, "cwd": cwd, "harness": "claude-code"}
    words, named = input_words(call, root), real_words(call, root)
    action = identify(tool, given_input, root=root, cwd=cwd, harness="claude-code", resolve=os.path.realpath)
    return [
        (target, pattern)
        for target, text in dict.fromkeys(_texts(action))
        for pattern in _globs(text)
        if any(matches(target, pattern, action, part) for part in action.parts)
        and not may_cover([{"label": "protected", "target": target, "pattern": pattern}], tool, given_input, words, named)
    ]


@given(spellings=_spellings(), inside=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_rule_that_covers_a_call_is_hidden(root: str, spellings: list[tuple[str, Any]], inside: bool) -> None:
    """Whatever the spelling, and with folders behind links."""
    cwd = f"{root}/src" if inside else root
    for tool, given_input in spellings:
        assert not _hidden(root, tool, given_input, cwd), (tool, given_input)
        if isinstance(given_input, dict) and isinstance(given_input.get("file_path"), str):
            linked = {**given_input, "file_path": f"{root}/via/{Path(given_input['file_path']).name}"}
            assert not _hidden(root, tool, linked, cwd), (tool, linked)


def test_no_published_spelling_is_hidden(root: str) -> None:
    """Both sides of every published pair."""
    pairs = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
    for pair in pairs:
        for side in (pair["a"], pair["b"]):
            folder = side.get("cwd", "/srv/acme").replace("/srv/acme", root)
            given_input = json.loads(json.dumps(side["input"]).replace("/srv/acme", root))
            assert not _hidden(root, side["tool"], given_input, folder), side


@pytest.mark.parametrize(
    ("target", "pattern", "words"),
    [
        ("command", "git push --force", [{"git", "push"}]),
        ("command", "npm install | yarn", [{"npm"}, {"yarn"}]),
        ("command", "*push*", [set()]),
        ("command", "bunx x", [set()]),
        ("command", "DATABASE_URL=x psql", [set()]),
        ("tool", "mcp__db__*", [{"db"}]),
        ("tool", "mcp__d*", [set()]),
        ("path", "db/migrations/*.sql", [{"db", "migrations", "sql"}]),
        ("path", "**/*secret*", [set()]),
        ("path", "src/caf\u00e9", [{"src"}]),
    ],
)
def test_what_is_sure_of_a_pattern(target: str, pattern: str, words: list[set[str]]) -> None:
    """Names that have no other spelling; nothing where one may be missing."""
    assert [set(found) for found in sure(target, pattern)] == words
