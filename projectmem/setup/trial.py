"""Runs the registered hook commands in a scratch project, as the harness would, and looks at what they did.

A hook that is registered proves nothing: the wrong interpreter, a moved package or a broken snapshot all look the same from
the outside, like a project in which nothing ever fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from typing import Any

from projectmem_logs.home import init_home
from projectmem_logs.origin import accept
from projectmem_logs.reader import read_events

from projectmem import place as places

TIMEOUT_S = 30
COMMAND = "npm run projectmem-doctor-trial"
ERROR = "npm error Missing script: projectmem-doctor-trial"


class Finding:
    """What running the command of one event showed."""

    __slots__ = ("detail", "event", "held")

    def __init__(self, event: str, held: bool, detail: str) -> None:
        self.event, self.held, self.detail = event, held, detail


class Trial:
    """A scratch project with a log of its own; `hooks` is {event: the registered entry}. Removed at the end."""

    def __init__(self, hooks: dict[str, dict[str, Any]]) -> None:
        self.hooks = hooks
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="projectmem-doctor-"))
        self.home = os.path.join(self.folder, places.FOLDER_OUTSIDE_GIT)
        self.spent: list[float] = []

    def __enter__(self) -> Trial:
        init_home(self.home, time.time_ns() // 1000, allow_network=True)
        accept(self.home)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def findings(self) -> list[Finding]:
        """One for each registered event, in the order of a session that fails and a second one that is about to repeat it."""
        call = {"tool_name": "Bash", "tool_input": {"command": COMMAND}, "tool_use_id": "toolu_doctor_1"}
        failed = {**call, "error": f"Exit code 1\n{ERROR}", "is_interrupt": False, "duration_ms": 2000}
        batch = {"tool_calls": [{**call, "tool_response": f"Exit code 1\n{ERROR}"}]}
        read = {"tool_name": "Edit", "tool_input": {"file_path": f"{self.folder}/a", "old_string": "x", "new_string": "y"}}
        refused = {
            **read,
            "tool_use_id": "toolu_doctor_2",
            "tool_response": "<tool_use_error>String to replace not found in file.</tool_use_error>",
        }
        again = {**call, "tool_use_id": "toolu_doctor_3"}
        found = [
            self._recorded("SessionStart", "one", {"source": "startup"}, "session.started"),
            self._silent("PreToolUse", "one", call, "is silent about what never failed"),
            self._recorded("PostToolUseFailure", "one", failed, "action.finished"),
            self._recorded("PostToolBatch", "one", {"tool_calls": [*batch["tool_calls"], refused]}, "action.finished"),
            self._spoke("PreToolUse", "two", again),
            self._silent("UserPromptSubmit", "two", {"prompt": "go on"}, "is silent"),
            self._recorded("SessionEnd", "two", {"reason": "other"}, "session.ended"),
        ]
        return [finding for finding in found if finding is not None]

    def _recorded(self, event: str, session: str, payload: dict[str, Any], kind: str) -> Finding | None:
        before = self._count(kind)
        ran = self._fire(event, session, payload)
        if ran is None or ran[1]:
            return ran and Finding(event, False, ran[1])
        if self._count(kind) > before:
            return Finding(event, True, f"recorded {kind} ({self.spent[-1] * 1000:.0f} ms)")
        return Finding(event, False, f"ran without a word and recorded no {kind}: {self._last_words()}")

    def _silent(self, event: str, session: str, payload: dict[str, Any], what: str) -> Finding | None:
        ran = self._fire(event, session, payload)
        if ran is None or ran[1]:
            return ran and Finding(event, False, ran[1])
        if ran[0]:
            return Finding(event, False, f"should be silent but said: {ran[0][:300]}")
        return Finding(event, True, f"{what} ({self.spent[-1] * 1000:.0f} ms)")

    def _spoke(self, event: str, session: str, payload: dict[str, Any]) -> Finding | None:
        ran = self._fire(event, session, payload)
        if ran is None or ran[1]:
            return ran and Finding(event, False, ran[1])
        try:
            said = json.loads(ran[0])["hookSpecificOutput"]["hookEventName"] == event
        except (ValueError, KeyError, TypeError):
            said = False
        if said:
            return Finding(event, True, f"speaks before a failed action is repeated ({self.spent[-1] * 1000:.0f} ms)")
        return Finding(
            event, False, f"did not speak before a failed action was repeated (said {ran[0][:200]!r}): {self._last_words()}"
        )

    def _fire(self, event: str, session: str, payload: dict[str, Any]) -> tuple[str, str] | None:
        """(stdout, what went wrong) of the event's command, None where it is not registered."""
        hook = self.hooks.get(event)
        if hook is None:
            return None
        base = {"session_id": f"doctor-{session}", "transcript_path": "", "cwd": self.folder, "hook_event_name": event}
        argv = [str(hook.get("command")), *map(str, hook.get("args") or [])]
        began = time.monotonic()
        try:
            done = subprocess.run(
                argv, input=json.dumps({**base, **payload}).encode(), cwd=self.folder, capture_output=True, timeout=TIMEOUT_S,
                env=places.environment({places.HOME_VARIABLE: self.home}),
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as exc:
            return "", f"could not be run: {exc}"
        self.spent.append(time.monotonic() - began)
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace").strip()
        if done.returncode:
            return out, f"exits {done.returncode}, which is not 0: {err[-300:]}"
        if '"systemMessage"' in out:
            return out, f"says: {out[:400]}"
        return out, f"writes to stderr: {err[-300:]}" if err else ""

    def _count(self, kind: str) -> int:
        return sum(event.get("kind") == kind for event in read_events(self.home))

    def _last_words(self) -> str:
        try:
            with open(os.path.join(self.home, "hook.log"), encoding="utf-8", errors="replace") as file:
                return file.read().splitlines()[-1][:300]
        except (OSError, IndexError):
            return "nothing in hook.log (is the hook switched off, or another program?)"
