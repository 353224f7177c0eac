"""failures, explain, log, stats and look-up over a log that is written by hand: what people read is what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.store import init_home

from projectmem import explain, failures, logview, lookup, moment, output, record, stats, writing
from projectmem.errors import BadInputError, NotFoundError
from projectmem.place import Place

NOW = 1_796_000_000_000_000
MINUTE, HOUR, DAY = 60_000_000, 3_600_000_000, 86_400_000_000
PLAIN = output.Paint(False)
BUILD, TEST = "b" * 32, "c" * 32
FACTS = {"head": "", "deps": {}, "files": {"price.py": "absent"}, "env": {}}

Event = dict[str, Any]


class World:
    """A place with a log, and a hand to write into it."""

    def __init__(self, folder: Path) -> None:
        home = str(folder / ".projectmem-gate")
        init_home(home, NOW - DAY)
        self.place = Place(str(folder), home)

    def write(self, kind: str, data: dict[str, Any], at: int, origin: str = "observed", causes: tuple[str, ...] = ()) -> Event:
        """Append one event that happened at `at`."""
        actor = {"session": "s1", "agent": "", "harness": "claude-code", "model": "m1", "origin": origin}
        draft = {"kind": kind, "at": at, "actor": actor, "causes": list(causes), "data": data}
        return writing.append(self.place, [draft], at)[-1]

    def finished(self, text: str, key: str, outcome: str, at: int, **more: Any) -> Event:
        """A call that ended."""
        failed = outcome == "failed"
        part = {"key": key, "kind": "sh", "family": text.split()[0], "text": text, "words": [], "paths": [], "effects": []}
        data = {
            "call": f"c{at}", "tool": "Bash", "kind": "sh", "input": "{}", "input_sha": "", "cwd": ".", "key": key, "text": text,
            "joins": [], "parsed": True, "parts": [{**part, "trivial": False}], "failed_key": key if failed else "",
            "outcome": outcome,
            "exit_code": 1 if failed else 0, "class": "build" if failed else "",
            "signature": "SyntaxError in price.py" if failed else "",
            "excerpt": "price.py:2: SyntaxError\nbuild failed" if failed else "", "duration_ms": 4000,
            "facts": FACTS if failed else {},
            "as_of": None, "turn": 1, "source": "hook", **more,
        }  # fmt: skip
        return self.write("action.finished", data, at)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A log of one failed build, a later good test run, and a note."""
    world = World(tmp_path)
    world.finished("make build", BUILD, "failed", NOW - HOUR)
    world.finished("pytest -q", TEST, "failed", NOW - 30 * MINUTE)
    world.finished("pytest -q", TEST, "ok", NOW - 20 * MINUTE)
    world.write("note.recorded", {"text": "a \x1b[31mred\x1b[0m note\nwith a second line", "tags": []}, NOW - MINUTE, "agent")
    return world


def ids(world: World, kind: str) -> list[str]:
    """Ids of the events of a kind, in order."""
    return [event["id"] for event in logview.select(world.place, kinds=[kind], limit=0)]


def test_failures_lists_what_stands_and_all_adds_what_was_cleared(world: World) -> None:
    """A later success of the same action clears it; `--all` still shows it, with the reason."""
    rows = failures.failures(world.place, NOW)
    assert [row.record.text for row in rows] == ["make build"]
    assert rows[0].says in ("warn", "ask")
    every = failures.failures(world.place, NOW, every=True)
    assert [(row.record.text, row.record.state) for row in every] == [("pytest -q", "cleared"), ("make build", "open")]
    assert every[0].says == "silent"
    text = "\n".join(failures.render(every, NOW, PLAIN))
    assert "the same action succeeded later" in text
    assert "make build" in text


def test_failures_says_why_the_gate_is_silent(world: World) -> None:
    """A file that was named by the failure and now differs is the reason."""
    (Path(world.place.root) / "price.py").write_text("mended")
    (row,) = failures.failures(world.place, NOW)
    assert (row.says, row.fresh) == ("silent", "changed")
    assert "price.py" in row.silence(NOW)


