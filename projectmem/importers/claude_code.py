"""Backfill from the sessions that Claude Code keeps of a repository, so that the gate is useful on its first day.

Claude Code writes `<config>/projects/<slug>/<session>.jsonl`, and a subagent's lines in `<session>/subagents/`; the slug is
the folder the session began in with everything but ASCII letters and digits as `-`. Lines carry `cwd`, `timestamp`,
`isSidechain`; a result carries `is_error` and its text, of which the first line of a failed command is `Exit code N`.
What is read here is recorded with origin `import` and the time it happened at, so it warns at most until it is seen again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from projectmem_projections.errors import ProjectionError

from projectmem import place as places
from projectmem.hook import claude_code as adapter
from projectmem.hook import claude_results as results
from projectmem.hook.drafts import finished_draft
from projectmem.hook.finish import judged, seen_again
from projectmem.hook.payload import OUTCOME_OPEN, Payload
from projectmem.hook.state import identified, open_state, redactor
from projectmem.importers.earlier import Earlier
from projectmem.place import Place
from projectmem.render import count
from projectmem.writing import append

Call = dict[str, Any]
BATCH_EVENTS = 1_000
SLUG_CUT = 180  # longer slugs are cut by the client; what a file is about is read from its lines anyway


class Counts:
    """What a backfill saw. All numbers reconcile: calls = recorded + known + unfinished.

    files, sessions  that belong to this repository;  elsewhere  calls made in another repository (not counted in calls)
    calls            tool calls read;  recorded  new in the log, of which `failed` failed;  known  in the log, or erased from it
    unfinished       without a result (the session was ended in between);  damaged  lines that could not be read
    """

    FIELDS = ("files", "sessions", "calls", "recorded", "failed", "known", "unfinished", "elsewhere", "damaged")

    def __init__(self) -> None:
        self.files = self.sessions = self.calls = self.recorded = self.failed = 0
        self.known = self.unfinished = self.elsewhere = self.damaged = 0

    def to_data(self) -> dict[str, int]:
        """The counts by name."""
        return {name: getattr(self, name) for name in self.FIELDS}

    def line(self) -> str:
        """The counts for a person."""
        if not self.files:
            return "no earlier sessions of this repository to read"
        more = [f"{self.known} already known"] if self.known else []
        more += [f"{self.unfinished} without a result"] if self.unfinished else []
        more += [f"{count(self.damaged, 'line')} that could not be read"] if self.damaged else []
        return (
            f"read {count(self.calls, 'tool call')} of {count(self.sessions, 'earlier session')}: {self.recorded} recorded, "
            f"{self.failed} of them failed" + (f" ({', '.join(more)})" if more else "")
        )


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
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, str(path)))


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


def backfill(
    place: Place,
    *,
    now: int,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    sources: Sequence[tuple[Path, Any]] | None = None,
) -> Counts:
    """Record the calls of earlier sessions that the log does not hold yet. Idempotent: a call is known by its id.

    sources  (file, reader) of the transcripts (importers/sources.py), by default Claude Code's

    Raises LogError where the log cannot be written. A transcript that cannot be read is counted and passed over.
    """
    counts = Counts()
    files = [(path, read_calls) for path in session_files(place)] if sources is None else list(sources)
    if not files:
        return counts
    try:
        state = open_state(place)
    except ProjectionError:  # busy, or not to be written: what is read here is enough but for a call begun before it
        return _backfill(place, files, Earlier(), counts, now, progress)
    try:
        return _backfill(place, files, Earlier(state), counts, now, progress)
    finally:
        state.close()


def _backfill(
    place: Place,
    files: list[tuple[Path, Any]],
    earlier: Earlier,
    counts: Counts,
    now: int,
    progress: Callable[[Iterable[Any]], Iterable[Any]],
) -> Counts:
    known, erased = _known_calls(place), _Erased(place)
    observed = _observed(place)
    owner = _Owner(place)
    sessions: set[str] = set()
    drafts: list[dict[str, Any]] = []
    for path, reader in progress(files):
        seen_any = False
        for call in reader(path, counts):
            where = owner.of(call["cwd"])
            if where is None:
                counts.elsewhere += 1
                continue
            seen_any = True
            counts.calls += 1
            sessions.add(call["session"])
            if call["at"] is None:
                counts.unfinished += 1
            elif call["call"] in known or call["call"] in erased or (call.get("unnamed") and call["session"] in observed):
                counts.known += 1
            else:
                known.add(call["call"])
                drafts.append(_draft(where, call, earlier))
                counts.recorded += 1
                counts.failed += drafts[-1]["data"]["outcome"] == "failed"
        counts.files += seen_any
        if len(drafts) >= BATCH_EVENTS:
            append(place, drafts, now, "batch")
            drafts = []
    if drafts:
        append(place, drafts, now, "batch")
    counts.sessions = len(sessions)
    return counts


def _known_calls(place: Place) -> set[str]:
    """Ids of all tool calls in the log, whatever their session: a resumed session repeats the lines of the old one."""
    from projectmem_logs.reader import read_events

    events = (event.get("data") or {} for event in read_events(place.home) if event.get("kind") == "action.finished")
    return {str(data["call"]) for data in events if data.get("call")}


def _observed(place: Place) -> set[str]:
    """Sessions that the hook has recorded calls of."""
    from projectmem_logs.reader import read_events

    events = (event for event in read_events(place.home) if event.get("kind") == "action.finished")
    actors = (event.get("actor") or {} for event in events)
    return {str(actor.get("session")) for actor in actors if actor.get("origin") == "observed"}


class _Erased:
    """The calls that were in the log and were erased from it: they stay out. Only keyed hashes of their ids are kept."""

    def __init__(self, place: Place) -> None:
        from projectmem.forget import erased_calls

        self.home, self.marks = place.home, erased_calls(place.home)

    def __contains__(self, call: str) -> bool:
        if not self.marks:
            return False
        from projectmem_logs.home import redaction_key

        from projectmem.forget import call_mark

        return call_mark(redaction_key(self.home), call) in self.marks


def _draft(place: Place, call: Call, earlier: Earlier) -> dict[str, Any]:
    earlier.at = call["at"]
    action = identified(place, call, earlier.moves())
    call["output"] = redactor(place).text(call["output"])
    outcome = seen_again(earlier, call, action, judged(call, action, {}))
    draft = finished_draft(call, action, outcome, {}, at=call["at"], origin="import", source="backfill")
    earlier.learn(draft)
    return draft


class _Owner:
    """Which calls belong here: those made in a folder of the same repository, each in its own work tree."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._known: dict[str, Place | None] = {}

    def of(self, cwd: str) -> Place | None:
        if cwd not in self._known:
            found = places.locate(cwd) if cwd else None
            if found is not None and found.common_dir == self.place.common_dir and found.root:
                here = Place(found.root, self.place.home, found.worktree, found.git_dir, found.common_dir)
                inside = bool(found.common_dir) or found.root == self.place.root
                self._known[cwd] = here if inside else None
            else:
                self._known[cwd] = None
        return self._known[cwd]


