"""Another process that holds a log's lock, for tests of what waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from projectmem_logs import files


@contextmanager
def locked(home: str | Path) -> Iterator[None]:
    """While somebody else writes to the one stream of the log in `home`."""
    (path,) = Path(home, "locks").glob("*[0-9a-f].lock")
    held = files.lock(str(path), 1000)
    assert held is not None
    try:
        yield
    finally:
        files.unlock(held)
