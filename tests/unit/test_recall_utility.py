"""What experience does to a memory: rewards that the harness observed, learned values, and their place in the order."""

from __future__ import annotations

import random
from typing import Any

from projectmem_projections import calibrations
from projectmem_projections.documents import Document, Facts
from projectmem_projections.glance import Candidate
from projectmem_projections.scope import Scope
from projectmem_projections.utility import FALSE_POSITIVE, RECALLS_KEPT, RIGHT_ABSTENTION, UNIT, Experience, Utility

from projectmem import ranking, recall_policy
from projectmem.ranking import Asking, rank, zscores

AT = 1_800_000_000_000_000
MINUTE, HOUR = 60_000_000, 3_600_000_000


def event(kind: str, number: int, session: str = "s", /, at: int = 0, **data: Any) -> dict[str, Any]:
    actor = {"origin": "observed", "session": session}
    where = {"id": f"e{number}", "stream": "a", "seq": number, "at": at or AT + number * MINUTE}
    return {"kind": kind, **where, "scope": {"project": "p"}, "actor": actor, "causes": [], "data": data}


def recalled(number: int, *ids: str, session: str = "s", **more: Any) -> dict[str, Any]:
    return event("recall.decided", number, session, items=[{"id": i, "type": "note", "key": ""} for i in ids], **more)


def ran(number: int, outcome: str, key: str = "tests", verifier: str = "pytest", session: str = "s") -> dict[str, Any]:
    return event("action.finished", number, session, outcome=outcome, key=key, failed_key=key, verifier=verifier, parts=[])


def experience(*events: dict[str, Any]) -> Experience:
    facts = Facts()
    facts.apply(events)
    return facts.experience


def learned(*events: dict[str, Any]) -> dict[str, Utility]:
    return experience(*events).utilities()


def test_the_next_verifier_decides_and_only_what_was_shown_learns() -> None:
    good = learned(recalled(1, "a"), ran(2, "ok"), ran(3, "failed"))
    assert good == {"a": Utility(3_000, 1, 0, AT + MINUTE, 0)}
    assert learned(recalled(1, "a"), ran(2, "failed"))["a"].value == -1_500
    assert learned(recalled(1, "a"), ran(2, "ok", verifier="none")) == {}
    assert learned(recalled(1, "a"), ran(2, "ok", session="other")) == {}
    assert learned(ran(1, "ok"), recalled(2, "a")) == {}
    assert learned(recalled(1, "a"), ran(200, "ok")) == {}


def test_the_very_failure_happening_again_is_the_worst_and_a_failure_is_one_memory_whatever_its_event() -> None:
    item = {"id": "e1", "type": "failure", "key": "k"}
    again = learned(event("recall.decided", 2, items=[item]), ran(3, "failed", key="k", verifier="none"), ran(4, "ok"))
    assert again["k"].value == -3_000


def test_feedback_and_disputes_count_and_contradiction_is_counted_apart() -> None:
    told = learned(recalled(1, "a"), event("feedback.given", 2, target="a", useful=True, note=""))
    assert (told["a"].value, told["a"].contradicted) == (3_000, 0)
    disputed = learned(recalled(1, "a"), event("record.disputed", 2, record="a", key=""))
    assert (disputed["a"].value, disputed["a"].contradicted) == (-3_000, 1)


