"""The README's walk through verify, checkpoint, prove and forget, line by line, in a shell with a person's terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from projectmem import place

REPO = Path(__file__).resolve().parents[2]
EXAMPLE_ID = "5f0c29d1b7aa"


def walk() -> list[tuple[str, list[str]]]:
    """(command, expected lines) of each command in the section's console blocks, in order."""
    section = (REPO / "README.md").read_text(encoding="utf-8").split("## Verify, prove, forget\n")[1].split("\n## ")[0]
    steps: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", section, re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            elif line:
                steps[-1][1].append(line)
    return steps


def fits(expected: list[str], said: list[str]) -> bool:
    """Whether the output is as shown: `...` in a line stands for anything in it, a line of it for any lines."""
    if not expected:
        return not said
    head, *rest = expected
    if head == "...":
        return any(fits(rest, said[i:]) for i in range(len(said) + 1))
    pattern = ".*".join(re.escape(part) for part in head.split("..."))
    return bool(said) and re.fullmatch(pattern, said[0]) is not None and fits(rest, said[1:])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal and a shell")
def test_the_walk_in_the_readme_works_as_it_stands(tmp_path: Path) -> None:
    """A newcomer types what is there and sees what is there."""
    import pty

    bin_folder, repo = tmp_path / "bin", tmp_path / "repo"
    bin_folder.mkdir()
    (bin_folder / "projectmem").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m projectmem "$@"\n')
    (bin_folder / "projectmem").chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for name in (*place.HARNESS_VARIABLES, "CLAUDE_CONFIG_DIR"):
        env.pop(name, None)
    ours, theirs = pty.openpty()

    def run(command: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            ["sh", "-c", command], cwd=repo, env=env, stdin=theirs, capture_output=True, check=False, timeout=120
        )
        return done.returncode, done.stdout.decode().splitlines() if done.returncode < 2 else done.stderr.decode().splitlines()

    try:
        subprocess.run(["git", "init", "-q", str(repo)], check=True)
        assert run("projectmem init")[0] == 0
        steps = walk()
        assert len(steps) > 12
        for command, expected in steps:
            if EXAMPLE_ID in command:
                code, lines = run("projectmem log --kind note.recorded --json")
                command = command.replace(EXAMPLE_ID, json.loads("\n".join(lines))[0]["id"][-12:])
            code, said = run(command)
            assert code == (1 if any("CUT" in line for line in expected) else 0), (command, said)
            assert fits(expected, said), f"{command}\nexpected {expected}\nsaid {said}"
    finally:
        os.close(ours)
        os.close(theirs)
