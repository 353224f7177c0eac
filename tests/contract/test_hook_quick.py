"""The quick question agrees with the snapshot itself, and whatever it cannot be sure of is a no."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_projections.quick import nothing_objects
from projectmem_projections.snapshot import Snapshot

BUILD, ERROR = "npm run build", "Exit code 2\nsrc/app.ts(3,5): error TS2304: Cannot find name 'x'.\nnpm error code 2"


def _ask(hooked: Any, *words: str, call: str = "") -> bool:
    path = str(hooked.home / "projections" / "gate.sqlite")
    return nothing_objects(path, str(hooked.home), frozenset(words), "s", call, 7)


def test_certain_only_at_the_end_of_the_log(hooked: Any) -> None:
    """An absent snapshot, or one that is behind the log by one event, is no answer; caught up, it is."""
    assert not _ask(hooked, "ls")
    hooked.run("ls")
    assert _ask(hooked, "ls")
    from projectmem_logs.store import LogStore

    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "observed"}
    draft = {"kind": "session.ended", "at": hooked.now, "actor": actor, "causes": [], "data": {"reason": "x"}}
    LogStore(str(hooked.home)).append([draft], now=hooked.now)
    assert not _ask(hooked, "ls")


def test_a_hint_a_label_or_a_rule_ends_the_certainty(hooked: Any) -> None:
    """An open failure, a person's label and a policy rule, only where their words occur."""
    hooked.run(BUILD, ERROR)
    assert not _ask(hooked, "npm", "run", "build")
    assert _ask(hooked, "cargo", "test")
    from projectmem_gate.policy import DEFAULT

    from projectmem.writing import append

    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}
    rule = {"name": "r", "target": "command", "pattern": "rm *", "effect": "deny", "reason": "", "review": ""}
    for rules, certain in (([], True), ([rule], False), ([], True)):
        hooked.now += 1
        data = {"text": '[[rules]]\n"rules":[]', "hash": "x", "policy": {**DEFAULT.to_data(), "rules": rules}}
        append(
            hooked.place, [{"kind": "policy.changed", "at": hooked.now, "actor": actor, "causes": [], "data": data}], hooked.now
        )
        assert _ask(hooked, "rm", "a") is certain
        assert _ask(hooked, "cargo")
    label = {"label": "protected", "target": "path", "pattern": "*.sql", "effect": "ask", "reason": "", "review_at": 0}
    append(hooked.place, [{"kind": "label.set", "at": hooked.now, "actor": actor, "causes": [], "data": label}], hooked.now)
    path, home = str(hooked.home / "projections" / "gate.sqlite"), str(hooked.home)
    edit = {"file_path": "src/app.ts", "old_string": "a", "new_string": "b"}
    for tool, given_input, words, certain in (
        ("Edit", edit, {"src", "app", "ts"}, True),
        ("Edit", {**edit, "file_path": "db/one.sql"}, {"db", "one", "sql"}, False),
        ("Edit", {**edit, "file_path": "$x=/one.sql"}, {"*"}, False),
        ("Read", {"file_path": "db/one.sql"}, {"db", "one", "sql"}, True),
        ("Bash", {"command": "cargo"}, {"cargo"}, False),  # a shell may write where no word says so
    ):
        found = nothing_objects(path, home, frozenset(words), "s", "", 7, tool=tool, tool_input=given_input)
        assert found is certain, (tool, given_input)


def test_more_rules_than_are_looked_at_are_no_answer(hooked: Any) -> None:
    """Then the call is looked at, whatever its words."""
    from projectmem_projections import quick

    from projectmem.writing import append

    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}
    label = {"label": "protected", "target": "command", "pattern": "rm", "effect": "ask", "reason": "", "review_at": 0}
    drafts = [{"kind": "label.set", "at": hooked.now, "actor": actor, "causes": [], "data": label}] * quick.RULES_MAX
    append(hooked.place, drafts, hooked.now)
    assert _ask(hooked, "cargo")
    append(hooked.place, drafts[:1], hooked.now)
    assert not _ask(hooked, "cargo")


def test_the_note_it_leaves_is_the_one_that_is_read(hooked: Any) -> None:
    """Cursor and time, as the snapshot's own notes have them."""
    hooked.run("ls")
    assert _ask(hooked, "ls", call="t9")
    with Snapshot(str(hooked.home / "projections" / "gate.sqlite")) as state:
        assert state.pending_get("s", "t9") == {"as_of": state.cursor(), "t0": 7}


@given(damage=st.binary(max_size=200), at=st.integers(0, 20_000))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
def test_damage_is_a_no_or_an_answer_and_never_an_error(hooked: Any, damage: bytes, at: int) -> None:
    """Bytes written over the file: the question is answered or declined, and nothing is raised."""
    if not hooked.events("action.finished"):
        hooked.run(BUILD, ERROR)
    path = Path(hooked.home) / "projections" / "gate.sqlite"
    sound = path.read_bytes()
    try:
        path.write_bytes(sound[:at] + damage + sound[at + len(damage) :])
        assert _ask(hooked, "npm", "run", "build") in (True, False)
    finally:
        path.write_bytes(sound)
