"""The commands about the log's integrity, given every kind of wrong log and wrong argument: an answer, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from projectmem_logs.origin import accept
from projectmem_logs.store import LogStore, init_home

from projectmem import caller, place
from projectmem.cli import app as cli

BAD = os.fsdecode(b"a\xffb\xfe")  # an argument that is no UTF-8
COMMANDS = [
    *(["verify", *more] for more in ([], ["--json"], ["--checkpoint", "/none"], ["--checkpoint", "."], ["--checkpoint", BAD])),
    *(["checkpoint", "--to", to] for to in ("/none/x", ".", BAD, "git-note")), ["checkpoint"], ["checkpoint", "--sign"],
    *(["checkpoint", "--key", key] for key in ("/none/k", __file__, BAD)),
    *(["prove", *more] for more in ([], ["zzzz"], [BAD], ["0123456789ab"])),
    *(["prove", "--consistency", *pair] for pair in (("a", "b"), ("1", "2"))),
    *(["prove", "--check", path] for path in ("/none", ".", BAD, __file__)),
    *(["forget", *more] for more in ([], ["--resume"], [BAD])),
    *(["forget", "--text", "hello", *more] for more in (["--reason", BAD], ["--yes"])),
    *(["forget", option, BAD] for option in ("--text", "--path", "--session", "--actor", "--record", "--since")),
    *(["repair", *more] for more in ([], ["--json"], ["--apply"])),
    *(["log", *more] for more in ([], ["--json"], ["--kind", BAD], ["--since", BAD])),
    *(["doctor", "--no-fire", *more] for more in ([], ["--json"])),
    *([name, "--root", BAD] for name in ("verify", "repair", "log", "rebuild", "doctor")),
    ["rebuild"], ["replay", "--verify"], ["replay", "--until", BAD], ["stats"], ["failures"],
]  # fmt: skip


def note(home: Path, count: int) -> None:
    """A log with some notes."""
    init_home(str(home), 1)
    accept(str(home))
    for i in range(count):
        data = {"text": f"hello {i}", "tags": []}
        LogStore(str(home)).append([{"kind": "note.recorded", "actor": {"origin": "human"}, "data": data}], now=10 + i)


def make(root: Path, state: str) -> Path:
    """A project with such a log."""
    home = root / ".projectmem-gate"
    if state == "foreign":
        (home / "log").mkdir(parents=True)
        (home / "log" / "README").write_text("not a log")
    elif state != "absent":
        note(home, 4)
        (segment,) = home.glob("log/*/*.jsonl")
        if state == "damaged":
            segment.write_bytes(segment.read_bytes().replace(b"hello 1", b"hellO 1"))
        elif state == "garbage":
            segment.write_bytes(bytes(range(256)) * 40)
            (home / "quarantine" / "x").write_bytes(b"\xff\0")
            (home / "spool" / "y.spool").write_bytes(b"no spool")
            (home / "erasure.json").write_bytes(b"[1")
    return home


@pytest.mark.parametrize("state", ["absent", "foreign", "damaged", "garbage"])
def test_whatever_the_log_is_the_answer_is_for_people(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exit codes as documented, no traceback, no report of a bug."""
    for name in place.HARNESS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(caller, "origin", lambda: "human")
    home = make(tmp_path, state)
    monkeypatch.chdir(tmp_path)
    for args in COMMANDS:
        code = cli.run(list(args))
        captured = capfd.readouterr()
        said = captured.out + captured.err
        assert code in (0, 1, 2, 3), (args, code, said)
        assert "Traceback" not in said and not (home / "errors.log").exists(), (args, said)
        assert said.strip() and "\udcff" not in said, args


READING = ["verify", "log", "repair", "replay --verify", "stats", "failures", "prove --consistency 1 2", "forget --text hello"]
WRITING = ["checkpoint", "checkpoint --sign", "record note x", "rebuild", "forget --text hello --yes"]
PROGRAM = """
import ctypes, sys
ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE: a superuser's pass goes with the next exec
ctypes.CDLL(None).prctl(24, 2, 0, 0, 0)
import os
os.execv(sys.executable, [sys.executable, "-m", "projectmem", *sys.argv[1:]])
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="drops a capability of Linux, so that root is refused too")
def test_a_folder_that_cannot_be_written_is_read_all_the_same(tmp_path: Path) -> None:
    """What only reads answers; what writes says why it cannot."""
    home = make(tmp_path, "whole")
    paths = [home, *home.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    env = place.environment({"PYTHONPATH": os.pathsep.join(sys.path)})
    for name in place.HARNESS_VARIABLES:
        env.pop(name, None)
    try:
        for command in (*READING, *WRITING):
            argv = [sys.executable, "-c", PROGRAM, *command.split(), "--root", str(tmp_path)]
            done = subprocess.run(argv, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, check=False)
            said = done.stdout + done.stderr
            assert done.returncode == (0 if command in READING else 3), (command, said)
            assert "Traceback" not in said and said.strip(), (command, said)
    finally:
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)
