"""The class of a failure: what kind of thing went wrong, which decides what would make another try worth while."""

from __future__ import annotations

from projectmem_gate.failure_marks import EDIT_MISMATCH, ERRNO, MARKS, MISARGUED, MISCALLED, MISUSED, TOOLCHAIN, USAGE
from projectmem_gate.lines import clean, command_words, is_own_path, names, program, rx, subcommand
from projectmem_gate.signature import telling_lines
from projectmem_gate.telling import RUNNERS, groups, is_exception, tells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.model import Action, Part

_TESTERS = (
    "pytest", "unittest", "go-test", "jest", "node-test", "bun-test", "playwright", "rspec", "junit", "dotnet-test", "minitest",
    "phpunit", "pest", "ctest", "cargo-test", "mix-test", "deno-test", "bazel-test",
    "flutter-test", "swift-test", "sbt-test",
)  # fmt: skip
_BUILDERS = ("tsc", "eslint", "biome", "cc", "ruff", "mypy", "golangci-lint", "gradle", "mvn", "dotnet", "cargo", "make")
_CURL_UNREACHED = (5, 6, 7, 28, 35, 52, 55, 56)
_INTERPRETERS = names("python node deno ruby perl php java tsx ts-node bash sh zsh")
_COLLECTION = (
    "errors during collection",
    "error during collection",
    "error collecting",
    "errors collecting",
    "importing test module",
    "no tests collected",
)


def classify(action: Action, output: str, exit_code: int | None, part: Part | None = None, error_kind: str = "") -> str:
    """The failure's class (one of model.CLASSES). `part` is the one that failed, where known."""
    if error_kind == "timeout" or exit_code == 124:
        return "timeout"
    text = clean(output)
    kind = part.kind if part is not None else action.kind
    telling = "\n".join(telling_lines(text)).lower()
    if kind in ("edit", "write", "patch"):
        return _edit(text.lower())
    if kind != "sh":
        if "enoent" in telling and "spawn" in telling:
            return "runtime"  # the harness could not start what its tool stands on
        if "apply_patch verification failed" in text[:400] or "proposed edit has introduced" in text[:200]:
            return "edit-mismatch"
        marks = MISARGUED if kind == "mcp" else (*USAGE, *MISUSED, *MISCALLED)
        return _marked(telling) or ("usage" if any(m in telling for m in marks) else "unknown")
    name = program(part) if part is not None else ""
    if any(m in telling for m in TOOLCHAIN):
        return "missing-dependency"
    if name in ("terraform", "tofu") and ".tf line" in text:
        return "build"  # what it says is about the files
    tested = _tested(action, name, text)
    if tested and not any(m in text.lower() for m in _COLLECTION):
        unbuilt = "[build failed]" in text or "[setup failed]" in text
        return "build" if unbuilt and "--- FAIL" not in text else "test"
    if _not_found(text, telling, exit_code):
        return "command-not-found"
    if not tested and "Traceback (most" not in text and any(m in telling for m in MISUSED):
        return "usage"
    if ": unbound variable" in telling or ": parameter null or not set" in telling:
        return "runtime"  # a shell's word about its environment, in the form of a compiler's
    if _compiled(name, text):
        # CMake tells over several lines what it is.
        return _marked(text.lower() if name == "cmake" else telling, only=("missing-dependency",)) or "build"
    marked = _marked(telling)
    if marked:
        return marked
    if exit_code == 137:
        return "resource"
    if name == "curl" and exit_code in _CURL_UNREACHED:
        return "network"  # with -s it says no more than that
    if "can't open file" in telling and name == "python":
        return "usage"
    if exit_code in (143, 142):
        return "timeout"
    if tested:
        return "test"
    return _rest(name, part, text, telling, exit_code)


def _runs_own_code(part: Part | None, name: str) -> bool:
    """Is it a script or program of the project? What it complains of may be its own fault, not the caller's."""
    if part is None:
        return False
    words = command_words(part)
    if name in _INTERPRETERS:
        return len(words) > 1 and "." in words[1] and not words[1].startswith("-")
    return is_own_path(words[0]) if words else False


