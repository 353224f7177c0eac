"""What each harness sends for the same story: a command before and after it ran, and a session that starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from projectmem.hook import entry

Fields = dict[str, Any]
BEFORE = {
    "gemini": "BeforeTool", "copilot": "preToolUse", "opencode": "tool.execute.before", "pi": "tool_call", "cursor": "preToolUse"
}  # fmt: skip
SECOND = 1_000_000


class Told:
    """Plays events of one harness against a set up project (`hooked`), at its clock."""

    def __init__(self, hooked: Any, harness: str) -> None:
        self.hooked, self.harness, self.ids = hooked, harness, 0

    def send(self, event: str, payload: Fields) -> Fields | None:
        """The answer to one event."""
        self.hooked.now += SECOND
        return entry.respond([self.harness, event], json.dumps(payload).encode(), self.hooked.now)

    def stamp(self) -> str:
        """The harness's own clock."""
        seconds = self.hooked.now // SECOND
        return f"2026-01-01T{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{self.ids:03d}Z"

    def base(self, event: str, session: str) -> Fields:
        """Fields of every event."""
        cwd = str(self.hooked.root)
        if self.harness == "copilot":
            return {"sessionId": session, "cwd": cwd, "timestamp": self.hooked.now // 1000}
        if self.harness in ("opencode", "pi"):
            return {"session_id": session, "cwd": cwd}
        if self.harness == "cline":
            return {"taskId": session, "workspaceRoots": [cwd]}
        if self.harness == "openhands":
            return {"event_type": event, "session_id": session, "working_dir": cwd}
        if self.harness == "cursor":
            return {"conversation_id": session, "workspace_roots": [cwd], "hook_event_name": event}
        timed = {"timestamp": self.stamp()} if self.harness in ("gemini", "qwen") else {}
        return {"session_id": session, "transcript_path": "", "cwd": cwd, "hook_event_name": event, **timed}

    def call(self, command: str) -> Fields:
        """A call of the shell, with an id where the harness gives one."""
        self.ids += 1
        given = {"command": command}
        return {
            "codex": {"tool_name": "Bash", "tool_input": given, "tool_use_id": f"call_{self.ids}"},
            "gemini": {"tool_name": "run_shell_command", "tool_input": given},
            "qwen": {"tool_name": "run_shell_command", "tool_input": given, "tool_call_id": f"call_{self.ids}"},
            "copilot": {"toolName": "bash", "toolArgs": given},
            "opencode": {"tool": "bash", "args": given, "call_id": f"call_{self.ids}"},
            "pi": {"tool": "bash", "args": given, "call_id": f"call_{self.ids}"},
            "droid": {"tool_name": "Execute", "tool_input": {**given, "summary": "s", "riskLevel": "low"}},
            "cline": {"id": f"call_{self.ids}", "name": "run_commands", "input": {"commands": [command]}},
            "openhands": {"tool_name": "terminal", "tool_input": {**given, "kind": "TerminalAction"}},
            "cursor": {"tool_name": "Shell", "tool_input": given, "tool_use_id": f"call_{self.ids}"},
        }[self.harness]

    def before(self, call: Fields, session: str = "one") -> Fields | None:
        """The event before a call."""
        event = BEFORE.get(self.harness, "PreToolUse")
        extra: Fields = {}
        if self.harness == "droid":  # its transcript has the call by then, and the only id there is
            extra["transcript_path"] = self._write(session, self._use(call))
        return self.send(
            event, {**self.base(event, session), **({"tool_call": call} if self.harness == "cline" else call), **extra}
        )

    def after(self, call: Fields, code: int, output: str, session: str = "one") -> Fields | None:
        """The event after a call that ended with this exit code."""
        if self.harness == "droid" and code:  # no event tells of a failure: the transcript does, at the end of the turn
            return self._in_transcript(call, code, output, session)
        if self.harness == "cline":
            part = {
                "query": "x",
                "success": not code,
                "result": f"[Command exited with code {code}]\n{output}" if code else output,
            }
            part |= {"error": f"Command exited with code {code}"} if code else {}
            return self.send("PostToolUse", {**self.base("PostToolUse", session), "tool_result": {**call, "output": [part]}})
        event, told = self._told(code, output)
        if self.harness == "droid":
            told["transcript_path"] = str(self.hooked.root.parent / f"{session}.jsonl")
        return self.send(event, {**self.base(event, session), **call, **told})

    def _told(self, code: int, output: str) -> tuple[str, Fields]:
        if self.harness == "codex":
            return "PostToolUse", {"tool_response": f"Exit code: {code}\nWall time: 0 seconds\nOutput:\n{output}"}
        if self.harness == "gemini":
            shown = f"<untrusted_context>\nOutput: {output}\n" + (f"Exit Code: {code}\n" if code else "")
            return "AfterTool", {"tool_response": {"llmContent": f"{shown}Process Group PGID: 7\n</untrusted_context>"}}
        if self.harness == "qwen":
            shown = f"Command: x\nDirectory: (root)\nOutput: {output}\nError: (none)\nExit Code: {code}\nSignal: (none)"
            return ("PostToolUseFailure", {"error": shown}) if code else ("PostToolUse", {"tool_response": {"llmContent": shown}})
        if self.harness == "copilot":
            text = f"{output}\n<shellId: 0 completed with exit code {code}>"
            return "postToolUse", {"toolResult": {"resultType": "success", "textResultForLlm": text}}
        if self.harness == "pi":
            text = f"{output}\n\nCommand exited with code {code}" if code else output
            return "tool_result", {"output": text, "is_error": bool(code)}
        if self.harness == "droid":
            return "PostToolUse", {"tool_response": f"{output}\n\n[Process exited with code {code}]"}
        if self.harness == "openhands":
            response = {"content": [{"type": "text", "text": output}], "is_error": bool(code), "exit_code": code}
            return "PostToolUse", {"tool_response": response}
        if self.harness == "cursor":
            return ("postToolUseFailure", {"error_message": output}) if code else ("postToolUse", {"tool_output": output})
        return "tool.execute.after", {"output": output, "exit": code}

    def _use(self, call: Fields) -> Fields:
        return {"type": "tool_use", "id": f"call_{self.ids}", "name": call["tool_name"], "input": call["tool_input"]}

    def _write(self, session: str, block: Fields) -> str:
        path: Path = self.hooked.root.parent / f"{session}.jsonl"
        with path.open("a") as file:
            file.write(json.dumps({"message": {"content": [block]}}) + "\n")
        return str(path)

    def _in_transcript(self, call: Fields, code: int, output: str, session: str) -> Fields | None:
        text = f"Error: Command failed (exit code: {code})\n{output}\n\n[Process exited with code {code}]"
        result = {"type": "tool_result", "tool_use_id": self._use(call)["id"], "is_error": True, "content": text}
        return self.send("Stop", {**self.base("Stop", session), "transcript_path": self._write(session, result)})


def samples(shared: Path, name: str) -> list[tuple[str, Fields]]:
    """(event, payload) as captured from the real client."""
    rows = json.loads((shared / "harness" / "samples" / f"{name}.json").read_text())
    return [(row["event"], row["stdin"]) for row in rows]
