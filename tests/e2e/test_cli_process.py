"""The command as a process: start-up, pipes, signals, terminals, completion."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from projectmem_logs.store import LogStore, init_home

from tests.patience import PATIENCE

PROJECTMEM = [sys.executable, "-m", "projectmem"]
HEAVY = ("duckdb", "faiss", "numpy", "mcp", "pydantic", "asyncio", "rich", "watchdog")


def run(*args: str, root: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """One command in `root`, without a terminal and without marks of a harness."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8", **more}
    return subprocess.run(
        [*PROJECTMEM, *args], cwd=root, env=env, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a log of many notes."""
    home = str(tmp_path / ".projectmem-gate")
    init_home(home, 1)
    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "agent"}
    drafts = [{"kind": "note.recorded", "at": 1, "actor": actor, "causes": [], "data": {"text": "n" * 90, "tags": []}}] * 5000
    LogStore(home).append(drafts, now=time.time_ns() // 1000, durability="batch")
    return tmp_path


def test_help_loads_little_and_nothing_heavy(tmp_path: Path) -> None:
    """Beside the command-line library and the commands' own modules a few dozen; no database, index, server or model."""
    probe = (
        "import sys, typer.main; theirs = set(sys.modules)\n"
        "from projectmem.cli.app import run\n"
        "run(['--help']); print(*(m for m in {*sys.modules} - theirs if not m.startswith('projectmem.cli')), file=sys.stderr)"
    )
    assert run("--help", root=tmp_path).returncode == 0
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=PATIENCE, check=True)
    loaded = done.stderr.split()
    assert "projectmem.place" in loaded and not set(loaded) & set(HEAVY)
    assert len(loaded) < 40, loaded


def test_hook_imports_no_command_line(tmp_path: Path) -> None:
    """`projectmem hook` is dispatched before the command-line library is imported, exits 0 and says nothing to nonsense."""
    probe = (
        "import sys, io; sys.argv = ['projectmem', 'hook', 'claude-code', 'PreToolUse']\n"
        "from projectmem import cli\n"
        "try: cli.main()\n"
        "except SystemExit as e: print('code', e.code, 'typer' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], input="not json", capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path
    )
    assert done.stdout == ""
    assert done.stderr.strip() == "code 0 False"


def test_a_closed_pipe_is_quiet(root: Path) -> None:
    """`projectmem log | head -1` prints one line and nothing on stderr."""
    reader = subprocess.run(
        f"{sys.executable} -m projectmem log --limit 0 | head -1",
        shell=True,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert reader.stdout.count("\n") == 1
    assert reader.stderr == ""


@contextmanager
def following(root: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    """`log --follow`. It takes Ctrl-C also where the tests run in the background (and ignore it), and ends with the test."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8"}  # not PYTHONUNBUFFERED, which users do not have
    held = signal.signal(signal.SIGINT, signal.default_int_handler)  # a handler is not inherited, ignoring is
    try:
        child = subprocess.Popen(
            [*PROJECTMEM, "log", "--follow", *args],
            cwd=root,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, held)
    with child:
        try:
            yield child
        finally:
            child.kill()


def test_interrupt_exits_130_without_a_traceback(root: Path) -> None:
    """Ctrl-C while following the log."""
    with following(root, "-n", "1") as child:
        assert child.stdout is not None
        assert "note.recorded" in child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 130
        assert "Traceback" not in err


def test_follow_prints_what_is_appended(root: Path) -> None:
    """Each event once, as one JSON line."""
    with following(root, "--json", "-n", "1") as child:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["seq"] == 5000
        for text in ("first", "second"):
            assert run("record", "note", text, root=root).returncode == 0
            assert json.loads(child.stdout.readline())["data"]["text"] == text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_offered(tmp_path: Path, shell: str) -> None:
    """The script for a shell can be shown, and it completes commands."""
    done = run("--show-completion", shell, root=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "projectmem" in done.stdout.lower()


def test_completion_completes_commands(tmp_path: Path) -> None:
    """What bash asks for."""
    script = Path(sys.executable).with_name("projectmem")
    env = {"PATH": os.environ["PATH"], "_PROJECTMEM_COMPLETE": "complete_bash", "COMP_WORDS": "projectmem fai", "COMP_CWORD": "1"}
    done = subprocess.run([str(script)], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split() == ["failures"]


needs_terminal = pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals are a Unix thing")


def on_terminal(*args: str, root: Path, **more: str) -> tuple[int, str]:
    """Run a command with a pseudo-terminal for stdin, stdout and stderr; (exit code, what it showed)."""
    master, slave = os.openpty()
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8", "TERM": "xterm-256color", **more}
    child = subprocess.Popen([*PROJECTMEM, *args], cwd=root, env=env, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            chunk = os.read(master, 65_536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(master)
    return child.wait(timeout=PATIENCE), shown.decode()


@needs_terminal
def test_colour_on_a_terminal_and_not_with_no_color(root: Path) -> None:
    """Colour is for people who want it."""
    code, shown = on_terminal("log", "-n", "2", root=root)
    assert code == 0
    assert "\x1b[2m" in shown
    assert "\x1b" not in on_terminal("log", "-n", "2", root=root, NO_COLOR="1")[1]
    assert "\x1b" not in on_terminal("log", "-n", "2", root=root, TERM="dumb")[1]
    assert "\x1b" not in run("log", "-n", "2", root=root).stdout


@needs_terminal
def test_a_person_is_who_sits_at_a_terminal_outside_of_a_harness(root: Path) -> None:
    """The same command: allowed, refused under a harness, refused without a terminal."""
    label = ("record", "label", "fragile", "--path", "src/**", "--reason", "old")
    code, shown = on_terminal(*label, root=root)
    assert code == 0, shown
    code, shown = on_terminal(*label, root=root, CLAUDECODE="1")
    assert code == 3
    assert "needs a person" in shown
    assert run(*label, root=root).returncode == 3
    origins = [e["actor"]["origin"] for e in json.loads(run("log", "--kind", "label", "--json", root=root).stdout)]
    assert origins == ["human"]


def test_closed_streams_do_not_crash_it(root: Path) -> None:
    """Without stdin, stdout or stderr at all."""
    for closed in ("<&-", ">&-", "2>&-"):
        done = subprocess.run(
            f"{sys.executable} -m projectmem log -n 1 {closed}",
            shell=True,
            cwd=root,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert "Traceback" not in done.stderr and done.returncode == 0, (closed, done.stderr)


@pytest.mark.parametrize("command", ["verify", "stats", "failures", "checkpoint", "replay", "summary", "doctor --no-fire", "log"])
def test_a_closed_stdout_is_no_bug(root: Path, command: str) -> None:
    """Each does its work; the answer goes nowhere, nor into a file that was opened meanwhile."""
    line = f"{sys.executable} -m projectmem {command} >&-"
    done = subprocess.run(line, shell=True, cwd=root, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode in (0, 1) and "bug" not in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_narrow_encoding_spells_out_what_it_lacks(root: Path) -> None:
    """An ASCII terminal gets escapes, not a crash."""
    assert run("record", "note", "naïve — ünïcode 🙂", root=root).returncode == 0
    done = run("log", "-n", "1", root=root, PYTHONIOENCODING="ascii", LANG="C")
    assert done.returncode == 0, done.stderr
    assert "na\\xefve" in done.stdout
