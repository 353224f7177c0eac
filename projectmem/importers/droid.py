"""Reads the sessions that Factory Droid keeps: `~/.factory/sessions/<slug>/<session>.jsonl`, the folder in its first line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.hook import droid
from projectmem.hook.payload import call_of, text_of
from projectmem.importers.reading import Call, Counts, by_age, ended, json_lines, payload_of, time_us
from projectmem.place import Place, config_dir

_MARKS = (b'"session_start"', b'"tool_use"', b'"tool_result"')


def session_files(place: Place) -> list[Path]:
    """All transcripts, oldest first."""
    return by_age((Path(config_dir("", "~/.factory")) / "sessions").glob("*/*.jsonl"))


def read_calls(path: Path, counts: Counts) -> Iterator[Call]:
    """The calls of one transcript in the order of their results."""
    session, cwd = path.stem, ""
    asked: dict[str, tuple[dict[str, Any], int, str]] = {}
    for line in json_lines(path, counts, *_MARKS):
        if line.get("type") == "session_start":
            session, cwd = text_of(line, "id") or session, text_of(line, "cwd")
            continue
        message, at = line.get("message"), time_us(line.get("timestamp"))
        blocks = message.get("content") if isinstance(message, dict) else None
        for block in blocks if isinstance(blocks, list) else ():
            kind = block.get("type") if isinstance(block, dict) else ""
            if kind == "tool_use" and isinstance(block.get("name"), str):
                asked[text_of(block, "id")] = block, at, text_of(message or {}, "modelId")
            elif kind == "tool_result" and text_of(block, "tool_use_id") in asked:
                id = text_of(block, "tool_use_id")
                use, began, model = asked.pop(id)
                call = call_of(payload_of(session, cwd, model), droid.HARNESS, droid.named(use["name"]), use.get("input"), id)
                yield {**ended(droid.told(call, block), at, began), "unnamed": True}
