"""Readers of transcript formats: JSON lines of steps and of cases, plain or gzipped, into repositories of steps."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from projectmem.backtest.model import Problems, Repository, Step, TranscriptError
from projectmem.backtest.roots import Roots

FORMATS = ("steps", "cases", "claude-code")

# Harnesses of benchmarks: every trajectory has a repository of its own.
OWN_REPOSITORY = frozenset({"mini-swe-agent", "swe-agent"})

EPOCH = 1_750_000_000_000_000  # where virtual time starts for transcripts without times
SECOND = 1_000_000
SHORTEST = 2  # microseconds between two calls: one is judged, then ends, then the next comes
TOGETHER = 2 * SECOND  # calls of one turn that follow closer than this were made in one batch
CASE_OUTCOMES = {
    "rejected": "rejected",
    "denied": "denied",
    "interrupted": "interrupted",
    "cancelled": "cancelled",
    "timeout": "timeout",
}


def read(paths: Sequence[Path], fmt: str, problems: Problems) -> list[Repository]:
    """The repositories found in `paths`, each with its steps as they happened. Bad lines are counted in `problems`."""
    if fmt == "steps":
        return read_steps(paths, problems)
    if fmt == "cases":
        return list(read_cases(paths, problems))
    if fmt == "claude-code":
        from projectmem.backtest.claude_code import read_claude_code

        return read_claude_code(paths, problems)
    raise TranscriptError(f"unknown format `{fmt}`: choose one of {', '.join(FORMATS)}")


def read_steps(paths: Sequence[Path], problems: Problems) -> list[Repository]:
    """Steps files: sessions of one source are one repository and are merged by time, as they overlapped."""
    sessions: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for where, raw in _lines(paths, problems):
        try:
            session = str(raw["traj_id"])
            raw["step"] = int(raw["step"])
            source = str(raw.get("source") or session)
            own = str(raw.get("harness") or "") in OWN_REPOSITORY
            sessions[session if own else source][session].append(raw)
        except (KeyError, TypeError, ValueError) as exc:
            problems.add(f"{where}: not a step ({type(exc).__name__}: {exc})")
    return [Repository(name, _merge(name, found, problems)) for name, found in sessions.items()]


def _merge(repository: str, sessions: dict[str, list[dict[str, Any]]], problems: Problems) -> list[Step]:
    """One repository's steps by (time, session, step); within a session time never runs backwards."""
    roots = Roots(str(steps[0].get("cwd") or "/") for steps in sessions.values())
    out: list[tuple[int, int, int, Step]] = []
    for order, (session, steps) in enumerate(sessions.items()):
        at, batch, started_in = 0, -1, str(steps[0].get("cwd") or "/")
        for n, raw in enumerate(steps):
            told = _time(raw["ts"], f"{repository}: {session} step {raw['step']}", problems) if raw.get("ts") else 0
            before, at = at, max(told, at + (SHORTEST if told else SECOND)) if at or told else EPOCH
            # `turn` is a person's; the batches of calls within it show in the times alone.
            batch += not told or at - before >= TOGETHER or raw.get("turn") != steps[n - 1].get("turn")
            cwd = str(raw.get("cwd") or started_in)
            name = {"traj_id": session, "step": raw["step"]}
            step = Step(name, _step_call(raw, session, batch), roots.of(cwd, session_cwd=started_in), cwd, at)
            out.append((at, order, n, step))
    out.sort(key=lambda row: row[:3])
    return [row[3] for row in out]


def _step_call(raw: dict[str, Any], session: str, batch: int) -> dict[str, Any]:
    took = raw.get("duration_ms")
    return {
        "session": session,
        "agent": "",
        "harness": str(raw.get("harness") or ""),
        "model": str(raw.get("model") or ""),
        "call": f"{session}#{raw['step']}",
        "tool": str(raw.get("tool") or ""),
        "input": raw.get("input"),
        "input_sha": str(raw.get("input_sha") or ""),
        "turn": batch,
        **_outcome(raw.get("output_excerpt"), raw.get("exit_code"), raw.get("is_error"), str(raw.get("error_kind") or "")),
        "duration_ms": took if type(took) is int else None,
    }


