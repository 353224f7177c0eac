"""The gate's ten properties (gate/README.md), and agreement with the naive reference gate."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tests/ is no package: its shared modules lie beside it

import gate_samples as samples
import reference_gate as ref
from projectmem_gate import history
from projectmem_gate.decide import FUTURE_US, decide
from projectmem_gate.model import Action, Decision, Part
from projectmem_gate.policy import Policy, Rule

RANK = ref.RANK
MANY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def records(world: dict[str, Any], now: int) -> list[history.Record]:
    """The folded records of a world."""
    folded = (history.fold(k, es, now) for k, es in world["histories"].items())
    return [r for r in folded if r is not None]


def ask(world: dict[str, Any], now: int = samples.NOW, **changed: Any) -> Decision:
    """The gate's answer in a world, some of it changed."""
    w = world | changed
    found = w["records"] if "records" in w else records(w, now)
    return decide(w["action"], found, w["facts"], w["session"], w["policy"], now, labels=w.get("labels", ()), asks=w["asks"])


def as_bytes(decision: Decision) -> str:
    """The decision as the log keeps it."""
    return json.dumps(decision.to_data(), sort_keys=True)


@MANY
@given(samples.worlds())
def test_agrees_with_the_naive_reference(world: dict[str, Any]) -> None:
    """Verdict and determining record are those of a gate written without a thought for speed."""
    expected = ref.verdict(
        world["action"], world["histories"], world["facts"], world["session"], world["policy"], samples.NOW, world["asks"]
    )
    got = ask(world)
    assert (got.verdict, got.record) == expected


@MANY
@given(samples.worlds())
def test_1_deterministic(world: dict[str, Any]) -> None:
    """Equal inputs give equal bytes."""
    assert as_bytes(ask(world)) == as_bytes(ask(world))


@MANY
@given(samples.worlds(), st.randoms(use_true_random=False))
def test_2_independent_of_order_and_repetition(world: dict[str, Any], rng: random.Random) -> None:
    """Records, facts, asks and entries may come in any order, and twice."""
    shuffled = [r for r in records(world, samples.NOW) for _ in range(2)]
    rng.shuffle(shuffled)
    asks = world["asks"] * 2
    rng.shuffle(asks)
    facts = dict(rng.sample(sorted(world["facts"].items()), len(world["facts"])))
    assert as_bytes(ask(world)) == as_bytes(ask(world, records=shuffled, asks=asks, facts=facts))


@MANY
@given(samples.worlds())
def test_3_no_live_matching_record_no_objection(world: dict[str, Any]) -> None:
    """An objection names an open record of one of the action's own keys."""
    got = ask(world)
    live = {r.id for r in records(world, samples.NOW) if r.state == "open" and r.key in world["action"].keys}
    assert got.verdict == "allow" or got.record in live
    assert set(got.records) <= live
    assert ask(world, records=[]).verdict == "allow"


@MANY
@given(samples.worlds())
def test_4_deny_needs_exact_identical_unchanged(world: dict[str, Any]) -> None:
    """Without a person's rule, deny means: enforce, the very action, facts all same, and the policy's count."""
    got = ask(world)
    if got.verdict == "deny":
        record = next(r for r in records(world, samples.NOW) if r.id == got.record and r.key == world["action"].key)
        assert world["policy"].mode == "enforce"
        assert record.identical >= world["policy"].deny_after
        assert record.origin == "observed"
        assert "unknown" not in [world["facts"][record.id][k] for k in ("head", "deps", "files")] or record.cls in ref.NEEDS


@MANY
@given(samples.worlds(), st.sampled_from([1, 599, 600, 1800, 86_400, 604_800, 10**8]))
def test_5_nothing_rises_with_time_alone(world: dict[str, Any], later_s: int) -> None:
    """With nothing new, neither the chance nor the severity rises.

    A snooze that ends, an ask that was passed and a clock that was behind are news.
    """
    later = samples.NOW + later_s * ref.S
    world = world | {"asks": []}
    assume(not any(e["t"] == "snooze" for es in world["histories"].values() for e in es))
    assume(all(e["at"] <= samples.NOW + FUTURE_US for es in world["histories"].values() for e in es))
    before, after = ask(world), ask(world, later)
    assert RANK[after.verdict] <= RANK[before.verdict]
    if after.record == before.record and after.record:
        assert after.odds <= before.odds


@MANY
@given(samples.worlds(), samples.entries())
def test_6_out_of_scope_never_counts(world: dict[str, Any], foreign: list[dict[str, Any]]) -> None:
    """A record of another key changes nothing, not even the reason."""
    found = records(world, samples.NOW)
    other = history.fold(samples.ELSEWHERE, foreign, samples.NOW)
    assert as_bytes(ask(world, records=found)) == as_bytes(ask(world, records=[*found, other] if other else found))


