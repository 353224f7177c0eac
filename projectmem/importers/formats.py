"""Readers of trajectories of other agents that a person names: SWE-agent's and ATIF's. Both were made elsewhere: a call counts as
made in this project, at the same folder below its top.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from projectmem.hook.payload import call_of, errored, exited, head_and_tail, number_after, text_of
from projectmem.importers.reading import Call, Counts, ended, payload_of, time_us, whole_json

_TOOK_TOO_LONG = ("was cancelled because it took more than", "EXECUTION TIMED OUT", "CommandTimeoutError")
_CODES = ("exit_code", "returncode", "return_code", "exitCode")
_ERRORS = ("is_error", "isError", "tool_result_is_error")
_MARKS = ("<returncode>", "[Process exited with code ", "Command exited with code ", "completed with exit code ", "Exit code: ")
_MARK_WITHIN = 200  # characters of an output's end and start in which an exit code is told
_EDITOR = ("--old_str", "--new_str", "--file_text", "--insert_line")
OWN = "projectmem"  # what our own export keeps in `extra`
DEPTH_MAX = 8  # of trajectories of subagents within each other


def read_swe_agent(path: Path, counts: Counts, root: str) -> Iterator[Call]:
    """The actions of a `.traj` file in order. It has no exit codes and no times: the outcome is read from the observation.

    A step is known by all that was done and seen up to its end.
    """
    data, written = whole_json(path, counts)
    steps = data.get("trajectory")
    if data and not isinstance(steps, list):
        counts.bad(path, "no trajectory in it")
    rows = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    upto = hashlib.sha256(str(data.get("environment") or "").encode("utf-8", "surrogatepass"))
    first = ""
    where, session, model = root, "", _swe_model(data)
    for step in rows:
        action, seen = text_of(step, "action"), text_of(step, "observation")
        upto.update(orjson.dumps([action, seen]))
        session = session or f"swe:{upto.hexdigest()[:24]}"
        if action.strip():
            tool, given = _asked(action)
            call = call_of(payload_of(session, where, model), "swe-agent", tool, given, f"swe:{upto.hexdigest()[:24]}")
            call["output"] = head_and_tail(seen)
            call["timed_out"] = any(mark in seen for mark in _TOOK_TOO_LONG)
            took = step.get("execution_time")
            if isinstance(took, (int, float)) and 0 < took < 1e7:
                call["duration_ms"] = int(took * 1000)
            yield ended(call, written)
        folder = _folder(step.get("state"))
        first = first or folder
        where = _below(root, folder, first) or where


def _asked(action: str) -> tuple[str, dict[str, Any]]:
    """The tool and its input. All tools are shell commands there; the editor's say what an edit of another harness says."""
    if action.startswith("str_replace_editor "):
        try:
            words = shlex.split(action)
        except ValueError:
            words = []
        options = {name[2:]: value for name, value in pairwise(words[3:]) if name in _EDITOR}
        if len(words) > 2:
            return words[0], {"command": words[1], "path": words[2], **options}
    return "bash", {"command": action}


def _swe_model(data: Mapping[str, Any]) -> str:
    try:
        config = orjson.loads(data.get("replay_config") or "{}")
        return str(config["agent"]["model"]["name"])
    except (ValueError, KeyError, TypeError):
        return ""


def _folder(state: Any) -> str:
    """The working folder after a step: of an object, or of the JSON text that older versions wrote."""
    if isinstance(state, str):
        try:
            state = orjson.loads(state)
        except ValueError:
            return ""
    return text_of(state, "working_dir") if isinstance(state, dict) else ""


def _below(root: str, folder: str, first: str) -> str:
    """`folder` of the machine where the work began in `first`, as a folder of `root`; "" where it is not below that."""
    if not first or not (folder == first or folder.startswith(first.rstrip("/") + "/")):
        return ""
    inner = posixpath.normpath(posixpath.relpath(folder, first))
    return root if inner in (".", "") or inner.startswith("..") else os.path.join(root, *inner.split("/"))


def read_atif(path: Path, counts: Counts, root: str) -> Iterator[Call]:
    """The tool calls of an ATIF trajectory (v1.0 to v1.8), those of embedded subagents included.

    A call without a result is passed over; so are steps that were copied from another trajectory. What a format of ours keeps
    beside it in `extra.projectmem` (folder, exit code, outcome) is taken from there.
    """
    data, written = whole_json(path, counts)
    if not data:
        return
    if not isinstance(data.get("steps"), list) or not str(data.get("schema_version", "")).startswith("ATIF"):
        counts.bad(path, "no ATIF trajectory")
        return
    yield from _trajectory(data, written, root, "", 0)


