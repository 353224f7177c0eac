"""Preparing and sealing many events at once, for imports: the same bytes as envelope.py, several times as fast.

orjson, OpenSSL's SHA-256 and threads are too heavy to import in the hook. A contract test holds both ways to equal bytes.
"""

from __future__ import annotations

import gc
from binascii import hexlify
from collections.abc import Callable, Sequence
from hashlib import sha256
from struct import iter_unpack
from threading import Thread
from typing import Any

import orjson

from .canonical import MAX_DEPTH, canonical_text
from .envelope import MAX_LINE, VERSION, actor, actor_text, check_draft
from .errors import EventError

# actor, its text up to the value of `at`, at, causes, their text up to the value of `data`, kind, data, their canonical bytes
Encoded = tuple[dict[str, str], bytes, int, list[str], bytes, str, dict[str, Any], bytes]

_OPTIONS = (
    orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)  # fmt: skip
_PLAIN = frozenset((str, int, bool, type(None)))
_NESTED = frozenset((dict, list, tuple))
_KNOWN = _PLAIN | _NESTED
_NO_CAUSES = b',"causes":[],"data":'
_VARIANT = 2 << 62
_AROUND = 1_024  # bytes of a line besides its data, actor and causes: more than there ever are
_NEW = sha256()  # copied and fed: cheaper than making one


def prepare_many(drafts: Sequence[Any], now: int) -> list[Encoded]:
    """`envelope.prepare` of every draft. Raises as it does, before anything is written."""
    out: list[Encoded] = []
    actors: dict[int, tuple[dict[str, str], bytes]] = {}
    with _Uncollected():
        for draft in drafts:
            kind, at, causes, data = check_draft(draft, now)
            given = draft.get("actor") or {}
            known = actors.get(id(given))
            if known is None:
                who = actor(given, kind)
                known = actors[id(given)] = who, f'{{"actor":{actor_text(who)},"at":'.encode()
            text = b',"causes":["' + '","'.join(causes).encode() + b'"],"data":' if causes else _NO_CAUSES
            raw = _encode(data)
            if len(raw) + len(known[1]) + len(text) > MAX_LINE - _AROUND:
                raise EventError(f"{kind}: the event is longer than {MAX_LINE:,} bytes; shorten its data")
            out.append((known[0], known[1], at, causes, text, kind, data, raw))
    return out


def _encode(data: dict[str, Any]) -> bytes:
    if _fits(data):
        try:
            return b"".join((orjson.dumps(data, option=_OPTIONS), b""))  # a copy of its own size: orjson's is cut from a page
        except (TypeError, orjson.JSONEncodeError):
            pass  # the slow way takes it, or says what is wrong and where
    return canonical_text(data).encode()


def _fits(data: dict[str, Any]) -> bool:
    """True when orjson's form of `data` is the canonical one, or it refuses: level by level, many types at a time."""
    level: list[Any] = [data]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            inner = value.values() if type(value) is dict else value
            types = {*map(type, inner)}
            if not types <= _PLAIN:
                if not types <= _KNOWN:
                    return False
                below += [x for x in inner if type(x) in _NESTED]
        if not below:
            return True
        level = below
    return False


def batches(encoded: Sequence[Encoded], size_max: int) -> list[Sequence[Encoded]]:
    """Cut an import into batches of about `size_max` bytes; the last record stands alone, so that the next process to look
    at the tail has one record to check and not four megabytes."""
    out: list[Sequence[Encoded]] = []
    begin = size = 0
    end = len(encoded) - 2
    for i, one in enumerate(encoded):
        size += len(one[7]) + 700
        if size >= size_max or i >= end:
            out.append(encoded[begin : i + 1])
            begin, size = i + 1, 0
    return out


def seal_many(
    batch: Sequence[Encoded],
    *,
    stream: str,
    first: int,
    prev: str,
    ts: int,
    rand: bytes,
    scope: dict[str, str],
    scope_text: str,
    events: bool = True,
) -> tuple[list[dict[str, Any]], bytes, str, str]:
    """As `envelope.seal_all`, and the last record's id and hash besides; without `events` their list stays empty."""
    ms, us = divmod(ts, 1000)  # ids are made a microsecond apart, as envelope.seal_all does
    start = _millisecond(ms)
    scope_part, end_part = f',"scope":{scope_text},"seq":'.encode(), f',"stream":"{stream}","ts":{ts},"v":{VERSION}}}'.encode()
    kinds: dict[str, bytes] = {}
    made: list[dict[str, Any]] = []
    lines: list[bytes] = []
    last, left, seq, id = prev.encode(), len(batch), first - 1, b""
    with _Uncollected():
        for one, (salt, bits) in zip(batch, iter_unpack(">16sQ2x", rand), strict=True):
            who, head, at, causes, text, kind, data, raw = one
            left -= 1
            seq += 1
            low = b"%016x" % (_VARIANT | bits >> 2)
            id = b"%b%03x-%b-%b" % (start, us * 4096 // 1000, low[:4], low[4:])
            us += 1
            if us == 1000:
                ms, us = ms + 1, 0
                start = _millisecond(ms)
            digest, whole = _NEW.copy(), _NEW.copy()
            digest.update(salt + raw)
            digest_hex = hexlify(digest.digest())
            before = b'%b%d,"batch":%d%b' % (head, at, first, text)
            named = kinds.get(kind) or kinds.setdefault(kind, kind.encode())
            middle = b',"id":"%b","kind":"%b","left":%d,"prev":"%b"' % (id, named, left, last)
            after = b"%b%d%b" % (scope_part, seq, end_part)
            whole.update(b'%b,"digest":"%b"%b%b' % (before[:-8], digest_hex, middle, after))
            hash = hexlify(whole.digest())
            salt_hex = hexlify(salt)
            lines.append(
                b'%b%b,"digest":"%b","hash":"%b"%b,"salt":"%b"%b\n' % (before, raw, digest_hex, hash, middle, salt_hex, after)
            )
            if events:
                made.append({
                    "v": VERSION, "id": id.decode(), "stream": stream, "seq": seq, "batch": first, "left": left, "ts": ts,
                    "at": at, "kind": kind, "scope": dict(scope), "actor": who, "causes": causes, "data": data,
                    "salt": salt_hex.decode(), "digest": digest_hex.decode(), "prev": last.decode(), "hash": hash.decode(),
                })  # fmt: skip
            last = hash
    return made, b"".join(lines), id.decode(), last.decode()


def _millisecond(ms: int) -> bytes:
    high = f"{ms & 0xFFFFFFFFFFFF:012x}"
    return f"{high[:8]}-{high[8:]}-7".encode()


class Behind:
    """One call running beside the caller; `join` waits for it and raises what it raised."""

    def __init__(self, call: Callable[..., None], *args: Any) -> None:
        self._call, self._args = call, args
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="projectmem import")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call(*self._args)
        except BaseException as e:
            self._error = e

    def join(self) -> None:
        """Wait, then raise what the call raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error


class _Uncollected:
    """The collector does not run inside: a hundred thousand new objects without a cycle are not worth its walks."""

    def __enter__(self) -> None:
        self._on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._on:
            gc.enable()
