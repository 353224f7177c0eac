"""A fresh repository with a log, for tests in process."""

from __future__ import annotations

import subprocess
from pathlib import Path

from projectmem_logs.home import init_home

from projectmem.place import Place, locate


def new_place(folder: Path, now: int) -> Place:
    """Make the folder a repository whose log begins at `now` (us)."""
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    found = locate(str(folder), {})
    assert found is not None
    init_home(found.home, now)
    return found
