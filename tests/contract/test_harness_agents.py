"""Subagents, parallel calls and commands in the background, in the words of each client as it was seen to use them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from projectmem.hook import codex, copilot, droid, gemini, opencode, qwen

sys.path.insert(0, str(Path(__file__).parent))
from harness_calls import SECOND, Fields, Told

ADAPTERS: dict[str, Any] = {m.HARNESS: m for m in (codex, copilot, droid, gemini, opencode, qwen)}
BUILD, ERROR = "npm run build", "Error: cannot find config.json"
# How a subagent's events differ from its parent's, where they do.
SUB: dict[str, Fields] = {
    "codex": {"agent_id": "sub", "agent_type": "default"},
    "qwen": {"agent_id": "sub"},
    "copilot": {"sessionId": "sub", "agentId": "sub", "agentType": "general-purpose", "parentAgentId": "one"},
    "opencode": {"session_id": "sub"},
    "gemini": {},
}


def rows(hooked: Any) -> list[tuple[Any, ...]]:
    """(agent, text, outcome, exit code) of what is on record."""
    found = [(e["actor"]["agent"], e["data"]) for e in hooked.events("action.finished")]
    return [(agent, data["text"], data["outcome"], data["exit_code"]) for agent, data in found]


def as_sub(hooked: Any, name: str) -> Told:
    """A subagent of session `one`."""
    told = Told(hooked, name)
    told.ids, base = 50, told.base
    told.base = lambda event, session: {**base(event, session), **SUB[name]}  # type: ignore[method-assign]
    return told


def costly(hooked: Any) -> None:
    """Three earlier sessions waited two minutes each for the same failure."""
    for session in ("a", "b", "c"):
        call = hooked.call(BUILD)
        hooked.fails(call, f"Exit code 2\n{ERROR}", session, ms=120_000)


def refused(said: Any) -> bool:
    """Whether an answer refuses."""
    return "deny" in json.dumps(said)


@pytest.mark.parametrize("name", list(SUB))
def test_a_subagent_and_its_parent_are_told_of_each_other_s_failures(hooked: Any, name: str) -> None:
    """Both ways, with the command and the exit code; whose it was is on record where the client says it."""
    main, sub = Told(hooked, name), as_sub(hooked, name)
    for told, command in ((main, "make one"), (sub, BUILD)):
        call = told.call(command)
        assert told.before(call) is None
        told.after(call, 2, ERROR)
    for told, command in ((sub, "make one"), (main, BUILD)):
        call = told.call(command)
        said = [told.before(call), told.after(call, 2, ERROR)]
        assert f"projectmem: `{command}` failed" in json.dumps(said), (name, command)
    who = "sub" if name in ("codex", "qwen", "copilot") else ""
    failed = [("", "make one"), (who, BUILD), (who, "make one"), ("", BUILD)]
    assert rows(hooked) == [(agent, text, "failed", 2) for agent, text in failed]
    sessions = {e["actor"]["session"] for e in hooked.events("action.finished")}
    assert sessions == ({"one", "sub"} if name == "opencode" else {"one"})
    told = "named" if who else "as its parent's" if len(sessions) == 1 else "a session of its own"
    assert told == ADAPTERS[name].SUBAGENT, "the README's table"


@pytest.mark.parametrize("name", list(SUB))
def test_a_parent_s_call_is_no_repeat_of_what_its_subagent_was_asked(hooked: Any, name: str) -> None:
    """Each is asked for itself. Gemini does not tell whose a call is: there the parent's counts as the repeat."""
    costly(hooked)
    main, sub = Told(hooked, name), as_sub(hooked, name)
    assert refused(sub.before(sub.call(BUILD)))
    hooked.now += 5 * SECOND
    assert refused(main.before(main.call(BUILD))) == (name != "gemini")
    hooked.now += 5 * SECOND
    if name != "gemini":
        assert not refused(sub.before(sub.call(BUILD))), "the one that was asked may mean it"


@pytest.mark.parametrize("name", ["codex", "gemini", "qwen", "copilot", "opencode", "droid", "pi"])
def test_identical_calls_of_one_answer_are_all_refused(hooked: Any, name: str) -> None:
    """The second is no considered repeat of the first: nobody has read the refusal yet."""
    costly(hooked)
    told, now = Told(hooked, name), hooked.now
    for _ in range(2):
        hooked.now = now
        assert refused(told.before(told.call(BUILD)))
    assert {e["data"]["decision"]["rule"] for e in hooked.events("action.proposed")} == {"repeat.costly"}


