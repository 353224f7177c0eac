"""Was it a failure, of which class, whose, and what is its signature? Tables over texts of our own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from projectmem_gate.model import CLASSES, Action, Outcome, Part
from projectmem_gate.outcome import judge
from projectmem_gate.signature import excerpt, signature

TRIVIAL = ("cd", "echo", "pwd", "export", "true", "sleep")


def shell(command: str) -> Action:
    """An action of the parts of `a && b ; c || d`: what identify() makes of simple commands."""
    words = command.split(" ")
    parts: list[list[str]] = [[]]
    joins: list[str] = []
    for word in words:
        if word in ("&&", "||", ";"):
            joins.append(word)
            parts.append([])
        else:
            parts[-1].append(word)
    made = tuple(Part(f"{i:032d}", "sh", " ".join(p[:2]), " ".join(p), trivial=p[0] in TRIVIAL) for i, p in enumerate(parts))
    return Action("Bash", "sh", ".", made[0].key if len(made) == 1 else "f" * 32, command, made, tuple(joins))


def tool(kind: str, name: str = "Edit") -> Action:
    """A call of a tool that is no shell."""
    part = Part("0" * 32, kind, f"{kind} src/app.py", f"{kind} src/app.py", paths=("src/app.py",))
    return Action(name, kind, ".", part.key, part.text, (part,))


def told(action: Action, exit_code: int | None, output: str, is_error: bool | None = None, **marks: Any) -> Outcome:
    """The outcome, with the harness's mark as it follows from the exit code where none is given."""
    if is_error is None and exit_code is not None:
        is_error = exit_code != 0
    return judge(action, exit_code=exit_code, output=output, is_error=is_error, **marks)


REFUSALS = [
    ("The user doesn't want to proceed with this tool use. STOP.", "rejected"),
    ("<tool_use_error>Sibling tool call errored</tool_use_error>", "cancelled"),
    ("<tool_use_error>Cancelled: parallel tool call Bash(x) errored</tool_use_error>", "cancelled"),
    ("[Request interrupted by user for tool use]", "interrupted"),
    ("Permission to use Bash with command x has been denied.", "rejected"),
    ("PreToolUse:Bash hook error: projectmem: `x` failed 3 min ago", "rejected"),
    ("Command blocked by PreToolUse hook: no. Command: x", "rejected"),
    ("aborted by user after 3.1s", "interrupted"),
    ("This command requires approval", "rejected"),
]


@pytest.mark.parametrize(("text", "outcome"), REFUSALS)
def test_refusals_are_not_failures(text: str, outcome: str) -> None:
    """What a person or the harness stopped did not fail; the same words printed by a program are just output."""
    assert told(shell("npm run build"), None, text, True).outcome == outcome
    assert told(shell("cat notes.txt"), 0, text).outcome == "ok"


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("rejected", "rejected"),
        ("denied", "rejected"),
        ("hook", "rejected"),
        ("interrupted", "interrupted"),
        ("cancelled", "cancelled"),
    ],
)
def test_marks_of_the_harness_win(kind: str, outcome: str) -> None:
    """Whatever the text and the code say."""
    assert told(shell("npm test"), 1, "npm error x", True, error_kind=kind).outcome == outcome


OK = [
    ("grep -rn x src", 1, ""),
    ("rg x", 1, ""),
    ("diff a b", 1, "1c1\n< a\n---\n> b\n"),
    ("test -f x", 1, ""),
    ("[ -f x ]", 1, ""),
    ("cmp a b", 1, "a b differ: byte 1, line 1"),
    ("which nothing", 1, "nothing not found"),
    ("command -v nothing", 1, ""),
    ("pgrep -f server", 1, ""),
    ("ls *.xyz", 2, ""),  # 2>/dev/null
    ("git rev-parse --verify -q x", 1, ""),
    ("pip show x", 1, "WARNING: Package(s) not found: x"),
    ("brew list x", 1, "Error: No such keg: /usr/local/Cellar/x"),
    ("dpkg -s x", 1, "dpkg-query: package 'x' is not installed and no information is available"),
    ("docker image inspect x", 1, "[]\nError: No such image: x"),
    ("kill -0 4242", 1, "bash: kill: (4242) - No such process"),
    ("tail -f x.log", 124, "a"),
    ("kubectl logs -f x", 124, ""),
    ("npm run dev", 124, "ready"),
    ("gh pr view --json number", 1, 'no pull requests found for branch "x"'),
    ("pytest -q ; cat ci.log", 0, "4 passed in 0.1s\nFAILED a.py::b - assert 1\n1 failed in 0.1s"),
    ("jq -e .x a.json", 1, "null"),
    ("jq -e .x a.json", 4, ""),
    ("git ls-files --error-unmatch a", 1, "error: pathspec 'a' did not match any file(s) known to git"),
    ("rg -l x ; ls  # xargs", 123, ""),
    ("rg -l x ; grep y  # xargs", 123, "a: x"),
    ("git diff --exit-code", 1, "diff --git a/x b/x\n+error: bad"),
    ("git grep -n x", 1, ""),
    ("cd src && grep x y", 1, ""),
    ("cat missing.txt", 1, ""),  # its complaint was thrown away: it was a question
    ("yes", 141, "y\ny\n"),  # | head
    ("cat build.log", 0, "npm ERR! code 1\nerror TS2304: no\nFAILED tests/test_x.py::test_a - E"),
    ("git log -5", 0, "abc fatal: the crash\nError: it"),
    ("grep -n error app.log", 0, "3:fatal: x\nTraceback (most recent call last)"),
    ("sed -n 1,9p notes.md", 0, "BUILD FAILED\nmake: *** [x] Error 1"),
    ("pytest -q", 0, "....\n4 passed, 2 xfailed in 0.10s"),
    ("pytest -q", 0, "tests/test_a.py ....  [100%]\n=== 4 passed, 0 failed in 0.10s ==="),
    ("go test ./...", 0, "ok  \tx/y\t0.1s\n?   \tx/z\t[no test files]"),
    ("npx jest", 0, "Tests:       0 failed, 12 passed, 12 total"),
    ("bun test", 0, " 12 pass\n 0 fail\nRan 12 tests"),
    ("eslint .", 0, "✖ 3 problems (0 errors, 3 warnings)"),
    ("python demo.py", 0,
     "Traceback (most recent call last):\n  File x\nValueError: caught\nrecovered, all good\ndone\nbye\nend"),
    ("gh pr checks 12", 8, "lint\tpending\t0\thttps://x"),
    ("conda run --name test grep x y", 1, ""),
    # the end of a traceback is told from words that look like one
    ("python x.py", 0, "ValueError: 3 times"),
    ("python x.py", 0, "    indented\nall good"),
    ("python x.py", 0, "found:\n    a\nValueError: bad"),
    ("cat x.log", 0, "    raise ValueError('bad')\nValueError: bad"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "output"), OK)
def test_not_a_failure(command: str, code: int, output: str) -> None:
    """Benign exits, words that are only quoted, summaries of nothing wrong."""
    assert told(shell(command), code, output) == Outcome("ok", code)


