"""The class of a failure: what kind of thing went wrong, which decides what would make another try worth while."""

from __future__ import annotations

from projectmem_gate.lines import clean, command_words, is_own_path, names, program, rx, subcommand
from projectmem_gate.signature import telling_lines
from projectmem_gate.telling import RUNNERS, groups, is_exception, tells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.model import Action, Part

# Lower-case marks in the telling lines, in order of precedence.
_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("command-not-found", ("command not found", "is not recognized as a", "executable file not found", "exec format error")),
    ("missing-dependency", (
        "modulenotfounderror", "no module named", "cannot find module", "cannot find package", "no required module provides",
        "err_module_not_found", "module not found", "can't resolve '", "could not find gem", "can't find crate",
        "missing go.sum entry",
        "cannot find -l", ".h: no such file", ".hpp: no such file", ".h' file not found", "cannot open shared object",
        "could not resolve dependency", "not installed",
        "is not in std",
        "no matching distribution", "run `npm install`", "run npm install", "failed to resolve import",
        "classnotfoundexception",
        "is not in your go.mod", "importerror: cannot import", "could not find a version", "missing peer",
    )),
    ("lock", (
        "index.lock", "could not get lock", "database is locked", "resource temporarily unavailable", "eaddrinuse",
        "address already in use", "port is already allocated", "another process", "waiting for file lock", "text file busy",
        "unable to lock", "could not lock", "state lock", "already running", "is locked by", "another git process",
    )),
    ("timeout", ("timed out after", "execution timed out", "deadline exceeded", "timeoutexpired", "operation timed out",
    "command timed out")),
    ("protected-resource", (
        "protected branch", "read-only file system", "gh006", "gh013", "hook declined", "is protected", "refusing to",
        "repository rule violations", "blocked by policy", "sandbox", "not allowed by", "pre-commit hook", "is archived",
    )),
    ("network", (
        "could not resolve host", "connection refused", "connection reset", "network is unreachable", "name resolution",
        "enotfound",
        "econnrefused", "econnreset", "etimedout", "getaddrinfo", "tls handshake", "502 bad gateway", "503 service",
        "rate limit",
        "http 429", "429 too many", "i/o timeout", "no route to host", "self_signed_cert", "certificate verify failed", "x509:",
        "couldn't connect to server", "failed to connect", "connection timed out", "socket hang up", "could not connect to",
        "the remote end hung up", "fetch failed", "no such host", "server is temporarily",
        "cannot connect to the docker daemon",
    )),
    ("auth", (
        "permission denied", "eacces", "access denied", "accessdenied", "unauthorized", "http 401", "status 401",
        "403 forbidden", "http 403",
        "authentication failed", "could not read username", "credential", "not logged in", "login required", "log in",
        "invalid token",
        "expired token", "token has expired", "bad credentials", "auth login", "publickey", "operation not permitted", "eperm",
        "permissionerror", "not authenticated", "requires authentication", "forbidden", "must be authenticated",
        "401 unauthorized", "need auth", "be logged in", "active account", "required scopes", "returned error: 401",
        "returned error: 403", " denied to ",
    )),
    ("resource", (
        "no space left", "out of memory", "heap out of memory", "cannot allocate memory", "oomkilled", "too many open files",
        "disk quota", "quota exceeded", "memoryerror", "enospc", "emfile", "argument list too long", "signal: killed",
    )),
)  # fmt: skip
# The tool that ran is of another version than the project asks for, or what it is built on is not there.
_TOOLCHAIN = (
    "unsupported engine", "unsupported environment", "unsupported_engine", "node version is incompatible", "node.js version",
    "requires node", "requires a different python", "requires python", "(running go ", "toolchain not available",
    "requires rustc", "java_home", "no 'java' command", "unsupported class file", "by a more recent version of the java",
    "requires xcode", "executable doesn't exist at", "shared libraries", "dyld: ",
)  # fmt: skip
# Said about the command line itself, whatever the program is for.
_MISUSED = (
    "unrecognized subcommand", "unknown command", "unknown flag", "unknown option", "unrecognized option",
    "unrecognized argument",
    "no such option", "missing script", "script not found", "no such command", "unexpected argument",
    "flag provided but not defined",
    "unknown shorthand", "unknown subcommand", "is not a git command", "invalid choice", "unknown json field",
)  # fmt: skip
# Said by tools that are not programs about the arguments they got.
_MISCALLED = (
    "not found",
    "validation",
    "exceeds maximum",
    "eisdir",
    "status code 404",
    "non-uuid",
    "not a prompt-based",
    "required",
)
_USAGE = (
    "usage:", "unknown option", "unrecognized", "unrecognised", "unknown command", "invalid option", "illegal option",
    "unknown flag",
    "no such option", "unexpected argument", "missing script", "script not found", "no rule to make target", "no such command",
    "is not a git command", "invalid choice", "required argument", "unknown shorthand", "no matches found", "syntax error near",
    "parse error near", "unexpected eof while looking", "unknown argument", "invalid argument", "too many arguments",
    "unknown subcommand",
    "is not a known", "no such file or directory", "does not exist", "cannot access", "pathspec", "unknown revision",
    "not a git repository",
    "no such task", "no task ", "unexpected option", "flag provided but not defined", "flag needs an argument",
    "accepts ", "requires at least",
    "no upstream", "missing required", "bad revision", "not a valid", "can't find session", "unknown json field",
    "must be specified",
    "invalid reference", "unmatched", "event not found", "not a directory", "is a directory", "ambiguous argument",
    "expected one of",
    "unterminated", "unknown skill", "inputvalidationerror", "invalid tool parameters", "error: no such",
    "could not find", "needed a single revision",
    "couldn't find", "no configuration file", "specify a command", "bad substitution", "missing argument", "invalid value",
    "no match found", "e404", "http 404", "not found in upstream", "matched no packages", "file not found",
    "invalid command code", "no available formula", "externally-managed-environment",
)  # fmt: skip
_EDIT_MISMATCH = (
    "not found in file", "not been read", "modified since", "unexpectedly modified", "matches of the string",
    "verification failed",
    "expected lines", "old_string", "no changes to make", "are exactly the same", "did not appear", "no replacement",
    "multiple occurrences",
    "failed to find", "does not match", "new syntax error", "string to replace", "hunk", "patch failed",
    "patch does not apply", "could not find",
    "not found in", "must match exactly", "invalid patch", "0 occurrences", "appears more than once",
)  # fmt: skip
_TESTERS = ("pytest", "unittest", "go-test", "jest", "node-test", "bun-test", "playwright", "rspec")
_BUILDERS = ("tsc", "eslint", "biome", "cc", "ruff", "mypy", "golangci-lint", "gradle", "mvn", "dotnet", "cargo", "make")
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
        if "apply_patch verification failed" in text[:400] or "proposed edit has introduced" in text[:200]:
            return "edit-mismatch"
        return _marked(telling) or ("usage" if any(m in telling for m in (*_USAGE, *_MISUSED, *_MISCALLED)) else "unknown")
    if any(m in telling for m in _TOOLCHAIN):
        return "missing-dependency"
    name = program(part) if part is not None else ""
    tested = _tested(action, name, text)
    if tested and not any(m in text.lower() for m in _COLLECTION):
        unbuilt = "[build failed]" in text or "[setup failed]" in text
        return "build" if unbuilt and "--- FAIL" not in text else "test"
    if _not_found(text, telling, exit_code):
        return "command-not-found"
    if not tested and "Traceback (most" not in text and any(m in telling for m in _MISUSED):
        return "usage"
    if _compiled(name, text):
        return _marked(telling, only=("missing-dependency",)) or "build"
    marked = _marked(telling)
    if marked:
        return marked
    if exit_code == 137:
        return "resource"
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
    return low.startswith(("error: ", "unknown ", "unrecognized ", "invalid ", "no such ")) and any(m in low for m in _MISUSED)


