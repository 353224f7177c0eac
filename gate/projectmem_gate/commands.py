"""[H] From a command in command position to a part of an action: its identity, readable form, paths and hint words."""

from __future__ import annotations

from projectmem_gate import effects, tasks
from projectmem_gate.edits import write_part
from projectmem_gate.hints import pick
from projectmem_gate.keys import key_of, text_digest
from projectmem_gate.model import Part
from projectmem_gate.option_tables import UNSURE_WORDS
from projectmem_gate.option_tables_tools import ALIASED
from projectmem_gate.options import Arguments, arrange, cmdlet_of
from projectmem_gate.paths import relative
from projectmem_gate.programs import TRIVIAL, program
from projectmem_gate.words import ACTIVE_END, GLOB, is_static, shown
from projectmem_gate.wrappers import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from projectmem_gate.paths import Roots
    from projectmem_gate.scope import Command

_TEXT_CAP = 400
_QUOTE = frozenset(" \t\n\"'\\$`|&;<>()*?[]{}#~!")
_NO_PATH = frozenset(" \n\t\"'<>|;,()=$")
_PATTERN = frozenset("*?\n ")
_INNER_MARKS = frozenset(map(chr, range(ord(ACTIVE_END)))) - {GLOB}


class Built:
    """A command on its way to a Part: what effects.py and the key are made of."""

    __slots__ = ("args", "command", "cwd", "family", "name", "paths", "roots", "slash", "tokens")

    def __init__(self, command: Command, name: str, args: Arguments, cwd: str, roots: Roots) -> None:
        self.command, self.name, self.args, self.cwd, self.roots = command, name, args, cwd, roots
        self.tokens: list[str] = []
        self.paths: list[str] = []
        self.family = name
        self.slash = "l" in args.traits  # `x/` and `x` differ

    def operands(self) -> list[str]:
        """Words that are not options."""
        return [w for w in self.args.operands if w[:1] != "-"]

    def flags(self) -> list[str]:
        """Names of the options, those that do not matter to the identity included where they were written plainly."""
        return [o for o, _ in self.args.options] + [w for w in self.args.verbatim if w[:1] == "-"]

    def seen(self, word: str) -> str:
        """Canonical name of a path as this command sees it."""
        return self.roots.name(word, self.cwd)


def _looks_like_path(word: str) -> bool:
    if not word or len(word) > 300 or "://" in word or word[0] in "-@%^!" or "..." in word or not _NO_PATH.isdisjoint(word):
        return False
    if word[0] in "/.":
        return len(word) > 1 or word == "."
    stem, dot, suffix = word.rpartition(".")
    if dot and stem and 0 < len(suffix) <= 6 and suffix.isalnum() and not suffix.isdigit() and ":" not in word:
        return True
    return "/" in word and ":" not in word and "\\" not in word


def _path_word(word: str, built: Built, roots: Roots, keep_dot: bool, operand: bool = False) -> str:
    """A word that may spell a path, in the one spelling used inside a command (relative to its directory)."""
    if built.command.remote or not word:
        return word
    if roots.asks_disk:
        word = _through_links(word, built, roots)
    if "\\" in word and roots.windows and _PATTERN.isdisjoint(word):
        word = roots.posix(word)
    head = word[0]
    absolute = head == "/" or (roots.windows and word[1:2] == ":")
    if not absolute and head != "." and "/" not in word:
        return roots.seen_from(word, built.cwd) if operand and roots.renaming and _looks_like_path(word) else word
    if "://" in word or "\n" in word or (" " in word and head not in "/.") or _marked(word):
        return word
    if not absolute:
        odd = "//" in word or "/./" in word or "/../" in word or word[-1] == "/" or roots.renaming
        if not odd and not word.startswith(("./", "../")) and word not in (".", ".."):
            return word
    plain, _, node = word.partition("::")  # pytest node ids
    seen = roots.seen_from(plain, built.cwd)
    inside = not (seen[:1] == "/" or seen in (".", "..") or seen.startswith("../") or seen[1:2] == ":")
    if keep_dot and inside and (absolute or head == "."):
        seen = "./" + seen
    if built.slash and word[-1] == "/" and seen[-1] != "/":
        seen += "/"
    return seen + ("::" + node if node else "")


