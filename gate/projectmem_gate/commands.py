"""[H] From a command in command position to a part of an action: its identity, readable form, paths and hint words."""

from __future__ import annotations

from . import effects
from .hints import pick
from .keys import key_of, text_digest
from .model import Part
from .options import UNSURE_WORDS, Arguments, arrange
from .programs import TRIVIAL, is_pure, program
from .words import GLOB, is_static, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .paths import Roots
    from .shell import Command

_TEXT_CAP = 400
_INTERPRETERS = frozenset("python node ruby perl php deno bun lua Rscript psql mysql sqlite3 duckdb mongosh osascript swift".split())
_QUOTE = frozenset(" \t\n\"'\\$`|&;<>()*?[]{}#~!")


class Built:
    """A command on its way to a Part: what effects.py and the key are made of."""

    __slots__ = ("args", "command", "cwd", "family", "name", "paths", "tokens")

    def __init__(self, command: Command, name: str, args: Arguments, cwd: str) -> None:
        self.command, self.name, self.args, self.cwd = command, name, args, cwd
        self.tokens: list[str] = []
        self.paths: list[str] = []
        self.family = name


def _looks_like_path(word: str) -> bool:
    if not word or len(word) > 300 or "://" in word or word[0] in "-@%^!" or any(c in word for c in " \n\t\"'<>|;,()=$"):
        return False
    if word[0] in "/." or word[:2] in ("\x01~", "~/"):
        return len(word) > 1 or word == "."
    stem, dot, suffix = word.rpartition(".")
    if dot and stem and 0 < len(suffix) <= 6 and suffix.isalnum() and not suffix.isdigit() and ":" not in word:
        return True
    return "/" in word and ":" not in word and "\\" not in word


def _path_word(word: str, built: Built, roots: Roots, keep_dot: bool) -> str:
    """A word that may spell a path, in the one spelling used inside a command (relative to its directory)."""
    if built.command.remote:
        return word
    if "\\" in word and roots.windows and not any(c in word for c in "*?\n "):
        word = roots.posix(word)
    head = word[:1]
    if head not in ("/", ".") and "/" not in word and not (roots.windows and word[1:2] == ":"):
        return word
    if "://" in word or "\n" in word or (" " in word and head not in ("/", ".")) or any(c < "\x08" and c != GLOB for c in word):
        return word
    if roots.windows and word[1:2] == ":" or head == "/":
        plain, _, node = word.partition("::")  # pytest node ids
        seen = roots.seen_from(plain, built.cwd) + ("::" + node if node else "")
        return "./" + seen if keep_dot and seen[:1] not in ("/", ".") else seen
    if head == "." or "//" in word or "/./" in word or "/../" in word or word[-1] == "/" or roots.fold_case:
        if word.startswith(("...", ".../")) or (head == "." and word[1:2] not in ("/", ".", "")):
            return word if word[-1] != "/" else word.rstrip("/")
        plain, _, node = word.partition("::")
        seen = roots.seen_from(plain, built.cwd) + ("::" + node if node else "")
        return "./" + seen if keep_dot and head == "." and seen[:1] not in ("/", ".") else seen
    return word


