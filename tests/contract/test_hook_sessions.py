"""Whole sessions through the hook in process: what is learned, what is said, what is never learned, each once."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from typing import Any

import pytest

from projectmem.hook import degraded

BUILD = "npm run build"
ERROR = "Exit code 2\nsrc/app.ts(3,5): error TS2304: Cannot find name 'x'.\nnpm error code 2"


def _costly(hooked: Any) -> None:
    """Three sessions waited two minutes each for the same failure: worth a refusal."""
    for session in ("a", "b", "c"):
        hooked.fails(hooked.call(BUILD), ERROR, session, ms=120_000)


def test_nothing_on_record_is_silence(hooked: Any) -> None:
    """A first call is answered with nothing at all."""
    assert hooked.run("ls -la") is None
    assert hooked.outcomes() == [("ls -a -l", "ok")]


def test_a_failure_is_spoken_of_in_another_session(hooked: Any) -> None:
    """What one session saw fail, the next is told before it repeats it, however it spells it."""
    hooked.run(BUILD, ERROR)
    said = hooked.before(hooked.call("npm  run 'build' 2>&1 | tail -5"), "two")
    assert said is not None
    assert BUILD in json.dumps(said)
    (proposed,) = hooked.events("action.proposed")
    assert proposed["data"]["decision"]["record"] == hooked.events("action.finished")[0]["id"]
    assert proposed["data"]["facts"]
    assert hooked.before(hooked.call("npm test"), "two") is None


def test_a_failure_told_by_two_events_is_recorded_once(hooked: Any) -> None:
    """PostToolUseFailure and the batch tell the same; so does a hook that is registered twice."""
    call = hooked.call(BUILD)
    for _ in range(2):
        hooked.before(call)
    for _ in range(2):
        hooked.fails(call, ERROR)
    (event,) = hooked.events("action.finished")
    assert (event["data"]["outcome"], event["data"]["exit_code"], event["data"]["duration_ms"]) == ("failed", 2, 5000)


def test_the_same_call_asked_about_twice_is_one_proposal_and_one_answer(hooked: Any) -> None:
    """Two registrations of the hook give one warning and one event; where they refuse, both do: one of them may be killed."""
    hooked.run(BUILD, ERROR)
    call = hooked.call(BUILD)
    answers = [hooked.before(call, "two") for _ in range(2)]
    assert answers[0] is not None
    assert answers[1] is None
    assert len(hooked.events("action.proposed")) == 1
    _costly(hooked)
    call = hooked.call(BUILD)
    refused = [hooked.before(call, "three") for _ in range(2)]
    assert [answer and answer["permissionDecision"] for answer in refused] == ["deny", "deny"]
    assert len(hooked.events("action.proposed")) == 2


def test_a_session_told_by_two_hooks_starts_ends_and_takes_its_turns_once(hooked: Any) -> None:
    """A plugin and a settings file may both have the hook: one summary, one event of each, one turn a batch."""
    hooked.run(BUILD, ERROR)
    starts = [hooked.fire("SessionStart", "two", source="startup") for _ in range(2)]
    assert [bool(said) for said in starts] == [True, False]
    assert len(hooked.events("session.started")) == 1
    assert hooked.fire("SessionStart", "two", source="compact"), "a summary that was lost to compaction comes again"
    call = hooked.call("npm test")
    for event in ("PostToolUseFailure", "PostToolBatch"):
        fields = {**call, "error": ERROR} if event == "PostToolUseFailure" else {"tool_calls": [{**call, "tool_response": ERROR}]}
        for _ in range(2):
            hooked.fire(event, "two", **fields)
    hooked.run("ls", session="two")
    assert [row["data"]["turn"] for row in hooked.events("action.finished")[1:]] == [0, 2], "the batch between ended one turn"
    for _ in range(2):
        hooked.fire("SessionEnd", "two", reason="other")
    assert len(hooked.events("session.ended")) == 1


def test_success_clears(hooked: Any) -> None:
    """After the action succeeded, nobody is told of the failure any more."""
    hooked.run(BUILD, ERROR)
    hooked.run(BUILD, session="two")
    assert hooked.before(hooked.call(BUILD), "three") is None


def test_as_of_of_a_silent_call_is_recorded_with_its_end(hooked: Any) -> None:
    """Every allow can be recomputed: the event after the call says up to where the log was known before it."""
    hooked.run("ls")
    hooked.run("ls -a")
    first, second = hooked.events("action.finished")
    assert first["data"]["as_of"] == {}
    assert second["data"]["as_of"] == {first["stream"]: first["seq"]}


def test_duration_of_a_success_is_measured_between_the_events(hooked: Any) -> None:
    """The batch has no duration; the note left before the call has its start."""
    hooked.run("ls")
    assert hooked.events("action.finished")[0]["data"]["duration_ms"] == 1000


def test_our_own_refusal_is_no_failure_and_a_repeat_passes_once(hooked: Any) -> None:
    """Refused once with the reason; repeated unchanged in a later turn it goes through, recorded as an override."""
    _costly(hooked)
    said = [hooked.run(BUILD, ERROR, session="two") for _ in range(2)]
    assert said[0] is not None
    assert said[0].get("permissionDecision") == "deny", "several identical costly failures are worth a refusal"
    rows = [event for event in hooked.events("action.finished") if event["actor"]["session"] == "two"]
    assert [event["data"]["outcome"] for event in rows] == ["rejected", "failed"]
    rules = [
        event["data"]["decision"]["rule"] for event in hooked.events("action.proposed") if event["actor"]["session"] == "two"
    ]
    assert rules[-1] == "override"
    assert said[1] is None or "permissionDecision" not in said[1]


def test_parallel_repeats_of_a_refused_call_are_one_ask(hooked: Any) -> None:
    """Two identical calls in one turn are both refused: the second is no considered repeat."""
    _costly(hooked)
    calls = [hooked.call(BUILD), hooked.call(BUILD)]
    said = [hooked.before(call, "two") for call in calls]
    assert [answer and answer.get("permissionDecision") for answer in said] == ["deny", "deny"]


def test_a_repeat_told_by_two_hooks_or_made_twice_in_parallel_passes_as_one(hooked: Any) -> None:
    """Where one of them were asked again, a call that is meant could never run."""
    _costly(hooked)
    call = hooked.call(BUILD)
    said = hooked.before(call, "two")
    assert said is not None
    hooked.batch([(call, f"PreToolUse:Bash hook error: {said['permissionDecisionReason']}")], "two")
    again = hooked.call(BUILD)
    assert [hooked.before(again, "two") for _ in range(2)] == [None, None]
    assert hooked.before(hooked.call(BUILD), "two") is None
    hooked.fails(again, ERROR, "two", ms=90_000)
    asked = hooked.before(hooked.call(BUILD), "two")
    assert asked is not None
    assert asked.get("permissionDecision") == "deny"


def test_a_decision_is_taken_on_the_log_as_of_what_it_says(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a parallel call writes while this one reads does not make the replay find another decision."""
    from projectmem import replay
    from projectmem.hook import judge

    hooked.run(BUILD, ERROR)
    real, writes = judge.assess, iter(["b", "c"])

    def assess(*args: Any, **more: Any) -> Any:
        for session in writes:
            hooked.run(BUILD, ERROR, session)
            break
        return real(*args, **more)

    monkeypatch.setattr(judge, "assess", assess)
    assert hooked.before(hooked.call(BUILD), "two") is not None
    proposed = hooked.events("action.proposed")[-1]["data"]
    assert proposed["as_of"] == {hooked.events()[-2]["stream"]: hooked.events()[-2]["seq"]}
    assert replay.replay_log(str(hooked.home), root=str(hooked.root), verify=True).ok


