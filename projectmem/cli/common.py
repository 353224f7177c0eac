"""What every command shares: the options that are everywhere, the place it works on, its clock, and its way to print."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from projectmem import caller, output, place
from projectmem.errors import NoProjectError, RefusedError

if TYPE_CHECKING:
    from projectmem.place import Place

Root = Annotated[
    str,
    typer.Option("--root", metavar="DIR", help="The project's folder (default: this one).", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

EXITS = "Exit codes: 0 done, 2 wrong usage, 3 could not be done (the message says why)."
EXITS_CHECKED = "Exit codes: 0 all is well, 1 something is not, 2 wrong usage, 3 could not be done (the message says why)."


def group(help: str, **more: Any) -> typer.Typer:
    """A command group with the settings that all of them have."""
    return typer.Typer(
        help=help,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        **more,
    )


def now() -> int:
    """The time, in microseconds since the epoch (UTC)."""
    return time.time_ns() // 1000


@contextmanager
def kept(as_json: bool) -> Iterator[None]:
    """Around one append: where the log stayed locked, say that what was given is kept, and end well.

    It is in the spool, and who hears of an error writes it a second time. As JSON {"id": "", "kept": path}.
    """
    from projectmem_logs.errors import SpooledError

    try:
        yield
    except SpooledError as exc:
        if as_json:
            emit({"id": "", "kept": exc.path})
        else:
            say("kept: the log is busy, and the next command or hook that writes adds it; do not give it again")
        raise typer.Exit(0) from None


def workdir(root: str) -> str:
    """The absolute folder a command starts from: `--root`, or the current one."""
    path = os.path.abspath(root or _global_root() or os.getcwd())
    if not os.path.isdir(path):
        raise NoProjectError(f"`{output.safe(path)}` is not a folder: give an existing one with --root")
    return path


def _global_root() -> str:
    """`projectmem --root DIR COMMAND`: the option given before the command."""
    context = typer_context()
    return str((context.find_root().params or {}).get("root") or "") if context is not None else ""


def typer_context() -> Any:
    """The running command's context, None outside of one."""
    from typer._click.globals import get_current_context

    return get_current_context(silent=True)


def open_place(root: str) -> Place:
    """The project a command works on. Raises NoProjectError where there is no log yet."""
    start = workdir(root)
    found = place.find(start)
    if found is None or not os.path.isdir(found.home):
        from projectmem import absent

        what, remedy = absent.of(start)
        raise NoProjectError(f"{output.safe(what)}: {output.safe(remedy)}")
    return found


def require_person(what: str) -> None:
    """Raise RefusedError unless a person sits at a terminal: rules and pins are not an agent's to make."""
    if caller.origin() != "human":
        raise RefusedError(
            f"{what} needs a person: run it yourself at a terminal, outside the agent. "
            "(An agent can record a note, or `projectmem dispute` a record that it saw to be wrong.)"
        )


def paint() -> output.Paint:
    """Colour for stdout: only on a terminal, never with NO_COLOR."""
    return output.Paint(sys.stdout.isatty() and not caller.no_color())


def say(text: str = "") -> None:
    """One line (or several) on stdout. Text from the log must have passed `output.safe`."""
    print(text)


def note(text: str) -> None:
    """A remark on stderr: never part of the answer, and behind what was said before it where both go to one place."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        pass  # nobody reads the answer any more; it is told where that matters
    print(text, file=sys.stderr)


def notices(found: Sequence[object]) -> None:
    """What a person should hear besides the answer: damage that was read around, things that were rebuilt."""
    for remark in found[:5]:
        note(f"projectmem: {output.safe(remark)}")
    if len(found) > 5:
        note(f"projectmem: and {len(found) - 5} more such notices")


def emit(value: Any) -> None:
    """The answer as one JSON document."""
    print(output.to_json(value))


def width() -> int:
    """How wide a line may be: the terminal's width, or 120 where the output is not one."""
    from shutil import get_terminal_size

    return max(60, get_terminal_size((120, 24)).columns) if sys.stdout.isatty() else 120


def leave(code: int) -> NoReturn:
    """End the command with this exit code."""
    raise typer.Exit(code)
