"""What counts as a repeat of a failure, told by whole little stories: identity, outcome, freshness and decision together."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_gate.policy import DEFAULT

from projectmem.backtest.model import Step
from projectmem.backtest.runner import Replay, Summary

MINUTE = 60_000_000
START = 1_750_000_000_000_000


def told(*calls: tuple[Any, ...]) -> list[tuple[str, str]]:
    """(verdict, rule) before each call of a story, a minute apart: (command or (tool, input), output, exit code, session)."""
    run = Replay(DEFAULT, Summary())
    out = []
    for n, (what, output, code, *rest) in enumerate(calls):
        tool, value = what if isinstance(what, tuple) else ("Bash", {"command": what})
        call = {
            "session": rest[0] if rest else "s1",
            "agent": "",
            "harness": "claude-code",
            "model": "",
            "call": f"c{n}",
            "tool": tool,
            "input": value,
            "turn": n,
            "output": output,
            "exit_code": code,
            "is_error": code not in (0, None) or output.startswith("<tool_use_error>"),
            "error_kind": "",
            "interrupted": False,
            "timed_out": False,
            "background": "",
            "duration_ms": None,
        }
        line = run.step(Step({"n": n}, call, "/w", "/w", START + n * MINUTE))
        assert line is not None
        out.append((line["verdict"], line["rule"]))
    return out


def last(*calls: tuple[Any, ...]) -> str:
    return told(*calls)[-1][0]


FAILED = "--- FAIL: TestAppend (0.00s)\n    store_test.go:7: got 2\nFAIL\nFAIL\tacme/store\t0.1s\nFAIL"
CUT = "FAIL\nFAIL\tacme/store\t0.1s\nFAIL"


class TestAnotherLook:
    """The session that cut the output down runs the command again to see more of it."""

    def test_another_filter_is_another_look(self) -> None:
        assert last(("go test ./store | tail -3", CUT, 0), ("go test ./store | grep -A5 FAIL", FAILED, 0)) == "allow"

    def test_more_detail_is_another_look(self) -> None:
        assert last(("go test ./store", FAILED, 1), ("go test -v ./store", FAILED, 1)) == "allow"

    def test_the_same_command_with_the_same_filter_is_a_repeat(self) -> None:
        assert last(("go test ./store | tail -3", CUT, 0), ("go test ./store | tail -3", CUT, 0)) == "warn"

    def test_showing_less_of_what_was_seen_whole_is_a_repeat(self) -> None:
        assert last(("go test ./store", FAILED, 1), ("go test ./store 2>&1 | tail -3", CUT, 0)) == "warn"

    def test_another_session_did_not_see_it(self) -> None:
        assert last(("go test ./store | tail -3", CUT, 0), ("go test ./store | head", CUT, 0, "s2")) == "warn"

    def test_another_filter_mends_no_usage_error(self) -> None:
        said = "error: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS] <COMMAND>"
        assert last(("rtk bun run test | tail -3", said, 0), ("rtk bun run test | tail -9", said, 0)) == "warn"

    def test_a_filter_that_failed_is_not_the_command(self) -> None:
        said = "grep: unrecognized option `--- FAIL'\nusage: grep [-abc] [pattern] [file ...]"
        assert last(("go test ./store | grep '--- FAIL'", said, 2), ("go test ./store | grep FAIL", "", 1)) == "allow"


NOT_FOUND = "<tool_use_error>String to replace not found in file.</tool_use_error>"


def edit(old: str, new: str, path: str = "/w/a.py") -> tuple[str, dict[str, str]]:
    return "Edit", {"file_path": path, "old_string": old, "new_string": new}


class TestEdits:
    def test_the_same_text_is_still_not_there(self) -> None:
        assert last((edit("x = 1\ny", "x = 2\ny"), NOT_FOUND, None), (edit("x = 1\ny", "x = 2\ny"), NOT_FOUND, None)) == "warn"

    def test_the_same_change_found_by_other_text_is_another_edit(self) -> None:
        assert last((edit("x = 1\ny", "x = 2\ny"), NOT_FOUND, None), (edit("x = 1\nz", "x = 2\nz"), "ok", None)) == "allow"

    def test_a_read_does_not_put_the_text_there(self) -> None:
        read = ("Read", {"file_path": "/w/a.py"})
        again = edit("x = 1\ny", "x = 2\ny")
        assert last((again, NOT_FOUND, None), (read, "x = 3", None), (again, NOT_FOUND, None)) == "warn"

    def test_an_edit_of_nothing_stays_an_edit_of_nothing(self) -> None:
        said = "<tool_use_error>No changes to make: old_string and new_string are exactly the same.</tool_use_error>"
        stories = [(edit("a", "a"), said, None), (edit("b", "c"), "ok", None), (edit("a", "a"), said, None)]
        assert last(*stories) == "warn"


MISSING = "bash: line 1: pytest: command not found"
NO_MODULE = "/opt/env/bin/python: No module named pytest"


class TestTheOtherLauncher:
    """`pytest x` and `python -m pytest x` can fail apart, so the one only warns before the other."""

    @pytest.mark.parametrize(
        ("first", "said", "code", "then"),
        [
            ("pytest tests/test_a.py", MISSING, 127, "python -m pytest tests/test_a.py"),
            ("python3 -m pytest tests/test_a.py", NO_MODULE, 1, "pytest tests/test_a.py"),
        ],
    )
    def test_a_missing_tool_warns(self, first: str, said: str, code: int, then: str) -> None:
        assert told((first, said, code), (then, NO_MODULE, 1))[-1] == ("warn", "related")

    @pytest.mark.parametrize(
        "then", ["python -m pytest tests/test_b.py", "uv run pytest tests/test_a.py", "python -m mypy tests"]
    )
    def test_other_work_or_another_wrapper_is_not_related(self, then: str) -> None:
        assert last(("pytest tests/test_a.py", MISSING, 127), (then, "", 0)) == "allow"

    def test_a_failing_test_is_no_reason(self) -> None:
        assert (
            last(("pytest tests/test_a.py", "FAILED tests/test_a.py::test_x", 1), ("python -m pytest tests/test_a.py", "", 1))
            == "allow"
        )

    def test_not_once_the_tool_answered(self) -> None:
        calls = [("python -m pytest tests/test_a.py", NO_MODULE, 1), ("pytest --version", "pytest 8.0", 0)]
        assert last(*calls, ("pytest tests/test_a.py", "1 passed", 0)) == "allow"

    def test_not_after_an_install(self) -> None:
        calls = [("pytest tests/test_a.py", MISSING, 127), ("pip install pytest", "Successfully installed pytest-8", 0)]
        assert last(*calls, ("python -m pytest tests/test_a.py", "1 passed", 0)) == "allow"


class TestWhoComplains:
    """A usage error is of the program before the word that it quotes: only what that one reads can mend it."""

    SAID = "error: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS] <COMMAND>"

    def test_the_projects_own_files_cannot_mend_a_foreign_program(self) -> None:
        calls = [("rtk bun run test", self.SAID, 2), (edit("a", "b", "/w/package.json"), "ok", None), ("bun install", "", 0)]
        assert last(*calls, ("rtk bun run test", self.SAID, 2, "s2")) == "warn"

    def test_a_script_of_the_project_is_mended_by_an_edit(self) -> None:
        said = 'Error: unknown command "serve" for "./tool"'
        assert last(("./tool serve", said, 1), (edit("a", "b", "/w/cmd/main.go"), "ok", None), ("./tool serve", "", 0)) == "allow"


class TestLocks:
    BUSY = '{\n  "code": "command_failed",\n  "message": "database is locked (5) (SQLITE_BUSY)"\n}'
    PORT = "Error response from daemon: driver failed: port is already allocated"

    def test_a_busy_lock_is_worth_another_try_at_once_but_not_for_ever(self) -> None:
        calls = [("brain inspect --json", self.BUSY, 1)] * 3
        assert [verdict for verdict, _ in told(*calls)] == ["allow", "allow", "warn"]

    def test_a_port_in_use_stays_in_use(self) -> None:
        assert last(("docker compose up -d", self.PORT, 1), ("docker compose up -d", self.PORT, 1)) == "warn"


class TestBuilds:
    def test_a_bundle_may_mend_a_test(self) -> None:
        calls = [("bun test apps/cli", "(fail) cli > prints", 1), ("bun run build", "", 0)]
        assert last(*calls, ("bun test apps/cli", "1 pass", 0)) == "allow"

    def test_compiling_does_not_mend_what_compiles_itself(self) -> None:
        assert last(("go test ./store", FAILED, 1), ("go build ./...", "", 0), ("go test ./store", FAILED, 1)) == "warn"


class TestQuestions:
    @pytest.mark.parametrize("question", ["test -f dist/app.js", "[ -d build ]", "grep -rn legacy src", "diff a b", "which pnpm"])
    def test_no_is_an_answer(self, question: str) -> None:
        assert last((question, "", 1), (question, "", 1)) == "allow"

    def test_a_folder_that_is_not_there_is_none(self) -> None:
        said = "bash: line 1: cd: nowhere: No such file or directory"
        assert last(("cd nowhere", said, 1), ("cd nowhere", said, 1)) == "warn"


class TestScripts:
    def test_a_patch_inside_a_script_that_was_cut_is_still_a_change(self) -> None:
        source = 'const patch = "*** Begin Patch\\n*** Update File: /w/a.go\\n@@\\n-x\\n...[+117]'
        calls = [("gofmt -w a.go", "a.go:3:1: expected declaration", 2), (("exec", {"input": source}), "Script completed", 0)]
        assert last(*calls, ("gofmt -w a.go", "", 0)) == "allow"


NODE = (
    "ERR_PNPM_UNSUPPORTED_ENGINE  Unsupported environment (bad pnpm and/or Node.js version)\nExpected version: >=22\nGot: v20.1.0"
)
BEYOND_EDITS = [
    ("pnpm install", NODE, 1),
    ("go build ./...", "go: go.mod requires go >= 1.25 (running go 1.22.1; GOTOOLCHAIN=local)", 1),
    ("./gradlew test", "ERROR: JAVA_HOME is not set and no 'java' command could be found in your PATH.", 1),
    ("npx playwright test", "browserType.launch: Executable doesn't exist at /home/kim/.cache/ms-playwright/chromium", 1),
    ("python3.12 -m venv .v", "python3.12: command not found", 127),
    ("gh project list", "error: your authentication token is missing required scopes [read:project]", 1),
    ("npm publish", "npm error code ENEEDAUTH\nnpm error need auth This command requires you to be logged in", 1),
    ("kubectl foo", 'error: unknown command "foo" for "kubectl"', 1),
    ("make foo", "make: *** No rule to make target 'foo'.  Stop.", 2),
    ("brew install foo", 'Error: No available formula with the name "foo".', 1),
    ("gh pr merge 12", "GraphQL: Pull request is not mergeable: the base branch policy prohibits the merge", 1),
    ("pip install foo", "error: externally-managed-environment\n\n\u00d7 This environment is externally managed", 1),
]


class TestBeyondEdits:
    """A wrong tool version, a missing command, a subcommand that is not there: no edit of a source file mends these."""

    @pytest.mark.parametrize(("command", "said", "code"), BEYOND_EDITS)
    def test_an_edit_of_a_source_file_mends_nothing(self, command: str, said: str, code: int) -> None:
        call = (command, said, code)
        assert last(call, (edit("a", "b", "/w/src/x.ts"), "ok", None), call) == "warn"

    @pytest.mark.parametrize(
        ("call", "mend"),
        [
            (BEYOND_EDITS[0], ("nvm install 22", "Now using node v22", 0)),
            (BEYOND_EDITS[1], (edit("go 1.25", "go 1.22", "/w/go.mod"), "ok", None)),
            (BEYOND_EDITS[3], ("npx playwright install", "downloaded", 0)),
            (BEYOND_EDITS[5], ("gh auth refresh -s read:project", "Authentication complete.", 0)),
            (BEYOND_EDITS[8], (edit("a:", "foo:", "/w/Makefile"), "ok", None)),
        ],
    )
    def test_what_mends_it_is_heeded(self, call: tuple[Any, ...], mend: tuple[Any, ...]) -> None:
        assert last(call, mend, call) == "allow"

    def test_a_module_of_the_project_may_be_mended_by_any_source(self) -> None:
        call = ("node dist/app.js", "Error: Cannot find module './lib/util'\nRequire stack:\n- /w/dist/app.js", 1)
        assert last(call, (edit("a", "b", "/w/src/x.ts"), "ok", None), call) == "allow"

    def test_a_package_from_outside_is_not(self) -> None:
        call = ("bun test", "error: Cannot find module 'left-pad' from '/w/src/a.ts'", 1)
        assert last(call, (edit("a", "b", "/w/src/x.ts"), "ok", None), call) == "warn"
