"""[H] Keys: 32 hex digits over a tuple of strings, the same on every Python and platform."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # Python 3.12 and later
    except ImportError:
        try:
            from _sha256 import sha256  # Python 3.11
        except ImportError:
            from hashlib import sha256  # builds without the built-in hashes


def text_digest(text: str) -> str:
    """16 hex digits that stand for a content."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def key_of(*fields: str) -> str:
    """The key of an ordered tuple of strings (length-prefixed, so that no two tuples share their bytes)."""
    return sha256("".join([f"{len(f)}:{f}" for f in fields]).encode("utf-8", "surrogatepass")).hexdigest()[:32]
