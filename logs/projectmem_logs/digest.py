"""SHA-256 and HMAC-SHA-256 from the cheapest module there is: `hashlib` alone costs a hook process milliseconds."""

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

_BLOCK = 64
_OPAD = bytes(x ^ 0x5C for x in range(256))
_IPAD = bytes(x ^ 0x36 for x in range(256))


def sha256_hex(data: bytes) -> str:
    """SHA-256 of `data`, 64 lower-case hex digits."""
    return sha256(data).hexdigest()


def hmac_sha256_hex(key: bytes, data: bytes) -> str:
    """HMAC-SHA-256 (RFC 2104) of `data` under `key`, 64 lower-case hex digits."""
    if len(key) > _BLOCK:
        key = sha256(key).digest()
    key = key.ljust(_BLOCK, b"\0")
    return sha256(key.translate(_OPAD) + sha256(key.translate(_IPAD) + data).digest()).hexdigest()


__all__ = ["hmac_sha256_hex", "sha256", "sha256_hex"]
