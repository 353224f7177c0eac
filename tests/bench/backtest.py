"""The gate on real transcripts, scored: `python -m tests.bench.backtest [--write]`. Needs the shared data (PROJECTMEM_SHARED).

As labelled, then with the labels of labels.json corrected (its reasons are beside them): failures that an output filter
hid count as failures, pairs that are not the same action are left out, and two moments count as changed. Beside it what
simpler gates would say (baselines.py), then each source alone and all others without it, with 95 % Wilson intervals. The
corrections were drawn up with the gate's answers in view, so the first column is the one to believe and the second says how
much of its gap lies in the labels. `--write` puts the first table into gate/README.md and the others into gate/EVIDENCE.md.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from projectmem.backtest.run import run_backtest
from tests.bench import asking, baselines

REPO = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("PROJECTMEM_SHARED", REPO.parent / "shared")) / "eval"
LABELS = Path(__file__).with_name("labels.json")
PAGE = REPO / "gate" / "README.md"
DETAILS = REPO / "gate" / "EVIDENCE.md"
BEGIN, END = "<!-- score: written by `python -m tests.bench.backtest --write` -->", "<!-- score: end -->"
DETAILS_BEGIN, DETAILS_END = BEGIN.replace("score", "score details", 1), END.replace("score", "score details", 1)
FIGURES = {
    "nothing_changed_recall": "nothing changed: recall",
    "nothing_changed_precision": "precision",
    "after_change_recall": "after a change: recall",
    "after_change_precision": "precision",
    "false_alarms_in_fix_and_retest": "false alarms in fix-and-retest",
}
FLOORS = (400, 800, 850, 900, 930, 960)  # per mille: the shipped `floor.warn` and higher ones
Key = tuple[str, int]
Moments = Sequence[dict[str, Any]]


def main() -> Iterator[str]:
    """The tables, a line at a time."""
    if not (SHARED / "score.py").is_file():
        yield f"no shared data at {SHARED} (set PROJECTMEM_SHARED)"
        return
    with tempfile.TemporaryDirectory() as folder:
        verdicts = Path(folder, "verdicts.jsonl")
        summary = run_backtest(sorted((SHARED / "steps").glob("*.gz")), "steps", verdicts=verdicts)
        rows = [json.loads(line) for line in verdicts.read_text().splitlines()]
        score = _score(SHARED / "opportunities.jsonl.gz", verdicts)
    ours = {(r["traj_id"], r["step"]) for r in rows if r["verdict"] != "allow"}
    labelled = _moments()
    corrected = _corrected(labelled)
    if {k: v and v[0] for k, v in score["headline"].items() if k in FIGURES} != {
        k: v and round(v[0], 4) for k, v in figures(labelled, ours).items()
    }:
        raise AssertionError("these tables and score.py disagree")
    yield f"{summary.calls:,} calls of six sources, {len(labelled)} labelled moments. A figure: the value, its 95 % interval."
    yield ""
    yield from _overview(labelled, corrected, ours)
    yield ""
    yield from _by_source(corrected, ours)
    yield ""
    yield from _curve(labelled, corrected, {(r["traj_id"], r["step"]): r["odds"] for r in rows if r["verdict"] != "allow"})
    yield ""
    yield from _asking(corrected)
    yield ""
    yield from _notes(score, summary.spoken)


def _overview(labelled: Moments, corrected: Moments, ours: set[Key]) -> Iterator[str]:
    failed = _failed_steps()
    others = baselines.spoken(SHARED / "steps", labelled)
    moments = {(m["traj_id"], m["step"]) for m in labelled}
    yield "| gate | " + " | ".join(FIGURES.values()) + " | before a success elsewhere, per 1,000 calls |"
    yield "|---" * (len(FIGURES) + 2) + "|"
    for name, spoken, rows in [
        ("**this one, as labelled**", ours, labelled),
        ("this one, labels corrected", ours, corrected),
        *[(name, spoken, labelled) for name, spoken in others.items()],
    ]:
        elsewhere = sum(not failed[key] for key in spoken - moments if key in failed)
        yield f"| {name} | {_cells(figures(rows, spoken))} | {1000 * elsewhere / len(failed):.2f} |"


def _by_source(corrected: Moments, ours: set[Key]) -> Iterator[str]:
    yield "Labels corrected, each source alone, and all the others without it:"
    yield ""
    yield "| source | " + " | ".join(FIGURES.values()) + " |"
    yield "|---" * (len(FIGURES) + 1) + "|"
    for source in sorted({m["source"] for m in corrected}):
        yield f"| {source} | {_cells(figures([m for m in corrected if m['source'] == source], ours))} |"
        yield f"| *without it* | {_cells(figures([m for m in corrected if m['source'] != source], ours))} |"


def _curve(labelled: Moments, corrected: Moments, odds: dict[Key, int]) -> Iterator[str]:
    """Recall and precision where it speaks only from a higher chance; each call's chance is that of the shipped run."""
    yield "The curve after a change, if `floor.warn` were higher than the shipped 400:"
    yield ""
    yield "| spoken of from | calls | recall, as labelled | precision | recall, labels corrected | precision |"
    yield "|---|---|---|---|---|---|"
    for floor in FLOORS:
        spoken = {key for key, chance in odds.items() if not 0 <= chance < floor}
        cells = []
        for moments in (labelled, corrected):
            found = figures(moments, spoken)
            cells += [found["after_change_recall"], found["after_change_precision"]]
        name = f"**{floor / 10:.0f} %, shipped**" if floor == FLOORS[0] else f"{floor / 10:.0f} %"
        yield f"| {name} | {len(spoken)} | {_cells(dict(enumerate(cells)))} |"
    yield ""
    yield "A higher floor loses recall and wins nothing: what could have mended a failure is sorted out before the chance counts."
    yield "The other end of the curve is to speak whatever was changed: *exact repeat* and *last try failed* in the first table,"
    yield "wrong two times in three. Who is misled so often stops listening; the shipped point is the one that is right."


