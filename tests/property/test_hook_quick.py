"""The quick question never hides a record: whatever the gate would find for an input, the filter before it lets through.

End to end: failures are recorded by the hook itself (redaction included), and each input is asked about twice, once through
the filter over its raw words and once through identity, snapshot and fold. Where the second finds a record, the first must
not have said that nothing can object.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from projectmem_gate.model import Session
from projectmem_gate.policy import DEFAULT
from projectmem_logs.home import init_home
from projectmem_projections.quick import nothing_objects
from projectmem_projections.snapshot import Snapshot

from projectmem.hook.entry import respond
from projectmem.hook.judge import Unchanged, assess
from projectmem.hook.spelling import input_words
from projectmem.hook.state import identified
from projectmem.place import find, locate

VECTORS = Path(__file__).resolve().parents[2] / "gate" / "vectors" / "equivalent.jsonl"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5"
Input = dict[str, Any]


class Project:
    """One project whose log grows from example to example, so that ever more records may be missed."""

    def __init__(self, folder: str) -> None:
        self.root, self.now, self.calls = folder, time.time_ns() // 1000 - 3_600_000_000, 0
        subprocess.run(["git", "init", "-q", folder], check=True)
        located = locate(folder, {})
        assert located is not None
        init_home(located.home, self.now)
        found = find(folder, {})
        assert found is not None
        self.place = found
        self.snapshot = f"{found.home}/projections/gate.sqlite"
        Path(folder, "src").mkdir()
        Path(folder, "src", "app.py").touch()
        Path(folder, "handbook.md").symlink_to("src/app.py")

    def fail(self, tool: str, given_input: Any, cwd: str = "") -> None:
        """Record a failure of the call, as the client tells of it."""
        self.calls += 1
        self.now += 1_000_000
        fields: dict[str, Any] = {"session_id": "one", "cwd": cwd or self.root, "hook_event_name": "PostToolUseFailure"}
        fields |= {
            "tool_name": tool,
            "tool_input": given_input,
            "tool_use_id": f"t{self.calls}",
            "error": "Exit code 3\nfatal: no",
            "duration_ms": 9,
        }
        respond(["claude-code", "PostToolUseFailure"], json.dumps(fields).encode(), self.now)

    def missed(self, tool: str, given_input: Any, cwd: str = "") -> bool:
        """Whether the gate has a record of the input that the filter hides. Also of what JSON makes of it on the way."""
        given_input = json.loads(json.dumps(given_input))
        call: Any = {"tool": tool, "input": given_input, "cwd": cwd or self.root, "harness": "claude-code"}
        words = input_words(call, self.root)
        if not nothing_objects(self.snapshot, self.place.home, words, "two", "", self.now):
            return False
        with Snapshot(self.snapshot) as state:
            action = identified(self.place, call, state.moves())
            return bool(assess(state, action, Session("two", harness="claude-code"), Unchanged(), DEFAULT, self.now)[2])

    def forget_wordless(self) -> None:
        """Of a failure without words every input may be one: while one is on record the filter says nothing about others."""
        with Snapshot(self.snapshot) as state:
            for table in ("history", "hint"):
                state._db.execute(f"DELETE FROM {table} WHERE w1 = ''")


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    """Outside pytest's own folders: their names hold words."""
    with tempfile.TemporaryDirectory(prefix="pm") as folder:
        yield Project(str(Path(folder).resolve()))


def _otherwise(word: str) -> str:
    return "".join(f"'{c}'" if c != "'" else '"\'"' for c in word) or "''"


def _escaped(word: str) -> str:
    return "".join(f"\\{c}" if c.isalnum() else shlex.quote(c) for c in word) or "''"