def _through_links(word: str, built: Built, roots: Roots) -> str:
    """A relative path whose folders are symbolic links, by the folders they lead to; other words as they are. The last component
    is left alone: hint words are made of it."""
    folder, slash, base = word.rstrip("/").rpartition("/")
    if not slash or word[0] in "/-~" or "://" in word or not _nameable(folder) or " " in folder:
        return word
    plain, real = roots.name(folder, built.cwd), roots.name(folder, built.cwd, real=True)
    return word if plain == real else relative(real + "/" + base, built.cwd)


# Tools that are run both by their own name and as a module of Python.
_PYTHON_TOOLS = frozenset(
    "pytest mypy black isort flake8 pylint coverage tox nox bandit yapf autopep8 pycodestyle pyflakes".split()
)


def build(command: Command, keys: Sequence[str], stdin_texts: Sequence[Command], roots: Roots, escalated: bool) -> Part:
    """The Part of `command`; `keys` are those of the parts before it (for pipes), `stdin_texts` their commands."""
    argv = command.argv
    cwd = command.cwd
    name = _name(argv[0], command, roots) if argv else ""
    rest = list(argv[1:])
    name = "source" if name == "." else name
    if name == "docker-compose":
        name, rest = "docker", ["compose", *rest]
    module: list[str] = []
    version = _version(argv[0]) if name in ("python", "pip") else ""
    if name == "python":
        name, rest, module = _python(rest)
    elif name == "php" and rest[:1] and rest[0] in ("artisan", "./artisan"):
        module, rest = ["artisan"], rest[1:]
    args = arrange(module[-1] if module else _known_tool(name), rest)
    if args.directory and not command.remote:
        cwd = roots.name(args.directory, cwd, real=True) if is_static(args.directory) else "?" + shown(args.directory)
    built = Built(command, name, args, cwd, roots)
    keep_dot = "d" in args.traits
    built.tokens = [name + version, *module, *args.subs]
    if args.loose:
        skip = 1 if "x" in args.traits and not _explicit(args) else 0
        dotted = keep_dot or "v" in args.traits
        for option, value in args.options:
            built.tokens.append(option if not value else f"{option}={_path_word(value, built, roots, dotted)}")
        operands = [w if i < skip else _path_word(w, built, roots, keep_dot, True) for i, w in enumerate(args.operands)]
        args.operands = sorted(operands) if "u" in args.traits else operands
        built.tokens += args.operands
        if args.tail is not None:
            args.tail = [_path_word(w, built, roots, keep_dot) for w in args.tail]
            built.tokens += ["--", *args.tail]
    else:
        args.verbatim = _verbatim(args, built, roots, keep_dot)
        built.tokens += args.verbatim
    built.paths = _paths(built, roots)
    free = "p" in args.traits and _free_of_cwd(built, roots)
    built.family = _family(built, module)
    return _part(built, "" if free else cwd, keys, stdin_texts, roots, escalated)


def _name(word: str, command: Command, roots: Roots) -> str:
    if not is_static(word):
        return word
    name = program(word)
    if cmdlet := cmdlet_of(name):
        return cmdlet
    if "/" not in name or command.remote:
        return name
    seen = roots.seen_from(name, command.cwd)
    return seen if seen[:1] in ("/", ".") or ":" in seen[:2] else "./" + seen


def _version(word: str) -> str:
    """The version in `python3.12` and `pip3.12`, "" for `python` and `python3`: another interpreter is often the remedy."""
    digits = word.rsplit("/", 1)[-1].removesuffix(".exe").lstrip("pythoni")
    return digits if "." in digits or digits == "2" else ""


# Programs that a project keeps a copy of; their options are the same wherever they lie.
_KEPT_COPIES = frozenset(
    "pytest jest vitest eslint tsc prettier mypy ruff black phpunit rspec pip playwright mocha gradlew mvnw flake8".split()
)


def _known_tool(name: str) -> str:
    """The program whose option table fits: `./gradlew` takes gradle's options, `vendor/bin/phpunit` phpunit's."""
    if "/" not in name:
        return name
    base = name.rsplit("/", 1)[-1]
    return {"gradlew": "gradle", "mvnw": "mvn"}.get(base, base) if base in _KEPT_COPIES else name


