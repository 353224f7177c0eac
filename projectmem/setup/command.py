"""The command that a harness runs for each event: the interpreter, and a loader that finds this installation's packages.

`python -I -S` starts without site-packages and ignores the environment and the working directory, which is what makes the
hook fast and keeps a project's own files from shadowing ours; so the loader names the folders itself. It exits 0 when the
packages are gone: `python missing.py` would exit 2, which harnesses read as *deny everything*. A process of 20 ms collects
no garbage. Compiled code comes from one bundle where that is as fresh as the sources (hook/bundled.py).
"""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from projectmem.errors import ProjectmemError
from projectmem.setup import bundle

PACKAGES = ("projectmem", "projectmem_logs", "projectmem_gate", "projectmem_projections")
PARSERS = ("tree_sitter", "tree_sitter_bash")  # only their C modules are loaded, and only when a command must be parsed
MARK = "projectmem.hook.entry"  # how our entries are told from other people's
_GONE = (
    '{"systemMessage":"projectmem: its program is gone, so the gate is off and nothing is recorded. '
    'Install projectmem-gate again and run `projectmem init`, or take its hooks out of the settings of your agent."}'
)
# The first line is for whoever opens the settings file. No quotes in it: a shell's line would spell each with five characters.
_LOADER = """# projectmem: asks its gate before a tool call and records what became of it. Taken out by: projectmem uninit
import gc, sys
gc.disable()
sys.path += {folders!r}
try:
    import marshal, _frozen_importlib_external
    f = open(sys.path[-{count}] + {bundle!r} + sys.implementation.cache_tag + ".bundle", "rb")
    if f.read(4) == _frozen_importlib_external.MAGIC_NUMBER:
        n, m = (int.from_bytes(f.read(4), "little") for _ in "12")
        b = {{"__name__": "bundled"}}
        exec(marshal.loads(f.read(n)), b)
        b["serve"](f, m)
except Exception:
    pass
try:
    from {mark} import run
except Exception:
    if sys.argv[-1] == "SessionStart":
        print({gone!r})
    elif sys.argv[-2:] == ["cursor", "preToolUse"]:
        print('{{"permission":"allow"}}')
else:
    run()
"""


def interpreter() -> str:
    """The absolute path to register: the interpreter behind a virtual environment, so that removing that one cannot
    turn every call into an error; never a shim, which costs 100 ms a call."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    if not base or not Path(base).is_file():
        raise ProjectmemError(f"cannot find the Python interpreter to register (sys.executable is {sys.executable!r})")
    return str(Path(base).absolute())


def package_folders() -> list[str]:
    """The folders that hold our packages and the parser's (one for a wheel, up to five for an editable installation)."""
    found: dict[str, None] = {}
    for name in (*PACKAGES, *PARSERS):
        spec = find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec else []
        if not places:
            raise ProjectmemError(f"the package {name} cannot be found: install projectmem-gate again")
        found[str(Path(places[0]).absolute().parent)] = None
    return list(found)


def loader(folders: list[str]) -> str:
    """The inline program."""
    return _LOADER.format(folders=folders, mark=MARK, gone=_GONE, count=len(folders) or 1, bundle=bundle.PREFIX)


def hook_args(harness: str, event: str) -> list[str]:
    """Arguments of the interpreter for one event of one harness."""
    return ["-I", "-S", "-c", loader(package_folders()), harness, event]


def command_line(harness: str, event: str) -> str:
    """The command of one event as one line for a shell, for harnesses that take no list of words."""
    return line(interpreter(), hook_args(harness, event))


def line(command: str, args: list[str]) -> str:
    """These words as a line for a shell, which becomes the program and does not wait for it."""
    return f"exec {shlex.join([command, *args])}"


# Exits at once while the log's server runs (serve/alive.py) and something listens on its port here: a network namespace of one's
# own has another loopback. Else it becomes the command. No other program is started: reading three files takes a millisecond.
# Where the system has no /proc the command always runs, and the two answers are the same.
_GUARD = """h=$1; shift
since() { shift 21; [ "$1" = "$t" ]; }
listens() {
  while read -r _ l _ st _; do
    case "$l $st" in "0100007F:$q 0A") return 0;; *" 0A"|*" st") ;; *) return 1;; esac
  done < /proc/net/tcp
  return 1
}
if [ -z "$PROJECTMEM_GATE_HOME" ] && { read -r p t q < "$h/serve.alive" && read -r s < "/proc/$p/stat" && since $s && listens
} 2>/dev/null; then exit 0; fi
exec "$@"
"""
SHELL = "/bin/sh"


def guarded(home: str, command: str, args: list[str]) -> tuple[str, list[str]]:
    """(command, args) that do nothing while a server answers for the log in `home`."""
    return SHELL, ["-c", _GUARD, "projectmem", home, command, *args]


def is_ours(hook: object) -> bool:
    """Whether a hook entry of a settings file was written by `init` (of any version, any installation)."""
    if not isinstance(hook, dict):
        return False
    args = hook.get("args")
    words = [hook.get("command"), hook.get("bash"), hook.get("url"), *(args if isinstance(args, list) else [])]
    return any(isinstance(word, str) and MARK in word for word in words)


def words_of(hook: dict[str, object]) -> list[str]:
    """The words that an entry of a settings file starts: its own, or a shell's for a command line."""
    args = hook.get("args")
    if isinstance(args, list):
        return [str(hook.get("command")), *map(str, args)]
    return [SHELL, "-c", str(hook.get("command") or hook.get("bash"))]
