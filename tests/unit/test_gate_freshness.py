"""What would make another try worth while, class by class, as gate/README.md has it in its table."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_gate.freshness import judge
from projectmem_gate.history import Record
from projectmem_gate.odds import estimate, prior

NOW = 10**15
MINUTE = 60_000_000
SAME = {"head": "same", "deps": "same", "files": "same", "changes": []}


def record(cls: str, text: str = "npm run build", sig: str = "Error: x", **rest: Any) -> Record:
    """A failure a minute ago."""
    known = {"text": text, "family": " ".join(text.split()[:2]), "sig": sig, "excerpt": sig, "session": "s1"}
    return Record("k", "id", NOW - MINUTE, cls=cls, **(known | rest))


def after(rec: Record, kind: str, subject: str, **facts: Any) -> str:
    """The state after one change."""
    return judge(rec, SAME | {"changes": [[kind, subject, NOW - 1]]} | facts, NOW, session="s1")[0]


GO = ("go test ./...", "--- FAIL: TestA")
TABLE = [
    # class, command, error, change -> state
    ("test", *GO, ("edit", "a.go"), "changed"),
    ("test", *GO, ("edit", "README.md"), "same"),
    ("test", "go test ./...", "open README.md: no such file", ("edit", "README.md"), "changed"),
    ("build", "npm run lint", "x", ("edit", "README.md"), "changed"),  # a linter may read it
    ("test", *GO, ("edit", "/tmp/notes.py"), "same"),
    ("runtime", "python /tmp/x.py", "KeyError", ("edit", "/tmp/x.py"), "changed"),
    ("test", "go test ./...  # in /tmp/y", "FAIL", ("edit", "/tmp/y/pkg/m.go"), "changed"),  # it works there
    ("test", "go test ./...  # in /tmp/y", "FAIL", ("edit", "/tmp/yy/m.go"), "same"),
    ("test", "go test ./...  # in /tmp", "FAIL", ("edit", "/tmp/yy/m.go"), "same"),
    ("test", *GO, ("read", "a.go"), "same"),
    ("test", *GO, ("git", "commit"), "same"),
    ("test", *GO, ("build", "go build"), "same"),
    ("runtime", "./app serve", "panic: x", ("build", "go build"), "changed"),
    ("test", *GO, ("checkout", ""), "changed"),
    ("test", *GO, ("any", "make"), "changed"),
    ("test", *GO, ("service", "db"), "changed"),
    ("test", *GO, ("install", "go"), "changed"),
    ("runtime", "git rebase --continue", "CONFLICT (content)", ("git", "add"), "changed"),
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("edit", "src/app.py"), "same"),
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("install", "pip"), "changed"),
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("env", "PATH"), "changed"),
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("any", "python"), "same"),
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("any", "./setup.sh"), "changed"),
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("edit", "pyproject.toml"), "same"),  # installs nothing
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("edit", "mise.toml"), "changed"),
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("checkout", ""), "same"),
    ("command-not-found", "npm run lint", "sh: eslint: command not found", ("checkout", ""), "changed"),
    ("command-not-found", "npm run lint", "sh: eslint: command not found", ("edit", "package.json"), "changed"),
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("edit", "/home/u/.zshrc"), "changed"),
    ("command-not-found", "pytest -q", "bash: pytest: command not found", ("edit", "Dockerfile"), "same"),
    ("command-not-found", "./app x", "zsh: no such file or directory: ./app", ("build", "go build"), "changed"),
    ("missing-dependency", "pytest -q", "ModuleNotFoundError: No module named 'requests'", ("edit", "src/app.py"), "same"),
    ("missing-dependency", "pytest -q", "ModuleNotFoundError: No module named 'shop.cart'", ("edit", "shop/cart.py"), "changed"),
    ("missing-dependency", "pytest -q", "No module named 'x' in test_app.py", ("edit", "tests/test_app.py"), "changed"),
    ("missing-dependency", "npm test", "Cannot find module 'left-pad'", ("install", "npm"), "changed"),
    # packages come from their own ecosystem, or from the system's manager
    ("missing-dependency", "pytest -q", "ModuleNotFoundError: No module named 'requests'", ("install", "npm"), "same"),
    ("missing-dependency", "pytest -q", "ModuleNotFoundError: No module named 'requests'", ("install", "uv"), "changed"),
    ("missing-dependency", "pytest -q", "ModuleNotFoundError: No module named 'requests'", ("install", "apt-get"), "changed"),
    ("missing-dependency", "npm test", "Error: Cannot find module 'left-pad'", ("install", "pip"), "same"),
    ("missing-dependency", "npm test", "Error: Cannot find module 'left-pad'", ("install", "pnpm"), "changed"),
    ("missing-dependency", "go test ./...", "no required module provides package x.org/y", ("install", "npm"), "same"),
    ("missing-dependency", "make", "cannot open shared object file: libx.so", ("install", "npm"), "changed"),
    # compilers read their own language
    ("build", "go build ./...", "a.go:1:2: undefined: x", ("edit", "web/app.tsx"), "same"),
    ("build", "go build ./...", "a.go:1:2: undefined: x", ("edit", "b.go"), "changed"),
    ("build", "go build ./...", "a.go:1:2: undefined: x", ("edit", "b_test.go"), "same"),
    ("build", "go vet ./...", "a.go:1:2: undefined: x", ("edit", "b_test.go"), "changed"),
    ("build", "go build ./...", "pattern index.html: no matching files found", ("edit", "web/index.html"), "changed"),
    ("build", "tsc --noEmit", "a.ts(1,2): error TS2304", ("edit", "api/main.py"), "same"),
    ("build", "tsc --noEmit", "a.ts(1,2): error TS2304", ("edit", "tsconfig.json"), "changed"),
    ("build", "npm run build", "a.ts(1,2): error TS2304", ("edit", "api/main.py"), "changed"),  # a task may read anything
    ("test", *GO, ("edit", "testdata/a.json"), "changed"),
    # an address that is not there is in no file of the tree
    ("runtime", "git fetch origin", "fatal: repository 'https://x/y.git' not found", ("edit", "a.go"), "same"),
    ("runtime", "git fetch origin", "fatal: repository 'https://x/y.git' not found", ("git", "commit"), "same"),
    ("runtime", "git fetch origin", "fatal: repository 'https://x/y.git' not found", ("git", "remote"), "changed"),
    ("usage", "git push up", "fatal: 'up' does not appear to be a git repository", ("any", "make"), "same"),
    ("usage", "git push up", "fatal: 'up' does not appear to be a git repository", ("login", "gh"), "changed"),
    # a harness's own tools are not built here
    ("usage", 'Skill {"skill":"commit"}', "Unknown skill: commit", ("edit", "src/a.ts"), "same"),
    ("usage", 'Skill {"skill":"commit"}', "Unknown skill: commit", ("edit", ".claude/skills/commit/SKILL.md"), "changed"),
    ("usage", "Read a.go {}", "File content exceeds maximum allowed tokens", ("edit", "a.go"), "same"),
    # running a program again, or only compiling, makes neither an option nor a source
    ("usage", "go run ./cmd/app x --y", "unexpected arguments: --y", ("any", "go run"), "same"),
    ("usage", "go run ./cmd/app x --y", "unexpected arguments: --y", ("edit", "cmd/app/main.go"), "changed"),
    ("usage", "./tool gen --y", "unknown flag: --y", ("any", "python"), "changed"),
    ("auth", "gh pr list", "gh auth login", ("edit", "src/a.py"), "same"),
    ("auth", "gh pr list", "gh auth login", ("login", "gh"), "changed"),
    ("auth", "terraform plan", "No valid credential sources", ("edit", "main.tf"), "changed"),
    ("auth", "./deploy.sh", "Permission denied", ("any", "chmod"), "changed"),
    ("usage", "git push --froce", "unknown option", ("edit", "src/a.py"), "same"),
    ("usage", "git push --froce", "unknown option", ("install", "npm"), "same"),
    ("usage", "git psuh", "git: 'psuh' is not a git command. See 'git --help'.", ("git", "commit"), "same"),
    ("usage", "git log --onelne", "fatal: unrecognized argument: --onelne", ("git", "add"), "same"),
    ("usage", "git psuh", "git: 'psuh' is not a git command. See 'git --help'.", ("git", "config"), "changed"),  # an alias
    ("usage", "git checkout x", "error: pathspec 'x' did not match any file(s) known to git", ("git", "branch"), "changed"),
    ("usage", "rtk bun run test", "unrecognized subcommand 'bun'", ("install", "brew"), "changed"),
    ("usage", "npm run linr", "Missing script", ("edit", "package.json"), "changed"),
    ("usage", "npm run linr", "Missing script", ("edit", "src/a.ts"), "same"),
    ("usage", "./tool --new", "unknown flag: --new", ("edit", "cmd/flags.go"), "changed"),
    ("usage", "mycli --new", "unknown flag: --new", ("edit", "cmd/flags.go"), "changed"),
    ("usage", "python run.py --new", "unrecognized arguments: --new", ("edit", "options.py"), "changed"),
    ("usage", "cat out/x.json", "cat: out/x.json: No such file or directory", ("edit", "out/x.json"), "changed"),
    ("usage", "cat out/x.json", "cat: out/x.json: No such file or directory", ("edit", "src/a.py"), "same"),
    ("usage", "cat out/x.json", "cat: out/x.json: No such file or directory", ("any", "make"), "changed"),
    ("lock", "git commit -m x", "index.lock: File exists", ("edit", ".git/index.lock"), "changed"),
    ("lock", "npm run dev", "EADDRINUSE", ("service", "kill"), "changed"),
    ("lock", "npm run dev", "EADDRINUSE", ("edit", "src/a.py"), "same"),
    ("network", "git fetch", "Could not resolve host", ("edit", "src/a.py"), "same"),
    ("network", "curl localhost", "Connection refused", ("service", "db"), "changed"),
    ("protected-resource", "git push", "GH006", ("edit", "src/a.py"), "same"),
    ("protected-resource", "git push", "GH006", ("checkout", ""), "changed"),
    ("timeout", "npm test", "timed out", ("edit", "src/a.ts"), "changed"),
    ("resource", "npm run build", "heap out of memory", ("any", "make"), "changed"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "text", "sig", "change", "state"), TABLE)
def test_changes_by_class(cls: str, text: str, sig: str, change: tuple[str, str], state: str) -> None:
    """One change each."""
    assert after(record(cls, text, sig), *change) == state


NOT_FOUND = "String to replace not found in file."
NOT_READ = "File has not been read yet. Read it first before writing to it."
MODIFIED = "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."


@pytest.mark.parametrize(
    ("sig", "change", "state"),
    [
        (NOT_FOUND, ("read", "a.py"), "same"),  # agents read and fail again
        (NOT_FOUND, ("edit", "a.py"), "changed"),
        (NOT_FOUND, ("edit", "b.py"), "same"),
        (NOT_FOUND, ("checkout", ""), "changed"),
        (NOT_READ, ("read", "a.py"), "changed"),
        (NOT_READ, ("read", "b.py"), "same"),
        (MODIFIED, ("read", "a.py"), "changed"),
    ],
)
def test_edits(sig: str, change: tuple[str, str], state: str) -> None:
    """Text not found: the content must change. Not read, or modified since: a read is enough."""
    assert after(record("edit-mismatch", "edit a.py", sig, paths=["a.py"]), *change) == state


def test_reading_is_each_sessions_own() -> None:
    """That another session had not read the file says nothing about this one."""
    rec = record("edit-mismatch", "edit a.py", NOT_READ, paths=["a.py"])
    assert judge(rec, SAME, NOW, session="s2")[0] == "changed"
    assert judge(rec, SAME, NOW, session="s1")[0] == "same"


@pytest.mark.parametrize(
    ("cls", "facts", "state"),
    [
        ("build", {"head": "changed"}, "changed"),
        ("build", {"deps": "changed"}, "changed"),
        ("build", {"files": "changed", "changed_files": ["src/a.ts"]}, "changed"),
        ("build", {"head": "unknown"}, "unknown"),
        ("build", {"env": "changed"}, "changed"),
        ("build", {"tools": "changed"}, "changed"),
        ("command-not-found", {"head": "changed"}, "same"),  # a commit installs nothing
        ("command-not-found", {"deps": "changed"}, "changed"),
        ("usage", {"head": "changed"}, "same"),
        ("usage", {"tools": "changed"}, "changed"),
        ("usage", {"head": "unknown", "deps": "unknown"}, "same"),
        ("auth", {"head": "changed", "deps": "changed"}, "same"),
        ("edit-mismatch", {"head": "changed", "deps": "changed"}, "same"),
        ("edit-mismatch", {"files": "changed"}, "changed"),
        ("edit-mismatch", {"files": "unknown"}, "unknown"),
        ("network", {"head": "unknown", "deps": "unknown", "files": "unknown"}, "same"),
        ("build", {"here": "elsewhere"}, "same"),  # another worktree, the files involved are the same
        ("build", {"here": "elsewhere", "files": "unknown"}, "unknown"),
    ],
)
def test_facts_by_class(cls: str, facts: dict[str, Any], state: str) -> None:
    """People's edits, pulls and installs arrive as facts; a failure of a `git` command needs none of the sources."""
    assert judge(record(cls, "git push" if cls == "usage" else "npm run build"), SAME | facts, NOW)[0] == state