def _python(rest: list[str]) -> tuple[str, list[str], list[str]]:
    """(program, arguments, [-m, module]) of python's own arguments; `-u` and `-B` do not matter; -m pip is pip."""
    options: list[str] = []
    while rest and rest[0][:1] == "-" and rest[0] not in ("-", "-c"):
        word = rest[0]
        if word == "-m" and len(rest) > 1:
            module = rest[1]
            if module in ("pip", "ruff"):
                return module, rest[2:], []
            return "python", rest[2:], [*options, "-m", module]
        if word in ("-W", "-X") and len(rest) > 1:
            options += rest[:2]
            rest = rest[2:]
            continue
        if word[1:2] != "-":
            word = "".join(c for c in word if c not in "uB")
        if len(word) > 1:
            options.append(word)
        rest = rest[1:]
    if rest[:1] == ["-"]:
        rest = rest[1:]
    return "python", [*options, *rest], []


def _verbatim(args: Arguments, built: Built, roots: Roots, keep_dot: bool) -> list[str]:
    """Arguments in the order they were written, paths canonical; operands (a script or pattern left out) go to args.operands."""
    out: list[str] = []
    scripted = "x" in args.traits
    text_next, explicit = False, any(w in _SCRIPT_OPTIONS for w in args.verbatim)
    first = scripted and not explicit
    for word in args.verbatim:
        if text_next:
            text_next = False
        elif word[:1] == "-" and len(word) > 1:
            option, eq, value = word.partition("=")
            if eq and word.startswith("--") and is_static(value):
                word = option + "=" + _path_word(value, built, roots, keep_dot)
            text_next = scripted and word in _SCRIPT_OPTIONS
        elif first and word:  # `sed -i '' SCRIPT` of BSD: the empty word belongs to the option
            first = False
        elif word:
            word = _path_word(word, built, roots, keep_dot, True)
            args.operands.append(word)
        out.append(word)
    for option, value in args.options:
        out.append(option if not value else f"{option}={value}")
    return out


_SCRIPT_OPTIONS = ("-e", "-f", "-pe", "-ne", "-F", "-v", "--expression", "--file")


_GIT_PATHS = ("add", "rm", "mv", "restore", "blame", "check-ignore", "apply", "clone", "worktree")
_NO_PATHS = ("gh", "docker", "kubectl", "curl", "npm", "pnpm", "yarn", "pip", "brew", "bd", "ssh", "find", "which", "tr")


def _paths(built: Built, roots: Roots) -> list[str]:
    """Files that the command names, as canonical names; refs, hosts and patterns are none."""
    args, found = built.args, []
    if built.command.remote:
        return []
    words = list(args.operands)
    if args.loose and "x" in args.traits and not _explicit(args):
        words = words[1:]
    if built.name == "git" and args.subs[:1] and args.subs[0] not in _GIT_PATHS:
        words = []
    elif built.name in _NO_PATHS:
        words = [w for w in words if w[:1] in "./" and w != "."] if built.name != "tr" else []
    words += args.tail or []
    if built.name[:1] in (".", "/"):
        words.insert(0, built.name)
    for word in words:
        word = word.partition("::")[0] if "::" in word else word
        if is_static(word) and ("p" in args.traits or _looks_like_path(word)) and 0 < len(word) < 300 and "\n" not in word:
            found.append((word[2:] or ".") if word.startswith("//") else roots.name(word, built.cwd))
    return list(dict.fromkeys(found))[:32]


def _explicit(args: Arguments) -> bool:
    """The pattern or script is given by an option, so the first operand is a path."""
    return any(o in ("--regexp", "--file", "-e") for o, _ in args.options)


def _free_of_cwd(built: Built, roots: Roots) -> bool:
    """Operands as names from the root, so that the directory need not be in the key; false where that is not possible."""
    args, cwd = built.args, built.cwd
    if cwd[:1] == "?" or built.command.remote:
        return False
    words = args.operands + (args.tail or [])
    if args.loose and "x" in args.traits and not _explicit(args):
        words = words[1:]
    if not words or not all(_nameable(w) for w in words):
        return False
    wanted = set(words)
    for i in range(len(built.tokens) - 1, 0, -1):
        word = built.tokens[i]
        if word in wanted:
            built.tokens[i] = word[2:] if word.startswith("//") else roots.name(word, cwd)
    return True


