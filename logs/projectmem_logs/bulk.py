"""Preparing and sealing many events at once, for imports: the same bytes as envelope.py, several times as fast.

orjson, OpenSSL's SHA-256 and threads are too heavy to import in the hook. A contract test holds both ways to equal bytes.
"""

from __future__ import annotations

import enum
import gc
import marshal
import math
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from hashlib import sha256
from threading import Thread
from typing import Any

import orjson

from .canonical import MAX_INT, canonical_text, fits
from .envelope import ACTOR_FIELDS, ID_BYTES, MAX_CAUSES, MAX_LINE, SALT_BYTES, VERSION, Prepared, actor, actor_text, check_draft
from .errors import EventError
from .sweep import DEEPER, no_floats

# Who and what, the same for many events: actor, kind, the text of a line up to the value of `at`, and from `kind` to `left`.
Run = tuple[dict[str, str], str, str, str]
# The run, at, causes, data (None where only its bytes are at hand), and the canonical bytes of data.
Encoded = tuple[Run, int, list[str], dict[str, Any] | None, bytes]

_OPTIONS = (
    orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)  # fmt: skip
_BLOCK = 64  # payloads encoded at a time: they stay in the processor's cache
_FEW = 4  # so many payloads are not worth the preparations
_MARK = 2**52 + 7  # between payloads; where one holds it too, the pieces are too many and each is encoded alone
_SPLIT = b",%d," % _MARK
_CUT = len(DEEPER) + 1
_RUNS_MAX = 4_096
_AROUND = 1_024  # bytes of a line besides its data, actor and causes: more than there ever are
_LONG = MAX_LINE - 40 * MAX_CAUSES - 10_000  # bytes of data that fit whatever is around them
_STEP = SALT_BYTES + ID_BYTES
_VARIANT = bytes(0x80 | byte & 0x3F for byte in range(256))
_runs: dict[tuple[Any, ...], Run] = {}
_FRACTIONS = [f"{us * 4096 // 1000:03x}-" for us in range(1000)]


def prepare_many(drafts: Sequence[Any], now: int) -> list[Encoded]:
    """`envelope.prepare` of every draft. Raises as it does, before anything is written."""
    if len(drafts) == 1:
        return [_one(drafts[0], now)]
    out: list[Encoded] = []
    for begin in range(0, len(drafts), _BLOCK):
        block = drafts[begin : begin + _BLOCK]
        out += _quickly(block, now) or [_carefully(draft, now) for draft in block]
    return out


def _one(draft: Any, now: int) -> Encoded:
    """What a store that lives on appends, most of the time."""
    try:
        kind, at, causes, data = check_draft(draft, now)
        run = _run(draft.get("actor"), kind)
        raw = orjson.dumps(data, option=_OPTIONS) if _TRUSTED and fits(data) else b""
        if 0 < len(raw) <= _LONG:
            return run, at, causes, data, raw
    except (EventError, TypeError, ValueError):
        pass  # what is wrong is named below
    return _carefully(draft, now)


def _quickly(block: Sequence[Any], now: int) -> list[Encoded]:
    """A block of drafts, or nothing at all where one is not plainly right."""
    runs: list[Run] = []
    ats, causes, payloads = [], [], []
    last = last_kind = None
    run: Any = None
    try:
        for draft in block:
            get = draft.get
            kind, at, data, given = get("kind"), get("at"), get("data"), get("actor")
            because: list[str] = []
            # Five fields, and these three as they should be, of a kind and actor seen just before: nothing to check.
            same = last is not None and given is last and kind == last_kind and len(draft) == 5 and not get("causes", 1)
            if not same or type(at) is not int or not 0 <= at <= MAX_INT or type(data) is not dict:
                kind, at, because, data = check_draft(draft, now)
                run, last, last_kind = _run(given, kind), given, kind
            runs.append(run)
            ats.append(at)
            causes.append(because)
            payloads.append(data)
        raws = _encode(payloads) if _TRUSTED else []
    except EventError:
        return []
    if len(raws) != len(payloads) or max(map(len, raws)) > _LONG:
        return []
    return list(zip(runs, ats, causes, payloads, raws, strict=True))


