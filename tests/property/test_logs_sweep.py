"""The fast check of many lines against the careful one: it never accepts what that refuses, and refuses little else."""

from __future__ import annotations

import random
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from projectmem_logs.canonical import fits
from projectmem_logs.digest import sha256_hex
from projectmem_logs.envelope import GENESIS, check_line, seal, uuid7
from projectmem_logs.recovery import joins
from projectmem_logs.sweep import Sweep

STREAM = "00000000000000aa"
ACTOR = {"origin": "observed", "session": "s"}
PAYLOADS: list[dict[str, Any]] = [
    {"text": "plain"}, {"text": 'a "quoted", {braced} [1.5,2e3] ,"digest":" text'}, {"n": [0, -1, 2**53 - 1], "e": {}},
    {"été": "\U0001f600\u2028", "z": None, "a": True}, {}, {"deep": [[[[{"a": [{}]}]]]]}, {"t": ":1.5 ,e [E -.e"},
]  # fmt: skip


def chain(payloads: list[dict[str, Any]], sizes: list[int]) -> list[bytes]:
    """Lines of one stream, in batches of these sizes."""
    lines, prev, seq, at = [], GENESIS, 1, iter(sizes)
    left = next(at) - 1
    batch = 1
    for data in payloads:
        event, line = seal(
            {"kind": "note.recorded", "actor": ACTOR, "data": data, "causes": [uuid7(1, b"c" * 10)] if seq % 3 == 0 else []},
            stream=STREAM, seq=seq, batch=batch, left=left, ts=10**15 + seq, prev=prev, salt=bytes([seq % 256] * 16),
            id=uuid7(seq, b"r" * 10), scope={"project": "p", "tenant": ""},
        )  # fmt: skip
        lines.append(line[:-1])
        prev, seq = event["hash"], seq + 1
        if left == 0:
            batch, left = seq, next(at, 1) - 1
        else:
            left -= 1
    return lines


def careful(lines: list[bytes]) -> int:
    """How many lines from the start are whole, chained and canonical, the slow way."""
    seq, hash, batch, left = 0, GENESIS, 0, 0
    for i, raw in enumerate(lines):
        line = check_line(raw)
        if not line.ok or line.stream != STREAM or joins(line, seq, hash, batch, left):
            return i
        try:
            event = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return i
        if orjson.dumps(event, option=orjson.OPT_SORT_KEYS) != raw or not fits(event):
            return i
        seq, hash, batch, left = line.seq, line.hash, line.batch, line.left
    return len(lines)


def swept(lines: list[bytes]) -> int:
    """The same by the fast way."""
    sweep = Sweep(STREAM)
    done = sweep.run(lines)
    odd = sweep.odd()
    return min([done, *odd])


LINES = chain([PAYLOADS[i % len(PAYLOADS)] for i in range(24)], [1, 2, 5, 1, 1, 3, 4, 7])


def test_lines_as_they_are_written_are_all_taken() -> None:
    """Nothing that this package writes, but an erased line, needs the slow way."""
    assert swept(LINES) == careful(LINES) == len(LINES)
    sweep = Sweep(STREAM)
    assert sweep.run(LINES[:7]) == 7 and sweep.run(LINES, 7) == len(LINES) and sweep.events == len(LINES)
    assert sweep.hash.decode() == check_line(LINES[-1]).hash


def test_every_flipped_bit_stops_the_fast_way_where_the_slow_way_stops() -> None:
    """Sampled bits of every line."""
    rng = random.Random(5)
    for _ in range(3_000):
        i = rng.randrange(len(LINES))
        damaged = bytearray(LINES[i])
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        lines = [*LINES[:i], bytes(damaged), *LINES[i + 1 :]]
        assert swept(lines) == careful(lines) == i


