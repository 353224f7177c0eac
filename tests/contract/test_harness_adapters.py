"""Each harness's adapter: what it was seen to send is read as it was meant, and what it is told is what it obeys."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_gate.identify import identify
from projectmem_gate.model import Decision

from projectmem.hook import cline, codex, copilot, cursor, droid, gemini, opencode, openhands, pi, qwen
from projectmem.hook.payload import ADAPTERS, Payload

sys.path.insert(0, str(Path(__file__).parent))
from harness_calls import BEFORE, Told, samples

MODULES: dict[str, Any] = {m.HARNESS: m for m in (codex, gemini, qwen, copilot, opencode, droid, cline, pi, openhands, cursor)}
NAMES = list(MODULES)
CAPTURED = [name for name in NAMES if name != "cursor"]
# Those that no call id is given by.
UNNAMED = ["gemini", "copilot", "openhands"]
BUILD, ERROR = "npm run build", "npm error Missing script: build"


def _ours(shared: Path, name: str) -> list[tuple[str, dict[str, Any]]]:
    if name == "pi":  # what the extension makes of the events
        found = []
        for event, raw in samples(shared, name):
            if event in ("tool_call", "tool_result"):
                fields = {"session_id": "s", "cwd": "/srv/example/work", "call_id": raw["toolCallId"], "tool": raw["toolName"]}
                text = "".join(block["text"] for block in raw.get("content", []))
                found.append((event, {**fields, "args": raw["input"], "output": text, "is_error": raw.get("isError")}))
        return found
    if name != "opencode":
        known = [(event, raw) for event, raw in samples(shared, name) if event in MODULES[name].EVENTS]
        return [(event, raw) for event, raw in known if name != "copilot" or "sessionId" in raw]
    found = []  # what the plugin makes of the events
    for event, raw in samples(shared, name):
        if event.startswith("tool.execute"):
            given, told = raw["input"], raw["output"]
            fields = {
                "session_id": given["sessionID"],
                "cwd": "/srv/example/work",
                "call_id": given["callID"],
                "tool": given["tool"],
            }
            fields["args"] = told["args"] if event.endswith("before") else given["args"]
            if event.endswith("after"):
                fields |= {"output": told["output"], "exit": told["metadata"].get("exit")}
            found.append((event, fields))
    return found


def _calls(shared: Path, name: str) -> list[tuple[str, Payload]]:
    payloads = [(event, MODULES[name].parse(event, raw)) for event, raw in _ours(shared, name)]
    return [(event, payload) for event, payload in payloads if payload.calls]


@pytest.mark.parametrize("name", CAPTURED)
def test_every_captured_payload_is_understood(shared: Path, name: str) -> None:
    """Each payload captured from the real client has its session, folder and call."""
    rows = _ours(shared, name)
    assert len(rows) >= (6 if name == "pi" else 9)
    for event, raw in rows:
        payload = MODULES[name].parse(event, raw)
        assert payload.session
        assert payload.cwd.startswith(("/srv/example", "$HARNESS_BASE"))
        if payload.kind in ("pre", "post") and event != "Stop":
            assert payload.calls[-1]["tool"]
            assert isinstance(payload.calls[-1]["input"], dict)
            assert payload.calls[-1]["call"] or payload.calls[-1]["match"]


@pytest.mark.parametrize("name", [n for n in CAPTURED if n not in ("codex", "droid")])
def test_captured_failures_and_successes_are_told_apart(shared: Path, name: str) -> None:
    """`exit 3` is exit 3 with its output and nothing of the harness's; a read that worked is no failure, a failed edit is."""
    ended = [p.calls[-1] for _, p in _calls(shared, name) if p.kind == "post"]
    (failed,) = [c for c in ended if "exit 3" in json.dumps(c["input"])]
    assert (failed["exit_code"], failed["is_error"], failed["error_kind"]) == (3, True, "exit")
    shown = {"openhands": [], "pi": ["out"], "cline": ["out", "[stderr]", "err"]}.get(name, ["out", "err"])
    assert failed["output"].split() == shown
    (echo,) = [c for c in ended if "echo hi" in json.dumps(c["input"])]
    assert (echo["is_error"], echo["output"].strip()) == (False, "hi")
    assert echo["exit_code"] in (0, None)
    if name not in ("opencode", "openhands"):  # its failed edit is told by the bus
        (edit,) = [c for c in ended if "nonexist" in json.dumps(c["input"])]
        assert (edit["is_error"], edit["error_kind"]) == (True, "tool")
        assert edit["output"]
    reads = [c for c in ended if c["tool"] in ("read_file", "view", "read", "read_files") and "a.txt" in json.dumps(c["input"])]
    assert [c["is_error"] for c in reads] == [False] * (name not in ("pi", "openhands"))


