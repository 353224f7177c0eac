"""A project, and real clients that a scripted model drives in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

DRIVER = Path(__file__).with_name("client_driver.py")
ENTER = 'ip link set lo up 2>/dev/null; exec "$@"'


def _client(name: str) -> Path | None:
    folder = os.environ.get("PROJECTMEM_CLIENTS")
    found = Path(folder) / name / "node_modules" / ".bin" / name if folder else None
    return found if found and found.exists() else None


def _namespace() -> list[str]:
    """How to run a program with no network but loopback, [] where that is not possible here."""
    if sys.platform != "linux" or shutil.which("unshare") is None or shutil.which("ip") is None:
        return []
    enter = ["unshare", "-n", "bash", "-c", ENTER, "_"]
    tried = subprocess.run([*enter, "true"], capture_output=True, check=False)
    return enter if tried.returncode == 0 else []


class World:
    """One repository and one person's home, across any number of sessions."""

    def __init__(self, folder: Path, client: Path, harness: str = "claude") -> None:
        self.folder, self.client, self.harness = folder, client, harness
        self.repo, self.own = folder / "shop", folder / "home"
        self.repo.mkdir()
        self.own.mkdir()
        self.sessions = 0
        programs = [Path(shutil.which(name) or "/usr/bin/true").parent for name in ("git", "node", "npm", "bash")]
        self.path = os.pathsep.join(dict.fromkeys([*map(str, programs), "/usr/bin", "/bin"]))
        self.env = {"PATH": self.path, "HOME": str(self.own), "LANG": "C.UTF-8", "GIT_CONFIG_GLOBAL": os.devnull}
        self.run("git", "init", "-q", "-b", "main")

    @property
    def home(self) -> Path:
        """Where the log is."""
        return self.repo / ".git" / "projectmem"

    def run(self, *argv: str) -> str:
        """A command in the repository that must succeed."""
        done = subprocess.run(
            argv, cwd=self.repo, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def commit(self) -> None:
        """Commit everything."""
        self.run("git", "add", "-A")
        self.run("git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-qm", "state")

    def use(self, name: str) -> None:
        """Go on with another client, or skip with the reason."""
        self.client, self.harness = _needed(name), name

    def session(self, *steps: Any, **more: Any) -> list[dict[str, Any]]:
        """Let the scripted model make these calls in one session; returns the requests the model got, in order."""
        self.sessions += 1
        log, spec = self.folder / f"model-{self.sessions}.jsonl", self.folder / f"spec-{self.sessions}.json"
        listed = [step if isinstance(step, list) else [step] for step in steps]
        fields = {
            "harness": self.harness,
            "client": str(self.client),
            "work": str(self.repo),
            "home": str(self.own),
            "path": self.path,
            "log": str(log),
        }
        spec.write_text(json.dumps({**fields, "steps": listed, **more}))
        argv = [*_namespace(), sys.executable, str(DRIVER), str(spec)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert result["returncode"] == 0, result
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Events of one kind in the log."""
        from projectmem_logs.reader import read_events

        return [event for event in read_events(str(self.home)) if event["kind"] == kind]


def _needed(name: str) -> Path:
    client = _client(name)
    if client is None:
        pytest.skip(f"no client {name}: set PROJECTMEM_CLIENTS to a folder with {name}/node_modules/.bin/{name}")
    return client


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A fresh repository with the real Claude Code client, or skip with the reason."""
    return World(tmp_path, _needed("claude"))


@pytest.fixture
def world_of(tmp_path: Path) -> Callable[[str], World]:
    """The same with another client."""
    return lambda name: World(tmp_path, _needed(name), name)
