"""What a change can reach: kinds of failure that a kind of change cannot have mended, from what programs read and where they ask.

Each answer is a matter of principle, not of frequency: a compiler reads its own language, a package comes from its own
ecosystem, a command is found on the PATH and not in the sources, an address that does not exist is not in any file of the tree.
"""

from __future__ import annotations

from projectmem_gate.lines import basename, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.history import Record

# Direct runs of compilers and checkers -> what they read. What an error names counts besides (see `freshness`).
_C = ".c .h .cc .cpp .cxx .hh .hpp .s .m"
_JS = ".ts .tsx .mts .cts .js .jsx .mjs .cjs .json .jsonc .vue .svelte .astro .d"
_READS: dict[str, tuple[str, ...]] = {
    name: tuple(suffixes.split())
    for programs, suffixes in {
        "go gofmt goimports golangci-lint staticcheck": f".go .mod .sum .work .proto .tmpl .sql {_C}",
        "cargo rustc clippy-driver": f".rs .toml .lock .proto .sql .graphql .json {_C}",
        "tsc vue-tsc": _JS,
        "mypy pyright pyflakes pycodestyle": ".py .pyi .pyx .ipynb .toml .ini .cfg .json",
        "javac kotlinc": ".java .kt .kts",
        "gcc g++ cc c++ clang clang++": f"{_C} .inc .def .ld",
    }.items()
    for name in programs.split()
}  # fmt: skip
# `go build` and `go run` leave them out; `go vet` and `go test` do not.
_WITHOUT_TESTS = ("go build", "go run", "go install")

_PYTHON = names("pip pipx uv poetry pdm pipenv conda mamba micromamba virtualenv venv ensurepip easy_install hatch rye tox")
_NODE = names("npm pnpm yarn bun npx corepack volta fnm nvm deno lerna")
_GO, _RUBY, _RUST, _PHP = names("go"), names("gem bundle bundler rvm rbenv"), names("cargo rustup"), names("composer pecl")
_ECOSYSTEMS = (_PYTHON, _NODE, _GO, _RUBY, _RUST, _PHP)
# What says that a package is missing, in the words of one ecosystem.
_MISSES: tuple[tuple[tuple[str, ...], frozenset[str]], ...] = (
    (("modulenotfounderror", "no module named", "importerror: cannot import", "no matching distribution"), _PYTHON),
    (("cannot find module '", "cannot find package '", "err_module_not_found", "can't resolve '", "failed to resolve import"),
     _NODE),
    (("no required module provides", "missing go.sum entry", "is not in your go.mod", "is not in std"), _GO),
    (("cannot load such file", "could not find gem", "in locally installed gems", "bundler could not find"), _RUBY),
    (("can't find crate",), _RUST),
    (("vendor/autoload.php",), _PHP),
)  # fmt: skip

_ADDRESS = (
    "does not appear to be a git repository",
    "could not read from remote repository",
    "repository not found",
    "no such remote",
    "no configured push destination",
)
_ADDRESSED = ("remote", "config", "clone", "init", "submodule")

# Files that put a command in place once they are read: start files of shells, and of managers that switch versions by folder.
_ACTIVATES = (".tool-versions", "mise.toml", ".mise.toml", ".envrc", "flake.nix", "shell.nix", "devbox.json", "devenv.nix")
# Builds that put no source, document or setting where there was none.
_COMPILES = ("go build", "go clean", "cargo build", "cargo clean")
_WRITTEN_BY_HAND = (
    ".go", ".rs", ".py", ".ts", ".tsx", ".js", ".jsx", ".java", ".kt", ".rb", ".php", ".c", ".h", ".cpp", ".cs", ".swift",
    ".md", ".mdx", ".rst", ".txt", ".toml", ".yml", ".yaml", ".ini", ".cfg", ".json", ".sh", ".sql", ".html", ".css",
)  # fmt: skip


def is_foreign(record: Record, path: str) -> bool:
    """Is a file at `path` in no language that the compiler or checker which failed reads? False for what is not known."""
    words = record.text.split()
    reads = _READS.get(basename(words[0]).lower()) if words else None
    name = basename(path).lower()
    if reads is None or "." not in name.lstrip("."):
        return False
    if name.endswith("_test.go") and " ".join(words[:2]) in _WITHOUT_TESTS:
        return True
    return "." + name.rpartition(".")[2] not in reads