def _trajectory(data: Mapping[str, Any], written: int, root: str, agent: str, depth: int) -> Iterator[Call]:
    about = data.get("agent")
    about = about if isinstance(about, dict) else {}
    top = text_of(_own(data), "root")
    known = text_of(data, "session_id") or text_of(data, "trajectory_id") or _sha(data["steps"][:2])
    for step in data["steps"]:
        if not isinstance(step, dict) or step.get("is_copied_context") is True:
            continue
        results = _results(step.get("observation"))
        calls = step.get("tool_calls")
        rows = [row for row in calls if isinstance(row, dict)] if isinstance(calls, list) else []
        for n, row in enumerate(rows):
            id = text_of(row, "tool_call_id")
            result = results.get(id) or (results.get("#0") if n == len(rows) - 1 else None)  # one screen after all of a step
            if result is None or not text_of(row, "function_name"):
                continue
            own = _own(row)
            session = own.get("session") or f"atif:{known}"
            model = text_of(step, "model_name") or text_of(about, "model_name")
            payload = payload_of(str(session), _inside(root, own.get("cwd")), model)
            payload.agent = str(own.get("agent") or agent)
            name = str(own.get("harness") or text_of(about, "name") or "atif")[:200]
            tool, given = _tool(row["function_name"], _arguments(row, own, (top, root)))
            call = call_of(payload, name, tool, given, str(own.get("call") or f"atif:{known}:{id}"))
            if sha := own.get("input_sha"):
                call["input_sha"] = str(sha)
            _answered(call, {**_extra(step), **_extra(row), **_extra(result), **own}, _content(result.get("content")))
            yield ended(call, 0 if own.get("cut") else time_us(own.get("at") or step.get("timestamp")) or written)
    subs = data.get("subagent_trajectories")
    for sub in subs if isinstance(subs, list) and depth < DEPTH_MAX else ():
        if isinstance(sub, dict) and isinstance(sub.get("steps"), list):
            yield from _trajectory(sub, written, root, text_of(sub, "trajectory_id") or "subagent", depth + 1)


def _tool(name: str, given: Any) -> tuple[str, Any]:
    """The tool and its input; keys that are typed into a terminal (as terminus-2 has them) are a command when they end a line."""
    keys = given.get("keystrokes") if name == "bash_command" and isinstance(given, dict) else None
    if not isinstance(keys, str):
        return "bash" if name == "bash_command" else name, given
    return ("bash", {"command": keys.rstrip()}) if keys.endswith("\n") and keys.strip() else ("keys", {"keys": keys})


def _sha(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value)).hexdigest()[:24]


def _extra(row: Mapping[str, Any]) -> dict[str, Any]:
    """The `extra` of a step, call or result with what its `metadata` has."""
    extra = row.get("extra")
    if not isinstance(extra, dict):
        return {}
    inner = extra.get("metadata")
    return {**(inner if isinstance(inner, dict) else {}), **extra}


def _own(row: Mapping[str, Any]) -> dict[str, Any]:
    own = _extra(row).get(OWN)
    return own if isinstance(own, dict) else {}


def _arguments(row: Mapping[str, Any], own: Mapping[str, Any], moved: tuple[str, str]) -> Any:
    return _moved(own["input"] if "input" in own else row.get("arguments"), *moved)


def _moved(value: Any, old: str, new: str) -> Any:
    """The same JSON value with the top folder it was recorded in named as this project's."""
    if not old or old == new:
        return value
    if isinstance(value, str):
        return new if value == old else value.replace(f"{old}/", f"{new}/")
    if isinstance(value, dict):
        return {name: _moved(inner, old, new) for name, inner in value.items()}
    return [_moved(inner, old, new) for inner in value] if isinstance(value, list) else value


def _inside(root: str, folder: Any) -> str:
    """A folder below the project's top, which is what anything else becomes."""
    if not isinstance(folder, str) or not folder or folder.startswith(("/", "\\")) or ".." in folder.split("/") or ":" in folder:
        return root
    return os.path.join(root, folder)


def _results(observation: Any) -> dict[str, dict[str, Any]]:
    """Results by the id of their call, and by `#number` where they name none."""
    rows = observation.get("results") if isinstance(observation, dict) else None
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return {text_of(row, "source_call_id") or f"#{n}": row for n, row in enumerate(found)}


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(text_of(part, "text") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _answered(call: Call, extra: Mapping[str, Any], text: str) -> None:
    """What is told of the outcome: a code or a mark beside the result, else a code that the text begins or ends with."""
    took = extra.get("duration_ms")
    call["duration_ms"] = took if type(took) is int and took >= 0 else None
    code = next((extra[name] for name in _CODES if type(extra.get(name)) is int), None)
    wrong = next((extra[name] for name in _ERRORS if type(extra.get(name)) is bool), None)
    if code is None and wrong is None:
        ends = (text[-_MARK_WITHIN:], text[:_MARK_WITHIN])
        code = next((n for mark in _MARKS for end in ends if (n := number_after(end, mark)) is not None), None)
    if code is not None:
        exited(call, code, text)
    elif wrong:
        errored(call, text)
    else:
        call["output"], call["is_error"] = head_and_tail(text), wrong
    if isinstance(extra.get("error_kind"), str) and extra["error_kind"]:
        call["error_kind"] = extra["error_kind"]
        call["interrupted"], call["timed_out"] = call["error_kind"] == "interrupted", call["error_kind"] == "timeout"