def _marked(word: str) -> bool:
    """Does the word hold an active part other than a pattern?"""
    return not word.isprintable() and not _INNER_MARKS.isdisjoint(word)


def _nameable(word: str) -> bool:
    return word not in (".", "..", "-", "") and not word.endswith("/..") and not _marked(word) and word[:2] != "\x01~"


def _family(built: Built, module: list[str]) -> str:
    name, args = built.name, built.args
    if module and module[-1] in (
        "pytest",
        "mypy",
        "black",
        "isort",
        "flake8",
        "unittest",
        "pylint",
        "ruff",
        "tox",
        "nox",
        "build",
        "venv",
    ):
        return module[-1]
    words = [name, *module[-2:], *args.subs]
    if name in tasks.DIRECT and not args.subs:
        words += [w for w in built.operands() if "=" not in w and is_static(w)][:1]
    if name in ("python", "node", "ruby", "deno", "bun", "perl", "php", "bash", "sh", "zsh") and not module and len(words) == 1:
        for word in args.operands:
            if is_static(word) and _looks_like_path(word):
                words.append(word)
                break
        first = words[-1]
        if first.endswith("manage.py") and len(args.operands) > 1:
            words.append(args.operands[1])
    return " ".join(shown(w) for w in words)[:80]


def quoted(word: str) -> str:
    """A canonical word for people: quoted where a shell would need it."""
    if word and word.isprintable() and _QUOTE.isdisjoint(word):
        return word  # as most are
    text = shown(word)
    if not text:
        return "''"
    if not _QUOTE.isdisjoint(text) and is_static(word):
        return "'" + text.replace("'", "'\\''") + "'"
    return text


def _stdin(built: Built, keys: Sequence[str], before: Sequence[Command], roots: Roots) -> str:
    kind, value = built.command.stdin
    if kind == "file":
        return "<" + (_path_word(value, built, roots, False))
    if kind == "text":
        return "<<" + text_digest(value)
    if kind == "pipe":
        source = before[int(value)]
        name = program(source.argv[0]) if source.argv else ""
        if feeds(source):
            return "<" + _path_word(source.argv[1], built, roots, False)
        if name == "cat" and len(source.argv) == 1 and source.stdin[0] == "text":
            return "<<" + text_digest(source.stdin[1])
        if name == "echo" and len(source.argv) == 2 and source.argv[1][:1] != "-":
            return "<<" + text_digest(source.argv[1] + "\n")
        return "|" + keys[int(value)]
    return ""


def feeds(command: Command) -> bool:
    """`cat FILE` in front of a pipe: another spelling of `< FILE`."""
    argv = command.argv
    return len(argv) == 2 and program(argv[0]) == "cat" and argv[1][:1] != "-" and is_static(argv[1])


def _write_target(built: Built) -> tuple[str, str] | None:
    """(operator, target) when this command is a way of writing a file: `cat > f <<EOF`, `echo x > f`, `> f`."""
    if built.command.writes and built.name in ("cat", "echo", "printf", ":", "true", "", "tee", "jq", "envsubst"):
        return built.command.writes[0]
    if built.name == "tee" and built.args.operands:
        return ">>" if "-a" in built.args.verbatim else ">", built.args.operands[0]
    return None


def _part(built: Built, cwd: str, keys: Sequence[str], before: Sequence[Command], roots: Roots, escalated: bool) -> Part:
    command = built.command
    env = [f"{k}={v}" for k, v in sorted(command.env.items())]
    stdin = _stdin(built, keys, before, roots)
    target = None if command.remote else _write_target(built)
    tokens = list(built.tokens)
    written = ""
    if target is not None:
        written = roots.name(target[1], command.cwd) if is_static(target[1]) else target[1]
        if built.name in ("cat", "tee") and (built.name == "tee" or len(command.argv) == 1) and target[0] == ">":
            kind, content = command.stdin
            if kind == "text" and is_static(content) and not (escalated or command.under or command.inside or env):
                return _written(written, content, built)
        tokens += [target[0], written]
    head = ["sh", cwd, *env, "\x1e", *command.under, "\x1e", *command.inside, "\x1e"]
    tail = ["\x1e", stdin, *(["escalated"] if escalated else [])]
    otherwise = _otherwise(tokens)
    paths = built.paths if not written or not is_static(written) else [*built.paths, written]
    only_feeds = built.name == "cat" and len(command.argv) == 1 and command.stdin[0] == "text"
    trivial = (built.name in TRIVIAL or not built.name or only_feeds) and target is None and not command.under
    return Part(
        key_of(*head, *tokens, *tail),
        "sh",
        built.family or "shell",
        _text(built, cwd, [*env, *command.under, *tokens], stdin),
        _words(built),
        tuple(paths),
        effects.of(built, roots, written),
        trivial,
        _variant(built, written),
        key_of(*head, *otherwise, *tail) if otherwise else "",
    )


