"""One event as one line: identifiers, sealing (digest, hash, chain) and the check of a line found on disk. Pure.

A line is the canonical JSON of the event. `digest` commits to salt and data, `hash` to every field but data, salt,
tombstone and hash, so an erasure can drop data and salt and the chain still verifies. Because the keys are sorted and
everything but `data` has a fixed shape, both hashes are checked on slices of the line, without parsing it.
"""

from __future__ import annotations

from .canonical import canonical_text
from .digest import sha256, sha256_hex
from .errors import EventError, LineError
from .fastjson import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Event = dict[str, Any]
    Draft = Mapping[str, Any]

VERSION = 1
GENESIS = "0" * 64
BOM = b"\xef\xbb\xbf"
MAX_LINE = 16 * 1024 * 1024  # bytes; a longer line is refused when written and read as damage
MAX_BATCH = 32 * 1024 * 1024  # bytes; one write, so no unfinished write is longer
MAX_CAUSES = 256
SALT_BYTES = 16
ID_BYTES = 10
ACTOR_FIELDS = ("agent", "harness", "model", "origin", "session")
ORIGINS = ("observed", "agent", "human", "import")
DRAFT_FIELDS = frozenset(("kind", "at", "actor", "causes", "data"))
FAULTS = ("empty", "nul", "bom", "crlf", "long", "foreign", "shape", "hash", "digest")
_BEGIN = b'{"actor":{'
_HEX = frozenset("0123456789abcdef")


