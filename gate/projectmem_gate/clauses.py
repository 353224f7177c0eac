"""What of a decision's text a machine can check: a small deterministic reader that proposes a clause. A person confirms it.

It knows four sentences and gives up on all others, and on every condition: *use X (not Y)*, *do not use Y (use X)*, *do not
edit these files*, *never run this command / call this tool*. Not on the hook's path.
"""

from __future__ import annotations

import re

from projectmem_gate import option_tables, option_tables_builds, option_tables_tools
from projectmem_gate.identify import identify
from projectmem_gate.model import Value
from projectmem_gate.rules import OR

# Programs that do the same work, as patterns: who decides for one decides against the others.
GROUPS: tuple[dict[str, str], ...] = (
    {"npm": "npm | npx", "yarn": "yarn", "pnpm": "pnpm | pnpx", "bun": "bun | bunx"},
    {"pip": "pip", "uv": "uv | uvx", "poetry": "poetry", "pipenv": "pipenv", "pdm": "pdm", "conda": "conda | mamba"},
    {"docker": "docker", "podman": "podman"},
    {"make": "make", "just": "just"},
    {"pytest": "pytest", "unittest": "python -m unittest"},
    {"mvn": "mvn", "gradle": "gradle | ./gradlew"},
)
# Files that are known by their names; `generated` only where the repository does not mark its own.
NAMED = {
    "generated": "generated | __generated__ | *.generated.* | *_pb2.py | *_pb2_grpc.py | *.pb.go",
    "lock": "package-lock.json | yarn.lock | pnpm-lock.yaml | uv.lock | poetry.lock | Cargo.lock | go.sum | Gemfile.lock",
    "vendored": "vendor | third_party",
}

_CONDITION = re.compile(r"\b(unless|except|if|when|while|until|before|after|only|without)\b")
_NAME = r"(`[^`]{1,80}`|[a-z][\w.+*-]*(?: (?:run|exec|install|test|build|add|push|commit)\b)?)"
_LIST = rf"{_NAME}(?:(?:,? (?:or|nor|and) (?:not )?|, ?){_NAME})*"
_USE = re.compile(
    rf"(?:always |please |we |only )?(?:use|prefer|stick to|go with) {_NAME}"
    rf"(?: (?:here|everywhere|in this (?:repo|repository|project)|for everything))?"
    rf"(?:(?:,| and)? ?(?:not|never|instead of|rather than|over|in place of) (?P<not>{_LIST}))?"
)
_AVOID = re.compile(
    rf"(?:do not|never|avoid|no) (?:use |using )?(?P<not>{_LIST})(?:[,;:.] ?(?:always )?use {_NAME}(?: instead)?)?"
)
_EDIT = re.compile(
    r"(?:do not|never|must not|no) (?:hand-?)?(?:edit|edits to|editing|change|modify|touch|write to|write|delete|move)\b(.*)"
)
_RUN = re.compile(rf"(?:do not|never|must not) (?:run|execute|call|invoke)(?: the)?(?: tools?| command)? (?P<what>{_LIST})")
_FILE = re.compile(r"`([^`]+)`|((?:[\w.*-]+/)+[\w.*-]*|[\w*-]*\*[\w.*-]*|[\w-]+\.[a-z][\w.]{0,11})")


class Clause(Value):
    """What is checked: (target, pattern) as in `rules.matches`, what to do instead, and examples (text, whether covered)."""

    __slots__ = ("examples", "instead", "pattern", "target")

    def __init__(self, target: str, pattern: str, instead: str = "", examples: tuple[tuple[str, bool], ...] = ()) -> None:
        self.target, self.pattern, self.instead, self.examples = target, pattern, instead, examples


def propose(text: str, generated: str = "") -> tuple[Clause | None, str]:
    """(the clause that a decision's text says, "") or (None, why there is none).

    generated   the pattern by which the repository itself marks generated files, "" where it does not
    """
    said = " ".join(text.replace("don't", "do not").replace("Don't", "Do not").split()).rstrip(" .!")
    lower = "".join(part if i % 2 else part.lower() for i, part in enumerate(re.split(r"(`[^`]*`)", said)))
    condition = _CONDITION.search(re.sub(r"`[^`]*`", "", lower.removeprefix("only ")))
    if condition:
        return None, f"it has a condition (`{condition[1]}`)"
    edit = _EDIT.fullmatch(lower)
    if edit:
        return _files(said[-len(edit[1]) :] if edit[1] else "", generated)
    run = _RUN.fullmatch(lower)
    if run:
        return _commands(_names(run["what"]), "")
    use = _USE.fullmatch(lower)
    if use:
        return _use(use[1], _names(use["not"] or ""))
    avoid = _AVOID.fullmatch(lower)
    if avoid:
        named = _names(lower[avoid.end("not") :].replace("instead", "").partition("use ")[2])
        return _commands(_names(avoid["not"]), _programs(named[0].strip("`")) if named else "")
    return None, "it is not a sentence that can be checked as it stands"


