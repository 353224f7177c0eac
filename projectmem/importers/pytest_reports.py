"""Reads what pytest's report plugins write: `--report-log FILE` (JSON lines) and `--json-report`.

One report is one call: the test run, with its exit code and the tests that failed by name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.hook.payload import call_of, exited, text_of
from projectmem.importers.reading import Call, Counts, ended, json_lines, payload_of, whole_json

MAX_NAMED = 50  # failing tests whose names and messages are kept


def read_pytest(path: Path, counts: Counts, root: str, command: str) -> Iterator[Call]:
    """The one call of a report. A report without its end (a run that was killed) says nothing and is passed over."""
    run = _Run()
    if _is_lines(path):
        for line in json_lines(path, counts, b'"$report_type"'):
            run.line(line)
    else:
        data, _ = whole_json(path, counts)
        run.document(data)
    if run.code is None or not run.seen:
        if path.name not in {Path(name).name for name in counts.unread}:
            counts.bad(path, "no whole pytest report")
        return
    told = [f"FAILED {name} - {why}" for name, why in list(run.failed.items())[:MAX_NAMED]]
    told.append(f"{len(run.failed)} failed, {len(run.seen) - len(run.failed)} passed")
    id = f"pytest:{run.content.hexdigest()[:24]}"
    call = call_of(payload_of(f"pytest:{path.name}", root), "pytest", "Bash", {"command": command}, id)
    if run.took:
        call["duration_ms"] = int(run.took * 1000)
    yield ended(exited(call, run.code, "\n".join(told)), run.at or _written(path))


class _Run:
    """What a report says of the run."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.seen: set[str] = set()
        self.failed: dict[str, str] = {}
        self.at, self.took = 0, 0.0
        self.content = hashlib.sha256()

    def line(self, row: dict[str, Any]) -> None:
        kind = row.get("$report_type")
        self.content.update(repr(sorted((k, repr(v)) for k, v in row.items())).encode("utf-8", "surrogatepass"))
        if kind == "SessionFinish":
            self.code = row["exitstatus"] if type(row.get("exitstatus")) is int else None
        elif kind == "TestReport":
            self.test(text_of(row, "nodeid"), row.get("outcome") == "failed", row.get("longrepr"))
            stop = row.get("stop")
            self.at = max(self.at, int(stop * 1_000_000)) if isinstance(stop, float) and 0 < stop < 1e11 else self.at
            self.took += row["duration"] if isinstance(row.get("duration"), float) else 0.0
        elif kind == "CollectReport" and row.get("outcome") == "failed":
            self.test(text_of(row, "nodeid"), True, row.get("longrepr"))

    def document(self, data: dict[str, Any]) -> None:
        tests = data.get("tests")
        if not isinstance(tests, list):
            return
        self.content.update(repr(sorted((k, repr(v)) for k, v in data.items())).encode("utf-8", "surrogatepass"))
        self.code = data["exitcode"] if type(data.get("exitcode")) is int else None
        for row in tests:
            if isinstance(row, dict):
                stage: dict[str, Any] = next((row[name] for name in ("setup", "call", "teardown") if _failed(row.get(name))), {})
                crash = stage.get("crash")
                why = crash.get("message") if isinstance(crash, dict) else stage.get("longrepr")
                self.test(text_of(row, "nodeid"), row.get("outcome") in ("failed", "error"), why)
        created, took = data.get("created"), data.get("duration")
        self.took = took if isinstance(took, float) and 0 < took < 1e7 else 0.0
        self.at = int((created + self.took) * 1_000_000) if isinstance(created, float) and 0 < created < 1e11 else 0

    def test(self, name: str, failed: bool, why: Any) -> None:
        self.seen.add(name)
        if failed:
            self.failed.setdefault(name, _message(why))


def _failed(stage: Any) -> bool:
    return isinstance(stage, dict) and stage.get("outcome") in ("failed", "error")


def _message(why: Any) -> str:
    """The line that says what went wrong, of the forms that a report has it in."""
    if isinstance(why, dict):
        crash = why.get("reprcrash")
        why = crash.get("message") if isinstance(crash, dict) else why.get("longrepr")
    lines = why.strip().split("\n") if isinstance(why, str) else [""]
    return next((line[2:].strip() for line in lines if line.startswith("E ")), lines[0])[:400]


def _is_lines(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b'"$report_type"' in file.readline(1 << 16)
    except OSError:
        return False


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns // 1000
