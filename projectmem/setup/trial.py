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

from projectmem_logs.home import init_home
from projectmem_logs.origin import accept
from projectmem_logs.reader import read_events

from projectmem import place as places
from projectmem.setup import trial_payloads
from projectmem.setup.trial_payloads import SILENT, SPOKE, Step

TIMEOUT_S = 30


class Finding:
    """What running the command of one event showed."""

    __slots__ = ("detail", "event", "held")

    def __init__(self, event: str, held: bool, detail: str) -> None:
        self.event, self.held, self.detail = event, held, detail


class Trial:
    """A scratch project with a log of its own; `commands` is {event: the registered command's words}. Removed at the end."""

    def __init__(self, commands: dict[str, list[str]], harness: str = "claude-code") -> None:
        self.commands, self.harness = commands, harness
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
        steps = trial_payloads.script(self.harness, self.folder)
        found = [self._tried(step) for step in steps if step.event in self.commands]
        return [finding for finding in found if finding is not None]

    def _tried(self, step: Step) -> Finding | None:
        before = self._count(step.kind) if step.expected != SILENT else 0
        out, wrong = self._fire(step)
        if wrong:
            return Finding(step.event, False, wrong)
        took = f"({self.spent[-1] * 1000:.0f} ms)"
        if step.expected == SILENT and out:
            return Finding(step.event, False, f"should be silent but said: {out[:300]}")
        if step.expected == SILENT:
            return Finding(step.event, True, f"is silent about what never failed {took}")
        if step.expected == SPOKE:
            if self._says(out):
                return Finding(step.event, True, f"speaks before a failed action is repeated {took}")
            what = f"did not speak before a failed action was repeated (said {out[:200]!r})"
            return Finding(step.event, False, f"{what}: {self._last_words()}")
        if self._count(step.kind) > before:
            return Finding(step.event, True, f"recorded {step.kind} {took}")
        return Finding(step.event, False, f"ran without a word and recorded no {step.kind}: {self._last_words()}")

    def _says(self, out: str) -> bool:
        try:
            return "projectmem" in json.dumps(json.loads(out)) and trial_payloads.COMMAND in out
        except ValueError:
            return False

    def _fire(self, step: Step) -> tuple[str, str]:
        """(stdout, what went wrong) of the event's command."""
        began = time.monotonic()
        try:
            done = subprocess.run(
                self.commands[step.event], input=json.dumps(step.payload).encode(), cwd=self.folder, capture_output=True,
                timeout=TIMEOUT_S, env=places.environment({places.HOME_VARIABLE: self.home}),
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as exc:
            return "", f"could not be run: {exc}"
        self.spent.append(time.monotonic() - began)
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace").strip()
        if done.returncode in (126, 127):
            return out, f"could not be run: {err[-300:]}"
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
