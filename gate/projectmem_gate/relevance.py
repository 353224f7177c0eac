"""Which files and programs can matter to a failure: small predicates over paths and the record's own words."""

from __future__ import annotations

from projectmem_gate import reach
from projectmem_gate.lines import basename, is_own_path, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.history import Record

_DOCUMENTS = (".md", ".mdx", ".rst", ".adoc", ".txt", ".patch", ".diff")
_DOCUMENT_NAMES = ("license", "licence", "notice", "authors", "changelog", "codeowners", "copying")
_CONFIG = (
    ".toml",
    ".yaml",
    ".yml",
    ".ini",
    ".cfg",
    ".lock",
    ".nix",
    ".mk",
    ".gradle",
    ".kts",
    ".properties",
    ".gemspec",
    ".sum",
    ".mod",
)
_CONFIG_NAMES = (
    "makefile", "gnumakefile", "justfile", "dockerfile", "containerfile", "gemfile", "rakefile", "procfile", "brewfile",
    "pipfile",
    "vagrantfile", "jenkinsfile", "package.json", "composer.json", "deno.json", "tsconfig.json", "package-lock.json", ".envrc",
    ".tool-versions", ".nvmrc", ".python-version", ".ruby-version", ".npmrc", ".yarnrc", "pom.xml", "conftest.py", "setup.py",
    "cmakelists.txt", "requirements.txt", "constraints.txt", "install.sh", "setup.sh", "bootstrap.sh",
)  # fmt: skip
_PROFILES = (".zshrc", ".bashrc", ".profile", ".bash_profile", ".zprofile", ".zshenv", ".envrc", ".env", "config.fish")

# Folders in which everybody puts everything: working there says nothing about a file.
SHARED = ("/", "/tmp", "/private/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/Users")  # noqa: S108

# Programs that are not built in the workspace: editing its sources cannot teach them another option.
_EXTERNAL = names(
    """
    git gh docker podman kubectl helm terraform aws gcloud az npm pnpm yarn bun npx make cargo go rustc python pip uv
    poetry ruff black mypy pytest eslint prettier tsc node deno java mvn gradle brew apt apt-get grep rg sed awk find
    ls cat head tail jq yq curl wget ssh scp rsync tar zip unzip ps kill lsof tmux psql mysql sqlite3 redis-cli
    openssl base64 xargs sort uniq wc cut tr mise asdf just task rtk golangci-lint gofmt goimports biome vitest jest
    claude codex gemini sleep date chmod chown mkdir cp mv rm test diff tree stat which env printf echo cd read glob
    grep webfetch websearch
    """
)
_DOC_TOOLS = (
    "lint",
    "prettier",
    "markdown",
    "docs",
    "spell",
    "vale",
    "mkdocs",
    "sphinx",
    "format",
    "fmt",
    "biome",
    "doctest",
    "pre-commit",
)


def is_document(path: str) -> bool:
    """Prose, and patches that lie about: compilers and tests seldom read them."""
    low = basename(path).lower()
    if low in _CONFIG_NAMES or low.startswith("requirements"):
        return False
    return low.endswith(_DOCUMENTS) or low.split(".", 1)[0] in _DOCUMENT_NAMES


def is_config(path: str) -> bool:
    """Manifests, lock files, task files, container and tool settings."""
    low = basename(path).lower()
    return (
        low in _CONFIG_NAMES
        or low.endswith(_CONFIG)
        or low.startswith(("requirements", "dockerfile", "tsconfig", ".env", "environment."))
    )


def is_profile(path: str) -> bool:
    """Shell start files, which set PATH and variables."""
    return basename(path).lower() in _PROFILES


def is_lock_file(path: str) -> bool:
    """Files whose presence is a lock."""
    low = basename(path).lower()
    return low.endswith((".lock", ".lck", ".pid")) or low in ("lock", "lockfile")


def is_scratch(path: str) -> bool:
    """Outside the project, in a temporary folder, or an agent's own notes: no program of the project depends on it."""
    p = path.replace("\\", "/")
    return p.startswith(("/tmp/", "/private/tmp/", "/var/tmp/", "/var/folders/", "/private/var/folders/", "/dev/")) or (  # noqa: S108
        "/.claude/" in f"/{p}" and ("/plans/" in p or "/todos/" in p)
    )


def works_beside(record: Record, path: str) -> bool:
    """Does the command run in a scratch folder above this path, or a program in the folder of it, so that the file may be one
    that it reads?"""
    ran = [note.partition(",")[0].partition(" ")[0].rstrip(";") for note in record.text.split("  # in ")[1:]]
    if any(is_scratch(f"{folder}/") and folder not in SHARED and path.startswith(f"{folder}/") for folder in ran):
        return True
    if not names_own_program(record):
        return False
    folder = path.rpartition("/")[0]
    return any(is_scratch(p) and p.rpartition("/")[0] == folder for p in record.paths)


def mentions(record: Record, path: str) -> bool:
    """Does the record name this path: among its paths, in its command, or in what it printed?"""
    if not path:
        return False
    if path in record.paths or any(path.startswith(f"{p.rstrip('/')}/") for p in record.paths if p not in ("", ".")):
        return True
    name = basename(path)
    if len(name) < 3:
        if path[:1] != "/":
            return False
        name = path  # a short name says little, a whole path does
    return any(_has_name(text, name) for text in (record.text, record.sig, record.excerpt))


def mentions_name(text: str, path: str) -> bool:
    """Does the text hold the last name of this path?"""
    name = basename(path)
    return len(name) > 1 and _has_name(text, name)


def _has_name(text: str, name: str) -> bool:
    """`name` in `text` as a whole file name, not as part of a longer one."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() or before in ("_", "-")) and not (after.isalnum() or after in ("_", "-")):
            return True
        at = text.find(name, at + 1)
    return False


def reads_documents(record: Record) -> bool:
    """Is it a checker of formatting, prose or documentation, or a task that may run one?"""
    low = f"{record.family} {record.text}".lower()
    return any(tool in low for tool in _DOC_TOOLS) or low.startswith(
        ("make", "npm run", "pnpm", "yarn", "bun run", "mise", "just", "task")
    )


def names_own_program(record: Record) -> bool:
    """Does the command run a program that may be built from this workspace (a script, `./x`, an unfamiliar name)?"""
    if reach.is_tool_call(record):
        return False
    words = complainer(record) or record.family.split() or record.text.split()
    if not words:
        return True
    first = words[0].strip("'\"")
    if is_own_path(first):
        return True
    name = basename(first).lower()
    if name in _STARTERS:
        return any("." in w or w == "run" for w in words[1:3]) or name == "npx"
    return name not in _EXTERNAL


def asks_elsewhere(record: Record) -> bool:
    """Does the program answer from another machine or from the system, whatever the project's files hold?"""
    return basename((record.text.split() or [""])[0]).lower() in _ELSEWHERE


def complainer(record: Record) -> list[str]:
    """The words before the one that the error quotes: `rtk bun run test`: unrecognized subcommand 'bun' is rtk's complaint."""
    words = record.text.split()
    for i, word in enumerate(words):
        if i and any(f"{q}{word}{e}" in record.sig for q, e in ("''", '""', "``", "`'")):
            return words[:i]
    return []


_ELSEWHERE = names(
    """
    gh glab curl wget ssh scp brew apt apt-get apk dnf yum pacman aws gcloud az psql mysql redis-cli systemctl launchctl ps
    kill pkill lsof xcode-select xcrun security defaults
    """
)
_STARTERS = names("python python3 node deno ruby perl php java tsx ts-node go cargo bun npx dotnet bash sh zsh")
