"""Damage in the middle of a log is made known to a person at the start of a session, at the price of one small file."""

from __future__ import annotations

import os
import time
from typing import Any

from projectmem_logs.store import LogStore

from projectmem.cli import app as cli
from projectmem.hook import background, health
from tests.patience import PATIENCE

DAY = 86_400_000_000


def start(hooked: Any, session: str) -> str:
    """What the person sees at the start of a session."""
    reply = hooked.fire("SessionStart", session, source="startup")
    return (reply or {}).get("systemMessage", "")


def damage(hooked: Any) -> None:
    """Change one byte far from the end of the log."""
    store = LogStore(str(hooked.home))
    for i in range(300):
        data = {"text": f"note {i} {'x' * 400}", "tags": []}
        store.append([{"kind": "note.recorded", "actor": {"origin": "human"}, "data": data}], now=hooked.now)
    (path,) = hooked.home.glob("log/*/*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"note 7 ", b"n0te 7 "))


def test_what_verify_found_is_said_once_a_session_until_it_is_mended(hooked: Any, monkeypatch: Any) -> None:
    """And recorded as degraded; the log without the damage is silence again."""
    monkeypatch.chdir(hooked.root)
    start(hooked, "zero")
    damage(hooked)
    assert start(hooked, "one") == "" and cli.run(["verify"]) == 1
    said = start(hooked, "two")
    assert "log is damaged" in said and "projectmem verify" in said and "at byte" in said
    assert start(hooked, "two") == "" and "log is damaged" in start(hooked, "three")
    assert [e["data"]["what"] for e in hooked.events("gate.degraded")] == ["the log is damaged"] * 2
    (path,) = hooked.home.glob("log/*/*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"n0te 7 ", b"note 7 "))
    assert cli.run(["verify"]) == 0 and start(hooked, "four") == ""


def test_the_whole_log_is_looked_at_once_a_day_in_the_background(hooked: Any, monkeypatch: Any) -> None:
    """Not where it is new, not twice a day; what is found is said at the next start."""
    begun: list[Any] = []
    monkeypatch.setattr(background, "start", lambda *args: begun.append(args) if args[0] == "projectmem.hook.health" else None)
    start(hooked, "zero")
    assert not begun
    damage(hooked)
    os.utime(hooked.home / "project.json", (1, 1))
    start(hooked, "one")
    assert begun == [("projectmem.hook.health", str(hooked.home))]
    health.main(str(hooked.home))
    assert "log is damaged" in start(hooked, "two") and len(begun) == 1
    hooked.now += 2 * DAY
    start(hooked, "three")
    assert len(begun) == 2


def test_the_process_in_the_background_works_in_a_bare_interpreter(hooked: Any) -> None:
    """As the hook starts it."""
    damage(hooked)
    os.utime(hooked.home / "project.json", (1, 1))
    start(hooked, "one")
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(health.path_of(str(hooked.home))) and time.monotonic() < deadline:
        time.sleep(0.05)
    at, count, first = health.known(str(hooked.home))
    assert count == 1 and "digest" in first and at > 0


def test_an_unfinished_write_at_the_end_is_no_damage(hooked: Any) -> None:
    """The next append puts it right."""
    start(hooked, "zero")
    (path,) = hooked.home.glob("log/*/*.jsonl")
    with path.open("ab") as file:
        file.write(b'{"actor":{"agent":"","ha')
    health.look(str(hooked.home), hooked.now)
    assert health.known(str(hooked.home)) == (hooked.now, 0, "")


def test_a_note_that_cannot_be_read_says_nothing(hooked: Any) -> None:
    """Whatever is in it."""
    path = health.path_of(str(hooked.home))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    for raw in (b"", b"[", b"[1]", b'{"at": "x", "count": 1, "first": ""}', b"\xff\xfe", b"{}"):
        with open(path, "wb") as file:
            file.write(raw)
        assert health.known(str(hooked.home)) == (0, 0, "")


def test_a_rebuild_looks_at_every_byte_and_keeps_what_it_found(hooked: Any, monkeypatch: Any, capsys: Any) -> None:
    """Damage is said and noted; an unfinished write is none; a whole log takes an older note back."""
    monkeypatch.chdir(hooked.root)
    start(hooked, "zero")
    damage(hooked)
    assert cli.run(["rebuild"]) == 0 and "the log is damaged in 1 place," in capsys.readouterr().err
    assert health.known(str(hooked.home))[1] == 1 and "log is damaged" in start(hooked, "one")
    (path,) = hooked.home.glob("log/*/*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"n0te 7 ", b"note 7 ") + b'{"actor":{"agent":"","ha')
    assert cli.run(["rebuild"]) == 0 and "damaged" not in capsys.readouterr().err
    assert health.known(str(hooked.home))[1] == 0
    health.note(str(hooked.home), ["old"], 1)
    LogStore(str(hooked.home)).append([], now=hooked.now)
    assert cli.run(["rebuild"]) == 0 and health.known(str(hooked.home))[1:] == (0, "")
