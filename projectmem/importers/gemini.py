"""Reads the sessions that Gemini CLI keeps: `~/.gemini/tmp/<name>/chats/session-*.jsonl`, the folder in `.project_root` beside.

A session that the hook has seen is left out: the hook's events have no call ids, so the two could not be told to be one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.hook import gemini
from projectmem.hook.payload import call_of
from projectmem.importers.reading import Call, Counts, ended, json_lines, payload_of, time_us
from projectmem.place import Place, config_dir

_ENDED = ("success", "error")


def session_files(place: Place) -> list[Path]:
    """All transcripts, oldest first."""
    return sorted((Path(config_dir("", "~/.gemini")) / "tmp").glob("*/chats/session-*.jsonl"), key=lambda path: path.name)


def read_calls(path: Path, counts: Counts | None = None) -> Iterator[Call]:
    """The calls of one transcript, in order. A line of a message may be written again when its calls have ended."""
    try:
        cwd = (path.parents[1] / ".project_root").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        cwd = ""
    session, done = path.stem, set()
    for line in json_lines(path, counts or Counts(), b'"toolCalls"', b'"sessionId"'):
        session = str(line.get("sessionId") or session)
        calls = line.get("toolCalls")
        for row in calls if isinstance(calls, list) else ():
            if not isinstance(row, dict) or not isinstance(row.get("name"), str) or row.get("status") not in _ENDED:
                continue
            id = str(row.get("id") or "")
            if id in done:
                continue
            done.add(id)
            call = call_of(
                payload_of(session, cwd, str(line.get("model") or "")), gemini.HARNESS, row["name"], row.get("args"), id
            )
            gemini.answered(call, _response(row.get("result")))
            yield {**ended(call, time_us(row.get("timestamp")), time_us(line.get("timestamp"))), "unnamed": True}


def _response(result: Any) -> dict[str, Any]:
    """The result as the hook is told it."""
    part = result[0] if isinstance(result, list) and result else {}
    response = part.get("functionResponse", {}).get("response") if isinstance(part, dict) else None
    fields = response if isinstance(response, dict) else {}
    if isinstance(fields.get("error"), str):
        return {"llmContent": fields["error"], "error": {"message": fields["error"]}}
    return {"llmContent": fields.get("output", "")}