def build(command: Command, keys: Sequence[str], stdin_texts: Sequence[Command], roots: Roots, escalated: bool) -> Part:
    """The Part of `command`; `keys` are those of the parts before it (for pipes), `stdin_texts` their commands."""
    argv = command.argv
    cwd = command.cwd
    name = _name(argv[0], command, roots) if argv else ""
    rest = list(argv[1:])
    if name == "docker-compose":
        name, rest = "docker", ["compose", *rest]
    module: list[str] = []
    if name == "python":
        name, rest, module = _python(rest)
    args = arrange(name if not module else module[-1], rest)
    if args.directory and not command.remote:
        cwd = roots.name(args.directory, cwd) if is_static(args.directory) else "?" + shown(args.directory)
    built = Built(command, name, args, cwd)
    keep_dot = "d" in args.traits
    built.tokens = [name, *module, *args.subs]
    if args.loose:
        skip = 1 if "x" in args.traits and not any(o in ("--regexp", "--file", "-e") for o, _ in args.options) else 0
        for option, value in args.options:
            built.tokens.append(option if not value else f"{option}={_path_word(value, built, roots, keep_dot)}")
        operands = [w if i < skip else _path_word(w, built, roots, keep_dot) for i, w in enumerate(args.operands)]
        args.operands = operands
        built.tokens += operands
        if args.tail is not None:
            args.tail = [_path_word(w, built, roots, keep_dot) for w in args.tail]
            built.tokens += ["--", *args.tail]
    else:
        args.verbatim = _verbatim(name, args, built, roots, keep_dot)
        built.tokens += args.verbatim
        args.operands = [w for w in args.verbatim if w[:1] != "-"]
    built.paths = _paths(built, roots)
    free = "p" in args.traits and _free_of_cwd(built, roots)
    built.family = _family(built, module)
    return _part(built, "" if free else cwd, keys, stdin_texts, roots, escalated)


def _name(word: str, command: Command, roots: Roots) -> str:
    if not is_static(word):
        return word
    name = program(word)
    if "/" not in name or command.remote:
        return name
    seen = roots.seen_from(name, command.cwd)
    return seen if seen[:1] in ("/", ".") or ":" in seen[:2] else "./" + seen


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


def _verbatim(name: str, args: Arguments, built: Built, roots: Roots, keep_dot: bool) -> list[str]:
    out: list[str] = []
    text_next = "x" in args.traits
    for word in args.verbatim:
        if word[:1] == "-":
            option, eq, value = word.partition("=")
            if eq and word.startswith("--") and is_static(value):
                word = option + "=" + _path_word(value, built, roots, keep_dot)
            if "x" in args.traits and option in ("-e", "-f", "-pe", "-ne"):
                text_next = True
        elif text_next:
            text_next = False
        else:
            word = _path_word(word, built, roots, keep_dot)
        out.append(word)
    for option, value in args.options:
        out.append(option if not value else f"{option}={value}")
    return out


def _paths(built: Built, roots: Roots) -> list[str]:
    if built.command.remote:
        return []
    args, found = built.args, []
    words = list(args.operands) + (args.tail or [])
    if "x" in args.traits:
        words = words[1:] if args.loose else words
    if built.name[:1] in (".", "/"):
        words.insert(0, built.name)
    everything = "p" in args.traits
    for word in words:
        word = word.partition("::")[0] if "::" in word else word
        if is_static(word) and word and (everything or _looks_like_path(word)) and len(word) < 300 and "\n" not in word:
            if word[:3] == "//x" or word.startswith("//"):
                found.append(word[2:] or ".")
            else:
                found.append(roots.name(word, built.cwd))
    return list(dict.fromkeys(found))[:32]


def _free_of_cwd(built: Built, roots: Roots) -> bool:
    """Operands as names from the root, so that the directory need not be in the key; false where that is not possible."""
    args, cwd = built.args, built.cwd
    if cwd[:1] == "?" or built.command.remote:
        return False
    if args.loose:
        skip = 1 if "x" in args.traits and not any(o in ("--regexp", "--file") for o, _ in args.options) else 0
        words = args.operands[skip:] + (args.tail or [])
    else:
        words = [w for w in args.verbatim if w[:1] != "-"]
        if "x" in args.traits:
            words = words[1:]
    if not words or not all(_nameable(w) for w in words):
        return False
    wanted = set(words)
    seen_operator = False
    for i in range(len(built.tokens) - 1, 0, -1):
        word = built.tokens[i]
        if word in wanted and not seen_operator:
            built.tokens[i] = word[2:] if word.startswith("//") else roots.name(word, cwd)
    return True


def _nameable(word: str) -> bool:
    return word not in (".", "..", "-", "") and not word.endswith("/..") and all(c >= "\x08" or c == GLOB for c in word) and word[:2] != "\x01~"


