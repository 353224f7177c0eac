"""Failures of every kind leave words behind: one without any would send every later call down the slow path."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_gate.hints import raw_words
from projectmem_gate.identify import identify

CALLS: list[tuple[str, Any]] = [
    ("write_stdin", {"session_id": 59664, "chars": ""}),
    ("Skill", {"skill": "commit"}),
    ("Task", {"prompt": "Review the code", "nested": [{"deep": "word"}]}),
    ("Grep", {"pattern": "AgentName|Other", "path": "/w"}),
    ("Glob", {"pattern": "**/CHANGELOG*"}),
    ("mcp__linear__get_issue", {"id": "ACME-12"}),
    ("TaskUpdate", {"status": "completed", "taskId": "2"}),
    ("Bash", {"command": "echo 'unclosed npm run build"}),
    ("Bash", {"command": "w"}),
    ("Bash", {"command": "python -m a"}),
    ("Read", {"file_path": "a"}),
    ("Write", {"file_path": "caf\u00e9.txt", "content": "1"}),
    ("mcp__a__t", {"x": 1}),
    ("Bash", {"command": "gh pr create --body \"$(cat <<'EOF'\nnever closed"}),
]


@pytest.mark.parametrize(("tool", "given"), CALLS)
def test_every_call_leaves_words_that_its_input_holds(tool: str, given: Any) -> None:
    action = identify(tool, given, root="/w", cwd="/w")
    words = {word for part in action.parts for word in part.words}
    assert words
    assert words <= raw_words(given)


def test_what_held_a_secret_gives_no_words() -> None:
    """The hook's first look is at the input as it came, where the secret is not yet replaced."""
    action = identify("Lookup", {"token": "<secret:0a1b2c>", "name": "release"}, root="/w", cwd="/w")
    assert set(action.parts[0].words) <= {"release", "token", "name"}
    whole = identify("Bash", {"command": "curl -H 'x: <secret:0a1b2c> unclosed"}, root="/w", cwd="/w")
    assert not any(part.words for part in whole.parts)


def test_letters_beside_one_beyond_ascii_are_no_words() -> None:
    """Composed or decomposed, in either case: what touches it may be written otherwise."""
    for name in ("caf\u00e9x.\u212aey", "cafe\u0301x.Key\u0301"):
        action = identify("Write", {"file_path": f"{name}.md", "content": "1"}, root="/w", cwd="/w")
        assert action.parts[0].words == ("md",)
