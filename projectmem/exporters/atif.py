"""Recorded calls as ATIF trajectories (v1.8), one file for each session: every call is a step of the agent with its one result.

The log keeps calls, not what was said: messages are empty, and of an output the excerpt. What ATIF has no field for (folder,
outcome, exit code) stands in the call's `extra.projectmem`, so that `import atif` gives the same actions again. It leaves out
calls whose input was too long to be recorded whole (`cut`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from projectmem.exporters.calls import Event, calls, created, ended_us, written
from projectmem.place import Place

VERSION = "ATIF-v1.8"
NOTES = "Exported by projectmem-gate: recorded tool calls. Messages are not recorded, outputs as excerpts, secrets as marks."
CUT = "projectmem_cut"
KINDS = {"rejected": "rejected", "interrupted": "interrupted", "cancelled": "cancelled"}


def export(place: Place, folder: str, *, problems: list[Any] | None = None) -> tuple[int, int]:
    """Write `<session>.json` files into the new folder; (trajectories, calls).

    Two passes over the log: one finds the sessions, then each batch of them is written. Raises what `written` does.
    """
    found = problems if problems is not None else []
    sessions: dict[tuple[str, str], int] = {}
    for event in calls(place, found):
        sessions[_whose(event)] = sessions.get(_whose(event), 0) + 1

    def write(aside: str) -> int:
        os.mkdir(aside, 0o700)
        for number, batch in enumerate(_batches(sessions)):
            held: dict[tuple[str, str], list[Event]] = {key: [] for key in batch}
            for event in calls(place, []):
                if (whose := _whose(event)) in held:
                    held[whose].append(event)
            for n, (whose, events) in enumerate(held.items()):
                name = re.sub(r"[^A-Za-z0-9._-]", "_", whose[1] or "no-session").lstrip(".")[:120] or "session"
                with os.fdopen(created(os.path.join(aside, f"{name}-{number}-{n}.json")), "wb") as file:
                    file.write(orjson.dumps(trajectory(whose, events, place.root), option=orjson.OPT_INDENT_2) + b"\n")
        return sum(sessions.values())

    return len(sessions), written(folder, write)


CALLS_HELD = 50_000  # of the sessions that are in memory at once


def _batches(sessions: dict[tuple[str, str], int]) -> Iterator[list[tuple[str, str]]]:
    """The sessions, as many together as CALLS_HELD allows."""
    batch: list[tuple[str, str]] = []
    held = 0
    for key, count in sessions.items():
        if batch and held + count > CALLS_HELD:
            yield batch
            batch, held = [], 0
        batch.append(key)
        held += count
    if batch:
        yield batch


def _whose(event: Event) -> tuple[str, str]:
    actor = event["actor"]
    return str(actor.get("harness") or "unknown"), str(actor.get("session") or "")


def trajectory(whose: tuple[str, str], events: list[Event], root: str) -> dict[str, Any]:
    """One session's calls in the order of their ends; `root` is what absolute paths in them begin with."""
    ordered = sorted(events, key=lambda e: (ended_us(e), e["stream"], e["seq"]))
    harness, session = whose
    models = [str(e["actor"]["model"]) for e in ordered if e["actor"].get("model")]
    agent = {"name": harness, "version": "unknown", **({"model_name": models[-1]} if models else {})}
    steps = [_step(n, event) for n, event in enumerate(ordered, 1)]
    return {
        "schema_version": VERSION,
        "session_id": session or f"none-{ordered[0]['id']}",
        "agent": agent,
        "steps": steps,
        "notes": NOTES,
        "final_metrics": {"total_steps": len(steps)},
        "extra": {"projectmem": {"root": root}},
    }


def _step(number: int, event: Event) -> dict[str, Any]:
    data, actor = event["data"], event["actor"]
    id = str(data.get("call") or event["id"])
    arguments, own = _arguments(data), _own(event, data, actor)
    if isinstance(arguments, dict) and CUT in arguments:
        own["cut"] = True
    elif not isinstance(arguments, dict):
        own["input"], arguments = arguments, {"input": arguments}
    call = {"tool_call_id": id, "function_name": str(data.get("tool") or "unknown"), "arguments": arguments}
    result = {"source_call_id": id, "content": str(data.get("excerpt") or "")}
    step = {
        "step_id": number,
        "timestamp": datetime.fromtimestamp(ended_us(event) / 1_000_000, UTC).isoformat().replace("+00:00", "Z"),
        "source": "agent",
        "message": "",
        "tool_calls": [{**call, "extra": {"projectmem": own}}],
        "observation": {"results": [result]},
    }
    return {**step, "model_name": str(actor["model"])} if actor.get("model") else step


def _arguments(data: dict[str, Any]) -> Any:
    """The input as it was recorded; one that was cut there as its beginning."""
    text = str(data.get("input") or "")
    try:
        return orjson.loads(text)
    except ValueError:
        return {CUT: text}


def _own(event: Event, data: dict[str, Any], actor: dict[str, Any]) -> dict[str, Any]:
    """What an import needs to know the call and its end again."""
    outcome, code, kind = data.get("outcome"), data.get("exit_code"), str(data.get("class") or "")
    own: dict[str, Any] = {
        "harness": actor.get("harness") or "",
        "session": actor.get("session") or "",
        "agent": actor.get("agent") or "",
        "call": data.get("call") or f"event:{event['id']}",
        "at": datetime.fromtimestamp(ended_us(event) / 1_000_000, UTC).isoformat(),
        "cwd": data.get("cwd") if data.get("cwd") != "." else "",
        "outcome": outcome,
        "class": kind,
        "key": data.get("key"),
        "input_sha": data.get("input_sha"),
        "duration_ms": data.get("duration_ms"),
    }
    if type(code) is int:
        own["exit_code"] = code
    elif outcome in ("ok", "failed"):
        own["is_error"] = outcome == "failed"
    if isinstance(outcome, str) and outcome in KINDS:
        own["error_kind"] = KINDS[outcome]
    elif kind == "timeout":
        own["error_kind"] = "timeout"
    return {name: value for name, value in own.items() if value not in (None, "")}
