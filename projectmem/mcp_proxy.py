"""`projectmem proxy -- CMD ARGS`: an MCP server over stdio with the gate before its tools. One that is reached over HTTP is a
process of ours that connects to it (mcp_bridge.py).

Two pumps, one for each direction, pass lines on as they come. The server's standard error is ours; signals go to the server; its
exit code becomes ours. A client that closes its end gets what the server still has to say.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from projectmem import caller
from projectmem import place as places
from projectmem.errors import NotFoundError
from projectmem.hook.payload import mark_of
from projectmem.integrations.core import Gate
from projectmem.mcp_address import Address
from projectmem.mcp_gate import Gated

SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")
ENDING_S = 5  # from the end of a server's output to its own


class Proxy:
    """One server, started; `run` serves until it ends. `source` and `sink` are the client's ends."""

    def __init__(
        self, gated: Gated, command: list[str], source: IO[bytes], sink: IO[bytes], env: dict[str, str] | None = None
    ) -> None:
        self.gated, self.source, self.sink = gated, source, sink
        self._write = threading.Lock()
        self._whole = True  # the server's last line has an end
        self._left = self._read_all = False  # the client is gone, or asked us to go; nothing more is read of it
        try:
            self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        except OSError as exc:
            why = exc.strerror or str(exc)
            raise NotFoundError(
                f"the MCP server `{command[0]}` cannot be started ({why}): check the command after `--`"
            ) from None

    def run(self) -> int:
        """Serve; returns the exit code. Where the server ends first it may not return from reading the client: see `end`."""
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is not None:
                signal.signal(number, self._signalled)
        answers = threading.Thread(target=self._from_server, name="answers")
        answers.start()
        self._from_client()
        answers.join()
        return self._code()

    def end(self) -> None:
        """What is done when the server has ended: the client's last answers, then out (its end of the pipe may never close). One
        that says nothing more and goes on is ended while the client is there, which else would wait for ever."""
        closed = not self._left and not self._gone(ENDING_S)
        why = "the MCP server closed its output before it answered"
        if closed:
            self.server.terminate()
            if not self._gone(ENDING_S):
                self.server.kill()
        code = self._code()
        why = why if closed else f"the MCP server ended before it answered (exit code {code})"
        for answer in self.gated.lost(why, failed=not self._left):
            self._send(answer if self._whole else b"\n" + answer)
            self._whole = True
        if not self._read_all:
            sys.stderr.flush()
            os._exit(code)

    def _gone(self, seconds: float) -> bool:
        try:
            self.server.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _code(self) -> int:
        code = self.server.wait()
        return code if code >= 0 else 128 - code

    def _signalled(self, number: int, _: Any) -> None:
        self._left = True
        try:
            self.server.send_signal(number)
        except OSError:
            pass

    def _from_client(self) -> None:
        assert self.server.stdin is not None
        try:
            for line in iter(self.source.readline, b""):
                passed, answer = self.gated.from_client(line)
                if answer:
                    self._send(answer)
                if passed:
                    self.server.stdin.write(passed)
                    self.server.stdin.flush()
        except OSError:
            pass  # the server is gone: its end of the other pipe says so
        finally:
            self._left = self._read_all = True
            try:
                self.server.stdin.close()
            except OSError:
                pass

    def _from_server(self) -> None:
        assert self.server.stdout is not None
        try:
            for line in iter(self.server.stdout.readline, b""):
                self._send(self.gated.from_server(line))
                self._whole = line.endswith(b"\n")
        finally:
            self.end()

    def _send(self, data: bytes) -> None:
        with self._write:
            try:
                self.sink.write(data)
                self.sink.flush()
            except (OSError, ValueError):
                self._left = True  # the client is gone; what the server does is still recorded


Note = tuple[str, str]  # session, call
JOINTS = ("", "_", "-", ":", ".", "/")  # what stands before a tool's own name in the one that a client gives it
WITHIN_US = 120_000_000  # a person may be asked between the hook and the call
CLIENTS = {"codex": "codex", "gemini": "gemini", "qwen": "qwen", "copilot": "copilot", "opencode": "opencode", "cursor": "cursor"}
CLIENTS |= {"factory": "droid", "claude": "claude-code", "cline": "cline"}  # what a client calls itself -> its hooks' harness


def hooked_in(cwd: str) -> Callable[[str, str, Any, str], bool]:
    """Whether a hook of the client's own has asked about a call already: then it is the hook that speaks and records."""
    taken: set[Note] = set()

    def hooked(call: str, tool: str, given: Any, client: str) -> bool:
        place = places.find(cwd)
        if place is None:
            return False
        from projectmem_projections.errors import ProjectionError

        from projectmem.hook import state

        try:
            opened = state.opener(f"{place.home}/projections/gate.sqlite", busy_ms=state.BUSY_MS)
            try:
                if call and opened.noted(call):
                    return True
                notes = opened.marked(time.time_ns() // 1000 - WITHIN_US)
                for found in noted_alike(notes, tool, given, client):
                    if found not in taken and not opened.seen(*found):
                        taken.add(found)
                        return True
                return False
            finally:
                opened.close()
        except (ProjectionError, OSError, ValueError, TypeError):
            return False

    return hooked


def noted_alike(notes: list[tuple[str, str, dict[str, Any]]], tool: str, given: Any, client: str) -> list[Note]:
    """Of hooks' notes those that may be of a call of this tool with these arguments, as they came.

    Claude Code's calls have the same id in hook and proxy. Of others the note is found by the tool's own name at the end of the
    one that the client gives it, a few bits of the arguments, and whose hook it is, where the client's name tells.
    """
    ending = f"{tool}-{mark_of(given)}"
    whose = next((harness for name, harness in CLIENTS.items() if name in client.lower()), "")
    found = []
    for session, id, note in notes:
        harness, _, named = str(note.get("mcp")).partition(" ")
        server = named.removesuffix(ending)
        if server != named and server[-1:] in JOINTS and harness == (whose or harness) and not note.get("refused"):
            found.append((session, id))
    return found


def run(command: list[str], cwd: str, name: str = "", address: Address | None = None) -> int:
    """Serve one client over standard input and output with the server that `command` starts; returns the exit code.

    cwd   whose project's log is asked;  name  the server's for the gate, "" for what it calls itself
    address  where the server is, in place of a command, for one that is reached over HTTP
    Raises NotFoundError where the server cannot be started.
    """
    from projectmem.serve import kept

    kept.keep()
    env = None
    if address is not None:
        command = [sys.executable, "-P", "-m", "projectmem.mcp_bridge"]
        env = places.environment({places.MCP_SERVER_VARIABLE: address.to_text()})
    gate = Gate(cwd, session=caller.actor()["session"])
    gated = Gated(gate, hooked_in(cwd), name, os.path.basename(command[0]) if address is None else "http")
    try:
        return Proxy(gated, command, sys.stdin.buffer, sys.stdout.buffer, env).run()
    finally:
        kept.release()
