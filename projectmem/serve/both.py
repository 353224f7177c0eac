"""The page beside the resident hook: two processes, so that neither the page's libraries nor its work slow an answer to a hook.

The hook's process starts the page's. The page outlives a hook that ends by itself (a failed request, another server that answers
for this log already); both end when a person ends this process, and when both were idle for as long as was said.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from projectmem.errors import ProjectmemError
from projectmem.serve import settings
from projectmem.serve.run import BusyError, Server

if TYPE_CHECKING:
    from projectmem.place import Place

END_S = 10.0


def serve(place: Place, *, port: int, idle: int, parent: int, show: bool, tell: Callable[[str], None]) -> None:
    """Serve page and hooks until both ended.  idle  minutes, 0 for never.

    Raises ProjectmemError where a port is taken.
    """
    if port:
        _refuse_taken(port)
    page = subprocess.Popen(command(place.root, port=port, idle=idle, show=show, parent=os.getpid()))
    told = False
    server = Server(place.home, idle_s=idle * 60.0, parent=parent, held=lambda: page.poll() is None)

    def end(*_: object) -> None:
        nonlocal told
        told = True
        server.end("it was told to")
        _terminate(page)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        try:
            why = server.run(lambda addresses: tell(f"answering hooks at {', '.join(addresses)}"))
            tell(f"the hook ended: {why}")
        except BusyError as exc:
            tell(f"{exc}: this one shows the page alone")
        while not told and page.poll() is None and not (parent and server.orphaned()):
            try:
                page.wait(1.0)
            except subprocess.TimeoutExpired:
                continue
    finally:
        _terminate(page)
        try:
            page.wait(END_S)
        except subprocess.TimeoutExpired:
            page.kill()


def _refuse_taken(port: int) -> None:
    """Before anything is started: the page's process could only say it for itself."""
    try:
        socket.create_server((settings.HOST, port)).close()
    except OSError as exc:
        raise ProjectmemError(f"port {port} cannot be used ({exc.strerror or exc}): give another with --port") from None


def command(root: str, *, port: int, idle: int, show: bool, parent: int) -> list[str]:
    """What starts the page alone. No key is in it: every user of the machine may list it."""
    options = ["--port", str(port), "--idle", str(idle), "--parent", str(parent), "--root", root, *(["--open"] if show else [])]
    return [sys.executable, "-P", "-m", "projectmem", "serve", "--page-only", *options]


def _terminate(page: subprocess.Popen[bytes]) -> None:
    if page.poll() is None:
        page.terminate()
