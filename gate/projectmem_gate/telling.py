"""Which programs say in their output that they failed, and how: for failures that an exit code hides, and for naming culprits.

A rule is (group, substrings of which one must occur, pattern that must match a line). The substrings are the cheap filter:
a pattern is compiled only for text in which it has a chance.
"""

from __future__ import annotations

from projectmem_gate.lines import names, rx, tail_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Programs that show other people's words: failure words in what they print mean nothing.
QUOTING = names(
    """
    cat bat head tail less more grep egrep fgrep rg ag ack sed awk echo printf ls find fd tree jq yq cut sort uniq wc
    tr diff cmp strings xxd hexdump od nl column tee xargs curl wget http gh glab column env printenv ps history
    journalctl dmesg man help base64 stat file which type whereis date sleep true false test [ tmux screen read view
    cd pwd export
    """
)
# `git log` and the like quote; the rest of git tells.
_GIT_QUOTES = names(
    """
    log show diff blame grep cat-file ls-files ls-tree shortlog reflog notes format-patch whatchanged rev-list
    """
)
_LOGS = names("logs log events inspect exec get describe ps")

RULES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("pytest", (" failed", " error"), r"^=*\s*(?:.*, )?[1-9]\d* (?:failed|errors?)\b.* in [\d.:]+"),
    ("pytest", ("FAILED ", "ERROR "), r"^(?:FAILED|ERROR) \S+\.py(?:::\S+)?(?: - .*)?$"),
    ("pytest", ("tests finished",), r"tests finished: .*\b[1-9]\d* (?:failed|exceptions)"),
    ("unittest", ("FAILED (",), r"^FAILED \((?:failures|errors|unexpected)"),
    ("go-test", ("FAIL",), r"^(?:\s*--- FAIL: |FAIL\t(?!.*\[(?:build|setup) failed\])|FAIL$)"),
    ("go", (".go:",), r"^(?:vet: )?(?:\./)?\S+\.go:\d+:\d+: "),
    ("go", ("no required module", "] failed", "build failed", "setup failed"),
     r"no required module provides|\[(?:build|setup) failed\]$"),
    ("go", ("panic: ",), r"^panic: "),
    ("cargo", ("error[E", "error: ", "test result: FAILED"),
     r"^(?:error(?:\[E\d+\]: |: could not compile|: test failed|: failed to|: aborting due|: no )|test result: FAILED)"),
    ("tsc", ("error TS",), r"\berror TS\d+"),
    ("eslint", ("✖",), r"✖ \d+ problems? \([1-9]\d* errors?"),
    ("biome", ("Found ",), r"^Found [1-9]\d* errors?"),
    ("jest", ("failed", "failing"),
     r"^\s*(?:Tests:?|Test Suites:|Test Files)\s+(?:.*\b)?[1-9]\d* failed|^\s*[1-9]\d* (?:failing|failed)$"),
    ("bun-test", (" fail",), r"^\s*[1-9]\d* fail$"),
    ("bun", ("error: ",),
     r"^error: (?:script \"|Script not found|Cannot find (?:module|package)|Module not found|unrecognized )"),
    ("node-test", ("# fail ", "not ok "), r"^(?:# fail [1-9]|not ok \d+)"),
    ("npm", ("npm ERR!", "npm error", "ERR_PNPM", "ELIFECYCLE", "Command failed with exit code"),
     r"^(?:npm (?:ERR!|error)|.*ERR_PNPM_|.*ELIFECYCLE|error Command failed with exit code)"),
    ("make", ("***",), r"^g?make(?:\[\d+\])?: \*\*\* "),
    ("mise", ("ERROR task failed", "mise ERROR"), r"ERROR task failed|^mise ERROR"),
    ("just", ("error: ",), r"^error: Recipe "),
    ("task", ("task: ",), r"^task: Failed to run task"),
    ("gradle", ("BUILD FAILED", "FAILURE: "), r"^(?:BUILD FAILED|FAILURE: Build failed)"),
    ("mvn", ("BUILD FAILURE", "[ERROR]"), r"BUILD FAILURE|^\[ERROR\] "),
    ("dotnet", ("error CS", "Build FAILED", "Failed!"), r"\berror (?:CS|MSB)\d+|^Build FAILED|^Failed!"),
    ("cc", ("error: ",), r"^\S+:\d+(?::\d+)?: (?:fatal )?error: |^(?:ld|collect2|clang|gcc|g\+\+): (?:fatal )?error"),
    ("ruff", ("Found ",), r"^Found [1-9]\d* errors?"),
    ("mypy", ("Found ",), r"^Found [1-9]\d* errors? in "),
    ("golangci-lint", ("issues",), r"^[1-9]\d* issues:?$"),
    ("docker", ("ERROR: ", "Error response", "failed to solve"), r"^(?:ERROR: |.*Error response from daemon|.*failed to solve)"),
    ("terraform", ("Error: ",), r"^(?:[│|] )?Error: "),
    ("kubectl", ("rror",), r"^(?:error: |Error from server|The connection to the server)"),
    ("git", ("husky - ", "FAILED: git"), r"^(?:husky - .*failed|FAILED: git )"),
    ("git", ("fatal: ", "error: ", "[rejected]", "CONFLICT"), r"^(?:fatal: |error: | ! \[(?:remote )?rejected\]|CONFLICT \()"),
    ("pip", ("ERROR: ", "error: "), r"^(?:ERROR: (?!pip's dependency resolver)|error: )"),
    ("node", ("Error", "Node.js v"), r"^Node\.js v\d+\.\d+"),
    ("playwright", (" failed",), r"^\s*[1-9]\d* failed$"),
    ("rspec", ("failure",), r"\b[1-9]\d* failures?\b"),
)  # fmt: skip