def test_cline_s_commands_are_the_same_action_as_any_other_harness_s(hooked: Any) -> None:
    """Its list holds whole command lines: what fails in Codex is known in Cline."""
    other = Told(hooked, "codex")
    call = other.call(BUILD)
    other.before(call)
    other.after(call, 1, ERROR)
    told = Told(hooked, "cline")
    assert BUILD in json.dumps(told.before(told.call(BUILD), "two"))


@pytest.mark.parametrize("name", NAMES)
def test_fail_then_told_in_a_new_session_then_mended_then_silent(hooked: Any, name: str) -> None:
    """The main job in each harness's own words; a warning that cannot be given before the call comes with its result."""
    told = Told(hooked, name)
    call = told.call(BUILD)
    assert told.before(call) is None
    assert told.after(call, 1, ERROR) is None
    (failed,) = hooked.events("action.finished")
    assert (failed["data"]["outcome"], failed["data"]["exit_code"], failed["actor"]["harness"]) == (
        "failed",
        None if name == "cursor" else 1,
        name,
    )
    assert failed["data"]["duration_ms"] == 1000, "the note before the call was found"

    again = told.call(BUILD)
    before = told.before(again, "two")
    after = told.after(again, 0, "built", "two")
    (proposed,) = hooked.events("action.proposed")
    assert proposed["data"]["decision"]["record"] == failed["id"]
    if name == "openhands":  # it takes text with a prompt only
        assert after is None
        after = told.send("UserPromptSubmit", {**told.base("UserPromptSubmit", "two"), "message": "go on"})
    said, other = (before, after) if MODULES[name].WARNS_BEFORE else (after, before)
    assert BUILD in json.dumps(said)
    assert other == SILENCE.get(name), "said once"
    finished = hooked.events("action.finished")[-1]
    assert finished["data"]["outcome"] == "ok"
    assert finished["data"]["call"] == proposed["data"]["call"], "both events are of one call"

    once_more = told.call(BUILD)
    assert told.before(once_more, "three") is None
    assert told.after(once_more, 0, "built", "three") is None
    assert hooked.events("gate.degraded") == []


@pytest.mark.parametrize("name", [n for n in NAMES if n != "openhands"])
def test_a_hook_that_is_registered_twice_records_once(hooked: Any, name: str) -> None:
    """The same event twice is one call, with and without an id."""
    told = Told(hooked, name)

    def twice(play: Any) -> None:
        now = hooked.now
        play()
        hooked.now = now
        play()

    call = told.call(BUILD)
    twice(lambda: told.before(call))
    twice(lambda: told.after(call, 1, ERROR))
    again = told.call(BUILD)
    twice(lambda: told.before(again, "two"))
    assert len(hooked.events("action.finished")) == 1
    assert len(hooked.events("action.proposed")) == 1


@pytest.mark.parametrize("name", NAMES)
def test_parallel_calls_of_two_agents_of_a_session_are_each_recorded_as_its_own(hooked: Any, name: str) -> None:
    """Where a harness names the agent (Claude Code, Codex, Qwen, Copilot and Cline do), each call is the agent's that made it."""
    first, second = Told(hooked, name), Told(hooked, name)
    second.ids = 50
    for told, agent in ((first, "a"), (second, "b")):
        base = told.base
        named = {"agentId": agent, "parentAgentId": "one"} if name == "copilot" else {"agent_id": agent}
        told.base = lambda event, session, base=base, named=named: {**base(event, session), **named}  # type: ignore
    one, two = first.call("make one"), second.call("make two")
    first.before(one)
    second.before(two)
    second.after(two, 2, "make: *** No rule to make target 'two'.")
    first.after(one, 2, "make: *** No rule to make target 'one'.")
    rows = [(e["actor"]["agent"], e["data"]["text"], e["data"]["outcome"]) for e in hooked.events("action.finished")]
    assert rows == [("b", "make two", "failed"), ("a", "make one", "failed")]


