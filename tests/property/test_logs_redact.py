"""Redaction is idempotent and total on any text made of secrets, names, separators and noise."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from projectmem_logs.redact import _LONG, Redactor

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