def _looks_like_script(word: str) -> bool:
    base = word.rsplit("/", 1)[-1]
    return is_static(word) and (base in ("gradlew", "mvnw", "configure") or base.endswith((".sh", ".bash")))


def _otherwise(tokens: list[str]) -> list[str]:
    """The same work by its other launcher: `pytest x` for `python -m pytest x` and back, `./gradlew` for `sh gradlew`; else [].
    They can fail apart: a script that may not be executed runs under a shell all the same."""
    if tokens[:2] == ["python", "-m"] and tokens[2:3] and tokens[2] in _PYTHON_TOOLS:
        return tokens[2:]
    if tokens[0] in SHELLS and tokens[1:2] and _looks_like_script(tokens[1]):
        return [tokens[1] if tokens[1][0] in "./" else "./" + tokens[1], *tokens[2:]]
    if tokens[0].startswith("./") and _looks_like_script(tokens[0]):
        return ["bash" if tokens[0].endswith(".bash") else "sh", tokens[0].removeprefix("./"), *tokens[1:]]
    return ["python", "-m", *tokens] if tokens[0] in _PYTHON_TOOLS else []


def _variant(built: Built, written: str) -> str:
    """What the key leaves out: the options that only change how output looks, then where the output was cut down or sent."""
    sent = [shown(f"{o} {t}") for o, t in built.command.writes] if not written else []
    kept = " ".join(built.args.dropped)
    return " | ".join([kept, *built.command.cut, *sent]).strip()[:200]


def _text(built: Built, cwd: str, words: Sequence[str], stdin: str) -> str:
    """The readable form: the command first, where and in what it runs behind it."""
    text = " ".join(" ".join([quoted(w) for w in words]).split())
    if stdin[:2] == "<<":
        text += " <<" + stdin[2:10]
    elif stdin[:1] == "<":
        text += " < " + stdin[1:]
    notes = [shown(i) for i in built.command.inside]
    if cwd not in ("", "."):
        notes.insert(0, f"in {cwd}")
    return (text + f"  # {', '.join(notes)}" if notes else text)[:_TEXT_CAP]


def _written(path: str, content: str, built: Built) -> Part:
    """`cat > f <<'EOF'` is the write of that file, whatever the tool."""
    part = write_part(path, content)
    part.kind = "sh"
    part.text = f"{built.name} > {path} <<{text_digest(content)[:8]}"
    return part


def _words(built: Built) -> tuple[str, ...]:
    """Program, subcommand and file names that every spelling of this command contains."""
    candidates: list[str] = []
    if built.name == "python" and built.tokens[1:2] == ["-m"] and len(built.tokens) > 2:
        candidates.append(built.tokens[2])  # `python` itself is in other keys' words too, the module tells more
    elif built.name in SHELLS and built.args.operands:
        pass  # `sh gradlew` is akin to `./gradlew`, which has no such word
    elif built.name in ALIASED or built.name == "source":
        pass  # `iwr` and `.` have no letters of the other name
    elif is_static(built.name) and built.command.argv[:1] != ["test"]:
        candidates.append(built.name.rsplit("/", 1)[-1])
    candidates += [s for s in built.args.subs if s not in UNSURE_WORDS]
    for word in reversed(built.args.operands):
        base = word.partition("::")[0].rstrip("/").rsplit("/", 1)[-1]
        if not is_static(base) or len(base) >= 80 or word == built.args.unsure:
            continue
        if not built.roots.above(word):
            candidates.append(base)
    return pick(candidates)
