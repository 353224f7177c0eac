"""SQLite's C module without what it imports: the same connection, and functools is itself afterwards."""

from __future__ import annotations

import subprocess

from projectmem.setup.command import interpreter, package_folders
from tests.patience import PATIENCE

PROGRAM = """
import sys
bare = set(sys.modules)
sys.path += {folders!r}
from projectmem_projections.sqlite import sqlite3
added = set(sys.modules) - bare
assert not added & {{"functools", "collections", "datetime", "types"}}, added
db = sqlite3.connect(":memory:", cached_statements=8)
db.execute("CREATE TABLE t (a)")
for n in range(40):  # more statements than are cached
    db.execute("INSERT INTO t VALUES (?)", (n,))
    assert db.execute(f"SELECT count(*) + {{n}} FROM t").fetchone() == (2 * n + 1,)
import functools
assert functools.lru_cache(maxsize=2)(abs)(-1) == 1 and functools.reduce
import sqlite3 as whole
assert whole.connect(":memory:").execute("SELECT 1").fetchone() == (1,)
"""


def test_the_c_module_works_without_functools() -> None:
    """In a bare interpreter: many statements, and the real functools and sqlite3 afterwards."""
    program = PROGRAM.format(folders=package_folders())
    done = subprocess.run(
        [interpreter(), "-I", "-S", "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
