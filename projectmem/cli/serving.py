"""`mcp`, `proxy`, `serve` and `watch`: serve agents and hooks, and build ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from projectmem import output
from projectmem.cli import common
from projectmem.cli.common import EXITS, Root

PROXY_EXITS = "Exit code: the server's; 2 wrong usage, 3 could not be started."


def register(parent: typer.Typer) -> None:
    """Add the commands to the application."""
    parent.command(epilog=EXITS)(mcp)
    parent.command(epilog=PROXY_EXITS, context_settings={"allow_interspersed_args": False})(proxy)
    parent.command(epilog=EXITS)(serve)
    parent.command(epilog=EXITS)(watch)


def mcp(root: Root = "") -> None:
    """Serve agents over MCP on standard input/output."""
    from projectmem.mcp_server import run

    run(common.open_place(root))


def proxy(
    command: Annotated[list[str] | None, typer.Argument(help="What starts the server, after `--`.", show_default=False)] = None,
    name: Annotated[
        str, typer.Option("--name", help="What the client calls the server (default: what it calls itself).", show_default=False)
    ] = "",
    wrap: Annotated[
        Path | None,
        typer.Option("--wrap", metavar="FILE", help="Put the proxy before every server in FILE (.mcp.json).", show_default=False),
    ] = None,
    unwrap: Annotated[
        Path | None, typer.Option("--unwrap", metavar="FILE", help="Take it out again.", show_default=False)
    ] = None,
    root: Root = "",
) -> None:
    """Put the gate before the tools of any MCP server.

    `projectmem proxy -- CMD ARGS` starts the server and passes everything through. A call that is about to repeat a failure is
    warned of in its result, or refused in place of it. For clients whose hooks do not see MCP calls.
    """
    from projectmem.errors import BadInputError
    from projectmem.setup import wrapping

    if sum(map(bool, (command, wrap, unwrap))) != 1:
        raise BadInputError("give the server's command after `--`, or a file with --wrap or --unwrap")
    if command:
        from projectmem.mcp_proxy import run

        common.leave(run(command, common.workdir(root), name))
    file = wrap or unwrap
    assert file is not None
    names = wrapping.wrap(file) if wrap else wrapping.unwrap(file)
    done = "the gate is before" if wrap else "the gate is no longer before"
    for server in names:
        common.say(f"{done} the tools of {output.safe(server)}")
    if not names:
        common.say(f"nothing to {'wrap' if wrap else 'unwrap'} in {output.safe(str(file))}")


def serve(
    idle: Annotated[
        int, typer.Option("--idle", metavar="MINUTES", min=0, help="End after so long without a request; 0: never.")
    ] = 30,
    parent: Annotated[
        int, typer.Option("--parent", metavar="PID", min=0, help="End when this process has.", show_default=False)
    ] = 0,
    root: Root = "",
) -> None:
    """Answer hooks from a resident process.

    Over HTTP on loopback and a Unix socket, without a process for each call.

    For hooks that `init --http` registered. Nothing depends on it: while it does not run the command hooks answer.
    """
    from projectmem.serve.run import Server, on_signals

    server = Server(common.open_place(root).home, idle_s=idle * 60.0, parent=parent)
    on_signals(server)
    why = server.run(lambda addresses: common.note(f"answering hooks at {', '.join(addresses)}"))
    common.note(f"ended: {why}")


def watch(root: Root = "") -> None:
    """Build summaries and recall ahead.

    While agents work, at most once a minute.

    Nothing depends on it: whoever reads brings them up. Ends with Ctrl-C.
    """
    import signal

    from projectmem.watch import Watch, build_everything

    home = common.open_place(root).home
    watching = Watch(home, lambda: build_everything(home), tell=common.note)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: watching.stop())
    common.note(f"watching {home}/log")
    watching.run()
