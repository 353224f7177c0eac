"""What simpler gates would say to the same calls: the rows beside ours in the score table.

never                    silent
last try failed          speaks wherever the same action failed in its last try: the rule by which the moments were found
clear on any change      the same, but only where nothing at all changed since
exact repeat             the whole input is byte for byte that of a call that failed in its last try in this repository
file-level, 30 days      the call names a file that a call which failed within 30 days named
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from projectmem_gate.identify import identify

NOT_A_FAILURE = {"rejected", "denied", "hook", "interrupted", "cancelled"}
ALONE = ("mini-gemini3", "swe-agent-demos")  # each trajectory is a repository of its own
MONTH = 30 * 86_400
Key = tuple[str, int]


def steps(folder: Path) -> Iterator[dict[str, Any]]:
    """Every call, repository by repository, as it happened."""
    for path in sorted(folder.glob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        if rows[0]["source"] not in ALONE:
            rows.sort(key=lambda s: (s["ts"] or "", s["traj_id"], s["step"]))
        yield from rows


def spoken(folder: Path, moments: Sequence[dict[str, Any]]) -> dict[str, set[Key]]:
    """{baseline: the calls it speaks before}."""
    tried = {(m["traj_id"], m["step"]) for m in moments}
    still = {(m["traj_id"], m["step"]) for m in moments if m["between"] == "no_mutation"}
    exact: set[Key] = set()
    named: set[Key] = set()
    last: dict[tuple[str, str], bool] = {}
    files: dict[tuple[str, str], float] = {}
    for step in steps(folder):
        key = (step["traj_id"], step["step"])
        where = step["traj_id"] if step["source"] in ALONE else step["source"]
        failed = bool(step["is_error"]) and step["error_kind"] not in NOT_A_FAILURE
        same = (where, f"{step['tool']} {step['input_sha']}")
        if last.get(same):
            exact.add(key)
        last[same] = failed
        at = _seconds(step["ts"])
        paths = {p for part in _parts(step) for p in part.paths if p not in (".", "")}
        if any(at - files.get((where, path), -1e18) <= MONTH for path in paths):
            named.add(key)
        if failed:
            files.update(dict.fromkeys(((where, path) for path in paths), at))
    return {
        "never": set(),
        "last try failed": tried,
        "clear on any change": still,
        "exact repeat": exact,
        "file-level, 30 days": named,
    }


def _seconds(text: str | None) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else 0.0


def _parts(step: dict[str, Any]) -> Sequence[Any]:
    given = step["input"]
    try:
        given = json.loads(given) if isinstance(given, str) and given[:1] == "{" else given
    except ValueError:
        pass
    cwd = step["cwd"] or "/work"
    return identify(step["tool"], given, root=cwd, cwd=cwd, input_sha=step["input_sha"] or "").parts