def _outcome(output: Any, exit_code: Any, is_error: Any, error_kind: str) -> dict[str, Any]:
    """The part of a call that tells how it ended."""
    return {
        "output": output if isinstance(output, str) else "",
        "exit_code": exit_code if type(exit_code) is int else None,
        "is_error": is_error if isinstance(is_error, bool) else None,
        "error_kind": error_kind,
        "interrupted": error_kind == "interrupted",
        "timed_out": error_kind == "timeout",
        "background": "",
        "duration_ms": None,
    }


def read_cases(paths: Sequence[Path], problems: Problems) -> Iterator[Repository]:
    """Case files: each case is a repository of its own, with a history to learn and one action to judge."""
    for where, raw in _lines(paths, problems):
        try:
            yield _case(raw)
        except (KeyError, TypeError, ValueError, TranscriptError) as exc:
            problems.add(f"{where}: not a case ({type(exc).__name__}: {exc})")


def _case(raw: dict[str, Any]) -> Repository:
    case, action = str(raw["id"]), raw["action"]
    repo = str(action["repo"])
    now = EPOCH + 400 * 86_400 * SECOND
    steps = []
    for n, item in enumerate(raw.get("history", [])):
        if item.get("type", "tool_call") != "tool_call":
            raise TranscriptError(f"{case}: history item of unknown type `{item['type']}`")
        if str(item["repo"]) == repo:  # another repository's failures are in another log
            at = now - int(item["age_s"]) * SECOND
            steps.append(_case_step(case, n, item, at, judged=False))
    steps.sort(key=lambda step: step.at)  # stable: equal ages keep their order
    steps.append(_case_step(case, len(steps), action, now, judged=True))
    return Repository(case, steps)


def _case_step(case: str, n: int, item: dict[str, Any], at: int, *, judged: bool) -> Step:
    outcome = str(item.get("outcome", ""))
    code = item.get("exit_code")
    failed = outcome not in ("success", "")
    kind = CASE_OUTCOMES.get(outcome, ("exit" if isinstance(code, int) else "tool") if failed else "")
    call = {
        "session": str(item["session"]),
        "agent": str(item.get("agent") or ""),
        "harness": str(item.get("harness") or ""),
        "model": str(item.get("model") or ""),
        "call": f"{case}#{n}",
        "tool": str(item["tool"]),
        "input": item["input"],
        "turn": n,
        **_outcome(item.get("output"), code, failed, kind),
    }
    root = str(item.get("root") or f"/srv/{item['repo']}")
    return Step({"id": case}, call, root, str(item.get("cwd") or root), at, judged=judged, finished=not judged)


def _time(ts: Any, where: str, problems: Problems) -> int:
    try:
        return int(datetime.fromisoformat(str(ts)).timestamp() * SECOND)
    except ValueError:
        problems.add(f"{where}: `ts` is not a time: {ts!r}")
        return 0


def _lines(paths: Sequence[Path], problems: Problems) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) of every JSON line; what cannot be read is counted and skipped."""
    for path in _files(paths):
        try:
            with _open(path) as file:
                yield from _objects(path.name, file, problems)
        except (OSError, EOFError, UnicodeDecodeError) as exc:
            problems.add(f"{path}: cannot be read to its end ({exc})")


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.name.endswith((".jsonl", ".jsonl.gz")))
        else:
            yield path


def _objects(name: str, file: Iterable[str], problems: Problems) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            raw = json.loads(line)
        except ValueError as exc:
            problems.add(f"{where}: not JSON ({exc})")
            continue
        if isinstance(raw, dict):
            yield where, raw
        else:
            problems.add(f"{where}: not an object")


def _open(path: Path) -> IO[str]:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")
