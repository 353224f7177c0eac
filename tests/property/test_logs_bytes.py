"""Properties of the log's bytes: one canonical form, total parsing, every flipped bit found."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from projectmem_logs.canonical import MAX_INT, canonical, sanitize
from projectmem_logs.envelope import GENESIS, check_line, open_line, seal, uuid7
from projectmem_logs.erasure import tombstone
from projectmem_logs.errors import CanonicalError, LineError

ACTOR = {"session": "s1", "agent": "", "harness": "claude-code", "model": "m", "origin": "observed"}
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INT, MAX_INT) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
payloads = st.dictionaries(texts, values, max_size=5)
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=5) | st.integers(), inner),
    max_leaves=12,
)


def sealed(data: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """One event in its place, with fixed random bytes."""
    return seal(
        {"kind": "note.recorded", "at": 5, "actor": ACTOR, "causes": [uuid7(1, b"c" * 10)], "data": data},
        stream="abcdef0123456789", seq=7, batch=7, ts=10**15, prev=GENESIS, salt=bytes(range(0x9A, 0xAA)),
        id=uuid7(10**15, b"r" * 10), scope={"project": "p", "tenant": ""},
    )  # fmt: skip


@given(values)
@example({"\u007f\u2028\x00\x1f": '\b\f\r\t"\\/', "é": 1, "e": 2, "\U0001f600": 3, "\ufb01": 4})
def test_canonical_equals_orjson_and_round_trips(value: Any) -> None:
    """json and orjson agree on every canonical value, and reading it back gives the value."""
    data = canonical(value)
    assert data == orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    assert json.loads(data) == value == orjson.loads(data)


@given(anything)
def test_anything_is_refused_or_canonical_and_everything_can_be_sanitized(value: Any) -> None:
    """canonical() gives bytes or our error; after sanitize() it always gives bytes, and sanitize changes nothing twice."""
    try:
        canonical(value)
    except CanonicalError:
        pass
    clean = sanitize(value)
    assert sanitize(clean) == clean and canonical(clean)


@given(payloads)
def test_a_sealed_line_opens_to_its_event(data: dict[str, Any]) -> None:
    """The line is the canonical form of the event, checks, and opens to it."""
    event, line = sealed(data)
    assert line == canonical(event) + b"\n" and open_line(line) == event
    checked = check_line(line[:-1])
    assert (checked.ok, checked.seq, checked.hash, checked.prev) == (True, 7, event["hash"], GENESIS)


@given(payloads)
def test_an_erased_line_still_chains(data: dict[str, Any]) -> None:
    """Without data and salt the hash still verifies, erasing is idempotent, and the line stays canonical."""
    event, line = sealed(data)
    erased = tombstone(line[:-1], by=event["id"], at=9)
    checked = check_line(erased)
    assert (checked.ok, checked.erased, checked.hash) == (True, True, event["hash"])
    opened = open_line(erased)
    assert "data" not in opened and "salt" not in opened and opened["tombstone"] == {"at": 9, "by": event["id"]}
    assert canonical(opened) == erased == tombstone(erased, by=event["id"], at=10)


@given(st.binary(max_size=300) | st.builds(lambda a, b: a + b'{"actor":{"' + b, st.binary(max_size=9), st.binary()))
def test_any_bytes_are_an_event_or_our_error(raw: bytes) -> None:
    """A parser of foreign bytes raises one kind of error only."""
    with pytest.raises(LineError):
        open_line(raw)


@given(payloads, st.integers(0, 10**9), st.integers(0, 10**9))
@settings(max_examples=200)
def test_a_line_with_any_cut_and_splice_is_refused(data: dict[str, Any], a: int, b: int) -> None:
    """Removing any span from a line, or repeating it, never yields a valid line."""
    raw = sealed(data)[1][:-1]
    i, j = sorted((a % (len(raw) + 1), b % (len(raw) + 1)))
    for damaged in (raw[:i] + raw[j:], raw[:j] + raw[i:]):
        assert damaged == raw or not check_line(damaged).ok


def test_every_flipped_bit_of_a_line_is_found() -> None:
    """All single-bit changes of one line, data, salt, hashes and header alike."""
    raw = sealed({"text": "été \U0001f600", "n": [1, -2]})[1][:-1]
    for i in range(len(raw)):
        for bit in range(8):
            damaged = bytearray(raw)
            damaged[i] ^= 1 << bit
            assert not check_line(bytes(damaged)).ok, (i, bit)


@given(st.integers(0, 2**48 * 1000 - 1), st.binary(min_size=10, max_size=10))
def test_ids_are_version_7_and_sort_by_time(now: int, rand: bytes) -> None:
    """RFC 9562: version and variant in place, and a later microsecond's id sorts later."""
    a, b = uuid7(now, rand), uuid7(now + 1, rand)
    assert len(a) == 36 and a[14] == "7" and a[19] in "89ab" and (a < b or now + 1 >= 2**48 * 1000)
