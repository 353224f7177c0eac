"""Payloads of older versions of their kind, brought to today's before any fold sees them. Pure; light enough for a hook.

A payload states its version in `data["v"]`; without one it is version 1. What is on disk never changes: digests and hashes are
of the payload as it was written. Reading costs one look at an empty table as long as no kind has a second version.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Event = dict[str, Any]

# The version a kind is written in today, for those that are past the first.
LATEST: dict[str, int] = {}
# (kind, version) -> the payload one version later. Entries are only ever added: a log of any age must be readable.
UPCASTERS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {}


def version(kind: str) -> int:
    """The version `kind` is written in today."""
    return LATEST.get(kind, 1)


def upcast(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """A payload of any past version as today's. A payload from the future is returned as it is. Unknown kinds pass.

    Raises what an upcaster raises for a payload that its kind never had.
    """
    out = dict(data)
    at = out.get("v", 1)
    while type(at) is int and 1 <= at < LATEST.get(kind, 1):
        out = {**UPCASTERS[kind, at](out), "v": at + 1}
        at += 1
    return out


def current(event: Event) -> Event:
    """The event with its payload as today's. Total: an erased event, one of another kind, and one whose payload is not what
    its version promises are returned as they are (folds are total over those)."""
    kind = event.get("kind")
    data = event.get("data")
    if kind not in LATEST or type(data) is not dict:
        return event
    at = data.get("v", 1)
    if type(at) is not int or at >= LATEST[kind]:
        return event
    try:
        return {**event, "data": upcast(kind, data)}
    except Exception:
        return event
