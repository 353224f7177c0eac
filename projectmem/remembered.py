"""What the gate's snapshot still knows of a log that the log itself no longer shows: an end that was cut, or rewritten."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection
from contextlib import closing


def lost(home: str, damaged: Collection[str] = ()) -> list[str]:
    """Where a stream ends before the record that the snapshot folded last, or has another in its place, in words; the streams
    in `damaged` are left out, as what is wrong with them is known. Never raises for a snapshot that cannot be read."""
    from projectmem_logs.store import heads

    seen = _cursor(os.path.join(home, "projections", "gate.sqlite"))  # first: the log only grows
    found = heads(home)
    out = []
    for stream, seq, hash in seen:
        now, its = found.get(stream, (0, ""))
        if stream in damaged or not seq:
            continue
        if now < seq:
            why = "its end was cut, or an older log restored"
            out.append(f"stream {stream} ends at record {now:,}, and the gate has seen {seq:,}: {why}")
        elif now == seq and hash and its != hash:
            out.append(f"record {seq:,} of stream {stream} is another than the gate has seen: the stream was rewritten")
    return out


WHAT_TO_DO = "restore the log from a backup, or compare it with a checkpoint; to go on with it as it is, `projectmem rebuild`"


def _cursor(path: str) -> list[tuple[str, int, str]]:
    if not os.path.isfile(path):
        return []
    try:
        with closing(sqlite3.connect(path, timeout=1.0)) as db:
            rows = db.execute("SELECT stream, seq, hash FROM cursor ORDER BY stream").fetchall()
    except sqlite3.Error:  # doctor's look at the snapshot says what is wrong with it
        return []
    return [(str(stream), int(seq), str(hash or "")) for stream, seq, hash in rows]
