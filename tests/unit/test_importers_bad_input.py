"""What an import does with files that no writer left like that: named, passed over, bounded in memory, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from projectmem_logs.reader import read_events

from projectmem import writing
from projectmem.importers import backfill as importing
from projectmem.importers import reading
from projectmem.importers.backfill import backfill
from projectmem.importers.claude_code import session_files, slug
from projectmem.importers.reading import Counts, raw_lines, unfit
from projectmem.importers.sources import SOURCES, sessions
from projectmem.place import Place

NOW = 1_796_100_000_000_000


def _lines(place: Place, first: int, count: int, output: str = "out") -> str:
    base = {"sessionId": "s1", "cwd": place.root, "isSidechain": False, "timestamp": "2026-11-30T10:00:00Z"}
    text = []
    for n in range(first, first + count):
        use = {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": f"make part{n}"}}
        told = {"type": "tool_result", "tool_use_id": f"t{n}", "content": output, "is_error": False}
        text += [
            {**base, "type": "assistant", "message": {"role": "assistant", "content": [use]}},
            {**base, "type": "user", "message": {"role": "user", "content": [told]}},
        ]
    return "".join(json.dumps(line) + "\n" for line in text)


def _folder(place: Place, tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".claude" / "projects" / slug(place.root)
    folder.mkdir(parents=True)
    return folder


def _calls(place: Place) -> list[str]:
    return [e["data"]["call"] for e in read_events(place.home) if e["kind"] == "action.finished"]


def test_every_kind_of_bad_file_is_named_and_the_rest_is_read(place: Place, tmp_path: Path) -> None:
    """Cut short, another encoding, nothing, a folder, links that lead nowhere or round, a pipe, Windows' line ends."""
    folder = _folder(place, tmp_path)
    (folder / "good.jsonl").write_bytes(b"\xef\xbb\xbf" + _lines(place, 1, 2).replace("\n", "\r\n").encode())
    (folder / "cut.jsonl").write_text(_lines(place, 3, 2)[:-40])
    (folder / "latin.jsonl").write_bytes(
        _lines(place, 5, 2).replace("out", "\u00fcber").encode("latin-1") + b'{"tool_use": "\xff"}\n'
    )
    (folder / "wide.jsonl").write_text(_lines(place, 7, 1), encoding="utf-16")
    (folder / "empty.jsonl").touch()
    (folder / "folder.jsonl").mkdir()
    (folder / "round.jsonl").symlink_to(folder / "round.jsonl")
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    (folder / "up").symlink_to(folder, target_is_directory=True)
    os.mkfifo(folder / "pipe.jsonl")
    counts = backfill(place, now=NOW)
    assert sorted(_calls(place)) == ["t1", "t2", "t3", "t5", "t6"]
    names = {Path(name).name for name in counts.unread}
    assert names == {"cut.jsonl", "wide.jsonl", "folder.jsonl", "pipe.jsonl"}
    assert counts.calls == counts.recorded + counts.unfinished
    assert "cut.jsonl" in counts.line() or "folder.jsonl" in counts.line()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a file that may not be read")
def test_a_file_that_may_not_be_read_is_named(place: Place, tmp_path: Path) -> None:
    """With the system's reason."""
    path = _folder(place, tmp_path) / "s1.jsonl"
    path.write_text(_lines(place, 1, 1))
    path.chmod(0)
    assert "Permission denied" in backfill(place, now=NOW).line()


