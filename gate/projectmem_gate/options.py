"""[H] The one canonical order of a command's arguments: subcommand, sorted options, operands.

A command that uses an option its table (option_tables.py) does not know, in a place where it might take the next word, keeps
its order: a gap in a table costs an equality and never makes two different commands equal.
"""

from __future__ import annotations

from projectmem_gate import option_tables_builds as builds
from projectmem_gate import option_tables_tools as more
from projectmem_gate.option_tables import (
    ALIASES,
    DIRECTORY,
    GLOBAL_DROP,
    GLOBAL_LONG,
    GLOBAL_VALUES,
    PM_BUILTIN,
    SUBCOMMANDS,
    TABLES,
    TWO_LEVEL,
)
from projectmem_gate.words import is_static

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

Spec = tuple[str, dict[str, str], dict[str, str], frozenset[str]]  # traits, value options, flags, dropped
_split: dict[str, Spec] = {}


def _spelled(names: str) -> dict[str, str]:
    """Every spelling of an option -> its canonical one."""
    out: dict[str, str] = {}
    for name in names.split():
        short, _, long = name.partition("=")
        canonical = long or short
        out[short] = canonical
        out[canonical] = canonical
    return out


def table(name: str) -> Spec:
    """(traits, value options, flags, dropped) of a program or `program sub`, split once."""
    found = _split.get(name)
    if found is None:
        traits, values, flags, drop = TABLES.get(name) or builds.TABLES.get(name) or more.TABLES[name]
        takes, bare = _spelled(values), _spelled(flags)
        dropped = frozenset(takes.get(d) or bare.get(d) or d for d in drop.split())
        found = _split[name] = (traits, takes, bare, dropped)
    return found


def cmdlet_of(word: str) -> str:
    """The command of PowerShell whose parameters are known that goes by this name or alias, in lower case; else ""."""
    name = more.CMDLETS.get(word.lower(), word.lower())
    return name if "-" in name and name in more.TABLES and "P" in more.TABLES[name][0] else ""


class Arguments:
    """Arguments in canonical order.

    directory  value of an option like `git -C`, or "";  subs  subcommand words;  options  (name, value or "") sorted;
    operands   in order;  tail  what follows `--`;  traits  of the program;  loose  false when the order had to be kept
    unsure     an operand that other spellings name otherwise
    dropped    options left out because they only change how output looks, as written
    """

    __slots__ = ("directory", "dropped", "loose", "operands", "options", "subs", "tail", "traits", "unsure", "verbatim")

    def __init__(self) -> None:
        self.directory = ""
        self.dropped: list[str] = []
        self.subs: list[str] = []
        self.options: list[tuple[str, str]] = []
        self.operands: list[str] = []
        self.tail: list[str] | None = None
        self.traits = ""
        self.unsure = ""
        self.loose = True
        self.verbatim: list[str] = []


def arrange(name: str, args: Sequence[str]) -> Arguments:
    """Split `args` of program `name` into subcommand, sorted options, operands and tail."""
    out = Arguments()
    rest = _globals(name, list(args), out)
    if name == "tar" and rest and rest[0].isalpha():
        rest[0] = f"-{rest[0]}"  # `tar xzf` of old
    if name in SUBCOMMANDS or name in more.SUBCOMMANDS:
        rest = _subcommand(name, rest, out)
    spec: Spec | None = None
    for candidate in (f"{name} {' '.join(out.subs[:2])}", f"{name} {out.subs[0]}" if out.subs else "", name):
        if candidate in TABLES or candidate in builds.TABLES or candidate in more.TABLES:
            spec = table(candidate)
            break
    if spec is None:
        out.verbatim, out.loose = rest, False
        return out
    out.traits = spec[0]
    if "o" in spec[0]:
        _options(rest, spec, out)
        _same_meaning(name, out)
    else:
        out.dropped = [word for word in rest if word in spec[3]]
        out.verbatim, out.loose = [word for word in rest if word not in spec[3]], False
    return out


