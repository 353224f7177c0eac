"""The hook's JSON reader answers exactly as `json` does, on every input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_logs import fastjson

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def _either(read: Any, raw: bytes | str) -> Any:
    try:
        return read(raw)
    except (ValueError, RecursionError):
        return ValueError


@given(_values, st.sampled_from(["", " ", "\n\t", "\r\n"]), st.sampled_from(["", " ", "\n", "\t\r"]))
def test_reads_what_json_writes(value: Any, before: str, after: str) -> None:
    """Every JSON value comes back, with blanks around it."""
    assert fastjson.loads((before + json.dumps(value) + after).encode()) == value


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsnu \\\n\x00\u20ac', max_size=40))
def test_refuses_what_json_refuses(text: str) -> None:
    """Arbitrary text is refused by both or read by both to the same value."""
    raw = text.encode()
    ours, theirs = _either(fastjson.loads, raw), _either(json.loads, text)
    assert repr(ours) == repr(theirs)  # repr, because NaN is not equal to itself


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_value_error(raw: bytes) -> None:
    """Bytes that are no UTF-8 or no JSON raise ValueError and nothing else."""
    try:
        fastjson.loads(raw)
    except ValueError:
        return


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    """Nesting beyond the interpreter's limit is refused as `json` refuses it."""
    with pytest.raises((RecursionError, ValueError)):
        fastjson.loads(b"[" * 200_000)


def test_without_json_loaded_too() -> None:
    """In a hook's process the scanner may not find its own error class (from Python 3.13 on it loads it, then only)."""
    code = "import sys\nsys.path.append(sys.argv[1])\nfrom projectmem_logs.fastjson import loads\n"
    code += "print(loads(b'[1]'), 'json' in sys.modules)\ntry:\n    loads(b'{oops')\nexcept ValueError:\n    print('refused')\n"
    folder = str(Path(fastjson.__file__).parents[1])
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, folder], capture_output=True, text=True, check=True)
    assert done.stdout == "[1] False\nrefused\n"
