"""What a text is about besides its words: its kind, the errors, tools, ecosystems and files it names. Pure; on the hook's path.

The same exception name in another ecosystem, the same command with another operand, a file beside the one that is meant: words
and vectors see them as near. Structure tells them apart. Everything here is a set of plain strings, so that two texts can
be compared.
"""

from __future__ import annotations

import re

from projectmem_gate.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS = ("path", "command", "error", "prose")
HEAD = 400  # characters of a text that are looked at

# ecosystem -> words that show it: languages, frameworks and tools.
_ECOSYSTEMS = {
    "python": "python python3 pip pip3 pytest py django flask fastapi uvicorn celery mypy ruff poetry uv conda tox asyncio "
    "pandas "
    "numpy sqlalchemy alembic psycopg2 torch sklearn jupyter httpx requests pydantic gunicorn black",
    "node": "node nodejs npm npx yarn pnpm jest vitest ts tsx js jsx typescript javascript tsc eslint prettier webpack vite "
    "next react "
    "vue express playwright cypress storybook electron deno bun",
    "rust": "rust cargo rustc clippy rs",
    "go": "go golang gofmt",
    "jvm": "java javac mvn maven gradle kotlin scala spark jvm jdk jar surefire",
    "ruby": "ruby rails bundle bundler gem rspec rake rb",
    "php": "php composer laravel phpunit",
    "dotnet": "dotnet nuget csharp",
    "beam": "elixir erlang mix ecto phoenix iex rebar3",
    "haskell": "haskell ghc cabal",
    "perl": "perl cpan cpanm",
    "c": "gcc clang cmake make ld ctest valgrind gdb",
    "container": "docker dockerfile compose podman container",
    "kubernetes": "kubernetes kubectl helm k8s pod",
    "git": "git",
    "postgres": "postgres postgresql psql psycopg2 pg_dump",
    "mysql": "mysql mariadb",
    "sqlite": "sqlite sqlite3",
    "redis": "redis",
    "mongodb": "mongodb mongo",
    "kafka": "kafka",
    "cloud": "terraform aws ansible s3 boto3",
    "web-server": "nginx apache2 apache",
    "mobile": "android ios adb xcode flutter swift",
}
_OF_WORD: dict[str, set[str]] = {}
_PLATFORMS = {
    "windows": "windows powershell win32 cmd",
    "macos": "macos darwin mac homebrew osx",
    "linux": "linux ubuntu debian alpine",
}
_LANGUAGES = frozenset("python node rust go jvm ruby php dotnet beam haskell perl c mobile".split())
_FRAMEWORKS = frozenset(
    """pytest unittest django flask fastapi celery sqlalchemy pandas numpy torch jest vitest mocha react vue express next
    playwright cypress webpack vite rails rspec laravel phpunit spring junit surefire tokio gin electron storybook""".split()
)
# Words that stand in front of a program without being it.
_LAUNCHERS = frozenset("sudo env time nice nohup npx bunx uvx exec command".split())
_SAME_PROGRAM = {"pip3": "pip", "python3": "python", "docker-compose": "docker compose", "py.test": "pytest", "nodejs": "node",
                 "gradlew": "gradle", "mvnw": "mvn"}  # fmt: skip