@settings(max_examples=300)
@given(st.permutations(range(6)), st.data())
def test_moved_dropped_repeated_and_spliced_lines_stop_it(order: list[int], data: st.DataObject) -> None:
    """Any order of a few lines, and cuts and splices of one."""
    lines = [LINES[i] for i in order]
    if data.draw(st.booleans()):
        i = data.draw(st.integers(0, 5))
        a, b = data.draw(st.integers(0, 400)), data.draw(st.integers(0, 400))
        lines[i] = lines[i][:a] + data.draw(st.sampled_from([b"", b"\0" * 9, b"\r", b" ", lines[(i + 1) % 6]])) + lines[i][b:]
    assert swept(lines) == careful(lines)


def forged(change: dict[str, bytes], data: bytes = b'{"a":1}') -> bytes:
    """A first line with fields spelled as given, and hashes that fit them."""
    fields = {
        "actor": b'{"agent":"","harness":"","model":"","origin":"observed","session":""}',
        "at": b"5", "batch": b"1", "causes": b"[]",
        "id": b'"0190b6a0-0000-7000-8000-000000000000"', "kind": b'"note.recorded"', "left": b"0",
        "prev": b'"%s"' % GENESIS.encode(), "scope": b'{"project":"p","tenant":""}', "seq": b"1",
        "stream": b'"%s"' % STREAM.encode(), "ts": b"7", "v": b"1", **change,
    }  # fmt: skip
    salt = "12" * 16
    fields["digest"] = b'"%s"' % sha256_hex(bytes.fromhex(salt) + data).encode()
    head = b"{" + b",".join(b'"%s":%s' % (k.encode(), fields[k]) for k in sorted(fields)) + b"}"
    whole = {**fields, "data": data, "salt": b'"%s"' % salt.encode(), "hash": b'"%s"' % sha256_hex(head).encode()}
    return b"{" + b",".join(b'"%s":%s' % (k.encode(), whole[k]) for k in sorted(whole)) + b"}"


FORGED = [
    ({}, b'{"a":1.5}'),
    ({}, b'{"a":[-1e400]}'), ({}, b'{"a":1e16}'), ({}, b'{"a":1E2}'), ({}, b'{"b":1,"a":2}'), ({}, b'{"a": 1}'),
    ({}, b'{"a":1,"a":1}'), ({}, b'{"a":9007199254740993}'), ({}, b'{"a":"\\u0041"}'), ({}, b'{"a":"\\/"}'), ({}, b"{},{}"),
    ({}, b'{"a":-0}'), ({}, b'{"a":01}'), ({}, b'{"a":' + b"[" * 100 + b"]" * 100 + b"}"), ({}, b'{"a":"\xff"}'), ({}, b"1"),
    ({"at": b"05"}, b"{}"), ({"ts": b"7.0"}, b"{}"), ({"ts": b"99999999999999999"}, b"{}"), ({"v": b"2"}, b"{}"),
    ({"actor": b'{"session":"","agent":""}'}, b"{}"), ({"scope": b'{"tenant":"","project":"p"}'}, b"{}"),
    ({"causes": b"[ ]"}, b"{}"), ({"causes": b'["x"]'}, b"{}"), ({"seq": b"1e0"}, b"{}"), ({"kind": b'"A\\u0042"'}, b"{}"),
    ({"id": b'"x"'}, b"{}"), ({"left": b"-0"}, b"{}"), ({"stream": b'"bb"'}, b"{}"),
]  # fmt: skip


def test_records_whose_hashes_fit_but_whose_form_does_not_are_refused() -> None:
    """What something else wrote with care: never accepted when the slow way would not."""
    assert swept([forged({})]) == careful([forged({})]) == 1
    for change, data in FORGED:
        line = forged(change, data)
        assert swept([line]) <= careful([line]), (change, data)
    spread = [forged({}, b'{"a":[{}'), forged({}, b"{}]}")]
    sweep = Sweep(STREAM)
    sweep._payloads = [b'{"a":[{}', b"{}]}", b"{},{}"]
    assert sweep.odd() == [0, 1, 2] and swept(spread) == 0
