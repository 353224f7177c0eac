"""What a resident process remembers of answers that depend on nothing but the question: which action a call is, where a log is.

`identify` is a function of its arguments and of where symbolic links lead. Both are of the question here: the arguments are the
key, and what the disk was asked at the time is asked again before an answer is given a second time. A call before and the event
after it, or the same command in the next turn, are then parsed once. Where a folder's log is follows from what is in `.git`,
which has another time as soon as anything comes, goes or is renamed in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from projectmem_gate.identify import identify
from projectmem_gate.model import Action

from projectmem import place as places
from projectmem.place import FOLDER, Place

ACTIONS_MAX = 256
INPUT_MAX = 4_096  # bytes of an input that is remembered
ASKED_MAX = 16  # links that may have to be followed again

PLACES_MAX = 64
SETTLED_NS = 1_000_000_000  # a folder's time may be this coarse: what changed later than that may change again unseen

Marks = tuple[tuple[int, int, int], tuple[int, int, int]]
_places: dict[str, tuple[Place, Marks]] = {}
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


def find(cwd: str) -> Place | None:
    """As `place.find`. Only the top folder of a plain repository is remembered: elsewhere more than one folder decides."""
    known, marks = _places.get(cwd), _marks(cwd)
    if known is not None and known[1] == marks:
        return known[0]
    found = places.find(cwd)
    if found is None or marks is None or found.root != cwd or not found.git_dir == found.common_dir == f"{cwd}/.git":
        return found
    settled = time.time_ns() - max(marks[0][1], marks[1][1]) > SETTLED_NS
    if settled and found.home == f"{cwd}/.git/{FOLDER}":
        if len(_places) >= PLACES_MAX:
            _places.clear()
        _places[cwd] = found, marks
    return found


def _marks(cwd: str) -> Marks | None:
    try:
        git, log = os.stat(f"{cwd}/.git"), os.stat(f"{cwd}/.git/{FOLDER}/project.json")
    except (OSError, ValueError):
        return None
    return (git.st_ino, git.st_ctime_ns, git.st_mtime_ns), (log.st_ino, log.st_ctime_ns, log.st_size)


def forget() -> None:
    """Remember nothing."""
    _actions.clear()
    _places.clear()


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