def _run(given: Any, kind: str) -> Run:
    """Made once for each actor and kind, as far as a few thousand of them go."""
    key = (kind, *given.items()) if type(given) is dict and len(given) == len(ACTOR_FIELDS) else ()
    run = _runs.get(key)
    if run is None:
        who = actor(given or {}, kind)
        run = who, kind, f'{{"actor":{actor_text(who)},"at":', f'","kind":"{kind}","left":'
        if key and who == given:  # text, and no longer than it may be
            if len(_runs) >= _RUNS_MAX:
                _runs.clear()
            _runs[key] = run
    return run


def encoded(kind: str, at: int, actor: dict[str, str], raw: bytes) -> Encoded:
    """A draft without causes that `prepare_many` took in another process of this program: `raw` is what it made of the data."""
    return _run(actor, kind), at, [], None, raw


def read(raw: bytes) -> dict[str, Any]:
    """Data from its bytes."""
    found: dict[str, Any] = orjson.loads(raw)
    return found


def prepared(one: Encoded) -> Prepared:
    """The same as envelope.prepare has it."""
    (who, kind, _, _), at, causes, data, raw = one
    return Prepared(kind, at, who, causes, read(raw) if data is None else data, raw.decode())


def _carefully(draft: Any, now: int) -> Encoded:
    """One draft as `envelope.prepare` takes it: what is wrong is named, in the same order."""
    kind, at, causes, data = check_draft(draft, now)
    run = _run(draft.get("actor"), kind)
    raw = canonical_text(data).encode()
    if len(raw) + len(run[2].encode()) + 39 * len(causes) > MAX_LINE - _AROUND:
        raise EventError(f"{kind}: the event is longer than the limit of {MAX_LINE:,} bytes; shorten its data")
    return run, at, causes, data, raw


def _encode(payloads: list[dict[str, Any]]) -> list[bytes]:
    """The canonical bytes of each payload, or nothing at all where that is not plain.

    orjson refuses most of what canonical JSON cannot hold: integers beyond 2**53, keys and values of other types, what is not
    Unicode, and, laid as deep as here, what is nested too deep. What it would write all the same is looked for: floats in
    its text, but for those it writes as null, which marshal spells out; and values of special classes, which marshal refuses.
    """
    try:
        if len(payloads) < _FEW:
            return [orjson.dumps(data, option=_OPTIONS) for data in payloads if fits(data)]
        text, raws = _written(payloads)
        if len(raws) != len(payloads) or not _spelled(payloads):
            return []
    except (TypeError, ValueError, orjson.JSONEncodeError):
        return []
    if no_floats(text) or all(no_floats(raw) or fits(data) for raw, data in zip(raws, payloads, strict=True)):
        return raws
    return []


def _written(payloads: list[dict[str, Any]]) -> tuple[bytes, list[bytes]]:
    """What orjson makes of payloads, together and one by one."""
    nested: Any = [_MARK] * (2 * len(payloads) - 1)
    nested[::2] = payloads
    for _ in DEEPER:
        nested = [nested]
    text = orjson.dumps(nested, option=_OPTIONS)
    return text, text[_CUT:-_CUT].split(_SPLIT)


def _spelled(payloads: Any) -> bool:
    """False, or ValueError, when a value of a special class, NaN or infinity is in `payloads`."""
    found = marshal.dumps(payloads)
    if not any(_ends_high(found, last) for last in (b"\x7f", b"\xff")):
        return True
    spelled = marshal.dumps(payloads, 1)  # numbers as text: slower, but there is no doubt
    return b"f\x03nan" not in spelled and b"f\x03inf" not in spelled and b"f\x04-inf" not in spelled


