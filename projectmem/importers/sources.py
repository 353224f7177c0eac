"""Where each harness keeps its sessions, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from projectmem.importers import claude_code, cline, codex, copilot, droid, gemini, opencode, pi, qwen
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
