"""What the readers of line-by-line transcripts share: JSON lines, times, and a call that has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from projectmem.hook.payload import Payload
from projectmem.importers.claude_code import Counts, time_us

Call = dict[str, Any]

__all__ = ["Call", "Counts", "ended", "json_lines", "payload_of", "time_us"]


def json_lines(path: Path, counts: Counts, *marks: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of the lines that hold one of the marks (all lines without marks); what is damaged is counted."""
    try:
        with path.open("rb") as file:
            for raw in file:
                if marks and not any(mark in raw for mark in marks):
                    continue
                try:
                    line = orjson.loads(raw)
                except ValueError:
                    counts.damaged += 1
                    continue
                if isinstance(line, dict):
                    yield line
    except OSError:
        counts.damaged += 1


def payload_of(session: str, cwd: str, model: str = "") -> Payload:
    """What the adapters need to make a call."""
    return Payload("", "post", {"session_id": session, "cwd": cwd, "model": model})


def ended(call: Call, at: int, began: int = 0) -> Call:
    """The same call with the time (us) that it ended at, and how long it took where that is known."""
    call.update(at=at or None, turn=-1, began=began)
    if call["duration_ms"] is None and at and began:
        call["duration_ms"] = max(0, (at - began) // 1000)
    return call