def _names(text: str) -> list[str]:
    """The things of a list, still in their backticks."""
    words = re.split(r",? (?:or|nor|and) (?:not )?|, ?", text)
    return [w.strip() for w in words if w.strip("` ")]


def _programs(name: str) -> str:
    """The pattern of a program and of what belongs to it."""
    return next((group[name] for group in GROUPS if name in group), name)


def _use(chosen: str, against: list[str]) -> tuple[Clause | None, str]:
    """*Use X*: against what is named, else against what else does the work."""
    chosen = chosen.strip("`")
    if not against:
        against = [name for group in GROUPS if chosen in group for name in group if name != chosen]
    if not against:
        return None, f"it does not say what `{chosen}` is to be used instead of"
    return _commands(against, _programs(chosen))


def _commands(against: list[str], instead: str) -> tuple[Clause | None, str]:
    tools = [name.strip("`") for name in against if name.strip("`").startswith("mcp__")]
    if tools:
        return (
            (Clause("tool", OR.join(tools)), "") if len(tools) == len(against) else (None, "it names tools and commands at once")
        )
    for name in against:
        if "`" not in name and not is_known(name.split()[0]):
            return None, f"`{name}` is no program that is known here: write it in backticks if it is one"
    pattern = OR.join(dict.fromkeys(canonical(_programs(name.strip("`"))) for name in against))
    covered = tuple((one, True) for one in pattern.split(OR) if "*" not in one)
    spared = tuple((one, False) for one in instead.split(OR) if one and "*" not in one)
    return Clause("command", pattern, instead, covered + spared), ""


def is_known(name: str) -> bool:
    """Is it a program whose options or subcommands are known here, or one of a few others that decisions are about?"""
    tables = (option_tables.TABLES, option_tables_builds.TABLES, option_tables_tools.TABLES)
    return (
        any(name in group for group in GROUPS)
        or name in _OTHERS
        or name in option_tables.SUBCOMMANDS
        or name in option_tables_tools.SUBCOMMANDS
        or any(key.partition(" ")[0] == name for table in tables for key in table)
    )


_OTHERS = frozenset(
    "sudo dd ssh kill pkill killall chmod chown shutdown reboot crontab sh bash perl java ruby php telnet nc".split()
)


_STAR = "starqstar"  # stands for a pattern's `*` where it is read as a command
_NOWHERE = "/no/such/project"  # so that `/data` stays what it is, and `build` too


def canonical(pattern: str) -> str:
    """A command pattern as actions are written down: `npm i` -> `npm install`, `git push -f` -> `git push --force`. Globs and
    what is no single command stay as they are."""
    out = []
    for one in pattern.split(OR):
        one = " ".join(one.split())
        parts = identify("Bash", {"command": one.replace("*", _STAR)}, root=_NOWHERE, cwd=_NOWHERE).parts
        odd = any(c in one for c in "?[") or any("*" in word for word in one.split() if word[:1] == "-")
        plain = len(parts) == 1 and parts[0].kind == "sh" and not odd
        text = parts[0].text.replace(_STAR, "*") if plain else one
        same = not plain or " " not in one or "  # " in text
        out.append(one if same else text)
    return OR.join(out)


def as_typed(pattern: str) -> str:
    """A command pattern that a person wrote by hand, with the spelling in which actions are written down beside it where that is
    another: `rm -rf /srv` -> `rm -rf /srv | rm --force --recursive /srv`, a `*` for any text included."""
    return OR.join(dict.fromkeys([*pattern.split(OR), *canonical(pattern).split(OR)]))


def _files(rest: str, generated: str) -> tuple[Clause | None, str]:
    """*Do not edit ...*: paths and globs as written, else files that are known by a name."""
    paths = [a or b for a, b in _FILE.findall(rest)]
    if not paths:
        for word, pattern in NAMED.items():
            if re.search(rf"\b{word}\b|\b{word}files?\b", rest.lower()):
                paths = [generated or pattern] if word == "generated" else [pattern]
    if not paths:
        return None, "it does not name the files (a path or a glob)"
    return Clause("path", OR.join(path.rstrip("/") for path in paths)), ""
