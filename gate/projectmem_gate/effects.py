"""[H] What a command may change, or teach, if it succeeds: the pairs (type, subject) that freshness goes by.

    edit PATH        a file was written, moved, deleted, formatted ("" = some)    checkout ""  the working tree as a whole
    install MANAGER  packages or tools came or went         login TOOL    credentials may have changed
    env NAME         variables or a file of them            service NAME  a server, container or database was changed
    read PATH        a file's content is now known          build FAMILY  outputs were generated (mends a later run)
    move OLD<tab>NEW  `git mv`, see moves.py (mends nothing by itself)
    git SUBCOMMAND   index, commits, remotes; not files     remote TOOL   something on another machine (gh, ssh, curl -X POST)
    mcp SERVER       a tool of this server was called that only looks, by its name (mends calls of that server alone)
    any PROGRAM      a program that may have changed anything

Looking (ls, grep, git status) and verifying (tests, linters, type checkers) mend nothing and give nothing.
"""

from __future__ import annotations

from projectmem_gate import copies, moves, snippets, tasks
from projectmem_gate.lines import names
from projectmem_gate.programs import PURE, TRIVIAL, is_pure, program
from projectmem_gate.words import is_static, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.commands import Built
    from projectmem_gate.paths import Roots
    from projectmem_gate.scope import Command

Effects = tuple[tuple[str, str], ...]
Pairs = list[tuple[str, str]]

_READERS = names("cat head tail less more bat nl tac sed")
_FILE_TOOLS = names("rm mv cp mkdir rmdir touch ln chmod chown truncate patch rsync install dos2unix unlink shred tee sponge")
_VERIFIERS = names(
    """
    pytest mypy pyright flake8 pylint tox nox jest vitest mocha ava tap eslint tslint stylelint shellcheck hadolint
    yamllint actionlint markdownlint golangci-lint staticcheck govulncheck tsc vue-tsc knip depcheck bandit semgrep
    trivy unittest playwright cypress phpunit rspec rubocop ctest bats act clippy phpstan psalm ktlint swiftlint
    detekt checkstyle vulture deadcode gocyclo ineffassign errcheck codespell cspell hyperfine lychee pyflakes
    pycodestyle pydocstyle radon jscpd
    """
)
_LOOKING_MODULES = names("compileall py_compile json.tool doctest timeit site platform tokenize ast this dis pydoc sysconfig")
_FORMATTERS = names(
    "gofmt goimports gofumpt black isort prettier biome rustfmt shfmt ruff autopep8 yapf dprint taplo stylua clang-format"
)
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
    "brew": "install remove upgrade tap link update unlink reinstall uninstall",
    "gem": "install uninstall update",
    "bundle": "install update add",
    "composer": "install require update remove",
    "mix": "deps.get",
    "conda": "install create remove update env",
    "mamba": "install create remove update",
    "mise": "install use trust up",
    "asdf": "install global local plugin",
    "nvm": "install use",
    "fnm": "install use",
    "volta": "install pin",
    "pre-commit": "install",
    "playwright": "install",
    "dotnet": "restore add",
    "flutter": "pub",
    "dart": "pub",
    "helm": "repo",
    "terraform": "init",
    "tofu": "init",
    "gh": "extension",
    "luarocks": "install",
    "opam": "install",
    "stack": "install",
    "cabal": "install",
    **dict.fromkeys(
        ("apt", "apt-get", "dnf", "yum", "apk", "pacman", "port", "choco", "winget", "snap", "rustup", "corepack"), "*"
    ),
    **dict.fromkeys(("virtualenv", "venv", "easy_install", "cpan"), "*"),
}
_SERVICES = names(
    """
    systemctl service launchctl supervisorctl pm2 kill pkill killall pg_ctl pg_ctlcluster redis-server redis-cli
    mongod nginx colima minikube kind fuser psql mysql sqlite3 duckdb mongosh alembic prisma knex sequelize typeorm
    flyway dbmate
    """
)
_REMOTE = names("gh glab bd aws gcloud az linear vercel netlify fly heroku supabase workmux entire jira")
_LOOKING = names(
    """
    view list status diff checks show describe get ls log logs search info capture explain help watch whoami inspect
    stale ready doctor agent-help version outdated ping
    """
)
_CHECKOUT = names(
    "switch pull merge rebase reset stash cherry-pick revert am clean bisect clone submodule read-tree checkout-index"
)
_GIT_LOOKS = names(
    """
    status log diff show blame grep ls-files ls-tree ls-remote rev-parse rev-list describe shortlog cat-file show-ref
    for-each-ref merge-base name-rev reflog count-objects check-ignore check-attr fsck diff-tree diff-files diff-index
    whatchanged var version help range-diff cherry verify-commit verify-tag symbolic-ref hash-object show-branch
    archive bundle format-patch stripspace
    """
)