def _family(built: Built, module: list[str]) -> str:
    name, args = built.name, built.args
    if module and module[-1] in ("pytest", "mypy", "black", "isort", "flake8", "unittest", "pylint", "ruff", "tox", "nox", "build", "venv"):
        return module[-1]
    words = [name, *module[-2:], *args.subs]
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
    text = shown(word)
    if not text:
        return "''"
    if is_static(word) and any(c in _QUOTE for c in text):
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
        if name == "cat" and len(source.argv) == 2 and source.argv[1][:1] != "-":
            return "<" + _path_word(source.argv[1], built, roots, False)
        if name == "cat" and len(source.argv) == 1 and source.stdin[0] == "text":
            return "<<" + text_digest(source.stdin[1])
        if name == "echo" and len(source.argv) == 2 and source.argv[1][:1] != "-":
            return "<<" + text_digest(source.argv[1] + "\n")
        return "|" + keys[int(value)]
    return ""


def _write_target(built: Built) -> tuple[str, str] | None:
    """(operator, target) when this command is a way of writing a file: `cat > f <<EOF`, `echo x > f`, `> f`."""
    if built.command.writes and built.name in ("cat", "echo", "printf", ":", "true", "", "tee", "jq", "envsubst"):
        return built.command.writes[0]
    if built.name == "tee" and built.args.operands:
        return ">>" if "-a" in built.args.verbatim else ">", built.args.operands[0]
    return None


def _part(
    built: Built, cwd: str, keys: Sequence[str], before: Sequence[Command], roots: Roots, escalated: bool
) -> Part:
    command = built.command
    env = [f"{k}={v}" for k, v in sorted(command.env.items())]
    stdin = _stdin(built, keys, before, roots)
    target = _write_target(built)
    tokens = list(built.tokens)
    written = ""
    if target is not None and not command.remote:
        written = roots.name(target[1], command.cwd) if is_static(target[1]) else target[1]
        if built.name in ("cat", "tee") and (built.name == "tee" or len(command.argv) == 1) and target[0] == ">":
            kind, content = command.stdin
            if kind == "text" and is_static(content) and not escalated and not command.under and not env:
                return _written(written, content, roots, built)
        tokens += [target[0], written]
    fields = ["sh", cwd, *env, "\x1e", *command.under, "\x1e", *tokens, "\x1e", stdin]
    if escalated:
        fields.append("escalated")
    trivial = (built.name in TRIVIAL or not built.name) and target is None
    text = " ".join([quoted(w) for w in (*env, *command.under, *tokens)])
    if stdin[:2] == "<<":
        text += " <<" + stdin[2:10]
    elif stdin[:1] == "<":
        text += " < " + stdin[1:]
    if cwd not in ("", "."):
        text = f"({cwd}) {text}"
    paths = built.paths if not written or not is_static(written) else [*built.paths, written]
    return Part(
        key_of(*fields),
        "sh",
        built.family or "shell",
        text[:_TEXT_CAP],
        _words(built, tokens),
        tuple(paths),
        effects.of(built, roots, written),
        trivial,
    )


def _written(path: str, content: str, roots: Roots, built: Built) -> Part:
    from .edits import write_part

    part = write_part(path, content, "", False)
    part.kind = "sh"
    part.family = f"edit {path}"
    return part


def _words(built: Built, tokens: Sequence[str]) -> tuple[str, ...]:
    """Program, subcommand and file names that every spelling of this command contains."""
    names: list[str] = []
    name = built.name.rsplit("/", 1)[-1]
    if is_static(built.name):
        names.append(name)
    if built.name == "docker" and built.args.subs[:1] == ["compose"]:
        names.append("compose")
    names += [s for s in built.args.subs if s not in UNSURE_WORDS]
    for word in reversed(built.args.operands):
        base = word.partition("::")[0].rstrip("/").rsplit("/", 1)[-1]
        if is_static(base) and base not in (".", "..") and len(base) < 80 and "secret" not in base:
            names.append(base)
    return pick(n for n in names if n.isascii() and n not in (".", ".."))


def is_trivial_pure(command: Command) -> bool:
    return is_pure(command.argv)
