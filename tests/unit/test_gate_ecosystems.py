"""Failures of many ecosystems, in texts of our own: told with and without their exit code, of one class, with one signature."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from projectmem_gate.identify import identify
from projectmem_gate.model import Outcome
from projectmem_gate.outcome import judge

R = "/srv/shop"

_TEXTS = Path(__file__).with_name("ecosystem_failures.jsonl").read_text(encoding="utf-8").splitlines()
FAILS = [tuple(json.loads(line).values()) for line in _TEXTS]  # command, exit code, class, what the signature must hold, output
assert len(FAILS) >= 50

# What went well, in words that sound bad.
FINE: list[tuple[str, str]] = [
    (
        "mvn test",
        "[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0\n[WARNING] deprecated error handler\n[INFO] BUILD SUCCESS",
    ),
    ("./gradlew test", "> Task :test\n\nBUILD SUCCESSFUL in 3s\n3 actionable tasks: 2 executed, 1 up-to-date"),
    (
        "cargo test",
        "test handles_error ... ok\ntest failed_payment_is_kept ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored",
    ),
    ("dotnet test", "Passed!  - Failed:     0, Passed:     4, Skipped:     0, Total:     4, Duration: 61 ms"),
    ("dotnet build", "Build succeeded.\n    0 Warning(s)\n    0 Error(s)"),
    ("bundle exec rspec", "4 examples, 0 failures"),
    ("bundle exec rake test", "4 runs, 4 assertions, 0 failures, 0 errors, 0 skips"),
    ("vendor/bin/phpunit", "OK (4 tests, 7 assertions)"),
    ("ctest --test-dir build", "100% tests passed, 0 tests failed out of 2"),
    ("cmake -S . -B build", "-- Looking for error handlers - not found\n-- Configuring done\n-- Generating done"),
    ("docker build -t shop .", "#7 0.2 checking for failed jobs... no\n#8 naming to docker.io/library/shop done"),
    ("docker logs web", "ERROR: failed to solve captcha\nError response from daemon: none"),
    ("kubectl logs web", "Error from server (Forbidden): shown to a client"),
    ("terraform plan", "No changes. Your infrastructure matches the configuration."),
    ("mix test", "4 tests, 0 failures"),
    ("deno test", "ok | 4 passed | 0 failed (22ms)"),
    ("npm run build", "> tsc -p .\n\nbuilt error-page.html in 2.1s"),
    ("git merge topic", "Updating 1a2b3c4..5d6e7f8\nFast-forward\n src/error.py | 2 +-"),
    ("cat build.log", "BUILD FAILED in 3s\nnpm error code ELIFECYCLE"),
    ("bundle exec rubocop", "12 files inspected, no offenses detected"),
]


def told(command: str, exit_code: int | None, output: str, is_error: bool | None = None) -> Outcome:
    """The outcome as a harness with exit codes would report the call."""
    action = identify("Bash", {"command": command}, root=R, cwd=R)
    bad = is_error if is_error is not None else None if exit_code is None else exit_code != 0
    return judge(action, exit_code=exit_code, output=output, is_error=bad)


@pytest.mark.parametrize(("command", "code", "cls", "holds", "output"), FAILS, ids=[f[0] for f in FAILS])
def test_a_failure_is_classed_and_signed(command: str, code: int, cls: str, holds: str, output: str) -> None:
    """By its own words; the same elsewhere, later, and with other numbers."""
    seen = told(command, code, output)
    assert (seen.outcome, seen.cls) == ("failed", cls), seen
    assert holds.lower() in f"{seen.signature} {seen.excerpt}".lower()
    again = (
        output.replace(R, "/Users/kim/dev/tmp-91/shop")
        .replace("0.31 s", "0.97 s")
        .replace(" 3s", " 14s")
        .replace("61 ms", "88 ms")
    )
    again = (
        again.replace("12 ms", "3 ms")
        .replace("4f2a9c1b7de0", "9be1c07d55aa")
        .replace("5c9d2f30", "77ab01cd")
        .replace("0.412", "1.907")
    )
    assert told(command, code, again).signature == seen.signature


@pytest.mark.parametrize(("command", "code", "cls", "holds", "output"), FAILS, ids=[f[0] for f in FAILS])
def test_a_hidden_failure_is_found(command: str, code: int, cls: str, holds: str, output: str) -> None:
    """Behind `| tail` and behind `; echo`, where the exit code is another program's, with the same class and signature."""
    open_ = told(command, code, output)
    for form, text in ((f"{command} 2>&1 | tail -40", output), (f'{command}; echo "exit: $?"', f"{output}\nexit: {code}")):
        seen = told(form, 0, text)
        assert (seen.outcome, seen.cls) == ("failed", cls), (form, seen)
        if "|" in form:
            assert seen.signature == open_.signature


@pytest.mark.parametrize(("command", "output"), FINE, ids=[f[0] for f in FINE])
def test_what_went_well_is_no_failure(command: str, output: str) -> None:
    """Words such as `error` and `failed` in the output of what went well, and in what is only shown."""
    assert told(command, 0, output).outcome == "ok"
    assert told(f"{command} 2>&1 | tail -5", 0, output).outcome == "ok"
    assert told(f'{command}; echo "exit: $?"', 0, f"{output}\nexit: 0").outcome == "ok"


SAID = [
    "Command: make\nDirectory: (root)\nStdout: \nStderr: x\nError: (none)\nExit Code: 2\nSignal: (none)",
    "Exit code: 2\nWall time: 1 seconds\nOutput:\nx",
    "x\n[The command completed with exit code 2.]\n[Current working directory: /srv/shop]",
    "x\n<exited with exit code 2>",
    "x\n\n[Process exited with code 2]",
    "Command failed with exit code 2\nx",
    "Chunk ID: 1\nProcess exited with code 2\nOutput:\nx",
]


@pytest.mark.parametrize("output", SAID)
def test_exit_codes_that_harnesses_write_into_the_text(output: str) -> None:
    """Where there is no other mark; zero is no failure, and a program's own words in the middle are not read."""
    assert told("make x", None, output).outcome == "failed"
    assert told("make x", None, output.replace("2", "0")).outcome == "ok"
    long = "\n".join(["a"] * 40)
    assert told("cat notes", None, f"{long}\nExit Code: 2\n{long}").outcome == "ok"


def test_a_shell_that_refuses_the_line_failed_whatever_the_program_would_answer() -> None:
    """`rg` = 1 is an answer; a line that no shell could read is not."""
    assert told('rg "a|`b`" src', 1, "zsh:1: parse error near `|'").outcome == "failed"
    assert told("rg x src/*.q", 1, "zsh:1: no matches found: src/*.q").cls == "usage"
    assert told("rg x src", 1, "").outcome == "ok"


def test_a_look_at_the_log_of_a_run_says_nothing_about_the_run() -> None:
    """The exit code is the look's; what it shows still counts."""
    run = "make test > log 2>&1; grep FAILED log"
    assert told(run, 1, "").outcome != "failed"
    assert told("pytest > log 2>&1; tail -3 log", 0, "FAILED tests/a.py::t - x\n1 failed, 2 passed in 0.10s").outcome == "failed"


def test_a_wrapper_that_is_not_there_is_not_the_action() -> None:
    """`timeout` is left out of the identity, so its absence is no failure of what it wraps."""
    assert told("timeout 60 make test", 127, "zsh: command not found: timeout").outcome == "unknown"
    assert told("timeout 60 make test", 127, "zsh: command not found: make").outcome == "failed"
    assert told("echo === x; git diff", 1, "(eval):1: == not found").outcome == "unknown"  # zsh, of an echo
