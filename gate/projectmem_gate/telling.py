"""Which programs say in their output that they failed, and how: for failures that an exit code hides, and for naming culprits.

A rule is (group, substrings of which one must occur, pattern that must match a line). The substrings are the cheap filter:
a pattern is compiled only for text in which it has a chance.
"""

from __future__ import annotations

from projectmem_gate.lines import last_line, names, rx, tail_lines

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
    ("pytest", ("FAILED ", "ERROR "), r"^(?:FAILED|ERROR) (?:\S+\.py(?:::\S+)?|[\w/.-]+::.+?)(?: - .*)?$"),
    ("pytest", ("tests finished",), r"tests finished: .*\b[1-9]\d* (?:failed|exceptions)"),
    ("unittest", ("FAILED (",), r"^FAILED \((?:failures|errors|unexpected)"),
    ("go-test", ("FAIL",), r"^(?:\s*--- FAIL: |FAIL\t(?!.*\[(?:build|setup) failed\])|FAIL$)"),
    ("go", (".go:",), r"^(?:vet: )?(?:\./)?\S+\.go:\d+:\d+: "),
    ("go", ("no required module", "] failed", "build failed", "setup failed"),
     r"no required module provides|\[(?:build|setup) failed\]$"),
    ("go", ("panic: ",), r"^panic: "),
    ("cargo-test", ("test result: FAILED",), r"^test result: FAILED"),
    ("cargo", ("error[E", "error: "),
     r"^error(?:\[E\d+\]: |: (?:could not compile|test failed|failed to|aborting due|no |package |toolchain |unexpected ))"),
    ("aws", ("nable to locate credentials", "An error occurred (", "rror: "),
     r"^Unable to locate credentials|^An error occurred \(|^(?:aws: )?\[?[Ee]rror\]?: |^(?:botocore|urllib3)\.\S+: "),
    ("gcloud", ("ERROR: ",), r"^ERROR: "),
    ("tsc", ("error TS",), r"\berror TS\d+"),
    ("eslint", ("✖",), r"✖ \d+ problems? \([1-9]\d* errors?"),
    ("biome", ("Found ",), r"^Found [1-9]\d* errors?"),
    ("biome", (" format ━", " organizeImports ━"), r"^\s*(?:at )?\S+ (?:format|organizeImports) ━"),
    ("biome", (" lint/",), r"^\s*(?:at )?\S+:\d+:\d+ lint/\S+.*(?:\n.*){0,3}\n\s*\u00d7 "),
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
    ("gradle", ("BUILD FAILED", "FAILURE: ", " FAILED", "JAVA_HOME"),
     r"^(?:BUILD FAILED|FAILURE: Build failed|> Task :\S+ FAILED)|^ERROR: JAVA_HOME"),
    ("junit", ("Tests run: ", "tests completed, "),
     r"Tests run: \d+, (?:Failures: [1-9]|Failures: 0, Errors: [1-9])|^\d+ tests? completed, [1-9]\d* failed"),
    ("mvn", ("BUILD FAILURE", "[ERROR]"), r"BUILD FAILURE|^\[ERROR\] "),
    ("sbt", ("[error]",), r"^\[error\] "),
    ("kotlin", ("e: ",), r"^e: (?:file://)?\S+\.kts?\b"),
    ("dotnet-test", ("Failed!", "Test Run Failed"), r"^Failed!|^Test Run Failed"),
    ("dotnet", ("error ", "Build FAILED", "Could not execute because"),
     r"\berror (?:CS|MSB|NU|NETSDK|FS|BC)\d+|^Build FAILED|^Could not execute because"),
    ("ruby", ("aborted!", "Error)", "Bundler", "Could not find", "bundler: ", "Don't know how to build"),
     r"^rake aborted!|\.rb:\d+:in .*\((?:\w+::)*\w*Error\)$|^Bundler could not|^Could not find .* in |^bundler: "
     r"|^Don't know how to build task"),
    ("minitest", (" assertions, ",), r"^\d+ (?:runs|tests), \d+ assertions, (?:[1-9]\d* failures|0 failures, [1-9]\d* errors)"),
    ("rubocop", ("offense",), r"\b[1-9]\d* offenses? detected"),
    ("phpunit", ("FAILURES!", "ERRORS!", "Failures: ", "Errors: "),
     r"^(?:FAILURES|ERRORS)!|^Tests: \d+, Assertions: \d+.*(?:Failures|Errors): [1-9]"),
    ("pest", (" failed",), r"^\s*Tests:\s+[1-9]\d* failed"),
    ("php", ("Fatal error: ", "Parse error: ", "Could not open input file", "is not defined.", "no commands defined"),
     r"^(?:PHP )?(?:Fatal|Parse) error: |^Could not open input file|\bCommand \".*\" is not defined"
     r"|There are no commands defined"),
    ("composer", ("could not be resolved", "lock file", "Could not find a matching", "Could not find package"),
     r"Your requirements could not be resolved|Your lock file does not contain|Could not find (?:a matching version|package)"),
    ("phpstan", ("[ERROR] Found ",), r"\[ERROR\] Found [1-9]\d* errors?"),
    ("cmake", ("CMake Error", "errors occurred!"), r"^CMake Error|^-- Configuring incomplete, errors occurred!"),
    ("ninja", ("ninja: ", "FAILED: "), r"^ninja: (?:error: |build stopped: )|^FAILED: \S"),
    ("ctest", ("tests failed out of", "tests FAILED:", "FAILED  ]", "No tests were found"),
     r"tests passed, [1-9]\d* tests? failed out of|^The following tests FAILED:|^\[  FAILED  \]|^No tests were found"),
    ("linker", ("undefined reference to", "Undefined symbols for", "ld returned", "linker command failed"),
     r"undefined reference to|^Undefined symbols for|ld returned [1-9]|linker command failed"),
    ("mix-test", (" failure",), r"^\d+ tests?, [1-9]\d* failures?"),
    ("mix", ("** (", "== Compilation error"), r"^\*\* \(\w|^== Compilation error"),
    ("flutter-test", ("Some tests failed", " [E]"), r"Some tests failed\.|^\d\d:\d\d \+\d+.* -\d+: .* \[E\]$"),
    ("flutter", ("Error: ", "error - ", "error \u2022 "), r"^\S+\.dart:\d+:\d+: Error: |^\s*error [-\u2022] \S"),
    ("swift-test", ("' failed", "XCTAssert"), r"^Test Suite '.*' failed|\bXCTAssert\w* failed"),
    ("swift", ("error: ",), r"^\S+\.swift:\d+:\d+: error: |^error: "),
    ("poetry", ("solving failed", "could not be", "oetry could not", "oes not exist"),
     r"version solving failed|^Poetry could not find|^The option \".*\" does not exist|^.* could not be (?:found|parsed)"),
    ("uv", ("\u00d7 ", "error: "), r"^\s*\u00d7 |^error: "),
    ("haskell", ("rror",), r"^\S+\.l?hs:\d+:\d+: error|^Error: \[(?:S|Cabal)-\d+\]|^(?:cabal|stack): "),
    ("pulumi", ("error: ", " errored"), r"^\s*error: |^\s*[1-9]\d* errored"),
    ("nx", ("NX ", "\u2716 "), r"^\s*\u2716\s+\d+/\d+ targets? failed|^\s*NX\s+.*\b(?:failed|Cannot|Could not)"),
    ("turbo", ("run failed", "Failed:"), r"^\s*ERROR\s+run failed|^Failed:\s+\S+#"),
    ("prisma", ("Error: ",), r"^Error: "),
    ("python-tool", ("Error: ", "Exception: "), r"^(?:[a-z_]\w*\.)+[A-Z]\w*(?:Error|Exception): "),
    ("sbt-test", ("TestsFailedException", "Failed tests:"), r"TestsFailedException|^\[error\] Failed tests:"),
    ("bazel-test", ("FAILED", "TIMEOUT"), r"^//\S+\s+(?:FAILED|TIMEOUT)"),
    ("bazel", ("ERROR: ", "FAILED: "), r"^ERROR: |^FAILED: Build did NOT"),
    ("deno-test", ("FAILED | ",), r"^FAILED \| \d+ passed"),
    ("deno", ("error",), r"^error(?:\[\w+\])?: "),
    ("ansible", ("FAILED!", "failed=", "UNREACHABLE!"), r"^fatal: \[|failed=[1-9]|unreachable=[1-9]"),
    ("pre-commit", ("Failed",), r"\.{3,}Failed$"),
    ("prettier", ("[warn] Code style", "[error]"), r"^\[warn\] Code style issues|^\[error\] "),
    ("zig", ("error: ",), r"^\S+\.zig:\d+:\d+: error: |^error: "),
    ("helm", ("Error: ",), r"^Error: "),
    ("cobra", ("nknown command", "nknown flag", "nknown shorthand"), r"^Error: unknown (?:command|flag|shorthand flag)"),
    ("java", ("Exception in thread ", "Error: "),
     r'^Exception in thread "main" |^Error: (?:Could not find or load|Unable to access)'),
    ("cc", ("error: ",), r"^\S+:\d+(?::\d+)?: (?:fatal )?error: |^(?:ld|collect2|clang|gcc|g\+\+): (?:fatal )?error"),
    ("ruff", ("Found ",), r"^Found [1-9]\d* errors?"),
    ("mypy", ("Found ",), r"^Found [1-9]\d* errors? in "),
    ("golangci-lint", ("issues",), r"^[1-9]\d* issues:?$"),
    ("docker", ("ERROR: ", "Error response", "failed to solve", "Cannot connect to"),
     r"^(?:ERROR: |.*Error response from daemon|.*failed to solve|Cannot connect to the Docker daemon)"),
    ("terraform", ("Error: ",), r"^(?:[│|] )?Error: "),
    ("kubectl", ("rror", "to the server"),
     r"^(?:error: |Error from server|The connection to the server|Unable to connect to the server)"),
    ("git", ("husky - ", "FAILED: git"), r"^(?:husky - .*failed|FAILED: git )"),
    ("git", ("fatal: ", "error: ", "[rejected]", "CONFLICT", "merge failed"),
     r"^(?:fatal: |error: | ! \[(?:remote )?rejected\]|CONFLICT \(|Automatic merge failed)"),
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
    "cargo": ("cargo-test", "cargo", "cc"),
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
    "gcc": ("cc", "linker"),
    "g++": ("cc", "linker"),
    "cc": ("cc", "linker"),
    "clang": ("cc", "linker"),
    "clang++": ("cc", "linker"),
    "cmake": ("cmake", "ninja", "cc", "make", "linker"),
    "ninja": ("ninja", "cc", "linker"),
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
    "helm": ("helm", "kubectl"),
    "aws": ("aws",),
    "gcloud": ("gcloud",),
    "gsutil": ("gcloud",),
    "az": ("gcloud",),
    "git": ("git",),
    "pip": ("pip",),
    "pip3": ("pip",),
    "uv": ("uv", "pip", "pytest"),
    "gradle": ("junit", "gradle", "kotlin", "cc"),
    "gradlew": ("junit", "gradle", "kotlin", "cc"),
    "mvn": ("junit", "mvn", "kotlin"),
    "mvnw": ("junit", "mvn", "kotlin"),
    "sbt": ("sbt-test", "sbt"),
    "javac": ("cc",),
    "java": ("java",),
    "kotlinc": ("kotlin",),
    "dotnet": ("dotnet-test", "dotnet"),
    "msbuild": ("dotnet",),
    "rspec": ("rspec", "ruby"),
    "rake": ("minitest", "rspec", "ruby", "rubocop"),
    "rails": ("minitest", "rspec", "ruby"),
    "ruby": ("minitest", "ruby"),
    "rubocop": ("rubocop",),
    "gem": ("pip", "ruby"),
    "phpunit": ("phpunit", "php"),
    "pest": ("pest", "phpunit", "php"),
    "php": ("phpunit", "php"),
    "artisan": ("phpunit", "php"),
    "composer": ("composer", "phpunit", "phpstan", "php"),
    "phpstan": ("phpstan",),
    "ctest": ("ctest",),
    "mix": ("mix-test", "mix"),
    "flutter": ("flutter-test", "flutter"),
    "dart": ("flutter-test", "flutter"),
    "swift": ("swift-test", "swift", "linker"),
    "xcodebuild": ("swift-test", "swift"),
    "stack": ("haskell", "cc"),
    "cabal": ("haskell", "cc"),
    "ghc": ("haskell",),
    "pulumi": ("pulumi",),
    "prisma": ("prisma",),
    "alembic": ("python-tool",),
    "flask": ("python-tool",),
    "celery": ("python-tool",),
    "zig": ("zig",),
    "bazel": ("bazel-test", "bazel", "cc"),
    "bazelisk": ("bazel-test", "bazel", "cc"),
    "deno": ("deno-test", "deno"),
    "ansible-playbook": ("ansible",),
    "prettier": ("prettier",),
}
# Task runners and scripts: what fails below them may be any of these.
_ANYTHING: tuple[str, ...] = (
    "pytest", "unittest", "go-test", "go", "cargo-test", "cargo", "tsc", "eslint", "biome", "jest", "bun-test", "bun", "npm",
    "make", "cc",
    "mypy", "golangci-lint", "gradle", "mvn", "junit", "dotnet-test", "dotnet", "phpunit", "minitest", "ruby", "cmake", "ninja",
    "ctest", "linker", "kotlin", "sbt-test", "sbt", "mix-test", "mix", "phpstan", "rubocop",
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
    "turbo": ("turbo",),
    "nx": ("nx",),
    "hatch": (),
    "poetry": ("poetry",),
    "bundle": ("rspec", "ruby"),
    "pre-commit": ("pre-commit",),
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
    chosen = (*wanted, *[stem for stem in _STEMS if stem in text])
    rules = _CHOSEN.get(chosen)
    if rules is None:
        if len(_CHOSEN) > 1_000:
            _CHOSEN.clear()
        rules = _CHOSEN[chosen] = _possible(chosen)
    for needles, pattern in rules:
        for needle in needles:
            if needle in text:
                if rx(pattern).search(text):
                    return True
                break
    return False


# What most substrings of the rules hold: where it is not in a text they need not be looked for. (No group has such a name.)
_STEMS = ("rror", "RROR", "ail", "AIL")
_CHOSEN: dict[tuple[str, ...], list[tuple[tuple[str, ...], str]]] = {}  # the rules of groups, for a text with these stems


def _possible(chosen: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    """The rules of the groups in `chosen`, with the substrings that a text can hold that has no more stems than these."""
    lacking = [stem for stem in _STEMS if stem not in chosen]
    rules = []
    for group, needles, pattern in RULES:
        if group in chosen:
            left = tuple(needle for needle in needles if not any(stem in needle for stem in lacking))
            if left:
                rules.append((left, pattern))
    return rules


def ends_in_traceback(text: str) -> bool:
    """Is the end of `text` an uncaught Python exception?"""
    at = text.rfind("Traceback (most recent call last)")
    if at < 0:
        return _is_rest_of_traceback(text)
    after = [line for line in text[at:].split("\n")[1:] if line.strip()]
    return any(is_exception(line) for line in after) and any(is_exception(line) for line in tail_lines(text, 4))


def _is_rest_of_traceback(text: str) -> bool:
    """Is all of it the end of one, as `| tail -3` leaves it: lines of code, further in, and the exception?"""
    if len(text) > 4_000 or not is_exception(last_line(text)):
        return False
    lines = [line for line in text.split("\n") if line.strip()]
    return len(lines) > 1 and all(line.startswith(("    ", '  File "')) for line in lines[:-1])


def is_exception(line: str) -> bool:
    """Is the line the last one of a Python traceback: `pkg.SomeError: message`?"""
    return bool(
        rx(
            r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|DoesNotExist|Refused|Failed|NotFound"
            r"|Registered|Invalid\w*|Failure|Configured)(?::|$)"
        ).match(line)
    )
