"""What one hook process costs, as a ratio to the barest Python that can read JSON. `python -m tests.bench.hook`.

Runs are interleaved, so that whatever else the machine does hits all of them alike; medians are compared. The scratch
project holds FAILURES recorded failures, so that look-ups are not measured on an empty table.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from projectmem_logs.home import init_home

from projectmem.place import HOME_VARIABLE, locate
from projectmem.setup.claude_settings import entries
from projectmem.setup.command import SHELL, interpreter, words_of
from projectmem.setup.compiled import compile_hook
from tests.bench import bars

FAILURES = 200
PROMPT = "please write a poem about autumn leaves, and keep the second verse short"
ERROR = "Exit code 1\nsrc/app.ts:3:5 - error TS2304: Cannot find name 'x'.\nbuild failed"


class Project:
    """A scratch project with recorded failures, and the registered commands."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        subprocess.run(["git", "init", "-q", self.folder], check=True)
        Path(self.folder, "package.json").write_text("{}")
        place = locate(self.folder, {})
        assert place is not None
        init_home(place.home, time.time_ns() // 1000)
        compile_hook()
        self.hooks = {event: group["hooks"][0] for event, group in entries().items()}
        for number in range(FAILURES):
            self.fail(f"npm run build{_letters(number)}", f"seed{number}")
        self.fail("npm run build", "seed-main")

    def argv(self, event: str, *, shell: bool = True) -> list[str]:
        """The registered command of an event; without `shell` the program that the shell of a command line becomes."""
        words = words_of(self.hooks[event])
        if shell or words[:2] != [SHELL, "-c"] or not words[2].startswith("exec "):
            return words
        return shlex.split(words[2])[1:]

    def payload(self, event: str, session: str, **fields: Any) -> bytes:
        """What the harness would send."""
        base = {"session_id": session, "transcript_path": "", "cwd": self.folder, "hook_event_name": event}
        return json.dumps({**base, **fields}).encode()

    def call(self, command: str, id: str) -> dict[str, Any]:
        """The fields of a Bash call."""
        return {"tool_name": "Bash", "tool_input": {"command": command, "description": "d"}, "tool_use_id": id}

    def generation(self) -> None:
        """Build the generation that recall reads, as the start of a session has it built."""
        from projectmem_projections import recollection

        recollection.refresh(f"{self.folder}/.git/projectmem", None)

    def fail(self, command: str, id: str) -> None:
        """Record a failure of the command, in process."""
        from projectmem.hook.entry import respond

        fields = {**self.call(command, id), "error": ERROR, "is_interrupt": False, "duration_ms": 5000}
        respond(
            ["claude-code", "PostToolUseFailure"], self.payload("PostToolUseFailure", "seed", **fields), time.time_ns() // 1000
        )


def _letters(number: int) -> str:
    return ":" + "".join(chr(97 + int(digit)) for digit in f"{number:04d}")


def cases(project: Project, run: int, *, shell: bool = True) -> dict[str, tuple[list[str], bytes]]:
    """Name -> (command, stdin). The first is the floor. `shell`: see `Project.argv`."""
    python = interpreter()
    quiet = project.call("git log --oneline -5 -- src/app.ts", f"quiet{run}")
    known = project.call("npm run build", f"known{run}")
    row = {**quiet, "tool_use_id": f"done{run}", "tool_response": "a1b2c3 one\nd4e5f6 two"}
    batch = {"tool_calls": [row]}
    failed = {**project.call("make all", f"fail{run}"), "error": ERROR, "is_interrupt": False, "duration_ms": 5000}
    nowhere = json.loads(project.payload("PreToolUse", "bench", **quiet)) | {"cwd": "/"}
    return {
        "floor: -I -S -c 'import json'": ([python, "-I", "-S", "-c", "import json"], b""),
        "bare: -I -S -c pass": ([python, "-I", "-S", "-c", "pass"], b""),
        "pre, project not set up": (project.argv("PreToolUse", shell=shell), json.dumps(nowhere).encode()),
        "pre, no candidate": (project.argv("PreToolUse", shell=shell), project.payload("PreToolUse", "bench", **quiet)),
        "pre, candidate": (project.argv("PreToolUse", shell=shell), project.payload("PreToolUse", f"bench{run}", **known)),
        "batch, one success": (project.argv("PostToolBatch", shell=shell), project.payload("PostToolBatch", "bench", **batch)),
        "failure": (project.argv("PostToolUseFailure", shell=shell), project.payload("PostToolUseFailure", "bench", **failed)),
        "prompt, nothing recalled": (
            project.argv("UserPromptSubmit", shell=shell),
            project.payload("UserPromptSubmit", "bench", prompt=PROMPT),
        ),
    }


def measure(runs: int = 41) -> dict[str, tuple[float, float]]:
    """{case: (median ms, ratio to the floor)}."""
    spent: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        project = Project(folder)
        env = {key: value for key, value in os.environ.items() if key != HOME_VARIABLE}
        for run in range(runs):
            for name, (argv, stdin) in cases(project, run).items():
                began = time.perf_counter()
                done = subprocess.run(argv, input=stdin, cwd=folder, env=env, capture_output=True, check=True)
                if run:
                    spent.setdefault(name, []).append((time.perf_counter() - began) * 1000)
                if bool(done.stdout) != (name == "pre, candidate"):
                    raise SystemExit(f"{name}: unexpected answer {done.stdout[:300]!r}")
    medians = {name: statistics.median(times) for name, times in spent.items()}
    floor = next(iter(medians.values()))
    return {name: (ms, ms / floor) for name, ms in medians.items()}


def main() -> list[str]:
    """The lines of the report."""
    return [f"{case:32} {ms:7.2f} ms  {ratio:5.2f}x{bars.hook(case, ratio)}" for case, (ms, ratio) in measure().items()]


if __name__ == "__main__":
    sys.stdout.write("\n".join(main()) + "\n")
