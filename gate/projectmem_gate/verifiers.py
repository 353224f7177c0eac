"""[H] Verifiers: what tells whether the project is right (tests, linters, type checkers, builds, CI), known from the command.

A *track* is one verifier in one directory: `pytest  # in web`. Its runs, of whatever selection of tests, tell of the same
failures. A report (CI log, JUnit XML) that a command merely shows is known from the output.
"""

from __future__ import annotations

from projectmem_gate import tasks
from projectmem_gate.lines import basename, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NONE = "none"
# Classes of failures that a verifier finds in the project; others say that it did not get so far.
FINDINGS = ("test", "build", "runtime", "timeout")
REPORTS = ("junit", "ci")
CI_LOGS = ("gh run view", "gh run watch", "glab ci view")

_ALONE = names(
    """
    pytest unittest jest vitest mocha ava tap jasmine karma cypress playwright ctest tox nox bats nose2 nosetests rspec phpunit
    pest minitest eslint tslint stylelint biome oxlint tsc vue-tsc svelte-check mypy pyright basedpyright pytype pyre ty flake8
    pylint pyflakes pydocstyle bandit vulture rubocop shellcheck hadolint actionlint yamllint markdownlint ktlint detekt
    checkstyle swiftlint credo dialyzer phpstan psalm staticcheck govulncheck errcheck revive buf cargo-nextest ninja
    """
)
_WITH = {
    "go": "test vet build",
    "cargo": "test build check clippy nextest bench doc",
    "dotnet": "test build",
    "swift": "test build",
    "mix": "test compile credo",
    "zig": "test build",
    "bazel": "test build",
    "deno": "test lint check",
    "bun": "test",
    "ruff": "check",
    "golangci-lint": "run",
    "flutter": "test analyze build",
    "dart": "test analyze compile",
    "sbt": "test compile",
    "lein": "test check",
    "stack": "test build",
    "cabal": "test build",
    "rails": "test",
    "terraform": "validate",
    "prisma": "validate",
    "helm": "lint",
    "forge": "test build",
    "composer": "test validate",
}
_GOALS = names("test verify check build install package compile testclasses assemble integrationtest")
_JVM = ("mvn", "mvnw", "gradle", "gradlew")
_RUNNERS = names("npm pnpm yarn bun mise just task make gmake nx turbo rake composer deno")
SELECTS = ("-k", "-run=", "--run=", "-t=", "-m=", "--grep", "-g=", "--filter", "-p=", "--package", "--test")
_CI = (("gh", "run", "view"), ("gh", "run", "watch"), ("gh", "pr", "checks"), ("glab", "ci", "view"), ("glab", "ci", "status"))


def name(family: str, text: str = "") -> str:
    """The verifier that a shell part runs, by its family (`pytest`, `go test`, `npm run lint`); "" when it is none."""
    words = family.split()
    if not words or words[0] == "edit":
        return ""
    first = basename(words[0])
    rest = words[1:]
    if tuple(words[:3]) in _CI:
        return "ci"
    if first in _ALONE and not (first in ("biome", "buf", "playwright") and rest[:1] in (["install"], ["generate"], ["format"])):
        return first
    if first in _WITH and rest and rest[0] in _WITH[first].split():
        return f"{first} {rest[0]}"
    if first in _JVM:
        goals = [g for g in rest if g.lower().rsplit(":", 1)[-1] in _GOALS]
        return f"{first} {goals[0]}" if goals else ""
    if first == "node":
        return "node --test" if " --test" in text else ""
    if first in _RUNNERS:
        task = rest[1] if rest[:1] == ["run"] and len(rest) > 1 else rest[0] if rest else ""
        return f"{first} {task}" if task and tasks.kind(task) in (tasks.VERIFY, tasks.BUILD) else ""
    return _script(first, words)


def _script(first: str, words: list[str]) -> str:
    """A script that is named for verifying: `./scripts/test.sh`, `python tests/runtests.py`, `python manage.py test`."""
    interpreted = first in ("python", "bash", "sh", "ruby", "php", "perl", "zsh", "tsx", "ts-node")
    script = words[1] if interpreted and len(words) > 1 else words[0]
    base = basename(script)
    if base == "manage.py":
        return "manage.py test" if words[2:3] in (["test"], ["check"]) else ""
    if not interpreted and "/" not in script:
        return ""
    return base if tasks.kind(base) == tasks.VERIFY else ""


