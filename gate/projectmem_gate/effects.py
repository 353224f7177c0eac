"""[H] What a command may change, or teach, if it succeeds: the pairs (type, subject) that freshness goes by.

    edit PATH        a file was written, moved, deleted, patched, formatted       install MANAGER  packages or tools came or went
    login TOOL       credentials may have changed          checkout ""   the working tree as a whole (switch, pull, merge, stash)
    env NAME         a variable or a file of variables     service NAME  a server or container was started or stopped
    read PATH        a file's content is now known         build FAMILY  outputs were generated (mends a later run, not a test)
    git SUBCOMMAND   index, commits or remotes, not files  remote TOOL   something on another machine (gh, ssh, curl -X POST)
    any PROGRAM      a program that may have changed anything

Looking (ls, grep, git status) and verifying (tests, linters, type checkers) mend nothing and give nothing.
"""

from __future__ import annotations

from .programs import PURE, is_pure, program
from .words import is_static, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .commands import Built
    from .paths import Roots

_READERS = frozenset("cat head tail less more bat nl tac sed".split())
_VERIFIERS = frozenset(
    """pytest mypy pyright flake8 pylint tox nox jest vitest mocha ava tap eslint tslint stylelint shellcheck hadolint yamllint
    actionlint markdownlint golangci-lint staticcheck govulncheck tsc vue-tsc knip depcheck bandit semgrep trivy unittest
    playwright cypress phpunit rspec rubocop ctest bats act clippy phpstan psalm ktlint swiftlint detekt checkstyle vulture
    deadcode gocyclo ineffassign errcheck codespell cspell hyperfine lychee""".split()
)
_VERIFY_WORDS = ("test", "lint", "check", "typecheck", "type-check", "tsc", "e2e", "spec", "verify", "validate", "vet", "ci", "audit", "coverage")
_BUILD_WORDS = ("build", "compile", "codegen", "generate", "bundle", "gen", "proto", "prebuild", "package", "dist")
_FORMAT_WORDS = ("fmt", "format", "fix", "prettier")
_RUNNERS = frozenset("npm pnpm yarn bun deno make just task mise turbo nx composer rake gulp grunt lerna ng gradle mvn ./gradlew ./mvnw".split())
_MANAGERS = {
    "npm": "install ci uninstall update link audit dedupe rebuild prune",
    "pnpm": "install add remove update up link rebuild dedupe import approve-builds",
    "yarn": "install add remove up upgrade link dedupe",
    "bun": "install add remove update link",
    "pip": "install uninstall download",
    "pipx": "install uninstall upgrade inject",
    "uv": "sync add remove pip lock venv tool",
    "poetry": "install add remove update lock",
    "pdm": "install add remove update sync",
    "pipenv": "install uninstall sync update",
    "cargo": "add install remove update fetch uninstall",
    "go": "get mod install work",
    "rustup": "*",
    "brew": "install remove upgrade tap link update unlink reinstall",
    "apt": "*", "apt-get": "*", "dnf": "*", "yum": "*", "apk": "*", "pacman": "*", "port": "*", "choco": "*", "winget": "*", "snap": "*",
    "gem": "install uninstall update", "bundle": "install update add", "composer": "install require update remove", "mix": "deps.get",
    "conda": "install create remove update env", "mamba": "install create remove update", "mise": "install use trust up", "asdf": "install global local plugin",
    "nvm": "install use", "fnm": "install use", "volta": "install pin", "corepack": "*", "pre-commit": "install", "playwright": "install",
    "dotnet": "restore add", "flutter": "pub", "dart": "pub", "helm": "repo", "terraform": "init", "tofu": "init", "gh": "extension",
    "npx": "", "easy_install": "*", "cpan": "*", "luarocks": "install", "opam": "install", "stack": "install", "cabal": "install",
    "virtualenv": "*", "venv": "*",
}  # fmt: skip
_SERVICES = frozenset("systemctl service launchctl supervisorctl pm2 kill pkill killall pg_ctl pg_ctlcluster redis-server redis-cli mongod nginx colima minikube kind fuser".split())
_CHECKOUT = frozenset("switch pull merge rebase reset stash cherry-pick revert am clean bisect clone".split())
_GIT_INDEX = frozenset("add commit push fetch remote branch tag config worktree gc prune update-index update-ref submodule init notes rm mv sparse-checkout".split())
_DATA = frozenset("psql mysql sqlite3 duckdb mongosh alembic prisma knex sequelize typeorm flyway dbmate".split())
_WRITERS = ("'w'", '"w"', "'a'", '"a"', "'wb'", '"wb"', "'r+'", '"r+"', "write_text", "write_bytes", ".write(", "os.remove", "unlink", "rename(", "replace(os",
            "shutil", "subprocess", "os.system", "mkdir", "makedirs", "rmtree", "writeFile", "appendFile", "rmSync", "execSync", "spawn", "mode='w", "to_csv",
            "savefig", ".save(", "dump(", "extractall", "symlink", "copyFile", "cpSync", "exec(", "Popen", "INPLACE", "json.dump(", "File.write", "touch(")  # fmt: skip

