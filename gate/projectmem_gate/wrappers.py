"""[H] Commands in front of commands: what is neutral is removed, what matters is kept as a prefix, payloads are found.

`time`, `nice`, `nohup`, `env X=1`, `timeout 60` do not change what is run. `sudo`, `uv run`, `npx`, `docker exec` do: they are
often the remedy. `bash -c '...'`, `ssh host '...'`, `eval`, `xargs`, `find -exec` carry a command inside, which is an
action of its own.
"""

from __future__ import annotations

from projectmem_gate.launchers import FOLDER, KEPT, LONG, LONG_HAND, NEUTRAL, PACKAGES, STARTERS, TWO_WORDS
from projectmem_gate.lines import names
from projectmem_gate.words import COMMAND, QCOMMAND, is_static, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Variables that change only how output looks.
NEUTRAL_ENV = names(
    """
    AWS_PAGER PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONFAULTHANDLER NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE TERM
    COLUMNS LINES PAGER GIT_PAGER GH_PAGER MANPAGER BAT_PAGER LESS GREP_COLOR GREP_COLORS CARGO_TERM_COLOR
    CARGO_TERM_PROGRESS_WHEN PY_COLORS NPM_CONFIG_COLOR npm_config_color npm_config_loglevel NODE_NO_WARNINGS
    RUST_BACKTRACE GIT_TERMINAL_PROMPT NO_UPDATE_NOTIFIER NPM_CONFIG_FUND NPM_CONFIG_AUDIT
    PIP_DISABLE_PIP_VERSION_CHECK PIP_PROGRESS_BAR PIP_NO_INPUT HOMEBREW_NO_AUTO_UPDATE DOTNET_NOLOGO
    DOTNET_CLI_TELEMETRY_OPTOUT NEXT_TELEMETRY_DISABLED _
    """
)

SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash"))

_MANAGED = names("npm npx pnpm pnpx yarn yarnpkg")  # by corepack
_RTK_OWN = names("gain discover init config proxy learn session verify help --version --help")
_ASSIGN_OK = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789")
_SSH_VALUES = names("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B")
_SSH_PATIENCE = ("ConnectTimeout", "ServerAlive", "LogLevel", "ConnectionAttempts")
_XARGS_VALUES = names("-I -i -n -P -L -l -d -E -s -a --max-args --max-procs --replace --delimiter --arg-file")


def basename(word: str) -> str:
    """Last component of a static command word."""
    return word.rsplit("/", 1)[-1] if "/" in word else word


def assignment(word: str) -> tuple[str, str] | None:
    """`NAME=value` as a pair, or None."""
    i = word.find("=")
    if i <= 0 or word[0].isdigit() or not _ASSIGN_OK.issuperset(word[:i]):
        return None
    return word[:i], word[i + 1 :]


def _after_options(argv: Sequence[str], at: int, values: Sequence[str]) -> int:
    """Index of the first operand from `at`, stepping over options and their values."""
    n = len(argv)
    while at < n and argv[at][:1] == "-" and argv[at] != "-":
        word = argv[at]
        at += 1
        if word == "--":
            break
        if word in values:
            at += 1
    return min(at, n)


def neutral(argv: list[str], env: dict[str, str], first: bool = False, limits: list[int] | None = None) -> list[str]:
    """`argv` without neutral wrappers in front; assignments of `env X=1` go to `env`. Unchanged when nothing would be left.

    `first`: nothing stands before it. Only there is `time` the shell's keyword; behind an assignment it is another program.
    `limits` gets the milliseconds that a `timeout` gives.
    """
    while argv:
        name = basename(argv[0])
        if name == "time" and not first:
            return argv
        first = False
        if name in NEUTRAL:
            if name == "command" and argv[1:2] and argv[1][:1] == "-" and argv[1] != "--" and argv[1] != "-p":
                return argv  # command -v asks, it does not run
            at = _after_options(argv, 1, NEUTRAL[name])
            if name == "nice" and at < len(argv) and argv[at].isdigit():
                at += 1
        elif name == "env":
            at = 1
            while at < len(argv) and assignment(argv[at]):
                at += 1
            if at >= len(argv) or argv[at][:1] == "-":
                return argv
            env.update(a for a in map(assignment, argv[1:at]) if a)
        elif name in ("timeout", "gtimeout"):
            at = _after_options(argv, 1, ("-s", "-k", "--signal", "--kill-after")) + 1
            if limits is not None and at < len(argv):
                limits += milliseconds(argv[at - 1])
        else:
            return argv
        if at >= len(argv):
            return argv
        argv = argv[at:]
        while argv and name == "time" and (pair := assignment(argv[0])):
            env[pair[0]] = pair[1]
            argv = argv[1:]
    return argv


