"""What real tools print: failures behind an exit code of 0, codes that are answers, one failure in two runs; texts of our own.

Written before the judge was asked. At first 13 of the 22 hidden ones were found, all 16 answers were told as such, and 17 of
22 failures had one signature in both runs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from projectmem_gate.identify import identify
from projectmem_gate.model import FAILED, OK, Outcome
from projectmem_gate.outcome import judge

CASES = [json.loads(line) for line in Path(__file__).with_name("told_outcomes.jsonl").read_text(encoding="utf-8").splitlines()]


def told(command: str, code: int, output: str) -> Outcome:
    action = identify("Bash", {"command": command}, root="/srv/acme", cwd="/srv/acme")
    return judge(action, exit_code=code, output=output, is_error=code != 0)


@pytest.mark.parametrize("case", CASES, ids=[f"{c['what']}: {c['command']}" for c in CASES])
def test_what_tools_print_is_told_right(case: dict[str, Any]) -> None:
    seen = [told(case["command"], case["exit"], output) for output in case["outputs"]]
    assert {s.outcome for s in seen} == {OK if case["what"] == "benign" else FAILED}
    assert len({(s.cls, s.signature) for s in seen}) == 1, [s.signature for s in seen]


@pytest.mark.parametrize(
    ("command", "one", "other"),
    [
        ("npm test", "● adds \u203a two\n  Expected: 4", "● adds \u203a three\n  Expected: 4"),
        (
            "npx playwright test",
            "  1 failed\n    [chromium] \u203a login.spec.ts:4:5 \u203a logs in",
            "  1 failed\n    [chromium] \u203a b.spec.ts:9:5 \u203a pays",
        ),
        (
            "pulumi up",
            "    error: 1 error occurred:\n  * creating Bucket: taken",
            "    error: 1 error occurred:\n  * creating Queue: denied",
        ),
        (
            "stack build",
            "src/A.hs:1:2: error: [GHC-88464]\n  not in scope: a",
            "src/A.hs:1:2: error: [GHC-83865]\n  Couldn't match b",
        ),
        ("flutter test", "00:03 +4 -1: Price rounds [E]", "00:03 +4 -1: Price taxes [E]"),
    ],
)
def test_what_only_says_that_something_failed_keeps_different_failures_apart(command: str, one: str, other: str) -> None:
    assert told(command, 1, one).signature != told(command, 1, other).signature


def test_a_report_s_failing_test_is_named_with_what_it_said() -> None:
    """As the importers of JUnit XML write it down: no file of Python need be in it."""
    assert told("npm test", 1, "FAILED t::adds two - boom\n1 failed, 0 passed").signature == "FAILED t::adds two - boom"
