"""What each harness sends for the same story: a command before and after it ran, and a session that starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from projectmem.hook import entry

Fields = dict[str, Any]
Play = Callable[["Told", str, str], Any]
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
        if self.harness == "opencode":
            return {"session_id": session, "cwd": cwd}
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
        }[self.harness]

    def before(self, call: Fields, session: str = "one") -> Fields | None:
        """The event before a call."""
        event = {"gemini": "BeforeTool", "copilot": "preToolUse", "opencode": "tool.execute.before"}.get(
            self.harness, "PreToolUse"
        )
        return self.send(event, {**self.base(event, session), **call})

    def after(self, call: Fields, code: int, output: str, session: str = "one") -> Fields | None:
        """The event after a call that ended with this exit code."""
        event, told = self._told(code, output)
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
        return "tool.execute.after", {"output": output, "exit": code}


def samples(shared: Path, name: str) -> list[tuple[str, Fields]]:
    """(event, payload) as captured from the real client."""
    rows = json.loads((shared / "harness" / "samples" / f"{name}.json").read_text())
    return [(row["event"], row["stdin"]) for row in rows]