_PROGRAMS = frozenset(
    """git docker docker-compose podman kubectl helm npm npx yarn pnpm node python python3 pip pip3 pytest uv uvx poetry conda
    tox make cmake ctest cargo rustc go gofmt mvn gradle java javac ruff mypy black eslint prettier tsc jest vitest alembic psql
    pg_dump mysql redis-cli sqlite3 curl wget grep rg find sed awk tar rsync ssh scp systemctl journalctl terraform ansible
    ansible-playbook aws gh bash sh source export chmod chown ls cat cp mv rm du df lsof tail head sort jq openssl crontab
    dotnet composer bundle rake rails rspec brew apt apt-get twine gdb strace perf valgrind sudo env unset mkdocs az gcloud glab
    pulumi tofu wrangler bazel bazelisk ninja sbt lein cabal zig dart flutter swift mix deno bun nx turbo prisma playwright php
    phpunit artisan manage.py perl ruby rustup golangci-lint gofumpt goimports protoc celery flask uvicorn gunicorn pdm pipx pixi
    mariadb mysqldump ssh-keygen mkdir rmdir ln touch wc egrep fgrep ffmpeg""".split()
)
# Programs whose first operand is a command of its own.
_WITH_SUBCOMMAND = frozenset(
    """git docker podman kubectl helm npm yarn pnpm pip uv poetry conda cargo go alembic terraform gh dotnet composer bundle
    systemctl aws brew apt apt-get make az gcloud glab pulumi tofu wrangler bazel dart flutter mix deno bun nx turbo prisma rustup
    pdm pipx pixi artisan manage.py rails""".split()
)
# What runs another program, so that the other one is the command: with the words between.
_RUNNERS = {
    "bundle": ("exec",), "poetry": ("run",), "pipenv": ("run",), "pdm": ("run",), "uv": ("run",), "pnpm": ("exec",),
    "yarn": ("exec",), "python": ("-m",), "python3": ("-m",),
}  # fmt: skip
_SCRIPT_RUNNERS = frozenset("bash sh zsh python python3 php ruby node perl".split())
_RESOURCES = {
    name: kind
    for kind, names in {
        "deployment": "deploy deployment deployments",
        "service": "svc service services",
        "pod": "po pod pods",
        "namespace": "ns",
    }.items()
    for name in names.split()
}
_ENGLISH = frozenset(
    """the a an to is are was were does do did how which what where who why when my we i it not cannot can't of that from
    with""".split()
)
_EXTENSIONS = (
    "py|js|ts|tsx|jsx|mjs|cjs|go|rs|java|kt|rb|php|c|h|cc|cpp|cs|swift|sh|bash|sql|yml|yaml|toml|json|md|mdx|txt|cfg|ini|lock|"
    "tf|html|css|scss|vue|env|xml|gradle|proto|ipynb|dockerfile|conf|csv"
)
_COMPILED: dict[str, re.Pattern[str]] = {}
_SOURCES = {
    "name": r"\b[A-Za-z_][\w.]*(?:Error|Exception|Warning|Violation|Failure|Mismatch)\b|\bE[A-Z]{4,}\b|\bE[0-9]{4}\b"
    r"|\b[A-Z]{2,}[0-9]{3,5}\b|\b[A-Z]{3,}(?:_[A-Z0-9]+)+\b",
    "path": rf"(?<![\w:/])(?:~|\.{{0,2}})?/?(?:[\w@.+-]+/)+[\w@.+-]+|\b[\w+-]+\.(?:{_EXTENSIONS})\b",
    "word": r"[A-Za-z][A-Za-z0-9_+#-]*",
    "code": r"(?i)\b(?:errno|error|exit code|exit status|exited with code|signal|status|http|http error)\s*:?\s*(\d{1,4})\b"
    r"|\b([45]\d\d)(?=\s+[A-Z])",
    "volatile": r"'[^']*'|\"[^\"]*\"|`[^`]*`|\b\d[\w.:]*|0x[0-9a-f]+|(?:[\w.-]*/)+[\w.-]*",
    "error": r"(?i)\b(?:error|err!|exception|fatal|panic|failed|traceback|warning|denied|refused|not found|cannot|could not"
    r"|invalid|unable to|timed out|exceeded|unexpected|undefined|unresolved|unknown)\b",
    "labelled": r"(?i)^.{0,60}?(?:\b(?:error|err!|exception|fatal|panic|warning|failed|emerg|errno \d+)\b[^:]{0,30}:|\*\*\*"
    r"|\[emerg\]|\b(?:error|fatal|npm err!|npm warn|panic)\b)",
    "where": r"(?::\d+)+$|\s+line\s+\d+$",
}


def _re(name: str) -> re.Pattern[str]:
    """Compiled on first use: importing this module must cost nothing."""
    if name not in _COMPILED:
        _COMPILED[name] = re.compile(_SOURCES[name])
    return _COMPILED[name]