_PROGRAM = st.sampled_from(
    ["npm", "git", "frob", "pytest", "docker", "go", "make", "cargo", "python3", "./run.sh", "kubectl", "uv run pytest", "curl",
     "w", "7z", "./9", "./\u00e9.sh", "./e\u0301.sh", "R", "python3 -m a", "./x\u00e9/\u212a.go"]
)  # fmt: skip
_WORDS = """src/a.py ./b.py --flag -x --name=value *.py $HOME ~/x a\\b é ÀB run build install -m push origin test -c
password=hunter2hunter2 https://u:s3cretpass@example.com/a.git API_KEY=abcdef123456789""".split()
_MORE = ["", "a b", "it's", 'say "x"', "x" * 70, SECRET, f"--token={SECRET}", f"Authorization: Bearer {SECRET}"]
_ANY_WORD = st.text(st.sampled_from("abcXYZ019._-+:@%,=^"), min_size=1, max_size=8)
_ARG = st.sampled_from(_WORDS + _MORE) | _ANY_WORD
_HEAD = st.sampled_from(
    ["", "cd web && ", "NO_COLOR=1 ", "time ", "X=1 ", "uv run ", "sudo ", "env ", "nohup ", "timeout 5 ", "true; ", "ls && ",
     "export A=b; ", f"TOKEN={SECRET} ", "npx ", "bash -lc "]
)  # fmt: skip
_TAIL = st.sampled_from(
    [
        "",
        " | tail -20",
        " 2>&1",
        " > /tmp/out 2>&1",
        "; echo done",
        " || true",
        " <<'E'\nbody x\nE",
        " <<< word",
        " && ls",
        " &",
        " # why",
    ]
)
_TEXT = st.sampled_from(["x = 1", "def f():\n    pass\n", "", "café", f"key = '{SECRET}'", "a\tb", "'quoted'", '"q"', "\\n"])
_PATH = st.sampled_from(
    ["src/app.py", "./src/app.py", "README", "a b.txt", "é.py", "e\u0301.py", "src/../x.ts", ".env", "b", "\u212a/\u00e9"]
)


@st.composite
def _spellings(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Calls that may be one action: the first is recorded, all are asked about."""
    kind = draw(st.sampled_from(["sh", "sh", "sh", "edit", "write", "mcp", "fetch", "patch"]))
    if kind == "sh":
        words = draw(st.lists(_ARG, max_size=5))
        program, head, tail = draw(_PROGRAM), draw(_HEAD), draw(_TAIL)
        found: list[tuple[str, Any]] = []
        for quote in draw(st.permutations([shlex.quote, _otherwise, _escaped])):
            command = " ".join([program, *map(quote, words)])
            command = head + (shlex.quote(command) if head.startswith("bash") else command)
            found += [("Bash", {"command": command + tail}), ("Bash", {"command": command, "description": "d"})]
        return found
    path, one, two = draw(_PATH), draw(_TEXT), draw(_TEXT)
    if kind == "edit":
        edit = {"old_string": one, "new_string": two}
        found = [("Edit", {"file_path": path, **edit}), ("MultiEdit", {"file_path": f"./{path}", "edits": [edit]})]
        return [*found, ("Edit", {"file_path": "handbook.md", **edit})]
    if kind == "write":
        return [("Write", {"file_path": path, "content": one}), ("Write", {"content": one, "file_path": f"src/../{path}"})]
    if kind == "fetch":
        url = draw(
            st.sampled_from(["https://example.com/a?b=1", "http://EXAMPLE.com:80/", "https://user:pa55word99@h.example/x"])
        )
        return [("WebFetch", {"url": url, "prompt": one}), ("WebFetch", {"url": url.lower(), "prompt": two})]
    if kind == "mcp":
        args = draw(
            st.dictionaries(
                st.sampled_from(["query", "token", "n", "password", "q-\u00e9"]), _TEXT | st.integers() | st.just(SECRET)
            )
        )
        return [("mcp__db__run", args), ("mcp__db__run", dict(reversed(args.items())))]
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{one}\n+{two}\n*** End Patch"
    return [("apply_patch", {"input": patch}), ("Bash", {"command": f"apply_patch <<'EOF'\n{patch}\nEOF"})]


@given(spellings=_spellings())
@example(spellings=[("Bash", {"command": f"curl -H 'Authorization: Bearer {SECRET}' x"})])
@example(spellings=[("Bash", {"command": f"deploy {SECRET}"})])
@example(spellings=[("mcp__db__run", {"password": "correcthorsebattery"})])
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_the_filter_never_hides_a_record(project: Project, spellings: list[tuple[str, Any]]) -> None:
    """Whatever was recorded, however it is spelled the next time."""
    tool, given_input = spellings[0]
    project.fail(tool, given_input)
    for tool, given_input in spellings:
        assert not project.missed(tool, given_input), (tool, given_input)
    project.forget_wordless()


def test_no_published_spelling_is_hidden(project: Project) -> None:
    """Every pair of the published vectors of identity, both ways."""
    pairs = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
    assert len(pairs) > 100
    for pair in pairs:
        for one, two in ((pair["a"], pair["b"]), (pair["b"], pair["a"])):
            folders = [side.get("cwd", "/srv/acme").replace("/srv/acme", project.root) for side in (one, two)]
            inputs = [json.loads(json.dumps(side["input"]).replace("/srv/acme", project.root)) for side in (one, two)]
            project.fail(one["tool"], inputs[0], folders[0])
            assert not project.missed(two["tool"], inputs[1], folders[1]), pair
            project.forget_wordless()