_GROUPS: dict[str, tuple[str, ...]] = {
    "pytest": ("pytest",),
    "py.test": ("pytest",),
    "unittest": ("unittest",),
    "nose2": ("unittest",),
    "python": ("unittest",),
    "go": ("go-test", "go"),
    "gotestsum": ("go-test", "go"),
    "cargo": ("cargo", "cc"),
    "rustc": ("cargo",),
    "tsc": ("tsc",),
    "vue-tsc": ("tsc",),
    "eslint": ("eslint",),
    "biome": ("biome",),
    "jest": ("jest",),
    "vitest": ("jest",),
    "mocha": ("jest",),
    "playwright": ("playwright", "jest"),
    "node": ("node-test", "node"),
    "tsx": ("node-test", "node"),
    "gcc": ("cc",),
    "g++": ("cc",),
    "cc": ("cc",),
    "clang": ("cc",),
    "clang++": ("cc",),
    "cmake": ("cc", "make"),
    "ninja": ("cc",),
    "ruff": ("ruff",),
    "mypy": ("mypy",),
    "golangci-lint": ("golangci-lint", "go"),
    "staticcheck": ("go",),
    "gofmt": ("go",),
    "goimports": ("go",),
    "docker": ("docker",),
    "docker-compose": ("docker",),
    "podman": ("docker",),
    "terraform": ("terraform",),
    "tofu": ("terraform",),
    "kubectl": ("kubectl",),
    "helm": ("kubectl", "terraform"),
    "git": ("git",),
    "pip": ("pip",),
    "pip3": ("pip",),
    "uv": ("pip", "pytest"),
    "gradle": ("gradle",),
    "gradlew": ("gradle",),
    "mvn": ("mvn",),
    "mvnw": ("mvn",),
    "dotnet": ("dotnet",),
    "rspec": ("rspec",),
}
# Task runners and scripts: what fails below them may be any of these.
_ANYTHING: tuple[str, ...] = (
    "pytest", "unittest", "go-test", "go", "cargo", "tsc", "eslint", "biome", "jest", "bun-test", "bun", "npm", "make", "cc",
    "mypy", "golangci-lint", "gradle", "mvn",
)  # fmt: skip
RUNNERS: dict[str, tuple[str, ...]] = {
    "npm": ("npm",),
    "pnpm": ("npm",),
    "yarn": ("npm",),
    "bun": ("bun-test", "bun"),
    "make": ("make",),
    "gmake": ("make",),
    "just": ("just",),
    "task": ("task",),
    "mise": ("mise",),
    "tox": (),
    "nox": (),
    "rtk": (),
    "turbo": (),
    "nx": (),
    "hatch": (),
    "poetry": (),
    "bundle": ("rspec",),
    "pre-commit": (),
    "act": (),
}
PYTHONS = names("python uv poetry pipenv django-admin manage.py")


def quotes(program: str, sub: str) -> bool:
    """Does this program print text that is not its own verdict?"""
    if program in QUOTING or not program:
        return True
    if program == "git":
        return sub in _GIT_QUOTES
    return program in ("docker", "docker-compose", "podman", "kubectl") and sub in _LOGS


def groups(program: str) -> tuple[str, ...]:
    """The rule groups whose patterns tell about this program, its own first."""
    if program in RUNNERS:
        own = RUNNERS[program]
        return own + tuple(g for g in _ANYTHING if g not in own)
    if program in _GROUPS:
        return _GROUPS[program]
    if program.endswith((".sh", ".py")) or program.startswith("./") or program in ("bash", "sh", "zsh"):
        return _ANYTHING
    return ()


def tells(wanted: Iterable[str], text: str) -> bool:
    """Does `text` hold a verdict of failure by one of the groups?"""
    chosen = set(wanted)
    return any(g in chosen and any(n in text for n in needles) and rx(pattern).search(text) for g, needles, pattern in RULES)


def ends_in_traceback(text: str) -> bool:
    """Is the end of `text` an uncaught Python exception?"""
    at = text.rfind("Traceback (most recent call last)")
    if at < 0:
        return False
    after = [line for line in text[at:].split("\n")[1:] if line.strip()]
    return any(is_exception(line) for line in after) and any(is_exception(line) for line in tail_lines(text, 4))


def is_exception(line: str) -> bool:
    """Is the line the last one of a Python traceback: `pkg.SomeError: message`?"""
    return bool(
        rx(
            r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|DoesNotExist|Refused|Failed|NotFound"
            r"|Registered|Invalid\w*|Failure|Configured)(?::|$)"
        ).match(line)
    )
