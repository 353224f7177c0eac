"""A recall generation that rots on disk: no wrong text is served, the log answers, and the next generation is whole."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from projectmem_logs.reader import read_events
from projectmem_logs.store import init_home
from projectmem_projections import calibrations, glance, lexical, lookups, recollection
from projectmem_projections import corpus as corpora
from projectmem_projections.corpus import CorpusError
from projectmem_projections.documents import Document
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
            con.execute("UPDATE doc SET body = CAST(replace(body, '5433', '5432') AS BLOB)")
        elif what == "field":
            con.execute("UPDATE doc SET body = CAST(replace(body, 'remedy', 'remudy') AS BLOB)")
        elif what == "document":
            con.execute("DELETE FROM doc")
        elif what == "swapped":
            con.execute("UPDATE doc SET (crc, body) = (SELECT o.crc, o.body FROM doc AS o WHERE o.row = (doc.row + 1) % 3)")
        elif what == "postings":
            con.execute("UPDATE post SET rows = x'ffffff7f'")
        elif what == "impacts":
            con.execute("UPDATE post SET impacts = zeroblob(length(impacts))")
        elif what == "token":
            con.execute("UPDATE post SET token = 'stagind' WHERE token = 'stag'")
        elif what == "index":
            con.execute("UPDATE bucket SET body = zeroblob(length(body))")
        elif what == "table":
            con.execute("DROP TABLE post")
        elif what == "experience":
            con.execute("UPDATE meta SET body = CAST('{\"recalls\": 1}' AS BLOB) WHERE n = 2")
        elif what == "expiry":
            con.execute("UPDATE meta SET body = zeroblob(length(body) - 1) || x'01' WHERE n = 4")
    con.close()


def test_a_generation_of_a_version_with_other_tables_is_called_that(home: str) -> None:
    path = os.path.join(glance.current(home) or "", "corpus.sqlite")
    with sqlite3.connect(path) as con:
        con.execute("DROP TABLE meta")
        con.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, body BLOB NOT NULL)")
    con.close()
    with pytest.raises(CorpusError, match="was written by another version"):
        corpora.Corpus(os.path.dirname(path))


WAYS = ["letter", "field", "document", "swapped", "postings", "impacts", "token", "index", "table", "experience", "expiry"]


@pytest.mark.parametrize("what", WAYS)
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


def test_what_shares_a_hash_is_not_taken_for_the_other(tmp_path: Path) -> None:
    """Two words of one CRC-32: as a key, an id and a token."""
    one, other = "plumless", "buckeroo"
    assert lookups.check(one) == lookups.check(other)
    where = Scope("p")
    corpora.write(
        str(tmp_path), [Document(name, "failure", name, at, where, key=name) for at, name in enumerate((one, other))], {}
    )
    corpus = corpora.Corpus(str(tmp_path))
    assert corpus.keyed(one) == [(0, "failure", 0)] and corpus.keyed(other) == [(1, "failure", 1)]
    assert corpus.derived([other]) == {1} and corpus.derived(["neither"]) == set()
    (token,) = lexical.query_tokens(one)
    (twin,) = lexical.query_tokens(other)
    assert set(corpus.postings([token, twin, "neither"])) == {token, twin}
    corpus.close()


def told(home: str) -> list[object]:
    """What the light way in finds for some questions, is newest, and which of it newer events took back."""

    def question(look: glance.Glance) -> list[object]:
        reader, now = scope(home), NOW + 1000
        asked = [look.candidates(text, reader, now) for text in (TEXT, "which days do deploys go out", "cookie login page")]
        newest = look.newest(("note", "failure"), reader, now, 5)
        return [
            *([(c.document.id, c.lexical, c.cover) for c in found] for found in asked),
            *([d.id for d in newest[t]] for t in newest),
        ]

    return glance.ask(home, question)


def test_no_flipped_bit_gives_another_answer(home: str) -> None:
    """Every 29th byte of the corpus, one bit each: what is found is what the whole generation, or the log alone, would find."""
    first = next(iter(read_events(home)))["id"]
    control = {"record": first, "key": "", "until": 0, "reason": "", "by_event": ""}
    write(home, event("record.disputed", control, 7, origin="human"))
    folder = glance.folder(home)
    path, pointer = Path(glance.current(home) or "") / "corpus.sqlite", Path(folder) / "CURRENT"
    whole, named = path.read_bytes(), pointer.read_bytes()
    sound = told(home)
    pointer.unlink()
    alone, seen = told(home), {"sound": 0, "log": 0}
    for at in range(0, len(whole), 29):
        body = bytearray(whole)
        body[at] ^= 1 << at % 8
        path.unlink()
        path.write_bytes(body)
        pointer.write_bytes(named)
        found = told(home)
        assert found in (sound, alone), f"byte {at}"
        seen["sound" if pointer.exists() else "log"] += 1
    assert all(seen.values())


def test_scores_of_background_questions_that_rot_let_nothing_through(home: str) -> None:
    """They raise the floor of a large store: with a lower one something would be shown that answers nothing."""
    many = (
        event("note.recorded", {"text": f"number {n} of the shelf {n * 7}", "tags": []}, n % 5, origin="agent")
        for n in range(320)
    )
    write(home, *many)
    recollection.refresh(home, None)
    where = glance.current(home) or ""
    path = Path(where) / "background.json"
    kept = json.loads(path.read_text())
    assert calibrations.measured(where) == kept["scores"] != {}
    for harm in ({**kept, "scores": dict.fromkeys(kept["scores"], -9_000)}, {**kept, "crc": 1}, [], None):
        (Path(glance.folder(home)) / "CURRENT").write_text(os.path.basename(where) + "\n")
        path.write_text(json.dumps(harm)) if harm is not None else path.unlink()
        look = glance.Glance(home, glance.current(home))
        assert look.corpus is None and "as they were written" in look.notes[0] and look.calibration.background == {}
        assert glance.current(home) is None
        look.close()
    memory = Memory(home)
    assert TEXT in recall(home, TEXT, now=NOW + 1000, nonce="n", scope=scope(home), memory=memory).block
    assert glance.current(home), "built anew"