Effects = tuple[tuple[str, str], ...]


def of(built: Built, roots: Roots, written: str) -> Effects:
    """Effects of a built command; `written` is the file it writes as a whole, "" when none."""
    command = built.command
    out: list[tuple[str, str]] = []
    if command.remote:
        return (("remote", "ssh"),) if not is_pure(command.argv) else ()
    for _, target in command.writes:
        if is_static(target):
            path = roots.name(target, command.cwd)
            out.append(("edit", path))
            if _is_env_file(path):
                out.append(("env", path))
        else:
            out.append(("any", "shell"))
    if written and is_static(written) and ("edit", written) not in out:
        out.append(("edit", written))
    if built.name:
        out += _program(built, roots)
    return tuple(dict.fromkeys(out))[:32]


def _is_env_file(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name == ".env" or name.startswith(".env.") or name == ".envrc"


def _program(built: Built, roots: Roots) -> list[tuple[str, str]]:
    name, args = built.name, built.args
    subs = args.subs
    sub = subs[0] if subs else ""
    operands = [w for w in args.operands if w[:1] != "-"]
    flags = [o for o, _ in args.options] + [w for w in args.verbatim if w[:1] == "-"]
    if "--help" in flags or "--version" in flags or operands[:1] == ["--help"]:
        return []
    if name == "git":
        return _git(built, roots, sub, operands, flags)
    if name in ("export", "declare", "typeset", "local"):
        return [("env", shown(w).partition("=")[0]) for w in operands]
    if name in ("source", "."):
        return [("env", built.paths[0] if built.paths else "")]
    if name in ("rm", "mv", "cp", "mkdir", "rmdir", "touch", "ln", "chmod", "chown", "truncate", "patch", "rsync", "install", "dos2unix"):
        return _edits(built) or [("any", name)]
    if name in ("sed", "perl") and any(f[:2] == "-i" or f.startswith("--in-place") or f in ("-pi", "-ni", "-pie") or (f[:2] in ("-n", "-E", "-r", "-p") and "i" in f) for f in flags):
        return _edits(built, last=True) or [("any", name)]
    if name in ("tee",):
        return _edits(built)
    found = _known(built, name, sub, subs, operands, flags)
    if found is not None:
        return found
    if name in _READERS:
        return [("read", p) for p in built.paths[:4]]
    if name in PURE:
        return _edits(built) if name == "find" and "-delete" in flags else []
    return _script(built, name, operands)


def _edits(built: Built, last: bool = False) -> list[tuple[str, str]]:
    paths = built.paths
    if last and len(paths) > 1 and "/" in paths[0] and not _has_suffix(paths[0]):
        paths = paths[1:]
    return [("edit", p) for p in paths]


def _has_suffix(path: str) -> bool:
    return "." in path.rsplit("/", 1)[-1]


def _git(built: Built, roots: Roots, sub: str, operands: list[str], flags: list[str]) -> list[tuple[str, str]]:
    tail = built.args.tail
    if sub in ("checkout", "restore"):
        named = tail if tail is not None else operands if sub == "restore" else None
        if "--staged" in flags and "--worktree" not in flags:
            return [("git", "restore")]
        if named and "." not in named:
            return [("edit", roots.name(shown(w), built.cwd)) for w in named[:16]]
        return [("checkout", "")]
    if sub in ("rm", "mv"):
        return [("edit", p) for p in built.paths] + [("git", sub)]
    if sub == "apply":
        return [] if "--check" in flags or "--stat" in flags else [("checkout", "")]
    if sub == "stash" and built.args.subs[1:2] and built.args.subs[1] in ("list", "show"):
        return []
    if sub == "reset" and ("--soft" in flags or ("--hard" not in flags and "--merge" not in flags and "--keep" not in flags)):
        return [("git", "reset")]
    if sub == "clean" and ("-n" in flags or "--dry-run" in flags):
        return []
    if sub in _CHECKOUT:
        return [("checkout", "")]
    if sub in ("branch", "tag", "remote", "worktree", "config", "submodule") and is_pure(["git", "status"]) and not operands and len(built.args.subs) < 2:
        return []
    if sub == "submodule":
        return [("checkout", "")]
    if sub in _GIT_INDEX:
        return [("git", sub)]
    return []


def _known(
    built: Built, name: str, sub: str, subs: list[str], operands: list[str], flags: list[str]
) -> list[tuple[str, str]] | None:
    """Installers, logins, services, verifiers, builds, remote tools; None when the program is none of these."""
    words = [*subs, *operands[:2]]
    if any(w in ("login", "signin", "configure", "logout") for w in words[:2]) or (sub == "auth" and words[1:2] and words[1] not in ("status", "list", "token")):
        return [("login", name)]
    if name in ("ssh-add", "kinit", "aws-vault", "op", "saml2aws", "gcloud-auth"):
        return [("login", name)]
    task = _task(built, name, sub, subs, operands)
    if task is not None:
        return task
    installs = _MANAGERS.get(name)
    if installs is not None and (installs == "*" or (sub or (operands[0] if operands else "")) in installs.split()):
        if name in ("apt", "apt-get", "brew") and sub in ("list", "show", "search", "info"):
            return []
        return [("install", name)]
    if name in _SERVICES:
        return [("service", (operands or [name])[0][:60])]
    if name in ("docker", "podman", "kubectl", "helm", "docker-compose"):
        return _containers(built, name, sub, subs, operands)
    if name in _VERIFIERS:
        return [("edit", p) for p in built.paths] if "--fix" in flags or "--write" in flags else []
    if name in ("gh", "glab", "bd", "aws", "gcloud", "az", "linear", "vercel", "netlify", "fly", "heroku", "supabase", "workmux", "entire"):
        looks = ("view", "list", "status", "diff", "checks", "show", "ready", "describe", "get", "ls", "log", "logs", "search", "info", "capture", "explain", "help", "watch", "whoami")
        if any(w in looks for w in words[:3]) or not words:
            return []
        if name == "gh" and sub == "pr" and words[1:2] == ["checkout"]:
            return [("checkout", "")]
        if name == "gh" and sub == "api" and not any(o in flags for o in ("--method", "-X", "--raw-field", "--field", "-f", "-F", "--input")):
            return []
        return [("remote", name)]
    if name in ("curl", "wget", "http", "scp", "sftp"):
        if name == "curl" and not any(o in flags for o in ("--request", "-X", "--data", "-d", "--form", "--json", "--upload-file", "--data-raw", "--data-binary")):
            return _edits(built) if "-O" in flags else []
        return [("remote", name)] if name != "wget" else [("any", name)]
    if name in ("gofmt", "goimports", "gofumpt", "black", "isort", "prettier", "biome", "rustfmt", "shfmt", "ruff", "autopep8", "yapf", "dprint", "taplo", "stylua"):
        return _formatter(built, name, sub, operands, flags)
    if name == "cargo":
        return [("any", "cargo run")] if sub == "run" else [("edit", "")] if sub in ("fmt", "fix") and "--check" not in flags else [("build", "cargo build")] if sub == "build" else []
    if name == "go":
        return {"build": [("build", "go build")], "generate": [("build", "go generate")], "run": [("any", "go run")], "fmt": [("edit", "")]}.get(sub, [])
    return None


def _formatter(built: Built, name: str, sub: str, operands: list[str], flags: list[str]) -> list[tuple[str, str]]:
    checks = any(f in ("--check", "-c", "-l", "--diff", "-d", "--check-only", "--list-different") for f in flags)
    if name in ("gofmt", "goimports", "gofumpt", "shfmt"):
        checks = "-w" not in flags
    elif name in ("prettier", "biome"):
        checks = "--write" not in flags and "-w" not in flags and "--fix" not in flags and "--apply" not in flags
    elif name == "ruff":
        checks = checks or (sub == "check" and "--fix" not in flags)
    if checks:
        return []
    return [("edit", p) for p in built.paths if p != "."] or [("edit", "")]


def _task(built: Built, name: str, sub: str, subs: list[str], operands: list[str]) -> list[tuple[str, str]] | None:
    """`npm run X`, `make X`: judged by the name of the task."""
    if name not in _RUNNERS:
        return None
    if name in ("make", "just", "task", "rake", "gulp", "grunt", "gradle", "./gradlew", "mvn", "./mvnw", "ng", "nx", "turbo", "lerna"):
        tasks = [shown(w) for w in (subs[1:] if sub == "run" else subs) + operands if "=" not in w]
    elif sub == "run" and len(subs) > 1:
        tasks = [subs[1]]
    elif sub in ("test", "t", "lint", "check", "build", "fmt"):
        tasks = [sub]
    else:
        return [("any", f"{name} {sub}")] if sub in ("start", "exec", "publish", "create", "init", "deploy") else None if sub else [("any", name)]
    family = f"{name} {' '.join(tasks)}"[:80].strip()
    kinds = {_task_kind(t) for t in tasks} or {"any"}
    if "any" in kinds:
        return [("any", family)]
    out: list[tuple[str, str]] = []
    if "format" in kinds:
        out.append(("edit", ""))
    if "build" in kinds:
        out.append(("build", family))
    return out


def _task_kind(task: str) -> str:
    pieces = task.lower().replace(":", " ").replace("-", " ").replace("_", " ").replace(".", " ").replace("/", " ").split()
    if any(p in _FORMAT_WORDS for p in pieces):
        return "verify" if "check" in pieces else "format"
    if any(p in _VERIFY_WORDS or p.startswith(("test", "lint", "typecheck")) for p in pieces) or "type-check" in task:
        return "verify"
    if any(p in _BUILD_WORDS for p in pieces):
        return "build"
    return "any"


def _containers(built: Built, name: str, sub: str, subs: list[str], operands: list[str]) -> list[tuple[str, str]]:
    verb = subs[1] if sub == "compose" and len(subs) > 1 else sub
    if verb in ("ps", "logs", "images", "inspect", "version", "info", "top", "stats", "get", "describe", "config", "ls", "list", "events", "port", "diff", "explain", "status", "template"):
        return []
    if verb in ("build", "buildx"):
        return [("build", f"{name} build")]
    if verb in ("login", "logout"):
        return [("login", name)]
    if verb == "pull":
        return [("install", name)]
    if verb in ("exec",):
        return [("any", f"{name} exec")]
    return [("service", (operands[-1] if operands and is_static(operands[-1]) else name)[:60])]


def _script(built: Built, name: str, operands: list[str]) -> list[tuple[str, str]]:
    """Interpreters and unknown programs: anything may have happened, unless the code is at hand and only looks."""
    family = built.family.split(" ")[0] if name not in ("python", "node") else name
    if built.args.verbatim and name in ("python", "node", "ruby", "perl", "bun", "deno"):
        if "-m" in built.tokens[:4]:
            module = built.tokens[built.tokens.index("-m") + 1]
            if module in _VERIFIERS or module in ("compileall", "py_compile", "json.tool", "doctest", "timeit", "site", "platform"):
                return []
            return [("install", module)] if module in ("venv", "ensurepip") else [("any", module)]
    elif name in ("python", "node") and "-m" in built.tokens[:4]:
        return []
    code = _code(built, name)
    if code is not None:
        return _from_code(code, built, name)
    if name in _DATA:
        return [("service", name)]
    if name in ("true", "false", ":", ""):
        return []
    if name in ("projectmem",):
        return []
    if any(_task_kind(w.rsplit("/", 1)[-1]) == "verify" for w in (built.name, *operands[:1]) if is_static(w) and ("/" in w or "." in w) and name in ("bash", "sh", "zsh", built.name)) and name not in ("python", "node"):
        return []
    if name == "python" and any(w.rsplit("/", 1)[-1] in ("runtests.py",) or w.rsplit("/", 1)[-1].startswith("test_") for w in operands[:1]):
        return []
    if name == "python" and operands[:1] and operands[0].endswith("manage.py"):
        return [] if operands[1:2] in (["test"], ["check"]) else [("service", "manage.py")]
    return [("any", shown(program(family))[:60] or "shell")]


def _code(built: Built, name: str) -> str | None:
    """Source given on the command line or as a heredoc to an interpreter."""
    words = built.command.argv
    if name in ("python", "node", "ruby", "perl", "bun", "deno", "php"):
        for i, w in enumerate(words[:-1]):
            if w in ("-c", "-e", "-p", "-pe", "-ne", "--eval", "--print", "-r", "-lc") and i:
                return shown(words[i + 1])
        if built.command.stdin[0] == "text" and not built.args.operands:
            return shown(built.command.stdin[1])
    return None


def _from_code(code: str, built: Built, name: str) -> list[tuple[str, str]]:
    if not any(w in code for w in _WRITERS):
        return []
    import re

    pattern = r"""(?:open|Path|writeFileSync|appendFileSync|writeFile)\(\s*['"]([^'"\n]{1,200})['"]"""
    found = [p for p in re.findall(pattern, code) if "{" not in p]
    if not found:  # path = '...' ... open(path, 'w')
        found = re.findall(r"""(?:path|file|fname|filename|fp|p|f)\s*=\s*(?:Path\()?['"]([^'"\n]{1,200}\.\w{1,6})['"]""", code)
    return [("edit", p) for p in dict.fromkeys(found)] or [("any", name)]
