"""Several rebuilds and readers at once, as processes: all of them end well, and what stands is what the log gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from projectmem_logs.store import init_home
from projectmem_projections import generations, glance, parity, published, rebuild, recollection

from tests.patience import PATIENCE
from tests.simulation.projection_drafts import NOW, action, event, write

REBUILD = "import sys; from projectmem_projections import rebuild; found = rebuild.rebuild(sys.argv[1]); print(found['events'])"
READ = """
import sys
from projectmem_projections import querying
print(querying.query(sys.argv[1], "SELECT count(*) FROM events", limit=1).rows[0][0])
"""


def test_builders_and_readers_at_once_all_end_well(tmp_path: Path) -> None:
    home = str(tmp_path)
    init_home(home, NOW)
    for n in range(20):
        calls = [action(m, ("ok", "failed")[m % 2], n * 20 + m) for m in range(20)]
        write(home, *calls, event("note.recorded", {"text": "n"}, n))
    started = [
        subprocess.Popen([sys.executable, "-c", program, home], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for program in (REBUILD, REBUILD, READ, REBUILD, READ)
    ]
    for process in started:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert out.strip() == "420"
    assert all(not one.differs for one in parity.compare(home))


def test_a_rebuild_leaves_alone_what_another_builder_is_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = str(tmp_path)
    init_home(home, NOW)
    write(home, event("note.recorded", {"text": "a note"}, 1))
    rebuild.rebuild(home)
    recollection.refresh(home, None)
    first, second = published.generations(glance.folder(home))
    os.mkdir(os.path.join(glance.folder(home), "gen-99999999"))
    monkeypatch.setattr(recollection, "refresh", lambda *_: ["another process is building the recall generation"])
    rebuild._rebuild_recall(home)
    assert published.generations(glance.folder(home)) == [second, "gen-99999999"]
    assert generations.size(home) > 0 and first < second
