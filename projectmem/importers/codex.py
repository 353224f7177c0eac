"""Reads the sessions that Codex CLI keeps: `<CODEX_HOME>/sessions/YYYY/MM/DD/rollout-*.jsonl`, all projects together.

`session_meta` and `turn_context` have the folder, `item_completed` lines the commands with exit code and duration, and
`custom_tool_call` lines the patches (hook/codex.py reads the same lines while a session runs). Older versions have commands in
`function_call` and `function_call_output` alone; newer ones have both, under one id: the second is left out then.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.hook import codex
from projectmem.hook.payload import call_of, exited, number_after, text_of
from projectmem.importers.reading import Call, Counts, ended, parsed, payload_of, raw_lines, time_us
from projectmem.place import Place, config_dir

_SHELLS, _RUNNING = ("shell", "exec_command", "shell_command", "local_shell", "container.exec"), "Process running with session ID"
_MARKS = (b'"session_meta"', b'"turn_context"', b'"item_completed"', b'"custom_tool_call')


def session_files(place: Place) -> list[Path]:
    """All transcripts, oldest first: which project one belongs to stands inside."""
    base = Path(config_dir("CODEX_HOME", "~/.codex")) / "sessions"
    return sorted(base.rglob("rollout-*.jsonl"))


def read_calls(path: Path, counts: Counts | None = None) -> Iterator[Call]:
    """The ended calls of one transcript, in order."""
    session, cwd, model = path.stem[-36:], "", ""
    patches: dict[str, Any] = {}
    asked = _Asked()
    for line in asked.lines(path, counts or Counts()):
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
        call = codex.read_item(payload, item, patches) or _patched(payload, item, patches) or asked.call(payload, item)
        if call is not None:
            asked.done.add(call["call"])
            yield ended(call, time_us(line.get("timestamp")))


class _Asked:
    """Commands as older versions tell of them. Their lines are parsed only where no `item_completed` has told of the call."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.waiting: dict[str, bytes] = {}

    def lines(self, path: Path, counts: Counts) -> Iterator[dict[str, Any]]:
        """The lines of a transcript that may tell of a call."""
        for raw in raw_lines(path, counts):
            if b'"function_call"' in raw:
                self.waiting[_id(raw)] = raw
                continue
            old = b'"function_call_output"' in raw and _id(raw) in self.waiting
            if old and _id(raw) in self.done:
                del self.waiting[_id(raw)]
                continue
            if not old and not any(mark in raw for mark in _MARKS):
                continue
            try:
                line = parsed(raw)
            except ValueError:
                counts.bad(path)
                continue
            if isinstance(line, dict):
                yield line

    def call(self, payload: Any, item: dict[str, Any]) -> Call | None:
        """A command that `function_call_output` ends; None for one that goes on, and for other tools' calls."""
        output = item.get("output")
        raw = self.waiting.pop(text_of(item, "call_id"), b"")
        if item.get("type") != "function_call_output" or not raw or not isinstance(output, str):
            return None
        try:
            use = parsed(raw)["payload"]
            name, given = use["name"], parsed(use["arguments"].encode("utf-8", "surrogatepass"))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        if name not in _SHELLS or _RUNNING in output[:200]:
            return None
        text, code = _ended(output)
        return exited(call_of(payload, codex.HARNESS, name, given, text_of(item, "call_id")), code, text)


def _id(raw: bytes) -> str:
    return raw.partition(b'"call_id":')[2].lstrip()[1:200].partition(b'"')[0].decode("utf-8", "replace")


def _ended(output: str) -> tuple[str, int | None]:
    """(text, exit code) of an output: JSON of both, or lines about the run before the text."""
    told, code = codex.unwrapped(output)
    if told != output:
        return told, code
    head, found, text = output.partition("\nOutput:\n")
    mark = "Process exited with code" if "Process exited with code" in head else "Exit code:"
    return (text, number_after(head, mark)) if found else (output, None)


def _patched(payload: Any, item: dict[str, Any], patches: dict[str, Any]) -> Call | None:
    """A patch that applied: what clears a failed one."""
    id, output = str(item.get("call_id")), item.get("output")
    if item.get("type") != "custom_tool_call_output" or id not in patches or not isinstance(output, str):
        return None
    text, code = codex.unwrapped(output)
    if patches[id].get("name") != "apply_patch" or not (code == 0 or output.startswith("Exit code: 0")):
        return None
    return exited(call_of(payload, codex.HARNESS, "apply_patch", {"command": patches[id].get("input")}, id), 0, text)
