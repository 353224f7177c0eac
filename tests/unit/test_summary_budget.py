"""Summaries within any budget, one token more or less included; the same thing said twice stands in them once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_projections.scope import Scope

from projectmem import briefing, record, render, summary
from projectmem.cli import app
from projectmem.place import Place

NOW = 1_796_000_000_000_000


@pytest.fixture
def place(accepted: Callable[[str], Path]) -> Place:
    """A log with a few writings, two of which say the same."""
    root = accepted("agent")
    place = Place(str(root), str(root / ".projectmem-gate"))
    writings: list[tuple[str, dict[str, Any]]] = [
        ("fix.recorded", {"issue": "", "text": "Cart rounding in src/cart.py is fixed", "verifier": "none"}),
        ("fix.recorded", {"issue": "", "text": "cart rounding in  src/cart.py is fixed", "verifier": "none"}),
        ("issue.opened", {"issue": "aa11aa11", "title": "Totals differ", "paths": ["src/cart.py"]}),
        ("issue.opened", {"issue": "bb22bb22", "title": "totals differ", "paths": ["src/cart.py"]}),
        ("decision.recorded", {"title": "Money is counted in cents, see src/cart.py", "text": "", "supersedes": ""}),
        ("note.recorded", {"text": "ü" * 300 + " src/cart.py", "tags": []}),
    ]
    for at, (kind, data) in enumerate(writings):
        record.record(place, kind, data, now=NOW + at, origin="agent")
    return place


def summaries(place: Place, budget: int) -> list[str]:
    """Of a session, of a path and of a period."""
    now, scope = NOW + 1_000_000, Scope(place.project)
    more = {"now": now, "nonce": "n" * 12, "budget_tokens": budget}
    found = [summary.session_summary(place.home, scope=scope, **more)]  # type: ignore[arg-type]
    return found + [briefing.about(place, what, verdict=lambda _: "", **more) for what in ("src/cart.py", "2000d")]  # type: ignore[arg-type]


def test_no_budget_is_overrun_and_one_that_just_suffices_is_used(place: Place) -> None:
    full = summaries(place, 10_000)
    needed = [render.tokens(text) for text in full]
    for budget in (1, 2, 66, 67, 68, 100, *needed, *(n - 1 for n in needed), *(n + 1 for n in needed)):
        for whole, text in zip(full, summaries(place, budget), strict=True):
            assert render.tokens(text) <= budget
            assert (text == whole) == (budget >= render.tokens(whole))
            assert not text or ("\n- " in text and text.endswith(">")), "a block is whole, and says something"


def test_what_is_said_twice_is_told_once(place: Place) -> None:
    for text in summaries(place, 10_000):
        assert text.lower().count("totals differ") == 1
        assert text.lower().count("cart rounding") == 1


def test_a_budget_in_which_nothing_fits_is_not_called_nothing(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["summary", "--budget", "60"]) == 0
    assert "none of it fits into 60 tokens" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "most"), [("note", "20,000"), ("issue", "500"), ("decision", "500")])
def test_a_text_that_is_too_long_is_refused_in_one_line(
    place: Place, kind: str, most: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("word " * 1_000_000))
    assert app.run(["record", kind, "-"]) == 2
    said = capsys.readouterr().err
    assert f"more than {most} characters" in said and len(said) < 200