def _same_meaning(name: str, out: Arguments) -> None:
    """Operands and options that say the same in other words."""
    if name == "curl" and ("--request", "GET") in out.options and not any(o in _CURL_BODIES for o, _ in out.options):
        out.options.remove(("--request", "GET"))
    elif name in ("kubectl", "oc") and out.subs[:1] and out.subs[0] in _OF_RESOURCES and out.operands:
        first = out.operands[0]
        out.operands[0] = builds.RESOURCES.get(first, first)
        out.unsure = out.operands[0]
    elif out.operands[-1:] == [_HERE.get(name, ".")] and _looks_here_anyway(name, out):
        out.operands.pop()
    elif name == "psql" and out.operands and not any(o == "--dbname" for o, _ in out.options):
        out.options = sorted([*out.options, ("--dbname", out.operands.pop(0))])
    elif name in ("make", "gmake"):  # `make test VERBOSE=1`: a variable holds for all, wherever it stands
        set_, targets = [w for w in out.operands if "=" in w], [w for w in out.operands if "=" not in w]
        out.operands = targets + sorted(set_, key=lambda w: w.partition("=")[0])
    elif name in ("http", "https", "xh", "xhs"):
        _request(name, out)
    elif "P" in out.traits:
        _by_place(name, out)


_HERE = {"golangci-lint": "./..."}


def _request(name: str, out: Arguments) -> None:
    """HTTPie's method, address and fields, with what it adds itself; fields in whatever order."""
    operands = list(out.operands)
    method = operands.pop(0) if operands and operands[0].isalpha() and operands[0].isupper() else ""
    if not operands or not all(map(is_static, operands)):
        return
    url, fields = operands[0], sorted(operands[1:])
    sends = any("=" in f.replace("==", "") or "@" in f for f in fields)
    out.options = sorted([*out.options, ("--method", method or ("POST" if sends else "GET"))])
    if "://" not in url:
        url = ("https://" if name in ("https", "xhs") else "http://") + (
            "localhost" + url.removeprefix(":/") if url.startswith(":/") else "localhost" + url if url[:1] == ":" else url
        )
        out.unsure = url
    out.operands = [url, *fields]


def _looks_here_anyway(name: str, out: Arguments) -> bool:
    """Is `.` where this search or listing looks when no place is named?"""
    if len(out.operands) == 1:
        sub = out.subs[0] if out.subs else ""
        return sub in _ANYWAY.get(name, ()) or (
            name in ("rg", "grep") and any(o in ("--files", "--regexp", "--file") for o, _ in out.options)
        )
    return len(out.operands) == 2 and (
        name == "rg" or (name == "grep" and any(o in ("-r", "-R", "--recursive") for o, _ in out.options))
    )


_ANYWAY = {"ls": ("",), "ruff": ("check", "format"), "go": ("build", "vet", "install"), "golangci-lint": ("run",)}


def _by_place(name: str, out: Arguments) -> None:
    """PowerShell's parameters by name, as the operands that they are."""
    places = more.POSITIONS.get(name, ("-path",))
    named = dict(out.options)
    given = list(out.operands)
    operands = []
    for place in places:
        if place in named:
            operands.append(named.pop(place))
        elif given:
            operands.append(given.pop(0))
        else:
            break
    out.operands = operands + given
    out.options = [(o, v) for o, v in out.options if o in named]


_CURL_BODIES = ("--data", "--data-raw", "--data-binary", "--data-urlencode", "--json", "--form", "--upload-file", "--head")
_OF_RESOURCES = ("get", "describe", "delete", "edit", "label", "annotate", "scale", "wait", "patch")


