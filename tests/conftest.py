"""Shared fixtures: where the evaluation data lives, and a clean environment for every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent


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
