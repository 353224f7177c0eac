"""[H] Keys: 32 hex digits over a tuple of strings, the same on every Python and platform."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_sha: Any = None


def digest(data: bytes) -> str:
    """SHA-256 in hex; the C module alone, hashlib costs a hook process milliseconds."""
    global _sha
    if _sha is None:
        try:
            from _sha2 import sha256 as _sha  # 3.12 on
        except ImportError:
            try:
                from _sha256 import sha256 as _sha  # type: ignore[import-not-found,no-redef]  # 3.11
            except ImportError:
                from hashlib import sha256 as _sha  # type: ignore[assignment]
    found: str = _sha(data).hexdigest()
    return found


def text_digest(text: str) -> str:
    """16 hex digits that stand for a content."""
    return digest(text.encode("utf-8", "surrogatepass"))[:16]


def key_of(*fields: str) -> str:
    """The key of an ordered tuple of strings (length-prefixed, so that no two tuples share their bytes)."""
    return digest("".join([f"{len(f)}:{f}" for f in fields]).encode("utf-8", "surrogatepass"))[:32]
