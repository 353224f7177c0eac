"""Reads the sessions that Codex CLI keeps: `<CODEX_HOME>/sessions/YYYY/MM/DD/rollout-*.jsonl`, all projects together.

`session_meta` and `turn_context` have the folder, `item_completed` lines the commands with exit code and duration, and
`custom_tool_call` lines the patches (hook/codex.py reads the same lines while a session runs).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.hook import codex
from projectmem.hook.payload import call_of, exited
from projectmem.importers.reading import Call, Counts, ended, json_lines, payload_of, time_us
from projectmem.place import Place, config_dir

_MARKS = (b'"session_meta"', b'"turn_context"', b'"item_completed"', b'"custom_tool_call')


def session_files(place: Place) -> list[Path]:
    """All transcripts, oldest first: which project one belongs to stands inside."""
    base = Path(config_dir("CODEX_HOME", "~/.codex")) / "sessions"
    return sorted(base.rglob("rollout-*.jsonl"))


def read_calls(path: Path, counts: Counts | None = None) -> Iterator[Call]:
    """The ended calls of one transcript, in order."""
    session, cwd, model = path.stem[-36:], "", ""
    patches: dict[str, Any] = {}
    for line in json_lines(path, counts or Counts(), *_MARKS):
        inner = line.get("payload")
        if not isinstance(inner, dict):
            continue
        if line.get("type") in ("session_meta", "turn_context"):
            session = str(inner.get("session_id") or inner.get("id") or session)
            cwd, model = str(inner.get("cwd") or cwd), str(inner.get("model") or model)
            continue
        item = inner.get("item", inner)
        if not isinstance(item, dict):
            continue
        if item.get("type") == "custom_tool_call":
            patches[str(item.get("call_id"))] = item
            continue
        payload = payload_of(session, cwd, model)
        call = codex.read_item(payload, item, patches) or _patched(payload, item, patches)
        if call is not None:
            yield ended(call, time_us(line.get("timestamp")))


def _patched(payload: Any, item: dict[str, Any], patches: dict[str, Any]) -> Call | None:
    """A patch that applied: what clears a failed one."""
    id, output = str(item.get("call_id")), item.get("output")
    if item.get("type") != "custom_tool_call_output" or id not in patches or not isinstance(output, str):
        return None
    if patches[id].get("name") != "apply_patch" or not output.startswith("Exit code: 0"):
        return None
    return exited(call_of(payload, codex.HARNESS, "apply_patch", {"command": patches[id].get("input")}, id), 0, output)
