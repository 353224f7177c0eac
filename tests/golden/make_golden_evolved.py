"""Writes logs/golden/evolved: a log whose kinds went through versions that only its test knows (no kind has a second one yet).

As make_golden_log: fixed bytes only, written once. `note.recorded` had `body` (1), then `text` without tags (2), then tags (3);
`action.finished` called its outcome `result` (1). One payload is of a version that is not known yet, one is not what its
version promises.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import make_golden_log as base
from projectmem_logs.canonical import canonical
from projectmem_logs.tail import segment_name

STREAM = "00000000000000ee"
FAILED = next(data for kind, _, data in base.SAMPLES if kind == "action.finished" and data["outcome"] == "failed")
OLD = {**{k: v for k, v in FAILED.items() if k != "outcome"}, "result": "failed", "turn": 1}
SAMPLES: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("note.recorded", base.HUMAN, {"body": "the first version has no number"}),
    ("note.recorded", base.HUMAN, {"v": 2, "text": "the second has no tags"}),
    ("action.finished", base.AGENT, {**OLD, "call": "toolu_01"}),
    ("note.recorded", base.HUMAN, {"v": 3, "text": "today's", "tags": ["a"]}),
    ("action.finished", base.AGENT, {**OLD, "call": "toolu_02", "v": 1}),
    ("action.finished", base.AGENT, {**FAILED, "call": "toolu_03", "v": 2}),
    ("note.recorded", base.HUMAN, {"v": 9, "words": "from the future"}),
    ("note.recorded", base.HUMAN, {"v": 1, "bodi": "not what the first version promises"}),
]
LATEST = {"note.recorded": 3, "action.finished": 2}
UPCASTERS = {
    ("note.recorded", 1): lambda d: {"text": d["body"]},
    ("note.recorded", 2): lambda d: {**d, "tags": []},
    ("action.finished", 1): lambda d: {**{k: v for k, v in d.items() if k != "result"}, "outcome": d["result"]},
}
TODAY: list[dict[str, Any]] = [
    {"v": 3, "text": "the first version has no number", "tags": []},
    {"v": 3, "text": "the second has no tags", "tags": []},
    {**FAILED, "call": "toolu_01", "v": 2},
    SAMPLES[3][2],
    {**FAILED, "call": "toolu_02", "v": 2},
    SAMPLES[5][2],
    SAMPLES[6][2],
    SAMPLES[7][2],
]


def segment() -> bytes:
    """The only segment's bytes, in batches of 1, 2, 3, 2."""
    return b"".join(base.stream(STREAM, SAMPLES, [1, 2, 3, 2], base.NOW))


def main(target: Path) -> None:
    """Write the log. Its digests are what `test_logs_evolution` finds with LATEST and UPCASTERS in force."""
    if target.exists():
        raise SystemExit(f"{target} exists: a golden log is never written again")
    folder = target / "log" / STREAM
    folder.mkdir(parents=True)
    (folder / segment_name(1)).write_bytes(segment())
    (target / "project.json").write_bytes(canonical({"created": base.NOW, "format": 1, "project": base.SCOPE["project"]}) + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