def _ends_high(found: bytes, last: bytes) -> bool:
    """Whether somewhere in it lies the end of a double whose exponent is all ones (IEEE 754, little-endian)."""
    at = found.find(last, 1)
    while at > 0:
        if found[at - 1] >= 0xF0:
            return True
        at = found.find(last, at + 1)
    return False


class _Odd(enum.Enum):
    ONE = 1


def _marshal_tells() -> bool:
    """Whether this interpreter's marshal takes exact built-in types only, and spells what is no number."""
    for odd in (_Odd.ONE, type("text", (str,), {})("a"), type("number", (int,), {})(1), object()):
        try:
            marshal.dumps([{"a": odd}])
        except ValueError:
            continue
        return False
    return _spelled([{"a": -1}]) and not any(_spelled([{"a": [x]}]) for x in (math.nan, -math.nan, math.inf, -math.inf))


_TRUSTED = _marshal_tells()  # where not, every event goes the careful way


def batches(encoded: Sequence[Encoded], size_max: int) -> list[Sequence[Encoded]]:
    """Cut an import into batches of about `size_max` bytes; the last record stands alone, so that the next process to look
    at the tail has one record to check and not four megabytes."""
    out: list[Sequence[Encoded]] = []
    begin = size = 0
    end = len(encoded) - 2
    for i, one in enumerate(encoded):
        size += len(one[4]) + 700
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
    places: bool = False,
) -> tuple[list[dict[str, Any]], bytes, str, str]:
    """As `envelope.seal_all`, and the last record's id and hash besides; without `events` their list stays empty. With `places`
    it holds of each event what gives it its place: stream, seq, id, prev and hash."""
    if len(batch) == 1:
        alone = _seal_one(batch[0], stream, first, prev, ts, rand, scope, scope_text, events and not places)
        place = {"id": alone[2], "stream": stream, "seq": first, "prev": prev, "hash": alone[3]}
        return ([place], *alone[1:]) if places else alone
    ms, us = divmod(ts, 1000)  # ids are made a microsecond apart, as envelope.seal_all does
    start = _millisecond(ms)
    salts = rand.hex()
    shifted = bytearray((int.from_bytes(rand, "big") >> 2).to_bytes(len(rand), "big"))  # as uuid7 takes them
    shifted[SALT_BYTES::_STEP] = shifted[SALT_BYTES::_STEP].translate(_VARIANT)
    bits = shifted.hex()
    batch_part, scope_part = f',"batch":{first},"causes":', f',"scope":{scope_text},"seq":'
    end_part = f',"stream":"{stream}","ts":{ts},"v":{VERSION}}}'
    made: list[dict[str, Any]] = []
    lines: list[bytes] = []
    add = lines.append
    id, last, end = "", prev, len(batch)
    numbered = zip(batch, range(first, first + end), range(end - 1, -1, -1), range(0, _STEP * end, _STEP), strict=True)
    for ((who, kind, head, kind_part), at, causes, data, raw), seq, left, at_rand in numbered:
        at_id = 2 * at_rand + 2 * SALT_BYTES
        salt = salts[2 * at_rand : at_id]
        id = f"{start}{_FRACTIONS[us]}{bits[at_id : at_id + 4]}-{bits[at_id + 4 : at_id + 16]}"
        digest = sha256(rand[at_rand : at_rand + SALT_BYTES] + raw).hexdigest()
        before = f"{head}{at}{batch_part}{_list(causes) if causes else '[]'}"
        middle = f',"id":"{id}{kind_part}{left},"prev":"{last}"'
        after = f"{scope_part}{seq}{end_part}"
        hash = sha256(f'{before},"digest":"{digest}"{middle}{after}'.encode()).hexdigest()
        add(f'{before},"data":'.encode())
        add(raw)
        add(f',"digest":"{digest}","hash":"{hash}"{middle},"salt":"{salt}"{after}\n'.encode())
        if places:
            made.append({"id": id, "stream": stream, "seq": seq, "prev": last, "hash": hash})
        elif events:
            made.append({
                "v": VERSION, "id": id, "stream": stream, "seq": seq, "batch": first, "left": left, "ts": ts, "at": at,
                "kind": kind, "scope": dict(scope), "actor": dict(who), "causes": causes, "data": data,
                "salt": salt, "digest": digest, "prev": last, "hash": hash,
            })  # fmt: skip
        last = hash
        us += 1
        if us == 1000:
            ms, us = ms + 1, 0
            start = _millisecond(ms)
    return made, b"".join(lines), id, last


