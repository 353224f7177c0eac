"""The demo is the product in one screen: it must hold, be small, leave nothing behind, and fail loudly when the gate does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

LINES_MAX, WIDTH_MAX = 40, 100


def demo(tmp_path: Path, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it with an empty HOME, a temporary folder of its own and no terminal."""
    for name in ("home", "tmp", "cwd"):
        (tmp_path / name).mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), **more}
    argv = [sys.executable, "-m", "projectmem", "demo", *args]
    return subprocess.run(argv, cwd=tmp_path / "cwd", env=env, capture_output=True, text=True, timeout=PATIENCE)


def test_the_demo_shows_the_main_job_in_one_screen(tmp_path: Path) -> None:
    """Fails, is told before the repeat, mends, silence, everything recomputed; nothing is left on the disk."""
    done = demo(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) <= LINES_MAX
    assert max(map(len, lines)) <= WIDTH_MAX
    assert "\x1b" not in done.stdout
    text = done.stdout
    told, mended, audited = text.index("`python build.py` failed"), text.index("gate silent"), text.index("recomputed")
    assert told < mended < audited
    assert text.count("gate silent") == 3
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((tmp_path / "home").iterdir()) == []
    assert list((tmp_path / "cwd").iterdir()) == []


def test_the_demo_is_deaf_to_the_persons_own_settings(tmp_path: Path) -> None:
    """A switched-off gate, another log, git settings: none of them reaches into the temporary repository."""
    (tmp_path / "other").mkdir()
    done = demo(
        tmp_path,
        PROJECTMEM_GATE="off",
        PROJECTMEM_GATE_HOME=str(tmp_path / "other"),
        GIT_DIR="/nonexistent",
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0="commit.gpgsign",
        GIT_CONFIG_VALUE_0="true",
        CLAUDECODE="1",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((tmp_path / "other").iterdir()) == []


def test_keep_leaves_a_repository_to_look_around_in(tmp_path: Path) -> None:
    """And every reading command works there."""
    done = demo(tmp_path, "--keep")
    assert done.returncode == 0, done.stdout + done.stderr
    (repo,) = (tmp_path / "tmp").glob("projectmem-demo-*/shop")
    assert str(repo) in done.stdout
    for args in (["failures", "--all"], ["log"], ["stats"], ["replay", "--verify"], ["verify"]):
        argv = [sys.executable, "-m", "projectmem", *args, "--root", str(repo)]
        found = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        assert found.returncode == 0, found.stdout + found.stderr
        assert "build.py" in found.stdout or args[0] in ("stats", "replay", "verify")


def test_the_demo_fails_when_an_expectation_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A gate that says nothing is an error with exit 1, not a shorter demo."""
    from projectmem import demo as module
    from projectmem.cli import app

    monkeypatch.setattr(module, "_spoken", lambda answer: "")
    assert app.run(["demo"]) == 1
    captured = capsys.readouterr()
    assert "the demo did not go as it must" in captured.err
    assert "Traceback" not in captured.err
