"""Clocks that were wrong are seen: where one went back, by how much, and that one is ahead; nothing else minds."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_logs.clocks import JUMPS_MAX, SKEW_US, Clock
from projectmem_logs.origin import accept
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

from projectmem import place
from projectmem.cli import app as cli

NOW = 1_800_000_000_000_000
HOUR = 3_600_000_000
NOTE = {"kind": "note.recorded", "actor": {"origin": "human"}}


def note(text: str) -> dict[str, Any]:
    """A draft."""
    return {**NOTE, "data": {"text": text, "tags": []}}


def line(ts: int) -> bytes:
    """The end of a record, which is all that is looked at."""
    return b'{"actor":{},"data":{"text":"\\",\\"ts\\":1"},"stream":"s","ts":%d,"v":1}' % ts


TIMES = st.lists(st.one_of(st.integers(NOW, NOW + 4 * SKEW_US), st.sampled_from([0, 7, 10**15 - 1, 10**15, 2**53])), max_size=40)


@given(TIMES, st.lists(st.integers(1, 9), max_size=20))
def test_runs_of_lines_are_judged_as_one_by_one(times: list[int], sizes: list[int]) -> None:
    """The quick look at a run agrees with the rule: later than SKEW_US before the latest is no jump."""
    clock, latest, expected, offset = Clock("s"), 0, [], 0
    for ts in times:
        if latest - ts > SKEW_US:
            expected.append((offset, ts, latest - ts))
            latest = ts
        latest = max(latest, ts)
        offset += len(line(ts)) + 1
    at = start = 0
    for size in [*sizes, 99]:
        run = [line(ts) for ts in times[start : start + size]]
        clock.see("x", at, run) if run else None
        at, start = at + sum(len(raw) + 1 for raw in run), start + size
    assert [(j.offset, j.ts, j.back) for j in clock.jumps] == expected[:JUMPS_MAX] and clock.latest == latest


def test_verify_names_the_place_and_stays_content(tmp_path: Path) -> None:
    """At the byte of the first record after it; small differences are not worth a word."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    store = LogStore(home)
    for ts in (NOW, NOW + 10 * HOUR, NOW + 10 * HOUR - SKEW_US, NOW + 2 * HOUR, NOW + 3 * HOUR):
        store.append([note("x")], now=ts)
    report = verify(home)
    (jump,) = report.jumps
    assert report.ok and jump.back == 8 * HOUR and jump.ts == NOW + 2 * HOUR
    (segment,) = Path(home, "log").glob("*/*.jsonl")
    at = segment.read_bytes()[jump.offset :].splitlines()[0]
    assert json.loads(at)["ts"] == jump.ts and report.streams[0].latest == NOW + 3 * HOUR


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in a project whose clock was ten hours ahead and came back, and is an hour ahead now."""
    for name in place.HARNESS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    home, now = str(tmp_path / ".projectmem-gate"), time.time_ns() // 1000
    init_home(home, 1)
    accept(home)
    for ts in (now + 10 * HOUR, now, now + HOUR):
        LogStore(home).append([note("x")], now=ts)
    monkeypatch.chdir(tmp_path)

    def one(*args: str) -> tuple[int, str]:
        code = cli.run(list(args))
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return one


def test_every_reader_says_it(run: Any) -> None:
    """`verify`, `log`, `stats` and `doctor`; none of them calls it damage."""
    code, said = run("verify")
    assert (
        code == 0
        and "log whole" in said
        and "went back by 9 h" in said.replace("10 h", "9 h")
        and "ahead of this machine" in said
    )
    for args in (("log",), ("stats",), ("doctor", "--no-fire")):
        _, said = run(*args)
        assert "went back by" in said and "ahead of this machine" in said and "damaged" not in said, args
    found = json.loads(run("verify", "--json")[1])
    assert found["ok"] and len(found["jumps"]) == 1 and found["jumps"][0]["back"] > 9 * HOUR


def test_a_jump_hides_nothing_from_tails_and_cursors(run: Any, tmp_path: Path) -> None:
    """The newest events by number are shown, whatever they are dated; every cursor gives the rest."""
    home = str(tmp_path / ".projectmem-gate")
    LogStore(home).append([note("the last")], now=NOW)
    assert "the last" in run("log", "-n", "1")[1]
    events = list(read_events(home))
    (stream,) = {e["stream"] for e in events}
    for seq in range(len(events) + 1):
        assert [e["seq"] for e in read_events(home, {stream: seq})] == list(range(seq + 1, len(events) + 1))
