"""What the drivers of the frameworks share: run as `python DRIVER SPEC`, they play one session and print what the model was sent.

SPEC is a JSON file: {"example": Python source of the README, "steps": [[command, ...], ...] the calls of each model answer,
"mode": "" | "async" | "cancelled" | "raises" | "rejected", "client": the program of a client that the framework starts}.
Printed is {"inputs": [all texts of the request, for each request to the model]}.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

spec: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
inputs: list[str] = []


def run_shell(command: str) -> str:
    """Run a shell command."""
    if spec["mode"] == "raises":
        done = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)
        return done.stdout
    done = subprocess.run(command, shell=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return f"{done.stdout}\nExit code: {done.returncode}"


def play(given: dict[str, Any], before: Callable[[str], str] = lambda source: source) -> dict[str, Any]:
    """Run the README's example with `model`, `run_shell` and what else it takes for given; returns its names."""
    names = {"run_shell": run_shell, "__name__": "example", **given}
    try:
        exec(compile(before(spec["example"]), "README", "exec"), names)
    except subprocess.CalledProcessError:  # some frameworks end a run where a tool raises
        if spec["mode"] != "raises":
            raise
    return names


def finish() -> None:
    """Print what the model was sent."""
    sys.stdout.write(json.dumps({"inputs": inputs}))
