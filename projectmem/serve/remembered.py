"""What a resident process remembers of answers that depend on nothing but the question: which action a call is.

`identify` is a function of its arguments and of where symbolic links lead. Both are of the question here: the arguments are the
key, and what the disk was asked at the time is asked again before an answer is given a second time. A call before and the event
after it, or the same command in the next turn, are then parsed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from projectmem_gate.identify import identify
from projectmem_gate.model import Action

ACTIONS_MAX = 256
INPUT_MAX = 4_096  # bytes of an input that is remembered
ASKED_MAX = 16  # links that may have to be followed again

_actions: dict[tuple[Any, ...], tuple[Action, dict[str, str]]] = {}  # least lately asked first


def identity(tool: str, given: Any, **names: Any) -> Action:
    """As `identify`. Nobody changes an action: the same one may be given to many."""
    resolve: Callable[[str], str] | None = names.get("resolve")
    try:
        key = (tool, orjson.dumps(given), *(_hashable(names[name]) for name in sorted(names) if name != "resolve"))
    except (TypeError, ValueError):  # half a surrogate pair, a number of any length
        return identify(tool, given, **names)
    found = _actions.pop(key, None)
    if found is not None and all(resolve is not None and resolve(path) == real for path, real in found[1].items()):
        _actions[key] = found
        return found[0]
    asked: dict[str, str] = {}
    action = identify(tool, given, **{**names, "resolve": _noting(resolve, asked)} if resolve is not None else names)
    if len(key[1]) <= INPUT_MAX and len(asked) <= ASKED_MAX:
        while len(_actions) >= ACTIONS_MAX:
            _actions.pop(next(iter(_actions)), None)
        _actions[key] = action, asked
    return action


def forget() -> None:
    """Remember nothing."""
    _actions.clear()


def _noting(resolve: Callable[[str], str], asked: dict[str, str]) -> Callable[[str], str]:
    def noted(path: str) -> str:
        if path not in asked:
            asked[path] = resolve(path)
        return asked[path]

    return noted


def _hashable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value
