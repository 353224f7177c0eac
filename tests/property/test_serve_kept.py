"""What a resident process stores in the snapshot is the text that any other process would have stored."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from projectmem_logs import fastjson

from projectmem.serve import kept

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def _either(encode: Any, value: Any) -> Any:
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError) as exc:
        return type(exc)


@given(_values)
@example({"\ue000": 1, "\U00010000": 2, "\x7f\x1f\u2028": "\ud800"})
@example([2**80, -(2**70)])
@example({1: 2})
@example({"a": {"b"}})
def test_the_faster_way_writes_the_same_text(value: Any) -> None:
    """Of every value that an event can hold, and of some that none can."""
    assert _either(kept._encoded, value) == _either(fastjson.encode, value)