def test_values_follow_the_temporal_difference_rule_and_keep_their_variance() -> None:
    found = learned(recalled(1, "a"), ran(2, "ok"), recalled(3, "a"), ran(4, "failed"))["a"]
    assert found.value == 3_000 + 30 * (-5_000 - 3_000) // 100
    assert (found.visits, found.variance) == (2, (10_000 - -5_000) ** 2 // 4 // UNIT)


def test_every_interleaving_and_a_state_halfway_give_the_same_values() -> None:
    events = [recalled(1, "a", "b"), ran(2, "ok"), recalled(3, "b"), ran(4, "failed"), recalled(5, "a"), ran(6, "ok")]
    expected = learned(*events)
    shuffled = random.Random(3)
    for _ in range(20):
        mixed = [*shuffled.sample(events, len(events)), shuffled.choice(events)]
        assert learned(*mixed) == expected
        cut = shuffled.randrange(len(events))
        joined = Experience()
        joined.add_state(experience(*events[:cut]).to_state())
        joined.add(experience(*events[cut:]))
        assert joined.utilities() == expected


def test_the_state_is_bounded() -> None:
    many = experience(*(recalled(i, f"d{i}", session=f"s{i}") for i in range(1, RECALLS_KEPT + 50)))
    assert len(many.to_state()["recalls"]) == RECALLS_KEPT
    failures = [{"id": f"e{i}", "type": "failure", "key": f"k{i}"} for i in range(RECALLS_KEPT + 50)]
    many = experience(*(event("recall.decided", i, f"s{i}", items=[f]) for i, f in enumerate(failures, 1)))
    assert len(many.to_state()["names"]) == RECALLS_KEPT


def test_a_dispute_of_an_event_reaches_the_memory_that_it_was_shown_as() -> None:
    shown = event("recall.decided", 2, items=[{"id": "e1", "type": "failure", "key": "k"}])
    assert learned(shown, event("record.disputed", 3, record="e1", key="k"))["k"].value == -3_000


def test_a_session_knows_what_it_was_shown_since_it_started() -> None:
    start = event("recall.decided", 3, surface="start", items=[{"id": "p", "type": "decision", "key": ""}])
    found = experience(recalled(1, "a"), start, recalled(5, "b"))
    assert found.shown("s") == {"p", "b"}
    assert found.shown("t") == frozenset()
    assert found.instructed("s") and not found.instructed("t")
    assert "p" not in experience(start, ran(4, "ok")).utilities()


def test_decisions_carry_asymmetric_rewards() -> None:
    shown = {"controller": {"action": "inject_top", "state": "x"}}
    quiet = {"controller": {"action": "abstain", "state": "x"}}
    found = experience(recalled(1, "a", **shown), ran(2, "failed"), recalled(3, **quiet), ran(4, "ok")).decisions()
    assert found == [("x", "inject_top", FALSE_POSITIVE, True), ("x", "abstain", RIGHT_ABSTENTION, False)]


def candidate(id: str, similarity: int = 8_000, **more: Any) -> Candidate:
    fields = {"origin": "agent", **more}
    document = Document(id, fields.pop("type", "note"), f"text of {id}", fields.pop("at", AT), Scope("p"), **fields)
    features = dict.fromkeys(("lexical", "rarity", "cover", "length"), UNIT)
    return Candidate(document, None, similarity, UNIT, UNIT, features)


def order(candidates: list[Candidate], utilities: dict[str, Utility] | None = None, query: str = "q", now: int = AT) -> list[str]:
    calibration = calibrations.load("nowhere", None).calibration
    above, _ = rank(candidates, Asking(query, "prose", now, 10, "lexical", calibration, recall_policy.DEFAULT, utilities))
    return [r.document.id for r in above]


def test_a_distractor_that_misled_twice_sinks_below_an_equal_neighbour() -> None:
    pair = [candidate("a"), candidate("b")]
    assert order(pair) == ["a", "b"]
    misled = learned(recalled(1, "a"), ran(2, "failed"), recalled(3, "a"), ran(4, "failed"))
    assert order(pair, misled) == ["b", "a"]


def test_a_cold_start_is_plain_retrieval_and_ties_are_broken_by_id() -> None:
    some = [candidate(f"d{i}", 9_000 - i // 2) for i in range(6)]
    plain = order(some)
    assert plain == [f"d{i}" for i in range(6)]
    assert order(some, {"elsewhere": Utility(9_000, 3)}) == plain
    assert order(some[::-1]) == plain


def test_a_person_outranks_an_observation_outranks_an_agent_and_a_correction_outranks_all() -> None:
    kinds = {
        "c": {"origin": "human", "corrects": 1},
        "h": {"origin": "human"},
        "o": {"origin": "observed"},
        "a": {"origin": "agent"},
    }
    shares = {name: 100 * (name == "importance") for name in recall_policy.SHARES}
    calibration = calibrations.load("nowhere", None).calibration
    asking = Asking("q", "prose", AT, 10, "lexical", calibration, recall_policy.RecallPolicy(shares=shares))
    above, _ = rank([candidate(i, **more) for i, more in kinds.items()], asking)
    assert [r.document.id for r in above] == ["c", "h", "o", "a"]


def test_episodes_are_ranked_by_nearness_to_the_time_asked_about() -> None:
    day = 24 * HOUR
    episodes = [candidate("old", type="failure", key="1", at=AT - 10 * day), candidate("new", type="failure", key="2", at=AT)]
    assert order(episodes, query="what failed") == ["new", "old"]
    assert order(episodes, query="what failed 10 days ago") == ["old", "new"]


def test_use_refreshes_and_contradiction_weakens_at_once() -> None:
    day = 24 * HOUR
    stale = [candidate("a", type="failure", key="1", at=AT - 30 * day), candidate("b", type="failure", key="2", at=AT - 30 * day)]
    assert order(stale, {"2": Utility(0, 1, 0, AT)})[0] == "b"
    calibration = calibrations.load("nowhere", None).calibration
    asking = Asking("q", "prose", AT, 10, "lexical", calibration, utilities={"a": Utility(0, 1, 0, 0, 1)})
    above, _ = rank([candidate("a")], asking)
    assert above[0].confidence == ranking.ORIGINS["agent"] // 2


def test_zscores_are_of_mean_nought_and_flat_ones_vanish() -> None:
    assert zscores([1, 1, 1]) == [0, 0, 0]
    assert zscores([]) == []
    assert zscores([0, 10]) == [-UNIT, UNIT]
