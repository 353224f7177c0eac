"""Whether the policy in force wants calls refused that cannot be checked (`on_error = "deny"`) [H], told beside the snapshot.

The policy itself is in the snapshot and in the log; where the snapshot is lost and the log too long to read before a call, an
empty file `on_error.deny` still says so. It is written with the policy, and like everything here derived from the log.
"""

from __future__ import annotations

import os

NAME = "on_error.deny"


def _path(snapshot: str) -> str:
    return os.path.join(os.path.dirname(snapshot), NAME)


def own(snapshot: str) -> frozenset[str]:
    """The streams whose policies rule the gate with this snapshot, `<home>/projections/NAME`: those that this machine writes."""
    from projectmem_logs.origin import own_streams

    return own_streams(os.path.dirname(os.path.dirname(os.path.abspath(snapshot))))


def mark(snapshot: str, closed: bool) -> None:
    """Keep it for the snapshot at that path. Where nothing can be written, the snapshot alone has it."""
    try:
        if closed:
            os.close(os.open(_path(snapshot), os.O_CREAT | os.O_WRONLY, 0o600))
        else:
            os.unlink(_path(snapshot))
    except OSError:
        pass


def marked(snapshot: str) -> bool:
    """What was kept last."""
    return os.path.exists(_path(snapshot))
