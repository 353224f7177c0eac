"""Waits for the clock by which files are dated: times are cut to a tick of the kernel's, on some disks to a second or two."""

from __future__ import annotations

import time
from pathlib import Path

from tests.patience import PATIENCE


def tick(beside: Path) -> None:
    """Until whatever is written from now on, on the disk that holds `beside`, is dated after all that was done so far."""
    probe, done, until = beside.with_name(f"{beside.name}.tick"), time.time_ns(), time.monotonic() + PATIENCE
    while True:
        probe.write_bytes(b"")
        if probe.stat().st_mtime_ns > done:
            break
        assert time.monotonic() < until, "the clock of the file system is behind that of the system"
        time.sleep(0.001)
    probe.unlink()
