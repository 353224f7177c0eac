"""Pairs of calls that are the same action, and pairs that are not: gate/vectors, with the rates printed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from projectmem_gate.hints import ANY, raw_words
from projectmem_gate.identify import identify
from projectmem_gate.model import Action

VECTORS = Path(__file__).resolve().parents[2] / "gate" / "vectors"
ROOT = "/srv/acme"


def _pairs(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _action(call: dict[str, Any], pair: dict[str, Any]) -> Action:
    """`facts` of a pair are what the caller would know of the disk and the log: root, links, worktrees, renames, folding."""
    facts = dict(pair.get("facts", {}))
    links: dict[str, str] = facts.pop("links", {})

    def resolve(path: str) -> str:
        for link, real in links.items():
            if path == link or path.startswith(link + "/"):
                return resolve(real + path[len(link) :])
        return path

    root = facts.pop("root", ROOT)
    return identify(call["tool"], call["input"], root=root, cwd=call["cwd"], resolve=resolve if links else None, **facts)


@pytest.mark.parametrize(("name", "same"), [("equivalent", True), ("different", False)])
def test_vectors(name: str, same: bool) -> None:
    """Every pair is told right; each kind of pair is reported with its rate."""
    pairs = _pairs(name)
    right: Counter[str] = Counter()
    wrong: list[str] = []
    for pair in pairs:
        a, b = _action(pair["a"], pair), _action(pair["b"], pair)
        if (a.key == b.key) is same:
            right[pair["why"]] += 1
        else:
            wrong.append(f"{pair['why']}: {pair['a']['input']} / {pair['b']['input']}\n    {a.text}\n    {b.text}")
    of = Counter(pair["why"] for pair in pairs)
    print(f"{name}: {sum(right.values())} of {len(pairs)} right")
    print("  " + ", ".join(f"{why} {right[why]}/{n}" for why, n in sorted(of.items())))
    blind = Counter(pair["first"] for pair in pairs if "first" in pair)
    print(f"  written before the canonicaliser was asked: {blind['right']} of {blind.total()} right at first")
    assert blind.total() >= 390
    assert len(pairs) >= 700
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["equivalent", "different"])
def test_hint_words_of_either_side_occur_in_the_other_where_the_keys_are_equal(name: str) -> None:
    """The hook's filter may pass too much but never too little: for every spelling of every key of a pair."""
    for pair in _pairs(name):
        calls = [pair["a"], pair["b"]]
        if any(k in pair.get("facts", {}) for k in ("links", "renames")):
            continue  # another name than the one on disk or on record: see "Hint words" in IDENTITY.md
        actions = [_action(c, pair) for c in calls]
        words = [raw_words(json.dumps(c["input"])) for c in calls]
        for call, raw in zip(calls, words, strict=True):
            assert raw - raw_words(call["input"]) <= {"true", "false", "null"}  # JSON text and parsed value agree
        for one in actions:
            for part in one.parts:
                for other, raw in zip(actions, words, strict=True):
                    if any(p.key == part.key for p in other.parts) and ANY not in raw:
                        assert set(part.words) <= raw, (part.words, pair)


def test_every_part_of_the_vectors_is_well_formed() -> None:
    """Keys are 32 hex digits, texts one short line, and what the shell walks has a family."""
    for name in ("equivalent", "different"):
        for pair in _pairs(name):
            for call in (pair["a"], pair["b"]):
                action = _action(call, pair)
                assert len(action.joins) == len(action.parts) - 1
                assert action.parsed
                for part in action.parts:
                    assert len(part.key) == 32
                    assert set(part.key) <= set("0123456789abcdef")
                    assert part.family
                    assert len(part.text) <= 400
                    assert len(part.words) <= 3
                    assert "\n" not in part.text or part.kind != "sh"