def test_failures_expire(world: World) -> None:
    """Nothing speaks for ever; the row says that it lapsed."""
    assert failures.failures(world.place, NOW + 60 * DAY) == []
    rows = failures.failures(world.place, NOW + 60 * DAY, every=True)
    assert [row.silence(NOW + 60 * DAY) for row in rows] == ["cleared: the same action succeeded later", "expired 8 weeks ago"]


def test_one_failed_chain_is_one_row(world: World) -> None:
    """A chain is remembered under the part that failed and as a whole: people see one failure."""
    parts = [
        {
            "key": "d" * 32,
            "kind": "sh",
            "family": "make",
            "text": "make x",
            "words": [],
            "paths": [],
            "effects": [],
            "trivial": False,
        },
        {"key": "e" * 32, "kind": "sh", "family": "ls", "text": "ls", "words": [], "paths": [], "effects": [], "trivial": False},
    ]
    event = world.finished("make x && ls", "f" * 32, "failed", NOW - MINUTE, parts=parts, joins=["&&"], failed_key="d" * 32)
    rows = [row for row in failures.failures(world.place, NOW) if row.record.id == event["id"]]
    assert len(rows) == 1
    assert record.keys_of(event) == ["d" * 32, "f" * 32]
    assert "the part that failed: make x" in explain.explain(world.place, event["id"], NOW)


@pytest.mark.parametrize("rule", ["", "related", "repeat.flaky", "observe.repeat", "override"])
def test_a_rule_of_the_gate_is_not_laid_at_a_person_s_door(rule: str) -> None:
    """Only what a person made is called so; an allow comes by no rule."""
    assert "a person made" not in moment.rule(rule)
    assert "a person made" in moment.rule("rule.no-force-push")


def test_explain_a_failure_answers_what_a_newcomer_asks(world: World) -> None:
    """What failed, evidence, verdict and why, freshness, expiry, class's remedy, history, and how to object."""
    id = ids(world, "action.finished")[0]
    text = explain.explain(world.place, id, NOW)
    assert "in the project's folder with the tool " in text and "compared with the recorded state: HEAD " in text
    for wanted in (
        "make build", "exit 1", "claude-code, m1", "60 min ago", "build", "SyntaxError in price.py", "price.py:2",
        "What the gate says now",
        "how likely it is to fail again", "lapses", "the agent reads", "Has anything changed since?",
        "failed 1 time since it last worked",
        "state: open", "projectmem dispute", "worth trying again",
    ):  # fmt: skip
        assert wanted in text, wanted


def test_explain_shows_what_is_related(world: World) -> None:
    """A dispute and the decision that leaned on the record are listed."""
    failure = ids(world, "action.finished")[0]
    world.write("record.disputed", {"record": failure, "key": BUILD, "until": 0, "reason": "moved", "by_event": ""}, NOW - MINUTE)
    text = explain.explain(world.place, failure, NOW)
    assert "record.disputed" in text
    assert "  state: disputed" in text
    assert "The gate does not object because of it" in text
    data = explain.explain_data(world.place, failure, NOW)
    assert data["now"]["state"] == "disputed"
    assert [event["kind"] for event in data["related"]] == ["record.disputed"]


def test_explain_any_other_event_escapes_what_it_holds(world: World) -> None:
    """A note is shown in full and drives no terminal."""
    text = explain.explain(world.place, ids(world, "note.recorded")[0], NOW)
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text


def test_log_lines_are_one_line_each_and_escaped(world: World) -> None:
    """A note of two lines cannot pass for two events."""
    events = logview.select(world.place, limit=0)
    lines = [logview.line(event, PLAIN) for event in events]
    assert len(lines) == len(events)
    assert not [line for line in lines if "\n" in line or "\x1b" in line]
    assert "failed [build]: make build" in lines[0]
    assert "[agent]" in lines[-1]