def of_part(part: Mapping[str, Any]) -> tuple[str, str]:
    """(verifier, track) of a recorded part; ("", "") when it is none."""
    if part.get("kind") != "sh" or part.get("trivial") is True:
        return "", ""
    text = part.get("text")
    text = text if isinstance(text, str) else ""
    family = part.get("family")
    found = name(family if isinstance(family, str) else "", text)
    _, _, where = text.partition("  # ")
    return found, f"{found}  # {where}" if found and where else found


def is_whole(part: Mapping[str, Any]) -> bool:
    """Does this run of a verifier leave nothing of its directory out?"""
    text, family = str(part.get("text") or ""), str(part.get("family") or "")
    words = text.partition("  # ")[0].split()
    own = set(family.split())
    if any(w.startswith(SELECTS) for w in words):
        return False
    return all(w in own or w[:1] == "-" or "=" in w or w in (".", "./", "./...", "all", "--") for w in words)


def report(family: str, output: str) -> dict[str, str] | None:
    """What a report that the command shows says: {"verifier", "outcome": ok | failed, "signature"}; None when it shows none."""
    if "<testsuite" in output:
        return _junit(output)
    words = tuple(family.split()[:3])
    if words in _CI:
        return _checks(output) if words[1:] == ("pr", "checks") else _ci_log(output)
    return None


def _junit(output: str) -> dict[str, str] | None:
    bad = good = 0
    for piece in output.split("<testsuite ")[1:]:
        head = piece.partition(">")[0]
        bad += _attribute(head, "failures") + _attribute(head, "errors")
        good += _attribute(head, "tests")
    if bad:
        return {"verifier": "junit", "outcome": "failed", "signature": _first_failure(output)}
    return {"verifier": "junit", "outcome": "ok", "signature": ""} if good else None


def _attribute(head: str, wanted: str) -> int:
    digits = f" {head}".partition(f' {wanted}="')[2].partition('"')[0]
    return int(digits) if digits.isdigit() and len(digits) < 9 else 0


def _first_failure(output: str) -> str:
    for mark in ("<failure", "<error"):
        before, found, after = output.partition(mark)
        if found:
            case = before.rpartition("<testcase")[2].partition(">")[0]
            named = _quoted(case, "name")
            message = _quoted(after.partition(">")[0], "message")
            return f"{named}: {message}".strip(": ") or "tests failed"
    return "tests failed"


def _quoted(head: str, wanted: str) -> str:
    _, found, rest = head.partition(f' {wanted}="')
    return rest.partition('"')[0][:160] if found else ""


def _checks(output: str) -> dict[str, str] | None:
    """`gh pr checks`: name, TAB, pass | fail | pending | skipping, TAB ..."""
    rows = [line.split("\t") for line in output.splitlines() if "\t" in line]
    states = {row[1].strip() for row in rows if len(row) > 1}
    failed = sorted(row[0].strip() for row in rows if len(row) > 1 and row[1].strip() == "fail")
    if failed:
        return {"verifier": "ci", "outcome": "failed", "signature": f"failed: {', '.join(failed)}"}
    return {"verifier": "ci", "outcome": "ok", "signature": ""} if states and states <= {"pass", "skipping"} else None


def _ci_log(output: str) -> dict[str, str] | None:
    """The log of a CI run: its `##[error]` lines, else the mark before the run's name."""
    found = ""
    for line in output.splitlines():
        before, mark, message = line.partition("##[error]")
        if mark and message.strip():
            if not message.startswith("Process completed"):
                return {"verifier": "ci", "outcome": "failed", "signature": message.strip()}
            found = found or f"{before.split(chr(9))[0].strip()}: failed".strip(": ")
        elif line.startswith("X ") and not found:
            found = line[2:].partition(" in ")[0].partition(" (ID")[0].strip()
    if found:
        return {"verifier": "ci", "outcome": "failed", "signature": found}
    return {"verifier": "ci", "outcome": "ok", "signature": ""} if "\n✓ " in f"\n{output}" and "\n* " not in output else None
