"""Failed fixes through the hook as it is called: what it says, what is recorded, dispute, and a replay to the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from projectmem_projections.memory import MemoryState
from projectmem_projections.snapshot import Snapshot

from projectmem import failures, record
from projectmem.explain import explain
from projectmem.hook.widening import widened
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


PART = "def total(n):\n    a = 1  # {}\n    return n + a\n".format("tok" + "en")


def _patch(hooked: Any, old: str, new: str) -> dict[str, Any]:
    hooked.calls += 1
    text = f"*** Begin Patch\n*** Update File: src/app.py\n@@\n-{old}\n+{new}\n*** End Patch"
    return {"tool_name": "apply_patch", "tool_input": {"input": text}, "tool_use_id": f"toolu_{hooked.calls}"}


def _many(hooked: Any, old: str, new: str) -> dict[str, Any]:
    hooked.calls += 1
    given = {"file_path": str(hooked.root / "src/app.py"), "edits": [{"oldText": old, "newText": new}]}
    return {"tool_name": "MultiEdit", "tool_input": given, "tool_use_id": f"toolu_{hooked.calls}"}


@pytest.mark.parametrize("old_new", [("a = 1", "a = 7"), ("= 1 ", "= 10 "), ("a = 1  #", "a = 1 + 6  #")])
def test_a_part_of_a_line_is_the_line_it_is_in(hooked: Any, old_new: tuple[str, str]) -> None:
    """The fix failed as an edit of a few characters; a patch or an edit of the whole line is the same fix."""
    old, new = old_new
    (hooked.root / "src").mkdir()
    (hooked.root / "src/app.py").write_text(PART)
    hooked.run(TEST, ERROR)
    assert apply(hooked, edit(hooked, old, new)) is None
    hooked.run(TEST, ERROR)
    assert apply(hooked, edit(hooked, new, old)) is None
    assert (hooked.root / "src/app.py").read_text() == PART
    line = PART.split("\n")[1]
    for call in (
        edit(hooked, line, line.replace(old, new)),
        edit(hooked, line + "\n", line.replace(old, new) + "\n"),
        _patch(hooked, line, line.replace(old, new)),
        _many(hooked, old, new),
        edit(hooked, old, new),
    ):
        said = hooked.before(call, "two")
        assert said is not None, call
        assert "this fix was tried and failed" in said["additionalContext"]
    assert hooked.before(_patch(hooked, line, line.replace(old, new + "1")), "two") is None


def test_a_file_written_anew_is_the_edit_that_it_makes(hooked: Any) -> None:
    """The fix failed as an edit; the whole file with that change alone is the same fix, with one change more another."""
    tried(hooked)
    hooked.calls += 1
    given = {"file_path": str(hooked.root / "src/app.py"), "content": NEW}
    call = {"tool_name": "Write", "tool_input": given, "tool_use_id": f"toolu_{hooked.calls}"}
    said = hooked.before(call, "two")
    assert said is not None
    assert "this fix was tried and failed" in said["additionalContext"]
    (hooked.root / "src/app.py").write_text(NEW)
    hooked.batch([(call, "The file has been updated.")], "two")
    assert hooked.events("action.finished")[-1]["data"]["outcome"] == "ok"
    (hooked.root / "src/app.py").write_text(OLD)
    other = {**call, "tool_input": {**given, "content": NEW + "x = 1\n"}, "tool_use_id": "toolu_other"}
    assert hooked.before(other, "three") is None
    assert replay_log(str(hooked.home), root=str(hooked.root), verify=True).ok


def test_a_text_that_is_there_twice_or_not_at_all_stays_as_it_is(tmp_path: Path) -> None:
    """Which line is meant cannot be told; nor in a file that is too large, nor where every place is meant."""
    path = tmp_path / "a.py"
    path.write_text("x = a + a\ny = b\n")
    for old, more in (("a", {}), ("c", {}), ("b", {"replace_all": True})):
        given = {"file_path": str(path), "old_string": old, "new_string": "z", **more}
        assert widened(str(tmp_path), ".", given, done=False) is given
    given = {"file_path": str(path), "old_string": "b", "new_string": "z"}
    assert widened(str(tmp_path), ".", given, done=False)["old_string"] == "y = b"
    path.write_text("y = b\n" + "#" * (1 << 20))
    assert widened(str(tmp_path), ".", given, done=False) is given


def test_the_rest_of_a_line_is_recorded_without_its_secrets(hooked: Any) -> None:
    """The proposal held none; the line on disk does."""
    secret = "ghp_" + "a1B2" * 9
    (hooked.root / "src").mkdir()
    (hooked.root / "src/app.py").write_text(f"a = 1; token = '{secret}'\n")
    apply(hooked, edit(hooked, "a = 1", "a = 2"))
    assert "token" in hooked.events("action.finished")[-1]["data"]["text"]
    segments = [path for path in (hooked.home / "log").rglob("*") if path.is_file()]
    assert segments
    assert not [path for path in segments if secret in path.read_text()]


def test_explain_tells_of_the_edit_and_the_warning_in_words(hooked: Any) -> None:
    """Neither shows raw data; the edit and its undoing are not called a change that may mend it."""
    tried(hooked)
    apply(hooked, edit(hooked), "two")
    proposed = hooked.events("action.proposed")[-1]
    text = explain(hooked.place, proposed["id"], hooked.now)
    assert "Only that edit and its undoing." in text
    assert "may mend it" not in text
    told = explain(hooked.place, proposed["data"]["decision"]["record"], hooked.now)
    assert "edit src/app.py" in told
    assert "it went well" in told
    assert "projectmem dispute" in told
    assert '{"' not in told
    assert '"parts"' not in told


def test_an_edit_through_an_mcp_server_is_the_same_edit(hooked: Any) -> None:
    """Of a file of the project by its full path; a dry run is none."""
    tried(hooked)
    given: dict[str, Any] = {"path": str(hooked.root / "src/app.py"), "edits": [{"oldText": OLD, "newText": NEW}]}
    call = {"tool_name": "mcp__filesystem__edit_file", "tool_input": given, "tool_use_id": "toolu_mcp"}
    said = hooked.before(call, "two")
    assert said is not None
    assert "this fix was tried and failed" in said["additionalContext"]
    look = {**call, "tool_input": {**given, "dryRun": True}, "tool_use_id": "toolu_look"}
    assert hooked.before(look, "three") is None
