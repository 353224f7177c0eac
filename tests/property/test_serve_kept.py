"""What a resident process stores in the snapshot is the text that any other process would have stored."""

from __future__ import annotations

from typing import Any

import pytest
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


_texts = st.builds(fastjson.encode, _values.filter(lambda value: not isinstance(_either(fastjson.encode, value), type)))
_below = ["-9223372036854775809", "[-9223372036854775809]", '{"a": -9223372036854775809}', "[0,\n-9223372036854775809,1]"]
_numbers = ["1e400", "-0", "[1.5]", "[NaN]", "18446744073709551616", "18446744073709551615", "[-9223372036854775808]"]
_odd = st.sampled_from([*_numbers, *_below, '"\\ud800"', '{"a":1,"a":2}', "", "{} x"])


def test_times_in_a_text_are_no_long_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark of a program or a large file ends in nanoseconds: 19 digits behind a hyphen, in every row of a failure."""
    monkeypatch.setattr(kept, "loads", lambda raw: pytest.fail("it was read the slow way"))
    text = '{"tools":{"make":"/usr/bin/make 240280-1618062915000000000"},"files":{"a":"~9-1796094182804843123"},"n":-5}'
    assert kept._decoded(text) == fastjson.loads(text)


@given(_texts | _odd | st.text())
@example('{"n": 340282366920938463463374607431768211456}')
@example("[" * 2000 + "]" * 2000)
def test_the_faster_way_reads_the_same_value(text: str) -> None:
    """Of every text that was stored, and of damage; a number of any length stays itself."""
    one, other = _either(kept._decoded, text), _either(fastjson.loads, text)
    assert repr(one) == repr(other)  # NaN is not equal to itself, and 1 is equal to 1.0
