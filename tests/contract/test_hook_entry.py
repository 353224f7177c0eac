"""Whatever comes on stdin and whatever is broken: exit 0, at most one JSON object, and never silence about a fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from projectmem.hook import degraded, entry, pipeline
from projectmem.hook.claude_code import EVENTS
from projectmem.setup.command import hook_args, interpreter, loader

BUILD, ERROR = "npm run build", "Exit code 2\nerror: no\nnpm error code 2"


@pytest.mark.parametrize("event", [*EVENTS, "Nope"])
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"[]",
        b"null",
        b"\xff\xfe{}",
        b'{"session_id": 1}',
        b"{" * 100_000,
        b'{"session_id":"s","cwd":"/nowhere"',
    ],
)
def test_any_stdin_is_survived_silently_and_noted(hooked: Any, monkeypatch: pytest.MonkeyPatch, event: str, raw: bytes) -> None:
    """Exit 0, nothing on stdout, one line in the hook's log."""
    monkeypatch.chdir(hooked.root)
    assert hooked.send(event, raw) == b""
    assert len(hooked.log_lines()) == 1


def test_fifty_megabytes_are_not_looked_at(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A payload beyond the limit is noted and passed over."""
    monkeypatch.chdir(hooked.root)
    assert hooked.send("PreToolUse", b'{"a": "' + b"x" * 50_000_000 + b'"}') == b""
    assert "larger than" in hooked.log_lines()[0]


def test_an_unknown_tool_is_an_action_like_any_other(hooked: Any) -> None:
    """A tool nobody has heard of is recorded and recognised."""
    call = {"tool_name": "Teleport", "tool_input": {"to": "moon"}, "tool_use_id": "t1"}
    hooked.fails(call, "no such place")
    assert hooked.before({**call, "tool_use_id": "t2"}, "two") is not None


@given(
    st.fixed_dictionaries(
        {
            "tool_name": st.text(max_size=12),
            "tool_input": st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=5),
        },
        optional={"tool_use_id": st.text(max_size=8), "error": st.text(), "agent_id": st.text(max_size=4)},
    )
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
def test_any_call_goes_through_every_event(hooked: Any, fields: dict[str, Any]) -> None:
    """Strange tools and inputs never degrade the hook."""
    for event in ("PreToolUse", "PostToolUseFailure"):
        hooked.send(event, json.dumps(hooked.payload(event, **fields)).encode())
    row = {**fields, "tool_response": fields.get("error")}
    hooked.send("PostToolBatch", json.dumps(hooked.payload("PostToolBatch", tool_calls=[row])).encode())
    assert hooked.events("gate.degraded") == []


def test_not_set_up_is_silent(tmp_path: Path) -> None:
    """In a project without a log the hook does nothing at all."""
    payload = {"session_id": "s", "cwd": str(tmp_path), "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}}
    assert entry.respond(["claude-code", "PreToolUse"], json.dumps(payload).encode(), 1) is None
    assert list(tmp_path.iterdir()) == []


def test_off_switch(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switched off, nothing is looked at and nothing is learned."""
    hooked.run(BUILD, ERROR)
    monkeypatch.setenv("PROJECTMEM_GATE", "off")
    assert hooked.send("PreToolUse", json.dumps(hooked.payload("PreToolUse", "two", **hooked.call(BUILD))).encode()) == b""
    assert hooked.events("action.proposed") == []


def test_an_internal_error_opens_and_says_so_once_a_session(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call goes on; the log, the hook's log and, once, the person hear of it."""

    def broken(*_: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(pipeline, "run", broken)
    first = hooked.fire("PreToolUse", **hooked.call("ls"))
    assert first is not None
    assert "out of order" in first["systemMessage"]
    assert "hookSpecificOutput" not in first
    assert hooked.fire("PreToolUse", **hooked.call("ls")) is None
    assert hooked.fire("PreToolUse", "two", **hooked.call("ls")) is not None
    assert len(hooked.events("gate.degraded")) == 3
    assert len(hooked.log_lines()) == 3


def test_on_error_deny_closes(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the accepted policy says so, a call that could not be checked is refused with the reason."""
    from projectmem_gate.policy import DEFAULT

    from projectmem.writing import append

    data = {"text": "", "hash": "x", "policy": {**DEFAULT.to_data(), "on_error": "deny"}}
    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}
    append(hooked.place, [{"kind": "policy.changed", "at": hooked.now, "actor": actor, "causes": [], "data": data}], hooked.now)
    monkeypatch.setattr(pipeline, "run", lambda *_: 1 // 0)
    reply = hooked.fire("PreToolUse", **hooked.call("ls"))
    assert reply is not None
    assert reply["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "ZeroDivisionError" in reply["hookSpecificOutput"]["permissionDecisionReason"]
    assert "hookSpecificOutput" not in (hooked.fire("PostToolBatch", tool_calls=[]) or {})


def test_on_error_deny_closes_while_the_snapshot_is_lost(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the log is too long to be folded before a call; the policy that took its place opens again."""
    from projectmem_gate.policy import DEFAULT

    from projectmem.hook import meanwhile, state
    from projectmem.writing import append

    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}
    monkeypatch.setattr(state, "INLINE_BYTES", 0)
    monkeypatch.setattr(meanwhile, "start_rebuild", lambda home: False)
    snapshot = hooked.home / "projections" / "gate.sqlite"
    for on_error, verdict in (("deny", "deny"), ("allow", None), ("deny", "deny")):
        hooked.now += 1
        data = {"text": "", "hash": "x", "policy": {**DEFAULT.to_data(), "on_error": on_error}}
        draft = {"kind": "policy.changed", "at": hooked.now, "actor": actor, "causes": [], "data": data}
        monkeypatch.setattr(state, "INLINE_BYTES", 1 << 20)
        append(hooked.place, [draft], hooked.now)
        with state.open_state(hooked.place):
            pass
        monkeypatch.setattr(state, "INLINE_BYTES", 0)
        snapshot.write_bytes(b"noise" * 500)
        reply = hooked.fire("PreToolUse", f"s{hooked.now}", **hooked.call("ls"))
        said = (reply or {}).get("hookSpecificOutput", {})
        assert said.get("permissionDecision") == verdict and "degraded" in reply["systemMessage"]
        assert verdict is None or "on_error = deny" in said["permissionDecisionReason"]


@pytest.mark.parametrize(
    ("command", "let"),
    [
        ("projectmem doctor", True),
        ("projectmem rebuild", True),
        ("projectmem --root /a/b.c repair --apply --json", True),
        ("  projectmem  verify ", True),
        ("projectmem", False),
        ("projectmem --root doctor", False),
        ("projectmem uninit", False),
        ("projectmem forget x", False),
        ("projectmem repair x", False),
        ("projectmem doctor repair", False),
        ("projectmem repair && rm -rf /", False),
        ("projectmem repair; ls", False),
        ("projectmem repair\nls", False),
        ("projectmem repair & ls", False),
        ("projectmem repair > ~/.bashrc", False),
        ("projectmem repair `ls`", False),
        ("projectmem repair --root $(ls)", False),
        ("PATH=. projectmem repair", False),
        ("./projectmem repair", False),
        ("sudo projectmem repair", False),
        ("python3 -m projectmem repair", False),
        ("projectmem\trepair", False),
    ],
)
def test_the_gate_never_refuses_its_own_repair(hooked: Any, monkeypatch: pytest.MonkeyPatch, command: str, let: bool) -> None:
    """Where nothing can be checked and the policy says deny, what mends it passes, alone and in plain words."""
    monkeypatch.setattr(pipeline, "run", lambda *_: 1 // 0)
    monkeypatch.setattr(entry, "_denies_on_error", lambda _: True)

    def verdict(call: dict[str, Any]) -> Any:
        said = (hooked.fire("PreToolUse", **call) or {}).get("hookSpecificOutput", {})
        return said.get("permissionDecision")

    call = hooked.call(command)
    assert verdict(call) == (None if let else "deny")
    for other in ({"tool_name": "Write"}, {"tool_input": {**call["tool_input"], "session_id": "x"}}, {"tool_input": command}):
        assert verdict({**call, **other}) == "deny"


@pytest.mark.parametrize("damage", [b"", b"garbage" * 500, b"SQLite format 3\x00" + b"\x00" * 4000])
def test_a_damaged_snapshot_is_rebuilt_and_still_speaks(hooked: Any, damage: bytes) -> None:
    """The snapshot is derived: whatever became of it, the next check knows what the log knows."""
    hooked.run(BUILD, ERROR)
    (hooked.home / "projections" / "gate.sqlite").write_bytes(damage)
    assert hooked.before(hooked.call(BUILD), "two") is not None


def test_a_deleted_snapshot_is_rebuilt(hooked: Any) -> None:
    """Deleting the projections loses nothing."""
    hooked.run(BUILD, ERROR)
    for path in (hooked.home / "projections").iterdir():
        path.unlink()
    assert hooked.before(hooked.call(BUILD), "two") is not None


def test_hook_log_stays_bounded(hooked: Any) -> None:
    """A fault at every call for years does not fill the disk; the newest lines are kept."""
    for number in range(400):
        degraded.note(str(hooked.home), "test", f"line {number}", "x" * 1500)
    path = hooked.home / "hook.log"
    assert path.stat().st_size < 300_000
    assert "line 399" in hooked.log_lines()[-1]
    assert path.stat().st_mode & 0o777 == 0o600


def test_registered_command_answers_in_a_process_of_its_own(hooked: Any) -> None:
    """The very command of the settings file: silence is nothing on stdout, an objection exactly one JSON object."""
    hooked.run(BUILD, ERROR)
    argv = [interpreter(), *hook_args("claude-code", "PreToolUse")]
    for command, speaks in (("ls", False), (BUILD, True)):
        raw = json.dumps(hooked.payload("PreToolUse", "two", **hooked.call(command))).encode()
        done = subprocess.run(argv, input=raw, capture_output=True, check=False, cwd="/")
        assert (done.returncode, done.stderr) == (0, b"")
        assert (done.stdout != b"") is speaks
        if speaks:
            assert json.loads(done.stdout)["hookSpecificOutput"]["hookEventName"] == "PreToolUse"


@pytest.mark.parametrize(("event", "speaks"), [("PreToolUse", False), ("SessionStart", True), ("PostToolBatch", False)])
def test_loader_without_its_package_exits_0(event: str, speaks: bool) -> None:
    """The program is gone: calls go on, and the start of a session says so in one JSON object."""
    argv = [sys.executable, "-I", "-S", "-c", loader(["/nowhere/at/all"]), "claude-code", event]
    done = subprocess.run(argv, input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (done.stdout != b"") is speaks
    if speaks:
        assert set(json.loads(done.stdout)) == {"systemMessage"}


def test_policy_hash_of_the_hook_is_the_policy_s_own() -> None:
    """Computed without `json`, the same as with it."""
    from projectmem_gate.policy import DEFAULT, Policy

    from projectmem.hook.state import policy_hash

    for policy in (DEFAULT, Policy.from_data({**DEFAULT.to_data(), "mode": "enforce"})):
        assert policy_hash(policy) == policy.hash


def test_an_answer_with_a_lone_surrogate_is_still_json(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that is no Unicode cannot break the one JSON object."""
    monkeypatch.setattr(pipeline, "run", lambda *_: {"systemMessage": "a\udc80b\u20ac"})
    out = hooked.send("PreToolUse", json.dumps(hooked.payload("PreToolUse", **hooked.call("ls"))).encode())
    assert json.loads(out) == {"systemMessage": "a\udc80b\u20ac"}


def test_a_secret_in_a_payload_that_is_not_understood_stays_out_of_the_hook_s_log(hooked: Any, monkeypatch: Any) -> None:
    """The complaint quotes what came in."""
    monkeypatch.chdir(hooked.root)
    token = "ghp_" + "a1B2c3D4e5" * 4
    hooked.send("PreToolUse", json.dumps({**hooked.payload("PreToolUse"), "hook_event_name": token}).encode())
    (line,) = hooked.log_lines()
    assert token not in line
    assert "<secret:" in line


@pytest.mark.parametrize("field", ["session_id", "tool_use_id", "agent_id", "tool_name"])
def test_lone_surrogates_in_a_payload_cost_nothing(hooked: Any, field: str) -> None:
    """A client that cuts a text in two leaves half a character: the call is checked and recorded all the same."""
    payload = hooked.payload("PostToolUseFailure", **hooked.call("npm run build"), error="Exit code 2\nnpm error code 2")
    assert hooked.send("PostToolUseFailure", json.dumps({**payload, field: "x\ud83d"}).encode()) == b""
    (event,) = hooked.events()
    assert event["data"]["outcome"] == "failed"


def test_a_byte_order_mark_before_a_payload_is_no_part_of_it(hooked: Any) -> None:
    """A shell that pipes adds one: the failure is learned and spoken of all the same."""
    call = hooked.call("npm run build")
    failed = hooked.payload("PostToolUseFailure", **call, error="Exit code 2\nnpm error code 2")
    assert hooked.send("PostToolUseFailure", b"\xef\xbb\xbf" + json.dumps(failed).encode()) == b""
    (event,) = hooked.events()
    assert event["data"]["outcome"] == "failed"


def test_a_byte_that_is_no_utf_8_costs_its_own_character_and_not_the_call(hooked: Any) -> None:
    """What a program printed in another encoding comes with its failure; two such inputs are not one."""
    for name in (b"caf\xe9", b"caf\xe8"):
        call = hooked.call("bash NAME.sh")
        failed = hooked.payload("PostToolUseFailure", **call, error="Exit code 2\nnicht gefunden: NAME")
        raw = json.dumps(failed).encode().replace(b"NAME", name)
        assert hooked.send("PostToolUseFailure", raw) == b""
    first, second = hooked.events()
    assert first["data"]["outcome"] == second["data"]["outcome"] == "failed"
    assert first["data"]["key"] != second["data"]["key"]


@pytest.mark.parametrize("duration", ["1e999", "-1e999", "NaN", "-5", "1e300"])
def test_an_absurd_duration_costs_only_the_duration(hooked: Any, duration: str) -> None:
    """No number that JSON can write keeps a failure from being learned."""
    payload = hooked.payload("PostToolUseFailure", **hooked.call("npm run build"), error="Exit code 2\nno", duration_ms=0)
    raw = json.dumps(payload).replace('"duration_ms": 0', f'"duration_ms": {duration}')
    assert hooked.send("PostToolUseFailure", raw.encode()) == b""
    (event,) = hooked.events()
    assert event["data"]["outcome"] == "failed"


def test_a_log_that_came_with_the_folder_is_not_served_and_a_person_is_told(tmp_path: Any) -> None:
    """Its rules and failures are somebody else's until `init` accepts them."""
    import shutil

    from projectmem_logs.home import init_home
    from projectmem_logs.origin import accept

    init_home(str(tmp_path / "theirs" / ".projectmem-gate"), 1)
    accept(str(tmp_path / "theirs" / ".projectmem-gate"))
    shutil.copytree(tmp_path / "theirs", tmp_path / "ours")
    payload = {"session_id": "s", "cwd": str(tmp_path / "ours"), "source": "startup"}
    reply = entry.respond(["claude-code", "SessionStart"], json.dumps(payload).encode(), 1)
    assert reply is not None
    assert "projectmem init" in reply["systemMessage"]
    assert entry.respond(["claude-code", "UserPromptSubmit"], json.dumps(payload).encode(), 1) is None


def test_a_log_without_its_project_file_is_not_passed_over_in_silence(hooked: Any) -> None:
    """The gate is off then, and nobody would know."""
    (hooked.home / "project.json").unlink()
    reply = hooked.fire("SessionStart", source="startup")
    assert "projectmem init" in reply["systemMessage"]
    assert hooked.fire("PreToolUse", **hooked.call("ls")) is None


def test_called_without_its_event_the_payload_s_own_is_taken(hooked: Any) -> None:
    """Who calls the hook by hand leaves the second word out."""
    failed = hooked.payload("PostToolUseFailure", **hooked.call("npm run build"), error="Exit code 2\nno")
    assert entry.respond(["claude-code"], json.dumps(failed).encode(), hooked.now) is None
    (event,) = hooked.events()
    assert event["data"]["outcome"] == "failed"


@pytest.mark.parametrize("path", ["a\0b.txt", "\ud800x", "x" * 5_000, "\n", ""])
def test_an_edit_of_what_no_file_can_be_called_spoils_no_later_record(hooked: Any, path: str) -> None:
    """What is compared at a later failure includes the files edited lately."""
    fields = {"tool_name": "Edit", "tool_input": {"file_path": path, "old_string": "a", "new_string": "b"}, "tool_use_id": "e"}
    hooked.fire("PostToolBatch", tool_calls=[{**fields, "tool_response": "ok"}])
    hooked.fails(hooked.call(BUILD), ERROR)
    assert hooked.before(hooked.call(BUILD), "two") is not None
    assert not hooked.log_lines()
