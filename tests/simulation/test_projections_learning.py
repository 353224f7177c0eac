"""What experience taught and what waits for a person, asked in SQL: what the Python folds of the log say, however it came."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.reader import read_events
from projectmem_logs.store import init_home
from projectmem_projections import generations, learning
from projectmem_projections.documents import Facts

from tests.simulation.projection_drafts import NOW, SECOND, action, event, write


def folded(home: str) -> Facts:
    """The whole log, in Python, without what was asked to be erased."""
    events = list(read_events(home))
    gone = {id for e in events if e["kind"] == "erasure.requested" for id in e["data"]["ids"]}
    facts = Facts()
    facts.apply(e for e in events if e["id"] not in gone)
    return facts


def agree(home: str) -> tuple[int, int]:
    """Assert that SQL and Python say the same of the log; how many memories were learned of, and how many wait."""
    facts = folded(home)
    learned = {
        name: (u.value, u.visits, u.variance, u.refreshed_at, u.contradicted) for name, u in facts.experience.utilities().items()
    }
    waiting = {document.id for document, _ in facts.waiting()}
    with generations.open_current(home) as summaries:
        rows = summaries.query("SELECT * FROM utilities")
        assert {row["memory"]: tuple(row.values())[1:] for row in rows} == learned
        shown = summaries.query("SELECT memory, utility FROM memory WHERE utility IS NOT NULL")
        told = {row["memory"]: row["utility"] for row in shown}
        assert told.items() <= {name: found[0] for name, found in learned.items()}.items()
        # A failure that was spoken of before it was recalled has two names; the view shows what is known of its action.
        missing = sorted(set(learned) - set(told))
        calls = summaries.query("SELECT id FROM actions WHERE id IN (SELECT unnest(?))", [missing])
        assert {row["id"] for row in calls} == set(missing)
        held = summaries.query("SELECT id, in_force FROM record_states WHERE waits")
        assert {row["id"] for row in held} == waiting and not any(row["in_force"] for row in held)
    return len(learned), len(waiting)


def drafts(rng: random.Random, keys: dict[str, str], at: int) -> list[dict[str, Any]]:
    """A few events of recalls and of what led to their utility, of writings and of what was said of them; `keys`: of each event
    so far the action that failed, '' for others."""
    ids = list(keys)
    n, session, some = rng.randint(1, 4), f"s{rng.randint(1, 2)}", rng.choice(ids or ["x"])
    known = [{"id": id, "type": "failure" if keys[id] else "note", "key": keys[id]} for id in ids]
    items = rng.sample(known, min(len(known), rng.randint(0, 2)))
    recall = {"engine": "e", "query": "q", "abstained": not items, "surface": rng.choice(["", "start"]), "items": items}
    held = {"held_for": rng.choice(["", "itself", *ids]), "supersedes": rng.choice(["", "", *ids])}
    control = {"record": some, "key": "", "until": 0, "reason": "r", "by_event": ""}
    return rng.choices(
        [
            event("recall.decided", recall, at, session),
            action(n, "failed", at, session, verifier=rng.choice(["none", "pytest"])),
            action(n, "ok", at, session, verifier=rng.choice(["", "none", "pytest", "tsc"])),
            event("feedback.given", {"target": some, "useful": rng.random() < 0.5, "note": ""}, at, session),
            event(f"record.{rng.choice(['disputed', 'superseded', 'reviewed'])}", control, at, session, "human"),
            event("note.recorded", {"text": f"note {at}", "tags": [], **held}, at, session, "agent"),
            event("decision.recorded", {"title": f"d{at}", "text": "", **held}, at, session, "agent"),
        ],
        k=rng.randint(1, 3),
    )


@pytest.mark.parametrize("seed", range(6))
def test_utility_and_what_waits_are_what_the_folds_say_after_any_history(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With generations built at any moment, erasures, times that lie before others, and more recalls than are kept."""
    monkeypatch.setattr("projectmem_projections.utility.RECALLS_KEPT", 6)
    monkeypatch.setattr(learning, "_KEPT", learning._KEPT.replace("LIMIT 400", "LIMIT 6"))
    home, rng, keys, seen = str(tmp_path), random.Random(seed), dict[str, str](), [0, 0]
    init_home(home, NOW)
    for step in range(16):
        some = drafts(rng, keys, step * SECOND * 600 + rng.randint(-2, 2) * 4000 * SECOND)
        keys |= {id: draft["data"].get("failed_key", "") for id, draft in zip(write(home, *some), some, strict=True)}
        if rng.random() < 0.15:
            gone = {"selector": "", "ids": rng.sample(list(keys), min(2, len(keys))), "reason": ""}
            write(home, event("erasure.requested", gone, step, origin="human"))
        if rng.random() < 0.2:
            generations.build(home)
        if step % 4 == 0:
            seen = [max(pair) for pair in zip(seen, agree(home), strict=True)]
    generations.build(home)
    agree(home)
    assert min(seen) > 0, "this history taught nothing, or held nothing"


def test_a_held_note_is_marked_wherever_it_stands(tmp_path: Path) -> None:
    home = str(tmp_path)
    init_home(home, NOW)
    (first,) = write(home, event("note.recorded", {"text": "port 80", "tags": []}, 1))
    (second,) = write(home, event("note.recorded", {"text": "port 81", "tags": [], "held_for": first}, 2, origin="agent"))
    control = {"record": second, "key": "", "until": 0, "reason": "", "by_event": ""}
    for reviewed in (False, True):
        with generations.open_current(home) as summaries:
            rows = summaries.query("SELECT id, held_for, waits, in_force FROM notes ORDER BY at_us")
            assert [tuple(row.values()) for row in rows] == [(first, "", False, True), (second, first, not reviewed, reviewed)]
            assert summaries.query("SELECT held_for FROM records WHERE id = ?", [second]) == [{"held_for": first}]
        write(home, event("record.reviewed", control, 3, origin="human"))
