"""Failed fixes through the hook as it is called: what it says, what is recorded, dispute, and a replay to the same bytes."""

from __future__ import annotations

from typing import Any

from projectmem_projections.memory import MemoryState
from projectmem_projections.snapshot import Snapshot

from projectmem import failures, record
from projectmem.output import Paint
from projectmem.replay import replay_log

ERROR = "Exit code 1\nFAILED tests/test_app.py::test_total - assert 3 == 4\n1 failed in 0.10s"
TEST = "pytest tests/test_app.py"
OLD, NEW = "def total(n):\n    return n + 1\n", "def total(n):\n    return n + 2\n"


def edit(hooked: Any, old: str = OLD, new: str = NEW) -> dict[str, Any]:
    hooked.calls += 1
    given = {"file_path": str(hooked.root / "src/app.py"), "old_string": old, "new_string": new}
    return {"tool_name": "Edit", "tool_input": given, "tool_use_id": f"toolu_{hooked.calls}"}


def apply(hooked: Any, call: dict[str, Any], session: str = "one") -> dict[str, Any] | None:
    """A whole edit: what was said before it; the file really changes."""
    said: dict[str, Any] | None = hooked.before(call, session)
    path = hooked.root / "src/app.py"
    path.write_text(path.read_text().replace(call["tool_input"]["old_string"], call["tool_input"]["new_string"]))
    hooked.batch([(call, "The file has been updated.")], session)
    return said


def tried(hooked: Any) -> None:
    """A failing test, a fix that does not mend it, taken back."""
    (hooked.root / "src").mkdir()
    (hooked.root / "src/app.py").write_text(OLD)
    hooked.run(TEST, ERROR)
    assert apply(hooked, edit(hooked)) is None
    hooked.run(TEST, ERROR)
    assert apply(hooked, edit(hooked, NEW, OLD)) is None


def test_another_session_hears_that_the_edit_did_not_mend_it(hooked: Any) -> None:
    """Which failure, when, the verifier, the events; never more than a warning."""
    tried(hooked)
    said = apply(hooked, edit(hooked), "two")
    assert said is not None and "permissionDecision" not in said
    text = said["additionalContext"]
    for part in (
        "this edit of `src/app.py` did not mend `pytest tests/test_app.py`",
        "test_total",
        "Verifier: pytest",
        "taken back",
    ):
        assert part in text
    failed = [e["id"] for e in hooked.events("action.finished") if e["data"]["outcome"] == "failed"]
    assert failed[1][:18] in text
    assert len(text) <= 580


def test_a_different_fix_and_other_files_are_not_spoken_to(hooked: Any) -> None:
    """Nor is the same edit once the test has passed."""
    tried(hooked)
    assert apply(hooked, edit(hooked, OLD, OLD.replace("n + 1", "n * 2")), "two") is None
    hooked.run(TEST, "", "two")
    assert apply(hooked, edit(hooked, OLD.replace("n + 1", "n * 2"), OLD), "two") is None
    assert apply(hooked, edit(hooked), "three") is None


def test_failures_lists_it_and_says_why_it_fell_silent(hooked: Any) -> None:
    """Beside the failure it was for; after a dispute with the reason that was given."""
    tried(hooked)
    rows = {bool(row.record.fix): row for row in failures.failures(hooked.place, hooked.now)}
    assert rows[True].says == "warn" and rows[True].record.fix["path"] == "src/app.py"
    assert "[did not mend pytest tests/test_app.py]" in "\n".join(
        failures.render(list(rows.values()), hooked.now, Paint(False), 200)
    )
    id = rows[True].record.id
    record.curate(hooked.place, "disputed", id, now=hooked.now, origin="agent", reason="the test was wrong")
    assert not any(row.record.fix for row in failures.failures(hooked.place, hooked.now))
    every = [row for row in failures.failures(hooked.place, hooked.now, every=True) if row.record.fix]
    assert [row.silence(hooked.now) for row in every] == ["disputed: the test was wrong"]
    hooked.run(TEST, "")
    assert not any(row.record.fix for row in failures.failures(hooked.place, hooked.now, every=True))


def test_every_record_names_its_verifier_or_none(hooked: Any) -> None:
    """In the order of `tried`: run, edit, run, edit."""
    tried(hooked)
    hooked.run("ls src")
    named = [e["data"]["verifier"] for e in hooked.events("action.finished")]
    assert named == ["pytest", "none", "pytest", "none", "none"]


def test_dispute_silences_the_attempt_and_the_log_replays_to_the_same_bytes(hooked: Any) -> None:
    """By the id that the warning names; the snapshot that grew equals one that is folded anew."""
    tried(hooked)
    said = apply(hooked, edit(hooked), "two")
    assert said is not None
    id = said["additionalContext"].rpartition("`projectmem dispute ")[2].partition("`")[0]
    assert apply(hooked, edit(hooked, NEW, OLD), "two") is None
    record.curate(hooked.place, "disputed", id, now=hooked.now, origin="agent")
    assert apply(hooked, edit(hooked), "three") is None
    report = replay_log(str(hooked.home), verify=True)
    assert report.ok and report.decisions["same"] >= 1 and report.passed["same"] >= 4
    memory = MemoryState()
    memory.apply(hooked.events())
    with Snapshot(str(hooked.home / "projections/gate.sqlite")) as grown:
        grown.catch_up(str(hooked.home))
        assert grown.canonical_dump() == memory.canonical_dump()


def test_agents_read_that_the_fix_was_tried_and_failed(hooked: Any) -> None:
    """From check and failures over MCP, in those words; disputed it is gone from both."""
    from projectmem.mcp_tools import Tools

    tried(hooked)
    tools = Tools(hooked.place, clock=lambda: hooked.now, nonce=lambda: "n")
    given = {"file_path": str(hooked.root / "src/app.py"), "old_string": OLD, "new_string": NEW}
    answer = tools.check(tool="Edit", input=given)
    assert answer.startswith("warn\nprojectmem: this fix was tried and failed: this edit of `src/app.py` did not mend")
    listed = tools.failures()
    assert "this fix was tried" in listed
    assert "and failed: pytest showed the same after it in `pytest tests/test_app.py`" in listed
    id = answer.rpartition("projectmem dispute ")[2].split("`")[0]
    tools.dispute(id, "it is another failure")
    assert tools.check(tool="Edit", input=given) == "allow"
    assert "this fix was tried" not in tools.failures()