def test_another_agent_s_ask_is_not_this_one_s(hooked: Any) -> None:
    """A subagent of the same session is asked for itself."""
    _costly(hooked)
    call = hooked.call(BUILD)
    said = hooked.before(call, "two")
    assert said is not None
    hooked.batch([(call, f"PreToolUse:Bash hook error: {said['permissionDecisionReason']}")], "two")
    other = hooked.before(hooked.call(BUILD), "two", agent_id="a1")
    assert other is not None
    assert other.get("permissionDecision") == "deny"


def test_each_subagent_is_asked_once(hooked: Any) -> None:
    """Whoever repeats it passes by its own ask, once, whatever the others of the session did between; parallel calls are one."""
    _costly(hooked)

    def answers(agent: str, calls: int = 1) -> list[str]:
        """What a batch of that many identical calls hears; it ends before anything else happens."""
        batch = [hooked.call(BUILD) for _ in range(calls)]
        said = [hooked.before(call, "two", **({"agent_id": agent} if agent else {})) or {} for call in batch]
        hooked.batch([], "two", **({"agent_id": agent} if agent else {}))
        return [answer.get("permissionDecision", "passes") for answer in said]

    assert [answers(who) for who in ("", "a1")] == [["deny"], ["deny"]]
    assert answers("a2", 2) == ["deny", "deny"]
    assert answers("a1") == ["passes"]
    assert [answers(who) for who in ("a3", "a1")] == [["deny"], ["deny"]], "a pass is used up, and nobody else's"
    assert [answers(""), answers("a2", 2)] == [["passes"], ["passes", "passes"]]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("The user doesn't want to proceed with this tool use. The tool use was rejected", "rejected"),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", "cancelled"),
        ("[Request interrupted by user for tool use]", "interrupted"),
        ("Claude requested permissions to write to /q, but you haven't granted it yet.", "rejected"),
    ],
)
def test_refusals_and_cancellations_are_not_failures(hooked: Any, text: str, outcome: str) -> None:
    """What people, permissions and siblings stopped has not failed, and does not clear a failure either."""
    hooked.run(BUILD, ERROR)
    call = hooked.call(BUILD)
    hooked.before(call, "two")
    hooked.batch([(call, text)], "two")
    assert hooked.events("action.finished")[-1]["data"]["outcome"] == outcome
    assert hooked.before(hooked.call(BUILD), "three") is not None


