"""Backfill from the sessions that Claude Code keeps of a repository, so that the gate is useful on its first day.

Claude Code writes `<config>/projects/<slug>/<session>.jsonl`, and a subagent's lines in `<session>/subagents/`; the slug is
the folder the session began in with everything but ASCII letters and digits as `-`. Lines carry `cwd`, `timestamp`,
`isSidechain`; a result carries `is_error` and its text, of which the first line of a failed command is `Exit code N`.
What is read here is recorded with origin `import` and the time it happened at, so it warns at most until it is seen again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem import place as places
from projectmem.hook import claude_code as adapter
from projectmem.hook import claude_results as results
from projectmem.hook.payload import OUTCOME_OPEN, Payload
from projectmem.importers.reading import Call, Counts, by_age, parsed, raw_lines, time_us
from projectmem.place import Place

HELD_MAX = 1000  # lines that wait for the first time of a file
SLUG_CUT = 180  # longer slugs are cut by the client; what a file is about is read from its lines anyway


def slug(folder: str) -> str:
    """The name of the folder that Claude Code keeps the sessions of `folder` in."""
    return re.sub(r"[^A-Za-z0-9]", "-", folder)


def session_files(place: Place) -> list[Path]:
    """Transcripts of sessions that began in this repository, its subfolders or its worktrees, oldest first."""
    base = Path(places.claude_config_dir()) / "projects"
    starts = {slug(root)[:SLUG_CUT] for root in _roots(place)}
    found: list[Path] = []
    try:
        folders = sorted(base.iterdir())
    except OSError:
        return []
    for folder in folders:
        if any(folder.name.startswith(start) for start in starts) and folder.is_dir():
            found += folder.rglob("*.jsonl")
    return by_age(found)


def _roots(place: Place) -> set[str]:
    """The work trees of the repository, in every spelling a session may have been started from."""
    roots = {place.root}
    if place.common_dir:
        common = Path(place.common_dir)
        if common.name == ".git":
            roots.add(str(common.parent))
        for pointer in common.glob("worktrees/*/gitdir"):
            try:
                roots.add(str(Path(os.path.join(pointer.parent, pointer.read_text().strip())).parent))
            except OSError:
                continue
    return roots | {os.path.realpath(root) for root in roots}


def read_calls(path: Path, counts: Counts | None = None) -> Iterator[Call]:
    """The tool calls of one transcript in the order of their results; those without one come last, with `at` None.

    A call is the adapters' neutral dict with `at` (us) of its result. Lines that are no JSON are counted as damaged, and so are
    results that no time can be had for (`_timed`).
    """
    counts = counts or Counts()
    open_calls: dict[str, Call] = {}
    tasks: dict[str, Call] = {}
    for line, at, own in _timed(path, counts):
        for call in _line(line, open_calls, tasks, path, at, own):
            if at:
                yield call
            else:
                counts.bad(path, "a result without a time, and no line near it that has one")
    for call in open_calls.values():
        yield {**call, "at": None}


def _timed(path: Path, counts: Counts) -> Iterator[tuple[dict[str, Any], int, int]]:
    """(line, us, us of its own or 0) of the lines that may tell of a call. A time that cannot be read is that of the last line
    before which has one, else of the next within HELD_MAX lines, else 0."""
    last, passed = 0, b""
    held: list[dict[str, Any]] = []
    for raw in raw_lines(path, counts):
        if b"tool_use" not in raw and b"task-notification" not in raw:
            passed = raw
            continue
        line = _parsed(raw, path, counts)
        if line is None:
            continue
        own = time_us(line.get("timestamp"))
        last = own or _time_in(passed) or last
        passed = b""
        if not last and len(held) < HELD_MAX:
            held.append(line)
            continue
        yield from ((early, last, 0) for early in held)
        held.clear()
        yield line, last, own
    last = _time_in(passed)
    yield from ((early, last, 0) for early in held)


def _time_in(raw: bytes) -> int:
    """The time of a line that was passed over, 0 for none."""
    try:
        line = parsed(raw)
    except ValueError:
        return 0
    return time_us(line.get("timestamp")) if isinstance(line, dict) else 0


def _parsed(raw: bytes, path: Path, counts: Counts) -> dict[str, Any] | None:
    try:
        line = parsed(raw)
    except ValueError:
        counts.bad(path)
        return None
    # `api-request-blob` and the like repeat what other lines hold
    return line if isinstance(line, dict) and line.get("type") in ("assistant", "user") else None


def _line(
    line: dict[str, Any], open_calls: dict[str, Call], tasks: dict[str, Call], path: Path, at: int, own: int
) -> Iterator[Call]:
    """The calls that a line ends. at  its time (us) or a near line's;  own  its own, 0 for none: only that times a call."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        if content.startswith("<task-notification>"):
            yield from _ended(content, tasks, at)
        return
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_use" and isinstance(block.get("name"), str) and isinstance(block.get("id"), str):
            open_calls[block["id"]] = _opened(line, message, block, own, path)
        elif kind == "tool_result" and isinstance(block.get("tool_use_id"), str):
            call = open_calls.pop(block["tool_use_id"], None)
            if call is not None:
                _closed(call, line, block, at)
                if own and call["began"]:
                    call["duration_ms"] = max(0, (own - call["began"]) // 1000)
                if call["background"]:
                    tasks[call["call"]] = call
                yield call


def _opened(line: dict[str, Any], message: Any, block: dict[str, Any], began: int, path: Path) -> Call:
    model = message.get("model")
    agent = line.get("agentId")
    return {
        "harness": adapter.HARNESS,
        "session": str(line.get("sessionId") or path.stem),
        "agent": agent if isinstance(agent, str) else "sidechain" if line.get("isSidechain") is True else "",
        "model": model if isinstance(model, str) else "",
        "call": block["id"],
        "tool": block["name"],
        "input": block.get("input"),
        "cwd": str(line.get("cwd") or ""),
        **OUTCOME_OPEN,
        "turn": -1,
        "began": began,
    }


def _closed(call: Call, line: dict[str, Any], block: dict[str, Any], at: int) -> None:
    text = results.output_text(block.get("content"))
    result = line.get("toolUseResult")
    if text.startswith("<persisted-output>") and isinstance(result, dict):
        text = results.output_text(result) or text
    results.read_result(call, text, block.get("is_error") is True)
    if not call["error_kind"] or call["error_kind"] == "tool":
        kind = line.get("toolDenialKind")
        call["error_kind"] = {"user-rejected": "rejected", "permission-rule": "denied"}.get(str(kind), call["error_kind"])
    call["at"] = at


def _ended(prompt: str, tasks: dict[str, Call], at: int) -> Iterator[Call]:
    """The end of a background command, told in a line of its own."""
    payload = Payload("UserPromptSubmit", "prompt", {"prompt": prompt, "session_id": "", "cwd": ""})
    task = results.task_notification(payload)
    started = tasks.pop(task["call"], None) if task else None
    if task is None or started is None:
        return
    call = results.ended_task(payload, task, started)
    if call is not None:
        for name in ("session", "agent", "model", "cwd"):
            call[name] = started[name]
        call["redacted"] = False
        call.update(at=at, turn=-1, began=0)
        yield call
