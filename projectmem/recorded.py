"""A recorded call as the gate sees it: its keys and its action, as they were written down and without identifying it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from projectmem_gate.model import Action, Part


def keys_of(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Every key of a recorded call, as `Action.keys` gives them."""
    parts = [part["key"] for part in data.get("parts") or [] if not part.get("trivial")]
    return tuple(dict.fromkeys((data["key"], *parts)))


def action_of(data: Mapping[str, Any]) -> Action:
    """The action of a recorded call, without identifying it again. Raises KeyError or TypeError for malformed data."""
    recorded = data.get("parts")
    if recorded is None:
        recorded = [{"key": key, "kind": data["kind"], "family": "", "text": data["text"]} for key in data["keys"]]
    parts = []
    for part in recorded:
        given = {name: part[name] for name in Part.__slots__ if name in part}
        for name in ("words", "paths"):
            given[name] = tuple(given.get(name) or ())
        given["effects"] = tuple((e[0], e[1]) for e in given.get("effects") or ())
        parts.append(Part(**given))
    return Action(
        data["tool"],
        data["kind"],
        data["cwd"],
        data["key"],
        data["text"],
        tuple(parts),
        tuple(data.get("joins") or ()),
        bool(data.get("parsed", True)),
        bool(data.get("escalated", False)),
    )