def test_log_selects_by_kind_family_time_and_number(world: World) -> None:
    """Newest N, oldest first."""
    assert len(logview.select(world.place, kinds=["action"], limit=0)) == 3
    assert [e["data"]["outcome"] for e in logview.select(world.place, kinds=["action.finished"], limit=2)] == ["failed", "ok"]
    assert len(logview.select(world.place, since=NOW - 25 * MINUTE, limit=0)) == 2
    assert len(logview.select(world.place, until=NOW - 25 * MINUTE, limit=1)) == 1
    assert len(logview.select(world.place, until=NOW - 25 * MINUTE, limit=0)) == 2
    assert logview.select(world.place, since=NOW - 25 * MINUTE, until=NOW - 25 * MINUTE, limit=0) == []
    assert [e["kind"] for e in logview.select(world.place, limit=1)] == ["note.recorded"]
    assert len(logview.select(world.place, limit=100)) == 4


def test_log_names_the_nearest_kind(world: World) -> None:
    """A typing error is an error, not an empty answer; a known kind that never occurred is empty."""
    with pytest.raises(BadInputError, match=r"did you mean `action.finished`"):
        logview.select(world.place, kinds=["action.finnished"])
    assert logview.select(world.place, kinds=["fix.recorded"]) == []


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (
            "recall.decided",
            {
                "query": "when do we deploy",
                "abstained": True,
                "why": "nothing is similar",
                "items": [],
                "controller": {"action": 1},
            },
            'nothing shown: "when do we deploy" (nothing is similar)',
        ),
        ("recall.decided", {"query": "x", "abstained": False, "why": "", "items": [{"id": "a"}] * 3}, '3 shown: "x"'),
        ("recall.decided", {"surface": "start", "items": [], "profile": ["a", "b"]}, "2 shown at the session's start"),
        ("recall.decided", {"surface": "failure", "query": "", "items": [{"id": "a"}]}, "1 shown after a failure"),
        ("feedback.given", {"target": "0123456789abcdef0123", "useful": True, "note": ""}, "useful: 0123456789abcdef01"),
        ("feedback.given", {"target": "ab", "useful": False, "note": "old"}, "not useful: ab: old"),
        (
            "policy.changed",
            {"text": "# Policy", "hash": "f" * 64, "policy": {"mode": "observe"}},
            f"policy {'f' * 16}, mode observe",
        ),
        (
            "gate.degraded",
            {"where": "batch", "what": "executed after deny", "detail": "python a.py"},
            "python a.py ran although it had been refused",
        ),
        ("checkpoint.sealed", {"size": 3, "signed": False, "empty": "", "heads": {"a": [1]}}, "size=3, signed=False"),
    ],
)
def test_a_line_says_what_an_event_is_about_in_words(kind: str, data: dict[str, Any], said: str) -> None:
    assert logview.about({"kind": kind, "data": data}) == said


def test_log_shows_erased_and_unknown_events() -> None:
    """Total: whatever an event holds, there is a line."""
    base = {"id": "x" * 36, "ts": NOW, "actor": {}}
    assert "(erased)" in logview.line({**base, "kind": "note.recorded", "tombstone": {"by": "e"}}, PLAIN)
    assert "a=1" in logview.line({**base, "kind": "future.kind", "data": {"a": 1}}, PLAIN)
    assert "future.kind" in logview.line({**base, "kind": "future.kind", "data": [1]}, PLAIN)
    assert logview.line({}, PLAIN)


