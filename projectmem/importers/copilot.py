"""Reads the sessions that Copilot CLI keeps: `~/.copilot/session-state/<session>/events.jsonl`.

A session that the hook has seen is left out: the hook's events have no call ids, so the two could not be told to be one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.hook import copilot
from projectmem.hook.payload import call_of, errored
from projectmem.importers.reading import Call, Counts, by_age, ended, json_lines, payload_of, time_us
from projectmem.place import Place, config_dir

_MARKS = (b'"session.start"', b'"tool.execution_start"', b'"tool.execution_complete"')


def session_files(place: Place) -> list[Path]:
    """All transcripts, oldest first."""
    files = (Path(config_dir("COPILOT_HOME", "~/.copilot")) / "session-state").glob("*/events.jsonl")
    return by_age(files)


def read_calls(path: Path, counts: Counts | None = None) -> Iterator[Call]:
    """The calls of one transcript in the order of their results."""
    session, cwd = path.parent.name, ""
    asked: dict[str, tuple[dict[str, Any], int]] = {}
    for line in json_lines(path, counts or Counts(), *_MARKS):
        data, at = line.get("data"), time_us(line.get("timestamp"))
        if not isinstance(data, dict):
            continue
        id = str(data.get("toolCallId") or "")
        if line.get("type") == "session.start":
            where = data.get("context")
            cwd = str(where.get("cwd") or "") if isinstance(where, dict) else ""
            session = str(data.get("sessionId") or session)
        elif line.get("type") == "tool.execution_start" and isinstance(data.get("toolName"), str):
            asked[id] = data, at
        elif line.get("type") == "tool.execution_complete" and id in asked:
            use, began = asked.pop(id)
            payload = payload_of(session, cwd, str(use.get("model") or ""))
            call = call_of(payload, copilot.HARNESS, copilot.tool_of(use["toolName"], cwd), use.get("arguments"), id)
            _answered(call, data)
            yield {**ended(call, at, began), "unnamed": True}


def _answered(call: Call, data: dict[str, Any]) -> None:
    error, result = data.get("error"), data.get("result")
    if isinstance(error, dict):
        kind = "denied" if error.get("code") in ("denied", "rejected") else "tool"
        errored(call, str(error.get("message") or ""))["error_kind"] = kind
        return
    text = str(result.get("content") or "") if isinstance(result, dict) else ""
    copilot.answered(call, {"resultType": "success", "textResultForLlm": text})
