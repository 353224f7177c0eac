"""The loop that finds names of files in an output, against the regular expression that says what they are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from projectmem.hook.told_files import file_words

PATTERN = r"[\w@+~./\\-]*[\w-]\.\w{1,10}"


@given(st.text(st.sampled_from("ab9._-/\\@+~: ()\n'é…µ٣x"), max_size=40) | st.text(max_size=60))
def test_words_that_look_like_files_are_those_of_the_pattern(text: str) -> None:
    """`re` would be a fifth of what the hook costs after a failure."""
    assert file_words(text) == list(dict.fromkeys(re.findall(PATTERN, text)))
