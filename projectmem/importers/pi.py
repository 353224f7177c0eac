"""Reads the sessions that pi keeps: `~/.pi/agent/sessions/<slug>/<time>_<session>.jsonl`, the folder in its first line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.hook import pi
from projectmem.hook.payload import call_of, text_of
from projectmem.importers.reading import Call, Counts, by_age, ended, json_lines, payload_of, time_us
from projectmem.place import Place, config_dir

_MARKS = (b'"session"', b'"toolCall"', b'"toolResult"')


def session_files(place: Place) -> list[Path]:
    """All transcripts, oldest first."""
    return by_age((Path(config_dir("PI_CODING_AGENT_DIR", "~/.pi/agent")) / "sessions").glob("*/*.jsonl"))


def read_calls(path: Path, counts: Counts) -> Iterator[Call]:
    """The calls of one transcript in the order of their results."""
    session, cwd = path.stem.rpartition("_")[2], ""
    asked: dict[str, tuple[dict[str, Any], int, str]] = {}
    for line in json_lines(path, counts, *_MARKS):
        if line.get("type") == "session":
            session, cwd = text_of(line, "id") or session, text_of(line, "cwd")
        message = line.get("message")
        if not isinstance(message, dict):
            continue
        at, content = time_us(line.get("timestamp")), message.get("content")
        if message.get("role") == "toolResult":
            id = text_of(message, "toolCallId")
            if id in asked:
                use, began, model = asked.pop(id)
                call = call_of(payload_of(session, cwd, model), pi.HARNESS, use["name"], use.get("arguments"), id)
                yield ended(pi.told(call, _text(content), failed=message.get("isError") is True), at, began)
            continue
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "toolCall" and isinstance(block.get("name"), str):
                asked[text_of(block, "id")] = block, at, text_of(message, "model")


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else ()
    return "\n".join(text_of(part, "text") for part in parts if isinstance(part, dict))
