"""What doctor says of trust is what the real clients do: hooks that they pass over, they pass over without a word."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from projectmem import doctor
from projectmem.setup import trust
from projectmem.setup.harnesses import HARNESSES

sys.path.insert(0, str(Path(__file__).parent))
from shop import SHELL, setup

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("client")]

KEPT = {"gemini": (".gemini/trustedFolders.json", "TRUST_FOLDER"), "copilot": (".copilot/config.json", "")}


@pytest.fixture
def asking(world_of: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A world of this client in which nothing is trusted, with the hooks in the project."""

    def made(name: str) -> Any:
        world = world_of(name)
        monkeypatch.setenv("HOME", str(world.own))
        for variable in ("CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_CLI_TRUSTED_FOLDERS_PATH"):
            monkeypatch.delenv(variable, raising=False)
        setup(world)
        return world

    return made


def _told(world: Any) -> list[str]:
    checks = doctor.examine(str(world.repo), now=time.time_ns() // 1000, fire=False)
    return [check.status for check in checks if check.name == "trust"]


@pytest.mark.parametrize("name", KEPT)
def test_a_folder_that_is_not_trusted_has_no_hooks(asking: Any, name: str) -> None:
    world = asking(name)
    world.session(SHELL[name]("cat missing.txt"), asks=True)
    assert world.events("action.finished") == []
    assert _told(world) == [doctor.NOTE]

    relative, level = KEPT[name]
    kept = {str(world.repo): level} if level else {"trusted_folders": [str(world.repo)]}
    (world.own / relative).write_text(json.dumps(kept))
    assert _told(world) == []
    world.session(SHELL[name]("cat missing.txt"), asks=True)
    assert len(world.events("action.finished")) == 1


def test_codex_runs_a_hook_that_is_trusted_as_it_is_now_and_no_other(asking: Any) -> None:
    world = asking("codex")
    call = SHELL["codex"]("cat missing.txt")
    world.session(call, asks=True)
    assert world.events("action.finished") == []
    assert _told(world) == [doctor.NOTE]

    hooks = {key: digest for _, key, digest in trust._keys(world.repo / HARNESSES["codex"].project)}
    config = "".join(f"[hooks.state.{json.dumps(key)}]\ntrusted_hash = {json.dumps(digest)}\n" for key, digest in hooks.items())
    world.session(call, asks=True, config=config)
    assert len(world.events("action.finished")) == 1
    assert _told(world) == []

    settings = world.repo / HARNESSES["codex"].project
    settings.write_text(settings.read_text().replace("exec ", "exec  "))  # as an upgrade changes the command
    world.session(call, asks=True, config=config)
    assert len(world.events("action.finished")) == 1, "Codex passes over hooks that are not those that were trusted"
    assert _told(world) == [doctor.FAIL]