# -- Droid: what runs at the same time, and what is left running


def _written(told: Told, id: str, block: Fields) -> str:
    """The path of session one's transcript, with a call or a result at its end."""
    named = {"id": id} if block["type"] == "tool_use" else {"tool_use_id": id}
    return told._write("one", {**block, **named})


def _droid(told: Told, event: str, path: str, given: Fields, **more: Any) -> Any:
    base = {**told.base(event, "one"), "transcript_path": path}
    return told.send(event, base if event == "Stop" else {**base, "tool_name": "Execute", "tool_input": given, **more})


def test_droid_s_refusals_of_parallel_calls_are_not_learned_as_failures(hooked: Any) -> None:
    """Two identical calls: both events before them go by one id, so one refusal is found by nothing but its words."""
    costly(hooked)
    told, given = Told(hooked, "droid"), {"command": BUILD, "summary": "s", "riskLevel": "low"}
    for id in ("c1", "c2"):
        path = _written(told, id, {"type": "tool_use", "name": "Execute", "input": given})
    said = [_droid(told, "PreToolUse", path, given) for _ in range(2)]
    assert refused(said[0]) and refused(said[1])
    for id in ("c1", "c2"):
        text = "Error: " + said[0]["hookSpecificOutput"]["permissionDecisionReason"]
        _written(told, id, {"type": "tool_result", "is_error": True, "content": text})
    _droid(told, "Stop", path, given)
    assert rows(hooked)[3:] == [("", BUILD, "rejected", None)] * 2


def test_of_droid_s_identical_parallel_calls_the_failed_one_is_kept(hooked: Any) -> None:
    """The event after the one that went well does not say which it was: it must not take the other's id."""
    told, given = Told(hooked, "droid"), {"command": BUILD}
    for id in ("c1", "c2"):
        path = _written(told, id, {"type": "tool_use", "name": "Execute", "input": given})
    for _ in range(2):
        _droid(told, "PreToolUse", path, given)
    for _ in range(2):  # and registered twice
        _droid(told, "PostToolUse", path, given, tool_response="built\n\n\n[Process exited with code 0]")
    for id, failed in (("c1", False), ("c2", True)):
        text = f"Error: Command failed (exit code: 2)\n{ERROR}\n\n[Process exited with code 2]" if failed else "built"
        _written(told, id, {"type": "tool_result", "is_error": failed, "content": text})
    _droid(told, "Stop", path, given)
    assert rows(hooked) == [("", BUILD, "ok", 0), ("", BUILD, "failed", 2)]


