"""Labels, decisions and the policy's rules against a naive reference, and the properties that hold for them too."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from projectmem_gate.decide import decide
from projectmem_gate.identify import identify
from projectmem_gate.model import Decision, Session
from projectmem_gate.policy import Policy, Rule

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tests/ is no package: its shared modules lie beside it

import reference_rules as ref

NOW = 1_800_000_000_000_000  # 2027-01-15 08:00 UTC
DAY = 86_400_000_000
MANY = settings(max_examples=300, deadline=None)
COMMANDS = (
    "npm install", "sudo npm ci", "CI=1 npx jest -u", "pnpm install", "yarn", "uv run pytest -q", "python -m pytest a b",
    "git push -f", "git push origin main -f", "git commit -m 'a --no-verify b'", "git -C sub commit -nm 'a b'",
    "npm test -- --force",
    "cd web && npm i && echo done > src/gen/a/b.ts", "sed -i s/a/b/ src/gen/x.py", "cat src/gen/x.py", "ssh host 'npm i'",
    "mv a.lock docs/b.lock", "git commit -m 'npm install'", "ls", "X=1 sudo Y=2 make build", "npm i; (",
    "gh pr merge 3", "terraform apply", "ssh host 'gh pr merge 3'", "docker exec box sh -c 'terraform apply'",
)  # fmt: skip
INSTEAD = {"pytest": "uv run pytest", "npm": "npm ci", "npm | yarn": "npm ci | yarn", "* ci": "npm", "*push*": "git push --force"}
PATTERNS = st.one_of(
    st.tuples(
        st.just("command"),
        st.sampled_from(
            [
                "npm",
                "npm install",
                "npm | yarn",
                "npx",
                "pytest",
                "*push*",
                "git push --force",
                "git push --force origin | git commit --no-verify",
                "npm test --force",
                "make",
                "np",
                "uv run | npx",
                "* ci",
                "npm i*",
                "gh pr merge | terraform apply",
            ]
        ),
    ),
    st.tuples(
        st.just("path"),
        st.sampled_from(["src/gen/**", "src/*/a", "*.lock", "gen", "src", "**/x.py", "web/src", "docs/*.lock | *.py", "src/gen"]),
    ),
    st.tuples(st.just("tool"), st.sampled_from(["Bash", "B*", "Edit | Write", "mcp__*"])),
)


@st.composite
def labels(draw: st.DrawFn) -> dict[str, Any]:
    """A label or a decision's clause, as the fold keeps it."""
    target, pattern = draw(PATTERNS)
    return {
        "id": f"l{draw(st.integers(0, 99)):02}",
        "origin": draw(st.sampled_from(["human", "human", "human", "agent", "import", ""])),
        "label": draw(st.sampled_from(["fragile", "protected", "rule", "rule"])),
        "target": target,
        "pattern": pattern,
        "instead": draw(st.sampled_from(["", INSTEAD.get(pattern, "pnpm")])) if target == "command" else "",
        "effect": draw(st.sampled_from(["", "warn", "ask", "deny", "deny"])),
        "reason": "because",
        "decision": "",
        "hits": draw(st.sampled_from([-1, 0, 0, 3, 4])),
        "review_at": draw(st.sampled_from([0, 0, NOW, NOW + 1, NOW - DAY])),
    }