def milliseconds(span: str) -> list[int]:
    """`10`, `1.5m`, `2h` as [milliseconds]; [] for what is no span, and for 0, which is no limit."""
    number, unit = (span[:-1], span[-1]) if span[-1:] in _UNITS and span[-1:] else (span, "s")
    whole, _, part = number.partition(".")
    if len(number) > 12 or not (whole + part).isdigit() or not (whole + part).isascii():
        return []
    found = int(f"{whole or 0}{part[:3]:0<3}") * _UNITS[unit]
    return [found] if found else []


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _in_front(argv: list[str]) -> list[str]:
    """`uv --directory web run x` with the options behind the subcommand, as `uv run --directory web x`."""
    name = basename(argv[0])
    needs = KEPT[name][0] if name in KEPT else ()
    subs = needs[:1] or TWO_WORDS.get(name, ())
    takes = (*(KEPT[name][1] if name in KEPT else PACKAGES), *FOLDER.get(name, ()))
    at = 1
    while subs and at < len(argv) and argv[at][:1] == "-" and argv[at] not in ("-", "--"):
        at += 2 if argv[at] in takes else 1
    if at == 1 or at >= len(argv) or argv[at] not in subs:
        return argv
    return [argv[0], argv[at], *argv[1:at], *argv[at + 1 :]]


def kept(argv: list[str]) -> tuple[list[str], list[str], str]:
    """(prefix, rest, folder it works in or "") when `argv` starts with a wrapper that matters and runs something, else
    ([], argv, "")."""
    if basename(argv[0]) not in STARTERS:
        return [], argv, ""
    given, argv = argv, _in_front(argv)
    for words, others in LONG_HAND:
        if tuple(argv[: len(words)]) == words:
            argv = [*others, *argv[len(words) :]]
    name = basename(argv[0])
    if name == "nix":
        return _nix(argv)
    spec = KEPT.get(name)
    if spec is not None:
        needs, values, dropped = spec
        if needs and tuple(argv[1 : 1 + len(needs)]) != needs:
            return [], given, ""
        if (name == "rtk" and (len(argv) < 2 or argv[1] in _RTK_OWN)) or (name == "corepack" and _MANAGED.isdisjoint(argv[1:2])):
            return [], given, ""
        at = 1 + len(needs)
    elif name in TWO_WORDS and argv[1:2] and argv[1] in TWO_WORDS[name]:
        values, dropped, at = PACKAGES, ("-y", "--yes"), 2
    else:
        return [], given, ""
    folders = FOLDER.get(name, ())
    values = (*values, *folders)
    prefix, where = [name, *argv[1:at]], ""
    end = _after_options(argv, at, values)
    if name in ("mise", "asdf") and "--" in argv[at:]:
        end = argv.index("--", at) + 1
    if name in ("direnv", "flock"):
        end += 1
    if end >= len(argv):
        return [], given, ""
    options, i = [], at
    while i < end:
        word, glued, value = argv[i].partition("=")
        i += 1
        if word in values:
            if not glued and i < end:
                value = argv[i]
                i += 1
            if word in folders:
                where = value
            else:
                options.append((LONG.get((name, word), word), value))
        elif word != "--" and word not in dropped:
            options.append((word + glued + value, ""))
    if name in ("sudo", "env"):
        while end < len(argv) - 1 and assignment(argv[end]):
            options.append((argv[end], ""))
            end += 1
    for option, value in sorted(options):
        prefix += [option, value] if value else [option]
    return prefix, argv[end:], where


def _nix(argv: list[str]) -> tuple[list[str], list[str], str]:
    """`nix develop -c make`: the command stands behind an option."""
    if argv[1:2] in (["develop"], ["shell"]):
        for at, word in enumerate(argv):
            if word in ("-c", "--command") and at + 1 < len(argv):
                return argv[:at], argv[at + 1 :], ""
    return [], argv, ""


def shell_payload(argv: Sequence[str]) -> str | None:
    """The script of `bash -lc SCRIPT` (zsh, `cmd /c`, `pwsh -Command` ...) as source text, or None when argv is not that."""
    name = basename(argv[0]).removesuffix(".exe").lower()
    if name in SHELLS:
        i = 1
        while i < len(argv) and argv[i][:1] in ("-", "+") and argv[i] not in ("-", "--"):
            word = argv[i]
            if not word.startswith("--") and word[0] == "-" and "c" in word[1:] and is_static(word):
                i += 1 + ("o" in word[1:])  # `-ceuo pipefail SCRIPT`
                return _source(argv[i : i + 1])
            # `-euo pipefail`: a cluster that ends in o takes the next word
            named = word in ("--rcfile", "--init-file") or (word[:2] != "--" and word[-1] in "oO")
            i += 2 if named else 1
    elif name in ("cmd", "powershell", "pwsh"):
        for i, word in enumerate(argv[1:], 1):
            if word.lower() in ("/c", "/k", "//c", "//k", "-c", "-command"):
                found = _source(argv[i + 1 :])
                return found and of_powershell(found)
    elif name == "su" and "-c" in argv:
        return _source([after(argv, "-c")])
    elif name == "nix-shell" and (found := after(argv, "--run", "--command")):
        return _source([found])
    elif name == "fish" and _FISH.isdisjoint((found := after(argv, "-c", "--command")).split()):
        return _source([found]) if found else None
    return None


