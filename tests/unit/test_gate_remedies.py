"""What worked instead: pairs of a failed action and a later success of its family, and the install that came first."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_gate.history import Record
from projectmem_gate.remedies import families, is_remedy, pasted
from projectmem_projections.memory import MemoryState

from projectmem.hook.judge import Unchanged, gather


def failed(text: str, cls: str, sig: str = "") -> Record:
    return Record("a" * 32, "e-1", 1, cls=cls, sig=sig, text=text, family="x")


@pytest.mark.parametrize(
    ("text", "cls", "sig", "worked"),
    [
        ("rtk bun run test", "usage", "unrecognized subcommand 'bun'", "bun run test"),
        ("entire trail show 10 --json", "usage", "unknown flag: --json", "entire trail show 10"),
        ("gh pr diff 1556 -- docs/adr.md", "usage", "accepts at most 1 arg(s), received 2", "gh pr diff 1556"),
        ("gh pr diff --stat 104", "usage", "unknown flag: --stat", "gh pr diff --name-only 104"),
        ("python -m pytest tests/a.py", "missing-dependency", "No module named pytest", "pytest tests/a.py"),
        ("pytest tests/a.py", "missing-dependency", "No module named yaml", "uv run pytest tests/a.py"),
        ("python app.py", "runtime", "UnicodeEncodeError: 'ascii'", "PYTHONIOENCODING=utf-8 python app.py"),
        ("npm run build", "build", "heap out of memory", "NODE_OPTIONS=--max-old-space-size=8192 npm run build"),
        ("npm install", "runtime", "ERESOLVE could not resolve", "npm install --legacy-peer-deps"),
        ("bun run lint  # in frontend", "usage", 'Script not found "lint"', "bun run lint"),
        ("jest a.test.js", "test", "Jest worker ran out of memory", "jest --runInBand a.test.js"),
        ("edit a.py: return total(n) -> return n", "edit-mismatch", "not found", "edit a.py: return total(n) -> return n + 1"),
    ],
)
def test_the_same_work_another_way_is_a_remedy(text: str, cls: str, sig: str, worked: str) -> None:
    assert is_remedy(failed(text, cls, sig), worked)


@pytest.mark.parametrize(
    ("text", "cls", "sig", "worked"),
    [
        ("bun test src", "test", "Database connection failed", "bun test src/files.test.ts"),
        ("go test -run=TestA ./x", "test", "FAIL: TestA", "go test -run=TestB ./x"),
        ("go test -run=TestA ./x", "test", "FAIL: TestA", "go test ./x"),
        ("pytest tests/a.py", "test", "FAILED a.py::x", "pytest -k=y tests/a.py"),
        ("golangci-lint run --enable=revive", "build", "package-comments", "golangci-lint run"),
        ("ls gc.log", "usage", "No such file or directory", "ls wingman.lock"),
        ("git merge origin/x", "runtime", "CONFLICT", "git merge origin/main"),
        ("mise run test -- -v", "test", "FAIL", "mise run test"),
        ("entire-test sessions", "usage", 'Unknown command "sessions"', "entire-test --help"),
        ("harness.sh configure", "usage", "bad", "harness.sh stop-session"),
        ("npm test  # in web", "test", "1 failed", "npm test  # in api"),
        ("edit a.py: } -> // x", "edit-mismatch", "not found", "edit a.py: } -> // y"),
        ("edit a.py: return total(n) -> x", "edit-mismatch", "not found", "edit a.py: import itertools -> y"),
        ("python -c 'print(1)'", "runtime", "ValueError", "python -c 'print(2)'"),
    ],
)
def test_other_work_is_none(text: str, cls: str, sig: str, worked: str) -> None:
    assert not is_remedy(failed(text, cls, sig), worked)


def event(seq: int, key: str, family: str, text: str, outcome: str, effects: Any = (), at: int = 0) -> dict[str, Any]:
    part = {"key": key, "kind": "sh", "family": family, "text": text, "words": [], "paths": [], "effects": effects}
    bad = {"class": "missing-dependency", "signature": "No module named yaml"} if outcome == "failed" else {}
    data = {"call": "", "key": key, "text": text, "joins": [], "parts": [part], "failed_key": key if bad else "",
            "outcome": outcome, "turn": 0, **bad}  # fmt: skip
    actor = {"session": "s", "agent": "", "harness": "h", "model": "", "origin": "observed"}
    return {"id": f"e-{seq}", "stream": "s", "seq": seq, "at": at or seq, "kind": "action.finished", "actor": actor, "data": data}


def test_what_it_worked_after_before_is_found_by_id() -> None:
    """It failed, was installed, worked; in a new environment it fails the same way again."""
    from projectmem_gate import history

    run, pip = ("a" * 32, "pytest", "pytest"), ("b" * 32, "pip install", "pip install pyyaml")
    other = ("c" * 32, "pip install", "pip install rich")
    install = (("install", "pip"),)
    state = MemoryState()
    state.apply(
        [
            event(1, *run, "failed"),
            event(2, *pip, "ok", install),
            event(3, *run, "ok"),
            event(4, *other, "ok", install),
            event(5, *run, "failed"),
        ]
    )
    record = history.fold(run[0], state.entries([run[0]])[run[0]], 9)
    assert record is not None
    assert gather(state, record, Unchanged())["remedy"] == {"id": "e-2", "text": "pip install pyyaml", "how": "after"}


def test_only_installs_and_logins_have_families() -> None:
    assert "npm ci" in families("install", "npm") and "brew install" in families("install", "brew")
    assert "gh auth login" in families("login", "gh")
    assert families("edit", "a.py") == () and families("install", "") == ()


@pytest.mark.parametrize(
    ("text", "cwd", "line"),
    [
        ("npm run build  # in web", ".", "cd web && npm run build"),
        ("npm run build  # in web", "web", "npm run build"),
        ("npm run build  # in web", "web/src", "cd .. && npm run build"),
        ("npm run build", "web", "cd .. && npm run build"),
        ("npm run build", ".", "npm run build"),
        ("npm ci  # in web && npm run build  # in web", ".", "cd web && npm ci && npm run build"),
        ("npm ci && npm run build", ".", "npm ci && npm run build"),
        ("make  # in /opt/my lib", ".", "cd '/opt/my lib' && make"),
        # only a part ran there, or inside something else: as it is
        ("npm ci && npm run build  # in web", ".", "npm ci && npm run build  # in web"),
        ("npm ci  # in web && make  # in api", ".", "npm ci  # in web && make  # in api"),
        ("rm x  # in web, xargs", ".", "rm x  # in web, xargs"),
        ("make  # ssh host", ".", "make  # ssh host"),
        ("make  # in ?$DIR", ".", "make  # in ?$DIR"),
    ],
)
def test_a_remedy_can_be_pasted(text: str, cwd: str, line: str) -> None:
    """What worked instead is told as a line that does that work from where the caller stands."""
    assert pasted(text, cwd) == line