class Structure(Value):
    """What a text names.

    ran         the command of which it is told that it failed, else "";  failed: whether there is one;  said: how it failed
    starts      the program with its subcommand that the text begins with, whatever follows, else ""
    codes       numbers of errors: `[Errno 98]`, `exit code 137`, `502 Bad Gateway`
    kind        one of KINDS;  names: errors, in lower case without their module (`connectionerror`, `ts2307`)
    ecosystems, platforms   that its words show
    languages   those ecosystems that are languages;  frameworks, tools: libraries and programs that it names
    files       last parts of the paths it names;  paths: the whole of them, without a leading `./`
    program     of a command with its subcommand (`git push`), else "";  operands, options: of that command
    """

    __slots__ = (
        "codes",
        "ecosystems",
        "failed",
        "files",
        "frameworks",
        "kind",
        "languages",
        "names",
        "operands",
        "options",
        "paths",
        "platforms",
        "program",
        "ran",
        "said",
        "starts",
        "tools",
    )

    def __init__(
        self,
        kind: str,
        names: Iterable[str],
        ecosystems: Iterable[str],
        platforms: Iterable[str],
        paths: Iterable[str],
        program: str = "",
        operands: Iterable[str] = (),
        options: Iterable[str] = (),
        words: Iterable[str] = (),
        codes: Iterable[str] = (),
        ran: str = "",
        said: str = "",
        starts: str = "",
    ) -> None:
        self.ran, self.failed, self.said, self.starts = ran, bool(ran), said, starts
        self.codes = frozenset(codes)
        self.kind, self.names, self.program = kind, frozenset(names), program
        self.ecosystems, self.platforms = frozenset(ecosystems), frozenset(platforms)
        self.languages = self.ecosystems & _LANGUAGES
        self.frameworks, self.tools = frozenset(words) & _FRAMEWORKS, frozenset(words) & _PROGRAMS
        self.paths = frozenset(paths)
        self.files = frozenset(p.rsplit("/", 1)[-1] for p in self.paths)
        self.operands, self.options = frozenset(operands), frozenset(options)


def of(text: str) -> Structure:
    """The structure of a text. Total: any string has one.

    A text that begins with a command and says that it failed (`make test failed (build): ...`) has that command's program too.
    """
    head = text[:HEAD].strip()
    words = [w.lower() for w in _re("word").findall(head)]
    names = {m.rsplit(".", 1)[-1].lower() for m in _re("name").findall(head)}
    codes = {a or b for a, b in _re("code").findall(head)}
    paths = {_plain(p) for p in _re("path").findall(head)}
    paths.discard("")
    ran, failed, rest = head.partition(" failed (")
    program, operands, options = _command(ran, bool(failed))
    kind, starts = _kind(head, words, names, program), program
    if kind != "command" and not failed:
        program, operands, options = "", [], []
    shown, said = _shown(words, _PLATFORMS), rest.partition("): ")[2].partition(" Worked: ")[0]
    return Structure(
        kind,
        names,
        ecosystems(words, paths),
        shown,
        paths,
        program,
        operands,
        options,
        words,
        codes,
        ran if failed else "",
        said,
        starts,
    )


def compatibility(query: Structure, document: Structure) -> dict[str, int]:
    """How well two texts fit structurally, by dimension: UNIT something in common, -UNIT both name some and share none.

    Else 0.
    """
    found = {
        name: _fit(getattr(query, name), getattr(document, name)) for name in ("languages", "frameworks", "tools", "platforms")
    }
    return {**found, "folders": _fit(_folders(query.paths), _folders(document.paths))}


def _fit(a: frozenset[str], b: frozenset[str]) -> int:
    return 0 if not a or not b else 10_000 if a & b else -10_000


def _folders(paths: frozenset[str]) -> frozenset[str]:
    """The family of a path: its first two folders."""
    return frozenset("/".join(p.split("/")[:-1][:2]) for p in paths if "/" in p)


def ecosystems(words: Iterable[str], paths: Iterable[str] = ()) -> set[str]:
    """Ecosystems that words, and the extensions of paths, show."""
    if not _OF_WORD:
        for ecosystem, shown in _ECOSYSTEMS.items():
            for word in shown.split():
                _OF_WORD.setdefault(word, set()).add(ecosystem)
    found: set[str] = set()
    for word in words:
        found |= _OF_WORD.get(word, set())
    for path in paths:
        found |= _OF_WORD.get(path.rsplit(".", 1)[-1].lower(), set()) if "." in path else set()
    return found


def skeleton(text: str) -> str:
    """A message without what changes from run to run: quoted values, numbers, paths."""
    return _re("volatile").sub(" ", text)


def _shown(words: list[str], table: dict[str, str]) -> set[str]:
    have = set(words)
    return {name for name, shown in table.items() if have & set(shown.split())}


