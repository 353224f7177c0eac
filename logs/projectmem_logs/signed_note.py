"""Checkpoints as text: C2SP tlog-checkpoint (origin, size, root) in C2SP signed-note form, Ed25519 through `cryptography`.

A file may hold several notes, one a stream, each followed by an empty line. A note without a signature is the same text: then
what it proves is only as good as the place it was kept in. Pure but for the key that `new_key` draws; no disk, no clock.

A secret key is written as Go's note package does: `PRIVATE+KEY+<name>+<8 hex digits>+<base64 of 0x01 and the seed>`; a public
one `<name>+<8 hex digits>+<base64 of 0x01 and the key>`. One key signs all streams of a log: each stream's checkpoints carry
their own origin as the key's name, as the specification recommends, so the name of the key itself is the log's.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .digest import sha256
from .errors import CheckpointError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ED25519 = b"\x01"
DASH = "\u2014 "
NOTE_MAX = 1_000_000  # bytes of a file of checkpoints
SIGNATURES_MAX = 64
GOOD, BAD, UNKNOWN, NONE = "good", "bad", "unknown key", "none"


@dataclass(frozen=True)
class Note:
    """One checkpoint. `signatures` are (key name, key id and signature); `extra` are lines that only signing covers."""

    origin: str
    size: int
    root: bytes
    extra: tuple[str, ...] = ()
    signatures: tuple[tuple[str, bytes], ...] = ()

    def body(self) -> str:
        """The text that is signed."""
        return "\n".join([self.origin, str(self.size), base64.b64encode(self.root).decode(), *self.extra]) + "\n"

    def text(self) -> str:
        """The whole note."""
        return self.body() + "\n" + "".join(f"{DASH}{name} {base64.b64encode(s).decode()}\n" for name, s in self.signatures)


def bundle(notes: list[Note]) -> str:
    """Several notes as one text."""
    return "\n".join(note.text() for note in notes)


def parse(raw: bytes) -> list[Note]:
    """The notes of a file, at least one. Raises CheckpointError, and nothing else, for any other bytes."""
    if len(raw) > NOTE_MAX:
        raise CheckpointError(f"{len(raw):,} bytes are no checkpoint: at most {NOTE_MAX:,} are read")
    try:
        lines = raw.decode().split("\n")
    except UnicodeDecodeError:
        raise CheckpointError("not a checkpoint: it is not UTF-8 text") from None
    if any(ord(c) < 32 or ord(c) == 127 for line in lines for c in line):
        raise CheckpointError("not a checkpoint: it holds control characters (did an editor turn its line ends into CRLF?)")
    notes, at = [], 0
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        end = lines.index("", at) if "" in lines[at:] else len(lines)
        stop = end + 1
        while stop < len(lines) and lines[stop].startswith(DASH):
            stop += 1
        notes.append(_note(lines[at:end], lines[end + 1 : stop], at + 1))
        at = stop
    if not notes:
        raise CheckpointError("not a checkpoint: it is empty")
    return notes


def _note(body: list[str], signed: list[str], line: int) -> Note:
    if len(body) < 3 or any(text.startswith(DASH) for text in body):
        raise CheckpointError(f"line {line}: not a checkpoint: it needs an origin, a size and a root, each on a line of its own")
    if not body[1].isascii() or not body[1].isdigit() or len(body[1]) > 16 or str(int(body[1])) != body[1]:
        raise CheckpointError(f"line {line + 1}: the size of a checkpoint is a decimal number, not {body[1][:40]!r}")
    root = _base64(body[2], line + 2)
    if len(root) != 32:
        raise CheckpointError(f"line {line + 2}: the root of a checkpoint is 32 bytes in base64, not {len(root)}")
    if len(signed) > SIGNATURES_MAX:
        raise CheckpointError(f"line {line}: {len(signed)} signatures: at most {SIGNATURES_MAX} are read")
    signatures = []
    for i, text in enumerate(signed):
        name, _, given = text[len(DASH) :].partition(" ")
        signature = _base64(given, line + len(body) + 1 + i)
        if not name or "+" in name or len(signature) < 5:
            raise CheckpointError(f"line {line + len(body) + 1 + i}: not a signature line of a note")
        signatures.append((name, signature))
    return Note(body[0], int(body[1]), root, tuple(body[3:]), tuple(signatures))


def _base64(text: str, line: int) -> bytes:
    try:
        out = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise CheckpointError(f"line {line}: {text[:60]!r} is not base64") from None
    if base64.b64encode(out).decode() != text:
        raise CheckpointError(f"line {line}: {text[:60]!r} is not base64 in its one canonical form")
    return out


# -- keys ---------------------------------------------------------------------------------------------------------------


def key_id(name: str, public: bytes) -> bytes:
    """The four bytes that name a key."""
    return sha256(name.encode() + b"\n" + ED25519 + public).digest()[:4]


@dataclass(frozen=True)
class PublicKey:
    """A key that signatures are checked with; it signs for its name and for every origin below it (`name/...`)."""

    name: str
    raw: bytes

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """From `name+id+base64`. Raises CheckpointError."""
        name, _, rest = text.strip().partition("+")
        shown, _, given = rest.partition("+")
        raw = _key_bytes(given)
        if not name or raw is None or shown != key_id(name, raw).hex():
            raise CheckpointError("not a public key of a checkpoint: expected one line of the form name+id+base64")
        return cls(name, raw)

    def text(self) -> str:
        """The key in one line."""
        return f"{self.name}+{key_id(self.name, self.raw).hex()}+{base64.b64encode(ED25519 + self.raw).decode()}"

    def judge(self, note: Note) -> str:
        """GOOD, BAD (a signature of this key that does not fit), UNKNOWN (others signed) or NONE (nobody did)."""
        mine = [s for name, s in note.signatures if self._is_mine(name) and s[:4] == key_id(name, self.raw)]
        if not mine:
            return UNKNOWN if note.signatures else NONE
        exceptions, ed25519 = _cryptography()
        try:
            for signature in mine:
                ed25519.Ed25519PublicKey.from_public_bytes(self.raw).verify(signature[4:], note.body().encode())
        except (exceptions.InvalidSignature, ValueError):
            return BAD
        return GOOD if any(name == note.origin for name, _ in note.signatures) else BAD

    def _is_mine(self, name: str) -> bool:
        return name == self.name or name.startswith(self.name + "/")


@dataclass(frozen=True)
class SecretKey:
    """A key that signs. Its seed never appears in a repr."""

    name: str
    seed: bytes

    def __repr__(self) -> str:
        return f"SecretKey({self.name!r})"

    @classmethod
    def parse(cls, text: str) -> SecretKey:
        """From the line that `text` writes. Raises CheckpointError, which never quotes the key."""
        head, _, rest = text.strip().partition("PRIVATE+KEY+")
        name, _, rest = rest.partition("+")
        shown, _, given = rest.partition("+")
        seed = _key_bytes(given)
        if head or not name or seed is None:
            raise CheckpointError("not a secret key of a checkpoint: expected one line that begins with PRIVATE+KEY+")
        key = cls(name, seed)
        if shown != key_id(name, key.public().raw).hex():
            raise CheckpointError("the secret key does not fit its own name: it was changed or cut")
        return key

    def text(self) -> str:
        """The key in one line."""
        shown = key_id(self.name, self.public().raw).hex()
        return f"PRIVATE+KEY+{self.name}+{shown}+{base64.b64encode(ED25519 + self.seed).decode()}"

    def public(self) -> PublicKey:
        """The key to check with."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return PublicKey(self.name, self._private().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, note: Note) -> Note:
        """The note with one signature more, under its origin. Raises CheckpointError for an origin that is not this key's."""
        if note.origin != self.name and not note.origin.startswith(self.name + "/"):
            raise CheckpointError(f"the key of {self.name} does not sign for {note.origin}")
        signature = key_id(note.origin, self.public().raw) + self._private().sign(note.body().encode())
        return Note(note.origin, note.size, note.root, note.extra, (*note.signatures, (note.origin, signature)))

    def _private(self) -> Ed25519PrivateKey:
        _, ed25519 = _cryptography()
        key: Ed25519PrivateKey = ed25519.Ed25519PrivateKey.from_private_bytes(self.seed)
        return key


def new_key(name: str) -> SecretKey:
    """A new key for a log of this name. Raises CheckpointError where `cryptography` is not installed."""
    _, ed25519 = _cryptography()
    return SecretKey(name, ed25519.Ed25519PrivateKey.generate().private_bytes_raw())


def _key_bytes(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw[1:] if len(raw) == 33 and raw[:1] == ED25519 else None


def _cryptography() -> tuple[Any, Any]:
    """The optional dependency, loaded when a signature is made or checked."""
    try:
        from cryptography import exceptions
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise CheckpointError("signatures need the package `cryptography`: install projectmem-gate[sign]") from None
    return exceptions, ed25519
