"""Which labels and decisions' clauses stand: only a person ends what a person set."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_projections.fold import fold_event
from projectmem_projections.memory import MemoryState

CLAUSE = {"label": "rule", "target": "command", "pattern": "npm", "effect": "ask", "reason": "pnpm", "decision": "d1"}


def event(seq: int, kind: str, data: dict[str, Any], origin: str = "human") -> dict[str, Any]:
    """One event of the only stream."""
    return {"id": f"e{seq}", "stream": "s", "seq": seq, "at": seq, "kind": kind, "actor": {"origin": origin}, "data": data}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("label.cleared", {"label_event": "e1", "reason": ""}),
        ("decision.recorded", {"title": "yarn", "text": "", "supersedes": "d1"}),
    ],
)
@pytest.mark.parametrize(("by", "ends", "stands"), [("human", "human", 0), ("human", "agent", 1), ("agent", "agent", 0)])
def test_a_clause_ends_with_a_clearing_or_with_its_decision(
    kind: str, data: dict[str, Any], by: str, ends: str, stands: int
) -> None:
    """Whichever comes first, and an agent's word ends no person's rule."""
    made, ended = event(1, "label.set", CLAUSE, by), event(2, kind, data, ends)
    for order in ([made, ended], [ended | {"seq": 1}, made | {"seq": 2}]):
        state = MemoryState()
        state.apply(order)
        assert len(state.labels()) == stands


@pytest.mark.parametrize(("replay", "hits"), [(None, -1), ({}, -1), ({"ok": "3"}, -1), ({"ok": 3}, 3), ([], -1)])
def test_what_the_past_said_is_read_strictly(replay: object, hits: int) -> None:
    """Anything but a count is: not tried."""
    ((_, _, label),) = fold_event(event(1, "label.set", CLAUSE | {"replay": replay}))
    assert (label["hits"], label["instead"], label["decision"]) == (hits, "", "d1")