def test_an_edit_that_was_refused_again_is_spoken_of_after_it(hooked: Any) -> None:
    """No event comes before such an edit; the batch is where the agent can be told."""
    (hooked.root / "a.txt").write_text("alpha\n")
    edit = {"tool_name": "Edit", "tool_input": {"file_path": str(hooked.root / "a.txt"), "old_string": "q", "new_string": "x"}}
    refused = "<tool_use_error>String to replace not found in file.\nString: q</tool_use_error>"
    assert hooked.batch([({**edit, "tool_use_id": "e1"}, refused)]) is None
    reply = hooked.batch([({**edit, "tool_use_id": "e2"}, refused)], "two")
    assert reply is not None
    assert reply["hookSpecificOutput"]["hookEventName"] == "PostToolBatch"
    assert "a.txt" in reply["hookSpecificOutput"]["additionalContext"]
    hooked.batch([({**edit, "tool_use_id": "e3"}, refused)], "three")
    reply = hooked.batch([({**edit, "tool_use_id": "e4"}, refused)], "four")
    assert reply is not None
    said = reply["hookSpecificOutput"]["additionalContext"]
    assert "times in a row" in said
    assert "Refused once" not in said, "the client refused it, not the gate"


@pytest.mark.parametrize("piped", [f"{BUILD} 2>&1 | tail -5", f"{BUILD}; echo done"])
def test_the_same_error_behind_a_filter_does_not_clear(hooked: Any, piped: str) -> None:
    """The exit code is the filter's: what the output shows again is on record, and is no success."""
    error = "Exit code 1\n> shop build\nError: Missing environment variable API_URL\n    at build.js:1"
    for _ in range(2):
        hooked.run(BUILD, error)
    call = hooked.call(piped)
    hooked.batch([(call, "> shop build\nError: Missing environment variable API_URL\n    at build.js:9")])
    last = hooked.events("action.finished")[-1]["data"]
    assert (last["outcome"], last["class"]) == ("failed", "build")
    said = hooked.before(hooked.call(BUILD), "two")
    assert said is not None
    assert "3 times in a row" in said["additionalContext"], "another session's cheap failures are warned of"
    hooked.batch([(hooked.call(piped), "> shop build\nbuilt in 3 s")], "two")
    assert hooked.before(hooked.call(BUILD), "three") is None


