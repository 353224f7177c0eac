"""The gate on real transcripts, scored: `python -m tests.bench.backtest`. Needs the shared data (PROJECTMEM_SHARED).

As labelled, then with the labels of labels.json corrected (its reasons are beside them): failures that an output filter
hid count as failures, pairs that are not the same action are left out, and two moments count as changed. Then each source
alone, with the scorer's 95 % Wilson intervals. The corrections were drawn up with the gate's answers in view, so the first
column is the one to believe and the second says how much of its gap lies in the labels.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projectmem.backtest.run import run_backtest

REPO = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("PROJECTMEM_SHARED", REPO.parent / "shared")) / "eval"
LABELS = Path(__file__).with_name("labels.json")
HEADLINE = {
    "nothing_changed_recall": "nothing changed: recall",
    "nothing_changed_precision": "nothing changed: precision",
    "after_change_recall": "after a change: recall",
    "after_change_precision": "after a change: precision",
    "false_alarms_in_fix_and_retest": "false alarms in fix-and-retest",
}


def main() -> Iterator[str]:
    """The score table, a line at a time."""
    if not (SHARED / "score.py").is_file():
        yield f"no shared data at {SHARED} (set PROJECTMEM_SHARED)"
        return
    with tempfile.TemporaryDirectory() as folder:
        verdicts = Path(folder, "verdicts.jsonl")
        summary = run_backtest(sorted((SHARED / "steps").glob("*.gz")), "steps", verdicts=verdicts)
        yield f"{summary.calls:,} calls, {summary.calls / summary.seconds:,.0f} a second, {summary.problems.count} problems"
        labelled = _moments()
        corrected = Path(folder, "corrected.jsonl")
        corrected.write_text("".join(json.dumps(m) + "\n" for m in _corrected(labelled)))
        scores = [_score(SHARED / "opportunities.jsonl.gz", verdicts), _score(corrected, verdicts)]
        yield f"{'':34}{'as labelled':32}labels corrected"
        for field, name in HEADLINE.items():
            yield f"{name:34}" + "".join(f"{_figure(score['headline'][field]):32}" for score in scores).rstrip()
        outside = scores[0]["headline"]["spoken_outside_opportunities_per_1000_calls"]
        success, failure = outside["before_success"], outside["before_failure"]
        yield f"spoken elsewhere, per 1,000 calls: {success} before a success, {failure} before a failure"
        yield f"asks and denials, by the harness's own mark: {scores[0]['strong_verdicts']}"
        yield f"spoken before, by what the output shows: { {f'{o} ({v})': n for (v, o), n in sorted(summary.spoken.items())} }"
        yield from _sources(labelled, verdicts, Path(folder))


def _sources(moments: list[dict[str, Any]], verdicts: Path, folder: Path) -> Iterator[str]:
    """Each source alone: a number that was chosen must not rest on one of them."""
    for source in sorted({m["source"] for m in moments}):
        own = folder / "own.jsonl"
        own.write_text("".join(json.dumps(m) + "\n" for m in _corrected(moments) if m["source"] == source))
        head = _score(own, verdicts)["headline"]
        yield f"{source} (corrected): " + "; ".join(f"{name} {_figure(head[field])}" for field, name in HEADLINE.items())


def _moments() -> list[dict[str, Any]]:
    with gzip.open(SHARED / "opportunities.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _corrected(moments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups = {name: set(group["ids"]) for name, group in json.loads(LABELS.read_text()).items()}
    out = []
    for moment in moments:
        id = moment["id"]
        if id in groups["another action"] or id in groups["redacted"]:
            continue
        fails = {"label": "fails"} if id in groups["fails"] else {}
        changed = {"between": "shell_change_between"} if id in groups["something changed"] else {}
        out.append({**moment, **fails, **changed})
    return out


def _score(opportunities: Path, verdicts: Path) -> dict[str, Any]:
    command = [sys.executable, str(SHARED / "score.py"), "--json", "--steps", str(SHARED / "steps")]
    command += ["--opportunities", str(opportunities), "--verdicts", str(verdicts)]
    scored: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return scored


def _figure(value: list[float] | None) -> str:
    return "-" if value is None else f"{value[0]:.3f} ({value[1]:.2f} to {value[2]:.2f})"


if __name__ == "__main__":
    for row in main():
        print(row)