def test_nothing_known_and_nothing_well_formed() -> None:
    """No facts: unknown. Malformed changes are left out, and changes before the failure do not count."""
    assert judge(record("build"), None, NOW)[0] == "unknown"
    rows = [None, [], ["edit"], ["edit", "a.py", "soon"], ["edit", "a.py", NOW - 2 * MINUTE]]
    assert judge(record("build"), SAME | {"changes": rows}, NOW)[0] == "same"
    assert judge(record("build"), {}, NOW)[0] == "unknown"


def test_odds() -> None:
    """Younger, unchanged and confirmed failures are likelier; the figures stay within bounds."""
    assert prior("build", "same", 0) > prior("build", "same", 10**12) > prior("build", "unknown", 10**12) > 0
    rec = record("build")
    plain = estimate(rec, "same", NOW, identical=1)
    assert plain < estimate(rec, "same", NOW, identical=4) <= 1000
    assert estimate(record("build", by=[("a", "", ""), ("b", "", "")]), "same", NOW, identical=1) > plain


def test_a_missing_path_that_is_still_missing_outweighs_what_changed_besides() -> None:
    """Only where the caller looked, and only for the path that the error speaks of."""
    rec = record("usage", "ls web/dist", "ls: dist: No such file or directory", paths=("web/dist",))
    assert after(rec, "any", "make") == "changed"
    assert after(rec, "any", "make", absent=["web/dist"]) == "same"
    assert after(rec, "checkout", "", absent=["web/dist"]) == "same"
    assert after(rec, "any", "make", absent=["out.log", 7]) == "changed"
    assert (
        after(record("usage", "./tool x", "x: No such file or directory", paths=("x",)), "edit", "a.py", absent=["x"])
        == "changed"
    )
    source = record("usage", "Read a/b.go", "File does not exist.", paths=("a/b.go",))
    assert after(source, "build", "go build") == "same"
    assert after(source, "build", "go generate") == "changed"
    assert after(rec, "build", "go build") == "changed"  # it may be what is built


def test_what_is_each_sessions_own_is_no_matter_to_another() -> None:
    """Tasks of the harness."""
    rec = record("usage", 'TaskUpdate {"taskId":"2"}', "Task not found", family="taskupdate")
    assert judge(rec, SAME, NOW, session="s1")[0] == "same"
    assert judge(rec, SAME, NOW, session="s2")[0] == "changed"
