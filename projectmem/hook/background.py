"""Starts a process that outlives the hook: a rebuild of the snapshot, a server. Never on the path of a common call."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_children: list[int] = []  # that nobody has waited for yet


def reap() -> None:
    """Take leave of those that were started here and have ended: a process that goes on would keep them as zombies. Nobody
    else's children are touched."""
    for pid in _children[:]:
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0]
        except ChildProcessError:  # the program waits for whatever it has, or this is a fork of it
            ended = pid
        if ended and pid in _children:
            _children.remove(pid)


def start(module: str, *args: str | int) -> None:
    """Run the function `main` of one of our modules with these arguments, in a process and a session of its own, and with none
    of this process's pipes: a harness waits until they are closed. Those before that have ended are reaped. Raises OSError."""
    reap()
    call = f"main({', '.join(map(repr, args))})"
    program = f"import sys\nsys.path[:] = {sys.path!r}\nfrom {module} import main\n{call}"
    argv = [sys.executable, "-I", "-S", "-c", program]
    if not hasattr(os, "posix_spawn"):
        import subprocess

        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return
    from projectmem.place import environment

    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    try:
        pid = os.posix_spawn(argv[0], argv, environment({}), file_actions=quiet, setsid=True)
    except NotImplementedError:  # an old C library: it then shares the harness's session
        pid = os.posix_spawn(argv[0], argv, environment({}), file_actions=quiet)
    _children.append(pid)


def start_alone(lock: str, module: str, home: str) -> bool:
    """`start` it for `home`, unless the process that holds `lock` is at work already; whether it was started. Raises OSError."""
    from projectmem_logs import files

    files.make_last(f"{home}/projections")
    held = files.lock(lock, 0)
    if held is None:
        return False
    files.unlock(held)
    start(module, home)
    return True


def alone(lock: str, priority: int, work: Callable[[], None]) -> bool:
    """In such a process: do `work` under `lock` with this lower priority; False where another one does it already. Raises
    OSError, and what `work` raises."""
    from projectmem_logs import files

    if hasattr(os, "nice"):
        os.nice(priority)
    held = files.lock(lock, 0)
    if held is None:
        return False
    try:
        work()
    finally:
        files.unlock(held)
    return True
