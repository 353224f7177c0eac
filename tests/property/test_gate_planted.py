"""Whatever agents and imports write into the log, of whatever kind, in whatever order: the gate warns at most.

Through the real fold, for every policy that a person may have chosen. A shipped log is this very case once it is accepted.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_gate.identify import identify
from projectmem_gate.model import Session
from projectmem_gate.policy import DEFAULT, Policy, Rule
from projectmem_projections.memory import MemoryState

from projectmem.hook.judge import Unchanged, assess

S = 1_000_000
NOW = 1_800_000_000 * S
COMMANDS = ("npm run build", "npm ci && npm run build", "echo x > src/gen/a.ts", "python -m pytest")
ACTIONS = [identify("Bash", {"command": c}, root="/r", cwd="/r", harness="claude-code") for c in COMMANDS]
POLICIES = (
    DEFAULT,
    Policy(mode="enforce"),
    Policy(mode="enforce", ask_by="person", ask_after=1, deny_after=2, turn_us=1, margin=1000),
)
HOSTILE = Policy(mode="enforce", rules=[Rule("all", "command", "npm", "deny"), Rule("files", "path", "src", "deny")])
ORIGINS = st.sampled_from(["agent", "import"])


@st.composite
def payloads(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """One event as an agent or a forger would like it: the kinds that the fold reads, with the strongest content."""
    action = draw(st.sampled_from(ACTIONS))
    key = draw(st.sampled_from(action.keys))
    finished = {
        "call": draw(st.sampled_from(["", "c1", "c2"])), "tool": "Bash", "key": action.key, "text": action.text, "turn": 1,
        "parts": [p.to_data() for p in action.parts], "joins": list(action.joins), "failed_key": key,
        "outcome": draw(st.sampled_from(["failed", "failed", "failed", "ok", "unknown"])), "class": "build", "signature": "E1",
        "excerpt": "E1", "exit_code": 1, "duration_ms": 3_600_000, "facts": {}, "source": "hook",
        "tried": {"class": "build", "state": "same", "age": 0, "by": "other"},
    }  # fmt: skip
    label = {
        "label": draw(st.sampled_from(["protected", "rule", "fragile"])), "effect": "deny", "reason": "obey", "decision": "",
        "review_at": 0, "instead": "", "replay": {"ok": 0},
        **draw(st.sampled_from([{"target": "command", "pattern": "npm | python"}, {"target": "path", "pattern": "src"},
                                {"target": "tool", "pattern": "Bash"}])),
    }  # fmt: skip
    touched = {"record": draw(st.sampled_from(["e1", "e2"])), "key": key, "until": 0, "reason": "", "by_event": ""}
    asked = {
        "key": action.key, "call": "c9", "decision": {"verdict": "deny", "rule": "repeat.denied", "record": "e1"},
        "session": {"session": "s1", "turn": 1}, "text": action.text,
    }  # fmt: skip
    return draw(
        st.sampled_from(
            [
                ("action.finished", finished), ("action.finished", finished), ("action.finished", finished), ("label.set", label),
                ("label.cleared", {"label_event": "e1"}), ("record.pinned", touched), ("record.reviewed", touched),
                ("record.snoozed", touched), ("action.proposed", asked), ("decision.recorded", {"supersedes": "e1"}),
                ("policy.changed", {"text": "", "hash": HOSTILE.hash, "policy": HOSTILE.to_data()}),
            ]
        )
    )  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(payloads(), ORIGINS, st.integers(0, 3600)), min_size=1, max_size=14),
    st.sampled_from(ACTIONS),
    st.sampled_from(POLICIES),
    st.sampled_from(["s1", "s2"]),
)
def test_planted_events_never_lead_beyond_a_warning(events: list[Any], action: Any, policy: Policy, session: str) -> None:
    """Nor does what they bring change the policy that a person chose."""
    from projectmem.hook.state import policy_of

    state = MemoryState()
    for seq, ((kind, data), origin, ago) in enumerate(events, 1):
        actor = {"session": "s1", "agent": "a", "harness": "claude-code", "model": "m", "origin": origin}
        at = NOW - ago * S
        state.apply(
            [{"id": f"e{seq}", "stream": "s", "seq": seq, "ts": at, "at": at, "kind": kind, "actor": actor, "data": data}]
        )
    assert policy_of(state) == DEFAULT
    decision, _, _ = assess(state, action, Session(session, "a", "claude-code", "c3", 2), Unchanged(), policy, NOW)
    assert decision.verdict in ("allow", "warn")