def _plain(path: str) -> str:
    return path.removeprefix("./").lstrip("/~").rstrip(".").lower()


def _kind(head: str, words: list[str], names: set[str], program: str) -> str:
    bare = _re("where").sub("", head)
    for word in ("bash ", "sh ", "python ", "cat "):
        bare = bare.removeprefix(word)
    if bare and " " not in bare and _re("path").fullmatch(bare):
        return "path"
    first = head.split(" - ", 1)[0].strip()
    if first and " " not in first and _re("path").fullmatch(first):
        return "path"
    english = sum(w in _ENGLISH for w in words)
    if program and not names and not english and not _re("error").search(head):
        return "command"
    if names or _re("labelled").search(head) or (_re("error").search(head) and english <= 1 + len(words) // 8):
        return "error"
    return "prose"


def _command(head: str, failed: bool = False) -> tuple[str, list[str], list[str]]:
    """(program with subcommand, operands, options) where a text begins like a command, else ("", [], []).

    failed  the text says that it is one, whatever program it runs
    """
    words = (p.strip("'\"") for p in head.replace("&&", " ").replace("|", " ").split())
    parts = _launched([p for p in words if p])
    if not parts:
        return "", [], []
    name = (parts[0].rsplit("/", 1)[-1] if _is_own(parts[0]) else "") or parts[0]
    name = _SAME_PROGRAM.get(name, name)
    if not failed and name.split()[0] not in _PROGRAMS and not _is_own(parts[0]):
        return "", [], []
    flat = name.split() + parts[1:]
    program, rest = flat[0], flat[1:]
    operands = [piece for p in rest for piece in _pieces(_operand(p))]
    options = [p.lstrip("-").split("=")[0].lower() for p in rest if p.startswith("-") and p.strip("-")]
    if program == "docker" and operands[:1] == ["compose"]:
        program, operands = "docker compose", operands[1:]
    if program.split()[0] in _WITH_SUBCOMMAND and operands:
        skipped = _first_word(rest, operands)
        program, operands = f"{program} {skipped}", [o for o in operands if o != skipped]
    return program, operands, options


def _launched(parts: list[str]) -> list[str]:
    """The words of a command without what stands in front of the program that it is about."""
    while parts:
        if parts[0] in _LAUNCHERS or ("=" in parts[0] and parts[0].split("=")[0].isupper()):
            parts = parts[1:]
        elif len(parts) > 2 and parts[1:2] == list(_RUNNERS.get(parts[0], ("",))):
            parts = [p for p in parts[2:] if p != "--"] or parts[2:]
        elif len(parts) > 1 and parts[0] in _SCRIPT_RUNNERS and _is_script(parts[1]):
            return parts[1:]
        else:
            break
    return parts


def _is_script(word: str) -> bool:
    """A file of the project that is run: `scripts/deploy.sh`, `manage.py`, `artisan`."""
    return word in ("artisan", "manage.py") or (word.endswith((".sh", ".bash")) and not word.startswith("-"))


def _is_own(word: str) -> bool:
    """A program named by its path: `./run`, `vendor/bin/phpunit`."""
    return "/" in word and "://" not in word and (word.startswith("./") or "/bin/" in f"/{word}" or word.endswith(".sh"))


def _operand(part: str) -> str:
    """An operand, or the value of an option that is written with it: `--package=codec` as `--package codec`."""
    return part if not part.startswith("-") else part.partition("=")[2]


def _pieces(operand: str) -> list[str]:
    """An operand in its usual spelling; of `kind/name`, as cluster tools write it, both."""
    plain = _re("where").sub("", operand.lower().removeprefix("./").rstrip("/"))
    kind, slash, name = plain.partition("/")
    if slash and _RESOURCES.get(kind):
        return [_RESOURCES[kind], name]
    return [_RESOURCES.get(plain, plain)] if plain else []


def _first_word(rest: list[str], operands: list[str]) -> str:
    """The subcommand: the first operand that is no value of an option before it (`kubectl -n prod rollout`)."""
    for i, part in enumerate(rest):
        plain = part.lower().removeprefix("./").rstrip("/")
        if plain in operands and not part.startswith("-") and not (i and rest[i - 1].startswith("-") and "=" not in rest[i - 1]):
            return plain
    return operands[0]