@pytest.mark.parametrize("name", UNNAMED)
def test_parallel_calls_without_ids_find_their_own_notes(hooked: Any, name: str) -> None:
    """Both started before either ended, and they end in the other order; a third time is a call of its own."""
    told = Told(hooked, name)
    first, second = told.call("make one"), told.call("make two")
    told.before(first)
    told.before(second)
    told.after(second, 2, "make: *** No rule to make target 'two'.")
    told.after(first, 0, "fine")
    told.after(told.call("make one"), 0, "fine")  # the event before it was lost
    rows = [(e["data"]["text"], e["data"]["outcome"], e["data"]["duration_ms"]) for e in hooked.events("action.finished")]
    assert rows == [("make two", "failed", 1000), ("make one", "ok", 3000), ("make one", "ok", None)]
    assert len({e["data"]["call"] for e in hooked.events("action.finished")}) == 3


@pytest.mark.parametrize("name", UNNAMED)
def test_an_id_of_our_own_gives_no_secret_away(hooked: Any, name: str) -> None:
    """What names a call in the log is made of its tool, 16 bits and a time."""
    told = Told(hooked, name)
    call = told.call("curl -H 'Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyz' https://example.invalid")
    told.before(call)
    told.after(call, 6, "curl: (6) Could not resolve host")
    (event,) = hooked.events("action.finished")
    tool, _, rest = event["data"]["call"].partition("-")
    mark, _, stamp = rest.partition("@")
    assert tool in ("run_shell_command", "bash", "terminal")
    assert len(mark) == 4
    assert stamp


SILENCE = {"cursor": {"permission": "allow"}}
DENY = {
    "codex": {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "R"}
    },
    "gemini": {"decision": "deny", "reason": "R"},
    "qwen": {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "R"}
    },
    "copilot": {"permissionDecision": "deny", "permissionDecisionReason": "R"},
    "opencode": {"deny": "R"},
    "droid": {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "R"}
    },
    "cline": {"cancel": False, "overrideInput": {"commands": ["printf '%s\\n' 'R' >&2; exit 1 # refused by projectmem"]}},
    "pi": {"deny": "R"},
    "openhands": {"decision": "deny", "reason": "R"},
    "cursor": {"permission": "deny", "user_message": "R", "agent_message": "R"},
}
WARN = {
    "codex": {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "R"}},
    "copilot": {"additionalContext": "R"},
    "cline": {"cancel": False, "contextModification": "R"},
    "cursor": {"permission": "allow"},
}


def _pre(name: str) -> Payload:
    told = Told(type("At", (), {"now": 1_790_000_000_000_000, "root": "/w"})(), name)
    event, call = BEFORE.get(name, "PreToolUse"), told.call("x")
    payload = MODULES[name].parse(event, {**told.base(event, "s"), **({"tool_call": call} if name == "cline" else call)})
    assert isinstance(payload, Payload)
    return payload


@pytest.mark.parametrize("name", NAMES)
def test_a_deny_is_exactly_what_the_client_obeys(name: str) -> None:
    """One field too many or in another place, and the client lets the call run: so the whole answer is compared."""
    module, payload = MODULES[name], _pre(name)
    for decision in (Decision("deny", reason="R"), Decision("ask", reason="R", by="agent")):
        reply = module.answer(payload, decision)
        assert reply == DENY[name]
        assert module.refuses(reply)
    assert module.answer(payload, Decision("allow")) == ({"permission": "allow"} if name == "cursor" else None)
    assert module.answer(payload, Decision("warn", reason="R")) == WARN.get(name)
    assert not module.refuses(WARN.get(name))
    assert "no reason was given" in json.dumps(module.answer(payload, Decision("deny")))


@pytest.mark.parametrize("name", NAMES)
def test_a_question_to_a_person_is_asked_only_where_that_works(name: str) -> None:
    """Codex lets a call run that is answered with `ask`, Gemini ends the run, opencode has no way: there it is a refusal."""
    reply = MODULES[name].answer(_pre(name), Decision("ask", reason="R", by="person"))
    asked = '"ask"' in json.dumps(reply)
    assert asked == (name in ("qwen", "copilot", "cursor"))
    assert MODULES[name].refuses(reply) == (not asked)


def test_codex_is_never_told_a_message_beside_a_refusal() -> None:
    """Any field that Codex does not expect loses the deny."""
    reply = DENY["codex"]
    assert codex.with_message(reply, "M") == reply
    assert codex.with_message(None, "M") == {"systemMessage": "M"}


