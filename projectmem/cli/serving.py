"""`mcp`, `proxy`, `serve` and `watch`: serve agents and hooks, and build ahead."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from projectmem import output
from projectmem import place as places
from projectmem.cli import common
from projectmem.cli.common import EXITS, Root

if TYPE_CHECKING:
    from projectmem.mcp_address import Address
    from projectmem.place import Place

PROXY_EXITS = "Exit code: the server's; 2 wrong usage, 3 could not be started."


def register(parent: typer.Typer) -> None:
    """Add the commands to the application."""
    parent.command(epilog=EXITS)(mcp)
    parent.command(epilog=PROXY_EXITS, context_settings={"allow_interspersed_args": False})(proxy)
    parent.command(epilog=EXITS)(serve)
    parent.command(epilog=EXITS)(watch)


def mcp(root: Root = "") -> None:
    """Serve agents over MCP on standard input/output.

    A client starts it: `claude mcp add projectmem -- projectmem mcp`, or a server with that command in its settings.
    """
    from projectmem.mcp_server import run

    if sys.stdin is not None and sys.stdin.isatty():
        common.note("projectmem: an MCP server, which an agent's client starts (`projectmem mcp -h`); Ctrl-C ends it")
    run(lambda: common.open_place(root))


def proxy(
    command: Annotated[list[str] | None, typer.Argument(help="What starts the server, after `--`.", show_default=False)] = None,
    name: Annotated[
        str, typer.Option("--name", help="What the client calls the server (default: what it calls itself).", show_default=False)
    ] = "",
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Where the server is, for one over HTTP.", show_default=False)
    ] = "",
    wrap: Annotated[
        Path | None,
        typer.Option(
            "--wrap",
            metavar="FILE",
            help="Put the proxy before every server in FILE (.mcp.json, config.toml, opencode.json, ...).",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--open", help="With --wrap: also before servers over HTTP that may want a login.")
    ] = False,
    unwrap: Annotated[
        Path | None, typer.Option("--unwrap", metavar="FILE", help="Take it out again.", show_default=False)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --wrap or --unwrap: say what would be done, do nothing.")
    ] = False,
    log_in: Annotated[bool, typer.Option("--login", help="With --url: log in to a server that wants OAuth, once.")] = False,
    root: Root = "",
) -> None:
    """Put the gate before the tools of any MCP server.

    `projectmem proxy -- CMD ARGS` starts the server and passes everything through. A call that is about to repeat a failure is
    warned of in its result, or refused in place of it. For clients whose hooks do not see MCP calls.

    Headers for --url stand in PROJECTMEM_MCP_SERVER, as {"headers": {...}}.
    """
    from projectmem.errors import BadInputError

    entry = places.env(places.MCP_SERVER_VARIABLE)
    over_http = url or (entry and not (command or wrap or unwrap))
    if log_in and not over_http:
        raise BadInputError("say where to log in: `projectmem proxy --login --url URL`, the address of the MCP server")
    if sum(map(bool, (command, over_http, wrap, unwrap))) != 1:
        raise BadInputError("give the server's command after `--`, its address with --url, or a file with --wrap or --unwrap")
    if log_in:
        from projectmem.mcp_login import login

        common.say(login(_address(entry, url), common.say))
        return
    if command or over_http:
        from projectmem.mcp_proxy import run

        address = _address(entry, url) if over_http else None
        common.leave(run(command or [], common.workdir(root), name, address))
    file = wrap or unwrap
    assert file is not None
    _edit(file, common.workdir(root), back=bool(unwrap), every=every, dry_run=dry_run)


def _edit(file: Path, start: str, *, back: bool, every: bool, dry_run: bool) -> None:
    """Wrap or unwrap the servers of a file, having said which. What is wrapped is noted for `uninit`, where a log is there."""
    from projectmem.setup import wrapping
    from projectmem.setup.init import note_wrapped

    names, _, _ = wrapping.planned(file, every=every, back=back)
    done = ("the gate would be" if dry_run else "the gate is") + (" no longer before" if back else " before")
    for server in names:
        common.say(f"{done} the tools of {output.safe(server)}")
    there = [] if names or back else wrapping.planned(file, back=True)[0]
    for server in there:
        common.say(f"the gate is before the tools of {output.safe(server)} already")
    if not names and not there:
        common.say(f"nothing to {'unwrap' if back else 'wrap'} in {output.safe(str(file))}")
    for server, why in [] if back else wrapping.left(file, every=every):
        common.note(f"left {output.safe(server)} as it is: {why}")
    if dry_run:
        if names:
            common.say("nothing was changed. To do it: the same without --dry-run")
        return
    if names:
        (wrapping.unwrap if back else lambda path: wrapping.wrap(path, every=every))(file)
    place = places.locate(start)
    if place is not None and place.ready and (names or back):
        note_wrapped(place, file, not back)


def _address(entry: str, url: str) -> Address:
    """Where a server over HTTP is: the entry of the environment, with the address of the command line. Raises BadInputError."""
    from projectmem.errors import BadInputError
    from projectmem.mcp_address import address_of
    from projectmem.setup import jsonc

    try:
        given = jsonc.parse(entry or "{}").data
    except jsonc.JsonError as exc:
        raise BadInputError(f"{places.MCP_SERVER_VARIABLE} is not valid JSON ({exc})") from None
    return address_of({**(given if isinstance(given, dict) else {}), **({"url": url} if url else {})})


def serve(
    page_only: Annotated[bool, typer.Option("--page-only", help="The web page alone: no process answers hooks.")] = False,
    hook_only: Annotated[bool, typer.Option("--hook-only", help="No web page.")] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The page's port; 0: any that is free.")] = 0,
    idle: Annotated[
        int | None,
        typer.Option(
            "--idle",
            metavar="MINUTES",
            min=0,
            help="End after so long without a request; 0: never (the default with the page; without it 30).",
            show_default=False,
        ),
    ] = None,
    parent: Annotated[
        int, typer.Option("--parent", metavar="PID", min=0, help="End when this process has.", show_default=False)
    ] = 0,
    root: Root = "",
) -> None:
    """Show the log in a browser, and answer hooks.

    The web page: what stands as failed, what the gate said and why, the log, its health. Read-only, on this machine alone; open
    the printed address, which holds a key.

    Hooks: over HTTP on loopback and a Unix socket, without a process for each call, where `init --http` registered them. Nothing
    depends on it: while it does not run the command hooks answer.
    """
    from projectmem.errors import BadInputError

    if hook_only and (page_only or show or port):
        raise BadInputError("--hook-only shows no page: leave it out, or leave out --page-only, --open and --port")
    place, idle_s = common.open_place(root), 60.0 * (idle or 0)
    if page_only:
        _page(place, port, idle_s, parent, show)
        return
    from projectmem.serve.run import Server, on_signals

    if hook_only:
        server = Server(place.home, idle_s=1800.0 if idle is None else idle_s, parent=parent)
        on_signals(server)
        why = server.run(lambda addresses: common.note(f"answering hooks at {', '.join(addresses)}"))
        common.note(f"ended: {why}")
        return
    from projectmem.serve.both import serve as serve_both

    serve_both(place, port=port, idle=idle or 0, parent=parent, show=show, tell=common.note)


def _page(place: Place, port: int, idle_s: float, parent: int, show: bool) -> None:
    """The web page in this process, until something ends it."""
    import signal

    from projectmem.web.run import Page

    page = Page(place, port=port, idle_s=idle_s, parent=parent)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: page.end("it was told to"))

    def ready() -> None:
        common.say(f"the page is at {page.address}")
        sys.stdout.flush()
        if show:
            _open(page.offer())

    why = page.run(ready, lambda text: common.note(f"projectmem: {output.safe(text)}"))
    common.note(f"the page ended: {why}")


def _open(address: str) -> None:
    """In the person's browser, which may take its time."""
    import threading
    import webbrowser

    def start() -> None:
        if not webbrowser.open(address):
            common.note("no browser could be started: open the address yourself")

    threading.Thread(target=start, daemon=True).start()


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