# -- the start of a command in the background, as each client's event tells of it
STARTS: dict[str, tuple[str, Fields]] = {
    "gemini": (
        "AfterTool",
        {
            "tool_input": {"command": BUILD, "is_background": True},
            "tool_response": {"llmContent": "<untrusted_context>\nCommand moved to background (PID: 7).\n</untrusted_context>"},
        },
    ),
    "qwen": (
        "PostToolUse",
        {
            "tool_input": {"command": BUILD, "is_background": True},
            "tool_response": {"llmContent": "Background shell started.\nid: bg_1\nstatus file: /nowhere/shell-bg_1.status\n"},
        },
    ),
    "copilot": (
        "postToolUse",
        {
            "toolArgs": {"command": BUILD, "mode": "async"},
            "toolResult": {"resultType": "success", "textResultForLlm": "<command started in background with shellId: 0>"},
        },
    ),
    "droid": (
        "PostToolUse",
        {
            "tool_input": {"command": BUILD, "fireAndForget": True},
            "tool_response": f"Background process started (PID: 7)\nCommand: {BUILD}\nStatus: Running in background\n\nNote: ...",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(STARTS))
def test_the_start_of_a_background_command_clears_no_failure(hooked: Any, name: str) -> None:
    """It tells nothing of how the command ends: the failure on record stands and is spoken of."""
    told = Told(hooked, name)
    call = told.call(BUILD)
    told.before(call)
    told.after(call, 2, ERROR)
    event, fields = STARTS[name]
    started = {**told.call(BUILD), **fields}
    said = [told.before({k: v for k, v in started.items() if "esponse" not in k and "esult" not in k})]
    said.append(told.send(event, {**told.base(event, "one"), **started}))
    assert BUILD in json.dumps(said)
    assert [row[2] for row in rows(hooked)] == ["failed", "unknown"]
    assert ("its start" if name in ("gemini", "droid") else "its end") == ADAPTERS[name].BACKGROUND, "the README's table"
    again = told.call(BUILD)
    assert BUILD in json.dumps([told.before(again, "two"), told.after(again, 0, "built", "two")])


@pytest.mark.parametrize("command", [f"{BUILD} &", f"nohup {BUILD} > /dev/null 2>&1 & echo started", f"(sleep 1; {BUILD}) &"])
def test_what_a_command_line_leaves_running_clears_no_failure(hooked: Any, command: str) -> None:
    """Exit 0 is the shell's own, the moment it has started it. With `wait` it has ended."""
    hooked.run(BUILD, f"Exit code 2\n{ERROR}")
    hooked.run(command)
    assert [row[2] for row in rows(hooked)] == ["failed", "unknown"]
    assert BUILD in json.dumps(hooked.before(hooked.call(BUILD), "two"))
    hooked.run(f"{BUILD} & wait")
    assert hooked.before(hooked.call(BUILD), "three") is None


def test_a_copilot_command_that_outlives_its_wait_has_not_ended_well(hooked: Any) -> None:
    """No exit code, and words that say that it goes on."""
    text = "building\n<command with shellId: 3 is still running after 30 seconds. Use read_bash to continue waiting.>"
    raw = {"sessionId": "s", "cwd": "/w", "timestamp": 1, "toolName": "bash", "toolArgs": {"command": BUILD}}
    (call,) = copilot.parse("postToolUse", {**raw, "toolResult": {"resultType": "success", "textResultForLlm": text}}).calls
    assert call["background"]


# -- how a command in the background ended, where a file tells


def _copilot_file(monkeypatch: pytest.MonkeyPatch, folder: Path, session: str, rows: list[tuple[str, Fields, str]]) -> None:
    monkeypatch.setenv("COPILOT_HOME", str(folder))
    path = folder / "session-state" / session / "events.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"type": kind, "data": data, **({"agentId": agent} if agent else {})}) for kind, data, agent in rows]
    path.write_text("\n".join([*lines, "{torn"]))


@pytest.mark.parametrize(("code", "outcome"), [(2, "failed"), (0, "ok")])
def test_copilot_s_background_command_is_learned_when_it_has_ended(
    hooked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, outcome: str
) -> None:
    """From the session's own file, before the same command is tried again; once, as the agent's that started it."""
    told = Told(hooked, "copilot")
    start = {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": BUILD, "mode": "async"}}
    begun = {"toolCallId": "c1", "success": True, "result": {"content": "<command started in background with shellId: 4>"}}
    note = {"content": "...", "kind": {"type": "shell_completed", "shellId": "4", "exitCode": code}}
    shown = {"toolCallId": "x", "result": {"content": f"{ERROR}\n<shellId: 4 completed with exit code {code}>"}}
    other = {"toolCallId": "c2", "result": {"content": "<shellId: 5 completed with exit code 1>"}}
    file: list[tuple[str, Fields, str]] = [("tool.execution_start", start, "sub"), ("tool.execution_complete", begun, "sub")]
    _copilot_file(monkeypatch, tmp_path, "one", file)
    assert told.before(told.call("make other")) is None
    assert rows(hooked) == [], "it is still running"
    file += [("tool.execution_complete", other, ""), ("system.notification", note, ""), ("tool.execution_complete", shown, "")]
    _copilot_file(monkeypatch, tmp_path, "one", file)
    for _ in range(2):
        said = told.before(told.call(BUILD))
    assert (BUILD in json.dumps(said)) == (code != 0)
    assert rows(hooked) == [("sub", BUILD, outcome, code)]


@pytest.mark.parametrize(("status", "outcome"), [("failed", "failed"), ("completed", "ok"), ("running", ""), ("cancelled", "")])
def test_qwen_s_background_command_is_learned_when_it_has_ended(hooked: Any, tmp_path: Path, status: str, outcome: str) -> None:
    """From the file that the result of its start names, if that is the session's own."""
    told, base = Told(hooked, "qwen"), Told.base
    path = tmp_path / "one.jsonl"
    told.base = lambda event, session: {**base(told, event, session), "transcript_path": str(path)}  # type: ignore[method-assign]
    for session in ("one", "other"):
        folder = tmp_path / "background-shells" / session
        folder.mkdir(parents=True)
        held = {"id": "bg_1", "status": status, "command": f"{BUILD}:{session}", "cwd": str(hooked.root)}
        (folder / "shell-bg_1.status").write_text(
            json.dumps({**held, **({"error": "exited with code 2"} if status == "failed" else {})})
        )
        (folder / "shell-bg_1.output").write_text(ERROR if status == "failed" else "built")
        text = f"Background shell started.\nid: bg_1\npid: 7\nstatus file: {folder}/shell-bg_1.status\nTo check ..."
        response = {"id": f"call_{session}", "name": "run_shell_command", "response": {"output": text}}
        with path.open("a") as file:
            file.write(json.dumps({"type": "tool_result", "message": {"parts": [{"functionResponse": response}]}}) + "\n")
    for _ in range(2):
        said = told.before(told.call(f"{BUILD}:one"))
    code = 2 if status == "failed" else 0
    assert rows(hooked) == ([("", f"{BUILD}:one", outcome, code)] if outcome else [])
    after = told.after(told.call("true"), 0, "")
    assert ("projectmem: `" in json.dumps([said, after])) == (status == "failed")


# -- Gemini's and Qwen's texts: fields of the harness's own around what the command printed

SHOWN = {
    "Output: one\nError: cannot find x\n  at y\nExit Code: 2\nProcess Group PGID: 7": ("one\nError: cannot find x\n  at y", 2),
    "Output: one\nError: cannot find x\nExit Code: 2\nProcess Group PGID: 7": ("one\nError: cannot find x", 2),
    "Output: Exit Code: 3\nSignal: 9\nmore\nProcess Group PGID: 7": ("Exit Code: 3\nSignal: 9\nmore", 0),
    "Output: one\nSignal: 9\nProcess Group PGID: 7": ("one", 137),
    "Output: (empty)\nExit Code: 1\nProcess Group PGID: 7": ("", 1),
    "Command: x\nOutput: Exit Code: 3\nError: (none)\nExit Code: 0\nSignal: (none)\nProcess Group PGID: (none)": (
        "Exit Code: 3",
        0,
    ),
    "Command: x\nOutput: one\nError: (none)\nExit Code: (none)\nSignal: 9\nProcess Group PGID: (none)": (
        "one",
        137,
    ),
}


@pytest.mark.parametrize("text", list(SHOWN))
def test_what_a_command_printed_is_told_from_what_the_harness_says_of_it(text: str) -> None:
    """Lines of a command that look like the harness's fields are its output; one ended by a signal has failed."""
    call = {"tool": "run_shell_command", "input": {"command": "x"}, "exit_code": None, "output": "", "is_error": None}
    gemini.answered({**call, "error_kind": ""}, {"llmContent": text})
    done: Fields = {**call, "error_kind": ""}
    gemini.answered(done, {"llmContent": f"<untrusted_context>\n{text}\n</untrusted_context>"})
    assert (done["output"], done["exit_code"]) == SHOWN[text]
    raw = {"session_id": "s", "cwd": "/w", "tool_name": "run_shell_command", "tool_input": {}, "tool_call_id": "c", "error": text}
    if "Command: x" in text and SHOWN[text][1]:
        (failed,) = qwen.parse("PostToolUseFailure", raw).calls
        assert (failed["output"], failed["exit_code"], failed["is_error"]) == (*SHOWN[text], True)


def test_a_tool_s_own_error_is_no_refusal_of_ours() -> None:
    """Only the gate's words at the very start are."""
    use: Any = droid.parse("PreToolUse", {"session_id": "s", "cwd": "/w", "tool_name": "Edit", "tool_input": {}}).calls[0]
    for text, kind in (("Error: projectmem: `x` failed", "hook"), ("Error: not found: projectmem: y", "tool")):
        assert droid.told(dict(use), {"is_error": True, "content": text})["error_kind"] == kind


def test_gemini_s_first_prompt_is_what_the_person_wrote() -> None:
    """The client puts what the hook said at the start before it; recall must not be asked for that."""
    raw = {"session_id": "s", "cwd": "/w", "hook_event_name": "BeforeAgent"}
    told = "<hook_context>&lt;projectmem-1 note=&gt;\nnpm run build failed&lt;/projectmem-1&gt;</hook_context>\n\n"
    for prompt in ("go on", "what is </hook_context> and <hook_context>?"):
        for before in (told, ""):
            assert gemini.parse("BeforeAgent", {**raw, "prompt": before + prompt}).raw["prompt"] == prompt
