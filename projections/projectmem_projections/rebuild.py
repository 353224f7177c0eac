"""Everything derived from the log, built again from the log alone. Nothing is deleted until the new one stands."""

from __future__ import annotations

import os
import shutil

from . import generations
from .errors import CountMismatch, ProjectionError
from .refold import rebuild_snapshot

__all__ = ["rebuild", "rebuild_snapshot"]

WAIT_MS = 60_000


def rebuild(home: str, notices: list[str] | None = None, damage: list[str] | None = None) -> dict[str, int]:
    """Rebuild the gate snapshot, the DuckDB summaries and the recall index, and remove older generations (they may hold what
    was erased). `notices` collects what recall had to leave out: it is served without vectors, or from the log, meanwhile;
    `damage` what of the log could not be read, or was an unfinished write: every byte of it was looked at.

    Returns counts that have been reconciled: {events, streams, open_failures, actions, failures, generation_bytes}.
    Raises CountMismatch when the two do not account for the same events, ProjectionError when another builder does not
    finish, OSError when files cannot be read or written. What was there before then stays in use.
    """
    cursor, read = rebuild_snapshot(home)
    if not generations.build(home, wait_ms=WAIT_MS):
        raise ProjectionError(f"another process has been building the summaries of {home} for a minute: try again")
    generations.purge_previous(home)
    said = _rebuild_recall(home)
    if notices is not None:
        notices += said
    with generations.open_current(home) as summaries:
        if damage is not None:
            damage += [row["detail"] for row in summaries.query("SELECT detail FROM integrity ORDER BY ALL")]
        # Only as far as the snapshot went: somebody may have appended in between.
        upto = summaries.cursor()
        missing = {s: n for s, n in cursor.items() if upto.get(s, 0) < n}
        counted = sum(
            row["n"]
            for stream, seq in cursor.items()
            for row in summaries.query("SELECT count(*) AS n FROM events WHERE stream = ? AND seq <= ?", [stream, seq])
        )
        if missing or counted != read:
            raise CountMismatch(
                f"the log gave {read} events to the snapshot and {counted} to the summaries: this is a fault, report it"
            )
        return {
            "events": read,
            "streams": len(cursor),
            "open_failures": summaries.query("SELECT count(*) AS n FROM failures WHERE open")[0]["n"],
            "failures": summaries.query("SELECT count(*) AS n FROM failures")[0]["n"],
            "actions": summaries.query("SELECT count(*) AS n FROM actions")[0]["n"],
            "generation_bytes": generations.size(home),
        }


def _rebuild_recall(home: str) -> list[str]:
    """Build the recall generation and remove every other one; returns what is to be said about it."""
    from . import minilm, published, recollection, vectors
    from .glance import folder

    try:
        said = recollection.refresh(home, None if vectors.available() else minilm.chosen(home)[0])
    except (OSError, ProjectionError) as error:
        return [f"the recall index was not rebuilt ({error})"]
    where = folder(home)
    used = os.path.basename(published.current(where) or "")
    for name in published.generations(where):
        if name < used:  # a later one is of somebody who builds it now
            shutil.rmtree(os.path.join(where, name), ignore_errors=True)
    return said