def _globals(name: str, args: list[str], out: Arguments) -> list[str]:
    """Take the options in front of the subcommand; what sets the directory goes to `out.directory`."""
    known = GLOBAL_VALUES.get(name, more.GLOBAL_VALUES.get(name))
    if known is None:
        return args
    takes = known.split()
    i = 0
    while i < len(args) and args[i][:1] == "-" and args[i] not in ("-", "--"):
        word = args[i]
        option, eq, value = word.partition("=")
        if _sets_directory(name, option) and (eq or i + 1 < len(args)):
            _directory(value if eq else args[i + 1], out)
            i += 1 if eq else 2
        elif f"{name} {option}" in GLOBAL_DROP:
            i += 1
        elif name == "git" and word == "-c" and args[i + 1 : i + 2] and args[i + 1].startswith(_SHOWN_SETTINGS):
            i += 2
        elif word in takes and i + 1 < len(args):
            out.options.append((GLOBAL_LONG.get(f"{name} {word}", word), args[i + 1]))
            i += 2
        elif option in takes and eq:
            out.options.append((GLOBAL_LONG.get(f"{name} {option}", option), value))
            i += 1
        elif name in ("npm", "bun") or name not in SUBCOMMANDS:
            break  # `make -j8 all`: left to the table
        else:
            out.options.append((word, ""))
            i += 1
    if name in _DIRECTORY_BEHIND:  # `npm run build --prefix web` too
        for j in range(i, len(args)):
            option, eq, value = args[j].partition("=")
            if option == "--" or out.directory:
                break
            if _sets_directory(name, option) and (value if eq else args[j + 1 : j + 2]):
                _directory(value if eq else args[j + 1], out)
                return args[i:j] + args[j + (1 if eq else 2) :]
    return args[i:]


_DIRECTORY_BEHIND = ("npm", "pnpm", "yarn", "make", "ctest", "ninja", "swift", "pulumi", "turbo")


def _sets_directory(name: str, option: str) -> bool:
    return f"{name} {option}" in DIRECTORY or f"{name} {option}" in more.DIRECTORY


_SHOWN_SETTINGS = ("color.", "core.pager", "advice.", "pager.")


def _directory(found: str, out: Arguments) -> None:
    out.directory = found if not out.directory or found[:1] == "/" else out.directory + "/" + found


def _subcommand(name: str, rest: list[str], out: Arguments) -> list[str]:
    """Take the subcommand words, in their one spelling."""
    if name == "cargo" and rest and rest[0][:1] == "+":
        out.options.append((rest[0], ""))
        rest = rest[1:]
    if not rest and not out.options and name in builds.BARE:
        out.subs = [builds.BARE[name]]
        return rest
    if not rest or rest[0][:1] in ("-", "") or not is_static(rest[0]) or "=" in rest[0] or "/" in rest[0]:
        return rest
    word = rest[0]
    sub = next((t[name][word] for t in (ALIASES, builds.ALIASES, more.ALIASES) if word in t.get(name, ())), word)
    rest = rest[1:]
    if name in ("yarn", "pnpm") and sub not in PM_BUILTIN:
        out.subs = ["run", sub]
        return rest
    if name == "yarn" and sub == "workspace" and rest and is_static(rest[0]):
        out.options.append(("--workspace", rest[0]))
        return _subcommand(name, rest[1:], out)
    if name == "turbo" and sub not in more.TURBO_OWN:
        sub, rest = "run", [sub, *rest]
    if name == "docker" and sub in ("image", "container") and rest[:1] and rest[0] in _DOCKER_VERBS:
        sub, rest = rest[0], rest[1:]
    elif name in ("docker", "podman") and rest[:1] and (sub, rest[0]) in builds.DOCKER_SHORT:
        sub, rest = builds.DOCKER_SHORT[sub, rest[0]], rest[1:]
    out.subs = [sub]
    if f"{name} {sub}" not in TWO_LEVEL and f"{name} {sub}" not in more.TWO_LEVEL:
        return rest
    if name == "docker" and sub == "compose":
        rest = _globals(name, rest, out)
    if rest and rest[0][:1] != "-" and is_static(rest[0]):
        second = rest[0]
        if second in ("test", "start") and sub == "run" and name in ("npm", "yarn", "pnpm"):
            out.subs = [second]
        else:
            out.subs.append(second)
        rest = rest[1:]
        if name == "git" and out.subs == ["stash", "push"]:
            out.subs = ["stash"]
    return rest


_DOCKER_VERBS = ("build", "run", "pull", "push", "exec", "start", "stop")


