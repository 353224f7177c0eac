"""JSON without importing `json`, whose regular expressions cost a hook process half of its start.

Both ways drive the C code that `json` itself uses; on an interpreter where that is missing or behaves otherwise, `json`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BLANKS = " \t\n\r"
_SAMPLE = {"b": [1, None, True, "é\n"], "a": {}}
_ENCODED = '{"a":{},"b":[1,null,true,"é\\n"]}'


class _Context:
    """What the C scanner reads of a JSONDecoder (CPython 3.11 to 3.14)."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(float)  # NaN, Infinity, -Infinity

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def _refuse(value: object) -> str:
    raise TypeError(f"{type(value).__name__} is not JSON")


def _make_encode() -> Callable[[Any], str]:
    try:
        from _json import encode_basestring, make_encoder

        encoder = make_encoder(None, _refuse, encode_basestring, None, ":", ",", True, False, False)
        if "".join(encoder(_SAMPLE, 0)) != _ENCODED:
            raise TypeError
    except (ImportError, TypeError, ValueError):
        import json

        options: dict[str, Any] = {"sort_keys": True, "separators": (",", ":"), "check_circular": False, "allow_nan": False}
        return json.JSONEncoder(ensure_ascii=False, **options).encode
    return lambda value: "".join(encoder(value, 0))


def _make_loads() -> Callable[[str], Any]:
    try:
        from _json import make_scanner

        context: Any = _Context()
        scan = make_scanner(context)
        if scan(_ENCODED, 0) != (_SAMPLE, len(_ENCODED)):
            raise TypeError
    except (ImportError, TypeError, ValueError, AttributeError, StopIteration):
        import json

        return json.loads

    def loads(text: str) -> Any:
        start = len(text) - len(text.lstrip(_BLANKS))
        try:
            value, end = scan(text, start)
        except (StopIteration, SystemError):  # the scanner's own error class is in a module that is not imported here
            raise ValueError("not JSON") from None
        if text[end:].strip(_BLANKS):
            raise ValueError(f"more after the end of the JSON value at character {end}")
        return value

    return loads


encode = _make_encode()  # sorted keys, no spaces, not ASCII-escaped; raises TypeError, ValueError, RecursionError
_loads = _make_loads()


def loads(raw: bytes | str) -> Any:
    """Any JSON value from UTF-8 bytes or text. Raises ValueError for what is no JSON, RecursionError for what is too deep."""
    return _loads(raw if isinstance(raw, str) else raw.decode())
