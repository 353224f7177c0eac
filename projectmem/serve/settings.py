"""Where the resident hook listens and with which token: `<home>/serve.json`, readable by its owner alone.

Written by `init --http` (the harness's settings name the same port and token) or by the first `serve`. Beside it, while a server
runs: `serve.alive` with its process id and start time (what the guard of the command hook reads), `serve.lock` and `serve.sock`.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from projectmem_logs import files

from projectmem.errors import ProjectmemError

HOST = "127.0.0.1"
MAX_SOCKET_PATH = 100  # bytes that every system's socket addresses hold
# In the path of every request, so that our entries in a settings file are known as ours (setup/command.py).
BASE = "/projectmem.hook.entry"


class Settings:
    """port on loopback, and the token that every request must show (64 hexadecimal digits)."""

    __slots__ = ("port", "token")

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token

    def url(self, harness: str, event: str) -> str:
        """Where the harness posts an event."""
        return f"http://{HOST}:{self.port}{BASE}/{harness}/{event}"


def path(home: str) -> str:
    """The settings' file."""
    return os.path.join(home, "serve.json")


def read(home: str) -> Settings | None:
    """The settings of a log's server, None where there are none. Raises ProjectmemError where they are damaged or not private."""
    where = path(home)
    try:
        mode = os.stat(where).st_mode
        with open(where, encoding="utf-8") as file:
            found: Any = json.load(file)
        made = Settings(int(found["port"]), str(found["token"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ProjectmemError(f"{where} cannot be read ({exc}): delete it and run `projectmem init --http` again") from None
    if os.name != "nt" and mode & 0o077:
        raise ProjectmemError(
            f"{where} can be read by others (mode {mode & 0o777:o}): delete it and run `projectmem init --http`"
        )
    if not 0 < made.port < 65536 or len(made.token) < 32:
        raise ProjectmemError(f"{where} holds no usable port and token: delete it and run `projectmem init --http` again")
    return made


def make(home: str) -> Settings:
    """The settings of a log's server, chosen and written where there are none yet. Raises as `read` does."""
    found = read(home)
    if found is None:
        found = Settings(_free_port(), os.urandom(32).hex())
        files.replace(path(home), json.dumps({"port": found.port, "token": found.token}).encode() + b"\n")
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def socket_path(home: str) -> str:
    """The Unix socket's path, "" where the system has none or the path is too long for one."""
    where = os.path.join(home, "serve.sock")
    return where if hasattr(socket, "AF_UNIX") and len(os.fsencode(where)) <= MAX_SOCKET_PATH else ""