def test_half_a_character_at_the_cut_of_an_output(hooked: Any) -> None:
    """A client counts UTF-16 units when it cuts a long output."""
    hooked.run(BUILD, "Exit code 1\nError: no \ud83d")
    assert hooked.events("gate.degraded") == []
    assert hooked.events("action.finished")[-1]["data"]["outcome"] == "failed"


def test_what_the_hook_writes_is_its_owner_s_alone(hooked: Any) -> None:
    """As a log may hold what a command printed."""
    hooked.run(BUILD, "Exit code 1\nError: no")
    degraded.event(hooked.place, "one", "claude-code", hooked.now, "test", "something broke")
    assert degraded.first_time(str(hooked.home), "one")
    assert [str(p) for p in hooked.home.rglob("*") if p.is_file() and p.stat().st_mode & 0o077] == []


def test_a_full_disk_is_told_once_a_session(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no more bytes: an empty file remembers who was told. Who was told before is not forgotten over it."""
    home = str(hooked.home)
    assert degraded.first_time(home, "before")

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        assert [degraded.first_time(home, name) for name in ("one", "one", "two", "one", "before")] == [
            True, False, True, False, False,
        ]  # fmt: skip
    assert not degraded.first_time(home, "one")
    assert degraded.first_time(home, "three")
    assert not degraded.first_time(home, "three")
    assert not degraded.first_time(home, "before")


def test_subagents_are_told_apart(hooked: Any) -> None:
    """A subagent's calls carry its id."""
    call = hooked.call("ls")
    hooked.before(call, agent_id="a1")
    hooked.batch([(call, "x")], agent_id="a1")
    assert hooked.events("action.finished")[0]["actor"]["agent"] == "a1"


def test_a_background_command_is_unknown_until_its_end_is_told(hooked: Any) -> None:
    """The start neither fails nor clears; the end is recorded once, with what was started."""
    call = {**hooked.call(BUILD), "tool_use_id": "toolu_bg"}
    hooked.before(call)
    hooked.batch([(call, "Command running in background with ID: b1. Output is being written to: /tmp/x")])
    prompt = (
        "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>toolu_bg</tool-use-id>\n<output-file>/nowhere</output-file>\n"
        '<status>failed</status>\n<summary>Background command "d" failed with exit code 5</summary>\n</task-notification>'
    )
    for _ in range(2):
        hooked.fire("UserPromptSubmit", prompt=prompt)
    rows = [(e["data"]["outcome"], e["data"]["exit_code"], e["data"]["text"]) for e in hooked.events("action.finished")]
    assert rows == [("unknown", None, BUILD), ("failed", 5, BUILD)]
    assert hooked.before(hooked.call(BUILD), "two") is not None


def test_a_background_command_of_another_session_is_not_ended_here(hooked: Any) -> None:
    """A notification about a call that was never seen is ignored."""
    prompt = "<task-notification><tool-use-id>toolu_x</tool-use-id><status>failed</status></task-notification>"
    assert hooked.fire("UserPromptSubmit", prompt=prompt) is None
    assert hooked.events() == []


def test_secrets_reach_neither_log_nor_snapshot(hooked: Any) -> None:
    """A secret in a command or its output is replaced before anything is written, and the action is still known again."""
    token = "ghp_" + "a1B2c3D4e5" * 4
    command = f"GITHUB_TOKEN={token} npm run deploy"
    hooked.run(command, f"Exit code 1\nremote: bad credentials {token}\nnpm error code 1")
    assert hooked.before(hooked.call(command), "two") is not None
    found = subprocess.run(["grep", "-rl", token, str(hooked.home)], capture_output=True, text=True, check=False)
    assert found.stdout == ""


def test_sessions_begin_and_end_on_record(hooked: Any) -> None:
    """The start is the hook's heartbeat; it says nothing on an empty log."""
    assert hooked.fire("SessionStart", source="startup") is None
    hooked.fire("SessionEnd", reason="other")
    assert [event["kind"] for event in hooked.events()] == ["session.started", "session.ended"]


def test_session_start_tells_what_still_stands(hooked: Any) -> None:
    """A new session reads of the open failure, within the budget."""
    hooked.run(BUILD, ERROR)
    reply = hooked.fire("SessionStart", "two", source="startup")
    assert reply is not None
    text = reply["hookSpecificOutput"]["additionalContext"]
    assert BUILD in text
    assert len(text) < 4_000


def test_a_person_s_prompt_is_not_recorded(hooked: Any) -> None:
    """Prompts are nobody's business."""
    hooked.fire("UserPromptSubmit", prompt="please say the secret word xyzzy")
    assert hooked.events() == []


def test_observe_records_and_says_nothing(hooked: Any) -> None:
    """In `observe`, decisions are on record and no one hears of them."""
    from projectmem_gate.policy import DEFAULT

    from projectmem.writing import append

    data = {"text": "", "hash": "x", "policy": {**DEFAULT.to_data(), "mode": "observe"}}
    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}
    append(hooked.place, [{"kind": "policy.changed", "at": hooked.now, "actor": actor, "causes": [], "data": data}], hooked.now)
    hooked.run(BUILD, ERROR)
    assert hooked.before(hooked.call(BUILD), "two") is None
    assert hooked.events("action.proposed")


