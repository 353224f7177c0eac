"""Assembles the commands and turns whatever goes wrong into one clear message and an exit code, never a traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from projectmem import output
from projectmem.cli import (
    asking,
    backtesting,
    checking,
    curating,
    embedding,
    evaluating,
    forgetting,
    history,
    importing,
    integrity,
    policies,
    reading,
    recalling,
    recording,
    repairing,
    serving,
    setup,
)
from projectmem.cli.common import EXITS_CHECKED, group
from projectmem.cli.plain_help import plain
from projectmem.installed import version

FAILED, USAGE, COULD_NOT, BUG, BROKEN_PIPE, INTERRUPTED = 1, 2, 3, 70, 141, 130

app = group(
    "Remembers what coding agents tried and how it ended, and speaks up before they repeat a failure.",
    epilog=f"{EXITS_CHECKED} `check` has its own: 0 allow, 10 warn, 11 ask, 12 deny. 130 interrupted, 70 a bug.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"projectmem {version()}")
        raise typer.Exit


@app.callback()
def _root(
    root: Annotated[str, typer.Option("--root", metavar="DIR", help="Folder whose project is meant.", show_default=False)] = "",
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Remembers what coding agents tried and how it ended, and speaks up before they repeat a failure."""


PARTS = (
    setup,
    importing,
    checking,
    recording,
    reading,
    recalling,
    asking,
    embedding,
    curating,
    history,
    integrity,
    repairing,
    forgetting,
    policies,
    serving,
    backtesting,
    evaluating,
)
for part in PARTS:
    part.register(app)


@functools.cache
def _command() -> Any:
    """The commands as the library wants them: it reads every function's parameters again each time, a tenth of a second."""
    return plain(typer.main.get_command(app))


def run(args: Sequence[str]) -> int:
    """Run one command line; returns the exit code. Prints errors on stderr, one clear message each."""
    _tolerant_streams()
    try:
        code = _command()(args=list(args), prog_name="projectmem", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        _silence_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except Exception as exc:
        return _explain(exc, args)


def _explain(exc: Exception, args: Sequence[str]) -> int:
    if isinstance(exc, typer.Exit):
        return exc.exit_code
    if isinstance(exc, typer.Abort):
        return _say("interrupted", INTERRUPTED)
    show = getattr(exc, "show", None)
    if show is not None and hasattr(exc, "format_message"):  # a usage error of the command-line library
        show()
        _missing(exc)
        return int(getattr(exc, "exit_code", USAGE))
    if isinstance(exc, _known()):
        from projectmem.errors import BadInputError

        return _say(output.safe(str(exc), lines=True), USAGE if isinstance(exc, BadInputError) else COULD_NOT)
    if isinstance(exc, OSError):
        return _say(output.safe(_of_disk(exc)), COULD_NOT)
    return _bug(exc, args)


def _missing(exc: Exception) -> None:
    """Of an option or argument that was left out: what it takes and what for."""
    param: Any = getattr(exc, "param", None)
    if type(exc).__name__ == "MissingParameter" and param is not None and getattr(param, "help", None):
        takes = " ".join(filter(None, ("/".join(param.opts), param.metavar if param.opts[0].startswith("-") else "")))
        print(f"  {takes}: {param.help}", file=sys.stderr)


def _of_disk(exc: OSError) -> str:
    """What the system refused, without its number, and what to do. A file that was to be written aside is not what is missing."""
    name = os.fsdecode(exc.filename) if isinstance(exc.filename, (str, bytes)) else ""
    folder = os.path.dirname(os.path.abspath(name))
    if name and isinstance(exc, FileNotFoundError):
        if not os.path.isdir(folder):
            return f"the folder {folder} does not exist: make it, or name another"
        return f"{name} does not exist: name a file or folder that does"
    what = (exc.strerror or str(exc)).lower()
    return f"{name + ': ' if name else ''}{what}: check that the file or folder exists and may be read and written"


def _known() -> tuple[type[Exception], ...]:
    """The errors that were written for people; imported only once something went wrong."""
    from projectmem_gate.policy import PolicyError
    from projectmem_logs.errors import LogError
    from projectmem_projections.errors import ProjectionError

    from projectmem.errors import ProjectmemError

    return (ProjectmemError, PolicyError, LogError, ProjectionError)


def _bug(exc: Exception, args: Sequence[str]) -> int:
    from projectmem.crash import without_secrets, write_details

    where = write_details(exc, args)
    kind = output.safe(without_secrets(f"{type(exc).__name__}: {exc}"), limit=200)
    return _say(f"this is a bug in projectmem ({kind}). Details were written to {where}", BUG)


def _say(message: str, code: int) -> int:
    try:
        print(f"projectmem: {message}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass
    return code


def _tolerant_streams() -> None:
    """Characters that the terminal's encoding lacks are spelled out instead of ending the command."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _open_what_is_closed() -> None:
    """A stream that was closed before we began leads nowhere, and no file that is opened later gets its number."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (until the end)


def _silence_stdout() -> None:
    """The reader has gone: send what is still buffered nowhere, so that the exit is quiet too."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass
