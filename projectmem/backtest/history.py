"""The sessions that the harnesses on this machine keep, of the last days, as repositories of steps.

The sessions of one repository are merged by time whatever harness they are of, as one log would have them. What a call printed is
kept only as far as its outcome is read from it, so that a long history fits into memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from projectmem import place as places
from projectmem.backtest.model import Problems, Repository, Step
from projectmem.backtest.roots import Roots
from projectmem.importers.backfill import Reader, shaped
from projectmem.importers.reading import Call, Counts, by_age
from projectmem.importers.sources import SOURCES, sessions
from projectmem.place import Place
from projectmem.render import count

DAY = 86_400_000_000  # microseconds
OUTPUT_MAX = 16_384  # characters of an output that are kept: its head and its tail
Progress = Callable[[Iterable[Any]], Iterable[Any]]


def files() -> list[tuple[Path, Reader]]:
    """Every session file of every harness on this machine, with its reader."""
    nowhere = Place("", "", "", "", "")
    claude = (Path(places.claude_config_dir()) / "projects").rglob("*.jsonl")
    others = sessions(nowhere, [name for name in SOURCES if name != "claude-code"])
    return [*((path, SOURCES["claude-code"][1]) for path in by_age(claude)), *others]


def read_history(
    since: int, problems: Problems, *, sources: Sequence[tuple[Path, Reader]] | None = None, progress: Progress = iter
) -> list[Repository]:
    """The repositories of all sessions with the calls that ended, or were asked for, at `since` (us) or later."""
    by_repository: dict[str, list[Call]] = defaultdict(list)
    where, seen = _Where(), set[tuple[str, str]]()
    for path, reader in progress([s for s in (files() if sources is None else sources) if _newer(s[0], since)]):
        counts, last = Counts(), 0
        for call in shaped(reader, path, counts):
            at = call["at"] or max(last + 1, call.get("began") or 0)
            last = max(last, at)
            key = (call["harness"], call["call"] or f"{call['session']}@{at}")
            if at < since or not call["cwd"] or key in seen:  # a resumed session repeats the lines of the old one
                continue
            seen.add(key)
            by_repository[where.of(call["cwd"])[0]].append({**_lean(call), "at": at, "finished": call["at"] is not None})
        if counts.damaged:
            problems.add(f"{path}: {count(counts.damaged, 'piece')} could not be read")
    return [_repository(name, calls, where) for name, calls in sorted(by_repository.items())]


def _newer(path: Path, since: int) -> bool:
    try:
        return path.stat().st_mtime_ns // 1000 >= since
    except OSError:
        return False


def _lean(call: Call) -> Call:
    """The same call without output that says nothing of its outcome."""
    text = call["output"]
    if call["is_error"] is False and call["exit_code"] is None and "file_path" in (call["input"] or ()):
        text = ""
    elif len(text) > OUTPUT_MAX:
        text = f"{text[: OUTPUT_MAX // 2]}\n...\n{text[-OUTPUT_MAX // 2 :]}"
    return {**call, "output": text, "turn": call.get("turn", -1)}


class _Where:
    """Repositories and work trees of folders, as git's files on this disk say; a folder that is gone is one by its sessions."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}

    def of(self, cwd: str) -> tuple[str, str]:
        """(name of the repository, top of the work tree or "" where that is not known)."""
        if cwd not in self._known:
            found = places.locate(cwd) if Path(cwd).is_dir() else None
            common = found.common_dir if found is not None else ""
            if found is not None and common:
                folder = Path(common).parent if Path(common).name == ".git" else Path(common)
                self._known[cwd] = str(folder), found.root
            else:
                self._known[cwd] = cwd, ""
        return self._known[cwd]


def _repository(name: str, calls: list[Call], where: _Where) -> Repository:
    started: dict[str, str] = {}
    for call in calls:
        started.setdefault(call["session"], call["cwd"])
    roots, number = Roots(started.values()), defaultdict[str, int](int)
    steps = []
    for call in sorted(calls, key=lambda c: int(c["at"])):
        session, cwd = call["session"], call["cwd"]
        root = where.of(cwd)[1] or roots.of(cwd, session_cwd=started[session])
        steps.append(Step({"traj_id": session, "step": number[session]}, call, root, cwd, call["at"], finished=call["finished"]))
        number[session] += 1
    return Repository(name, steps)
