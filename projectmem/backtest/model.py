"""What a transcript looks like to the backtest, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from projectmem.errors import BadInputError


class TranscriptError(BadInputError):
    """One transcript (or one line of it) cannot be used; the message says which and why. The others go on."""


@dataclass(slots=True)
class Step:
    """One tool call as it happened.

    name      what a verdict line says of it: {"traj_id", "step"} or {"id"}
    call      the adapters' neutral dict (see hook/drafts.py), with `output`, `exit_code`, `is_error`, `error_kind`
    root, cwd absolute;  at  microseconds since the epoch, UTC
    judged    whether a verdict is wanted (the history of a case is only learned from)
    finished  whether its outcome is known and is to be learned
    """

    name: dict[str, Any]
    call: dict[str, Any]
    root: str
    cwd: str
    at: int
    judged: bool = True
    finished: bool = True


@dataclass(slots=True)
class Repository:
    """All steps of one repository in the order in which they happened; its state starts empty."""

    name: str
    steps: list[Step]


@dataclass(slots=True)
class Problems:
    """What went wrong where, counted; at most `kept` messages are kept."""

    count: int = 0
    messages: list[str] = field(default_factory=list)
    kept: int = 20

    def add(self, message: str) -> None:
        self.count += 1
        if len(self.messages) < self.kept:
            self.messages.append(message)