def _options(rest: list[str], spec: Spec, out: Arguments) -> None:
    """Sort options; when one that the table does not know might take the next word, keep everything as written."""
    traits = spec[0]
    # Options in front of the subcommand, in the spelling of the table.
    options, operands = [(spec[1].get(o) or spec[2].get(o) or o, v) for o, v in out.options], []
    i, n = 0, len(rest)
    while i < n:
        word = rest[i]
        i += 1
        if word in ("--", "-args"):
            if "e" in traits and not any(w[:1] == "-" for w in rest[i:]):
                operands += rest[i:]  # it only ends the options
            else:
                out.tail = rest[i:]
            break
        if word[:1] != "-" or word == "-":
            operands.append(word)
            if "s" in traits:
                operands += rest[i:]
                break
            continue
        whole = word[1] == "-" or "c" not in traits or (len(word) > 2 and (word in spec[1] or word in spec[2]))  # mvn -pl
        take = _long if whole else _short
        i = take(word, rest, i, spec, options)
        if i < 0:
            out.verbatim, out.loose = rest, False
            return
    unseen = spec[3]
    out.dropped = sorted([f"{o}={v}" if v else o for o, v in options if o in unseen])
    out.options = sorted([option for option in options if option[0] not in unseen], key=_rank)
    out.operands = operands


# Of what lets in and what keeps out the first (rsync) or the last (aws) that fits decides: their order stays.
_IN_ORDER = ("--include", "--exclude", "--filter", "--include-from", "--exclude-from", "--not", "--glob", "--iglob", "-F")


def _rank(option: tuple[str, str]) -> str:
    return "--include" if option[0] in _IN_ORDER else option[0]


def _long(word: str, rest: list[str], i: int, spec: Spec, options: list[tuple[str, str]]) -> int:
    """One `--option` (or `-option` of go and terraform); the index after it and its value, -1 when it cannot be told."""
    traits, takes, bare, _ = spec
    name, eq, value = word.partition(":" if "P" in traits else "=")
    if "P" in traits:
        name = name.lower()
    if word.startswith("--") and "c" not in traits and name not in takes and name not in bare:
        name = name[1:]  # go and terraform: --run is -run
    if eq:
        name = takes.get(name) or bare.get(name) or name
    elif name in takes and name not in bare and i < len(rest):
        name, value = takes[name], rest[i]
        i += 1
    elif name in bare:
        name = bare[name]
        if name in ("--pretty", "--noEmit") and rest[i : i + 1] in (["false"], ["true"]):
            value = rest[i]
            i += 1
    elif i < len(rest) and rest[i][:1] != "-" and not name.startswith("--no-"):
        return -1
    options.append((name, value))
    return i


def _counted(word: str, takes: dict[str, str]) -> str:
    """`-5` as the option for which it is short."""
    long = takes.get("-n", "")
    return long if long in ("--max-count", "--lines") and word[1:].isdigit() else word


def _short(word: str, rest: list[str], i: int, spec: Spec, options: list[tuple[str, str]]) -> int:
    """A cluster like -xvf; the index after it and its value, -1 when it cannot be told."""
    traits, takes, bare, _ = spec
    j = 1
    while j < len(word):
        letter, value = "-" + word[j], ""
        j += 1
        if letter in takes and letter not in bare:
            value, j = word[j:], len(word)
            if "g" in traits:
                value = value.removeprefix("=")
            if not value and i < len(rest):
                value = rest[i]
                i += 1
            letter = takes[letter]
        elif letter in bare:
            letter = bare[letter]
            if letter in ("--jobs", "--password"):  # `-j8`, mysql's `-pSECRET`
                value, j = word[j:], len(word)
                if letter == "--jobs" and not value and i < len(rest) and rest[i].isdigit():
                    value = rest[i]  # `make -j 8` too
                    i += 1
        elif word[1].isdigit():
            letter, value, j = _counted(word, takes), "", len(word)  # head -20, git log -5
            if letter != word:
                value = word[1:]
        elif "x" not in traits and "p" not in traits and i < len(rest) and j == len(word) and rest[i][:1] != "-":
            return -1
        options.append((letter, value))
    return i
