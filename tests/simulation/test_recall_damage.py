"""A recall generation that rots on disk: no wrong text is served, the log answers, and the next generation is whole."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from projectmem_logs.reader import read_events
from projectmem_logs.store import init_home
from projectmem_projections import glance, recollection
from projectmem_projections.corpus import CorpusError
from projectmem_projections.scope import Scope

from projectmem.recall import Memory, recall
from tests.simulation.projection_drafts import NOW, event, write

TEXT = "The staging database listens on port 5433 behind the proxy"


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A log of a few notes, and a generation of it."""
    init_home(str(tmp_path), NOW)
    texts = [TEXT, "Deploys go out on Tuesdays", "Cookies must be enabled for the login page"]
    write(str(tmp_path), *(event("note.recorded", {"text": t, "tags": []}, n, origin="agent") for n, t in enumerate(texts)))
    recollection.refresh(str(tmp_path), None)
    return str(tmp_path)


def scope(home: str) -> Scope:
    return Scope(next(iter(read_events(home)))["scope"]["project"])


def harmed(home: str, what: str) -> None:
    """The generation with some of its content changed, and its structure left as it is."""
    path = os.path.join(glance.current(home) or "", "corpus.sqlite")
    with sqlite3.connect(path) as con:
        if what == "letter":
            con.execute("UPDATE doc SET body = replace(body, '5433', '5432')")
        elif what == "field":
            con.execute("UPDATE doc SET body = replace(body, 'remedy', 'remudy')")
        elif what == "document":
            con.execute("DELETE FROM doc")
        elif what == "postings":
            con.execute("UPDATE post SET rows = x'ffffff7f'")
        elif what == "table":
            con.execute("DROP TABLE post")
        elif what == "experience":
            con.execute("UPDATE meta SET value = '{\"recalls\": 1}' WHERE name = 'experience'")
    con.close()


@pytest.mark.parametrize("what", ["letter", "field", "document", "postings", "table", "experience"])
def test_rot_inside_a_generation_is_answered_from_the_log_and_mended(home: str, what: str) -> None:
    memory = Memory(home)
    asked = {"now": NOW + 1000, "nonce": "n", "scope": scope(home), "memory": memory}
    assert TEXT in recall(home, TEXT, **asked).block  # type: ignore[arg-type]
    memory.close()
    harmed(home, what)
    answer = recall(home, TEXT, **asked)  # type: ignore[arg-type]
    assert TEXT in answer.block and "damaged" in " ".join(answer.notes)
    again = recall(home, TEXT, **asked)  # type: ignore[arg-type]
    assert TEXT in again.block and again.notes == [] and glance.current(home)


def test_a_reader_without_a_second_try_says_so_once(home: str) -> None:
    """The hook's light way in: the next look reads the log."""
    harmed(home, "letter")
    for last in (False, True):
        look = glance.Glance(home, glance.current(home))
        try:
            if not last:
                with pytest.raises(CorpusError, match="ask again"):
                    look.newest(("note",), scope(home), NOW + 1000, 5)
            else:
                assert {d.text for d in look.newest(("note",), scope(home), NOW + 1000, 5)["note"]} >= {TEXT}
        finally:
            look.close()
