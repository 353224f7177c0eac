"""Reads the tasks that Cline keeps: `~/.cline/data/sessions/<id>/<id>.messages.json`, the folder in `<id>.json` beside it.

The hook knows a task by another id than these files do; the calls' own ids are the same in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from projectmem.hook import cline
from projectmem.hook.payload import call_of, text_of
from projectmem.importers import cline_tasks
from projectmem.importers.reading import Call, Counts, by_age, ended, ms_us, payload_of, whole_json
from projectmem.place import Place, config_dir


def session_files(place: Place) -> list[Path]:
    """All tasks, those of the editors' extension (cline_tasks.py) before the others, each oldest first."""
    own = (Path(config_dir("", "~/.cline")) / "data" / "sessions").glob("*/*.messages.json")
    return [*cline_tasks.task_files(), *by_age(own)]


def read_calls(path: Path, counts: Counts) -> Iterator[Call]:
    """The calls of one task in the order of their results."""
    if path.name == cline_tasks.FILE:
        yield from cline_tasks.read_task(path, counts)
        return
    data, _ = whole_json(path, counts)
    about, messages = _about(path), data.get("messages")
    session, cwd = text_of(data, "sessionId") or path.name.partition(".")[0], text_of(about, "cwd")
    if data and not isinstance(messages, list):
        counts.bad(path, "no messages in it")
    asked: dict[str, tuple[dict[str, Any], int, str]] = {}
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            kind = block.get("type") if isinstance(block, dict) else ""
            if kind == "tool_use" and isinstance(block.get("name"), str):
                info = message.get("modelInfo")
                asked[text_of(block, "id")] = block, ms_us(message.get("ts")), text_of(info if type(info) is dict else {}, "id")
            elif kind == "tool_result" and text_of(block, "tool_use_id") in asked:
                id = text_of(block, "tool_use_id")
                use, began, model = asked.pop(id)
                call = call_of(payload_of(session, cwd, model), cline.HARNESS, use["name"], cline.given(use.get("input")), id)
                cline.told(call, {"output": _output(block.get("content"))})
                yield ended(call, ms_us(message.get("ts")), began)


def _about(path: Path) -> dict[str, Any]:
    """What Cline says of the task; {} where that cannot be read: its calls then belong to no repository."""
    try:
        found = orjson.loads(path.with_name(f"{path.name.removesuffix('.messages.json')}.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _output(content: Any) -> Any:
    """A result as the hook is told it: most tools' as an object, of some as its JSON text."""
    if not isinstance(content, str):
        return content
    try:
        found = orjson.loads(content)
    except ValueError:
        found = None
    return found if isinstance(found, dict) and "result" in found else {"result": content}