def test_worktrees_share_what_was_learned(hooked: Any) -> None:
    """A failure in the main work tree is known in a linked one."""
    git = ["git", "-C", str(hooked.root), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    other = hooked.root.parent / "other"
    subprocess.run([*git, "worktree", "add", "-q", str(other)], check=True)
    hooked.run(BUILD, ERROR)
    reply = hooked.fire("PreToolUse", "two", **hooked.call(BUILD), cwd=str(other))
    assert reply is not None


def _transcript(hooked: Any, id: str, is_error: bool) -> str:
    path = hooked.root.parent / "s.jsonl"
    block = {"type": "tool_result", "tool_use_id": id, "content": "no", "is_error": is_error}
    path.write_text(json.dumps({"type": "user", "message": {"role": "user", "content": [block]}}) + "\n")
    return str(path)


@pytest.mark.parametrize(("is_error", "outcome", "speaks"), [(True, "rejected", True), (False, "ok", False)])
def test_a_refusal_in_unknown_words_does_not_clear(hooked: Any, is_error: bool, outcome: str, speaks: bool) -> None:
    """The batch of a call that another hook refused looks like a success; the transcript knows better, and is asked."""
    hooked.run(BUILD, ERROR)
    call = hooked.call(BUILD)
    hooked.before(call, "two")
    hooked.batch([(call, "our office is closed")], "two", transcript_path=_transcript(hooked, call["tool_use_id"], is_error))
    assert hooked.events("action.finished")[-1]["data"]["outcome"] == outcome
    assert (hooked.before(hooked.call(BUILD), "three") is not None) is speaks


@pytest.mark.parametrize(("text", "is_error", "speaks"), [("No writing today.", True, True), ("No writing today.", False, False)])
def test_an_edit_refused_in_unknown_words_is_no_change(hooked: Any, text: str, is_error: bool, speaks: bool) -> None:
    """A mode that allows no edits says so in the result alone: nothing was changed since the failure."""
    hooked.run(BUILD, ERROR)
    given = {"file_path": str(hooked.root / "src" / "app.ts"), "content": "let x"}
    write = {"tool_name": "Write", "tool_input": given, "tool_use_id": "w1"}
    hooked.before(write)
    hooked.batch([(write, text)], transcript_path=_transcript(hooked, "w1", is_error))
    assert hooked.events("action.finished")[-1]["data"]["outcome"] == ("rejected" if is_error else "ok")
    assert (hooked.before(hooked.call(BUILD), "two") is not None) is speaks


def test_a_call_that_ran_although_it_was_refused_is_said_so(hooked: Any) -> None:
    """Some modes of some harnesses ignore a refusal; nobody would know."""
    _costly(hooked)
    call = hooked.call(BUILD)
    said = hooked.before(call, "two")
    assert said is not None
    assert said["permissionDecision"] == "deny"
    assert hooked.events("gate.degraded") == []
    hooked.batch([(call, "built")], "two")
    (event,) = hooked.events("gate.degraded")
    assert event["data"]["what"] == "executed after deny"
    assert BUILD in hooked.log_lines()[-1]


def test_a_prompt_recalls_what_it_is_about_and_nothing_else(hooked: Any) -> None:
    """A person's words reach what was recorded about the same thing; a prompt about nothing on record gets no block."""
    hooked.run("terraform apply -target module.billing", "Exit code 1\nError: state lock held by ci-runner on module.billing\n")
    reply = hooked.fire(
        "UserPromptSubmit", "two", prompt="terraform apply of module.billing fails with a state lock, please help"
    )
    assert reply is not None
    assert "terraform" in reply["hookSpecificOutput"]["additionalContext"]
    (event,) = hooked.events("recall.decided")
    assert "please" not in json.dumps(event)
    assert hooked.fire("UserPromptSubmit", "two", prompt="write a poem about the sea") is None


@pytest.mark.parametrize("command", ["npm run serve", "just serve", "./serve.sh"])
def test_the_start_of_the_very_same_work_says_nothing_of_its_failure(hooked: Any, command: str) -> None:
    """Somebody starts it in the background, and nobody hears how it ends: the next session is told as if it had not been."""
    hooked.run(command, "Exit code 1\nError: Cannot start: no space in the pool\nnpm error code 1")
    call = {**hooked.call(command), "tool_use_id": "toolu_bg"}
    started = "Command running in background with ID: b1. Output is being written to: /tmp/x"
    hooked.before(call, "two")
    hooked.batch([(call, started)], "two")
    assert [e["data"]["outcome"] for e in hooked.events("action.finished")] == ["failed", "unknown"]
    assert hooked.before(hooked.call(command), "three") is not None
    other = {**hooked.call("npm run prepare"), "tool_use_id": "toolu_other"}
    hooked.before(other, "two")
    hooked.batch([(other, started.replace("b1", "b2"))], "two")
    assert hooked.before(hooked.call(command), "four") is None, "another program may have mended it"


def test_the_same_work_that_went_well_in_another_way_may_have_left_something_behind(hooked: Any) -> None:
    """Also where it was started once more after that."""
    hooked.run("npm run serve", "Exit code 1\nError: Cannot start: no space in the pool\nnpm error code 1")
    hooked.run("npm run serve -- --once")
    call = {**hooked.call("npm run serve"), "tool_use_id": "toolu_bg"}
    hooked.before(call)
    hooked.batch([(call, "Command running in background with ID: b1. Output is being written to: /tmp/x")])
    assert hooked.before(hooked.call("npm run serve"), "three") is None
