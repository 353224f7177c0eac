"""What `explain` says of events that are neither calls nor rules: sentences, and never a raw record."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_logs.kinds import KINDS

from projectmem import explain_events

ID = "0190aaaa-0000-7000-8000-000000000001"
NOW = 1_800_000_000_000_000
DATA: dict[str, tuple[dict[str, Any], str]] = {
    "decision.recorded": ({"title": "Use Postgres", "text": "it is\nthere", "supersedes": ""}, "Use Postgres"),
    "attempt.recorded": ({"issue": "ab", "text": "a cache", "outcome": "failed", "verifier": "pytest"}, "it: failed"),
    "fix.recorded": ({"issue": "ab", "text": "no cache", "verifier": "pytest"}, "by the word of: pytest"),
    "note.recorded": ({"text": "remember", "tags": ["x", "y"]}, "tags: x, y"),
    "issue.opened": ({"issue": "ab", "title": "Login broken", "paths": []}, "Login broken"),
    "feedback.given": ({"target": "ab", "useful": False, "note": ""}, "not useful"),
    "record.snoozed": (
        {"record": "ab", "key": "", "until": NOW + 60_000_000, "reason": "later"},
        "until 2027-01-15",
    ),
    "session.started": ({"source": "startup", "cwd": "/r"}, "because of: startup"),
    "log.recovered": ({"segment": "1.jsonl", "bytes": 7, "quarantine": "q", "offset": 0}, "kept aside as: q"),
}


def event(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"id": ID, "kind": kind, "ts": NOW, "at": NOW, "actor": {"origin": "human", "harness": "cli"}, "data": data}


@pytest.mark.parametrize("kind", DATA)
def test_an_event_is_told_in_sentences(kind: str) -> None:
    data, wanted = DATA[kind]
    lines = explain_events.told(event(kind, data), [], NOW)
    text = "\n".join(lines)
    assert wanted in text
    assert "written by a person (cli), 2027-01-15" in text
    assert not any(mark in text for mark in ("{", "[", "stream", "origin "))
    assert lines[-1] == f"The whole record: `projectmem explain {ID[:18]} --json`."


@pytest.mark.parametrize("kind", [*KINDS, "future.kind"])
@pytest.mark.parametrize("data", [{}, {"text": "a\x1b[2Jb", "reason": 4, "until": "x"}])
def test_any_kind_and_any_data_give_lines(kind: str, data: dict[str, Any]) -> None:
    text = "\n".join(explain_events.told(event(kind, data), [], NOW))
    assert ID in text
    assert "\x1b" not in text
