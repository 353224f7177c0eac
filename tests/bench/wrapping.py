"""The same calls as each harness keeps them: for every format a function from the steps of one session to the file's content.

Envelopes are those of the real clients (versions of 2026-11), field by field where a reader has to pass over them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.bench.histories import Step, says

Lines = Iterator[dict[str, Any]]
UUID, VERSION = "4f2d6a1e-8c57-4b0e-9a3d-", "2.1.42"
EXITED = "Command exited with code"


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _names(step: Step, names: dict[str, str], fields: tuple[str, str, str, str], command: str = "command") -> tuple[str, Any]:
    """(tool, input): `names` by kind, `fields` for path, old text, new text and content."""
    path, old, new, content = fields
    given = step.given
    if step.kind == "shell" or step.kind not in names:
        told = step.command if step.kind != "patch" else f"git apply <<'EOF'\n{given['patch']}EOF"
        return names["shell"], {command: told, "description": "Look at what is there"}
    if step.kind == "read":
        return names["read"], {path: given["path"]}
    if step.kind == "search":
        return names["search"], {"pattern": given["pattern"], "path": given["path"]}
    if step.kind == "write":
        return names["write"], {path: given["path"], content: given["content"]}
    return names["edit"], {path: given["path"], old: given["old"], new: given["new"]}


def _claude(steps: list[Step], root: str) -> Lines:
    names = {"shell": "Bash", "read": "Read", "search": "Grep", "edit": "Edit", "write": "Write"}
    for n, step in enumerate(steps):
        tool, given = _names(step, names, ("file_path", "old_string", "new_string", "content"))
        base = {"parentUuid": f"{UUID}{n:012x}", "isSidechain": False, "userType": "external", "cwd": root}
        base |= {"sessionId": step.session, "version": VERSION, "gitBranch": "main", "slug": "rustling-exploring-naur"}
        usage = {"input_tokens": 1, "cache_creation_input_tokens": 185, "cache_read_input_tokens": 115816, "output_tokens": 25}
        about = {"model": "claude-opus-4-6", "id": f"msg_{n:024x}", "type": "message", "role": "assistant"}
        ends = {"stop_reason": None, "stop_sequence": None, "usage": usage | {"service_tier": "standard"}}
        for block in ([{"type": "text", "text": says(step)}] if says(step) else []) + [
            {"type": "tool_use", "id": step.id, "name": tool, "input": given, "caller": {"type": "direct"}}
        ]:
            message = {**about, "content": [block], **ends}
            yield {**base, "message": message, "requestId": f"req_{n:024x}", "type": "assistant", "uuid": f"{UUID}{n:012x}",
                   "timestamp": _iso(step.at - 2_000)}  # fmt: skip
        failed = step.failed and step.code
        text = f"Exit code {step.code}\n{step.output}" if failed else step.output
        result = {"tool_use_id": step.id, "type": "tool_result", "content": text, "is_error": step.failed}
        told = {"stdout": step.output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
        told = told if step.kind == "shell" else {"type": "text", "file": {"filePath": "", "content": step.output, "numLines": 1}}
        yield {**base, "type": "user", "message": {"role": "user", "content": [result]}, "uuid": f"{UUID}{n:012x}",
               "timestamp": _iso(step.at), "toolUseResult": "Error" if step.failed else told}  # fmt: skip


def _codex(steps: list[Step], root: str, *, old: bool = False) -> Lines:
    """`old`: as the versions of the first half of 2026 had it, without lines of their own for commands that ended."""

    def line(step: Step, form: str, back: int = 0, /, **payload: Any) -> dict[str, Any]:
        return {"timestamp": _iso(step.at - back), "ordinal": 7, "type": form, "payload": payload}

    turn = {"turn_id": f"{UUID}000000000001"}
    if steps:
        yield line(steps[0], "session_meta", session_id=steps[0].session, id=steps[0].session, cwd=root, cli_version="0.171.0")
    count = dict.fromkeys(
        ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"), 8368818
    )
    for n, step in enumerate(steps):
        passed = {"internal_chat_message_metadata_passthrough": turn}
        if says(step):
            item = {"type": "AgentMessage", "id": f"msg_{n:x}", "content": [{"type": "Text", "text": says(step)}]}
            yield line(step, "event_msg", 9, type="item_completed", **turn, item=item)
            yield line(
                step, "response_item", 9, type="message", role="assistant", content=[{"type": "output_text", "text": says(step)}]
            )
        yield line(step, "response_item", 8, type="reasoning", summary=[])
        if step.kind == "patch":
            yield line(
                step, "response_item", 7, type="custom_tool_call", call_id=step.id, name="apply_patch", input=step.given["patch"]
            )
            text = step.output if step.failed else f"Exit code: 0\nWall time: 0 seconds\nOutput:\n{step.output}"
            text = f"apply_patch verification failed: {text}" if step.failed else text
            yield line(step, "response_item", type="custom_tool_call_output", call_id=step.id, output=text)
        elif step.kind in ("edit", "write"):
            continue
        else:
            code = step.code if step.code is not None else int(step.failed)
            given = json.dumps({"cmd": step.command, "workdir": root, "yield_time_ms": 10_000, "max_output_tokens": 12_000})
            yield line(
                step, "response_item", 7, type="function_call", name="exec_command", arguments=given, call_id=step.id, **passed
            )
            ran = {
                "type": "CommandExecution",
                "id": step.id,
                "process_id": "73053",
                "command": ["/bin/bash", "-lc", step.command],
            }
            ran |= {"cwd": f"file://{root}", "parsed_cmd": [{"type": "unknown", "cmd": step.command}], "status": "completed"}
            ran |= {"aggregated_output": step.output, "exit_code": code, "duration": {"secs": 0, "nanos": 4707}}
            if not old:
                yield line(step, "event_msg", 1, type="item_completed", **turn, item=ran)
            text = f"Chunk ID: bd09cc\nWall time: 0.0000 seconds\nProcess exited with code {code}\nOriginal token count: 9\n"
            yield line(
                step,
                "response_item",
                type="function_call_output",
                call_id=step.id,
                output=f"{text}Output:\n{step.output}",
                **passed,
            )
        yield line(step, "event_msg", type="token_count", info={"total_token_usage": count, "last_token_usage": count},
                   rate_limits={"limit_id": "codex", "primary": {"used_percent": 9.0, "window_minutes": 300}})  # fmt: skip


def _codex_old(steps: list[Step], root: str) -> Lines:
    return _codex(steps, root, old=True)


GOOGLE = {
    "shell": "run_shell_command",
    "read": "read_file",
    "search": "search_file_content",
    "edit": "replace",
    "write": "write_file",
}


def _gemini(steps: list[Step], root: str) -> Lines:
    yield {"sessionId": steps[0].session, "projectHash": "5" * 64, "startTime": _iso(steps[0].at), "kind": "main"}
    for n, step in enumerate(steps):
        tool, given = _names(step, GOOGLE, ("file_path", "old_string", "new_string", "content"))
        text = (
            f"Output: {step.output or '(empty)'}"
            + (f"\nExit Code: {step.code}" if step.code else "")
            + "\nProcess Group PGID: 12646"
        )
        text = f"<untrusted_context>\n{text}\n</untrusted_context>" if step.kind == "shell" else step.output
        response = {"error" if step.failed and step.kind != "shell" else "output": text}
        result = {"functionResponse": {"id": step.id, "name": tool, "response": response}}
        tokens = {"input": 1, "output": 1, "cached": 0, "thoughts": 0, "tool": 0, "total": 2}
        about = {
            "id": f"{UUID}{n:012x}",
            "timestamp": _iso(step.at - 2_000),
            "type": "gemini",
            "content": says(step),
            "thoughts": [],
        }
        call = {
            "id": step.id,
            "name": tool,
            "args": given,
            "result": [result],
            "status": "error" if "error" in response else "success",
        }
        call |= {"timestamp": _iso(step.at), "resultDisplay": step.output, "description": "", "displayName": tool}
        yield {**about, "tokens": tokens, "model": "gemini-2.5-pro"}
        yield {"$set": {"lastUpdated": _iso(step.at)}}
        yield {**about, "tokens": tokens, "model": "gemini-2.5-pro", "toolCalls": [call]}
        yield {"id": f"{UUID}{n:012x}", "timestamp": _iso(step.at), "type": "user", "content": [result]}
        yield {"$set": {"lastUpdated": _iso(step.at)}}


def _qwen(steps: list[Step], root: str) -> Lines:
    for n, step in enumerate(steps):
        tool, given = _names(step, GOOGLE, ("file_path", "old_string", "new_string", "content"))
        code, output = step.code or 0, step.output or "(empty)"
        text = step.output
        if step.kind == "shell":
            fields = f"Output: {output}\nError: (none)\nExit Code: {code}\nSignal: (none)"
            text = f"Command: {step.command}\nDirectory: (root)\n{fields}"
        base = {"uuid": f"{UUID}{n:012x}", "parentUuid": f"{UUID}{n:012x}", "sessionId": step.session, "timestamp": _iso(step.at)}
        base |= {"cwd": root, "version": "0.24.4", "gitBranch": "main"}
        use = {"functionCall": {"id": step.id, "name": tool, "args": given}}
        told = {"functionResponse": {"id": step.id, "name": tool, "response": {"error" if step.failed else "output": text}}}
        event = {"event.name": "qwen-code.api_response", "model": "q", "status_code": 200, "input_token_count": 1}
        event |= {"prompt_id": f"{UUID}########0", "response_text": says(step), "auth_type": "openai", "ttft_ms": 802}
        yield {**base, "type": "system", "subtype": "ui_telemetry", "systemPayload": {"uiEvent": event}}
        parts = [{"text": says(step)}, use] if says(step) else [use]
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "thoughtsTokenCount": 0}
        yield {**base, "type": "assistant", "model": "q", "message": {"role": "model", "parts": parts}, "usageMetadata": usage}
        event = {
            "event.name": "qwen-code.tool_call",
            "call_id": step.id,
            "function_name": tool,
            "function_args": given,
            "success": True,
        }
        yield {**base, "type": "system", "subtype": "ui_telemetry", "systemPayload": {"uiEvent": event}}
        shown = {"type": "shell_result", "version": 1, "exitCode": code, "output": output, "text": output, "error": None}
        result = {"callId": step.id, "status": "success", "resultDisplay": shown if step.kind == "shell" else step.output[:200]}
        yield {**base, "type": "tool_result", "message": {"role": "user", "parts": [told]}, "toolCallResult": result}


def _copilot(steps: list[Step], root: str) -> Lines:
    names = {"shell": "bash", "read": "view", "search": "grep", "edit": "edit", "write": "create"}
    context = {"cwd": root, "gitRoot": root, "branch": "main"}
    yield {"type": "session.start", "data": {"sessionId": steps[0].session, "context": context}, "timestamp": _iso(steps[0].at)}
    for n, step in enumerate(steps):
        tool, given = _names(step, names, ("path", "old_str", "new_str", "file_text"))
        end = {"id": f"{UUID}{n:012x}", "timestamp": _iso(step.at), "parentId": f"{UUID}{n:012x}"}
        text = f"{step.output}\n<shellId: 0 completed with exit code {step.code or 0}>" if step.kind == "shell" else step.output
        asked = [{"toolCallId": step.id, "name": tool, "arguments": given, "type": "function", "toolTitle": "Running command"}]
        yield {"type": "assistant.turn_start", "data": {"turnId": "0", "interactionId": f"{UUID}0"}, **end}
        usage = {
            "model": "m",
            "inputTokens": 1,
            "outputTokens": 1,
            "cacheReadTokens": 0,
            "transport": "http",
            "requestBodyBytes": 9,
        }
        yield {"type": "session.usage_record", "data": {"usage": usage}, **end}
        yield {"type": "assistant.message", "data": {"model": "m", "content": says(step), "toolRequests": asked}, **end}
        about = {"toolCallId": step.id, "toolName": tool, "arguments": given, "turnId": "0", "model": "m"}
        yield {"type": "tool.execution_start", "data": about, **end, "timestamp": _iso(step.at - 2_000)}
        done = {
            "toolCallId": step.id,
            "model": "m",
            "success": True,
            "result": {"content": text},
            "toolTelemetry": {"metrics": {"a": 1.0}},
        }
        if step.failed and step.kind != "shell":
            done = {"toolCallId": step.id, "model": "m", "success": False, "error": {"message": step.output, "code": "failure"}}
        yield {"type": "tool.execution_complete", "data": done, **end}
        yield {"type": "assistant.turn_end", "data": {"turnId": "0"}, **end}


def _droid(steps: list[Step], root: str) -> Lines:
    names = {"shell": "Execute", "read": "Read", "search": "Grep", "edit": "Edit", "write": "Create"}
    yield {"type": "session_start", "id": steps[0].session, "title": "go on", "owner": "unknown", "version": 2, "cwd": root}
    for n, step in enumerate(steps):
        tool, given = _names(step, names, ("file_path", "old_str", "new_str", "content"))
        base = {"type": "message", "id": f"{UUID}{n:012x}", "parentId": f"{UUID}{n:012x}"}
        use = [{"type": "text", "text": says(step)}] * bool(says(step))
        use += [{"type": "tool_use", "id": step.id, "name": tool, "input": given}]
        more = {"openaiMessageId": f"chatcmpl_{n:016x}", "modelId": "m", "reasoningEffort": "none"}
        yield {**base, "timestamp": _iso(step.at - 2_000), "message": {"role": "assistant", "content": use, **more}}
        ends = f"\n\n[Process exited with code {step.code or 0}]" if step.kind == "shell" else ""
        head = f"Error: Command failed (exit code: {step.code})\n" if step.failed and ends else ""
        told = {"type": "tool_result", "tool_use_id": step.id, "is_error": step.failed, "content": f"{head}{step.output}{ends}"}
        yield {**base, "timestamp": _iso(step.at), "message": {"role": "user", "content": [told]}}


def _pi(steps: list[Step], root: str) -> Lines:
    names = {"shell": "bash", "read": "read", "edit": "edit", "write": "write"}
    yield {"type": "session", "version": 3, "id": steps[0].session, "timestamp": _iso(steps[0].at), "cwd": root}
    for n, step in enumerate(steps):
        tool, given = _names(step, names, ("path", "oldText", "newText", "content"))
        base = {"type": "message", "id": f"{n:08x}", "parentId": f"{n:08x}"}
        use: list[Any] = [{"type": "text", "text": says(step)}] * bool(says(step))
        use += [{"type": "toolCall", "id": step.id, "name": tool, "arguments": given}]
        cost = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), 0)
        more = {
            "api": "openai-completions",
            "provider": "p",
            "model": "m",
            "usage": {**cost, "cost": cost},
            "stopReason": "toolUse",
        }
        yield {**base, "timestamp": _iso(step.at - 2_000), "message": {"role": "assistant", "content": use, **more}}
        text = f"{step.output}\n\n\n{EXITED} {step.code}" if step.failed and tool == "bash" and step.code else step.output
        told = {"role": "toolResult", "toolCallId": step.id, "toolName": tool, "content": [{"type": "text", "text": text}]}
        yield {**base, "timestamp": _iso(step.at), "message": {**told, "isError": step.failed, "timestamp": step.at}}


def _cline(steps: list[Step], root: str) -> Any:
    names = {"shell": "run_commands", "read": "read_files", "search": "search_codebase", "edit": "editor", "write": "editor"}
    messages: list[Any] = []
    for n, step in enumerate(steps):
        tool, given = _names(step, names, ("path", "old_text", "new_text", "new_text"))
        given = {"commands": [given["command"]]} if tool == "run_commands" else given
        use = [{"type": "text", "text": says(step)}] * bool(says(step)) + [
            {"type": "tool_use", "id": step.id, "name": tool, "input": given}
        ]
        row = {"query": given.get("commands", [""])[0], "result": step.output, "success": not step.failed}
        if step.failed and step.code:
            row |= {"result": f"[{EXITED} {step.code}]\n{step.output}", "error": f"{EXITED} {step.code}"}
        told = [{"type": "tool_result", "tool_use_id": step.id, "name": tool, "content": [row]}]
        metrics = {"inputTokens": 1, "outputTokens": 1, "cacheReadTokens": 0, "cacheWriteTokens": 0}
        messages.append(
            {"id": f"msg_{n:x}", "role": "assistant", "content": use, "ts": step.at - 2_000, "modelInfo": {"id": "m"}}
        )
        messages[-1]["metrics"] = metrics
        messages.append({"id": f"msg_{n:x}", "role": "user", "content": told, "ts": step.at})
    return {"version": 1, "sessionId": steps[0].session, "messages": messages}


def _mini(steps: list[Step], root: str) -> Any:
    messages: list[Any] = [
        {"role": "system", "content": "You are a helpful assistant"},
        {"role": "user", "content": steps[0].session},
    ]
    for step in steps:
        if step.kind not in ("edit", "write", "patch"):
            messages.append({"role": "assistant", "content": f"THOUGHT: {says(step)}\n\n```bash\n{step.command}\n```"})
            text = f"<returncode>{step.code or int(step.failed)}</returncode>\n<output>\n{step.output}\n</output>"
            messages.append({"role": "user", "content": text})
    return {"info": {"config": {"model": {"model_name": "m"}}}, "messages": messages}


def _swe(steps: list[Step], root: str) -> Any:
    rows = [{"action": s.command, "observation": s.output, "response": f"{says(s)}\n{s.command}", "thought": says(s),
             "state": {"working_dir": "/testbed"}, "execution_time": 0.25}
            for s in steps if s.kind not in ("edit", "write", "patch")]  # fmt: skip
    return {"environment": steps[0].session, "trajectory": rows, "replay_config": '{"agent": {"model": {"name": "m"}}}'}


def _atif(steps: list[Step], root: str) -> Any:
    names = {"shell": "bash", "read": "read_file", "search": "grep", "edit": "str_replace", "write": "write_file"}
    rows = []
    for n, step in enumerate(steps):
        tool, given = _names(step, names, ("path", "old_str", "new_str", "content"))
        call = {"tool_call_id": step.id, "function_name": tool, "arguments": given}
        code = {"extra": {"exit_code": step.code}} if step.code is not None else {"extra": {"is_error": step.failed}}
        result = {"source_call_id": step.id, "content": step.output, **code}
        rows.append({"step_id": n + 1, "timestamp": _iso(step.at), "source": "agent", "model_name": "m", "message": says(step),
                     "tool_calls": [call], "observation": {"results": [result]},
                     "metrics": {"prompt_tokens": 1, "completion_tokens": 1, "cost_usd": 0.0}})  # fmt: skip
    about = {"name": "x", "version": "1"}
    return {"schema_version": "ATIF-v1.5", "session_id": steps[0].session, "agent": about, "steps": rows}


LINES: dict[str, tuple[str, Callable[[list[Step], str], Lines]]] = {
    "claude-code": ("{}.jsonl", _claude), "codex": ("rollout-{}.jsonl", _codex), "codex, older": ("rollout-{}.jsonl", _codex_old),
    "gemini": ("repo/chats/session-{}.jsonl", _gemini), "qwen": ("{}.jsonl", _qwen), "copilot": ("{}/events.jsonl", _copilot),
    "droid": ("{}.jsonl", _droid), "pi": ("t_{}.jsonl", _pi),
}  # fmt: skip
WHOLE: dict[str, tuple[str, Callable[[list[Step], str], Any]]] = {
    "cline": ("{0}/{0}.messages.json", _cline), "mini-swe-agent": ("{}.traj.json", _mini), "swe-agent": ("{}.traj", _swe),
    "atif": ("{}.json", _atif),
}  # fmt: skip
FORMS = (*LINES, "opencode", *WHOLE)


def written(form: str, folder: Path, steps: Iterable[Step], root: str) -> list[Path]:
    """The files of a history, one a session (opencode: one database)."""
    folder.mkdir(parents=True)
    sessions = ((name, list(of)) for name, of in groupby(steps, key=lambda step: step.session))
    if form == "opencode":
        return [_database(folder / "opencode.db", sessions, root)]
    name, make = LINES[form] if form in LINES else WHOLE[form]
    files = []
    for n, (session, of) in enumerate(sessions):
        path = folder / name.format(f"{n:04}-{session}")
        path.parent.mkdir(parents=True, exist_ok=True)
        made = make(of, root)
        text = "\n".join(map(_json, made)) + "\n" if form in LINES else _json(made)
        path.write_text(text, encoding="utf-8", errors="replace")
        if form == "cline":
            path.with_name(f"{path.name.partition('.')[0]}.json").write_text(_json({"session_id": session, "cwd": root}))
        files.append(path)
    if form == "gemini":
        (folder / "repo" / ".project_root").write_text(root)
    return files


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _database(path: Path, sessions: Iterable[tuple[str, list[Step]]], root: str) -> Path:
    names = {"shell": "bash", "read": "read", "search": "grep", "edit": "edit", "write": "write"}
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE session (id TEXT PRIMARY KEY, directory TEXT)")
    db.execute("CREATE TABLE part (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT)")
    for session, steps in sessions:
        db.execute("INSERT INTO session VALUES (?, ?)", (session, root))
        for step in steps:
            tool, given = _names(step, names, ("filePath", "oldString", "newString", "content"))
            state: dict[str, Any] = {"status": "completed", "input": given, "output": step.output, "title": "t"}
            state |= {"metadata": {"output": step.output, "exit": step.code, "truncated": False}}
            if step.failed and step.kind != "shell":
                state = {"status": "error", "input": given, "error": step.output}
            state["time"] = {"start": step.at - 2_000, "end": step.at}
            parts = [{"type": "step-start", "snapshot": "1" * 40}, {"type": "text", "text": says(step)}]
            parts += [{"type": "tool", "tool": tool, "callID": step.id, "state": state}]
            parts += [
                {
                    "type": "step-finish",
                    "reason": "tool-calls",
                    "snapshot": "1" * 40,
                    "tokens": {"total": 2, "input": 1},
                    "cost": 0,
                }
            ]
            rows = [(f"{step.id}-{n}", session, step.at + n, _json(part)) for n, part in enumerate(parts)]
            db.executemany("INSERT INTO part VALUES (?, ?, ?, ?)", rows)
    db.commit()
    db.close()
    return path