def of(built: Built, roots: Roots, written: str) -> Effects:
    """Effects of a built command; `written` is the file it writes as a whole, "" when none."""
    command = built.command
    if command.remote:
        return () if is_pure(command.argv) else (("remote", command.inside[-1].partition(" ")[0] if command.inside else "ssh"),)
    out: Pairs = []
    for _, target in command.writes:
        out += file_edit(roots.name(target, command.cwd)) if is_static(target) else [("edit", "")]
        if not is_static(target):
            out += [("edit", p) for p in _named(target, command, roots, command.cwd)]
    if written and is_static(written):
        out += file_edit(written)
    if built.name and not _asks_for_help(built):
        out += _program(built, roots)
        if ("edit", "") in out:
            out += [("edit", p) for p in command.among]
    return tuple(dict.fromkeys(out))[:32]


# Of what is seldom asked the module is loaded late: every hook process would pay for it.


def _named(word: str, command: Command, roots: Roots, cwd: str) -> list[str]:
    from projectmem_gate.targets import named

    return named(word, command, roots, cwd)


def _below(path: str) -> str:
    from projectmem_gate.targets import below

    return below(path)


def _listed(argv: list[str], roots: Roots, cwd: str) -> tuple[str, ...]:
    from projectmem_gate.targets import listed

    return listed(argv, roots, cwd)


def file_edit(path: str) -> Pairs:
    """Effects of writing one file."""
    name = path.rsplit("/", 1)[-1]
    if name == ".env" or name.startswith(".env.") or name == ".envrc":
        return [("edit", path), ("env", path)]
    return [("edit", path)]


def _asks_for_help(built: Built) -> bool:
    words = built.command.argv[1:]
    return any(w in ("--help", "--version") for w in words[:6]) or (
        len(words) == 1 and words[0] in ("-h", "-V", "-v", "help", "version")
    )


def _program(built: Built, roots: Roots) -> Pairs:
    name, subs, operands = built.name, built.args.subs, built.operands()
    sub, flags = subs[0] if subs else "", built.flags()
    if name == "git":
        return _git(built, roots, sub, operands, flags)
    if name in ("export", "declare", "typeset"):
        return [("env", shown(w).partition("=")[0]) for w in operands]
    if name in ("source", "."):
        return [("env", built.paths[0] if built.paths else "")]
    if name in copies.COPIERS and (files := copies.written(built, operands, flags)) is not None:
        far = name == "rsync" and operands and copies.is_elsewhere(operands[-1])
        return [("remote", name)] if far else [e for p in files for e in file_edit(p)]
    if name in _FILE_TOOLS:
        below = [("edit", p) for path in built.paths if (p := _below(path))] if _all_below(name, flags) else []
        return [*_files(built), *below]
    if name in ("sed", "perl") and any(_in_place(name, f) for f in flags):
        return _files(built)
    if name == "find" and "-delete" in built.command.argv:
        return [("edit", ""), *[("edit", p) for p in _listed(built.command.argv, roots, built.cwd)]]
    if name == "dd":
        return [e for w in built.command.argv if w[:3] == "of=" and is_static(w) for e in file_edit(built.seen(w[3:]))]
    if name in ("tar", "unzip", "7z") and (unpacked := _unpacked(built, name)) is not None:
        return [("any", name), ("edit", unpacked)]
    if name in _CMDLETS:
        return _cmdlet(built, name, operands)
    if name in _READERS:
        return [("read", p) for p in built.paths[:4]]
    if name in PURE or (name in TRIVIAL and not built.command.under) or name == "projectmem":
        return []
    if name in ("docker", "podman", "kubectl", "helm"):
        return _containers(name, sub, subs, operands)
    found = _known(built, name, sub, subs, operands, flags)
    return _script(built, name, operands) if found is None else found


def _in_place(name: str, flag: str) -> bool:
    if flag[:2] == "--":
        return flag.startswith("--in-place")
    if name == "perl":  # a cluster of letters, up to the first that takes the rest: `-0777pi.bak`, `-pie`, not `-Ilib`
        return "i" in next((flag[1:at] for at, c in enumerate(flag) if at and c in "eEIMmFCDVx"), flag[1:])
    return flag[:2] == "-i" or (flag[:2] in ("-n", "-E", "-r", "-s", "-z", "-u") and "i" in flag)


