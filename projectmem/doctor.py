"""Proves that the gate works here, or says what is wrong and what to do: hooks are fired, the log and snapshot are checked."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator

from projectmem import absent, clock, output, remembered
from projectmem import place as places
from projectmem.errors import ProjectmemError
from projectmem.hook import health
from projectmem.place import Place
from projectmem.render import count
from projectmem.setup import checks, compiled
from projectmem.setup.checks import FAIL, NOTE, OK, Check
from projectmem.setup.command import package_folders
from projectmem.setup.init import refuse_rival

PARITY_BYTES = 16 << 20  # of a log that is compared without being asked: some seconds
EVENT_BYTES = 4_096  # written on trial: a file is made on a full disk too

__all__ = ["FAIL", "NOTE", "OK", "Check", "examine", "healthy"]


def examine(start: str, *, now: int, fire: bool = True, every: bool = False) -> Iterator[Check]:
    """Every check in turn, each contained: one that cannot be made is a finding and not the end.

    fire   run the registered commands (in a scratch project of their own; about a second)
    every  compare what is derived with the log even where the log is long
    """
    yield from _contained("environment", _environment)
    place = places.locate(start)
    if place is None or not place.ready:
        yield Check("project", FAIL, *absent.of(start))
        return
    yield Check("project", OK, f"log in {place.home}")
    yield from _contained("switch", _switch)
    yield from _contained("settings", lambda: checks.settings(place, start))
    yield from _contained("compiled files", _compiled)
    if fire:
        yield from _contained("hooks fire", lambda: checks.fired(place))
    damaged = False
    for check in _contained("log", lambda: _log(place, now)):
        damaged |= check.status == FAIL
        yield check
    yield from _contained("recording", lambda: _recording(place))
    yield from _contained("erasure", lambda: _erasure(place))
    yield from _contained("snapshot", lambda: _snapshot(place))
    if damaged:  # what was derived before still knows what was lost: that it differs is no second finding
        yield Check("parity", NOTE, "not compared: the log is damaged", "see to the log first")
    else:
        yield from _contained("parity", lambda: _parity(place, every))
    yield from _contained("hook.log", lambda: _hook_log(place, now))


def healthy(found: list[Check]) -> bool:
    """Whether nothing failed."""
    return all(check.status != FAIL for check in found)


def _contained(name: str, look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from look()
    except Exception as exc:
        yield Check(name, FAIL, f"could not be checked ({type(exc).__name__}: {exc})", "report this with the text above")


def _environment() -> Iterator[Check]:
    try:
        refuse_rival()
        package_folders()
    except ProjectmemError as exc:
        yield Check("installation", FAIL, str(exc), "see the message")
        return
    yield Check("installation", OK, "every package is there")


def _switch() -> Iterator[Check]:
    if places.switched_off():
        yield Check(
            "switch", FAIL, f"{places.SWITCH_VARIABLE} is off, so no hook does anything", f"unset {places.SWITCH_VARIABLE}"
        )


def _compiled() -> Iterator[Check]:
    missing = compiled.uncompiled()
    if missing:
        yield Check(
            "compiled files",
            NOTE,
            f"{count(len(missing), 'file')} compiled anew at every call (first: {missing[0]})",
            "run `projectmem init`",
        )


def _log(place: Place, now: int) -> Iterator[Check]:
    from projectmem_logs.verify import verify

    folder = os.path.join(place.home, "log")
    if not os.access(folder, os.W_OK):
        yield Check("log", FAIL, f"{folder} cannot be written: nothing is recorded", "let this user write there")
    report = verify(place.home)
    health.note(place.home, report.problems, now)
    for text in clock.of_report(report, now):
        yield Check("clock", NOTE, text)
    missing = remembered.lost(place.home, {p.stream for p in report.problems if p.kind != "torn"})
    for text in missing:
        yield Check("log", FAIL, text, remembered.WHAT_TO_DO)
    if report.ok and not missing:
        yield Check("log", OK, f"whole, {count(report.events, 'event')}")
        return
    for problem in report.problems[:20]:
        yield Check("log", FAIL, f"{problem.stream} {problem.segment} at {problem.offset}: {problem.detail}", str(problem.remedy))


def _recording(place: Place) -> Iterator[Check]:
    """What an append needs besides the log: its identity, its lock, which stream is ours, the spool, and the key of redaction
    marks."""
    from projectmem_logs import files
    from projectmem_logs.errors import LogError
    from projectmem_logs.home import Writer, project_id, redaction_key

    wrong = False
    try:
        project_id(place.home)
    except (LogError, OSError) as exc:
        wrong = True
        yield Check("recording", FAIL, f"{exc}: nothing is recorded", "see the message")
    mine = Writer(place.home).path
    if os.path.lexists(mine) and not os.path.isfile(mine):
        wrong = True
        yield Check("recording", FAIL, f"{mine} is no file: nothing is recorded", "remove it; the next call makes it anew")
    for name in ("locks", "spool", "writers", "quarantine"):
        folder = os.path.join(place.home, name)
        try:
            if os.path.isdir(folder) or os.path.lexists(folder):
                _try_to_write(folder)
        except OSError as exc:
            wrong, full = True, exc.errno in (errno.ENOSPC, errno.EDQUOT)
            advice = "free disk space" if full else "let this user write there"
            yield Check("recording", FAIL, f"{folder}: {exc.strerror or exc}: nothing is recorded", advice)
            if full:
                break  # all of it is on one disk
    stuck = [name for name in files.names(os.path.join(place.home, "locks"), ".lock") if not _may_lock(place, name)]
    for name in stuck:
        yield Check("recording", FAIL, f"locks/{name} cannot be opened: nothing is recorded", "let this user write it")
    try:
        redaction_key(place.home)
    except (LogError, OSError) as exc:
        wrong = True
        advice = "restore it, or run `projectmem init` for a new one (secrets then get other marks than before)"
        yield Check("recording", FAIL, f"the key of redaction marks: {exc}: nothing is recorded", advice)
    if not wrong and not stuck:
        yield Check("recording", OK, "locks, spool and key are there and can be used")


def _try_to_write(folder: str) -> None:
    """Write as much as an event takes, and take it away again. Raises OSError."""
    fd, path = tempfile.mkstemp(prefix=".doctor-", dir=folder)
    try:
        os.write(fd, b"\0" * EVENT_BYTES)
    finally:
        os.close(fd)
        os.unlink(path)


def _erasure(place: Place) -> Iterator[Check]:
    """An erasure that was begun and not finished, and whether its plan can still be read."""
    from projectmem_logs import files
    from projectmem_logs.fastjson import loads

    from projectmem.forget import PLAN, pending

    if not pending(place.home):
        return
    path = os.path.join(place.home, PLAN)
    try:
        plan = loads(files.read(path))
        good = isinstance(plan, dict) and isinstance(plan["selector"], dict) and isinstance(plan["ids"], (dict, list))
    except (ValueError, KeyError, RecursionError):
        good = False
    if good:
        yield Check("erasure", FAIL, "an erasure was cut short", "run `projectmem forget --resume`")
    else:
        yield Check("erasure", FAIL, f"{path} is damaged: no erasure can go on", "remove it and ask for the erasure again")


def _may_lock(place: Place, name: str) -> bool:
    path = os.path.join(place.home, "locks", name)
    return os.path.isfile(path) and os.access(path, os.R_OK | os.W_OK)


def _parity(place: Place, every: bool) -> Iterator[Check]:
    """Does what is served equal what the log gives when it is folded anew?"""
    from projectmem_projections import parity

    size = parity.log_bytes(place.home)
    if size > PARITY_BYTES and not every:
        yield Check("parity", OK, f"not compared, the log has {size >> 20} MiB: `projectmem doctor --all` does")
        return
    if not size:
        return  # nothing was made of it yet, as the snapshot's line says
    with output.Waiting("comparing what is derived with the log") as waiting:
        found = parity.compare(place.home, waiting.tell)
    for one in found:
        if one.differs:
            what = ", ".join(one.differs)
            yield Check(
                "parity", FAIL, f"the {one.name} differ from the log in {what}", "run `projectmem rebuild`, and report this"
            )
    if not any(one.differs for one in found):
        notes = "; ".join(f"{one.name}: {one.note}" for one in found if one.note)
        yield Check("parity", OK, "summaries, snapshot and recall are what the log gives" + (f" ({notes})" if notes else ""))


def _snapshot(place: Place) -> Iterator[Check]:
    from projectmem_logs.store import heads
    from projectmem_projections.errors import ProjectionError
    from projectmem_projections.snapshot import Snapshot

    path = os.path.join(place.home, "projections", "gate.sqlite")
    if not os.path.exists(path):
        yield Check("snapshot", NOTE, "not built yet; the next call builds it")
        return
    try:
        with Snapshot(path) as state:
            cursor, head = state.cursor(), {stream: seq for stream, (seq, _) in heads(place.home).items()}
    except ProjectionError as exc:
        yield Check("snapshot", FAIL, str(exc), "run `projectmem rebuild`")
        return
    behind = {stream: seq - cursor.get(stream, 0) for stream, seq in head.items() if seq > cursor.get(stream, 0)}
    if behind:
        text = ", ".join(f"{count(number, 'event')} of {stream}" for stream, number in behind.items())
        yield Check("snapshot", NOTE, f"behind the log by {text}; the next call catches up")
    else:
        yield Check("snapshot", OK, f"at the end of the log ({count(sum(head.values()), 'event')})")


def _hook_log(place: Place, now: int) -> Iterator[Check]:
    path = os.path.join(place.home, "hook.log")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    import time

    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now // 1_000_000 - 86_400))
    recent = [line for line in lines if line >= since]
    if recent:
        yield Check(
            "hook.log", NOTE, f"{count(len(recent), 'line')} within a day, the last: {recent[-1][:300]}", f"look at {path}"
        )
