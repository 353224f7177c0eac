"""The gate in real agent frameworks, each in a virtual environment of its own, driven by its own scripted model: the README's
example is what runs. Without the environments (PROJECTMEM_INTEGRATIONS, see install_frameworks.sh) these tests skip."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

REPO = Path(__file__).resolve().parents[2]
README = REPO / "projectmem" / "integrations" / "README.md"
DRIVERS = Path(__file__).with_name("frameworks")
SOURCES = [str(REPO / name) for name in ("", "logs", "gate", "projections")]
TITLES = {
    "langchain": "LangChain",
    "openai-agents": "OpenAI Agents SDK",
    "claude-agent-sdk": "Claude Agent SDK",
    "pydantic-ai": "pydantic-ai",
    "google-adk": "Google ADK",
    "agent-framework": "Microsoft Agent Framework",
}
NAMES = list(TITLES)
FAILS = "build:\n\t@echo x >> ran.txt; echo 'error: Missing environment variable VITE_API_URL'; exit 1\n"
WORKS = "build:\n\t@echo built\n"
BUILD = "make build"
ENV = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "LANG": "C.UTF-8"}
SAID = "projectmem: `make build` failed"


def _namespace() -> list[str]:
    """How to run a program with no network but loopback, [] where that is not possible here."""
    if sys.platform != "linux" or shutil.which("unshare") is None or shutil.which("ip") is None:
        return []
    enter = ["unshare", "-n", "bash", "-c", 'ip link set lo up 2>/dev/null; exec "$@"', "_"]
    return enter if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode == 0 else []


def _python(name: str) -> Path:
    folder = os.environ.get("PROJECTMEM_INTEGRATIONS")
    python = Path(folder) / name / "bin" / "python" if folder else None
    if python is None or not python.exists():
        pytest.skip(f"no {name}: set PROJECTMEM_INTEGRATIONS to a folder with {name}/bin/python (install_frameworks.sh)")
    return python


def _client() -> str:
    folder = os.environ.get("PROJECTMEM_CLIENTS")
    client = Path(folder) / "claude" / "node_modules" / ".bin" / "claude" if folder else None
    if client is None or not client.exists():
        pytest.skip("no client for the SDK: set PROJECTMEM_CLIENTS to a folder with claude/node_modules/.bin/claude")
    return str(client)


def _example(name: str) -> str:
    section = README.read_text(encoding="utf-8").partition(f"\n## {TITLES[name]}\n")[2].partition("\n## ")[0]
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return str(example)


class Framework:
    """A set up project whose agent runs in a framework."""

    def __init__(self, name: str, hooked: Any, folder: Path) -> None:
        self.name, self.hooked, self.folder, self.python = name, hooked, folder, _python(name)
        self.client = _client() if name == "claude-agent-sdk" else ""
        self.harness = "claude-code" if name == "claude-agent-sdk" else name
        hooked.now = time.time_ns() // 1000 - 60_000_000
        self.makefile(FAILS)

    @property
    def who(self) -> str:
        """Who failed, in the gate's words: the model where the framework names it, else the framework."""
        return "scripted" if self.name == "pydantic-ai" else self.harness

    def makefile(self, text: str) -> None:
        """What `make build` does from now on."""
        (self.hooked.root / "Makefile").write_text(text)

    def session(self, *steps: Any, mode: str = "") -> list[str]:
        """Play the example in a process of its own, with these calls of the model; what it was sent, for each request."""
        listed = [step if isinstance(step, list) else [step] for step in steps]
        given = {"example": _example(self.name), "steps": listed, "mode": mode, "client": self.client}
        path = self.folder / "spec.json"
        path.write_text(json.dumps(given))
        done = subprocess.run(
            [*_namespace(), str(self.python), "-B", str(DRIVERS / f"{self.name.replace('-', '_')}_driver.py"), str(path)],
            cwd=self.hooked.root,
            env={**ENV, "HOME": str(self.folder), "PYTHONPATH": os.pathsep.join([str(DRIVERS), *SOURCES])},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.hooked.settle()
        found: list[str] = json.loads(done.stdout)["inputs"]  # nothing else may be printed
        return found

    def ran(self) -> int:
        """How often the build was really run so far."""
        path = self.hooked.root / "ran.txt"
        return len(path.read_text().splitlines()) if path.exists() else 0

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
    """The main job: the text is in the model's next input, beside the tool's own; and the failure speaks in Claude Code too."""
    first = framework.session(BUILD)
    assert "VITE_API_URL" in first[-1]
    assert SAID not in "".join(first)
    ((outcome, code),) = framework.outcomes()
    assert (outcome, code) == ("failed", 2)
    (failed,) = framework.hooked.events("action.finished")
    assert (failed["actor"]["harness"], failed["actor"]["origin"]) == (framework.harness, "observed")
    assert failed["data"]["duration_ms"] is not None
    framework.hooked.now = time.time_ns() // 1000
    assert f"({framework.who})" in json.dumps(framework.hooked.before(framework.hooked.call("make  build"), "another"))
    second = framework.session(BUILD)
    assert SAID not in second[0].split("SessionStart")[0]
    assert f"({framework.who})" in second[-1].rpartition(SAID)[2][:40]
    framework.makefile(WORKS)
    assert SAID not in "".join(framework.session(BUILD))
    assert [outcome for outcome, _ in framework.outcomes()] == ["failed", "failed", "ok"]


@each
def test_what_failed_in_claude_code_is_refused_once_and_a_repeat_passes(framework: Framework) -> None:
    """The tool does not run the first time; the model reads why, and means it the second time. A repeat beside the first call
    is no repeat on purpose, however fast the framework is."""
    framework.costly()
    said = framework.session([BUILD, BUILD], BUILD)
    assert said[1].count("Refused once") == 2
    assert "make: ***" not in said[1]
    assert "make: ***" in said[2]
    assert framework.ran() == 1
    decisions = [event["data"]["decision"] for event in framework.hooked.events("action.proposed")]
    assert [decision["verdict"] for decision in decisions][-3:] == ["ask", "ask", "allow"]
    assert decisions[-1]["rule"] == "override"


@each
def test_parallel_calls_are_each_recorded(framework: Framework) -> None:
    """Six commands of one answer, whatever the framework runs at the same time."""
    framework.session([f"echo {n}" for n in range(5)] + [BUILD])
    told = [(outcome, code or 0) for outcome, code in framework.outcomes()]  # Claude Code tells no code of a success
    assert sorted(told) == [("failed", 2)] + [("ok", 0)] * 5
    assert not framework.hooked.log_lines()


@pytest.mark.parametrize("framework", ["langchain"], indirect=True)
def test_a_framework_s_other_door_is_served_alike(framework: Framework) -> None:
    """LangChain's agents can be awaited too."""
    framework.costly()
    said = framework.session(BUILD, BUILD, mode="async")
    assert "Refused once" in said[1]
    assert "make: ***" in said[2]
    assert framework.ran() == 1
    assert framework.outcomes()[-1] == ("failed", 2)


@pytest.mark.parametrize("framework", ["langchain"], indirect=True)
def test_a_call_that_is_cancelled_is_no_failure(framework: Framework) -> None:
    """The application gives the run up while the command runs."""
    framework.session("touch begun; until [ -e given-up ]; do sleep 0.05; done; false", mode="cancelled")
    assert framework.outcomes() == [("cancelled", None)]


@each
def test_a_tool_that_raises_has_failed(framework: Framework) -> None:
    """What it raised is on record, also where the framework keeps it from the model or ends the run; what the gate has to say is
    read where the run goes on."""
    if framework.name == "claude-agent-sdk":
        pytest.skip("its tools are the client's")
    framework.session(BUILD, mode="raises")
    (failed,) = framework.hooked.events("action.finished")
    assert (failed["data"]["outcome"], failed["data"]["exit_code"]) == ("failed", 2)
    assert "VITE_API_URL" in failed["data"]["signature"]
    said = framework.session(BUILD, mode="raises")
    assert [outcome for outcome, _ in framework.outcomes()] == ["failed", "failed"], framework.hooked.log_lines()
    if framework.name in ("openai-agents", "agent-framework"):
        assert SAID in said[-1]


@each
def test_a_person_s_rejection_is_no_failure(framework: Framework) -> None:
    """The framework's own approval refuses the call: recorded as that, once."""
    if framework.name == "claude-agent-sdk":  # a refusal in an application's words is told apart where it would clear a failure
        framework.costly()
        framework.session(BUILD, BUILD, mode="rejected")
        assert framework.ran() == 0
        assert [outcome for outcome, _ in framework.outcomes()] == ["failed", "rejected", "rejected"]
        return
    framework.session(BUILD, mode="rejected")
    assert framework.ran() == 0
    assert framework.outcomes() == [("rejected", None)]


def test_importing_projectmem_imports_no_framework() -> None:
    """Nor anything that only the extras bring."""
    code = "import projectmem, projectmem.integrations, sys; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    foreign = {"langchain", "langgraph", "agents", "openai", "claude_agent_sdk", "pydantic_ai", "google", "agent_framework"}
    assert "projectmem" in loaded
    assert not loaded & foreign
