"""Text helpers of the judgement half: lazily compiled patterns, cleaned output, the program a part runs.

Patterns are compiled on first use and kept: compiling at import would cost every hook process milliseconds.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from projectmem_gate.model import Part

HEAD_CHARS, TAIL_CHARS = 16_000, 48_000

_COMPILED: dict[str, re.Pattern[str]] = {}

# Programs that only start another one: looked through to find what really ran, with the words that may follow them.
_WRAPPERS = {
    "sudo": (),
    "doas": (),
    "time": (),
    "nice": (),
    "nohup": (),
    "env": (),
    "stdbuf": (),
    "command": (),
    "exec": (),
    "rtk": (),
    "xvfb-run": (),
    "npx": (),
    "bunx": (),
    "uvx": (),
    "pipx": ("run",),
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "conda": ("run",),
    "bundle": ("exec",),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "npm": ("exec",),
    "mise": ("exec", "x"),
    "direnv": ("exec",),
    "dotenv": (),
    "timeout": (),
    "gtimeout": (),
}


# A project's `bin/test` is not the shell's `test`.
_ALSO_BUILTIN = ("test", "find", "file", "view", "check", "type")


def names(text: str) -> frozenset[str]:
    """The words of `text` as a set: how this package writes its tables of programs."""
    return frozenset(text.split())


def rx(pattern: str) -> re.Pattern[str]:
    """The compiled pattern (multi-line), from a process-wide cache."""
    found = _COMPILED.get(pattern)
    if found is None:
        import re  # a fifth of a hook process; a call that went well seldom needs it

        found = _COMPILED[pattern] = re.compile(pattern, re.MULTILINE)
    return found


def clean(output: str) -> str:
    """`output` without colour codes and carriage returns, its middle cut out when it is very long."""
    if len(output) > HEAD_CHARS + TAIL_CHARS:
        output = output[:HEAD_CHARS] + "\n...\n" + output[-TAIL_CHARS:]
    if "\x1b" in output:
        output = rx(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])").sub("", output)
    if "\r" in output:
        output = output.replace("\r\n", "\n").replace("\r", "\n")
    return output


def tail_lines(text: str, count: int) -> list[str]:
    """The last `count` lines that are not blank."""
    return [line for line in text.rsplit("\n", count * 3)[-count * 3 :] if line.strip()][-count:]


def lines_with(text: str, marks: tuple[str, ...]) -> list[str]:
    """The lines in which one of the marks is, in order; a mark holds no end of a line."""
    found: dict[int, str] = {}  # by where they begin
    for mark in marks:
        at = text.find(mark)
        while at >= 0:
            begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            end = end if end >= 0 else len(text)
            found[begin] = text[begin:end]
            at = text.find(mark, end)
    return [found[begin] for begin in sorted(found)]


def last_line(text: str) -> str:
    """The last line that is not blank, "" where all are."""
    end = len(text.rstrip())
    below = text.find("\n", end)
    return text[text.rfind("\n", 0, end) + 1 : below if below >= 0 else len(text)] if end else ""


def basename(path: str) -> str:
    """The last component of a path, either slash."""
    if "\\" in path:
        path = path.replace("\\", "/")
    return path.rstrip("/").rsplit("/", 1)[-1] if "/" in path else path


def _is_assignment(word: str) -> bool:
    name, eq, _ = word.partition("=")
    return bool(eq) and name.replace("_", "a").isalnum() and not name[:1].isdigit()


def is_own_path(word: str) -> bool:
    """Is the word a path to a program that is not one of the system's (`./bin/test`, not `test` or `/usr/bin/test`)?"""
    return "/" in word and not word.startswith(("/bin/", "/usr/", "/opt/", "/sbin/", "/nix/"))


def command_words(part: Part) -> list[str]:
    """The part's words from the program that really runs onwards: assignments and pure wrappers are looked through. The list is
    kept for the next who asks, as every question about an outcome begins with it: leave it as it is."""
    found = _words.get(part.text)
    if found is None:
        if len(_words) >= _WORDS_KEPT:
            _words.clear()
        found = _words[part.text] = _looked_through(part.text.split())
    return found


_WORDS_KEPT = 256  # texts of at most 400 characters
_words: dict[str, list[str]] = {}


def _looked_through(words: list[str]) -> list[str]:
    i = 0
    while i < len(words):
        word = words[i]
        if _is_assignment(word):
            i += 1
            continue
        follow = _WRAPPERS.get(basename(word))
        if follow is None or (word == "command" and words[i + 1 : i + 2] in (["-v"], ["-V"])):
            break
        rest = i + 1
        if follow:
            if rest >= len(words) or words[rest] not in follow:
                break
            rest += 1
        while rest < len(words) and (
            words[rest].startswith("-") or _is_assignment(words[rest]) or words[rest].rstrip("smh").isdigit()
        ):
            rest += 2 if words[rest][:1] == "-" and _takes(basename(word), words[rest]) else 1
        if rest >= len(words):
            break
        i = rest
    return words[i:]


def _takes(launcher: str, option: str) -> bool:
    """Is the word behind this option its value, and not yet the program: `conda run --name test pytest`?"""
    from projectmem_gate.launchers import values_of

    return option in values_of(launcher)


def program(part: Part) -> str:
    """Lower-case name of the program a shell part runs (`python -m x` is x, `bin/test` is ./test), "" when it has none."""
    words = command_words(part)
    if not words:
        return ""
    name = basename(words[0].strip("'\"")).lower()
    if name.startswith(("python", "pypy")) and name.rstrip("0123456789.") in ("python", "pypy"):
        name = "python"
        if len(words) > 2 and words[1] == "-m":
            return words[2].lower()
    if name in _ALSO_BUILTIN and is_own_path(words[0]):
        return f"./{name}"
    return name[:-4] if name.endswith((".exe", ".cmd", ".bat")) else name


def subcommand(part: Part) -> str:
    """First word after the program that is not an option, "" when there is none."""
    for word in command_words(part)[1:]:
        if not word.startswith("-"):
            return word
    return ""
