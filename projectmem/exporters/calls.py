"""The recorded calls as exports need them: those that stand in the log, in order, without what was erased and without secrets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from projectmem.errors import BadInputError, ProjectmemError
from projectmem.hook.state import redactor
from projectmem.place import Place

Event = dict[str, Any]


def calls(place: Place, problems: list[Any]) -> Iterator[Event]:
    """The `action.finished` events by stream and seq. `problems` collects damage of the log, which is read over.

    What a request has asked to erase is left out even while the erasure is not carried out; secrets are looked for once more.
    """
    from projectmem_logs import erasing
    from projectmem_logs.reader import read_events

    gone = set(erasing.requested(place.home))
    redact = redactor(place)
    for event in read_events(place.home, problems=problems):
        data = event.get("data")
        if event["kind"] == "action.finished" and isinstance(data, dict) and event["id"] not in gone:
            yield {**event, "data": redact.tree(data), "actor": redact.tree(event["actor"])}


def ended_us(event: Event) -> int:
    """When the call ended."""
    return int(event.get("at") or event["ts"])


def began_us(event: Event) -> int:
    """When it began; its end where its duration is not known."""
    return max(0, ended_us(event) - 1000 * int(event["data"].get("duration_ms") or 0))


def written(path: str, write: Callable[[str], int]) -> int:
    """Let `write` fill a file (or a folder that it makes) aside, then put it in its place; what `write` returned.

    Raises BadInputError where `path` exists, ProjectmemError where it cannot be written; nothing is left behind then.
    """
    import shutil

    if os.path.lexists(path):
        raise BadInputError(f"{path} exists: name a new one, nothing is overwritten")
    aside = f"{path.rstrip('/' + os.sep)}.{os.getpid()}.partial"
    try:
        count = write(aside)
        shutil.move(aside, path)
    except OSError as exc:
        raise ProjectmemError(f"{path} cannot be written ({exc.strerror or exc}): name another place") from None
    finally:
        if os.path.isdir(aside):
            shutil.rmtree(aside, ignore_errors=True)
        elif os.path.exists(aside):
            os.unlink(aside)
    return count


def created(path: str, mode: int = 0o600) -> int:
    """A new file that only its owner may read, opened for writing."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