def _files(built: Built) -> Pairs:
    """The files that a command writes by name; where it names them by patterns these, and that it writes what is not known."""
    out = [e for p in built.paths if p != "{}" for e in file_edit(p)]
    words = [w for w in [*built.args.operands, *(built.args.tail or [])] if not is_static(w)]
    if words or not out:
        out.append(("edit", ""))
    return out + [("edit", p) for w in words for p in _named(w, built.command, built.roots, built.cwd)]


_KEEPS = names("--clearCache --clear-cache --cache-clear --no-cache --clear")  # what was kept of earlier runs is thrown away


def _all_below(name: str, flags: list[str]) -> bool:
    """Does it remove folders with all that is in them?"""
    return name in ("rm", "rmdir") and ("--recursive" in flags or "-R" in flags)


def _unpacked(built: Built, name: str) -> str | None:
    """The folder that an archive is unpacked into, "" for one that is not known; None where none is unpacked."""
    words = built.command.argv[1:]
    if name == "tar":
        bundle = words[0] if words and words[0][:2] != "--" else ""
        if "x" not in bundle and "--extract" not in words and "-x" not in words:
            return None
    folder = next((words[i + 1] for i, w in enumerate(words[:-1]) if w in ("-C", "--directory", "-d")), "")
    folder = folder or next((w.partition("=")[2] for w in words if w.startswith("--directory=")), "")
    return built.seen(folder) if folder and is_static(folder) else ""


_CMDLETS = names("set-content add-content out-file remove-item new-item copy-item move-item rename-item clear-content")


def _cmdlet(built: Built, name: str, operands: list[str]) -> Pairs:
    """What a command of PowerShell that handles files writes."""
    places = operands[1:2] if name == "copy-item" else operands[:2] if name in ("move-item", "rename-item") else operands[:1]
    given = [v for o, v in built.args.options if o in ("-literalpath", "-filepath") and v]
    return [("edit", p) for w in places + given for p in _named(w, built.command, built.roots, built.cwd)] or [("edit", "")]


def _git(built: Built, roots: Roots, sub: str, operands: list[str], flags: list[str]) -> Pairs:
    tail = built.args.tail
    if sub in ("checkout", "restore"):
        if "--staged" in flags and "--worktree" not in flags:
            return [("git", "restore")]
        files = tail if tail is not None else operands if sub == "restore" else None
        if files and "." not in files:
            return [("edit", roots.name(shown(w), built.cwd)) for w in files[:16]]
        return [("checkout", "")]
    if sub in ("rm", "mv"):
        plain = all(map(is_static, operands))
        moved = moves.effects(roots, built.cwd, operands, flags) if sub == "mv" and plain else []
        named = [p for w in [*operands, *(tail or [])] for p in _named(w, built.command, roots, built.cwd)]
        return [*[("edit", p) for p in dict.fromkeys([*built.paths, *named])], ("git", sub), *moved]
    if sub == "apply":
        return [] if "--check" in flags or "--stat" in flags else [("checkout", "")]
    second = built.args.subs[1] if len(built.args.subs) > 1 else ""
    if (
        sub in _GIT_LOOKS
        or second in ("list", "show", "get-url", "status")
        or (sub == "clean" and ("-n" in flags or "--dry-run" in flags))
    ):
        return []
    if sub == "reset" and not any(f in flags for f in ("--hard", "--merge", "--keep")):
        return [("git", "reset")]
    if sub in _CHECKOUT:
        return [("checkout", "")]
    if sub in ("branch", "tag", "remote", "worktree", "config") and not operands and not second:
        return []
    if sub == "config" and any(f.startswith(("--get", "-l", "--list", "--show")) for f in flags):
        return []
    return [("git", sub)] if sub else []


# What fetches credentials, or goes to another account or cluster: `aws eks update-kubeconfig`, `kubectl config use-context`.
_CLOUDS = names("aws gcloud az doctl eksctl oc kubectl")
_CREDENTIALS = names("update-kubeconfig get-credentials use-context set-context set-credentials set-cluster kubeconfig")


