"""Reads the sessions that opencode keeps in `<data>/opencode/opencode.db` (SQLite, opened read-only)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.hook import opencode
from projectmem.hook.payload import call_of, errored, exited
from projectmem.importers.reading import Call, Counts, ended, parsed, payload_of
from projectmem.place import Place, config_dir

_PARTS = """SELECT part.session_id, session.directory, part.data FROM part JOIN session ON session.id = part.session_id
    WHERE part.data LIKE '{"type":"tool"%' ORDER BY part.time_created, part.id"""


def session_files(place: Place) -> list[Path]:
    """The database, where there is one."""
    path = Path(config_dir("XDG_DATA_HOME", "~/.local/share")) / "opencode" / "opencode.db"
    return [path] if path.is_file() else []


def read_calls(path: Path, counts: Counts | None = None) -> Iterator[Call]:
    """The ended calls of all sessions, in order. A database of another shape is counted as damaged."""
    counts = counts or Counts()
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            for session, directory, data in db.execute(_PARTS):
                try:
                    part = parsed(data)
                except ValueError:
                    counts.bad(path)
                    continue
                call = _call(part, payload_of(str(session), str(directory))) if isinstance(part, dict) else None
                if call is not None:
                    yield call
        finally:
            db.close()
    except sqlite3.Error as exc:
        counts.bad(path, exc)


def _call(part: dict[str, Any], payload: Any) -> Call | None:
    state = part.get("state")
    if not isinstance(state, dict) or not isinstance(part.get("tool"), str) or state.get("status") not in ("completed", "error"):
        return None
    call = call_of(
        payload, opencode.HARNESS, opencode.tool_of(part["tool"], payload.cwd), state.get("input"), str(part.get("callID") or "")
    )
    metadata, spent = state.get("metadata"), state.get("time")
    if state["status"] == "error":
        errored(call, str(state.get("error") or ""))
    else:
        code = metadata.get("exit") if isinstance(metadata, dict) else None
        exited(call, code, str(state.get("output") or ""))
        call["is_error"] = bool(call["is_error"])
    times = spent if isinstance(spent, dict) else {}
    return ended(call, int(times.get("end") or 0) * 1000, int(times.get("start") or 0) * 1000)
