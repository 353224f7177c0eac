"""The gate in real agent frameworks, each in a virtual environment of its own, driven by its own scripted model: the README's
example is what runs. Without the environments (PROJECTMEM_INTEGRATIONS, see install_frameworks.sh) these tests skip."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
README = REPO / "projectmem" / "integrations" / "README.md"
DRIVERS = Path(__file__).with_name("frameworks")
SOURCES = [str(REPO / name) for name in ("", "logs", "gate", "projections")]
TITLES = {
    "langchain": "LangChain",
    "openai-agents": "OpenAI Agents SDK",
    "pydantic-ai": "pydantic-ai",
    "google-adk": "Google ADK",
    "agent-framework": "Microsoft Agent Framework",
}
NAMES = list(TITLES)
SYNC = {"langchain"}  # frameworks that can be called without a loop too
FAILS = "build:\n\t@echo 'error: Missing environment variable VITE_API_URL'; exit 1\n"
WORKS = "build:\n\t@echo built\n"
BUILD = "make build"
ENV = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "LANG": "C.UTF-8"}
SAID = "projectmem: `make build` failed"


def _python(name: str) -> Path:
    folder = os.environ.get("PROJECTMEM_INTEGRATIONS")
    python = Path(folder) / name / "bin" / "python" if folder else None
    if python is None or not python.exists():
        pytest.skip(f"no {name}: set PROJECTMEM_INTEGRATIONS to a folder with {name}/bin/python (install_frameworks.sh)")
    return python


def _example(name: str) -> str:
    section = README.read_text(encoding="utf-8").partition(f"\n## {TITLES[name]}\n")[2].partition("\n## ")[0]
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return str(example)


class Framework:
    """A set up project whose agent runs in a framework."""

    def __init__(self, name: str, hooked: Any, folder: Path) -> None:
        self.name, self.hooked, self.folder, self.python = name, hooked, folder, _python(name)
        hooked.now = time.time_ns() // 1000 - 60_000_000
        self.makefile(FAILS)

    @property
    def who(self) -> str:
        """Who failed, in the gate's words: the model where the framework names it, else the framework."""
        return "scripted" if self.name == "pydantic-ai" else self.name

    def makefile(self, text: str) -> None:
        """What `make build` does from now on."""
        (self.hooked.root / "Makefile").write_text(text)

    def session(self, *steps: Any, mode: str = "", tool: str = "shell", env: dict[str, str] | None = None) -> list[str]:
        """Play the example in a process of its own, with these calls of the model; what it was sent, for each request."""
        listed = [step if isinstance(step, list) else [step] for step in steps]
        given = {"example": _example(self.name), "steps": listed, "mode": mode, "tool": tool}
        path = self.folder / "spec.json"
        path.write_text(json.dumps(given))
        done = subprocess.run(
            [str(self.python), "-B", str(DRIVERS / f"{self.name.replace('-', '_')}_driver.py"), str(path)],
            cwd=self.hooked.root,
            env={**ENV, "HOME": str(self.folder), "PYTHONPATH": os.pathsep.join([str(DRIVERS), *SOURCES]), **(env or {})},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.stderr = done.stderr
        found: list[str] = json.loads(done.stdout)["inputs"]  # nothing else may be printed
        return found

    def ran(self) -> list[str]:
        """The commands that the tool was really called with so far."""
        path = self.hooked.root / "ran.txt"
        return path.read_text().splitlines() if path.exists() else []

    def outcomes(self) -> list[tuple[str, Any]]:
        """(outcome, exit code) of what is on record."""
        return [(e["data"]["outcome"], e["data"]["exit_code"]) for e in self.hooked.events("action.finished")]

    def costly(self) -> None:
        """A build in Claude Code that took two minutes and failed: the next one is refused once."""
        call = self.hooked.call(BUILD)
        self.hooked.before(call, "other")
        self.hooked.fails(call, "Exit code 2\nerror: Missing environment variable VITE_API_URL", "other", ms=120_000)


@pytest.fixture
def framework(request: pytest.FixtureRequest, hooked: Any, tmp_path: Path) -> Framework:
    """The framework that the test is parametrised with, or skip with the reason."""
    return Framework(request.param, hooked, tmp_path)


each = pytest.mark.parametrize("framework", NAMES, indirect=True)


@each
def test_fail_then_told_in_a_new_session_then_changed_then_silent(framework: Framework) -> None:
    """The main job: the text is in the model's next input, beside the tool's own."""
    first = framework.session(BUILD)
    assert "VITE_API_URL" in first[-1]
    assert "projectmem" not in "".join(first)
    ((outcome, code),) = framework.outcomes()
    assert (outcome, code) == ("failed", 2)
    (failed,) = framework.hooked.events("action.finished")
    assert (failed["actor"]["harness"], failed["actor"]["origin"]) == (framework.name, "observed")
    assert failed["data"]["duration_ms"] is not None
    second = framework.session(BUILD)
    assert SAID not in second[0]
    assert f"({framework.who})" in second[-1].partition(SAID)[2][:40]
    framework.makefile(WORKS)
    assert "projectmem" not in "".join(framework.session(BUILD))
    assert [outcome for outcome, _ in framework.outcomes()] == ["failed", "failed", "ok"]


@each
def test_what_failed_in_claude_code_is_refused_once_and_a_repeat_passes(framework: Framework) -> None:
    """The tool does not run the first time; the model reads why, and means it the second time."""
    framework.costly()
    said = framework.session(BUILD, BUILD)
    assert SAID in said[1]
    assert "Refused once" in said[1]
    assert "make: ***" not in said[1]
    assert "make: ***" in said[2]
    assert framework.ran() == [BUILD]
    verdicts = [e["data"]["decision"]["verdict"] for e in framework.hooked.events("action.proposed")]
    rules = [e["data"]["decision"]["rule"] for e in framework.hooked.events("action.proposed")]
    assert verdicts[-2:] == ["ask", "allow"]
    assert rules[-1] == "override"


@each
def test_two_equal_calls_of_one_answer_are_one(framework: Framework) -> None:
    """A repeat beside the first call is no repeat on purpose: neither runs, however fast the framework is."""
    framework.costly()
    said = framework.session([BUILD, BUILD])
    assert said[-1].count("Refused once") == 2
    assert framework.ran() == []


@each
def test_what_failed_here_speaks_in_claude_code(framework: Framework) -> None:
    """One log serves all."""
    framework.session(BUILD)
    framework.hooked.now = time.time_ns() // 1000
    reply = framework.hooked.before(framework.hooked.call("make  build"), "another")
    assert f"({framework.who})" in json.dumps(reply)


@each
def test_parallel_calls_are_each_recorded(framework: Framework) -> None:
    """Six commands of one answer, whatever the framework runs at the same time."""
    framework.session([f"echo {n}" for n in range(5)] + [BUILD])
    assert sorted(framework.outcomes(), key=str) == [("failed", 2)] + [("ok", 0)] * 5
    assert not framework.hooked.log_lines()


@pytest.mark.parametrize("framework", [name for name in NAMES if name in SYNC], indirect=True)
def test_asynchronous_agents_are_served_alike(framework: Framework) -> None:
    """The same through the framework's other door."""
    framework.costly()
    said = framework.session(BUILD, BUILD, mode="async")
    assert "Refused once" in said[1]
    assert "make: ***" in said[2]
    assert framework.ran() == [BUILD]
    assert framework.outcomes()[-1] == ("failed", 2)


@each
def test_a_person_s_rejection_is_no_failure(framework: Framework) -> None:
    """The framework's own approval refuses the call: recorded as that, once, and never spoken of."""
    framework.session(BUILD, mode="rejected")
    assert framework.ran() == []
    assert framework.outcomes() == [("rejected", None)]
    assert "projectmem" not in "".join(framework.session(BUILD))


@each
def test_off_is_off(framework: Framework) -> None:
    """PROJECTMEM_GATE=off: nothing is asked, nothing recorded."""
    framework.costly()
    count = len(framework.hooked.events())
    assert "projectmem" not in "".join(framework.session(BUILD, env={"PROJECTMEM_GATE": "off"}))
    assert len(framework.hooked.events()) == count


@each
def test_a_gate_that_fails_lets_the_call_go_on_and_says_so(framework: Framework) -> None:
    """Loudly: a warning of the logger, which is on stderr where nobody has configured it."""
    framework.costly()
    folder = Path(framework.hooked.home) / "projections"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("no folder")
    said = framework.session(BUILD)
    assert "make: ***" in said[-1]
    assert "projectmem: the gate failed" in framework.stderr
    assert framework.ran() == [BUILD]


def test_importing_projectmem_imports_no_framework() -> None:
    """Nor anything that only the extras bring."""
    code = "import projectmem, projectmem.integrations, sys; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    foreign = {"langchain", "langgraph", "agents", "openai", "claude_agent_sdk", "pydantic_ai", "google", "agent_framework"}
    assert "projectmem" in loaded
    assert not loaded & foreign
