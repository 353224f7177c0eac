"""Text from the log is shown, never obeyed; JSON stays JSON; progress keeps off pipes."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projectmem import output

HOUR = 3_600_000_000


@given(st.text(st.characters()))
def test_safe_leaves_no_control_character(text: str) -> None:
    """Whatever was recorded: no control, no escape, no direction override, nothing that cannot be encoded."""
    shown = output.safe(text)
    shown.encode("utf-8")
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in "\u202a\u202e\u2066\u2069\u200f"]


def test_safe_spells_out_escapes_and_keeps_lines_only_when_asked() -> None:
    """An escape sequence is visible; a newline cannot start a line of its own."""
    assert output.safe("a\x1b[31mred\x1b[0m\x9b2J\x07") == "a\\x1b[31mred\\x1b[0m\\x9b2J\\x07"
    assert output.safe("a\nb\tc\r") == "a\\nb\\tc\\r"
    assert output.safe("a\r\nb\tc\x1b", lines=True) == "a\nb\tc\\x1b"
    assert output.safe("abcdef", limit=4) == "abc…"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters()),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_json_is_valid_and_carries_no_terminal_escape(value: object) -> None:
    """What is printed with --json parses back to the same, and no byte of it drives a terminal."""
    text = output.to_json(value)
    text.encode("utf-8")
    assert json.loads(text) == value
    assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"]


def test_colour_only_where_it_is_wanted() -> None:
    """Off means plain text."""
    assert output.Paint(False)("red", "x") == "x"
    assert output.Paint(True)("red", "x") == "\x1b[31mx\x1b[0m"


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (0, "never"),
        (-5, "never"),
        (1, "1970-01-01 00:00:00Z"),
        (1_796_000_000_000_000, "2026-11-30 00:53:20Z"),
        (10**30, f"{10**30} us"),
    ],
)
def test_when_is_total(at: int, said: str) -> None:
    """Any integer has a text."""
    assert output.when(at) == said


def test_spans_are_in_one_unit() -> None:
    """A person's unit, cut and not rounded up."""
    assert output.span(45_000_000) == "45 s"
    assert output.span(119_000_000) == "119 s"
    assert output.span(HOUR) == "60 min"
    assert output.span(30 * HOUR) == "30 h"
    assert output.span(49 * HOUR) == "2 days"
    assert output.span(1000 * HOUR) == "6 weeks"
    assert output.ago(HOUR, 3 * HOUR) == "2 h ago"
    assert output.ago(3 * HOUR, HOUR) == "in 2 h"
    assert output.ago(0, HOUR) == "never"


def test_table_fits_the_width() -> None:
    """Only the last column is cut."""
    lines = output.table([["warn", "x" * 200], ["deny", "short"]], ("GATE", "ACTION"), width=40)
    assert lines[0] == "GATE  ACTION"
    assert all(len(line) <= 40 for line in lines)
    assert lines[1].endswith("…")
    assert output.table([], ("A",)) == []


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_passes_everything_and_is_silent_off_a_terminal() -> None:
    """No bar in a pipe; every item comes through in order."""
    pipe = io.StringIO()
    assert list(output.progress(range(1000), "x", stream=pipe)) == list(range(1000))
    assert pipe.getvalue() == ""
    terminal = _Terminal()
    assert list(output.progress(range(1000), "x", stream=terminal)) == list(range(1000))
    assert terminal.getvalue() == "", "nothing is shown for what takes less than a second"


def test_progress_shows_a_bar_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, once it takes long enough to wonder."""
    clock = iter(range(10_000))
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
    terminal = _Terminal()
    assert sum(1 for _ in output.progress(range(1000), "counting", total=1000, stream=terminal)) == 1000
    assert "counting" in terminal.getvalue()


def test_long_lines_are_broken_at_spaces_and_stay_what_they_are() -> None:
    """A quotation's mark before each part, other lines further in, words that are to be copied whole, short lines untouched."""
    long = "ab " * 12 + "x" * 40
    text = f"short  line\n  fact {long}\n  > {long}\n\n    | two   spaces"
    lines = output.wrapped(text, 30).split("\n")
    assert lines[0] == "short  line" and lines[-2:] == ["", "    | two   spaces"]
    assert lines[1].startswith("  fact ab") and lines[2].startswith("      ab")
    quoted = lines[next(i for i, line in enumerate(lines) if line.startswith("  > ")) : -2]
    assert len(quoted) > 2 and all(line.startswith("  > ") for line in quoted)
    assert all(len(line) <= 30 or "x" * 40 in line for line in lines)
    assert output.wrapped(text, 200) == text
    assert "`projectmem snooze 01a22ff6 --for 2h`" in output.wrapped(
        "Not now? " * 3 + "`projectmem snooze 01a22ff6 --for 2h`.", 40
    )
