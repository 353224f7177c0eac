"""Where each harness keeps its sessions, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from projectmem.importers import claude_code, cline, codex, copilot, droid, gemini, opencode, pi, qwen
from projectmem.importers.reading import Call, Counts, json_lines
from projectmem.place import Place

Reader = Callable[[Path, Any], Iterator[dict[str, Any]]]
SOURCES: dict[str, tuple[Callable[[Place], list[Path]], Reader]] = {
    "claude-code": (claude_code.session_files, claude_code.read_calls),
    "codex": (codex.session_files, codex.read_calls),
    "gemini": (gemini.session_files, gemini.read_calls),
    "qwen": (qwen.session_files, qwen.read_calls),
    "copilot": (copilot.session_files, copilot.read_calls),
    "opencode": (opencode.session_files, opencode.read_calls),
    "droid": (droid.session_files, droid.read_calls),
    "cline": (cline.session_files, cline.read_calls),
    "pi": (pi.session_files, pi.read_calls),
}


def sessions(place: Place, harnesses: Iterable[str]) -> list[tuple[Path, Reader]]:
    """(file, its reader) of the sessions that these harnesses keep; those that keep none that can be read have none."""
    found = []
    for name in harnesses:
        if name in SOURCES:
            files, reader = SOURCES[name]
            found += [(path, reader) for path in files(place)]
    return found


def _parts(line: Call) -> bool:
    message = line.get("message")
    return "provenance" in line or (isinstance(message, dict) and isinstance(message.get("parts"), list))


# A line as the harness writes into every session, calls or none. opencode's and Cline's readers say themselves what is wrong.
OWN_LINE: dict[str, Callable[[Call], bool]] = {
    "claude-code": lambda line: ("sessionId" in line or "leafUuid" in line) and "type" in line and not _parts(line),
    "codex": lambda line: isinstance(line.get("type"), str) and isinstance(line.get("payload"), dict),
    "gemini": lambda line: "sessionId" in line and ("projectHash" in line or "startTime" in line),
    "qwen": lambda line: "sessionId" in line and _parts(line),
    "copilot": lambda line: str(line.get("type")).startswith("session.") and isinstance(line.get("data"), dict),
    "droid": lambda line: line.get("type") == "session_start",
    "pi": lambda line: line.get("type") == "session",
}


def named(form: str) -> Reader:
    """The reader of a harness's sessions for a file that a person names: one that holds no call and no line as that harness
    writes it is counted as none of its sessions."""
    reader, own = SOURCES[form][1], OWN_LINE.get(form)

    def read(path: Path, counts: Any) -> Iterator[Call]:
        before, found = counts.damaged, False
        for call in reader(path, counts):
            found = True
            yield call
        if not found and counts.damaged == before and own is not None and not any(map(own, json_lines(path, Counts()))):
            counts.bad(path, f"no session of {form}")

    return read