def test_a_denied_file_is_named_whoever_runs_this(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a test that runs as root."""
    path = _folder(place, tmp_path) / "s1.jsonl"
    path.write_text(_lines(place, 1, 1))

    def denied(_: Path) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reading, "opened", denied)
    assert f"{path} (Permission denied)" in backfill(place, now=NOW).line()


def test_a_line_without_an_end_costs_no_memory_and_not_what_follows(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the limit's length a line still counts; above it the line is damage, and the next one is read."""
    monkeypatch.setattr(reading, "LINE_MAX", 1000)
    monkeypatch.setattr(reading, "PIECE", 64)
    path = tmp_path / "x"
    path.write_bytes(b"a" * 999 + b"\n" + b"b" * 5000 + b"\n" + b"c" * 1000 + b"\n" + b"d\n")
    counts = Counts()
    assert [line[:1] for line in raw_lines(path, counts)] == [b"a", b"d"]
    assert counts.damaged == 2 and list(counts.unread) == [str(path)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_a_line_of_a_gigabyte_is_read_in_bounded_memory(place: Place, tmp_path: Path) -> None:
    """A sparse file: no disk is needed for it. The peak is that of a process of its own."""
    path = _folder(place, tmp_path) / "s1.jsonl"
    path.write_text(_lines(place, 1, 1))
    with path.open("r+b") as file:
        file.truncate(1 << 30)
        file.seek(0, 2)
        file.write(b"\n" + _lines(place, 2, 1).encode())
    code = (
        "import sys\nfrom projectmem.place import locate\nfrom projectmem.importers.backfill import backfill\n"
        f"counts = backfill(locate({place.root!r}), now={NOW})\n"
        "peak = [l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1]\n"
        "print(counts.recorded, counts.damaged, int(peak) < 600_000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2", "1", "True"], done.stdout + done.stderr


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "opencode"])
def test_shapes_that_no_client_writes_are_counted_and_never_raised(place: Place, tmp_path: Path, name: str) -> None:
    """Every member that a reader looks at, of every wrong type."""
    wrong: list[Any] = [None, 3, "x", [], {}, [None], {"content": 3}, {"content": [{"type": 3}]}, [{"functionCall": {"name": 3}}]]
    fields = (
        "type",
        "message",
        "payload",
        "item",
        "data",
        "toolCalls",
        "timestamp",
        "sessionId",
        "messages",
        "cwd",
        "id",
        "model",
    )
    marks = {"x": "tool_use tool_result toolCall toolResult session_meta item_completed functionCall tool.execution_complete"}
    kinds = (
        "assistant",
        "user",
        "message",
        "session",
        "session_start",
        "session_meta",
        "response_item",
        "tool.execution_complete",
    )
    rows = [{**marks, "type": kind, field: value} for kind in kinds for field in fields[1:] for value in wrong]
    path = tmp_path / "s1.messages.json"
    _, reader = SOURCES[name]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = backfill(place, now=NOW, sources=[(path, reader)])
    assert counts.recorded == 0
    alone = []
    for n, row in enumerate(rows):
        alone.append(tmp_path / f"{n}.messages.json")
        alone[-1].write_text(json.dumps(row))
    assert backfill(place, now=NOW, sources=[(path, reader) for path in alone]).recorded == 0


