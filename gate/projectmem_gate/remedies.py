"""[H] What worked instead: is a later success the remedy of a failure, or only something like it?

A remedy does the same work another way: other options, another launcher or none, a variable, another directory, one word less
where the command itself was wrong. A run of other tests, of fewer files or of another subcommand is none, however like it looks.
"""

from __future__ import annotations

from projectmem_gate.commands import quoted
from projectmem_gate.lines import basename, names
from projectmem_gate.paths import relative
from projectmem_gate.verifiers import SELECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.history import Record

# Where the command is at fault and not what it works on.
COMMAND = ("usage", "command-not-found", "missing-dependency")
LAUNCHERS = names("npx bunx uvx pnpx pnpm yarn uv poetry pipenv hatch pdm rtk sudo python bundle exec run dlx mise x")

_TELLING = 8  # letters and digits of a line that tell it from other lines of its file
_ASKS = ("--help", "-h", "--version", "-V")

# How the installs of a manager are called, as families of actions.
INSTALLS = {
    "pip": ("pip install", "uv pip install", "uv pip sync"),
    "uv": ("uv sync", "uv add", "uv pip install", "uv tool install"),
    "poetry": ("poetry install", "poetry add"),
    "npm": ("npm install", "npm ci"),
    "pnpm": ("pnpm install", "pnpm add"),
    "yarn": ("yarn install", "yarn add", "yarn"),
    "bun": ("bun install", "bun add"),
    "apt-get": ("apt-get install", "apt install"),
    "apt": ("apt install", "apt-get install"),
    "playwright": ("playwright install",),
}
_VERBS = ("install", "add", "get", "sync", "restore", "login", "auth login", "use")


def families(change: str, subject: str) -> tuple[str, ...]:
    """The families of actions by which such a change may have come about: (install, npm) -> npm install, npm ci."""
    if change not in ("install", "login") or not subject:
        return ()
    return INSTALLS.get(subject) or tuple(f"{subject} {verb}" for verb in _VERBS)


def is_remedy(record: Record, text: str) -> bool:
    """Whether the successful action `text`, of the same family, does the failed one's work another way."""
    if record.cls == "unknown":
        return False  # nobody knows what was wrong
    if record.text.startswith("edit ") or text.startswith("edit "):
        return _same_place(record.text, text)
    failed, worked = _words(record.text), _words(text)
    (a, a_flags, a_where), (b, b_flags, b_where) = failed, worked
    if a_where != b_where and record.cls not in COMMAND:
        return False
    other = set(a_flags) ^ set(b_flags)
    if any(flag.startswith(SELECTS) or flag in _ASKS for flag in other):
        return False  # other tests, or the manual
    if record.cls in ("test", "build") and any(flag not in b_flags for flag in a_flags if flag[:1] == "-"):
        return False  # looks less closely
    if a == b:
        return True
    if not b or b != [w for w in a if w in b] or len(b) + 1 < len(a):
        return False
    missing = [w for w in a if w not in b]
    return record.cls in COMMAND and all(_blamed(record, w) for w in missing)


def pasted(text: str, cwd: str = ".") -> str:
    """The text of a shell action as a command line that can be run from `cwd`: `npm test  # in web` -> `cd web && npm test`.
    As it is where that cannot be said: it ran inside something else, or only some of its parts ran there."""
    body, mark, rest = text.partition("  # in ")
    end = min([at for at in map(rest.find, (*_JOINS, ", ", "  # ")) if at >= 0], default=len(rest))
    where = rest[:end] if mark else "."
    plain = text.replace(mark + where, "") if mark else text
    if "  # " in plain or rest.startswith(", ", end) or len(text) >= _TEXT_CAP or where[:1] in ("?", "~", ""):
        return text
    if sum(plain.count(join) for join in _JOINS) + 1 != (text.count(mark + where) if mark else 1):
        return text  # parts in other directories
    there = relative(where, cwd)
    if there == ".":
        return plain
    if there[:2] in ("//", "") or body.startswith("edit "):
        return text
    return f"cd {quoted(there)} && {plain}"


_JOINS = (" && ", " || ", "; ")
_TEXT_CAP = 400  # a text of that many characters was cut


def _words(text: str) -> tuple[list[str], list[str], str]:
    """(what it works on, its options and variables, where) of an action's text. Launchers are left out."""
    command, _, where = text.partition("  # ")
    words: list[str] = []
    flags: list[str] = []
    for word in command.split():
        if word in ("--", "-m") or (word in LAUNCHERS and not [w for w in words if w not in LAUNCHERS]):
            continue
        name, sign, _ = word.partition("=")
        if word[:1] == "-" or (sign and not words and name.replace("_", "a").isalnum() and name.upper() == name):
            flags.append(word)
        else:
            words.append(basename(word) if not words and word[:1] not in "'\"" else word)
    return words, flags, where


def _blamed(record: Record, word: str) -> bool:
    """May this word be what was wrong: does the error name it, or complain of one too many?"""
    said = f"{record.sig} {record.excerpt}".lower()
    return basename(word).lower() in said or "arg" in said


def _same_place(failed: str, worked: str) -> bool:
    """Do two edits replace the same line of the same file?"""
    gone, arrow, _ = failed.partition(" -> ")
    _, _, line = gone.partition(": ")
    return bool(arrow) and gone == worked.partition(" -> ")[0] and sum(c.isalnum() for c in line) >= _TELLING
