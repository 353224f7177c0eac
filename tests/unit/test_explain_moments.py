"""A decision told to somebody who never saw the code: what it was made of, why no more and no less, how it ends."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_gate.decide import decide
from projectmem_gate.history import Record
from projectmem_gate.identify import identify
from projectmem_gate.model import Session
from projectmem_gate.policy import Policy

from projectmem import moment
from projectmem.why import stronger

S = 1_000_000
NOW = 1_800_000_000 * S
SAME: dict[str, Any] = {"head": "same", "deps": "same", "files": "same", "env": "same", "tools": "same", "changes": []}


def tell(command: str = "npm run build", facts: dict[str, Any] | None = None, policy: Policy | None = None, **given: Any) -> str:
    """The moment at which a failure of `npm run build` is on record and `command` is proposed."""
    action = identify("Bash", {"command": command}, root="/r", cwd="/r")
    key = identify("Bash", {"command": "npm run build"}, root="/r", cwd="/r").key
    said: dict[str, Any] = {
        "cls": "build", "sig": "TS2304: Cannot find name", "excerpt": "src/a.ts\nTS2304: Cannot find name", "exit": 2,
        "text": "npm run build", "family": "npm run build", "session": "s0", "dur_ms": 2000, "by": [["claude-code", "m1", ""]],
    }  # fmt: skip
    record = Record(key, "0190aaaa-0000-7000-8000-000000000001", NOW - 60 * S, **(said | given))
    compared = SAME | {"since": 0} | (facts or {})
    rules, session = policy or Policy(), Session("s1")
    decision = decide(action, [record], {record.id: compared}, session, rules, NOW)
    return "\n".join(moment.told(action, decision, record, compared, session, rules, NOW))


def test_a_warning_is_told_whole() -> None:
    """Every question that a reader has is answered under a heading of its own."""
    text = tell()
    for line in (
        "What was proposed\n  npm run build\n  in the project's folder, with the tool Bash",
        "What it matched (the very same call)\n  failed 60 s ago: build (a build, a linter or a type check failed), exit 2",
        "  error: TS2304: Cannot find name",
        "What changed since\n  Nothing that could mend it: ",
        "How likely it is to fail again\n  93 %, made of: 93 % for build",
        "  93 % of the 2 s it took = 2 s to be lost; refusing it once pays from 30 s",
        "  warn: it lets the call run",
        "  not less: 93 % is over the 40 % from which it speaks",
        "  not more: it would refuse the call once if the failure had taken 32 s or more (it took 2 s)",
        "  the agent read:\n    > projectmem: ",
        "How to release it\n  by itself at ",
        "`projectmem dispute 0190aaaa-0000-7000`",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("given", "facts", "policy", "says"),
    [
        ({"origin": "import"}, {}, Policy(), "the hook itself had seen it fail (it was imported) and"),
        ({"dur_ms": 90_000}, {"files": "unknown"}, Policy(), "once if it were known that nothing changed (files)"),
        ({"dur_ms": 90_000}, {}, Policy(), "deny the call if it had failed alike 3 times in a row (it did 1 time) and"),
        (
            {"dur_ms": 90_000, "runs": [NOW - 70 * S, NOW - 65 * S, NOW - 60 * S], "ran_by": ["s0"] * 3},
            {},
            Policy(),
            "it would deny the call if the policy's mode were `enforce`",
        ),
        ({}, {"changes": [["edit", "src/a.ts", NOW - S]]}, Policy(), "it would warn if nothing of that had come between"),
        ({"variant": "| tail -5", "session": "s1"}, {}, Policy(), "it would warn if it looked at it in the same way"),
    ],
)  # fmt: skip
def test_why_no_more(given: dict[str, Any], facts: dict[str, Any], policy: Policy, says: str) -> None:
    """What is named would have made the gate say more: it was asked."""
    text = tell(facts=facts, policy=policy, **given)
    assert says in text


def test_what_changed_is_weighed_one_by_one() -> None:
    """An edit of a source file may mend a build, a read may not; a silent moment has nothing to release."""
    text = tell(facts={"changes": [["edit", "src/a.ts", NOW - 20 * S], ["read", "src/a.ts", NOW - 30 * S]]})
    rows = [line.strip() for line in text.splitlines() if line.endswith("mend it") and " ago" in line]
    assert [row.split(" ")[0] + row.partition(":")[2] for row in rows] == ["changed may mend it", "read cannot mend it"]
    assert "allow: it says nothing" in text
    assert "How to release it" not in text


def test_part_of_a_chain_is_named() -> None:
    """The failed command's own text, where the proposed one is longer."""
    text = tell("npm ci && git status && npm run build", {"changes": []})
    assert "What it matched (the same command as one part of this call)\n  npm run build\n" in text
    assert "it stood alone" in text


def test_nothing_is_above_a_denial() -> None:
    """And where no single, double or triple change gives more, nothing is claimed."""
    runs = [NOW - 70 * S, NOW - 65 * S, NOW - 60 * S]
    text = tell(policy=Policy(mode="enforce"), runs=runs, ran_by=["s0"] * 3)
    assert "  deny: it refuses the call until the record is cleared" in text
    assert "not more" not in text
    action = identify("Bash", {"command": "ls"}, root="/r", cwd="/r")
    record = Record("f" * 32, "r", NOW - S, cls="build")
    nothing = decide(action, [record], {}, Session("s1"), Policy(), NOW)
    assert stronger(nothing, action, record, {}, Session("s1"), Policy(), NOW) == ""