def _seal_one(
    one: Encoded, stream: str, seq: int, prev: str, ts: int, rand: bytes, scope: dict[str, str], scope_text: str, events: bool
) -> tuple[list[dict[str, Any]], bytes, str, str]:
    """The same for a single record, without what pays only for many."""
    (who, kind, head, kind_part), at, causes, data, raw = one
    ms, us = divmod(ts, 1000)
    salt = rand[:SALT_BYTES].hex()
    bits = f"{1 << 63 | int.from_bytes(rand[SALT_BYTES : SALT_BYTES + 8], 'big') >> 2:x}"
    id = f"{_millisecond(ms)}{_FRACTIONS[us]}{bits[:4]}-{bits[4:]}"
    digest = sha256(rand[:SALT_BYTES] + raw).hexdigest()
    before = f'{head}{at},"batch":{seq},"causes":{_list(causes) if causes else "[]"}'
    middle = f',"id":"{id}{kind_part}0,"prev":"{prev}"'
    after = f',"scope":{scope_text},"seq":{seq},"stream":"{stream}","ts":{ts},"v":{VERSION}}}'
    hash = sha256(f'{before},"digest":"{digest}"{middle}{after}'.encode()).hexdigest()
    end = f',"digest":"{digest}","hash":"{hash}"{middle},"salt":"{salt}"{after}\n'
    made = [{
        "v": VERSION, "id": id, "stream": stream, "seq": seq, "batch": seq, "left": 0, "ts": ts, "at": at, "kind": kind,
        "scope": dict(scope), "actor": dict(who), "causes": causes, "data": data, "salt": salt, "digest": digest, "prev": prev,
        "hash": hash,
    }] if events else []  # fmt: skip
    return made, b"".join((f'{before},"data":'.encode(), raw, end.encode())), id, hash


def _list(causes: list[str]) -> str:
    return '["' + '","'.join(causes) + '"]'


def _millisecond(ms: int) -> str:
    high = f"{ms & 0xFFFFFFFFFFFF:012x}"
    return f"{high[:8]}-{high[8:]}-7"


class Behind:
    """One call running beside the caller; `join` waits for it and raises what it raised. Where no thread is to be had it runs at
    once."""

    def __init__(self, call: Callable[..., None], *args: Any) -> None:
        self._call, self._args = call, args
        self._error: BaseException | None = None
        self._over, self._gone = False, allocate_lock()
        self._gone.acquire()
        try:
            Thread(target=self._run, name="projectmem import").start()
        except RuntimeError:
            self._run()

    def _run(self) -> None:
        try:
            self._call(*self._args)
        except BaseException as e:
            self._error = e
        self._over = True
        self._gone.release()

    def join(self) -> None:
        """Wait, then raise what the call raised. Ctrl-C does not cut it short, for the log may not be given to others before:
        it is raised afterwards. (Thread.join, once interrupted, takes the thread for ended.)"""
        stopped: BaseException | None = None
        while not self._over:
            try:
                self._gone.acquire(timeout=1)
            except BaseException as e:
                stopped = e
        if stopped is not None:
            raise stopped
        if self._error is not None:
            raise self._error


class Uncollected:
    """The collector does not run inside, if `much`: a hundred thousand new objects without a cycle are not worth its walks."""

    def __init__(self, much: bool = True) -> None:
        self._much = much

    def __enter__(self) -> None:
        self._on = self._much and gc.isenabled()
        if self._on:
            gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._on:
            gc.enable()
