"""The page's life: a listener on loopback in a process of its own, an address with a key, and an end.

It ends when it is told to, when nobody has asked for a while, when the process it was started for is gone, and when another
version of its program is installed.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from projectmem_logs import files

from projectmem import output
from projectmem.errors import ProjectmemError
from projectmem.serve import alive
from projectmem.web.doors import Keys
from projectmem.web.pages import application

if TYPE_CHECKING:
    from projectmem.place import Place

HOST = "127.0.0.1"
TICK_S = 0.5
END_S = 3  # what is being answered when it ends is answered so long
AT_ONCE = 64  # connections
OPENER = "page.html"


class Page:
    """The page of one project. `parent` is a process that it serves, 0 for none; `idle_s` 0 never ends for want of requests."""

    def __init__(self, place: Place, *, port: int = 0, idle_s: float = 0.0, parent: int = 0, keys: Keys | None = None) -> None:
        self.place, self.port, self.idle_s, self.parent = place, port, idle_s, parent
        self.keys = keys or Keys()
        self.why = ""
        self._parent_since = alive.started(parent) if parent else ""
        self._child = parent == os.getppid()
        self._stop, self._asked = threading.Event(), time.monotonic()
        self._sources = files.signature(__file__)

    @property
    def address(self) -> str:
        """What a person opens: with the key."""
        return f"http://{HOST}:{self.port}/?token={self.keys.token}"

    def run(self, ready: Callable[[], None], tell: Callable[[str], None]) -> str:
        """Serve until something ends it; returns what did. `ready` is called once it answers, `tell` is told of bugs.

        Raises ProjectmemError where the port is taken.
        """
        output.still()
        try:
            listener = socket.create_server((HOST, self.port))
        except OSError as exc:
            raise ProjectmemError(f"port {self.port} cannot be used ({exc.strerror or exc}): give another with --port") from None
        self.port = listener.getsockname()[1]
        app = application(self.place, self.keys, now=lambda: time.time_ns() // 1000, tell=tell, asked=self._was_asked)
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=AT_ONCE,
            timeout_graceful_shutdown=END_S,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            ready()
            while not (why := self.why or self._end()) and thread.is_alive():
                self._stop.wait(TICK_S)
            return why or "its listener ended"
        finally:
            server.should_exit = True
            thread.join(END_S + 2)
            files.remove(self.opener)

    @property
    def opener(self) -> str:
        """The file that `offer` writes."""
        return os.path.join(self.place.home, OPENER)

    def offer(self) -> str:
        """Write a file, readable by its owner alone, that leads a browser to the page; returns its address.

        A browser is started with this in place of the page's own address: what a process was started with, everybody can list.
        Raises OSError.
        """
        text = f'<!doctype html><title>projectmem</title><meta http-equiv="refresh" content="0;url={self.address}">\n'
        files.replace(self.opener, text.encode())
        return Path(self.opener).as_uri()

    def end(self, why: str) -> None:
        """End the page; it returns from `run` at once."""
        self.why = self.why or why
        self._stop.set()

    def _was_asked(self) -> None:
        self._asked = time.monotonic()

    def _end(self) -> str:
        idle = time.monotonic() - self._asked
        if self.idle_s and idle > self.idle_s:
            return f"nobody has asked for {int(idle)} s"
        if self.parent and not self._parent_runs():
            return f"process {self.parent}, for which it was started, is gone"
        if files.signature(__file__) != self._sources:
            return "another version of its program is installed"
        return ""

    def _parent_runs(self) -> bool:
        if self._child and os.getppid() != self.parent:
            return False
        return alive.runs(self.parent) and alive.started(self.parent) == self._parent_since