def _known(built: Built, name: str, sub: str, subs: list[str], operands: list[str], flags: list[str]) -> Pairs | None:
    """Logins, tasks, installers, services, verifiers, remote tools, formatters; None when the program is none of these."""
    words = [*subs, *operands[:2]]
    if any(w in ("login", "signin", "configure", "logout") for w in words[:2]) or (
        sub == "auth" and words[1:2] and words[1] not in ("status", "list", "token")
    ):
        return [("login", name)]
    if name in ("ssh-add", "kinit", "aws-vault", "op", "saml2aws") or (
        name in _CLOUDS and not _CREDENTIALS.isdisjoint([*subs, *operands[:3]])
    ):
        return [("login", name)]
    task = tasks.effects(name, subs, operands) if name in tasks.RUNNERS else None
    if task is not None:
        return task
    installs = _MANAGERS.get(name)
    if installs is not None and (installs == "*" or (sub or (operands or [""])[0]) in installs.split()):
        return [] if sub in ("list", "show", "search", "info", "policy") else [("install", name)]
    if name in _SERVICES:
        return [("service", name)]
    if name in _FORMATTERS:
        return _formatter(built, name, sub, flags, operands)
    if name in _VERIFIERS:
        if "--fix" in flags or "--write" in flags:
            return _rewritten(built, operands)
        return [] if _KEEPS.isdisjoint(flags) else [("build", f"{name} cache")]
    if name in _REMOTE:
        return _remote(name, sub, words, flags)
    if name in ("curl", "wget", "http", "scp", "sftp"):
        return _transfer(built, roots_free=name, flags=flags)
    return _toolchain(built, name, sub, flags)


def _toolchain(built: Built, name: str, sub: str, flags: list[str]) -> Pairs | None:
    if name in ("npm", "pnpm", "yarn", "bun", "pip", "uv", "poetry", "mise", "brew", "conda") and sub:
        looks = sub in _LOOKING or sub in (
            "view",
            "ls",
            "why",
            "config",
            "root",
            "bin",
            "tasks",
            "which",
            "freeze",
            "check",
            "tree",
            "prefix",
            "pm",
            "pack",
        )
        return [] if looks else None
    if name == "cargo":
        if sub in ("fmt", "fix"):
            return [] if "--check" in flags else [("edit", "")]
        return {"run": [("any", "cargo run")], "build": [("build", "cargo build")], "clean": [("build", "cargo clean")]}.get(
            sub, []
        )
    if name == "go":
        own = {"build": [("build", "go build")], "generate": [("any", "go generate")], "run": [("any", "go run")]}
        return own.get(sub, [("edit", "")] if sub in ("fmt", "fix") else [("build", "go clean")] if sub == "clean" else [])
    if name in ("dotnet", "mix", "swift", "flutter", "dart", "zig", "bazel", "sbt", "lein", "stack", "cabal", "rails", "forge"):
        return [] if sub in ("test", "analyze", "lint", "check") else [("build", f"{name} build")] if sub == "build" else None
    if name == "node" and "--test" in flags:
        return []
    if name in ("terraform", "tofu") and sub == "force-unlock":
        return [("service", name)]
    if name in ("terraform", "tofu", "pulumi"):
        return (
            [("remote", name)]
            if sub in ("apply", "destroy", "import", "taint", "state", "up")
            else [("edit", ""), *([("edit", built.cwd)] if built.cwd not in (".", "") else [])]
            if sub == "fmt"
            else []
        )
    return None


def _formatter(built: Built, name: str, sub: str, flags: list[str], operands: list[str]) -> Pairs:
    if name in ("gofmt", "goimports", "gofumpt", "shfmt"):
        writes = "-w" in flags
    elif name in ("prettier", "biome", "clang-format"):
        writes = any(f in flags for f in ("--write", "-w", "--fix", "--apply", "-i"))
    elif name == "ruff":
        writes = "--fix" in flags or (sub == "format" and "--check" not in flags and "--diff" not in flags)
    else:
        writes = not any(f in flags for f in ("--check", "-c", "--diff", "-d", "--check-only", "--list-different"))
    return _rewritten(built, operands) if writes else []


def _rewritten(built: Built, operands: list[str]) -> Pairs:
    """The files and folders that a formatter was told; without any the folder it works in, unless that is the root."""
    words = (
        operands[1:]
        if built.name in ("biome", "dprint", "taplo", "ruff") and operands[:1] and operands[0] in _VERBS
        else operands
    )
    found = [p for w in words if w != "." for p in _named(w, built.command, built.roots, built.cwd)]
    if not found and built.cwd not in (".", "") and built.cwd[:1] != "?":
        found = [built.cwd]
    known = found and all(map(is_static, words)) and words != ["."]
    return [*([] if known else [("edit", "")]), *[("edit", p) for p in dict.fromkeys(found)]]


