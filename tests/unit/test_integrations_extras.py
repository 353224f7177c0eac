"""The extras of agent frameworks: what is declared, what is locked for their tests, and what the documentation names are one."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
NAMES = ("langchain", "openai-agents", "claude-agent-sdk", "pydantic-ai", "google-adk", "agent-framework")


def _locked(path: Path) -> dict[str, str]:
    """Package -> version; every one must be pinned and hashed."""
    logical = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    lines = [line for line in logical if line.strip() and not line.lstrip().startswith("#")]
    assert lines
    assert not [line for line in lines if "==" not in line or "--hash=sha256:" not in line], path.name
    return {line.partition("==")[0]: line.partition("==")[2].split()[0] for line in lines}


@pytest.mark.parametrize("name", NAMES)
def test_what_an_extra_wants_is_what_its_tests_are_run_with(name: str) -> None:
    """The locked version satisfies the extra's floor; a module and a section of the README belong to it."""
    spec = importlib.util.spec_from_file_location("wanted", REPO / "tests" / "contract" / "frameworks" / "wanted.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    locked = _locked(REPO / "requirements" / f"{name}.txt")
    for line in module.wanted(name):
        package, _, floor = line.partition(">=")
        assert [int(n) for n in re.findall(r"\d+", locked[package])] >= [int(n) for n in floor.split(".")], line
    assert (REPO / "projectmem" / "integrations" / f"{name.replace('-', '_')}.py").is_file()
    assert f"projectmem.integrations.{name.replace('-', '_')} import" in (
        REPO / "projectmem" / "integrations" / "README.md"
    ).read_text(encoding="utf-8")


def test_no_extra_is_forgotten() -> None:
    """Each framework is an extra, locked and installed by CI."""
    extras = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(NAMES) <= set(extras)
    assert {path.stem for path in (REPO / "requirements").glob("*.txt")} == set(NAMES)
    install = (REPO / "tests" / "contract" / "frameworks" / "install.sh").read_text(encoding="utf-8")
    assert f"names=({' '.join(NAMES)})" in install
    assert "frameworks/install.sh" in (REPO / ".ci" / "run").read_text(encoding="utf-8")
    assert f"FRAMEWORKS := {' '.join(NAMES)}" in (REPO / "Makefile").read_text(encoding="utf-8")