def misused(line: str) -> bool:
    """Does a program complain in this line about how it was called?"""
    low = line.lower()
    return low.startswith(("error: ", "unknown ", "unrecognized ", "invalid ", "no such ")) and any(m in low for m in MISUSED)


def _rest(name: str, part: Part | None, text: str, telling: str, exit_code: int | None) -> str:
    crashed = "Traceback (most recent call last)" in text or any(is_exception(line) for line in telling.split("\n"))
    if not crashed and not _runs_own_code(part, name) and any(m in telling for m in USAGE):
        return "usage"
    if (
        name in ("go", "cargo", "npm", "pnpm", "yarn", "bun", "make", "mise", "just", "tox", "nox", "gradle", "mvn")
        and part is not None
    ):
        words = f"{subcommand(part)} {part.text}".lower()
        if "test" in words or "e2e" in words or "spec" in words:
            return "test"
        if any(w in words for w in ("build", "lint", "check", "compile", "typecheck", "vet", "fmt", "format", "tsc", "docs")):
            return "build"
    if name in ("docker", "podman", "docker-compose") and part is not None and _builds_image(part.text.split()[1:4]):
        return "build"
    if crashed or name in _INTERPRETERS or "panic: " in text:
        return "runtime"
    if name in ("pytest", "jest", "vitest", "mocha"):
        return "test" if exit_code in (1, None, 0) else "usage"
    if name not in RUNNERS and any(g in _BUILDERS for g in groups(name)):
        return "build"
    return "runtime" if telling.strip() else "unknown"


def _builds_image(words: list[str]) -> bool:
    """`docker build`, `docker compose build`; not `docker run x build`."""
    return "build" in words and not any(w in ("run", "exec") for w in words[: words.index("build")])


def _marked(telling: str, only: tuple[str, ...] = ()) -> str:
    for cls, marks in MARKS:
        if not only or cls in only:
            for mark in marks:  # a generator and a call for each of them are most of what a failure's class costs
                if mark in telling and _says(mark, telling):
                    return cls
    return ""


def _says(mark: str, telling: str) -> bool:
    """Is the mark there? A code of the system only as a word: `FileNotFoundError` holds `enotfound`."""
    at = telling.find(mark)
    while at > 0 and mark in ERRNO and telling[at - 1].isalpha():
        at = telling.find(mark, at + 1)
    return at >= 0


def _edit(low: str) -> str:
    if any(m in low for m in EDIT_MISMATCH):
        return "edit-mismatch"
    for cls in ("auth", "protected-resource", "resource"):
        if _marked(low[:600], only=(cls,)):
            return cls
    return "usage" if any(m in low[:600] for m in USAGE) else "unknown"


def _tested(action: Action, name: str, text: str) -> bool:
    """Does a test runner say that tests failed?"""
    own = groups(name) if name else tuple(g for p in action.parts for g in groups(program(p)))
    return tells([g for g in own if g in _TESTERS], text)


def _compiled(name: str, text: str) -> bool:
    own = [g for g in groups(name) if g in _COMPILERS] if name else []
    return bool(own) and tells(own, text) and "panic: " not in text


_COMPILERS = (
    "tsc", "eslint", "biome", "cc", "mypy", "ruff", "golangci-lint", "cargo", "go", "kotlin", "sbt", "dotnet", "linker",
    "rubocop", "phpstan", "zig", "swift", "bazel", "cmake", "haskell", "flutter",
)  # fmt: skip


def _not_found(text: str, telling: str, exit_code: int | None) -> bool:
    if exit_code == 127 and ("not found" in telling or "no such file" in telling or not telling):
        return True
    return "command not found" in telling or bool(
        ": not found" in text and rx(r"^\S*sh: (?:\d+: |line \d+: )?\S+: not found").search(text)
    )