def _rest(name: str, part: Part | None, text: str, telling: str, exit_code: int | None) -> str:
    crashed = "Traceback (most recent call last)" in text or any(is_exception(line) for line in telling.split("\n"))
    if not crashed and not _runs_own_code(part, name) and any(m in telling for m in _USAGE):
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
    if crashed or name in _INTERPRETERS or "panic: " in text:
        return "runtime"
    if name in ("pytest", "jest", "vitest", "mocha"):
        return "test" if exit_code in (1, None, 0) else "usage"
    if name not in RUNNERS and any(g in _BUILDERS for g in groups(name)):
        return "build"
    return "runtime" if telling.strip() else "unknown"


def _marked(telling: str, only: tuple[str, ...] = ()) -> str:
    for cls, marks in _MARKS:
        if (not only or cls in only) and any(m in telling for m in marks):
            return cls
    return ""


def _edit(low: str) -> str:
    if any(m in low for m in _EDIT_MISMATCH):
        return "edit-mismatch"
    for cls in ("auth", "protected-resource", "resource"):
        if _marked(low[:600], only=(cls,)):
            return cls
    return "usage" if any(m in low[:600] for m in _USAGE) else "unknown"


def _tested(action: Action, name: str, text: str) -> bool:
    """Does a test runner say that tests failed?"""
    own = groups(name) if name else tuple(g for p in action.parts for g in groups(program(p)))
    return tells([g for g in own if g in _TESTERS], text)


def _compiled(name: str, text: str) -> bool:
    own = (
        [g for g in groups(name) if g in ("tsc", "eslint", "biome", "cc", "mypy", "ruff", "golangci-lint", "cargo", "go")]
        if name
        else []
    )
    return bool(own) and tells(own, text) and "panic: " not in text


def _not_found(text: str, telling: str, exit_code: int | None) -> bool:
    if exit_code == 127 and ("not found" in telling or "no such file" in telling or not telling):
        return True
    return "command not found" in telling or bool(
        ": not found" in text and rx(r"^\S*sh: (?:\d+: |line \d+: )?\S+: not found").search(text)
    )