def uuid7(now: int, rand: bytes) -> str:
    """UUIDv7 (RFC 9562) of `now` (microseconds) and 10 random bytes; the 12 bits after the milliseconds hold the
    fraction of the millisecond, so that identifiers sort by time to about a quarter of a microsecond."""
    ms, us = divmod(now, 1000)
    n = ((ms & 0xFFFFFFFFFFFF) << 80) | (7 << 76) | ((us * 4096 // 1000) << 64)
    n |= (2 << 62) | (int.from_bytes(rand[:8], "big") >> 2)
    h = f"{n:032x}"
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


class Prepared:
    """A checked draft: its values, and the canonical text of the parts that do not depend on its place in the log."""

    __slots__ = ("actor", "actor_text", "at", "causes", "causes_text", "data", "data_text", "kind")

    def __init__(
        self, kind: str, at: int, actor: dict[str, str], causes: list[str], data: dict[str, Any], data_text: str
    ) -> None:
        self.kind, self.at, self.actor, self.causes, self.data, self.data_text = kind, at, actor, causes, data, data_text
        self.actor_text = actor_text(actor)
        self.causes_text = '["' + '","'.join(causes) + '"]' if causes else "[]"


def prepare(draft: Draft, now: int) -> Prepared:
    """Check a draft and encode its payload; `at` defaults to `now`.

    Raises EventError for a wrong shape, CanonicalError for a payload that cannot be encoded.
    """
    kind, at, causes, data = check_draft(draft, now)
    return Prepared(kind, at, actor(draft.get("actor") or {}, kind), causes, data, canonical_text(data))


def check_draft(draft: Draft, now: int) -> tuple[str, int, list[str], dict[str, Any]]:
    """(kind, at, causes, data) of a draft of the right shape; its payload is not looked into. Raises EventError."""
    if not DRAFT_FIELDS.issuperset(draft):
        raise EventError(f"draft has unknown field(s) {sorted(set(draft) - DRAFT_FIELDS)}; it may have {sorted(DRAFT_FIELDS)}")
    kind = draft.get("kind", "")
    if kind not in _kinds_seen:
        plain = type(kind) is str and len(kind) <= 64 and kind.isascii()
        if not plain or not kind.replace(".", "").replace("_", "").isalpha() or kind != kind.lower():
            raise EventError(f"kind {kind!r} is not of the form noun.verb in lower-case letters")
        if len(_kinds_seen) < 100:
            _kinds_seen.add(kind)
    at = draft.get("at")
    if at is None:
        at = now
    if type(at) is not int or not 0 <= at <= 2**53:
        raise EventError(f"{kind}: at must be integer microseconds since 1970 UTC, not {at!r}")
    given = draft.get("causes")
    causes = [str(c) for c in given] if given else []
    if causes and (len(causes) > MAX_CAUSES or not all(is_id(c) for c in causes)):
        raise EventError(f"{kind}: causes must be at most {MAX_CAUSES} event ids")
    data = draft.get("data", {})
    if type(data) is not dict:
        raise EventError(f"{kind}: data must be an object, not {type(data).__name__}")
    return kind, at, causes, data


_kinds_seen: set[str] = set()
_actors_seen: dict[tuple[str, ...], str] = {}


def actor_text(given: Mapping[str, str]) -> str:
    """The canonical text of an actor; a process meets few of them."""
    key = tuple(given.values())
    text = _actors_seen.get(key)
    if text is None:
        text = canonical_text(dict(given))
        if len(_actors_seen) < 1_000:
            _actors_seen[key] = text
    return text


def actor(given: Mapping[str, Any], kind: str = "actor") -> dict[str, str]:
    """The five actor fields, missing ones "", each cut to 200 characters. Raises EventError on others."""
    if not set(ACTOR_FIELDS).issuperset(given):
        raise EventError(f"{kind}: actor has unknown field(s) {sorted(set(given) - set(ACTOR_FIELDS))}; it has {ACTOR_FIELDS}")
    out = {f: str(given.get(f) or "")[:200] for f in ACTOR_FIELDS}
    if out["origin"] not in ORIGINS:
        raise EventError(f"{kind}: actor.origin must be one of {ORIGINS}, not {out['origin']!r}")
    return out


def is_id(s: str) -> bool:
    """True for the 36-character hyphenated form of a UUID."""
    return len(s) == 36 and s[8] == s[13] == s[18] == s[23] == "-" and _HEX.issuperset(s.replace("-", "", 4))


def is_stream(s: object) -> bool:
    """True for what can be a stream's id, and so the name of its folder: 16 hex digits."""
    return type(s) is str and len(s) == 16 and _HEX.issuperset(s)


def seal(
    draft: Prepared | Draft,
    *,
    stream: str,
    seq: int,
    batch: int,
    ts: int,
    prev: str,
    salt: bytes,
    id: str,
    scope: Mapping[str, str],
    left: int = 0,
    scope_text: str = "",
) -> tuple[Event, bytes]:
    """Give a draft its place in the chain: (event, its line with the newline).

    `left` counts the records of the same batch that follow; 0 closes the batch. `scope_text` is the scope's canonical
    text, when the caller has it. Raises as `prepare`.
    """
    p = draft if isinstance(draft, Prepared) else prepare(draft, ts)
    salt_hex = salt.hex()
    digest = sha256_hex(salt + p.data_text.encode())
    head = f'{{"actor":{p.actor_text},"at":{p.at},"batch":{batch},"causes":{p.causes_text}'
    mid = f',"id":"{id}","kind":"{p.kind}","left":{left},"prev":"{prev}"'
    tail = f',"scope":{scope_text or canonical_text(dict(scope))},"seq":{seq},"stream":"{stream}","ts":{ts},"v":{VERSION}}}'
    hash = sha256_hex(f'{head},"digest":"{digest}"{mid}{tail}'.encode())
    line = f'{head},"data":{p.data_text},"digest":"{digest}","hash":"{hash}"{mid},"salt":"{salt_hex}"{tail}\n'.encode()
    if len(line) > MAX_LINE:
        raise EventError(f"{p.kind}: the event takes {len(line):,} bytes, the limit is {MAX_LINE:,}; shorten its data")
    event = {
        "v": VERSION, "id": id, "stream": stream, "seq": seq, "batch": batch, "left": left, "ts": ts, "at": p.at,
        "kind": p.kind, "scope": dict(scope), "actor": p.actor, "causes": p.causes, "data": p.data,
        "salt": salt_hex, "digest": digest, "prev": prev, "hash": hash,
    }  # fmt: skip
    return event, line


def seal_all(
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
) -> tuple[list[Event], bytes]:
    """The events and the bytes of one batch whose first record has seq `first` and follows the hash `prev`.

    rand  26 random bytes a record, for salts and ids;  ids  when given, used instead. The ids of a batch are a microsecond
    apart: their beginnings, by which people name events, differ too
    """
    step = ID_BYTES + SALT_BYTES
    events, lines = [], []
    for i, draft in enumerate(batch):
        bits = rand[step * i : step * (i + 1)]
        event, line = seal(
            draft, stream=stream, seq=first + i, batch=first, left=len(batch) - 1 - i, ts=ts, prev=prev, salt=bits[:SALT_BYTES],
            id=ids[i] if ids else uuid7(ts + i, bits[SALT_BYTES:]), scope=scope, scope_text=scope_text,
        )  # fmt: skip
        prev = event["hash"]
        events.append(event)
        lines.append(line)
    return events, b"".join(lines)


class Line:
    """The verdict on one line: where it stands, whether it is self-consistent, and the header fields that chain it.

    start, end  byte offsets in the segment, end after the newline;  why  "" or one of FAULTS
    dressed     not ok, but whole once a byte-order mark or carriage return is taken off: an editor's doing, no crash's
    named       (stream, batch) that a damaged line still names, each in its place; ("", 0) where it does not
    """

    __slots__ = (
        "batch", "dressed", "end", "erased", "hash", "id", "left", "named", "ok", "prev", "seq", "start", "stream",
        "terminated", "why",
    )  # fmt: skip

    def __init__(self, why: str, start: int = 0, end: int = 0, terminated: bool = True) -> None:
        self.ok, self.why, self.start, self.end, self.terminated = not why, why, start, end, terminated
        self.seq = self.batch = self.left = 0
        self.prev = self.hash = self.id = self.stream = ""
        self.erased = self.dressed = False
        self.named = ("", 0)


def check_line(raw: bytes, start: int = 0, terminated: bool = True) -> Line:
    """Judge the bytes of one line (without its newline). Total: any bytes give a Line, never an exception."""
    line = Line("", start, start + len(raw) + terminated, terminated)
    line.why = _judge(raw, line)
    line.ok = not line.why
    if line.why in ("bom", "crlf"):
        line.dressed = not _judge(undress(raw), line)
    if not line.ok and not line.dressed:
        line.named = _named(raw)
    return line


def _named(raw: bytes) -> tuple[str, int]:
    """The stream and batch a damaged line names where an envelope has them: within a payload's texts a quote is escaped, and
    the payload stands between the two."""
    at, causes = raw.find(b'},"at":'), raw.find(b',"causes":[')
    _, found, batch = raw[at + 7 : causes].partition(b',"batch":')
    place = raw.rfind(b',"stream":"') + 11
    stream, end, _ = raw[place : place + 64].partition(b'","ts":')
    if not raw.startswith(_BEGIN) or at < 0 or not found or len(batch) > 16 or not batch.isdigit():
        return "", 0
    return (stream.decode("ascii"), int(batch)) if place >= 11 and end and stream.isalnum() else ("", 0)


def undress(raw: bytes) -> bytes:
    """A line without the byte-order mark and carriage return that an editor or git may have put around it."""
    return raw.removeprefix(BOM).removesuffix(b"\r")


def _judge(raw: bytes, line: Line) -> str:
    if len(raw) > MAX_LINE:
        return "long"
    if not raw.startswith(_BEGIN) or not raw.endswith(b"}"):
        return _name_fault(raw)
    d = raw.rfind(b',"digest":"')
    k = d + 75  # the end of the digest's 64 hex digits
    if d < 0 or raw[k : k + 10] != b'","hash":"' or raw[k + 74 : k + 75] != b'"':
        return _name_fault(raw)
    rest, salt = raw[k + 75 :], b""
    s = rest.find(b',"salt":"')
    if s >= 0:
        e = s + 9 + 2 * SALT_BYTES
        if rest[e : e + 1] != b'"':
            return _name_fault(raw)
        salt, rest = rest[s + 9 : e], rest[:s] + rest[e + 1 :]
    else:
        t, u = rest.find(b',"tombstone":'), rest.rfind(b',"ts":')
        if not 0 <= t < u:
            return _name_fault(raw)
        rest = rest[:t] + rest[u:]
    p = raw.find(b',"data":', 0, d)
    header = raw[: p if p >= 0 else d] + raw[d : k + 1] + rest
    if sha256_hex(header).encode() != raw[k + 10 : k + 74]:
        return "nul" if b"\0" in raw else "hash"
    if salt:
        if p < 0 or not _digest_fits(salt, raw[p + 8 : d], raw[d + 11 : k]):
            return "nul" if b"\0" in raw else "digest"
    elif p >= 0:
        return "shape"  # data without its salt: neither whole nor erased
    line.erased = not salt
    return _take(header, raw[k + 10 : k + 74], line)


def _digest_fits(salt: bytes, data: bytes, digest: bytes) -> bool:
    try:
        plain = bytes.fromhex(salt.decode())
    except ValueError:
        return False
    if plain.hex().encode() != salt:  # fromhex also takes upper case and spaces
        return False
    return sha256(plain + data).hexdigest().encode() == digest


def _take(header: bytes, hash: bytes, line: Line) -> str:
    """Fill `line` from the header's fields; "shape" when one is missing or of another type."""
    try:
        h = loads(header)
        line.seq, line.batch, line.left, line.prev = h["seq"], h["batch"], h["left"], h["prev"]
        line.id, line.stream, line.hash = h["id"], h["stream"], hash.decode()
        types = [type(h[f]) for f in ("seq", "batch", "left", "ts", "at", "v")] + [type(h["actor"]), type(h["scope"])]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "shape"
    texts = [type(x) for x in (line.prev, line.id, line.stream, h.get("kind"))]
    if types != [int] * 6 + [dict, dict] or texts != [str] * 4 or type(h.get("causes")) is not list:
        return "shape"
    return "" if 1 <= line.batch <= line.seq and line.left >= 0 else "shape"


def _name_fault(raw: bytes) -> str:
    if not raw.strip(b" \t\r"):
        return "empty"
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff", b"{\0", b"\0{"):
        return "foreign"  # UTF-16: an editor saved the file, and its zeros are no lost sectors
    if b"\0" in raw:
        return "nul"
    if raw.startswith(BOM):
        return "bom"
    if raw.endswith(b"\r"):
        return "crlf"
    ours = raw.startswith(b'{"actor":') or _BEGIN.startswith(raw) or b'","prev":"' in raw or b',"stream":"' in raw
    return "shape" if ours else "foreign"


_WORDS = {
    "empty": "an empty line",
    "nul": "a run of NUL bytes",
    "bom": "a byte-order mark before the line (an editor saved the file)",
    "crlf": "a CRLF line end (an editor or git changed the file)",
    "long": "a line longer than the limit",
    "foreign": "bytes that are not an event",
    "shape": "a line that lacks parts of an event",
    "hash": "a line whose hash does not match its fields",
    "digest": "a line whose data does not match its digest",
}


def describe(why: str) -> str:
    """The fault in words, for messages."""
    return _WORDS.get(why, why)


def open_line(raw: bytes) -> Event:
    """The event of one line, checked. Raises LineError (and nothing else) for any other bytes."""
    raw = raw[:-1] if raw.endswith(b"\n") else raw
    line = check_line(raw)
    if not line.ok:
        raise LineError(line.why, f"{describe(line.why)}; run `projectmem verify` to see where and what to do")
    return parse(raw)


def parse(raw: bytes) -> Event:
    """The event of a line already checked. Raises LineError when it is still not JSON."""
    try:
        event: Event = loads(raw)
    except (ValueError, RecursionError):
        raise LineError("shape", "a line with matching hashes that is not JSON; run `projectmem verify`") from None
    return event