def _unlike_rules(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A clause always has an effect of its own; only labels leave it to their kind."""
    return [row | {"effect": row["effect"] or "warn"} if row["label"] == "rule" else row for row in found]


RULES = st.lists(
    st.builds(
        lambda on, effect, review, n: Rule(f"r{n}", on[0], on[1], effect, "", review),
        PATTERNS,
        st.sampled_from(["warn", "ask", "deny", "allow"]),
        st.sampled_from(["", "", "2027-01-15", "2027-01-16", "2020-02-29"]),
        st.integers(0, 9),
    ),
    max_size=2,
)
POLICIES = st.builds(
    lambda rules, strongest, contradicts: Policy(rules=rules, strongest=strongest, contradicts=contradicts),
    RULES,
    st.sampled_from(["deny", "deny", "ask", "warn"]),
    st.sampled_from([0, 3, 4]),
)
WORLDS = st.tuples(st.sampled_from(COMMANDS), st.lists(labels(), max_size=4).map(_unlike_rules), POLICIES)


def ask(command: str, found: list[dict[str, Any]], policy: Policy, now: int = NOW) -> Decision:
    """The gate's answer where nothing failed."""
    action = identify("Bash", {"command": command}, root="/r", cwd="/r")
    return decide(action, [], {}, Session("s1"), policy, now, labels=found)


def clause(pattern: str, instead: str) -> dict[str, Any]:
    """A person's decision that denies."""
    return {
        "id": "l1", "origin": "human", "label": "rule", "target": "command", "pattern": pattern, "instead": instead,
        "effect": "deny", "reason": "", "decision": "", "hits": 0, "review_at": 0,
    }  # fmt: skip


@MANY
@given(WORLDS)
@example(("uv run pytest -q", [clause("pytest", "uv run pytest")], Policy()))
@example(("python -m pytest a b", [clause("pytest", "uv run pytest")], Policy()))
@example(("ssh host 'npm i'", [clause("npm", "")], Policy()))
@example(("terraform apply", [clause("gh pr merge | terraform apply", "")], Policy()))
@example(("ssh host 'gh pr merge 3'", [clause("gh pr merge | terraform apply", "")], Policy()))
@example(("sudo npm ci", [clause("npm", "npm ci")], Policy()))
@example(("sudo npm ci", [clause("npm | yarn", "npm ci | yarn")], Policy()))
@example(("yarn", [clause("npm | yarn", "npm ci | yarn")], Policy()))
@example(("npm install", [clause("npm | yarn", "npm ci | yarn")], Policy()))
@example(("sudo npm ci", [clause("* ci", "npm")], Policy()))
@example(("git push -f", [clause("*push*", "git push --force")], Policy()))
@example(("cd web && npm i && npm ci", [clause("npm", "npm ci")], Policy()))
@example(("npm ci && npm i", [clause("npm", "npm ci")], Policy()))
def test_agrees_with_the_naive_reference(world: Any) -> None:
    """Verdict, and the label behind it."""
    command, found, policy = world
    got = ask(*world)
    assert (got.verdict, got.record) == ref.verdict(
        identify("Bash", {"command": command}, root="/r", cwd="/r"), found, policy, NOW
    )


@MANY
@given(WORLDS, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_count(world: Any, rng: random.Random) -> None:
    """Labels come in any order, and twice."""
    command, found, policy = world
    found = [row | {"id": f"{row['id']}{i}"} for i, row in enumerate(found)]
    shuffled = found * 2
    rng.shuffle(shuffled)
    assert ask(command, found, policy).to_data() == ask(command, shuffled, policy).to_data()


@MANY
@given(WORLDS, st.sampled_from([1, DAY, 400 * DAY]))
def test_nothing_rises_with_time(world: Any, later: int) -> None:
    """A review date only lowers what a rule does."""
    command, found, policy = world
    before, after = ask(command, found, policy), ask(command, found, policy, NOW + later)
    assert ref.RANK.index(after.verdict) <= ref.RANK.index(before.verdict)


@MANY
@given(WORLDS)
def test_only_people_lead_beyond_a_warning(world: Any) -> None:
    """Whatever agents and imports ask for, however it was tried; and our own commands pass whatever people decided."""
    command, found, policy = world
    planted = [row | {"origin": "agent" if row["origin"] == "human" else row["origin"]} for row in found]
    assert ask(command, planted, Policy()).verdict in ("allow", "warn")
    every = [
        row | {"target": "command", "pattern": "projectmem* | *", "instead": "", "origin": "human", "effect": "deny"}
        for row in found
    ]
    for repair in (
        "projectmem rule clear x",
        "uv run projectmem doctor",
        "python -m projectmem init",
        "projectmem uninit && projectmem init",
    ):
        assert ask(repair, every, policy).verdict == "allow"
