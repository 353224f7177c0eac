"""Reads the sessions that Qwen Code keeps: `~/.qwen/projects/<slug>/chats/*.jsonl`; each line has the folder and the time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.hook import qwen
from projectmem.hook.gemini import answered, shell
from projectmem.hook.payload import call_of, errored
from projectmem.importers.reading import Call, Counts, by_age, ended, json_lines, payload_of, time_us
from projectmem.place import Place, config_dir


def session_files(place: Place) -> list[Path]:
    """All transcripts, oldest first."""
    files = (Path(config_dir("QWEN_HOME", "~/.qwen")) / "projects").glob("*/chats/*.jsonl")
    return by_age(files)


def read_calls(path: Path, counts: Counts | None = None) -> Iterator[Call]:
    """The calls of one transcript in the order of their results."""
    asked: dict[str, tuple[Any, int, str]] = {}
    for line in json_lines(path, counts or Counts(), b'"functionCall"', b'"functionResponse"'):
        message, at = line.get("message"), time_us(line.get("timestamp"))
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            use, told = (part.get("functionCall"), part.get("functionResponse")) if isinstance(part, dict) else (None, None)
            if isinstance(use, dict) and isinstance(use.get("name"), str):
                asked[str(use.get("id"))] = use, at, str(line.get("model") or "")
            elif isinstance(told, dict) and str(told.get("id")) in asked:
                use, began, model = asked.pop(str(told.get("id")))
                payload = payload_of(str(line.get("sessionId") or path.stem), str(line.get("cwd") or ""), model)
                call = call_of(payload, qwen.HARNESS, use["name"], use.get("args"), str(told.get("id")))
                _answered(call, told.get("response"))
                yield ended(call, at, began)


def _answered(call: Call, response: Any) -> None:
    fields = response if isinstance(response, dict) else {}
    error = fields.get("error")
    if not isinstance(error, str):
        answered(call, {"llmContent": fields.get("output", "")})
    elif call["tool"] == "run_shell_command" and "\nExit Code: " in error:
        shell(call, error)
    else:
        errored(call, error)