@MANY
@given(samples.worlds())
def test_7_a_later_success_clears(world: dict[str, Any]) -> None:
    """After a success of each of its keys nothing objects to an action."""
    newest = max(e["at"] for es in world["histories"].values() for e in es) + 1
    ok = {"t": "ok", "at": newest, "stream": "s9", "seq": 999, "id": "ok", "origin": "observed"}
    cleared = {k: history.merge(es, ok) for k, es in world["histories"].items()}
    assert ask(world, max(newest, samples.NOW), histories=cleared).verdict == "allow"


@MANY
@given(samples.worlds(), st.sampled_from(["projectmem dispute x", "uv run projectmem doctor", "python -m projectmem init"]))
def test_8_own_repair_is_never_blocked(world: dict[str, Any], command: str) -> None:
    """Our own commands pass whatever is recorded, labelled or ruled."""
    mine = Part(samples.KEYS[0], "sh", "projectmem", command)
    action = Action("Bash", "sh", ".", samples.KEYS[0], command, (mine,))
    policy = Policy(mode="enforce", rules=[Rule("all", "command", "projectmem*", "deny")])
    labels = [{"label": "protected", "target": "command", "pattern": "projectmem", "effect": "deny", "origin": "human"}]
    assert ask(world, action=action, policy=policy, labels=labels).verdict == "allow"


@MANY
@given(samples.worlds(), st.sampled_from(["agent", "import"]))
def test_9_only_observed_outcomes_lead_beyond_warn(world: dict[str, Any], origin: str) -> None:
    """What an agent wrote or an import brought warns at most, in whatever number, labels included."""
    planted = {k: [e | {"origin": origin} for e in es] for k, es in world["histories"].items()}
    labels = [{"label": "protected", "target": "command", "pattern": "npm run build", "effect": "deny", "origin": origin}]
    assert RANK[ask(world, histories=planted, labels=labels).verdict] <= RANK["warn"]


@MANY
@given(samples.worlds(), st.text(max_size=40))
def test_10_words_and_likeness_never_change_a_verdict(world: dict[str, Any], words: str) -> None:
    """Identity decides: a record with the same text but another key says nothing; texts change no verdict."""
    found = records(world, samples.NOW)
    twins = [history.Record.from_data(r.to_data() | {"key": samples.ELSEWHERE, "id": f"twin{r.id}"}) for r in found]
    assert as_bytes(ask(world, records=found)) == as_bytes(ask(world, records=[*found, *twins]))
    worded = {i: f | {"remedy": {"id": "r", "text": words or "x"}} for i, f in world["facts"].items()}
    assert ask(world, facts=worded).verdict == ask(world).verdict


@MANY
@given(samples.worlds())
def test_a_record_survives_the_log(world: dict[str, Any]) -> None:
    """Records and decisions are data: written and read again they are equal."""
    for record in records(world, samples.NOW):
        assert history.Record.from_data(json.loads(json.dumps(record.to_data()))) == record
    policy = world["policy"]
    assert Policy.from_data(json.loads(json.dumps(policy.to_data()))) == policy


@MANY
@given(st.lists(samples.entries(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_merge_commutes_and_is_idempotent(histories: list[list[dict[str, Any]]], rng: random.Random) -> None:
    """Whatever the order and however often, the same entries are kept, and pins outlive any number of failures."""
    every = [e | {"seq": e["seq"] + 10 * i} for i, es in enumerate(histories) for e in es] * 3
    once: list[dict[str, Any]] = []
    for e in every:
        once = history.merge(once, e)
    rng.shuffle(every)
    again: list[dict[str, Any]] = []
    for e in every:
        again = history.merge(again, e)
    assert once == again
    cut = rng.randrange(len(every) + 1)
    some: list[dict[str, Any]] = []
    for e in every[:cut]:
        some = history.merge(some, e)
    assert history.merge_all(some, every[cut:]) == once
    pins = [e for e in every if e["t"] == "pin"]
    assert not pins or max(pins, key=history.order) in once


@MANY
@given(samples.entries())
def test_is_open_says_what_fold_says(es: list[dict[str, Any]]) -> None:
    """The cheap test never hides a record that could object."""
    record = history.fold("k", es, 1 << 60)  # every snooze has ended
    if record is not None and record.state == "open" and record.origin == "observed":
        assert history.is_open(es) or any(e["origin"] != "observed" for e in es)
