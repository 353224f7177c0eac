"""Canonical JSON: the one byte form of a payload, so that equal data has equal hashes in every process and for ever.

Sorted keys, no spaces, UTF-8, no floats, integers within +-2**53, no lone surrogates, at most MAX_DEPTH levels.
The bytes equal orjson's with OPT_SORT_KEYS (a contract test holds both to it). Pure.
"""

from __future__ import annotations

from .errors import CanonicalError
from .fastjson import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_INT = 2**53
MAX_DEPTH = 100
_PLAIN = frozenset((str, int, bool, type(None)))
_NESTED = frozenset((dict, list, tuple))


def canonical(obj: Any) -> bytes:
    """The canonical bytes of `obj`.

    Raises CanonicalError naming the path of the first value that canonical JSON cannot hold.
    """
    return canonical_text(obj).encode()


def canonical_text(obj: Any) -> str:
    """As `canonical`, as text that is known to encode to UTF-8."""
    if not fits(obj):
        raise CanonicalError(_explain(obj))
    text = encode(obj)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise CanonicalError(_explain(obj)) from None
    return text


def fits(v: Any, depth: int = 0) -> bool:
    """True when `v` is made of what canonical JSON holds; lone surrogates are left to the encoder to find."""
    t = type(v)
    if t is dict:
        for k in v:
            if type(k) is not str:
                return False
        inner: Any = v.values()
    elif t is list or t is tuple:
        inner = v
    else:
        return fits([v]) if t in _PLAIN else False
    if depth >= MAX_DEPTH:
        return False
    depth += 1
    for x in inner:
        t = type(x)
        if t is str or x is None or t is bool:
            continue
        if not (-MAX_INT <= x <= MAX_INT if t is int else t in _NESTED and fits(x, depth)):
            return False
    return True


def sanitize(obj: Any, depth: int = 0) -> Any:
    """`obj` made recordable: total, so that a foreign tool's input never costs the event.

    Floats and integers beyond +-2**53 become their text, lone surrogates their escape (`\\ud800`), keys text,
    foreign types their `str`, and what lies deeper than MAX_DEPTH the text "<too deep>".
    """
    t = type(obj)
    if t is str:
        return obj if obj.isascii() else _text(obj)
    if obj is None or t is bool:
        return obj
    if t is int:
        return obj if -MAX_INT <= obj <= MAX_INT else _integer(obj)
    if t is float:
        return repr(obj)
    if depth >= MAX_DEPTH - 1 and t in (dict, list, tuple):
        return "<too deep>"
    if t is dict:
        return {
            (k if type(k) is str and k.isascii() else _text(k if type(k) is str else str(k))): (
                x if type(x) is str and x.isascii() else sanitize(x, depth + 1)
            )
            for k, x in obj.items()
        }
    if t is list or t is tuple:
        return [sanitize(x, depth + 1) for x in obj]
    return _text(str(obj))


def _text(s: str) -> str:
    return s.encode("utf-8", "backslashreplace").decode()


def _integer(n: int) -> str:
    try:
        return str(n)
    except ValueError:  # beyond the interpreter's limit on decimal digits
        return hex(n)


def _explain(obj: Any, path: str = "$", depth: int = 0) -> str:
    """What is wrong with the first bad value, and where; only called once something is."""
    t = type(obj)
    if t is str:
        if _text(obj) != obj:
            return f"{path}: text holds a lone surrogate and is not Unicode; pass the value through sanitize() first"
        return ""
    if obj is None or t is bool:
        return ""
    if t is int:
        return "" if -MAX_INT <= obj <= MAX_INT else f"{path}: integer beyond +-2**53; record it as text"
    if t is float:
        return f"{path}: floats have no canonical form; record an integer or text"
    if t not in (dict, list, tuple):
        return f"{path}: {t.__name__} is not JSON; record text"
    if depth >= MAX_DEPTH:
        return f"{path[:200]}: nested deeper than {MAX_DEPTH} levels"
    items: list[tuple[Any, Any]] = list(obj.items() if t is dict else enumerate(obj))
    for k, x in items:
        if t is dict and type(k) is not str:
            return f"{path}: key {k!r} is not text"
        if t is dict and _text(k) != k:
            return f"{path}: a key holds a lone surrogate and is not Unicode"
        found = _explain(x, f"{path}.{k}" if t is dict else f"{path}[{k}]", depth + 1)
        if found:
            return found
    return ""
