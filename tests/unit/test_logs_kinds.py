"""Payload models: what they refuse, what they keep, and how old versions come up to date."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_logs import kinds
from projectmem_logs.errors import KindError
from projectmem_logs.kinds import KINDS, VERSIONS, upcast, validate

NOTE = {"text": "x", "tags": ["a"]}


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        ("note.recorded", {"text": 1, "tags": []}, "text"),
        ("note.recorded", {"text": "x"}, "tags"),
        ("note.recorded", {"text": "x" * 20_001, "tags": []}, "text"),
        ("note.recorded", {"text": "x", "tags": [1]}, "tags.0"),
        ("note.recorded", {**NOTE, "v": "1"}, "v"),
        ("label.set", {"label": "odd", "target": "path", "pattern": "a", "effect": "ask", "reason": "", "review_at": 0}, "label"),
        (
            "label.set",
            {"label": "fragile", "target": "path", "pattern": "", "effect": "ask", "reason": "", "review_at": 0},
            "pattern",
        ),
        ("record.pinned", {"record": "not an id!", "key": "", "until": 0, "reason": "", "by_event": ""}, "record"),
        ("record.pinned", {"record": "", "key": "", "until": -1, "reason": "", "by_event": ""}, "until"),
        ("policy.changed", {"text": "", "hash": "XYZ"}, "hash"),
        ("feedback.given", {"target": "", "useful": 1, "note": ""}, "useful"),
    ],
)
def test_a_bad_field_is_named(kind: str, data: dict[str, Any], field: str) -> None:
    """The error names the kind and the field."""
    with pytest.raises(KindError, match=f"^{kind}: {field}:"):
        validate(kind, data)


def test_unknown_keys_kinds_and_future_versions_pass_unchanged() -> None:
    """What a newer version wrote is kept as it is."""
    for kind, data in (("note.recorded", {**NOTE, "extra": [1]}), ("new.kind", {"x": 1}), ("note.recorded", {"v": 99, "new": 1})):
        assert validate(kind, data) is data and upcast(kind, data) == data


def test_old_payloads_come_up_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each upcaster takes one version to the next; a payload without a version is the first."""
    monkeypatch.setitem(VERSIONS, "note.recorded", 3)
    monkeypatch.setitem(kinds.UPCASTERS, ("note.recorded", 1), lambda d: {**d, "tags": d.get("tags", [])})
    monkeypatch.setitem(kinds.UPCASTERS, ("note.recorded", 2), lambda d: {**d, "text": d["text"].strip()})
    assert upcast("note.recorded", {"text": " x "}) == {"text": "x", "tags": [], "v": 3}
    assert upcast("note.recorded", {"text": " x ", "tags": [], "v": 2}) == {"text": "x", "tags": [], "v": 3}
    assert validate("note.recorded", {"text": " x "}) == {"text": " x "}


def test_every_kind_has_a_version_and_every_older_version_an_upcaster() -> None:
    """The registry has no hole."""
    assert VERSIONS.keys() == KINDS.keys()
    assert all((kind, v) in kinds.UPCASTERS for kind, version in VERSIONS.items() for v in range(1, version))