def test_gemini_s_call_of_a_server_is_the_action_that_it_is_elsewhere() -> None:
    """Its tool name runs server and tool together; the payload names both apart, before and after the call."""
    common = {"session_id": "s", "cwd": "/srv/acme", "tool_name": "mcp_my_server_add", "tool_input": {"a": 2}, "timestamp": "t"}
    told = {**common, "mcp_context": {"server_name": "my_server", "tool_name": "add", "command": "node"}}
    for event, more in (("BeforeTool", {}), ("AfterTool", {"tool_response": {"llmContent": "5"}})):
        (call,) = gemini.parse(event, {**told, "hook_event_name": event, **more}).calls
        assert call["tool"] == "mcp__my_server__add"
        assert identify(call["tool"], call["input"], root="/srv/acme", cwd="/srv/acme").parts[0].family == "my_server add"
        (bare,) = gemini.parse(event, {**common, "hook_event_name": event, **more}).calls
        assert bare["tool"] == "mcp_my_server_add"
    for odd in ("x", {}, {"server_name": 1, "tool_name": "add"}, {"server_name": "", "tool_name": "add"}):
        (bare,) = gemini.parse("BeforeTool", {**common, "mcp_context": odd}).calls
        assert bare["tool"] == "mcp_my_server_add"


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = """session_id sessionId cwd hook_event_name tool_name toolName tool_input toolArgs tool_use_id tool_response toolResult
error timestamp prompt args tool call_id output exit llmContent resultType textResultForLlm""".split()


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), raw=_json | st.dictionaries(st.sampled_from(_FIELDS), _json, max_size=10))
def test_any_payload_is_understood_or_refused(name: str, data: st.DataObject, raw: Any) -> None:
    """Wrong types and missing fields raise ValueError, which the hook turns into a line in its log; nothing else is raised."""
    event = data.draw(st.sampled_from([*MODULES[name].EVENTS, "Nope"]))
    if isinstance(raw, dict) and data.draw(st.booleans()):
        raw = {
            **raw,
            "session_id": "s",
            "sessionId": "s",
            "cwd": "/w",
            "tool_name": "run_shell_command",
            "toolName": "bash",
            "tool": "bash",
        }
        raw.pop("hook_event_name", None)
    try:
        payload = MODULES[name].parse(event, raw)
    except ValueError:
        return
    assert payload.session
    assert payload.cwd
    for call in payload.calls:
        assert isinstance(call["tool"], str)
        assert isinstance(call["output"], str)


def test_every_adapter_is_registered_under_its_own_name() -> None:
    """The name in the command is the module's."""
    assert {"claude-code", *NAMES} <= set(ADAPTERS)
    assert all(ADAPTERS[name] == MODULES[name].__name__.rpartition(".")[2] for name in NAMES)


@pytest.mark.parametrize(("given", "known"), [
    ("shop___deploy", "mcp__shop__deploy"), ("my_shop___de_ploy", "mcp__my_shop__de_ploy"), ("Execute", "Execute"),
    ("___x", "___x"), ("x___", "x___"), ("a__b", "a__b"),
])  # fmt: skip
def test_droid_s_name_of_a_server_s_tool_is_everybody_s(tmp_path: Path, given: str, known: str) -> None:
    """Before a call, after it, and where only the transcript tells that it failed; there it stands as Droid calls it."""
    uses = [{"type": "tool_use", "id": id, "name": given, "input": {"n": n}} for n, id in enumerate(("one", "two"))]
    failed = {"type": "tool_result", "tool_use_id": "one", "is_error": True, "content": "Error: no"}
    transcript = tmp_path / "t.jsonl"
    transcript.write_text("".join(json.dumps({"message": {"content": [block]}}) + "\n" for block in (uses[0], failed, uses[1])))
    base = {"session_id": "s", "cwd": "/w", "transcript_path": str(transcript), "tool_name": given, "tool_input": {"n": 1}}
    before = droid.parse("PreToolUse", base)
    assert [(c["tool"], c["call"]) for c in (*before.ended, *before.calls)] == [(known, "one"), (known, "two")]
    after = droid.parse("PostToolUse", {**base, "tool_response": "fine"})
    assert [c["tool"] for c in after.calls] == [known, known]
