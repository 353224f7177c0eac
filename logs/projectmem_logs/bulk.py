"""Preparing and sealing many events at once, for imports: the same bytes as envelope.py, several times as fast.

orjson and OpenSSL's SHA-256 are too heavy to import in the hook. A contract test holds both ways to equal bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import orjson

from .canonical import canonical_text, fits
from .envelope import ID_BYTES, MAX_LINE, SALT_BYTES, VERSION, Prepared, actor, check_draft
from .errors import EventError

_SORTED = orjson.OPT_SORT_KEYS


def prepare_many(drafts: Sequence[Any], now: int) -> list[Prepared]:
    """`envelope.prepare` of every draft. Raises as it does, before anything is written."""
    out = []
    actors: dict[int, dict[str, str]] = {}
    for draft in drafts:
        kind, at, causes, data = check_draft(draft, now)
        given = draft.get("actor") or {}
        who = actors.get(id(given))
        if who is None:
            who = actors[id(given)] = actor(given, kind)
        out.append(Prepared(kind, at, who, causes, data, _encode(data)))
    return out


def _encode(data: dict[str, Any]) -> str:
    if fits(data):
        try:
            return orjson.dumps(data, option=_SORTED).decode()
        except (TypeError, orjson.JSONEncodeError):
            pass  # the slow way says what is wrong and where
    return canonical_text(data)


def seal_many(
    batch: Sequence[Prepared],
    *,
    stream: str,
    first: int,
    prev: str,
    ts: int,
    rand: bytes,
    ids: Sequence[str],
    scope: dict[str, str],
    scope_text: str,
) -> tuple[list[dict[str, Any]], bytes]:
    """As `store.seal_all`."""
    step, size = ID_BYTES + SALT_BYTES, len(batch)
    bits = rand.hex()
    ms, us = divmod(ts, 1000)
    start = f"{ms & 0xFFFFFFFFFFFF:012x}7{us * 4096 // 1000:03x}"
    start = f"{start[:8]}-{start[8:12]}-{start[12:]}-"
    scope_part, end_part = f',"scope":{scope_text},"seq":', f',"stream":"{stream}","ts":{ts},"v":{VERSION}}}'
    events, lines = [], []
    for i, p in enumerate(batch):
        at, seq, left = 2 * step * i, first + i, size - 1 - i
        salt = bits[at : at + 2 * SALT_BYTES]
        if ids:
            id = ids[i]
        else:
            low = f"{(2 << 62) | (int(bits[at + 2 * SALT_BYTES : at + 2 * SALT_BYTES + 16], 16) >> 2):016x}"
            id = f"{start}{low[:4]}-{low[4:]}"
        raw = rand[step * i : step * i + SALT_BYTES]
        data = p.data_text.encode()
        digest = sha256(raw + data).hexdigest()
        head = f'{{"actor":{p.actor_text},"at":{p.at},"batch":{first},"causes":{p.causes_text}'
        mid = f',"id":"{id}","kind":"{p.kind}","left":{left},"prev":"{prev}"'
        tail = f"{scope_part}{seq}{end_part}"
        hash = sha256(f'{head},"digest":"{digest}"{mid}{tail}'.encode()).hexdigest()
        line = f'{head},"data":{p.data_text},"digest":"{digest}","hash":"{hash}"{mid},"salt":"{salt}"{tail}\n'
        if len(line) > MAX_LINE // 4 and len(line.encode()) > MAX_LINE:
            raise EventError(f"{p.kind}: the event is longer than {MAX_LINE:,} bytes; shorten its data")
        lines.append(line)
        events.append({
            "v": VERSION, "id": id, "stream": stream, "seq": seq, "batch": first, "left": left, "ts": ts, "at": p.at,
            "kind": p.kind, "scope": dict(scope), "actor": p.actor, "causes": p.causes, "data": p.data,
            "salt": salt, "digest": digest, "prev": prev, "hash": hash,
        })  # fmt: skip
        prev = hash
    return events, "".join(lines).encode()
