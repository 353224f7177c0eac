"""Writes logs/golden/<version>: a small log of every kind, from fixed bytes only, so that a second run gives the same files.

Run it by hand when a new format is released, into a new folder; an existing one is never written again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from projectmem_logs.canonical import canonical
from projectmem_logs.envelope import GENESIS, seal, uuid7
from projectmem_logs.erasure import tombstone
from projectmem_logs.reader import read_events
from projectmem_logs.tail import segment_name

NOW = 1_800_000_000_000_000
SCOPE = {"project": "00c0ffee00c0ffee", "tenant": ""}
AGENT = {"session": "s-1", "agent": "", "harness": "claude-code", "model": "model-1", "origin": "observed"}
HUMAN = {"session": "", "agent": "", "harness": "cli", "model": "", "origin": "human"}
KEY = "0123456789abcdef0123456789abcdef"
ID = uuid7(NOW, b"0123456789")
PART: dict[str, Any] = {
    "key": KEY, "kind": "sh", "family": "pytest", "text": "pytest -q tests", "words": ["pytest", "tests"], "paths": ["tests"],
    "effects": [], "trivial": False,
}  # fmt: skip
BASE: dict[str, Any] = {
    "call": "toolu_01", "tool": "Bash", "kind": "sh", "input": '{"command":"pytest -q tests"}', "input_sha": "ab" * 32,
    "cwd": ".", "key": KEY, "text": "pytest -q tests",
}  # fmt: skip
FACTS: dict[str, Any] = {
    "head": "c0ffee" * 6 + "c0ff",
    "deps": {"uv.lock": "0123456789abcdef"},
    "files": {"a.py": "absent"},
    "env": {},
}
SAMPLES: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("policy.changed", HUMAN, {"text": 'mode = "advise"\n', "hash": "cd" * 32}),
    ("session.started", AGENT, {"source": "startup", "cwd": "."}),
    ("action.finished", AGENT, {
        **BASE, "joins": [], "parsed": True, "parts": [PART], "failed_key": KEY, "outcome": "failed", "exit_code": 1,
        "class": "test", "signature": "assert # == #", "excerpt": "E  assert 1 == 2 — naïve ≠ 😀\u2028\u0000",
        "duration_ms": 1234, "facts": FACTS, "as_of": {"00000000000000aa": 1}, "turn": 1, "source": "hook"}),
    ("action.proposed", AGENT, {
        **BASE, "keys": [KEY], "decision": {"verdict": "ask", "reasons": ["failed before"]}, "facts": {ID: {"head": "same"}},
        "session": {"session": "s-1", "agent": ""}, "policy": "cd" * 32, "now": NOW, "as_of": {"00000000000000aa": 3},
        "labels": []}),
    ("action.finished", AGENT, {
        **BASE, "joins": ["&&"], "parsed": True, "parts": [PART, PART], "failed_key": "", "outcome": "ok", "exit_code": 0,
        "class": "", "signature": "", "excerpt": "", "duration_ms": None, "facts": {},
        "as_of": None, "turn": 2, "source": "backfill"}),
    ("session.ended", AGENT, {"reason": "logout"}),
    ("issue.opened", HUMAN, {"issue": "i-1", "title": "tests fail on Windows", "paths": ["src/a.py"]}),
    ("hypothesis.noted", AGENT, {"issue": "i-1", "text": "path separators"}),
    ("attempt.recorded", AGENT, {"issue": "i-1", "text": "replace backslashes", "outcome": "failed", "verifier": "pytest"}),
    ("fix.recorded", AGENT, {"issue": "i-1", "text": "use PurePosixPath", "verifier": "pytest"}),
    ("issue.closed", HUMAN, {"issue": "i-1", "resolution": "fixed"}),
    ("decision.recorded", HUMAN, {"title": "POSIX paths", "text": "all paths are stored as POSIX", "supersedes": ""}),
    ("note.recorded", HUMAN, {"text": "CI is slow on Mondays", "tags": ["ci"]}),
    ("label.set", HUMAN, {
        "label": "protected", "target": "path", "pattern": "migrations/**", "effect": "ask", "reason": "shared",
        "review_at": NOW}),
    ("label.cleared", HUMAN, {"label_event": ID, "reason": "done"}),
    *[(f"record.{verb}", HUMAN, {"record": ID, "key": KEY, "until": until, "reason": "r", "by_event": ""})
      for verb, until in (("pinned", 0), ("snoozed", NOW), ("disputed", 0), ("superseded", 0), ("reviewed", 0))],
    ("recall.decided", AGENT, {"injected": [], "below_floor": [{"id": ID, "score_pm": 120}], "abstained": True}),
    ("feedback.given", HUMAN, {"target": ID, "useful": False, "note": "outdated"}),
    ("erasure.requested", HUMAN, {"selector": "id:" + ID, "ids": [ID], "reason": "personal data"}),
    ("log.recovered", AGENT, {"segment": segment_name(1), "offset": 10, "bytes": 3, "sha256": "ef" * 32, "quarantine": "q"}),
    ("checkpoint.sealed", AGENT, {"size": 20, "root": "01" * 32}),
    ("gate.degraded", AGENT, {"where": "hook", "what": "ValueError", "detail": "no answer in time"}),
    ("future.kind", AGENT, {"kept": "and skipped"}),
]  # fmt: skip


def _random() -> Iterator[bytes]:
    n = 0
    while True:
        yield sha256(n.to_bytes(8, "big")).digest()
        n += 1


def stream(name: str, samples: list[tuple[str, dict[str, str], dict[str, Any]]], sizes: list[int], at: int) -> list[bytes]:
    """The lines of one stream, in batches of the given sizes."""
    rand, prev, lines, seq = _random(), GENESIS, [], 1
    queue = iter(samples)
    for size in sizes:
        for k in range(size):
            kind, actor, data = next(queue)
            bits = next(rand)
            draft = {"kind": kind, "at": at + seq, "actor": actor, "causes": [ID] if seq % 3 == 0 else [], "data": data}
            event, line = seal(
                draft, stream=name, seq=seq, batch=seq - k, left=size - 1 - k, ts=at + seq * 7, prev=prev, salt=bits[:16],
                id=uuid7(at + seq, bits[16:26]), scope=SCOPE,
            )  # fmt: skip
            prev, seq = event["hash"], seq + 1
            lines.append(line)
    return lines


def digest(home: str) -> str:
    """What a log replays to: SHA-256 over the canonical form of every event in reading order."""
    out = sha256()
    for event in read_events(home, recorded=True):
        out.update(canonical(event) + b"\n")
    return out.hexdigest()


def main(target: Path) -> None:
    """Write the log and its digest."""
    if target.exists():
        raise SystemExit(f"{target} exists: a released golden log is never written again")
    a, b = target / "log" / "00000000000000aa", target / "log" / "00000000000000bb"
    a.mkdir(parents=True)
    b.mkdir()
    lines = stream(a.name, SAMPLES, [1, 1, 2, 1, 3, 5, len(SAMPLES) - 13], NOW)
    lines[12] = tombstone(lines[12][:-1], by=ID, at=NOW) + b"\n"
    (a / segment_name(1)).write_bytes(b"".join(lines[:8]))
    (a / segment_name(9)).write_bytes(b"".join(lines[8:]))
    (b / segment_name(1)).write_bytes(b"".join(stream(b.name, SAMPLES[1:6], [2, 3], NOW + 20)))
    (target / "project.json").write_bytes(canonical({"created": NOW, "format": 1, "project": SCOPE["project"]}) + b"\n")
    (target / "digest").write_text(digest(str(target)) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