_VERBS = ("check", "format", "fmt", "lint", "ci")


def _remote(name: str, sub: str, words: list[str], flags: list[str]) -> Pairs:
    if name == "gh" and words[:2] in (["pr", "checkout"], ["repo", "clone"], ["repo", "sync"]):
        return [("checkout", "")]
    if name == "gh" and sub == "api":
        writes = any(o in flags for o in ("--method", "--raw-field", "--field", "--input"))
        return [("remote", name)] if writes else []
    return [] if not words or any(w in _LOOKING for w in words[:3]) else [("remote", name)]


def _transfer(built: Built, *, roots_free: str, flags: list[str]) -> Pairs:
    name = roots_free
    argv = built.command.argv
    out: Pairs = []
    for i, word in enumerate(argv[1:], 1):
        bundle = word[1:] if word[:1] == "-" and word[1:2] != "-" else ""
        if name == "curl" and ("O" in bundle or word == "--remote-name"):
            out += [("edit", built.seen(base)) for url in argv[1:] if (base := _last_of_url(url))] or [("edit", "")]
        elif word == "--output" or (bundle[-1:] == "o" if name == "curl" else word in ("-O", "-o")):
            target = argv[i + 1] if i + 1 < len(argv) else ""
            if is_static(target) and target not in ("", "-", "/dev/null"):
                out.append(("edit", built.seen(target)))
    sends = ("--request", "--data", "--form", "--json", "--data-raw", "--data-binary", "--data-urlencode", "--upload-file")
    if name in ("scp", "sftp", "http") or (name == "curl" and any(o in flags for o in sends)):
        out.append(("remote", name))
    if name == "wget" and not out:
        out.append(("edit", ""))
    return out


def _last_of_url(word: str) -> str:
    """The name under which a file is kept that is fetched from there, "" for what is no address with a name."""
    rest = word.partition("://")[2].partition("?")[0].partition("#")[0]
    return rest.rpartition("/")[2] if is_static(word) else ""


def _containers(name: str, sub: str, subs: list[str], operands: list[str]) -> Pairs:
    verb = subs[1] if sub == "compose" and len(subs) > 1 else sub
    if name == "kubectl" and sub == "config" and not _CREDENTIALS.isdisjoint([*subs, *operands]):
        return [("login", name)]
    if verb in _LOOKING or verb in ("ps", "images", "top", "stats", "config", "events", "port", "template", "api-resources", ""):
        return []
    if verb in ("build", "buildx"):
        return [("build", f"{name} build")]
    if verb in ("login", "logout"):
        return [("login", name)]
    if verb == "pull":
        return [("install", name)]
    if verb == "exec":
        return [("any", f"{name} exec")]
    named = operands[:1] if verb == "run" else operands[-1:]
    return [("service", named[0][:60] if named and is_static(named[0]) else name)]


def _script(built: Built, name: str, operands: list[str]) -> Pairs:
    """Interpreters and unknown programs: anything may have happened, unless what they run says that it only looks."""
    tokens = built.tokens
    if name == "python" and "-m" in tokens[:4] and tokens[-1] != "-m":
        module = tokens[tokens.index("-m") + 1]
        if module in _VERIFIERS or module in _LOOKING_MODULES:
            return []
        if module == "build":
            return [("build", "python -m build")]
        return [("install", module)] if module in ("venv", "ensurepip", "virtualenv") else [("any", module)]
    source = snippets.code(name, built.command.argv, built.command.stdin, operands)
    if source is not None:
        files = snippets.written(source)
        return [("any", name)] if files is None else [e for p in files for e in file_edit(built.seen(p))]
    script = operands[0] if operands and (name in snippets.INTERPRETERS or name in ("bash", "sh", "zsh")) else built.name
    if is_static(script) and ("/" in script or "." in script or script is not built.name):
        base = script.rsplit("/", 1)[-1]
        if base == "manage.py":
            return [] if operands[1:2] in (["test"], ["check"], ["shell"]) else [("service", "manage.py")]
        if tasks.kind(base) == tasks.VERIFY and (name not in snippets.INTERPRETERS or base.startswith(("test_", "runtests"))):
            return []
    return [("any", shown(program(built.family.split(" ")[0] or name)).removeprefix("//")[:60] or "shell")]
