"""What the hook asks of the snapshot costs the same however much the log holds, in instructions of SQLite's machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_projections.snapshot import Snapshot

FEW, MANY = 100, 4000


def word(n: int) -> str:
    return "".join(chr(97 + n // 26**i % 26) for i in range(5))


def event(n: int, seq: int, outcome: str = "failed") -> dict[str, Any]:
    """Every key has the same first two words, as the commands of one project do."""
    key = f"{n:032x}"
    part = {"key": key, "family": "npm", "text": key, "words": ["install", "project", word(n)], "effects": [["edit", f"{n}.py"]]}
    data = {"call": f"c{seq}", "key": key, "parts": [part], "failed_key": key, "outcome": outcome, "turn": seq}
    actor = {"session": "s", "origin": "observed"}
    return {"id": f"e{seq}", "stream": "s1", "seq": seq, "at": seq, "kind": "action.finished", "actor": actor, "data": data}


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Snapshot, Snapshot]]:
    folder: Path = tmp_path_factory.mktemp("cost")
    both = []
    for count in (FEW, MANY):
        snapshot = Snapshot(str(folder / f"{count}"))
        snapshot.apply([event(n, n + 1) for n in range(count)])
        both.append(snapshot)
    yield both[0], both[1]
    for snapshot in both:
        snapshot.close()


def steps(snapshot: Snapshot, action: Callable[[Snapshot], Any]) -> int:
    """How many instructions of SQLite's machine the action takes."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    snapshot._db.set_progress_handler(tick, 1)
    try:
        action(snapshot)
    finally:
        snapshot._db.set_progress_handler(None, 0)
    return count


MISS = frozenset({"install", "project", "other", "words", "of", "a", "command"})
MANY_WORDS = frozenset({"install", "project", *(f"{word(n)}q" for n in range(200))})
ACTIONS: dict[str, Callable[[Snapshot], Any]] = {
    "hints, miss": lambda s: s.hints(MISS),
    "hints, hit": lambda s: s.hints(MISS | {word(7)}),
    "entries": lambda s: s.entries([f"{7:032x}", "none"]),
    "changes": lambda s: s.changes(0, 64, ["7.py"]),
    "ok_after": lambda s: s.ok_after("npm", 0),
    "seen": lambda s: s.seen("s", "c7"),
    "turn": lambda s: s.turn("s"),
    "stale": lambda s: s.stale({}),
    "apply": lambda s: s.apply([event(7, s.cursor()["s1"] + 1)]),
    "pending": lambda s: s.pending_put("s", "c", {}),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_cost_does_not_grow_with_the_log(snapshots: tuple[Snapshot, Snapshot], name: str) -> None:
    few, many = (steps(s, ACTIONS[name]) for s in snapshots)
    assert few > 0
    assert many <= 1.2 * few + 10


def test_an_input_of_many_words_costs_a_bounded_number_of_rows(snapshots: tuple[Snapshot, Snapshot]) -> None:
    """All of its first words match thousands of keys: past the bound the answer is a safe True."""
    assert steps(snapshots[1], lambda s: s.hints(MANY_WORDS)) < 20_000
