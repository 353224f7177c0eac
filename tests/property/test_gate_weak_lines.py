"""The look before the pattern of lines that say nothing never hides one from it."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_gate.lines import rx
from projectmem_gate.signature import _WEAK, is_weak


@given(st.from_regex(re.compile(_WEAK, re.MULTILINE)))
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_line_that_the_pattern_matches_passes_the_look(text: str) -> None:
    """Lines made from the pattern itself, all of its alternatives."""
    for line in text.split("\n"):
        assert is_weak(line) is (rx(_WEAK).match(line) is not None), line