def test_a_run_that_was_cut_short_goes_on_where_it_was(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are written within a file; what is in the log is known by its id, so nothing is twice and nothing is missing."""
    (_folder(place, tmp_path) / "s1.jsonl").write_text(_lines(place, 1, 25))
    monkeypatch.setattr(importing, "BATCH_EVENTS", 10)
    real, written = writing.append, list[int]()

    def stops(*given: Any, **how: Any) -> Any:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(len(given[1] or how["encoded"]))
        return real(*given, **how)

    monkeypatch.setattr(importing, "append", stops)
    with pytest.raises(KeyboardInterrupt):
        backfill(place, now=NOW)
    assert written == [10, 10] and len(_calls(place)) == 20
    monkeypatch.setattr(importing, "append", real)
    counts = backfill(place, now=NOW)
    assert (counts.recorded, counts.known) == (5, 20)
    assert sorted(_calls(place)) == sorted(f"t{n}" for n in range(1, 26))


def test_long_inputs_make_batches_that_the_log_takes(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch ends by its size too."""
    (_folder(place, tmp_path) / "s1.jsonl").write_text(_lines(place, 1, 9))
    monkeypatch.setattr(importing, "BATCH_CHARS", 60)
    sizes: list[int] = []
    real = writing.append

    def counted(*given: Any, **how: Any) -> Any:
        sizes.append(len(given[1] or how["encoded"]))
        return real(*given, **how)

    monkeypatch.setattr(importing, "append", counted)
    assert backfill(place, now=NOW).recorded == 9
    assert len(sizes) > 2 and sum(sizes) == 9


def test_the_files_of_every_harness_are_found_where_links_lead_round(place: Place, tmp_path: Path) -> None:
    """Listing never fails."""
    home = tmp_path / "home"
    folders = """.claude/projects/x .codex/sessions/1 .gemini/tmp/x/chats .qwen/projects/x/chats .copilot/session-state
        .factory/sessions/x .cline/data/sessions/x .pi/agent/sessions/x"""
    for folder in folders.split():
        base = home / folder
        base.mkdir(parents=True)
        for name in ("rollout-1.jsonl", "session-1.jsonl", "events.jsonl", "x.messages.json"):
            (base / name).symlink_to(base / name)
        (base / "loop").symlink_to(base, target_is_directory=True)
    counts = backfill(place, now=NOW, sources=sessions(place, list(SOURCES)))
    assert counts.recorded == 0 and session_files(place) == []


def test_what_no_log_can_hold_stops_nothing_beside_it(place: Place, tmp_path: Path) -> None:
    """Times and numbers out of this world, a name without an end: one call is counted, or has none."""
    use, told = map(json.loads, _lines(place, 1, 1).splitlines())
    late = json.dumps(use) + "\n" + json.dumps({**told, "timestamp": "9999-01-01T00:00:00Z"}) + "\n"
    code = _lines(place, 2, 1, "Exit code 99999999999999999999\nboom").replace('"is_error": false', '"is_error": true')
    long = _lines(place, 4, 1).replace('"t4"', f'"{"t" * 20_000}"')
    folder = _folder(place, tmp_path)
    (folder / "a.jsonl").write_text(_lines(place, 0, 1) + late + code + long + _lines(place, 5, 1))
    for known in (0, 4):
        counts = backfill(place, now=NOW)
        assert (counts.known, counts.recorded, counts.damaged) == (known, 4 - known, 1)
        assert list(counts.unread) == [str(folder / "a.jsonl")] and "20,000 characters" in counts.line()
    assert _calls(place) == ["t0", "t1", "t2", "t5"]
    codes = {e["data"]["call"]: e["data"]["exit_code"] for e in read_events(place.home) if e["kind"] == "action.finished"}
    assert codes["t2"] is None


@pytest.mark.parametrize("at", [-1, 2**53 + 1, 1.5, "now"])
def test_a_time_that_a_log_does_not_hold_is_counted(place: Place, at: Any) -> None:
    """Whatever a reader makes of a file."""
    assert unfit({"at": None, "call": "t1"}) is None
    calls = [{"at": at, "cwd": place.root, "call": "t1"}]
    counts = backfill(place, now=NOW, sources=[(Path("x"), lambda *_: iter(calls))])
    assert (counts.calls, counts.damaged, counts.unread) == (0, 1, {"x": "a result of a time that cannot be"})


def test_half_a_character_in_a_name_is_spelled_out() -> None:
    """As it is in what a call was asked and said."""
    call = {"at": NOW, "call": "t\ud800", "session": "s", "cwd": "/r/\u00fc"}
    assert unfit(call) is None and call == {"at": NOW, "call": "t\\ud800", "session": "s", "cwd": "/r/\u00fc"}


def test_half_a_surrogate_pair_in_a_line_loses_no_call(place: Place, tmp_path: Path) -> None:
    """JavaScript's clients cut an output within a character and write what is left of it as an escape."""
    _folder(place, tmp_path).joinpath("s1.jsonl").write_text(
        _lines(place, 0, 3, "no rule \\ud83d").replace("\\\\ud83d", "\\uD83D")
    )
    counts = backfill(place, now=NOW)
    assert (counts.recorded, counts.damaged) == (3, 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'["\ud83d"]', ["\\ud83d"]),
        (r'["\uDE00x"]', ["\\ude00x"]),
        (r'["\ud83d\ud83d\ude00"]', ["\\ud83d\U0001f600"]),
        (r'["\\ud83d \ud83d"]', ["\\ud83d \\ud83d"]),
        (r'["\\\ud83d\n"]', ["\\\\ud83d\n"]),
    ],
)
def test_half_a_pair_is_spelled_out_and_a_whole_one_kept(text: str, value: Any) -> None:
    assert reading.parsed(text) == reading.parsed(text.encode()) == value


@pytest.mark.parametrize("raw", [b"{", b'["\\ud83d"', b"\xff{", None, 3, b'["\\u12"]'])
def test_what_is_no_json_stays_that(raw: Any) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        reading.parsed(raw)
