"""The chance of failing again: shipped priors, this log's own tries, this key's own history."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_gate import odds
from projectmem_gate.history import Record
from projectmem_gate.model import CLASSES
from projectmem_projections.memory import MemoryState

from projectmem.hook.drafts import finished_draft
from projectmem.hook.judge import Unchanged as Same
from projectmem.hook.judge import asker, gather

NOW = 1_800_000_000_000_000
COUNTS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)).map(list), min_size=4, max_size=4)


def record(cls: str = "build", **rest: Any) -> Record:
    """A failure of a minute ago."""
    return Record("k" * 32, "id", NOW - 60_000_000, cls=cls, by=[("h", "", "")], session="s1", **rest)


def test_without_counts_the_prior_stands() -> None:
    """And malformed counts are none."""
    for retried in (None, {}, {"same": [[1]]}, {"same": "x"}, {"same": [[-1, 2], [0, 0], [0, 0], [0, 0]]}, {"changed": [[9, 0]]}):
        assert odds.logged("build", "same", 0, retried) == odds.prior("build", "same", 0)


def test_the_log_moves_the_chance_both_ways_and_slowly() -> None:
    """Two good retries do not overthrow a prior from thousands; forty do."""
    few = {"same": [[0, 2], [0, 0], [0, 0], [0, 0]]}
    many = {"same": [[0, 40], [0, 0], [0, 0], [0, 0]]}
    bad = {"same": [[40, 0], [0, 0], [0, 0], [0, 0]]}
    prior = odds.prior("build", "same", 0)
    assert prior > odds.logged("build", "same", 0, few) > 600
    assert odds.logged("build", "same", 0, many) < 100
    assert odds.logged("unknown", "same", 0, bad) > odds.prior("unknown", "same", 0)


@given(st.sampled_from(CLASSES), st.sampled_from(["same", "unknown", "changed"]), COUNTS, st.integers(0, 20), st.integers(0, 20))
def test_no_chance_rises_by_waiting(cls: str, state: str, counts: list[list[int]], a: int, b: int) -> None:
    """Whatever the log holds; and it stays between 0 and 1,000."""
    early, late = sorted((a, b))
    day = 86_400_000_000
    young, old = (odds.logged(cls, state, n * day // 2, {state: counts}) for n in (early, late))
    assert 0 <= old <= young <= 1000


def test_one_line_says_how_it_came_about() -> None:
    """For `explain`."""
    said = odds.line(record(), "same", NOW, identical=3, retried={"same": [[3, 1], [0, 0], [0, 0], [0, 0]]})
    assert said == (
        "93 % for build, nothing relevant changed, under half an hour old; 3 of 4 such tries in this log failed again;"
        " 3 identical failures in a row"
    )


def _finished(n: int, outcome: str, tried: dict[str, Any] | None, origin: str = "observed") -> dict[str, Any]:
    """A finished call as an event."""
    from projectmem_gate.identify import identify
    from projectmem_gate.model import Outcome

    action = identify("Bash", {"command": "make x"}, root="/r", cwd="/r")
    cls = "build" if outcome == "failed" else ""
    call = {"session": "s1", "call": f"c{n}", "tool": "Bash", "input": {"command": "make x"}}
    draft = finished_draft(call, action, Outcome(outcome, 1, cls, "boom"), {}, at=NOW + n, origin=origin, tried=tried)
    return {**draft, "id": f"e{n}", "stream": "a", "seq": n, "ts": NOW + n}


def test_the_log_counts_tries_that_the_gate_saw_and_nothing_else() -> None:
    """By class, asker, state and age; not imports, not refusals, not calls without a candidate; erased ones no longer."""
    seen = {"class": "build", "state": "same", "age": 1, "by": "self"}
    events = [
        _finished(1, "failed", seen),
        _finished(2, "ok", seen),
        _finished(3, "failed", seen | {"by": "other"}),
        _finished(4, "failed", None),
        _finished(5, "rejected", seen),
        _finished(6, "failed", seen, origin="import"),
        _finished(7, "ok", seen | {"age": 7}),
        _finished(8, "failed", seen),
    ]
    state = MemoryState()
    state.apply(events)
    assert state.retried("build", "self") == {"same": [[0, 0], [2, 1], [0, 0], [0, 0]]}
    assert state.retried("build", "other") == {"same": [[0, 0], [1, 0], [0, 0], [0, 0]]}
    assert state.retried("test", "self") == {}
    facts = gather(state, record(), Same(), "s1")
    assert facts["retried"] == {"same": [[0, 0], [2, 1], [0, 0], [0, 0]]}
    state.apply(
        [{"kind": "erasure.requested", "data": {"ids": ["e8"]}, "id": "x", "stream": "a", "seq": 9, "at": NOW, "ts": NOW}]
    )
    assert state.retried("build", "self") == {"same": [[0, 0], [1, 1], [0, 0], [0, 0]]}


@pytest.mark.parametrize(("session", "by"), [("s1", "self"), ("s2", "other"), ("", "other")])
def test_who_asks(session: str, by: str) -> None:
    """The session that failed, or another."""
    assert asker(record(), session) == by
