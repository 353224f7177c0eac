"""Recall with vectors over random histories: killed builders, damaged files, erasures; what is found is what the log has."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from projectmem_logs.reader import read_events
from projectmem_logs.store import init_home
from projectmem_projections import embed, glance, recollection
from projectmem_projections.corpus import CorpusError
from projectmem_projections.documents import Facts
from projectmem_projections.recollection import Recollection
from projectmem_projections.scope import Scope

from tests.simulation.projection_drafts import NOW, event, write
from tests.simulation.test_projections_parity import Crash, Disk

WORDS = "deploy login cookie cart cents staging database port cache worker queue token build lint docker proxy".split()


class Store:
    """A log of notes that grows at random, and two readers: one that stays open, and one for each question."""

    def __init__(self, home: str, disk: Disk, seed: int) -> None:
        self.home, self.disk, self.rng, self.clock = home, disk, random.Random(seed), 0
        init_home(home, NOW)
        self.append()
        self.scope = Scope(next(iter(read_events(home)))["scope"]["project"])
        self.open = Recollection(home, embed.default())

    def append(self) -> None:
        """A few notes, some of which expire."""
        for _ in range(self.rng.randint(1, 6)):
            self.clock += 1
            text = f"{' '.join(self.rng.sample(WORDS, 4))} number {self.clock}"
            data = {"text": text, "tags": [], "expires_at": self.rng.choice([0, 0, NOW + 10, NOW + 10**9])}
            write(self.home, event("note.recorded", data, self.clock % 5, origin="agent"))

    def end(self) -> None:
        """Somebody takes a note back, in one of three ways."""
        id = self.rng.choice([e["id"] for e in read_events(self.home) if e["kind"] == "note.recorded"])
        control = {"record": id, "key": "", "until": 0, "reason": "", "by_event": ""}
        erased = event("erasure.requested", {"selector": "", "ids": [id], "reason": ""}, 9, origin="human")
        what = self.rng.choice(["record.disputed", "record.superseded", "erased"])
        write(self.home, erased if what == "erased" else event(what, control, 9, origin="human"))

    def build(self) -> None:
        """A builder, which is killed at some call to the disk as often as not."""
        if self.rng.random() < 0.5:
            self.disk.left = self.rng.randint(0, 9)
        try:
            recollection.refresh(self.home, embed.default())
        except Crash:
            pass
        finally:
            self.disk.end_process()

    def damage(self) -> None:
        """A file of the generation in use is cut, turned over or lost."""
        where = Path(glance.current(self.home) or os.devnull)
        if where.is_dir():
            path = self.rng.choice(sorted(where.iterdir()))
            body = bytearray(path.read_bytes())
            for _ in range(self.rng.randint(1, 4)):
                if body:
                    body[self.rng.randrange(len(body))] ^= 1 << self.rng.randrange(8)
            harm = self.rng.choice(["flip", "cut", "gone"])
            path.unlink()  # a reader that has it open keeps what it has, as after a rename
            if harm != "gone":
                path.write_bytes(body if harm == "flip" else body[: len(body) // 2])

    def found(self, reader: Recollection, text: str) -> list[str]:
        """Texts of the candidates, as a caller gets them: what turns out damaged is asked again."""
        now = NOW + 1_000
        for last in (False, True):
            try:
                return [c.document.text for c in reader.search().candidates(text, self.scope, now)]
            except CorpusError:
                assert not last
                reader.close()
        raise AssertionError

    def agree(self) -> None:
        """Every live note is found first by its own words, and nothing is found that is not live."""
        facts = Facts()
        facts.apply(read_events(self.home))
        live = {d.text for d in facts.documents() if not 0 < d.expires_at <= NOW + 1_000}
        for reader in (self.open, self.fresh()):
            for text in self.rng.sample(sorted(live), min(3, len(live))):
                found = self.found(reader, text)
                assert found[0] == text and set(found) <= live
            gone = [e["data"]["text"] for e in read_events(self.home) if e["kind"] == "note.recorded"]
            gone = [text for text in gone if text not in live]
            for text in self.rng.sample(gone, min(2, len(gone))):
                assert set(self.found(reader, text)) <= live

    def fresh(self) -> Recollection:
        """As a command that has just been started."""
        for last in (False, True):
            try:
                return Recollection(self.home, embed.default())
            except CorpusError:
                assert not last
        raise AssertionError


@pytest.mark.parametrize("seed", range(4))
def test_recall_is_right_after_any_history(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss")
    store = Store(str(tmp_path), Disk(monkeypatch), seed)
    for _ in range(25):
        store.rng.choice([store.append, store.append, store.end, store.build, store.build, store.damage])()
        store.agree()
    store.build()
    recollection.refresh(store.home, embed.default())
    store.agree()
    whole = store.fresh()
    assert whole.notes == [] and whole.search().vectors is not None
