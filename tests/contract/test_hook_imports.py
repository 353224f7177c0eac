"""The hook's import budget: each event, played in a bare interpreter as registered, loads only what is on the allow-list."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from projectmem.setup import trial_payloads
from projectmem.setup.command import interpreter, package_folders
from tests.patience import PATIENCE

OURS = ("projectmem", "projectmem_gate", "projectmem_logs", "projectmem_projections", "tree_sitter", "tree_sitter_bash")
# Of the standard library, besides what the bare interpreter has. `import json` alone, the floor the hook is measured against,
# brings half of these.
ALLOWED = {
    "_collections_abc", "_stat", "genericpath", "os", "os.path", "posixpath", "stat", "time", "__future__",
    "_collections", "_functools", "_json", "_operator", "_sre", "collections", "collections.abc", "copyreg", "enum", "functools",
    "itertools", "json", "json.decoder", "json.encoder", "json.scanner", "keyword", "operator", "re", "re._casefix",
    "re._compiler", "re._constants", "re._parser", "reprlib", "types",
    "_sha2", "_sha256", "_sqlite3", "_struct", "binascii", "errno", "fcntl", "math", "mmap", "struct", "unicodedata", "zlib",
}  # fmt: skip
PROGRAM = """
import sys
bare = set(sys.modules)
sys.path += {folders!r}
from projectmem.hook import entry
entry.main([{harness!r}, {event!r}])
sys.stderr.write(" ".join(sorted(set(sys.modules) - bare)))
"""


def _loaded(event: str, payload: dict[str, Any], harness: str = "claude-code") -> set[str]:
    """The modules that one run of the hook loaded."""
    program = PROGRAM.format(folders=package_folders(), event=event, harness=harness)
    done = subprocess.run(
        [interpreter(), "-I", "-S", "-c", program],
        input=json.dumps(payload).encode(),
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    return set(done.stderr.decode().split())


def _foreign(loaded: set[str]) -> set[str]:
    return {name for name in loaded if name.split(".")[0] not in OURS} - ALLOWED


@pytest.mark.parametrize(
    "event", ["PreToolUse", "PostToolUseFailure", "PostToolBatch", "SessionStart", "UserPromptSubmit", "SessionEnd"]
)
def test_an_event_loads_only_what_is_allowed(hooked: Any, event: str) -> None:
    """With a failure on record, so that the slow path of each event is the one that runs."""
    error = "Exit code 2\nerror: cannot find module\nnpm error code 2"
    hooked.fails(hooked.call("npm run build"), error)
    call = hooked.call("npm run build")
    fields: dict[str, dict[str, Any]] = {
        "PreToolUse": call,
        "PostToolUseFailure": {**call, "error": error, "is_interrupt": False, "duration_ms": 10},
        "PostToolBatch": {"tool_calls": [{**call, "tool_response": error}]},
        "SessionStart": {"source": "startup"},
        "UserPromptSubmit": {"prompt": "why does npm run build fail?"},
        "SessionEnd": {"reason": "other"},
    }
    loaded = _loaded(event, hooked.payload(event, "two", **fields[event]))
    assert "projectmem.hook.pipeline" in loaded, "the event did not reach the pipeline"
    assert not _foreign(loaded)


def test_a_call_that_nothing_on_record_resembles_loads_next_to_nothing(hooked: Any) -> None:
    """No parser, no regular expressions, no JSON module, nothing of the gate's judgement."""
    hooked.fails(hooked.call("npm run build"), "Exit code 2\nnpm error code 2")
    loaded = _loaded("PreToolUse", hooked.payload("PreToolUse", "two", **hooked.call("ls -la docs")))
    assert not _foreign(loaded)
    heavy = {"json", "re", "sqlite3", "projectmem_gate.decide", "projectmem_gate.shell", "tree_sitter", "enum"}
    assert not loaded & heavy


def test_the_off_switch_costs_no_more_than_the_interpreter(hooked: Any) -> None:
    """`PROJECTMEM_GATE=off` is read before anything of the pipeline is loaded."""
    program = PROGRAM.format(folders=package_folders(), event="PreToolUse", harness="claude-code")
    done = subprocess.run(
        [interpreter(), "-I", "-S", "-c", program],
        input=b"{}",
        capture_output=True,
        check=True,
        timeout=PATIENCE,
        env={"PROJECTMEM_GATE": "off"},
    )
    loaded = set(done.stderr.decode().split())
    assert not _foreign(loaded)
    ours = {name for name in loaded if name.startswith("projectmem")}
    assert ours == {"projectmem", "projectmem.hook", "projectmem.hook.entry", "projectmem.place"}


@pytest.mark.parametrize("harness", [name for name in trial_payloads.SCRIPTS if name != "claude-code"])
def test_every_event_of_every_harness_loads_only_what_is_allowed(hooked: Any, harness: str) -> None:
    """The session that doctor plays: a failure, then a second session that is about to repeat it."""
    for step in trial_payloads.script(harness, str(hooked.root)):
        loaded = _loaded(step.event, step.payload, harness)
        assert "projectmem.hook.pipeline" in loaded, "the event did not reach the pipeline"
        assert not _foreign(loaded), step.event
    assert hooked.events("action.proposed"), "the slow path must have run"
