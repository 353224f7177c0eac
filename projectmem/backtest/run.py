"""`projectmem backtest`: read transcripts, replay them, write the verdicts, say what was found."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TextIO

from projectmem_gate.policy import DEFAULT, Policy

from projectmem.backtest.formats import read
from projectmem.backtest.model import Problems, Repository
from projectmem.backtest.runner import Spoke, Summary, replay
from projectmem.render import count


def run_backtest(
    paths: Sequence[Path],
    fmt: str,
    *,
    verdicts: Path | None = None,
    policy: Policy = DEFAULT,
    progress: TextIO | None = None,
) -> Summary:
    """Replay `paths` (format steps | cases | claude-code) and write one verdict a line to `verdicts`.

    Raises TranscriptError for an unknown format and OSError when `verdicts` cannot be written; errors inside
    transcripts are counted in the summary and do not stop the rest. Progress goes to `progress`, when given.
    """
    problems = Problems()
    return run_over(read(paths, fmt, problems), problems, verdicts=verdicts, policy=policy, progress=progress)


def run_over(
    repositories: Sequence[Repository],
    problems: Problems,
    *,
    verdicts: Path | None = None,
    policy: Policy = DEFAULT,
    progress: TextIO | None = None,
    spoke: Spoke | None = None,
) -> Summary:
    """Replay what was read; the summary has `problems` too. Raises OSError when `verdicts` cannot be written."""
    summary = Summary(problems=problems)
    lines = replay(repositories, policy=policy, summary=summary, progress=_progress(progress), spoke=spoke)
    if verdicts is None:
        for _ in lines:
            pass
    else:
        with verdicts.open("w", encoding="utf-8") as out:
            _write(lines, out)
    if progress is not None:
        progress.write("\n" if progress.isatty() else "")
    return summary


def _write(lines: object, out: IO[str]) -> None:
    for line in lines:  # type: ignore[attr-defined]
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def _progress(to: TextIO | None) -> Callable[[int, int], None]:
    """A line that is rewritten on a terminal, and one line every ten seconds elsewhere."""
    if to is None:
        return lambda done, total: None
    terminal, last, began = to.isatty(), time.monotonic(), time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= (0.2 if terminal else 10.0):
            last = now
            rate = done / max(now - began, 1e-9)
            to.write(
                f"{chr(13) if terminal else ''}{done:,} of {total:,} calls, {rate:,.0f} a second{'' if terminal else chr(10)}"
            )
            to.flush()

    return tell


def render(summary: Summary) -> str:
    """The summary as text: calls, outcomes, verdicts, rules, speed, problems."""
    rate = summary.calls / summary.seconds if summary.seconds else 0
    rows = [
        f"{count(summary.calls, 'call')} in {count(summary.repositories, 'repository', 'repositories')}, "
        f"{summary.judged:,} judged, "
        f"in {summary.seconds:.1f} s ({rate:,.0f} calls a second)",
        _row("outcomes", summary.outcomes),
        _row("failures by class", summary.classes),
        _row("verdicts", summary.verdicts),
        _row("rules", summary.rules),
        _row("spoken before", {f"{outcome or 'unknown'} ({verdict})": n for (verdict, outcome), n in summary.spoken.items()}),
    ]
    if summary.unparsed:
        rows.append(f"{count(summary.unparsed, 'call')} could not be parsed, matched verbatim")
    if summary.problems.count:
        rows.append(f"{count(summary.problems.count, 'problem')}:")
        rows += [f"  {message}" for message in summary.problems.messages]
        if summary.problems.count > len(summary.problems.messages):
            rows.append(f"  and {summary.problems.count - len(summary.problems.messages):,} more")
    return "\n".join(rows)


def _row(name: str, counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
    return f"{name + ':':20}" + (", ".join(f"{key} {n:,}" for key, n in ordered) or "none")
