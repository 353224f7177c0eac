"""Claude Code's own transcripts (`<config>/projects/<slug>/<session>.jsonl`) as repositories of steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from projectmem.backtest.model import Problems, Repository, Step
from projectmem.backtest.roots import Roots
from projectmem.importers.claude_code import read_calls
from projectmem.importers.reading import Counts
from projectmem.units import count


def read_claude_code(paths: Sequence[Path], problems: Problems) -> list[Repository]:
    """Files, or folders that hold them. The sessions of one project folder are one repository, merged by time.

    A call counts at the time of its result. Calls without a result are judged, and nothing is learned from them.
    """
    projects: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in _files(paths, problems):
        counts = Counts()
        last = found = 0
        for call in read_calls(file, counts):
            found += 1
            last = max(last, call["at"] or call["began"] or 0)
            projects[_project(file)].append({**call, "at": call["at"] or last + 1, "finished": call["at"] is not None})
        if not found and file in paths:  # of a folder's files many may be sessions without a call
            problems.add(f"{file}: no tool calls of a Claude Code transcript in it; is it of another --format?")
        if counts.damaged:
            problems.add(f"{file}: {count(counts.damaged, 'line')} could not be read")
    return [_repository(name, calls) for name, calls in projects.items()]


def _repository(name: str, calls: list[dict[str, Any]]) -> Repository:
    started: dict[str, str] = {}
    for call in calls:
        started.setdefault(call["session"], call["cwd"] or "/")
    roots = Roots(started.values())
    number: dict[str, int] = defaultdict(int)
    steps = []
    for call in sorted(calls, key=lambda c: int(c["at"])):
        session = call["session"]
        cwd = call["cwd"] or started[session]
        where = {"traj_id": session, "step": number[session]}
        number[session] += 1
        root = roots.of(cwd, session_cwd=started[session])
        steps.append(Step(where, call, root, cwd, call["at"], finished=call["finished"]))
    return Repository(name, steps)


def _project(file: Path) -> str:
    """The project's folder: the nearest one named by a slug, else the file's own."""
    return next((str(folder) for folder in file.parents if folder.name.startswith("-")), str(file.parent))


def _files(paths: Sequence[Path], problems: Problems) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.jsonl"))
        elif path.is_file():
            yield path
        else:
            problems.add(f"{path}: no such file or folder")
