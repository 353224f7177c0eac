"""Reads `.projectmem/events.jsonl`, the log of the unrelated PyPI package `projectmem` (0.1 to 0.3.4): what people wrote there.

Its lines are `{"id", "timestamp", "type", "summary", "issue_id", "outcome", "files", "location", "notes", ...}`; nothing in it
was observed, so nothing of it can make the gate object. What a later line retires (`supersedes`) is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from projectmem.hook.payload import text_of
from projectmem.importers.reading import Counts, json_lines, time_us
from projectmem.importers.written import Entry

FILE = Path(".projectmem") / "events.jsonl"
TYPES = ("issue", "hypothesis", "attempt", "fix", "decision", "note")
TITLE_MAX, TEXT_MAX, PATHS_MAX = 500, 20_000, 50


def read_rival(path: Path, counts: Counts) -> Iterator[Entry]:
    """(name, time, kind, payload) of each line, in order, in two passes. Damaged lines are counted in `counts`."""
    retired = {text_of(row, "supersedes") for row in json_lines(path, Counts(), b'"supersedes"')}
    for row in json_lines(path, counts):
        summary, kind = text_of(row, "summary").strip(), row.get("type")
        if kind not in TYPES or not summary:
            counts.bad(path, "a line of an unknown type")
            continue
        id = text_of(row, "id") or f"sha_{hashlib.sha256(repr(sorted(row.items())).encode('utf-8', 'replace')).hexdigest()[:20]}"
        if id in retired:
            continue
        at, name = time_us(row.get("timestamp")), f"projectmem:{id}"
        for n, (what, data) in enumerate(_events(kind, summary, row)):
            yield name if n == 0 else f"{name}:{n}", at, what, data


def _events(kind: str, summary: str, row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One line as what this log has for it; a fix closes its issue there too."""
    issue = f"projectmem-{text_of(row, 'issue_id') or text_of(row, 'id') or 'none'}"[:200]
    files = [file[:4096] for file in row.get("files") or () if isinstance(file, str)][:PATHS_MAX]
    more = [text_of(row, "notes"), f"at {text_of(row, 'location')}" if text_of(row, "location") else ""]
    text = ". ".join([summary, *filter(None, more)])[:TEXT_MAX]
    if kind == "issue":
        yield "issue.opened", {"issue": issue, "title": summary[:TITLE_MAX], "paths": files or _place(row)}
    elif kind == "hypothesis":
        yield "hypothesis.noted", {"issue": issue, "text": text}
    elif kind == "attempt":
        yield "attempt.recorded", {"issue": issue, "text": text, "outcome": text_of(row, "outcome") or "unknown", "verifier": ""}
    elif kind == "fix":
        yield "fix.recorded", {"issue": issue, "text": text, "verifier": ""}
        yield "issue.closed", {"issue": issue, "resolution": text}
    elif kind == "decision":
        yield "decision.recorded", {"title": summary[:TITLE_MAX], "text": text, "supersedes": ""}
    else:
        yield "note.recorded", {"text": text, "tags": files}


def _place(row: Mapping[str, Any]) -> list[str]:
    """The file of `file`, `file:line` or `file:line:column`."""
    where = text_of(row, "location").strip()
    while where.rpartition(":")[2].isdigit():
        where = where.rpartition(":")[0]
    return [where[:4096]] if "/" in where or "." in where else []