def test_a_call_is_meant_and_not_the_remark_made_about_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both may be recorded at one moment, and then what is shown of their ids is the same."""
    call, remark = (
        {"id": f"01a22d9e-ee94-7887-{rest}", "kind": kind}
        for rest, kind in (("8000-000000000001", "action.finished"), ("9000-000000000002", "gate.degraded"))
    )
    monkeypatch.setattr(lookup, "lines_with", lambda *_: iter((remark, call)))
    assert lookup.find_one(world.place, "01a22d9e-ee94-7887")["id"] == call["id"]
    assert lookup.find_one(world.place, remark["id"])["id"] == remark["id"]


def test_lookup_by_beginning_and_end(world: World) -> None:
    """What a screen shows is enough; too little, unknown and ambiguous are errors that say so."""
    id = ids(world, "note.recorded")[0]
    assert lookup.find_one(world.place, id)["id"] == id
    assert lookup.find_one(world.place, id[-12:])["id"] == id
    assert lookup.find_one(world.place, logview.short(id).upper())["id"] == id
    with pytest.raises(BadInputError, match="not an id"):
        lookup.find_one(world.place, id[:4])
    with pytest.raises(BadInputError, match="not an id"):
        lookup.find_one(world.place, "../etc/passwd")
    with pytest.raises(NotFoundError, match="no event"):
        lookup.find_one(world.place, "0" * 12)


def test_lookup_lists_what_is_ambiguous(world: World) -> None:
    """Events of one moment share the beginning of their ids: nothing is picked for the user."""
    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "agent"}
    drafts = [{"kind": "note.recorded", "at": NOW, "actor": actor, "causes": [], "data": {"text": t, "tags": []}} for t in "ab"]
    first, second = writing.append(world.place, drafts, NOW)
    with pytest.raises(NotFoundError, match="names 2 events") as caught:
        lookup.find_one(world.place, first["id"][:12])
    assert first["id"] in str(caught.value)
    assert second["id"] in str(caught.value)


def test_lookup_of_a_failure_takes_only_failures(world: World) -> None:
    """A good call is no record to dispute."""
    good = ids(world, "action.finished")[2]
    with pytest.raises(NotFoundError, match="no recorded failure"):
        lookup.find_failure(world.place, good)


def test_stats_count_calls_and_what_became_of_warnings(world: World) -> None:
    """Outcomes, classes, verdicts by rule; a call that was spoken of is followed to its end."""
    decision = {"verdict": "ask", "rule": "repeat.costly", "record": "", "records": []}
    world.write("action.proposed", {"call": "c9", "decision": decision, "key": BUILD, "text": "make build"}, NOW - 3 * MINUTE)
    world.finished("make build", BUILD, "rejected", NOW - 2 * MINUTE, call="c9")
    found = stats.stats(world.place.home, now=NOW)
    assert found["outcomes"] == {"failed": 2, "ok": 1, "rejected": 1}
    assert found["classes"] == {"build": 2}
    assert [(row["verdict"], row["rule"], row["count"]) for row in found["gate"]] == [("ask", "repeat.costly", 1)]
    text = "\n".join(stats.render(found, PLAIN))
    assert "repeat.costly" in text
    assert "failed 2" in text
    ends = dict.fromkeys(("then_failed", "not_run", "heeded", "then_other"), 0)
    said = [("allow", "", 9), ("warn", "repeat", 5), ("allow", "override", 3), ("ask", "repeat.costly", 2)]
    found["gate"] = [{"verdict": v, "rule": r, "count": n, "then_ok": n, **ends} for v, r, n in said]
    rows = stats.render(found, PLAIN)
    start = rows.index("the gate said") + 1
    assert [row.split()[0] for row in rows[start : start + 4]] == ["ask", "warn", "allow", "allow"], "the strongest first"
    assert rows[start + 2].endswith("no objection: 9 then ok")


def test_stats_of_an_empty_log(tmp_path: Path) -> None:
    """Nothing to count is said in words."""
    empty = World(tmp_path)
    assert stats.render(stats.stats(empty.place.home, now=NOW), PLAIN) == ["nothing is recorded yet"]


def test_failures_without_summaries_reads_the_log(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they cannot be built (a read-only folder) the answer is the same, and says so."""
    from projectmem_projections import summaries
    from projectmem_projections.errors import ProjectionError

    def broken(*_: object, **__: object) -> None:
        raise ProjectionError("no room")

    monkeypatch.setattr(summaries, "failures", broken)
    notices: list[str] = []
    rows = failures.failures(world.place, NOW, notices=notices)
    assert [row.record.text for row in rows if row.record.state == "open"] == ["make build"]
    assert "no room" in notices[0]