def _asking(corrected: Moments) -> Iterator[str]:
    """When it would ask, for durations that are assumed."""
    failed = _failed_steps()
    by_label = {(m["traj_id"], m["step"]): m["label"] == "fails" for m in corrected}
    yield "`ask` goes by expected cost, and the transcripts tell no durations. Assumed (`tests/bench/asking.py`):"
    yield ""
    yield "| each call takes | asked | right by the harness's mark | right by the corrected labels | right by the output |"
    yield "|---|---|---|---|---|"
    for assumed, asked, became in asking.rows(sorted((SHARED / "steps").glob("*.gz"))):
        name = {"estimated": "what the times of the calls leave for it"}.get(assumed, f"{assumed} s")
        known = [by_label[key] for key in asked if key in by_label]
        shares = (wilson(sum(failed[k] for k in asked), len(asked)), wilson(sum(known), len(known)))
        cells = [*shares, wilson(became["failed"], became.total())]
        yield f"| {name} | {len(asked)} | {_cells(dict(zip('abc', cells, strict=True)))} |"


def _notes(score: dict[str, Any], spoken: Counter[tuple[str, str]]) -> Iterator[str]:
    said = ", ".join(
        f"{n} {verdict} before what {_ENDS.get(outcome, outcome)}" for (verdict, outcome), n in sorted(spoken.items())
    )
    yield f"By what the output shows: {said}. Asks and denials by the harness's own mark: {score['strong_verdicts'] or 'none'}."
    yield ""
    yield "Labels found wrong, and why:"
    yield ""
    for name, group in json.loads(LABELS.read_text()).items():
        yield f"- *{name}* ({len(group['ids'])}): {group['why']}: {' '.join(group['ids'])}"


_ENDS = {"ok": "went well", "failed": "failed", "cancelled": "was cancelled"}


def figures(moments: Moments, spoken: set[Key]) -> dict[str, tuple[float, float, float] | None]:
    """The headline of score.py for any moments and any set of calls that were spoken before."""
    count: Counter[tuple[str, str, bool]] = Counter()
    for m in moments:
        change = {"no_mutation": "same", "edit_between": "edit"}.get(m["between"], "other")
        if change == "edit" and m["scope"] != "session":
            change = "other"
        count[change, m["label"], (m["traj_id"], m["step"]) in spoken] += 1

    def of(changes: Iterable[str], label: str, said: bool) -> int:
        return sum(count[c, label, said] for c in changes)

    same, changed, loop = ("same",), ("edit", "other"), ("edit",)
    out: dict[str, tuple[float, float, float] | None] = {}
    for name, group in (("nothing_changed", same), ("after_change", changed)):
        hit = of(group, "fails", True)
        out[f"{name}_recall"] = wilson(hit, hit + of(group, "fails", False))
        out[f"{name}_precision"] = wilson(hit, hit + of(group, "succeeds", True))
    total = sum(of(loop, label, said) for label in ("fails", "succeeds") for said in (True, False))
    out["false_alarms_in_fix_and_retest"] = wilson(of(loop, "succeeds", True), total)
    return out


def wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float, float] | None:
    """(share, low, high): Wilson's score interval; None of nothing."""
    if not n:
        return None
    p, d = k / n, 1 + z * z / n
    centre, half = (p + z * z / (2 * n)) / d, z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5 / d
    return p, max(0.0, centre - half), min(1.0, centre + half)


def _cells(found: Mapping[Any, tuple[float, float, float] | None]) -> str:
    return " | ".join("-" if v is None else f"{v[0]:.3f} ({v[1]:.2f}-{v[2]:.2f})" for v in found.values())


def _failed_steps() -> dict[Key, bool]:
    """Every call, and whether its harness marked it as failed."""
    return {
        (s["traj_id"], s["step"]): bool(s["is_error"]) and s["error_kind"] not in baselines.NOT_A_FAILURE
        for s in baselines.steps(SHARED / "steps")
    }


def _moments() -> list[dict[str, Any]]:
    with gzip.open(SHARED / "opportunities.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _corrected(moments: Moments) -> list[dict[str, Any]]:
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


def write(lines: Sequence[str], page: Path = PAGE, begin: str = BEGIN, end: str = END) -> None:
    """Put the tables between the marks of the page. Raises ValueError where the marks are not there."""
    text = page.read_text(encoding="utf-8")
    head, tail = text.index(begin) + len(begin), text.index(end)
    page.write_text(text[:head] + "\n\n" + "\n".join(lines) + "\n\n" + text[tail:], encoding="utf-8")


if __name__ == "__main__":
    table = []
    for row in main():
        print(row)
        table.append(row)
    if "--write" in sys.argv[1:] and len(table) > 1:
        cut = next(i for i, row in enumerate(table) if row.startswith("Labels corrected, each source alone"))
        write(table[: cut - 1])
        write(table[cut:], DETAILS, DETAILS_BEGIN, DETAILS_END)