def read_calls(path: Path, counts: Counts | None = None) -> Iterator[Call]:
    """The tool calls of one transcript in the order of their results; those without one come last, with `at` None.

    A call is the adapters' neutral dict with `at` (us) of its result. Lines that are no JSON are counted as damaged.
    """
    counts = counts or Counts()
    open_calls: dict[str, Call] = {}
    tasks: dict[str, Call] = {}
    try:
        with path.open("rb") as file:
            for raw in file:
                if b"tool_use" not in raw and b"task-notification" not in raw:
                    continue
                line = _parsed(raw, counts)
                if line is not None:
                    yield from _line(line, open_calls, tasks, path)
    except OSError:
        counts.damaged += 1
    for call in open_calls.values():
        yield {**call, "at": None}


def _parsed(raw: bytes, counts: Counts) -> dict[str, Any] | None:
    try:
        line = orjson.loads(raw)
    except ValueError:
        counts.damaged += 1
        return None
    # `api-request-blob` and the like repeat what other lines hold
    return line if isinstance(line, dict) and line.get("type") in ("assistant", "user") else None


def _line(line: dict[str, Any], open_calls: dict[str, Call], tasks: dict[str, Call], path: Path) -> Iterator[Call]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    at = time_us(line.get("timestamp"))
    if isinstance(content, str):
        if content.startswith("<task-notification>"):
            yield from _ended(content, tasks, at)
        return
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_use" and isinstance(block.get("name"), str) and isinstance(block.get("id"), str):
            open_calls[block["id"]] = _opened(line, message, block, at, path)
        elif kind == "tool_result" and isinstance(block.get("tool_use_id"), str) and at:
            call = open_calls.pop(block["tool_use_id"], None)
            if call is not None:
                _closed(call, line, block, at)
                if call["background"]:
                    tasks[call["call"]] = call
                yield call


def _opened(line: dict[str, Any], message: Any, block: dict[str, Any], at: int, path: Path) -> Call:
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
        "began": at,
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
    if call["began"]:
        call["duration_ms"] = max(0, (at - call["began"]) // 1000)


def _ended(prompt: str, tasks: dict[str, Call], at: int) -> Iterator[Call]:
    """The end of a background command, told in a line of its own."""
    payload = Payload("UserPromptSubmit", "prompt", {"prompt": prompt, "session_id": "", "cwd": ""})
    task = results.task_notification(payload)
    started = tasks.pop(task["call"], None) if task else None
    if task is None or started is None or not at:
        return
    call = results.ended_task(payload, task, started)
    if call is not None:
        for name in ("session", "agent", "model", "cwd"):
            call[name] = started[name]
        call["redacted"] = False
        call.update(at=at, turn=-1, began=0)
        yield call


def time_us(value: Any) -> int:
    """An ISO time as microseconds since the epoch, 0 for none."""
    if not isinstance(value, str):
        return 0
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        return 0
