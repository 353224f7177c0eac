"""[H] One command with its wrappers taken off, and the commands that it carries inside walked in its place."""

from __future__ import annotations

from projectmem_gate import wrappers
from projectmem_gate.redirects import NONE
from projectmem_gate.scope import Command
from projectmem_gate.words import is_static, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.scope import Scope
    from projectmem_gate.shell import Stdin, Walk, Writes

MAX_DEPTH = 8
# Programs that change what later commands of the same shell find.
_ENVIRONMENTS = ("source", ".", "nvm", "conda", "mamba", "pyenv", "workon", "sdk", "fnm", "asdf", "module")
_MOVING = frozenset(
    (*_ENVIRONMENTS, "set", "cd", "chdir", "pushd", "popd", "set-location", "push-location", "pop-location")
)  # what `_move` follows


def command(walk: Walk, argv: list[str], env: dict[str, str], scope: Scope, stdin: Stdin, writes: Writes) -> None:
    """Emit one command, or what is inside it."""
    first = not env
    env = {**scope.env, **env}
    if len(argv) > 3 and argv[0] == "env" and argv[1] in ("-C", "--chdir"):
        command(walk, ["env", *argv[3:]], env, _within(walk, scope, argv[2]), stdin, writes)
        return
    limits: list[int] = []
    argv = wrappers.neutral(argv, env, first, limits)
    under = scope.under
    while argv:
        prefix, rest, folder = wrappers.kept(argv)
        if not prefix:
            break
        if folder:
            scope = _within(walk, scope, folder)
        under = (*under, *prefix)
        argv = wrappers.neutral(rest, env, False, limits)
    if env:
        for name in wrappers.NEUTRAL_ENV & env.keys():
            del env[name]
    if argv and argv[0] in scope.functions:
        return  # its commands were walked where it is defined
    before = len(walk.commands)
    if argv and _nested(walk, argv, env, under, scope, stdin, writes):
        for item in walk.commands[before:]:
            item.limit = min([*limits, *([item.limit] if item.limit else [])], default=0)
        return
    inside = scope.inside
    for name, source in scope.loops.items():
        said = (*argv, *[target for _, target in writes], stdin[1])
        if "$" + name in scope.cwd or any("$" + name in word and not is_static(word) for word in said):
            inside = (*inside, source)
    item = Command(argv, env, scope, under, inside)
    item.stdin, item.writes, item.limit = stdin, writes, min(limits, default=0)
    if argv:
        _move(walk, argv, scope)
    walk.emit(item)


def _within(walk: Walk, scope: Scope, folder: str) -> Scope:
    """The scope of what a launcher runs in a folder that it was told."""
    there = scope.copy()
    if not scope.remote:
        there.cwd = walk.roots.name(folder, scope.cwd, real=True) if is_static(folder) else "?" + shown(folder)
    else:
        there.cwd = shown(folder) if folder[:1] == "/" else scope.cwd + "/" + shown(folder)
    return there


def _nested(
    walk: Walk, argv: list[str], env: dict[str, str], under: tuple[str, ...], scope: Scope, stdin: Stdin, writes: Writes
) -> bool:
    """Walk into payloads; true when nothing else of this command is left to emit."""
    if scope.depth >= MAX_DEPTH or not wrappers.may_carry(argv[0]):
        return False
    name = wrappers.basename(argv[0])
    before = len(walk.commands)
    script = wrappers.shell_payload(argv)
    inner = scope.copy()
    inner.depth, inner.env, inner.under = scope.depth + 1, env, under
    fed_script = script is None and name in wrappers.SHELLS and argv[1:] in ([], ["-s"], ["-"]) and stdin[0] == "text"
    if fed_script and is_static(stdin[1]):
        script = stdin[1]
    if script is not None:
        inner.variables = {}
        if name == "su":
            inner.under = (*under, *[w for w in argv[: argv.index("-c")] if w != "-"])
        elif name == "nix-shell":
            inner.under = (
                *under,
                *[w for w in argv if w not in ("--run", "--command", wrappers.after(argv, "--run", "--command"))],
            )
        walk.run(script, inner)
    elif name == "eval" and len(argv) > 1:
        walk.run(" ".join([shown(w) for w in argv[1:]]), inner)
        scope.cwd, scope.env = inner.cwd, inner.env
    elif (far := wrappers.ssh(argv)) is not None:
        inner.far(far[0])
        walk.run(far[1], inner)
    elif (boxed := wrappers.container(argv)) is not None:
        inner.far(boxed[0])
        command(walk, boxed[1], {}, inner, stdin, writes)
    elif (fed := wrappers.xargs(argv)) is not None:
        inner.inside = (*inner.inside, "xargs")
        command(walk, fed, {}, inner, stdin, writes)
        source = walk.commands[int(stdin[1])] if stdin[0] == "pipe" else None
        _given(walk, before, source, scope)
    else:
        for run in wrappers.find_commands(argv):
            found = scope.copy()
            found.depth, found.inside = scope.depth + 1, (*scope.inside, "find")
            at = len(walk.commands)
            command(walk, run, {}, found, NONE, [])
            _given(walk, at, Command(argv, env, scope, under, ()), scope)
            walk.join(";")
        return False
    for item in walk.commands[before:]:
        if item.writes is not writes:
            item.writes = item.writes + writes
    return len(walk.commands) > before


def _given(walk: Walk, since: int, source: Command | None, scope: Scope) -> None:
    """Note where the files lie that a list hands to the commands since."""
    if source is None or scope.remote:
        return
    from projectmem_gate.targets import listed

    for item in walk.commands[since:]:
        item.among = listed(source.argv, walk.roots, source.cwd)


def _move(walk: Walk, argv: list[str], scope: Scope) -> None:
    """Follow cd, pushd, popd, and what sets up an environment."""
    name = argv[0]
    if name not in _MOVING and name.lower() not in _MOVING:
        return
    if name == "set" and len(argv) == 2 and walk.roots.windows and (pair := wrappers.assignment(argv[1])):
        scope.env[pair[0]] = pair[1]  # cmd: `set X=1 && npm test`
        return
    if name in _ENVIRONMENTS and len(argv) > 1 and argv[1] not in ("list", "ls", "info", "env", "--version"):
        words = ["source" if name == "." else name, *argv[1:]]
        if words[0] == "source" and not scope.remote and is_static(argv[1]):
            words[1] = walk.roots.name(argv[1], scope.cwd)
        scope.inside = (*scope.inside, " ".join(words))
        return
    if name == "popd" or name.lower() == "pop-location":
        if scope.stack:
            scope.cwd = scope.stack.pop()
        return
    if name.lower() in ("set-location", "push-location"):  # PowerShell
        name = "pushd" if name[0] in "pP" else "cd"
        argv = [w for w in argv if w.lower() not in ("-path", "-literalpath")]
    if name not in ("cd", "pushd", "chdir"):
        return
    operands = [w for w in argv[1:] if w == "-" or w[:1] != "-"]
    if len(operands) > 1 and operands[0].lower() == "/d" and walk.roots.windows:
        operands = operands[1:]  # cmd: to another drive too
    here = scope.cwd
    if name == "pushd":
        scope.stack.append(here)
    target = operands[0] if operands else "\x01~"
    if target == "-":
        scope.cwd, scope.back = scope.back, here
        return
    scope.back = here
    if scope.remote:
        scope.cwd = shown(target) if target[:1] == "/" else here + "/" + shown(target)
    elif is_static(target):
        scope.cwd = walk.roots.name(target, here, real=True)
    else:
        scope.cwd = "?" + shown(target)
