"""JSON for the hook's common call without importing `json`, whose regular expressions cost half of a process's start.

`loads` drives the C scanner that `json` itself uses; where an interpreter has none (or it refuses), it is `json.loads`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLANKS = " \t\n\r"


class _Context:
    """What `_json.make_scanner` reads of a JSONDecoder (CPython 3.11 to 3.14)."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(float)  # NaN, Infinity, -Infinity

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def loads(raw: bytes | str) -> Any:
    """Any JSON value from UTF-8 bytes (or text). Raises ValueError for what is no JSON, RecursionError for what is too deep."""
    text = raw if isinstance(raw, str) else raw.decode("utf-8")
    try:
        from _json import make_scanner
    except ImportError:
        return _slow(text)
    context: Any = _Context()
    start = len(text) - len(text.lstrip(_BLANKS))
    try:
        value, end = make_scanner(context)(text, start)
    except (StopIteration, TypeError, AttributeError):
        return _slow(text)
    if text[end:].strip(_BLANKS):
        return _slow(text)
    return value


def _slow(text: str) -> Any:
    import json

    return json.loads(text)


def dumps(value: Any) -> bytes:
    """Compact ASCII JSON bytes. Only answers that say something pay for the import."""
    import json

    return json.dumps(value, separators=(",", ":")).encode("ascii")
