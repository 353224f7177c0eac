"""Shared fixtures: where the evaluation data lives, and a clean environment for every test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from projectmem.place import Place

REPO = Path(__file__).resolve().parent.parent

# How fast a machine is just now decides no test, and neither does chance: every run of the same tests takes the same examples;
# `make nightly` takes others.
settings.register_profile(
    "any-machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="PROJECTMEM_RANDOM" not in os.environ,
)
settings.load_profile("any-machine")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the shared evaluation data, or skip with the reason."""
    path = Path(os.environ.get("PROJECTMEM_SHARED", REPO.parent / "shared"))
    if not (path / "eval" / "README.md").is_file():
        pytest.skip(f"no shared data at {path} (set PROJECTMEM_SHARED)")
    return path


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the person's own shell may leak into a test."""
    for name in list(os.environ):
        if name.startswith(("PROJECTMEM_GATE_", "CLAUDE_")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _same_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Background work that a test runs in its own process must not slow down all the tests that follow."""
    if hasattr(os, "nice"):
        monkeypatch.setattr(os, "nice", lambda _: 0)


@pytest.fixture
def accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes a project with an empty log that is accepted, goes there, and lets the caller be of the origin that is given."""

    def make(origin: str) -> Path:
        from projectmem_logs.origin import accept
        from projectmem_logs.store import init_home

        from projectmem import caller, place

        for name in place.HARNESS_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(caller, "origin", lambda: origin)
        init_home(str(tmp_path / ".projectmem-gate"), 1)
        accept(str(tmp_path / ".projectmem-gate"))
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return make


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A git project with an empty log, and a person's home of its own in which no harness has kept anything yet."""
    from projectmem_logs.home import init_home

    from projectmem.place import locate

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CODEX_HOME", "QWEN_HOME", "COPILOT_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    found = locate(str(root), {})
    assert found is not None
    init_home(found.home, 1_796_100_000_000_000)
    return found
