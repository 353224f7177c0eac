"""What the last look at the whole log found, in a small note, and the look itself: damage in the middle of a log is far from
where a hook reads.

    <home>/projections/health.json    {"at", "count", "first"}: by `verify`, `doctor`, `repair`, `rebuild` and the look below

At the start of a session the hook reads the note, one small file, and says what is wrong. Where the last look is older than a
day, a process in the background looks at every byte, with low priority; the next session hears of it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from projectmem.hook.payload import Payload
    from projectmem.place import Place

    Answer = dict[str, Any] | None

DAY_US = 86_400_000_000
NICE = 15
FIRST_MAX = 400
# An unfinished write at the end is no damage: it may just be being written, and the next append puts it right.
HEALED = ("torn", "unterminated")


def path_of(home: str) -> str:
    """Where the note is."""
    return f"{home}/projections/health.json"


def note(home: str, problems: Iterable[object], now: int) -> None:
    """Keep what a look at the whole log found (`reader.Problem`s). Raises nothing: it is said where it was found, too."""
    from projectmem_logs import files
    from projectmem_logs.fastjson import encode

    found = [str(problem) for problem in problems if getattr(problem, "kind", "") not in HEALED]
    try:
        if os.path.isdir(f"{home}/projections"):
            kept = {"at": now, "count": len(found), "first": found[0][:FIRST_MAX] if found else ""}
            files.replace(path_of(home), encode(kept).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def known(home: str) -> tuple[int, int, str]:
    """(when the log was last looked at, how many problems it had, the first in words); 0, 0, "" where nobody looked."""
    from projectmem_logs.fastjson import loads

    try:
        with open(path_of(home), "rb") as file:
            found = loads(file.read(4_096))
        at, count, first = found["at"], found["count"], found["first"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0, ""
    return (at, count, str(first)) if type(at) is int and type(count) is int else (0, 0, "")


def told(place: Place, payload: Payload, reply: Answer, now: int) -> Answer:
    """The answer at the start of a session, and a word to the person where the log is known to be damaged."""
    at, count, first = known(place.home)
    if abs(now - (at or _made(place.home))) >= DAY_US:
        _look_soon(place.home)
    if not count:
        return reply
    from projectmem.hook import degraded

    if not degraded.first_time(place.home, f"{payload.session} log"):
        return reply
    degraded.event(place, payload.session, payload.adapter.HARNESS, now, "log", "the log is damaged", first)
    more = f" and {count - 1} more places" if count > 1 else ""
    message = f"projectmem: the log is damaged ({first[:200]}{more}). What is whole is served. Run `projectmem verify`."
    said: Answer = payload.adapter.with_message(reply, message)
    return said


def _made(home: str) -> int:
    """When the log was begun: a new one needs no look."""
    try:
        return os.stat(f"{home}/project.json").st_mtime_ns // 1000
    except OSError:
        return 0


def lock_path(home: str) -> str:
    """Held by the one process that looks."""
    return f"{home}/projections/health.lock"


def _look_soon(home: str) -> None:
    from projectmem.hook import background

    try:
        background.start_alone(lock_path(home), "projectmem.hook.health", home)
    except OSError:
        pass  # a folder that cannot be written, no process to be had: the next session tries again


def main(home: str) -> None:
    """Look at every byte of the log and keep what was found. Raises nothing: nobody would hear it."""
    import time

    from projectmem.hook import background, degraded

    try:
        background.alone(lock_path(home), NICE, lambda: look(home, time.time_ns() // 1000))
    except Exception as exc:
        degraded.note(home, "log", "could not be looked at", f"{type(exc).__name__}: {exc}")


def look(home: str, now: int) -> None:
    """Read the whole log, every hash checked, and keep what was found. Raises LogError, OSError."""
    from projectmem_logs.reader import Problem, read_stream
    from projectmem_logs.tail import read_position, streams

    problems: list[Problem] = []
    for stream in streams(home):
        found: list[Problem] = []
        for _ in read_stream(home, stream, 0, None, found, recorded=True):
            pass
        end = read_position(f"{home}/log/{stream}", stream)
        torn = end.segment if end.tail.state == "torn" else ""  # then what is wrong from there on is no damage
        problems += [p for p in found if p.segment != torn or 0 <= p.offset < end.tail.cut]
    note(home, problems, now)
