"""SQLite's C module alone [H]: `_sqlite3` is all that the snapshot uses.

The package around it imports datetime, and the C module itself imports functools for one name, `lru_cache`, which brings in
collections, operator and types: together two thirds of what SQLite costs a hook process. The C code under that name is asked
for directly. Where an interpreter has it otherwise, the usual import does.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any

__all__ = ["quoted", "sqlite3"]


def quoted(path: str) -> str:
    """`path` as it stands in a `file:` URI (https://www.sqlite.org/uri.html)."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


class _Functools:
    """Stands in for functools while `_sqlite3` is imported."""

    @staticmethod
    def lru_cache(maxsize: int) -> Callable[[Any], Any]:
        """As `functools.lru_cache(maxsize)`, without `cache_info`."""
        from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]

        return lambda function: _lru_cache_wrapper(function, maxsize, False, tuple)


def _load() -> Any:
    if "functools" in sys.modules or "_sqlite3" in sys.modules:
        import _sqlite3

        return _sqlite3
    sys.modules["functools"] = _Functools  # type: ignore[assignment]
    try:
        import _sqlite3

        _sqlite3.connect(":memory:").close()  # some versions look the name up only now
        return _sqlite3
    except (ImportError, AttributeError, TypeError):
        sys.modules.pop("_sqlite3", None)
        sys.modules.pop("functools", None)
        import sqlite3

        return sqlite3
    finally:
        if sys.modules.get("functools") is _Functools:  # type: ignore[comparison-overlap]
            del sys.modules["functools"]


if not TYPE_CHECKING:
    sqlite3 = _load()