# command, exit code, output -> class, start of the signature, index of the culprit
FAILED = [
    ("pytest -q", 1, "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed in 0.02s", "test",
     "FAILED test_a.py::test_b", 0),
    ("pytest -q", 2, "ModuleNotFoundError: No module named 'requests'", "missing-dependency",
     "ModuleNotFoundError: No module", 0),
    ("pytest x.py", 127, "bash: line 1: pytest: command not found", "command-not-found", "bash: line <n>: pytest", 0),
    ("make docs", 2, "sphinx-build: command not found\nmake: *** [Makefile:20: docs] Error 127", "command-not-found",
     "sphinx-build", 0),
    ("cargo build", 101, "error[E0432]: unresolved import `crate::x`\n --> src/a.rs:3:5", "build",
     "error[E0432]: unresolved", 0),
    ("npm ci && npm run lint", 1, "npm error `npm ci` can only install packages in sync", "runtime", "npm error `npm ci`", 0),
    ("npm run build", 1, "Error: Missing environment variable API_URL\n    at vite.config.ts:12:11", "build",
     "Error: Missing env", 0),
    ("npx tsc --noEmit", 2, "src/a.ts(3,4): error TS2339: Property 'x' does not exist", "build", "a.ts(<n>): error TS2339", 0),
    ("go build ./...", 1, "# x/y\n./a.go:3:4: undefined: Foo", "build", "a.go:<n>: undefined: Foo", 0),
    ("go test ./...", 1, "--- FAIL: TestA (0.00s)\n    a_test.go:9: no\nFAIL\nFAIL\tx/y\t0.2s", "test",
     "--- FAIL: TestA (<t>)", 0),
    ("go test ./...", 1, "a.go:1:2: expected 'x'\nFAIL\tx/y [setup failed]", "build", "a.go:<n>: expected", 0),
    ("git push", 128, "fatal: The current branch x has no upstream branch.", "usage", "fatal: The current branch", 0),
    ("git fetch", 128, "fatal: unable to access 'https://x.org/': Could not resolve host: x.org", "network",
     "fatal: unable", 0),
    ("git commit -m x", 128, "fatal: Unable to create '/r/.git/index.lock': File exists.", "lock",
     "fatal: Unable to create", 0),
    ("git push", 1, "remote: error: GH006: Protected branch update failed", "protected-resource", "remote: error: GH006", 0),
    ("docker compose up -d", 1, "Error response from daemon: driver failed: port is already allocated", "lock",
     "Error response", 0),
    ("terraform plan", 1, "Error: No valid credential sources found", "auth", "Error: No valid", 0),
    ("python a.py", 1, "FileNotFoundError: [Errno 2] No such file or directory: 'data/in.csv'", "runtime",
     "FileNotFoundError:", 0),
    ("dpkg -i x.deb", 1, "dpkg: error: cannot access archive 'x.deb': No such file or directory", "usage", "dpkg: error", 0),
    ("kill 4242", 1, "bash: kill: (4242) - No such process", "runtime", "bash: kill", 0),
    ("docker inspect x", 1, "Cannot connect to the Docker daemon at unix:///x.sock", "network", "Cannot connect", 0),
    ("cargo build", 124, "", "timeout", "", 0),
    ("npm test", 124, "", "timeout", "", 0),
    ("curl -sf http://localhost:9/health", 7, "", "network", "", 0),
    ("node a.js", 1, "Error: getaddrinfo ENOTFOUND db.local", "network", "Error: getaddrinfo", 0),
    ("aws lambda invoke x", 254, "An error occurred (ResourceNotFoundException): Function not found", "runtime", "An error", 0),
    ("gh pr create", 4, "To get started, run: gh auth login\nAlternatively, populate the GH_TOKEN environment variable", "auth",
     "Alternatively,", 0),
    ("docker pull ghcr.io/x/y", 1, "denied: requested access to the resource is denied", "auth", "denied:", 0),
    ("./deploy.sh", 126, "bash: ./deploy.sh: Permission denied", "auth", "bash: deploy.sh: Permission", 0),
    ("npm run dev", 1, "Error: listen EADDRINUSE: address already in use :::3000", "lock", "Error: listen EADDRINUSE", 0),
    ("node app.js", 134, "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "resource",
     "FATAL", 0),
    ("rtk bun run test", 2, "error: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS]", "usage", "error: unrecognized", 0),
    ("npm run linr", 1, 'npm error Missing script: "linr"', "usage", "npm error Missing script", 0),
    ("ls nowhere", 2, "ls: cannot access 'nowhere': No such file or directory", "usage", "ls: cannot access", 0),
    ("python app.py", 1, 'Traceback (most recent call last):\n  File "app.py", line 3\nKeyError: \'x\'', "runtime",
     "KeyError: 'x'", 0),
    ("python read.py", 1, "Failed to read: Unrecognized line: 1 2", "runtime", "Failed to read", 0),
    ("python gone.py", 2, "python: can't open file '/r/gone.py': [Errno 2] No such file", "usage", "python: can't open", 0),
    ("bin/test sets", 1, "tests finished: 1 failed, 3 passed, in 0.4 seconds", "test", "tests finished: 1 failed", 0),
    ("timeout 5 pytest", 124, "....", "timeout", "timeout without", 0),
    ("pip install nope", 1, "ERROR: No matching distribution found for nope", "missing-dependency", "ERROR: No matching", 0),
    ("make all", 2, "a.c:1:10: fatal error: zlib.h: No such file or directory\nmake: *** [a.o] Error 1",
     "missing-dependency", "a.c:<n>", 0),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "output", "cls", "starts", "index"), FAILED)
