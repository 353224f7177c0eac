"""Checks runs of whole lines several times as fast as `envelope.check_line`, for reading much: the same verdict, or none.

A line as this package writes it is proven whole, chained and canonical from slices: the chain's fields stand in known
places, both hashes are taken over the line's own bytes, actor and scope are among the few already proven, and payloads are
parsed and encoded again many at a time. Whatever is not plainly so is left to the careful way, which names what is wrong.
"""

from __future__ import annotations

import os
import re
from binascii import hexlify, unhexlify
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import orjson

from .canonical import MAX_DEPTH, fits

_INT = rb"(?:0|[1-8][0-9]{0,15}|9[0-9]{0,14})"  # canonical, and within 2**53
_ID = rb"[0-9a-f-]{36}"
_PREFIX = re.compile(rb'(\{"actor":\{.*?\}),"at":').match
_BEFORE = re.compile(rb"%s,\"batch\":(%s),\"causes\":\[(?:\"%s\"(?:,\"%s\")*)?\],\"data\":" % (_INT, _INT, _ID, _ID)).match
_AFTER = (
    rb',"digest":"(?s:.){64}","hash":"(?s:.){64}","id":"%s","kind":"[a-z._]{1,64}","left":(%s)'
    rb',"prev":"((?s:.){64})","salt":"([0-9a-f]{32})","scope":%s,"seq":(%s),"stream":"%s","ts":%s,"v":1\}'
)
_SCOPE = re.compile(rb',"salt":"[0-9a-f]{32}","scope":(\{[^{}]*\}),"seq":').search
# A number that is no integer has, after its digits and sign are gone, a point or an exponent right behind what opens it.
_OPENERS, _SIGNS = bytes.maketrans(b"[,eE", b"::.."), b"-0123456789"
_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


class Sweep:
    """Follows one stream's chain: `seq`, `hash` (hex, as bytes), `batch` and `left` of the record before.

    events  how many records were accepted so far
    """

    __slots__ = ("_after", "_mark", "_payloads", "_prefix", "_proven", "batch", "events", "hash", "left", "seq", "stream")

    def __init__(self, stream: str) -> None:
        self.stream = stream.encode()
        self.seq, self.hash, self.batch, self.left = 0, b"0" * 64, 0, 0
        self.events = 0
        self._after: Callable[[bytes, int], re.Match[bytes] | None] | None = None
        self._prefix = b"-"  # of the line before: everything up to the value of `at`
        self._proven: set[bytes] = set()
        self._mark = b",%d," % (10**15 + int.from_bytes(os.urandom(6), "big"))  # no payload can know it
        self._payloads: list[bytes] = []

    def run(self, lines: Sequence[bytes], start: int = 0) -> int:
        """Accept lines (without newlines) from `start` on as long as each is plainly whole and follows; returns the index
        of the first that is not, `len(lines)` when all are. Call `odd` afterwards."""
        seq, last, batch, left = self.seq, self.hash, str(self.batch).encode(), self.left
        before, after, prefix = _BEFORE, self._after, self._prefix
        payloads = self._payloads = []
        if start < len(lines) and after is None:
            after = self._learn(lines[start])
        if after is None:
            return start
        size = len(prefix)
        for raw in lines[start:] if start else lines:
            if not raw.startswith(prefix):
                prefix = self._prove_actor(raw)
                size = len(prefix)
            d = raw.rfind(b',"digest":"')
            tail, head = after(raw, d), before(raw, size)
            if tail is None or head is None or d < 0:
                break
            left_text, prev, salt, seq_text = tail.groups()
            if prev != last or int(seq_text) != seq + 1:
                break
            left_now = int(left_text)
            if not left:
                batch = seq_text
            elif left_now != left - 1:
                break
            if head[1] != batch:
                break
            p, s = head.end(), tail.start(3) - 9
            data, hash = raw[p:d], raw[d + 85 : d + 149]
            whole = sha256(b"".join((raw[: p - 8], raw[d : d + 76], raw[d + 150 : s], raw[s + 42 :])))
            if hexlify(whole.digest()) != hash or hexlify(sha256(unhexlify(salt) + data).digest()) != raw[d + 11 : d + 75]:
                break
            payloads.append(data)
            seq, last, left = seq + 1, hash, left_now
        self.seq, self.hash, self.batch, self.left, self._prefix = seq, last, int(batch), left, prefix
        self.events += len(payloads)
        return start + len(payloads)

    def odd(self) -> list[int]:
        """Which of the lines that the last `run` accepted, counted from its start, have a payload that is not canonical."""
        payloads = self._payloads
        if not payloads:
            return []
        joined = b"".join((DEEPER, b"[", self._mark.join(payloads), b"]", _UP))
        try:
            parsed = orjson.loads(joined)
            same = orjson.dumps(parsed, option=_OPTIONS) == joined and no_floats(joined)
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            same = False
        if same:
            for _ in DEEPER:
                (parsed,) = parsed
            if len(parsed) == 2 * len(payloads) - 1:
                return []
        return [i for i, data in enumerate(payloads) if not _canonical(data)]

    @staticmethod
    def hash_of(raw: bytes) -> bytes:
        """The `hash` (hex) of an accepted line."""
        d = raw.rfind(b',"digest":"')
        return raw[d + 85 : d + 149]

    @staticmethod
    def parse(raw: bytes) -> dict[str, Any] | None:
        """The event of an accepted line, None when it is no JSON (its hashes fit all the same)."""
        try:
            event: dict[str, Any] = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return None
        return event

    def _learn(self, raw: bytes) -> Any:
        """The scope is the same in nearly every line of a stream: prove it once and look for it literally."""
        found = _SCOPE(raw)
        if found is None or not _canonical(found[1]):
            return None
        pattern = _AFTER % (_ID, _INT, re.escape(found[1]), _INT, re.escape(self.stream), _INT)
        self._after = re.compile(pattern).fullmatch
        return self._after

    def _prove_actor(self, raw: bytes) -> bytes:
        """What `raw` begins with, up to the value of `at`; something that no line has when that is not canonical."""
        found = _PREFIX(raw)
        if found is None:
            return b"-"
        if found[1] not in self._proven:
            if not _canonical(found[1] + b"}"):
                return b"-"
            if len(self._proven) >= _PROVEN_MAX:
                self._proven.clear()
            self._proven.add(found[1])
        return found[0]


def no_floats(text: bytes) -> bool:
    """True when compact JSON holds integers only; False also for text that looks as if it did not."""
    return b":." not in text.translate(_OPENERS, _SIGNS)


def _canonical(text: bytes) -> bool:
    try:
        value = orjson.loads(text)
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == text and fits(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return False


def _depth() -> int:
    """How deep payloads must lie for orjson to refuse the first that is nested deeper than canonical JSON may be."""
    value: Any = 0
    for _ in range(MAX_DEPTH):
        value = [value]
    depth = 0
    while depth < 10_000:
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError:
            return depth - 2  # this one was too many; the list of payloads is one more
        value, depth = [value], depth + 1
    return 0


_PROVEN_MAX = 4_096
DEEPER = b"[" * _depth()
_UP = b"]" * len(DEEPER)
