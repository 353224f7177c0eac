"""What an import does not do twice, or not at all, changes nothing that it records; and how far it is shows."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.reader import read_events

from projectmem import output
from projectmem.importers import drafting
from projectmem.importers.backfill import backfill
from projectmem.importers.earlier import Earlier
from projectmem.importers.made import Made
from projectmem.place import Place
from tests.places import new_place

NOW = 1_796_100_000_000_000
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
BUILD = "Error: cannot find config.json\nnpm ERR! code 1"


def _rows() -> list[tuple[str, Any, bool, str]]:
    """(tool, input, is_error, output): repeats, pipes that hide a failure, moves, reports that are shown, secrets."""
    sh = [
        ("npm run build", True, f"Exit code 1\n{BUILD}"),
        ("npm run build", False, "built"),
        ("npm run build", True, f"Exit code 1\n{BUILD}"),
        ("npm run build | tail -5", False, BUILD),
        ("npm run build; echo done", False, f"{BUILD}\ndone"),
        ("cat report.xml", False, '<testsuite failures="1" tests="2"><testcase name="a"><failure message="m"/></testcase>'),
        ("echo ok", False, f"token {TOKEN}"),
        (f"curl -H 'Authorization: Bearer {TOKEN}' x", True, f"Exit code 7\ncurl: (7) Failed, key {TOKEN}"),
        ("git mv a.py b.py", False, ""),
        ("pytest b.py", True, "Exit code 1\nFAILED b.py::test_x - assert 1 == 2"),
        ("pytest b.py -q 2>&1 | head", False, "FAILED b.py::test_x - assert 1 == 2"),
        ("grep nothing a.py", True, "Exit code 1"),
        ("make", False, "Command timed out after 2m 0s"),
    ]
    rows: list[tuple[str, Any, bool, str]] = [("Bash", {"command": c}, e, o) for c, e, o in sh]
    rows.append(("Read", {"file_path": "a.py"}, False, f"key = {TOKEN}"))
    rows.append(("Edit", {"file_path": "b.py", "old_string": "x", "new_string": "y"}, True, "String to replace not found"))
    rows.append(("Edit", {"file_path": "b.py", "old_string": "x", "new_string": "y"}, False, "apply_patch verification failed"))
    return rows * 2


def _calls(place: Place) -> Iterator[dict[str, Any]]:
    from projectmem.hook.claude_results import read_result
    from projectmem.hook.payload import OUTCOME_OPEN

    for n, (tool, given, error, text) in enumerate(_rows()):
        call = {"harness": "claude-code", "session": "s", "agent": "", "model": "", "call": f"t{n}", "tool": tool, "input": given}
        call |= {"cwd": place.root, **OUTCOME_OPEN, "turn": -1, "began": 0, "at": NOW - 10**9 + n * 10**6}
        read_result(call, text, error)
        yield call


def _told(place: Place) -> list[Any]:
    events = [e for e in read_events(place.home) if e["kind"] == "action.finished"]
    return [json.loads(json.dumps(e["data"]).replace(place.root, "/r")) for e in events]


def test_every_shortcut_gives_what_the_long_way_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs that are not looked at for secrets, actions that are known, outcomes that are not learned: the same events."""
    short, long = new_place(tmp_path / "short", NOW), new_place(tmp_path / "long", NOW)
    assert backfill(short, now=NOW, sources=[(tmp_path, lambda *_: _calls(short))]).recorded == len(_rows())
    monkeypatch.setattr(drafting, "_judged", drafting._looked_at)
    monkeypatch.setattr(drafting, "SHORT", -1)
    monkeypatch.setattr("projectmem.importers.earlier._matters", lambda *_: True)
    assert backfill(long, now=NOW, sources=[(tmp_path, lambda *_: _calls(long))]).recorded == len(_rows())
    key = (Path(short.home) / "key").read_bytes()
    assert key != (Path(long.home) / "key").read_bytes(), "marks differ by installation, so they are taken out below"
    plain = [re.sub(r"secret[_:]\w+|[0-9a-f]{32,64}", "*", json.dumps(_told(place))) for place in (short, long)]
    assert plain[0] == plain[1]
    outcomes = [d["outcome"] for d in _told(short)]
    assert outcomes.count("failed") >= 8 and outcomes.count("ok") >= 8


def test_no_secret_of_an_output_reaches_the_log(tmp_path: Path) -> None:
    """Of calls that went well nothing is kept, of the others marks."""
    place = new_place(tmp_path / "repo", NOW)
    backfill(place, now=NOW, sources=[(tmp_path, lambda *_: _calls(place))])
    written = b"".join(path.read_bytes() for path in Path(place.home).rglob("*") if path.is_file())
    assert TOKEN.encode() not in written and b"<secret:" in written


def test_the_same_command_is_named_anew_once_a_file_was_moved(tmp_path: Path) -> None:
    """A known action is known only as long as nothing was moved."""
    place = new_place(tmp_path / "repo", NOW)
    drafts = drafting.Drafts(Earlier())
    before = list(_calls(place))
    moved = next(call for call in before if "git mv" in str(call["input"]))
    late = {**before[9], "call": "late", "at": NOW}
    early = drafts.make(place, {**before[9], "call": "early", "at": moved["at"] - 1})
    drafts.earlier.learn(Made(drafts.make(place, moved)))
    assert drafts.make(place, late)["data"]["key"] != early["data"]["key"]


class Terminal(io.StringIO):
    """A stream that says that a person sees it."""

    def isatty(self) -> bool:
        return True


def test_a_bar_shows_once_a_second_has_gone_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a file too; nothing before a second, nothing where nobody looks, and every source is passed through."""
    clock = [0.0]
    monkeypatch.setattr("projectmem.output.time.monotonic", lambda: clock[0])
    path = tmp_path / "x"
    path.write_text("12345")

    def reader(_: Path, __: Any) -> Iterator[int]:
        for n in range(5):
            clock[0] += 0.4
            yield n

    def read(stream: Any) -> list[int]:
        clock[0] = 0.0
        return [call for file, way in output.reading([(path, reader)], stream=stream) for call in way(file, None)]

    seen, unseen = Terminal(), io.StringIO()
    assert read(seen) == read(unseen) == [0, 1, 2, 3, 4]
    assert "reading sessions: 0 of 1 file" in seen.getvalue() and "calls" in seen.getvalue() and unseen.getvalue() == ""
    quick = Terminal()
    assert [way for _, way in output.reading([(path, reader)], stream=quick)] and quick.getvalue() == ""
