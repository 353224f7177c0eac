"""Canonical JSON: what it accepts, what it refuses and how it says so, and that anything can be made to fit."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest
from projectmem_logs.canonical import MAX_DEPTH, MAX_INT, canonical, sanitize
from projectmem_logs.digest import hmac_sha256_hex, sha256_hex
from projectmem_logs.errors import CanonicalError


def test_keys_are_sorted_and_nothing_is_padded() -> None:
    """One byte form: sorted keys, no spaces, text as UTF-8."""
    assert canonical({"b": [1, True, None], "a": "é\n", "Z": ""}) == '{"Z":"","a":"é\\n","b":[1,true,null]}'.encode()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [0, 1.5]}, "$.a[1]"),
        ({"a": float("nan")}, "$.a"),
        ({"a": MAX_INT + 1}, "$.a"),
        ({"a": -MAX_INT - 1}, "$.a"),
        ({"a": {"b": "\ud800"}}, "$.a.b"),
        ({"\udfff": 1}, "$"),
        ({1: 2}, "$"),
        ({"a": b"x"}, "$.a"),
        ({"a": {"x"}}, "$.a"),
    ],
)
def test_what_has_no_canonical_form_is_refused_by_path(value: Any, path: str) -> None:
    """The message leads with the path of the first bad value."""
    with pytest.raises(CanonicalError) as e:
        canonical(value)
    assert str(e.value).startswith(f"{path}:")


def test_the_limits_themselves_are_allowed() -> None:
    """+-2**53 and MAX_DEPTH levels pass, one more does not."""
    deep: Any = "x"
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert canonical([MAX_INT, -MAX_INT]) and canonical(deep)
    with pytest.raises(CanonicalError, match="deeper"):
        canonical([deep])


def test_a_cycle_is_refused_not_followed() -> None:
    """A value that contains itself ends as an error."""
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(CanonicalError, match="deeper"):
        canonical(loop)


def test_sanitize_keeps_what_fits_and_spells_out_what_does_not() -> None:
    """Floats and huge integers become text, lone surrogates their escape, foreign types their str."""
    given = {"f": 1.5, "big": 2**60, "bad": "\ud800x", 3: (1, "a"), "huge": 10**5000, "b": b"x"}
    out = sanitize(given)
    assert out["f"] == "1.5" and out["big"] == str(2**60) and out["bad"] == "\\ud800x" and out["3"] == [1, "a"]
    assert out["huge"].startswith("0x") and out["b"] == "b'x'"
    assert sanitize({"a": [1, "x", None, True]}) == {"a": [1, "x", None, True]}


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000])
def test_digests_are_the_standard_ones(size: int) -> None:
    """The cheap SHA-256 and HMAC equal the standard library's for keys shorter and longer than a block."""
    data, key = bytes(range(256)) * 4, bytes(size)
    assert sha256_hex(data[:size]) == hashlib.sha256(data[:size]).hexdigest()
    assert hmac_sha256_hex(key, data) == hmac.new(key, data, "sha256").hexdigest()
