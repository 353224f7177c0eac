"""What the agent reads, in words that say what happened: no names of the program's own, nothing that a person would not type."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_gate import reason, spans
from projectmem_gate.decide import decide
from projectmem_gate.history import Record
from projectmem_gate.identify import identify
from projectmem_gate.model import Session
from projectmem_gate.policy import Policy

from projectmem import output, render

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
SAME: dict[str, Any] = {"head": "same", "deps": "same", "files": "same", "changed_files": [], "changes": []}


def said(command: str, **record: Any) -> str:
    """The reason for a call that failed a moment ago as `record` says."""
    action = identify("Bash", {"command": command}, root="/r", cwd="/r")
    part = action.parts[-1]
    failed = Record(
        action.key, "0190aaaa-0000-7000-8000-000000000001", NOW - SECOND, family=part.family, **{"text": action.text} | record
    )
    return decide(action, [failed], {failed.id: SAME}, Session("s1"), Policy(), NOW).reason


def test_a_program_that_may_not_be_run_is_no_login() -> None:
    """Exit code 126 is the shell's; a login that failed is still one."""
    refused = said("./run.sh", cls="auth", exit=126, sig="bash: run.sh: Permission denied")
    assert "Not executable or not allowed; no chmod, login or sudo since." in refused
    assert "No login since" in said("gh pr list", cls="auth", exit=4, sig="not logged in")


def test_what_printed_nothing_is_said_so() -> None:
    """The signature of nothing is no error to quote; `unknown` says less than the exit code."""
    text = said("ls missing | xargs ls", cls="runtime", exit=123, sig="runtime without output")
    assert "exit 123, runtime; it printed nothing." in text
    assert "quoted as data" not in text


@pytest.mark.parametrize(
    ("recorded", "typed"),
    [
        ("cat > /tmp/a.py <1bd56aeb; python /tmp/a.py", "python /tmp/a.py"),
        ("cat > /tmp/a.py <1bd56aeb", "cat > /tmp/a.py <1bd56aeb"),
        ("ls  # xargs", "xargs ls"),
        ("npm run build  # in web", "cd web && npm run build"),
        ("make test  # in /srv, ssh host", "ssh host 'cd /srv && make test'"),
        ("make test  # in ?$d, for d in a b", "make test (for d in a b)"),
        ("npm ci && npm test  # in web", "npm ci && npm test (in web)"),
        ("npm ci  # in web && npm test  # in web", "npm ci  # in web && npm test  # in web"),
        ("cat > notes; ls", "cat > notes; ls"),
    ],
)
def test_an_action_is_named_as_it_is_typed(recorded: str, typed: str) -> None:
    """Without the file that the call writes first; a text alone stays."""
    assert reason.said(recorded) == typed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (30, "within a minute"),
        (61, "in 61 s"),
        (7 * 86_400 - 5, "in 7 days"),
        (3_599, "in 60 min"),
        (86_390, "in 24 h"),
        (5_400, "in 90 min"),
    ],
)
def test_what_is_to_come_is_rounded(seconds: int, text: str) -> None:
    """A failure that has just happened lapses in a week, not in six days."""
    assert spans.within(seconds * SECOND) == text


def test_a_person_s_decision_is_told_as_one() -> None:
    """What was decided, and how to read more; no pattern."""
    label = {
        "id": "0190aaaa-0000-7000-8000-000000000002", "origin": "human", "label": "rule", "target": "path", "pattern": "src/gen",
        "instead": "", "effect": "deny", "reason": "do not edit src/gen/", "decision": "d", "hits": 0, "review_at": 0,
    }  # fmt: skip
    action = identify("Bash", {"command": "rm src/gen/a"}, root="/r", cwd="/r")
    text = decide(action, [], {}, Session("s1"), Policy(), NOW, labels=[label]).reason
    first, second, *_ = text.split("\n")
    assert (first, second) == (
        "projectmem: a person decided: do not edit src/gen/",
        "`projectmem explain 0190aaaa-0000-7000`",
    )
    held = decide(action, [], {}, Session("s1"), Policy(), NOW, labels=[label | {"hits": 99}]).reason
    assert "it would have objected to 99 past calls" in held


def test_our_own_command_passes_as_a_module_too() -> None:
    """A rule against `python` does not stand in the way of the repair; a script of a like name is not ours."""
    label = {
        "id": "0190aaaa-0000-7000-8000-000000000002", "origin": "human", "label": "rule", "target": "command",
        "pattern": "python", "instead": "", "effect": "deny", "reason": "use uv", "decision": "d", "hits": 0, "review_at": 0,
    }  # fmt: skip
    for command, verdict in (
        ("python -m projectmem.cli failures", "allow"),
        ("python3 -m projectmem doctor", "allow"),
        ("python projectmem.py", "deny"),
        ("python -m projectmemory.cli", "deny"),
        ("python -m venv projectmem.cli", "deny"),
    ):
        action = identify("Bash", {"command": command}, root="/r", cwd="/r")
        got = decide(action, [], {}, Session("s1"), Policy(), NOW, labels=[label])
        assert (command, got.verdict) == (command, verdict)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (9, "just now"),
        (10, "10 s ago"),
        (119, "119 s ago"),
        (7_199, "2 h ago"),
        (6 * 86_400 - 100, "6 days ago"),
        (-5, "just now"),
    ],
)
def test_ages_are_rounded_like_what_is_to_come(seconds: int, text: str) -> None:
    """The hook, `failures`, `explain` and the page say the same of one moment."""
    now = 1_800_000_000 * SECOND
    assert spans.ago(seconds * SECOND) == text
    assert output.ago(now - seconds * SECOND, now) == render.ago(now - seconds * SECOND, now) == text or seconds < 0


def test_a_file_that_the_call_writes_first_is_not_named() -> None:
    """As the identity writes it down: with the digest of what was written."""
    action = identify("Bash", {"command": "cat > /tmp/a.py <<'EOF'\nx\nEOF\npython /tmp/a.py"}, root="/r", cwd="/r")
    assert " <<" in action.text
    assert reason.said(action.text) == "python /tmp/a.py"


def test_a_hidden_failure_and_an_empty_edit_are_told_as_what_they_are() -> None:
    """An exit code of 0 is no contradiction; of an edit that changes nothing, the file has no share."""
    assert "exit 0 hides it, usage" in said("npm view x", cls="usage", exit=0, sig="npm error 404 No match")
    same = "No changes to make: old_string and new_string are exactly the same."
    assert "The edit changes nothing" in said("edit a.py: x -> x", cls="edit-mismatch", sig=same)


def test_the_digest_of_a_signature_is_not_read_aloud() -> None:
    """It keeps failures apart, and nobody can read it; an issue's number stays."""
    assert "<<make: *** Error 1>>" in said("make", sig="make: *** Error 1 #a09b1afe")
    assert "<<see #12345678x>>" in said("make", sig="see #12345678x")
