"""Payload models: what they refuse, what they keep, and how old versions come up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import kinds, upcasting
from projectmem_logs.errors import KindError
from projectmem_logs.kinds import KINDS, upcast, validate
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

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
    monkeypatch.setitem(upcasting.LATEST, "note.recorded", 3)
    monkeypatch.setitem(kinds.UPCASTERS, ("note.recorded", 1), lambda d: {**d, "tags": d.get("tags", [])})
    monkeypatch.setitem(kinds.UPCASTERS, ("note.recorded", 2), lambda d: {**d, "text": d["text"].strip()})
    assert upcast("note.recorded", {"text": " x "}) == {"text": "x", "tags": [], "v": 3}
    assert upcast("note.recorded", {"text": " x ", "tags": [], "v": 2}) == {"text": "x", "tags": [], "v": 3}
    assert validate("note.recorded", {"text": " x "}) == {"text": " x "}


def test_every_kind_has_a_version_and_every_older_version_an_upcaster() -> None:
    """The registry has no hole."""
    assert upcasting.LATEST.keys() <= KINDS.keys() and all(version > 1 for version in upcasting.LATEST.values())
    assert upcasting.UPCASTERS.keys() == {(kind, v) for kind, version in upcasting.LATEST.items() for v in range(1, version)}


def test_a_stored_log_of_an_older_version_reads_as_today_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind gets a second version: payloads written before come up, new ones pass, the stored bytes stay."""
    home = str(tmp_path / "home")
    init_home(home, 1)
    old, new = {"issue": "i", "text": "old"}, {"v": 2, "issue": "i", "claim": "new", "sure": False}
    actor = {"origin": "human"}
    LogStore(home).append([{"kind": "hypothesis.noted", "actor": actor, "data": old}], now=1)
    (segment,) = (tmp_path / "home" / "log").rglob("*.jsonl")
    before = segment.read_bytes()

    class Second(kinds.Payload):
        issue: str
        claim: str
        sure: bool

    def second(data: dict[str, Any]) -> dict[str, Any]:
        return {"issue": data["issue"], "claim": data["text"], "sure": False}

    monkeypatch.setitem(KINDS, "hypothesis.noted", Second)
    monkeypatch.setitem(upcasting.LATEST, "hypothesis.noted", 2)
    monkeypatch.setitem(kinds.UPCASTERS, ("hypothesis.noted", 1), second)
    LogStore(home).append([{"kind": "hypothesis.noted", "actor": actor, "data": new}], now=2)
    read = [e["data"] for e in read_events(home)]
    assert [e["data"] for e in read_events(home, recorded=True)] == [old, new]
    assert read == [
        {"v": 2, "issue": "i", "claim": "old", "sure": False},
        new,
    ]
    assert all(validate("hypothesis.noted", e["data"]) is e["data"] for e in read_events(home) if e["data"])
    assert segment.read_bytes().startswith(before) and verify(home).ok
    with pytest.raises(KindError, match=r"hypothesis\.noted: claim"):
        validate("hypothesis.noted", {"v": 2, "issue": "i", "sure": True})