def test_failures(command: str, code: int, output: str, cls: str, starts: str, index: int) -> None:
    """Class, signature and culprit of failures that the exit code shows; Claude's text prefix changes nothing."""
    got = told(shell(command), code, output)
    assert (got.outcome, got.cls, got.culprit) == ("failed", cls, index)
    assert got.signature.startswith(starts)
    prefixed = judge(shell(command), exit_code=None, output=f"Exit code {code}\n{output}", is_error=True)
    assert prefixed == got


HIDDEN = [
    ("npm install ; ls", "npm error code ERESOLVE\nnpm error A complete log can be found in: /x\nREADME.md\nsrc", "runtime", 0),
    ("pytest -q ; ls out", "FAILED a.py::b - assert 1\n1 failed in 0.1s\na.txt", "test", 0),
    ("pytest -q", "tests/a.py F\n=== 1 failed, 3 passed in 0.2s ===", "test", 0),
    ("npm run build ; echo done", "npm ERR! code ELIFECYCLE\nnpm ERR! x@1 build: tsc\ndone", "build", 0),
    ("npx tsc", "src/a.ts(3,4): error TS2339: no x", "build", 0),
    ("go test ./...", "--- FAIL: TestA (0.00s)\nFAIL", "test", 0),
    ("go build ./...", "# x\n./a.go:3:4: undefined: Foo", "build", 0),
    ("cargo test", "test result: FAILED. 1 passed; 1 failed", "test", 0),
    ("staticcheck ./... || true", "zsh: command not found: staticcheck", "command-not-found", 0),
    ("make", "cc -c a.c\nmake: *** [Makefile:3: a.o] Error 1", "runtime", 0),
    ("python app.py", 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x', "runtime", 0),
    ("git push ; echo ok", "fatal: unable to access 'https://x/': Connection refused\nok", "network", 0),
    ("find gone -type f", "find: 'gone': No such file or directory", "usage", 0),
    ("bun run lint", 'x\nerror: script "lint" exited with code 1', "build", 0),
    ("eslint .", "✖ 2 problems (2 errors, 0 warnings)", "build", 0),
    ("mise run fmt && mise run lint", "[fmt] ok\n[lint] a.go:1:2: bad (vet)\n[lint] ERROR task failed", "build", 1),
]  # fmt: skip


@pytest.mark.parametrize(("command", "output", "cls", "index"), HIDDEN)
def test_failures_hidden_by_the_exit_code(command: str, output: str, cls: str, index: int) -> None:
    """A pipe, `|| true` or a later command hides the exit code; the output tells."""
    got = told(shell(command), 0, output)
    assert (got.outcome, got.cls, got.culprit) == ("failed", cls, index)


CULPRITS = [
    ("npm run lint && npm run build && npm test", 1, 'npm error Missing script: "x"', -1),
    ("echo start && pytest -q", 1, "start\nboom", 1),
    ("npm ci ; npm run lint", 1, "boom", 1),
    ("foo --x && bar --y", 127, "bash: bar: command not found", 1),
    ("sed -n 1p a && cat b", 1, "x\ncat: b: No such file or directory", 1),
    ("go vet ./... && golangci-lint run", 1, "Error: x", -1),
    ("python a.py && git push", 128, "fatal: no remote", 1),
    ("go build -o a ./a && time ./a x", 1, "(eval):1: parse error near `time'", -1),
]


@pytest.mark.parametrize(("command", "code", "output", "index"), CULPRITS)
def test_the_culprit_of_a_chain(command: str, code: int, output: str, index: int) -> None:
    """Named where the output or the joins show it, and only there."""
    assert told(shell(command), code, output).culprit == index


def test_edits() -> None:
    """An edit that does not fit is a mismatch of the edit as worded: no part is blamed."""
    missing = told(tool("edit"), None, "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>", True)
    assert (missing.outcome, missing.cls, missing.culprit) == ("failed", "edit-mismatch", -1)
    assert missing.signature == "String to replace not found in file."
    assert (
        told(
            tool("patch", "apply_patch"), None, "apply_patch verification failed: Failed to find expected lines in /r/a.py"
        ).outcome
        == "failed"
    )
    assert told(tool("edit"), None, "The file /r/src/app.py has been updated. Error: is a word in it", False).outcome == "ok"
    assert told(tool("read", "Read"), None, "<tool_use_error>File does not exist.</tool_use_error>", True).cls == "usage"
    assert told(tool("other", "BashOutput"), 1, "boom", True).outcome == "unknown"


def test_interrupts_and_timeouts() -> None:
    """A signal of the user's is no failure; running out of time is."""
    assert told(shell("npm test"), 130, "^C").outcome == "interrupted"
    assert told(shell("npm test"), None, "", True, interrupted=True).outcome == "interrupted"
    assert told(shell("npm test"), 143, "Command timed out after 2m", True).cls == "timeout"
    assert told(shell("npm test"), None, "....", True, timed_out=True).cls == "timeout"


def test_a_failing_filter_is_not_the_action() -> None:
    """`sed ... | cat -A` on a Mac: the filter is no part of the action's identity, so nothing is learned about it."""
    assert told(shell("sed -n 1p a"), 1, "cat: illegal option -- A\nusage: cat [-belnstuv] [file ...]").outcome == "unknown"
    assert told(shell("cat a"), 1, "cat: a: No such file or directory").outcome == "failed"


SAME = [
    ("/home/a/w/src/x.py:12:3: error: bad", "/Users/b/wt/2/src/x.py:99:1: error: bad"),
    ("Error: timeout after 1203ms on 127.0.0.1:50123", "Error: timeout after 88ms on 127.0.0.1:41999"),
    ("fatal: bad object 3f2a9c1d77", "fatal: bad object 0badc0ffee"),
    ("Error: /tmp/pytest-of-root/pytest-31/test_a0 missing", "Error: /tmp/pytest-of-root/pytest-7/test_a0 missing"),
    ("2027-01-02T03:04:05Z Error: no db", "2027-02-03T13:14:15Z Error: no db"),
    ("\x1b[31mError: no db\x1b[0m", "Error: no db"),
    ("FAILED tests/b.py::t - x\nFAILED tests/a.py::t - y", "FAILED tests/a.py::t - y\nFAILED tests/b.py::t - x"),
    ("Error: request 7a0f9b52-1111-4222-8333-444455556666 failed",
     "Error: request 00000000-aaaa-4bbb-8ccc-ddddeeeeffff failed"),
    ("--- FAIL: TestA (0.31s)", "--- FAIL: TestA (1.20s)"),
    ("error: script \"lint\" exited with code 1", "error: script \"lint\" exited with code 1"),
    ("Error: see /h/_logs/2026-06-18T05_08_55_000Z-debug-0.log", "Error: see /h/_logs/2026-06-18T05_08_54_883Z-debug-0.log"),
    ("2026/02/14 12:14:20 error: no db", "2026/02/15 01:02:03 error: no db"),
    ("curl: (7) Failed, key <secret:f7482f2dea3f>", "curl: (7) Failed, key <secret:004217730915>"),
    ("ls: /srv/app/dist/: No such file or directory", "ls: dist/: No such file or directory"),
    ("at a.tsx:10:3 lint/style/useConst ━━━━━━━━\n  10 │ let a\nFound 1 error.\nerror: script \"lint\" exited with code 1",
     "at a.tsx:12:3 lint/style/useConst ━━━━━━━━\n  12 │ let a\nFound 1 error.\nerror: script \"lint\" exited with code 1"),
    ("=== RUN   TestB\n=== RUN   TestA\n    a_test.go:7: want 3\nok  \tx/y\t0.1s\nFAIL",
     "=== RUN   TestA\n    a_test.go:9: want 3\n=== RUN   TestB\nok  \tx/y\t0.2s\nFAIL"),
    ("Checked 282 files in 103ms.\nx.ts: unused\nerror: script \"lint\" exited with code 1",
     "Checked 290 files in 85ms.\nx.ts: unused\nerror: script \"lint\" exited with code 1"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_failure_has_the_same_signature(a: str, b: str) -> None:
    """On another day, in another worktree, process and order."""
    assert signature("runtime", a) == signature("runtime", b)


DIFFERENT = [
    ("Error: Missing environment variable A", "Error: Missing environment variable B"),
    ("FAILED tests/a.py::t - x", "FAILED tests/b.py::t - x"),
    ("assert.go: undefined: Foo\na.go:1:2: undefined: Foo", "a.go:1:2: undefined: Bar"),
    ("E       assert 3 == 2\nFAIL", "E       assert 5 == 2\nFAIL"),
    ("x.ts: unused\nerror: script \"lint\" exited with code 1", "y.ts: unused\nerror: script \"lint\" exited with code 1"),
    ("", "Error: x"),
    ("error: Cannot find module '@testing-library/react'", "error: Cannot find module 'react'"),
    ("no required module provides package github.com/a/yaml", "no required module provides package github.com/b/yaml"),
    ("114 failed", "2 failed"),
    ("src/a.py:1:0: C0114: Missing docstring", "src/a.py:1:0: W0611: Unused import os"),
    ("npm error 404 No match found for version 1.2.3", "npm error 404 No match found for version 1.2.4"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different_failures_differ(a: str, b: str) -> None:
    """A line that says only that something failed is told apart by a digest of the rest."""
    assert signature("test", a) != signature("test", b)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("The following paths are ignored by one of your .gitignore files:\n.entire\nhint: Use -f\n\nInstalled 6 hooks",
         "The following paths are ignored by one of your .gitignore files:"),
        ("the parcel has no address\nInstalled 6 hooks", "the parcel has no address"),
        ("Installed 6 hooks", "Installed 6 hooks"),
    ],
)  # fmt: skip
def test_what_went_well_does_not_stand_for_a_failure(output: str, told: str) -> None:
    """Unless nothing else was said."""
    assert signature("unknown", output) == told


TEXTS = st.one_of(
    st.text(max_size=300), st.lists(st.sampled_from([o for _, _, o, *_ in FAILED] + [o for _, _, o in OK])).map("\n".join)
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([c for c, *_ in FAILED] + [c for c, *_ in OK]),
    st.one_of(st.none(), st.integers(-3, 300)),
    TEXTS,
    st.sampled_from([None, True, False]),
    st.sampled_from(["", "exit", "tool", "rejected", "timeout", "nonsense"]),
    st.booleans(),
)
def test_total(command: str, code: int | None, output: str, is_error: bool | None, kind: str, flag: bool) -> None:
    """Any combination of marks and text gives an outcome within its bounds."""
    got = judge(shell(command), exit_code=code, output=output, is_error=is_error, error_kind=kind, timed_out=flag)
    assert got.outcome in ("ok", "failed", "rejected", "interrupted", "cancelled", "unknown")
    assert (got.cls in CLASSES) == (got.outcome == "failed")
    assert len(got.signature) <= 200
    assert len(got.excerpt) <= 1000
    assert -1 <= got.culprit < len(shell(command).parts)


def test_long_output_is_quick_and_bounded() -> None:
    """A megabyte of text costs milliseconds, and its telling lines are found at either end."""
    text = "noise\n" * 200_000
    got = told(shell("pytest -q"), 1, text + "FAILED tests/a.py::t - x\n1 failed in 2s\n")
    assert got.signature == "FAILED a.py::t - x"
    assert len(excerpt(text)) <= 1000


@pytest.mark.parametrize(
    "command", ["hatch run --env test pytest", "sudo --user which make", "uv run --with grep pytest", "npx --package test tsc"]
)
def test_the_value_of_a_launchers_option_is_not_the_program(command: str) -> None:
    """Else a failure would be taken for the answer of a search."""
    assert told(shell(command), 1, "it failed").outcome == "failed"


def test_a_traceback_that_was_cut() -> None:
    """`| tail -3` leaves the end of it, which says the same."""
    whole = 'Traceback (most recent call last):\n  File "/r/x.py", line 1, in f\n    raise ValueError("bad")\nValueError: bad'
    cut = told(shell("python x.py"), 0, "\n".join(whole.split("\n")[-2:]))
    assert cut.outcome == "failed"
    assert (cut.cls, cut.signature) == (told(shell("python x.py"), 1, whole).cls, "ValueError: bad")


def test_a_program_of_java_that_ended_in_an_exception() -> None:
    """Behind a filter too; the frames below it are not what went wrong."""
    text = 'Exception in thread "main" java.lang.NullPointerException\n\tat X.main(X.java:3)'
    found = told(shell("java X"), 0, text)
    assert (found.outcome, found.signature) == ("failed", 'Exception in thread "main" java.lang.NullPointerException')
