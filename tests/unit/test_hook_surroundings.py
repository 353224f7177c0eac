"""Facts about programs and environment variables: versions by a stat, variables by name, nothing by value."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from projectmem_gate.identify import identify
from projectmem_gate.model import Action

from projectmem.hook import surroundings
from projectmem.hook.facts import Disk
from projectmem.place import Place


def act(command: str) -> Action:
    """An action of a shell."""
    return identify("Bash", {"command": command}, root="/r", cwd="/r")


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("npm run build", ["npm", "node"]),
        ("cd x && CI=1 pytest -q | tail", ["pytest", "python3", "python"]),
        ("sudo make install", ["sudo", "make"]),
        ("./gradlew test", ["java"]),
        ("echo hi", []),
    ],
)
def test_programs(command: str, programs: list[str]) -> None:
    """What runs, and what it stands on; own scripts are files, not tools."""
    found = surroundings.programs_of(act(command))
    assert set(programs) <= set(found) | {"java"} and not any("/" in name for name in found)
    assert bool(found) is bool(programs) or command.startswith("./")


def test_another_version_is_another_tool(tmp_path: Path) -> None:
    """A newer file, another place on PATH, or none; the same again is the same."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "tool").write_text("#!/bin/sh\n")
        (folder / "tool").chmod(0o755)
    disk = Disk(Place(str(tmp_path), str(tmp_path)), str(one))
    recorded = disk.record(act("tool x"), tools=["tool", "gone"])
    assert recorded["tools"]["gone"] == "absent"
    assert disk.compare(recorded)["tools"] == "same"
    assert Disk(disk.place, f"{one}:{two}").compare(recorded)["tools"] == "same"
    assert Disk(disk.place, f"{two}:{one}").compare(recorded)["tools"] == "changed"
    assert Disk(disk.place, "").compare(recorded)["tools"] == "unknown"
    os.utime(one / "tool", ns=(1, 1))
    assert disk.compare(recorded)["tools"] == "changed"
    assert disk.compare({"tools": {"tool": str(one / "tool")}})["tools"] == "same"  # as older versions recorded it


def test_variables_by_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set or unset is a fact; what it holds is neither recorded nor compared."""
    disk = Disk(Place(str(tmp_path), str(tmp_path)), "/bin")
    named = surroundings.variables_of(act("npm run build"), "Error: API_URL is not set\nsee README_FIRST.md")
    assert "API_URL" in named
    monkeypatch.delenv("API_URL", raising=False)
    recorded = disk.record(act("npm run build"), variables=named)
    assert recorded["env"]["API_URL"] == "unset"
    assert disk.compare(recorded)["env"] == "same"
    monkeypatch.setenv("API_URL", "hunter2")
    assert disk.compare(recorded)["env"] == "changed"
    again = disk.record(act("npm run build"), variables=named)
    assert "hunter2" not in str(again)
    monkeypatch.setenv("API_URL", "another")
    assert disk.compare(again)["env"] == "same"
    assert disk.compare({})["env"] == "same"


def test_credentials_of_a_program_count_though_nobody_names_them() -> None:
    """`gh` says only that it is not logged in."""
    assert "GH_TOKEN" in surroundings.variables_of(act("gh pr list"), "To get started, please run: gh auth login")
    assert surroundings.variables_of(act("make x"), "plain words") == []


def test_facts_of_a_large_failure_keep_to_their_caps(tmp_path: Path) -> None:
    """However much it names: what is read is bounded."""
    for i in range(400):
        (tmp_path / f"f{i}.py").write_text("x")
    output = "\n".join(f"f{i}.py:1: error VAR_{'A' * (i % 40)}" for i in range(400))
    disk = Disk(Place(str(tmp_path), str(tmp_path)), os.environ["PATH"])
    action = act("make " + " ".join(f"f{i}.py" for i in range(300)))
    recorded = disk.record(
        action, output, tools=surroundings.programs_of(action), variables=surroundings.variables_of(action, output)
    )
    assert len(recorded["files"]) <= 64
    assert len(recorded["tools"]) <= surroundings.TOOLS_MAX
    assert len(recorded["env"]) <= surroundings.NAMES_MAX