def is_other_ecosystem(record: Record, manager: str) -> bool:
    """Does this manager install packages of another ecosystem than the one that misses one? Never true of the system's own."""
    text = f"{record.sig} {record.excerpt}".lower()
    wanted = [group for marks, group in _MISSES if any(mark in text for mark in marks)]
    name = basename(manager).lower()
    return len(wanted) == 1 and name not in wanted[0] and any(name in group for group in _ECOSYSTEMS)


def misses_command(record: Record) -> str:
    """The bare name of a program that was typed and is not on the PATH, "" where the failure is another."""
    if record.cls != "command-not-found":
        return ""
    for word in record.text.split()[:3]:
        if "=" in word or "/" in word or "\\" in word:
            continue
        sig = f" {record.sig} "
        if any(said in sig for said in (f" {word}: command not found", f" command not found: {word} ", f" {word}: not found")):
            return word
        if f" '{word}' is not recognized" in sig or f" {word} : The term" in sig:
            return word
    return ""


def activates(path: str) -> bool:
    """Can this file put a command on the PATH by being there?"""
    return basename(path).lower() in _ACTIVATES


def is_misaddressed(record: Record) -> bool:
    """Did git ask a remote that is not there, or not for this account?"""
    low = record.sig.lower()
    return "git " in record.text and (
        any(mark in low for mark in _ADDRESS) or ("repository '" in low and low.endswith("not found"))
    )


def readdresses(kind: str, subject: str) -> bool:
    """May this change make a remote of git reachable?"""
    if kind == "edit":
        return subject.endswith(_ADDRESS_BOOK) or "/.ssh/" in f"/{subject}"
    return kind in ("login", "env", "remote", "service") or (kind == "git" and subject in _ADDRESSED)


_ADDRESS_BOOK = (".gitconfig", ".git/config", ".gitmodules", "/git/config", ".netrc", ".git-credentials")


def is_local(record: Record) -> bool:
    """Was it an address of this machine that did not answer? Any program that was started may be what answers there."""
    said = f"{record.text} {record.sig} {record.excerpt}".lower()
    return any(name in said for name in _THIS_MACHINE)


_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]", "::1:", "0.0.0.0", ".sock", ".s.pgsql.")  # noqa: S104


def cannot_make(build: str, record: Record) -> bool:
    """Does this build only compile, while what is missing is a file that people write?"""
    return build in _COMPILES and any(path.lower().endswith(_WRITTEN_BY_HAND) for path in record.paths)


def is_tool_call(record: Record) -> bool:
    """Is it a call of a harness's own tool (its name, then its arguments), not a program's?"""
    head, _, body = record.text.partition(" ")
    return body[:2] in ('{"', "{}") and head[:1].isalpha()


def mends_itself(record: Record) -> bool:
    """Did it change the files that it complained of (a formatter as a hook), so that the next try tells? Not twice in a row."""
    return record.identical < 2 and any(mark in f"{record.sig} {record.excerpt}".lower() for mark in _MENDS_ITSELF)


_MENDS_ITSELF = ("files were modified by this hook", "file was modified by this hook")


def is_same_task(record: Record, ran: str) -> bool:
    """Did only the failed work itself run, in some other way (`NODE_OPTIONS=... npm run build`)? That is a remedy, and no cure of
    it: memory and room are as short as before. For other classes a program may leave behind what it failed on."""
    work, words = [w for w in record.family.split() if w != "run"], ran.split()
    if record.cls != "resource" or not words:
        return False
    return work[: len(words)] == words or words[: len(work)] == work != []


def mcp_server(record: Record) -> str:
    """The server whose tool was called (`db query {"sql":...}`), "" for what is no call of a server's tool."""
    server, _, rest = record.text.partition(" ")
    name, _, body = rest.partition(" ")
    return server if body[:1] == "{" and record.family == f"{server} {name}"[:80] else ""


def is_answered(record: Record, kind: str, subject: str) -> bool:
    """Was another tool of the same server called? A server keeps a state (a page, a connection), and any call may change it; no
    call makes the arguments of another right."""
    return kind in ("remote", "mcp") and record.cls != "usage" and subject != "" and subject == mcp_server(record)


def named_in_call(record: Record, path: str) -> bool:
    """Is one of the call's arguments the name of this file or of a folder above it: `{"skill":"x"}` and `skills/x/SKILL.md`?"""
    given = set(record.text.split('"')[1:])
    parts = path.split("/")
    return any(part in given or part.partition(".")[0] in given for part in parts if len(part) > 2)


def of_session(record: Record) -> bool:
    """Does the call speak of something that each session has for itself: its tasks, its background commands?"""
    return is_tool_call(record) and record.text[:4].lower() in ("task", "todo", "kill", "bash", "send", "wait")
