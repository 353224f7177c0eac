"""What a session is told of what is remembered: with a prompt, after a failure, at its start, and nothing twice."""

from __future__ import annotations

import json
from typing import Any

from projectmem_logs.store import LogStore

NOTE = "connect ECONNREFUSED 127.0.0.1:6379 in the queue tests: start redis with make queue-up before running the suite"
ERROR = "Exit code 1\nError: connect ECONNREFUSED 127.0.0.1:6379 in the queue tests\n1 failing"
PROMPT = "connect ECONNREFUSED 127.0.0.1:6379 in the queue tests"


def remember(hooked: Any, text: str = NOTE) -> None:
    """A note that an agent wrote earlier."""
    now = hooked.now
    actor = {"session": "earlier", "agent": "", "harness": "h", "model": "m", "origin": "agent"}
    draft = {"kind": "note.recorded", "at": now, "actor": actor, "causes": [], "data": {"text": text, "tags": []}}
    LogStore(str(hooked.home)).append([draft], now=now)


def told(answer: Any) -> str:
    return json.dumps(answer) if answer else ""


def failed(hooked: Any, session: str, command: str = "make queue-test") -> str:
    """The answer to the event of a failure."""
    call = hooked.call(command)
    return told(hooked.fire("PostToolUseFailure", session, **call, error=ERROR, is_interrupt=False, duration_ms=5000))


def test_a_failure_is_answered_with_what_is_known_of_it_once(hooked: Any) -> None:
    remember(hooked)
    first = failed(hooked, "one")
    assert "start redis with make queue-up" in first
    assert "what the user says now wins" in first
    assert "queue-up" not in failed(hooked, "one")
    decided = hooked.events("recall.decided")
    assert [event["data"]["surface"] for event in decided] == ["failure"]
    assert decided[0]["data"]["query"] == ""


def test_a_failure_reads_only_so_much_of_a_log(hooked: Any, monkeypatch: Any) -> None:
    """Its cost does not grow with the log: beyond a limit nothing is said, until a generation stands that says it."""
    from projectmem_projections import recollection

    remember(hooked)
    for n in range(20):
        failed(hooked, "old", f"make other-{n}")
    monkeypatch.setattr("projectmem.recall_light.READ_MAX", 20_000)
    assert failed(hooked, "one") == ""
    recollection.refresh(str(hooked.home), None)
    assert "ECONNREFUSED" in failed(hooked, "two")
    for n in range(20):
        failed(hooked, "old", f"make more-{n}")
    assert failed(hooked, "three") == ""


def test_a_failure_does_not_recall_itself(hooked: Any) -> None:
    assert failed(hooked, "one") == ""
    assert failed(hooked, "two") == ""


def test_a_prompt_brings_it_and_the_failure_after_it_does_not_again(hooked: Any) -> None:
    remember(hooked)
    prompt = told(hooked.fire("UserPromptSubmit", "one", prompt=PROMPT))
    assert "queue-up" in prompt
    assert "what the user says now wins" in prompt
    assert "queue-up" not in failed(hooked, "one")


def test_what_the_start_said_is_not_said_with_the_prompt(hooked: Any) -> None:
    remember(hooked)
    start = told(hooked.fire("SessionStart", "one", source="startup"))
    assert "queue-up" in start
    assert start.count("what the user says now wins") == 1
    assert told(hooked.fire("UserPromptSubmit", "one", prompt=PROMPT)) == ""
    assert "queue-up" in told(hooked.fire("UserPromptSubmit", "two", prompt=PROMPT))
    hooked.fire("SessionStart", "one", source="compact")
    surfaces = [event["data"]["surface"] for event in hooked.events("recall.decided")]
    assert surfaces == ["start", "prompt", "start"]


def test_a_session_that_goes_on_is_told_only_what_is_new_to_it(hooked: Any) -> None:
    """Resumed, its context still has what it was told; after a compaction it has not."""
    remember(hooked)
    assert "queue-up" in told(hooked.fire("SessionStart", "one", source="startup"))
    assert told(hooked.fire("SessionStart", "one", source="resume")) == ""
    hooked.now += 600 * 1_000_000  # a second hook of the same moment is another thing
    remember(hooked, "the nightly build needs node 22 since the bundler was replaced")
    again = told(hooked.fire("SessionStart", "one", source="resume"))
    assert "node 22" in again
    assert "queue-up" not in again
    assert "queue-up" in told(hooked.fire("SessionStart", "one", source="compact"))
    assert "queue-up" in told(hooked.fire("SessionStart", "two", source="resume"))


def test_a_prompt_about_something_else_is_silence(hooked: Any) -> None:
    remember(hooked)
    assert told(hooked.fire("UserPromptSubmit", "one", prompt="please write a poem about autumn leaves")) == ""
    assert not hooked.events("recall.decided")


def test_what_recalls_is_asked_only_where_it_can_answer(hooked: Any, monkeypatch: Any) -> None:
    """With more log than is read and no generation yet, nothing of it is even loaded; with a generation it is asked."""
    from projectmem_projections.recollection import refresh

    from projectmem import recall_light

    asked: list[str] = []
    real = recall_light.lexical

    def lexical(home: str, *rest: Any, **more: Any) -> Any:
        asked.append(home)
        return real(home, *rest, **more)

    monkeypatch.setattr(recall_light, "lexical", lexical)
    monkeypatch.setattr(recall_light, "READ_MAX", 100)
    remember(hooked)
    assert failed(hooked, "one") == "" and not asked
    refresh(str(hooked.home), None)
    monkeypatch.setattr(recall_light, "READ_MAX", 1 << 20)
    assert "start redis" in failed(hooked, "two") and asked
