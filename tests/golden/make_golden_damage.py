"""Writes logs/golden/damaged: one small segment for every form of damage, and how each is judged, read and repaired.

As make_golden_log: fixed bytes only, written once. A verdict that changes is a change of the log's contract.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from projectmem_logs.envelope import BOM
from projectmem_logs.home import init_home
from projectmem_logs.reader import Problem, read_events
from projectmem_logs.repair import apply, plan
from projectmem_logs.tail import read_tail, segment_name
from projectmem_logs.verify import verify

STREAM = "00000000000000aa"
NOW = 1_800_000_000_000_000
Lines = list[bytes]


def forms(good: Lines) -> dict[str, bytes]:
    """{name: the bytes of the segment}, from eight lines in batches of 1, 1, 2, 1, 2, 1."""
    nul = bytes(sum(map(len, good[3:5])))
    made: dict[str, Callable[[Lines], Lines]] = {
        "whole": lambda x: x,
        "empty-file": lambda x: [],
        "byte-order-mark": lambda x: [BOM + x[0], *x[1:]],
        "byte-order-mark-in-the-middle": lambda x: [*x[:4], BOM + x[4], *x[5:]],
        "crlf": lambda x: [i[:-1] + b"\r\n" for i in x],
        "crlf-in-one-line": lambda x: [*x[:3], x[3][:-1] + b"\r\n", *x[4:]],
        "crlf-in-the-last-line": lambda x: [*x[:7], x[7][:-1] + b"\r\n"],
        "glued": lambda x: [x[0][:-1], *x[1:]],
        "glued-three": lambda x: [*x[:3], x[3][:-1], x[4][:-1], *x[5:]],
        "glued-at-the-end": lambda x: [*x[:6], x[6][:-1], x[7]],
        "glued-to-a-half-at-the-end": lambda x: [*x[:7], x[6][:150], x[7]],
        "glued-behind-a-gap-at-the-end": lambda x: [*x[:4], x[4][:150], x[7]],
        "glued-to-a-half": lambda x: [*x[:3], x[3][:200], *x[4:]],
        "nul-run-in-a-record": lambda x: [*x[:3], x[3][:50] + bytes(40) + x[3][90:], *x[4:]],
        "nul-run-over-records": lambda x: [*x[:3], nul, *x[5:]],
        "nul-run-at-the-end": lambda x: [*x, bytes(512)],
        "nul-only": lambda x: [bytes(4096)],
        "repeated-line": lambda x: [*x[:3], x[2], *x[3:]],
        "repeated-last-line": lambda x: [*x, x[-1]],
        "swapped-lines": lambda x: [*x[:2], x[3], x[2], *x[4:]],
        "swapped-batches": lambda x: [x[1], x[0], *x[2:]],
        "missing-line": lambda x: x[:4] + x[5:],
        "missing-first-line": lambda x: x[1:],
        "missing-last-line-of-a-batch": lambda x: [*x[:3], *x[4:]],
        "changed-payload": lambda x: [*x[:1], x[1].replace(b'"data":{"', b'"data":{ ', 1), *x[2:]],
        "changed-header": lambda x: [*x[:4], x[4].replace(b'"left":0', b'"left":1', 1), *x[5:]],
        "spaces": lambda x: [*x[:2], x[2].replace(b",", b", ", 1), *x[3:]],
        "empty-line": lambda x: [*x[:3], b"\n", *x[3:]],
        "strange-line": lambda x: [*x[:4], b"<<<<<<< HEAD\n", *x[4:]],
        "strange-lines-only": lambda x: [b"hello\n", b"world\n"],
        "utf-16": lambda x: [b"".join(x).decode().encode("utf-16")],
        "another-stream": lambda x: [*x[:1], x[1].replace(STREAM.encode(), b"00000000000000bb"), *x[2:]],
        "no-last-newline": lambda x: [*x[:7], x[7][:-1]],
        "torn-in-the-last-line": lambda x: [*x[:7], x[7][:100]],
        "torn-between-lines-of-a-batch": lambda x: x[:6],
        "torn-with-lost-first-sector": lambda x: [*x[:5], bytes(300) + x[5][300:], x[6]],
        "torn-first-batch": lambda x: [x[0][:99]],
    }
    return {name: b"".join(make(list(good))) for name, make in made.items()}


def placed(folder: Path, data: bytes) -> tuple[str, Path]:
    """A log whose only segment has these bytes: (its home, the segment)."""
    home = str(folder / "home")
    init_home(home, NOW)
    path = Path(home, "log", STREAM, segment_name(1))
    path.parent.mkdir()
    path.write_bytes(data)
    return home, path


def verdict(folder: Path, data: bytes) -> dict[str, Any]:
    """How these bytes are judged as a tail, verified, read and repaired."""
    home, path = placed(folder, data)
    tail = read_tail(str(path), STREAM, 1, len(data))
    problems: list[Problem] = []
    out: dict[str, Any] = {
        "tail": [tail.state, tail.seq, tail.cut],
        "verify": [[p.kind, p.offset, p.count] for p in verify(home).problems],
        "whole": verify(home).events,
        "read": [e["seq"] for e in read_events(home, problems=problems)],
        "skipped": [[p.kind, p.offset] for p in problems],
        "repair": [s.kind for s in plan(home)],
    }
    apply(home, now=NOW)
    out["left"] = [p.kind for p in verify(home).problems if p.stream == STREAM]
    out["read after"] = [e["seq"] for e in read_events(home) if e["stream"] == STREAM]
    return out


def main(target: Path, good: Lines) -> None:
    """Write the segments and their verdicts."""
    if target.exists():
        raise SystemExit(f"{target} exists: released damage is never written again")
    target.mkdir(parents=True)
    verdicts = {}
    for name, data in forms(good).items():
        (target / f"{name}.segment").write_bytes(data)
        with tempfile.TemporaryDirectory() as folder:
            verdicts[name] = verdict(Path(folder), data)
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(v)}" for name, v in verdicts.items())
    (target / "verdicts.json").write_text("{\n" + rows + "\n}\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from make_golden_log import SAMPLES, stream

    main(Path(sys.argv[1]), stream(STREAM, SAMPLES, [1, 1, 2, 1, 2, 1], NOW))
