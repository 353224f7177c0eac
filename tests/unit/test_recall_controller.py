"""What is done with what was found: the fixed policy, structural compatibility, the learned overlay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_logs.store import LogStore, init_home, project_id
from projectmem_projections.documents import Document
from projectmem_projections.glance import Candidate
from projectmem_projections.scope import Scope

from projectmem import controller, recall
from projectmem.controller import (
    ABSTAIN,
    ACTIONS,
    ASK,
    HIGH_PRECISION,
    HIGH_RECALL,
    INJECT_TOP,
    NO_MEMORY,
    SHOWING,
    SUMMARISE,
    fits,
)
from projectmem.ranking import Ranked
from projectmem.recall_light import lexical

NOW = 1_800_000_000_000_000
UNIT = controller.UNIT
DIMENSIONS = ("languages", "frameworks", "tools", "platforms")


def one(id: str = "a", margin: int = 2_000, **more: Any) -> Ranked:
    near = {name: more.pop(name) for name in (*DIMENSIONS, "other_cause") if name in more}
    made = Ranked(Candidate(Document(id, "note", f"text {id}", NOW, Scope("p")), None, 8_000, 0, 0, near), margin, 0)
    made.age = UNIT
    for name, value in more.items():
        setattr(made, name, value)
    return made


def decide(above: list[Ranked], below: list[Ranked] | None = None, **more: Any) -> controller.Decision:
    return controller.decide(above, below or [], **{"tokens": 50, "budget": 200, **more})


@pytest.mark.parametrize(
    ("above", "more", "action", "shown"),
    [
        ([], {}, NO_MEMORY, 0),
        ([], {"below": [one()]}, ABSTAIN, 0),
        ([one()], {}, INJECT_TOP, 1),
        ([one(languages=-UNIT)], {}, ABSTAIN, 0),
        ([one(languages=-UNIT), one("b")], {}, INJECT_TOP, 1),
        ([one(margin=100, platforms=-UNIT)], {}, ABSTAIN, 0),
        ([one(margin=3_000, platforms=-UNIT)], {}, INJECT_TOP, 1),
        ([one()], {"tokens": 500}, SUMMARISE, 1),
        ([one(margin=200, tools=-UNIT)], {}, ABSTAIN, 0),
        ([one(margin=200, tools=-UNIT), one("b", margin=1_500)], {}, HIGH_PRECISION, 1),
        ([one(str(i), margin=2_000 - i) for i in range(5)], {}, HIGH_RECALL, 5),
        ([one(utility=-5_000, visits=2)], {}, ASK, 1),
        ([one(utility=-5_000, visits=2)], {"asked": True}, ABSTAIN, 0),
        ([one(utility=-5_000, visits=2, contradicted=1)], {}, ABSTAIN, 0),
    ],
)
def test_the_fixed_policy(above: list[Ranked], more: dict[str, Any], action: str, shown: int) -> None:
    made = decide(above, **more)
    assert (made.action, len(made.items)) == (action, shown), made.why
    assert made.why


ranked = st.builds(
    one,
    st.sampled_from("abcdef"),
    margin=st.integers(0, 6_000),
    languages=st.sampled_from([-UNIT, 0, UNIT]),
    tools=st.sampled_from([-UNIT, 0, UNIT]),
    platforms=st.sampled_from([-UNIT, 0, UNIT]),
    utility=st.integers(-UNIT, UNIT),
    visits=st.integers(0, 9),
    contradicted=st.integers(0, 5),
    confidence=st.integers(0, UNIT),
)


@given(st.lists(ranked, max_size=6), st.lists(ranked, max_size=3), st.integers(0, 900), st.booleans())
def test_decisions_are_total_deterministic_and_never_show_what_does_not_fit(
    above: list[Ranked], below: list[Ranked], tokens: int, asked: bool
) -> None:
    made = decide(above, below, tokens=tokens, asked=asked)
    again = decide(above, below, tokens=tokens, asked=asked)
    assert made == again
    assert made.action in ACTIONS
    assert all(item in above and controller.fits(item) for item in made.items)
    assert bool(made.items) == (made.action in SHOWING)
    assert not asked or made.action != ASK
    assert all(-UNIT <= getattr(made.features, name) <= UNIT for name in made.features.__slots__)
    assert len(made.features.__slots__) == 16


def test_another_error_of_the_command_in_question_is_never_shown_however_sure() -> None:
    assert controller.fits(one(margin=9_000)) and not controller.fits(one(margin=9_000, other_cause=UNIT))


def lessons(action: str, tries: int, reward: int, wrong: int = 0) -> dict[tuple[str, str], tuple[int, int, int]]:
    return {(decide([one()]).state, action): (tries, tries * reward, wrong)}


def test_the_overlay_needs_evidence_a_margin_and_no_false_positives() -> None:
    bad, good = lessons(INJECT_TOP, 3, -UNIT), lessons(ABSTAIN, 3, 2_000)
    assert decide([one()], learned={**bad, **good}).action == ABSTAIN
    assert decide([one()], learned={**bad, **good}).learned
    assert decide([one()], learned=good).action == INJECT_TOP
    assert decide([one()], learned={**lessons(INJECT_TOP, 2, -UNIT), **good}).action == INJECT_TOP
    assert decide([one()], learned={**bad, **lessons(ABSTAIN, 2, 2_000)}).action == INJECT_TOP
    assert decide([one()], learned={**lessons(INJECT_TOP, 3, 1_000), **good}).action == INJECT_TOP
    assert decide([one()], learned={**bad, **lessons(HIGH_PRECISION, 9, 6_000, wrong=2)}).action == INJECT_TOP
    assert decide([one()], learned={**bad, **lessons(HIGH_PRECISION, 9, 6_000, wrong=1)}).action == HIGH_PRECISION


def test_the_overlay_never_shows_what_the_fixed_policy_holds_back() -> None:
    clash = [one(languages=-UNIT)]
    state = decide(clash).state
    assert decide(clash, learned={(state, ABSTAIN): (9, -UNIT, 0), (state, INJECT_TOP): (9, 9 * UNIT, 0)}).action == ABSTAIN


NODE = "npm test failed (network): Error: connect ECONNREFUSED 127.0.0.1:5432 while connecting to the test database"
PYTHON = "pytest failed (network): connect ECONNREFUSED 127.0.0.1:5432 while connecting to the test database; run make db-up"
FAILING = "pytest failed: Error: connect ECONNREFUSED 127.0.0.1:5432 while connecting to the test database"


def note(text: str) -> dict[str, Any]:
    actor = {"session": "s", "agent": "", "harness": "h", "model": "m", "origin": "agent"}
    return {"kind": "note.recorded", "at": NOW, "actor": actor, "causes": [], "data": {"text": text, "tags": []}}


def test_a_node_episode_never_reaches_a_failing_pytest_run_and_the_python_one_does(tmp_path: Path) -> None:
    home = str(tmp_path / "log")
    init_home(home, NOW)
    LogStore(home).append([note(NODE)], now=NOW)
    scope = Scope(project_id(home))
    for ask in (
        lambda: recall.recall(home, FAILING, now=NOW, nonce="n"),
        lambda: lexical(home, FAILING, now=NOW, scope=scope, nonce="n"),
    ):
        first = ask()
        assert not fits((first.above or first.below)[0]), "structure alone holds it back, whatever the floor"
        assert first.abstained
        assert first.decision is not None
        assert first.decision.action == ABSTAIN
    LogStore(home).append([note(PYTHON)], now=NOW)
    for found in (
        recall.recall(home, FAILING, now=NOW, nonce="n"),
        lexical(home, FAILING, now=NOW, scope=scope, nonce="n"),
    ):
        assert [item.document.text for item in found.items] == [PYTHON]
