"""What the gate's property tests draw from: actions, histories, facts, policies in the vocabulary of reference_gate."""

from __future__ import annotations

from typing import Any

import reference_gate as ref
from hypothesis import strategies as st
from projectmem_gate.model import Action, Part, Session
from projectmem_gate.policy import Policy

KEYS = ("a" * 32, "b" * 32, "c" * 32)
WHOLE = "f" * 32
ELSEWHERE = "9" * 32
NOW = 1_800_000_000 * ref.S
CLASSES = sorted(ref.MENDS)
AGES = st.sampled_from(
    [0, 1, 30, 600, 1799, 1800, 1801, 7200, 86_399, 86_400, 86_401, 3 * 86_400, 7 * 86_400 - 1, 7 * 86_400, 30 * 86_400]
)


VARIANTS = st.sampled_from(["", "", "", "", "-v", "| tail -5", "-v | tail -5"])


def part(key: str, effects: tuple[tuple[str, str], ...] = (), variant: str = "") -> Part:
    """A part of the only family the reference knows."""
    return Part(key, "sh", "npm run build", "npm run build", ("npm", "run", "build"), (ref.NAMED,), effects, False, variant)


@st.composite
def actions(draw: st.DrawFn) -> Action:
    """One command, or a chain of two or three."""
    count = draw(st.integers(1, 3))
    some = st.lists(st.sampled_from(sorted(ref.EVERYTHING)), max_size=1).map(tuple)
    parts = tuple(part(KEYS[i], draw(some), draw(VARIANTS)) for i in range(count))
    joins = tuple(draw(st.sampled_from(["&&", "||", ";"])) for _ in range(count - 1))
    return Action("Bash", "sh", ".", KEYS[0] if count == 1 else WHOLE, "npm run build", parts, joins)


@st.composite
def entries(
    draw: st.DrawFn, origins: tuple[str, ...] = ("observed", "observed", "import", "agent"), usual: str = ""
) -> list[dict[str, Any]]:
    """A history of one key; every entry has its own place in the log. `usual` is the variant that most of them have."""
    out: list[dict[str, Any]] = []
    cls, origin = draw(st.sampled_from(CLASSES)), draw(st.sampled_from(origins))
    for seq in range(draw(st.integers(1, 7))):
        t = draw(st.sampled_from(["fail"] * 16 + ["ok", "ok", "dispute", "supersede", "snooze", "pin"]))
        at = NOW - draw(AGES) * ref.S + draw(st.sampled_from([0, 0, 0, 0, 0, 120, 299, 301, 40 * 86_400, 10**8])) * ref.S
        out.append(
            {
                "t": t,
                "at": at,
                "stream": draw(st.sampled_from(["s1", "s2"])),
                "seq": seq,
                "id": f"{seq}{t}-{draw(st.integers(0, 99_999)):05}",
                "session": draw(st.sampled_from(["s1", "s1", f"s{seq + 2}"])),
                "agent": draw(st.sampled_from(["", "sub"])),
                "harness": draw(st.sampled_from(["claude-code", "codex"])),
                "model": "",
                "origin": draw(st.sampled_from([origin] * 6 + list(origins))),
                "cls": draw(st.sampled_from([cls, cls, cls, draw(st.sampled_from(CLASSES))])),
                "sig": draw(st.sampled_from(["boom", "boom", "bang"])),
                "excerpt": "boom",
                "exit": 1,
                "dur": draw(st.sampled_from([None, 10, 20_000, 60_000, 600_000])),
                "facts": {},
                "text": "npm run build",
                "family": "npm run build",
                "call": "",
                "turn": -1,
                "paths": [ref.NAMED],
                "until": at + draw(st.sampled_from([0, 3600, 10**6])) * ref.S,
                "record": "",
                "by": "",
                "variant": draw(st.sampled_from([usual] * 6 + ["", "-v", "| tail -5"])),
            }
        )
    return out


@st.composite
def facts(draw: st.DrawFn) -> dict[str, Any]:
    """Facts of one record, mostly unchanged so that objections survive to be compared."""
    states = st.sampled_from(["same"] * 8 + ["changed", "unknown"])
    change = st.tuples(st.sampled_from(sorted(ref.EVERYTHING)), AGES).map(lambda c: [c[0][0], c[0][1], NOW - c[1] * ref.S])
    return {k: draw(states) for k in ("head", "deps", "files")} | {"changes": draw(st.lists(change, max_size=2))}


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Policies around the defaults."""
    return Policy(
        mode=draw(st.sampled_from(["advise", "enforce"])),
        ask_by=draw(st.sampled_from(["agent", "person"])),
        ask_after=draw(st.integers(1, 3)),
        deny_after=draw(st.integers(2, 4)),
        floor_warn=draw(st.sampled_from([0, 400, 800])),
        floor_ask=draw(st.sampled_from([0, 700, 960])),
    )


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Who asks."""
    return Session(
        "s1", draw(st.sampled_from(["", "sub"])), "claude-code", draw(st.sampled_from(["", "c1", "c2"])), draw(st.integers(-1, 3))
    )


@st.composite
def asks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Earlier asks and passes for the whole action."""
    one = st.fixed_dictionaries(
        {
            "t": st.sampled_from(["ask", "ask", "pass"]),
            "at": st.sampled_from([0, 1, 2, 3, 60, 86_400]).map(lambda s: NOW - s * ref.S),
            "stream": st.just("s1"),
            "seq": st.integers(100, 200),
            "session": st.sampled_from(["s1", "s1", "s2"]),
            "agent": st.sampled_from(["", "", "sub"]),
            "call": st.sampled_from(["", "c1"]),
            "turn": st.integers(-1, 3),
        }
    )
    return draw(st.lists(one, max_size=3))


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, Any]:
    """Everything `decide` is told."""
    action = draw(actions())
    keys = draw(st.lists(st.sampled_from([*action.keys, ELSEWHERE]), min_size=1, max_size=3, unique=True))
    histories = {key: [e | {"id": f"{key[0]}{e['id']}"} for e in draw(entries(usual=action.variant(key)))] for key in keys}
    ids = [e["id"] for es in histories.values() for e in es if e["t"] == "fail"]
    known = {i: draw(facts()) for i in ids if draw(st.integers(0, 9))}
    return {
        "action": action,
        "histories": histories,
        "facts": known,
        "session": draw(sessions()),
        "policy": draw(policies()),
        "asks": draw(asks()),
    }
