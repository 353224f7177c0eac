"""Redaction is idempotent and total on any text made of secrets, names, separators and noise."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from projectmem_logs.redact import _LONG, Redactor, _behind, _clean, _long_runs
from projectmem_logs.redact_names import _FLAT, _NAMES, assigned, named
from projectmem_logs.redact_places import GATES, JUDGED, PLACES

R = Redactor(b"k" * 32)
MIX = "a1B2c3D4e5F6g7H8i9J0" * 2
NAMES = ["password", "PASSWORD", "token", "api_key", "secret", "_KEY", "Authorization: ", "Bearer ", "export X=", "--"]
MARKS = ["=", ": ", '"', "'", " ", "\n", ",", ";", "&", "$", "{", "}", "(", ")", "\\", '\\"', ">", ".", "://", "@host"]
VALUES = ["hunter2", "abcd1234efgh", MIX, "ghp_" + MIX, "AKIA" + "IOSFODNN7EXAMPLE", "bob:", "MIIEvQIBADANBgkqhkiG9w0B", "x"]
ODD = ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "curl -u ", "mysql -p", "sk-", "eyJ", "é", "İ", "\ud800"]
PIECES = [*NAMES, *MARKS, *VALUES, *ODD, "<secret:0123456789ab>", "<secret:"]
leaves = st.none() | st.integers() | st.text(max_size=8) | st.sampled_from(PIECES)
trees = st.recursive(leaves, lambda x: st.lists(x) | st.dictionaries(st.sampled_from(PIECES), x), max_leaves=8)


@given(st.lists(st.sampled_from(PIECES) | st.text(st.characters(), max_size=4), max_size=14).map("".join))
@settings(max_examples=1500)
def test_redacting_twice_changes_nothing(text: str) -> None:
    """text(text(x)) == text(x), and a mark that was there stays readable."""
    once = R.text(text)
    assert R.text(once) == once


@given(trees)
def test_trees_twice_change_nothing(tree: object) -> None:
    """The same for any JSON value."""
    once = R.tree(tree)
    assert R.tree(once) == once


WORDS = st.sampled_from(
    "pass password secret token key bearer authorization akia basic login curl mysql env arg set export".split()
)


@given(st.lists(st.characters(categories=["L"]).map(str) | WORDS | WORDS.map(str.upper), max_size=6).map("".join))
@settings(max_examples=1000)
def test_no_word_is_a_secret(word: str) -> None:
    """What is passed over at once, a few letters and nothing else, is what the full search leaves alone too."""
    if len(word) < _LONG and word.isalpha():
        assert R._once(word) == word


NAME_PIECES = st.sampled_from(
    [*(word for _, words, _ in _NAMES for word in words), "pass", "Key", "name", "_", "-", "x", "İ", "1"]
)


@given(st.lists(NAME_PIECES, max_size=4).map("".join), st.sampled_from([*VALUES, "a b", 'pass"word=x1y2', "token: abcd1234"]))
@settings(max_examples=1000)
def test_a_name_passed_over_at_once_gives_nothing_away(name: str, value: str) -> None:
    """The names that are not looked at any further are those in which the full search finds nothing."""
    probe = f'"{name}":"{value.translate(_FLAT)}"'
    found = (len(name) + 4, len(probe) - 1) in assigned(probe, probe.lower())
    if name.lower() != "pass":
        assert named(name, value) == found


@given(st.dictionaries(st.sampled_from(PIECES), leaves, max_size=4))
def test_names_that_are_remembered_as_clean_are(tree: dict[str, object]) -> None:
    """A member's name that was looked at before is what a full look makes of it."""
    first, again = R.tree(tree), R.tree(tree)
    assert first == again
    assert all(R.text(name) == name for name in _clean)


@given(st.lists(st.sampled_from([*PIECES, "ghp_", "a" * 15, "a" * 16, "%41", "é", "\ud800", " ", "\n", "x.y-z_0"]), max_size=8))
def test_long_runs_are_those_that_a_split_finds(pieces: list[str]) -> None:
    """Whatever stands between them, and at either end."""
    text = "".join(pieces)
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_-.%") else " " for c in text)
    assert _long_runs(text).split(" ") == ([run for run in kept.split(" ") if len(run) >= _LONG] or [""])


@given(st.lists(st.sampled_from(GATES), unique=True))
def test_what_is_looked_for_behind_gates_is_in_the_order_of_the_tables(gates: list[str]) -> None:
    """Those of the places first, each once."""
    rows = [(n, p, judged) for table, judged in ((PLACES, False), (JUDGED, True)) for g, n, p in table if g in gates]
    assert _behind(tuple(gates)) == rows == _behind(tuple(gates))


@given(
    st.lists(st.sampled_from(["export", "EXport", "machine", "amachine", "é", "_", " ", "\n", "-", "1", "x="]), max_size=8).map(
        "".join
    )
)
def test_patterns_that_begin_with_characters_find_what_a_look_around_does(text: str) -> None:
    """At the beginning of a text and behind any character."""
    patterns = [p for _, _, p in (*PLACES, *JUDGED) if "xport)" in p or "machine" in p]
    assert sorted({p[:22] for p in patterns}) == [r"[eE](?i:xport)\s+(?!\w", r"machine(?<!\wmachine)("]
    for ours, plain in ((r"[eE](?i:xport)\s+", r"(?i:export)\s+"), (r"machine(?<!\wmachine)", r"\bmachine")):
        assert [m.span() for m in re.finditer(ours, text)] == [m.span() for m in re.finditer(plain, text)]
