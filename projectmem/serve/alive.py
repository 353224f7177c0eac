"""Whether a server runs for a log [H]: asked by the hook at the start of a session, and told by the server.

`serve.alive` holds the server's process id, where the system tells it the time that process started, so that a stranger who got
the same id later is not taken for it, and the port in hexadecimal as Linux lists it.

Where there is no /proc (macOS) that time is empty here, the id alone decides, and the registered command's guard in sh
(setup/command.py) never stands aside: `ps` or a probe of the port would be a process for each call, which costs more than the
answer it saves. The command and the server then both answer, the same, and one of them records (`claim`).
"""

from __future__ import annotations

import os


def path(home: str) -> str:
    """The file that a running server keeps."""
    return f"{home}/serve.alive"


def mark(pid: int, port: int) -> str:
    """What a running server writes into that file."""
    return f"{pid} {started(pid)} {port:04X}\n"


def started(pid: int) -> str:
    """When the process started, in the system's own unit; "" where that cannot be said, or there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def runs(pid: int) -> bool:
    """Whether a process of that id exists."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def server(home: str) -> int:
    """The process id of the log's server, 0 where none runs."""
    try:
        with open(path(home), encoding="ascii") as file:
            pid, since, _ = file.read(100).rstrip("\n").split(" ")
    except (OSError, ValueError):
        return 0
    if not pid.isdigit() or not runs(int(pid)) or started(int(pid)) != since:
        return 0
    return int(pid)
