"""A server's life: one per log, and none is left behind.

It ends when a request fails (the command hooks then answer), when nobody has asked for a while, when the process it was started
for is gone, when another version of its program is installed, when its settings are gone, and on SIGTERM or SIGINT.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from projectmem_logs import files

from projectmem.errors import ProjectmemError
from projectmem.hook import background, degraded, entry
from projectmem.serve import alive, kept, server
from projectmem.serve import settings as settings_of

IDLE_S = 1800.0
ORPHAN_IDLE_S = 10.0  # other sessions may still be asking when the one that started the server ends
TICK_S = 1.0
POLL_S = 0.5  # how long a listener takes to notice that it should end


class BusyError(ProjectmemError):
    """Another server already answers for this log."""


class Server:
    """The listeners of one log. `parent` is a process that it serves, 0 for none; `idle_s` 0 never ends for want of requests, and
    neither does it while it is `held`."""

    def __init__(self, home: str, *, idle_s: float = IDLE_S, parent: int = 0, held: Callable[[], bool] = lambda: False) -> None:
        self.home, self.idle_s, self.parent, self.held = home, idle_s, parent, held
        self.parent_since = alive.started(parent) if parent else ""
        self.settings = settings_of.make(home)
        self.hook = server.Hook(home, self.settings)
        self.why = ""
        self._stop = threading.Event()
        self._sources = files.signature(entry.__file__)

    def run(self, ready: Callable[[list[str]], None] | None = None) -> str:
        """Serve until something ends it; returns what did. `ready` is told the addresses.

        Raises BusyError where another server runs for this log, ProjectmemError where the port is taken.
        """
        held = files.lock(os.path.join(self.home, "serve.lock"), 0)
        if held is None:
            raise BusyError(f"another `projectmem serve` answers for this log already (process {alive.server(self.home)})")
        kept.keep()
        try:
            return self._serve(ready)
        finally:
            kept.release()
            files.unlock(held)

    def _serve(self, ready: Callable[[list[str]], None] | None) -> str:
        try:
            listeners = [server.tcp(self.hook)]
        except OSError as exc:
            raise ProjectmemError(
                f"port {self.settings.port} cannot be used ({exc.strerror or exc}): delete {settings_of.path(self.home)} and run "
                "`projectmem init --http` for another one"
            ) from None
        addresses = [f"http://{settings_of.HOST}:{self.settings.port}"]
        if local := settings_of.socket_path(self.home):
            listeners.append(server.unix(self.hook, local))
            addresses.append(f"unix:{local}")
        threads = [threading.Thread(target=one.serve_forever, args=(POLL_S,), daemon=True) for one in listeners]
        for thread in threads:
            thread.start()
        try:
            files.replace(alive.path(self.home), alive.mark(os.getpid(), self.settings.port).encode())
            if ready is not None:
                ready(addresses)
            while not (why := self.why or self._end()):
                self._stop.wait(TICK_S)
            return why
        finally:
            files.remove(alive.path(self.home))  # first: from now on the command hook answers
            if local:
                files.remove(local)
            for listener in listeners:
                listener.shutdown()
                listener.server_close()
            until = time.monotonic() + server.READ_TIMEOUT_S
            while self.hook.busy and time.monotonic() < until:  # what is being answered is answered
                time.sleep(0.01)

    def end(self, why: str) -> None:
        """End the server; it returns from `run` at once."""
        self.why = self.why or why
        self._stop.set()

    def _end(self) -> str:
        background.reap()
        if self.hook.failed:
            degraded.note(self.home, "serve", "a request failed, the commands answer from now on", self.hook.failed)
            return f"a request failed ({self.hook.failed[:200]})"
        idle = self.hook.idle()
        if self.idle_s and idle > self.idle_s and not self.held():
            return f"nobody has asked for {int(idle)} s"
        if self.parent and self.orphaned() and idle > ORPHAN_IDLE_S:
            return f"process {self.parent}, for which it was started, is gone"
        if files.signature(entry.__file__) != self._sources:
            return "another version of its program is installed"
        if files.signature(settings_of.path(self.home)) is None:
            return "its settings are gone"
        return ""

    def orphaned(self) -> bool:
        """Whether the process that it serves is gone."""
        return not alive.runs(self.parent) or alive.started(self.parent) != self.parent_since


def main(home: str, parent: int = 0) -> None:
    """What the hook starts at the start of a session: serve in the background, and say in hook.log why it ended."""
    made = Server(home, parent=parent)
    on_signals(made)
    try:
        why = made.run()
    except BusyError:
        return
    except Exception as exc:
        degraded.note(home, "serve", "could not start", f"{type(exc).__name__}: {exc}")
        return
    degraded.note(home, "serve", "ended", why)


def on_signals(made: Server) -> None:
    """SIGTERM and SIGINT end the server in order."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: made.end("it was told to"))