_FISH = frozenset(("set", "and", "or", "not", "begin", "end", "function"))  # what it says otherwise than bash


def of_powershell(text: str) -> str:
    """A command line of PowerShell or cmd as one of bash, as far as they differ in a way that matters here: a backslash is a
    path's, never an escape, and `$env:X = 1` is `export X=1`."""
    text = text.replace("\\", "/")
    at = text.lower().find("$env:")
    while at >= 0:
        name, sign, value = text[at + 5 :].partition("=")
        if (
            text[:at].rstrip(" \t")[-1:] in ("", ";", "\n", "{", "&")
            and sign
            and name.strip().isidentifier()
            and value[:1] != "="
        ):
            text = f"{text[:at]}export {name.strip()}={value.lstrip(' ')}"
        at = text.lower().find("$env:", at + 5)
    return text


def after(argv: Sequence[str], *options: str) -> str:
    """The word behind one of these options, "" where there is none."""
    return next((argv[i + 1] for i, word in enumerate(argv[:-1]) if word in options), "")


def _source(words: Sequence[str]) -> str | None:
    """Words as source text; None when only running a substitution would tell what they are."""
    if not words or any(mark in word for word in words for mark in (COMMAND, QCOMMAND)):
        return None
    return " ".join([shown(word) for word in words])


_CARRIERS = SHELLS | names(
    """
    cmd powershell pwsh su nix-shell fish eval ssh xargs gxargs docker podman kubectl docker-compose nerdctl oc
    find gfind fd fdfind
    """
)


def may_carry(word: str) -> bool:
    """Is this a program that can be given a command to run: one that `shell_payload`, `ssh` and what follows look for?"""
    name = basename(word)
    return name in _CARRIERS or name.removesuffix(".exe").lower() in _CARRIERS


def ssh(argv: Sequence[str]) -> tuple[str, str] | None:
    """(`ssh`, the options that matter, host; the remote script) of an ssh command that runs something, or None."""
    if basename(argv[0]) != "ssh":
        return None
    options: list[str] = []
    i, n = 1, len(argv)
    while i < n and argv[i][:1] == "-":
        if argv[i][:2] in _SSH_VALUES and len(argv[i]) > 2:  # `-p22`, `-oBatchMode=yes`
            argv = [*argv[:i], argv[i][:2], argv[i][2:], *argv[i + 1 :]]
            n += 1
        if argv[i] in _SSH_VALUES and i + 1 < n:
            if argv[i] not in ("-E", "-O", "-Q", "-e") and not (argv[i] == "-o" and argv[i + 1].startswith(_SSH_PATIENCE)):
                options += [argv[i], argv[i + 1]]
            i += 1
        i += 1
    rest = list(argv[i + 1 :])
    if rest[:1] == ["--"]:
        rest = rest[1:]
    if not rest:
        return None
    return " ".join(["ssh", *options, argv[i]]), " ".join([shown(w) for w in rest])


def xargs(argv: Sequence[str]) -> list[str] | None:
    """The command that xargs runs, or None."""
    if basename(argv[0]) not in ("xargs", "gxargs"):
        return None
    at = _after_options(argv, 1, tuple(_XARGS_VALUES))
    return list(argv[at:]) if at < len(argv) else None


def container(argv: Sequence[str]) -> tuple[str, list[str]] | None:
    """(where, inner argv) of docker/kubectl exec that run a shell script inside, or None."""
    if basename(argv[0]) not in ("docker", "podman", "kubectl", "docker-compose", "nerdctl", "oc"):
        return None
    if not any(w in ("exec", "run") for w in argv[1:4]):
        return None
    for i in range(2, len(argv) - 2):
        if basename(argv[i]) in SHELLS and shell_payload(argv[i:]) is not None:
            return " ".join([basename(argv[0]), *(w for w in argv[1:i] if w not in _TTY)]), list(argv[i:])
    return None


_TTY = ("-i", "-t", "-it", "-ti", "--interactive", "--tty", "-T", "--")


def find_commands(argv: Sequence[str]) -> list[list[str]]:
    """The commands of `find ... -exec/-execdir/-ok ... ;`."""
    if basename(argv[0]) not in ("find", "gfind", "fd", "fdfind"):
        return []
    out: list[list[str]] = []
    i, n = 1, len(argv)
    while i < n:
        if argv[i] in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            j = i + 1
            while j < n and argv[j] not in (";", "+"):
                j += 1
            if j > i + 1:
                out.append(list(argv[i + 1 : j]))
            i = j
        i += 1
    return out
