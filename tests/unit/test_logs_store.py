"""Appending: batches, rotation, the spool, locks, full disks, and what a damaged stream leads to."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import files
from projectmem_logs.envelope import check_line
from projectmem_logs.errors import AppendError, CanonicalError, EventError, LogError, NotInitialisedError, SpooledError
from projectmem_logs.reader import Problem, find_event, read_events, segment_state
from projectmem_logs.store import LogStore, heads, init_home, project_id, redaction_key
from projectmem_logs.verify import verify

NOW = 1_800_000_000_000_000
ACTOR = {"session": "s", "origin": "observed"}


def note(text: str = "x", **more: Any) -> dict[str, Any]:
    """A draft."""
    return {"kind": "note.recorded", "actor": ACTOR, "data": {"text": text, "tags": []}, **more}


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A fresh log."""
    path = str(tmp_path / "home")
    init_home(path, NOW)
    return path


def lines_of(home: str) -> list[bytes]:
    """All lines of the only stream."""
    return [line for p in sorted(Path(home, "log").glob("*/*.jsonl")) for line in p.read_bytes().splitlines(keepends=True)]


def only_segment(home: str) -> Path:
    """The path of the only segment."""
    (path,) = Path(home, "log").glob("*/*.jsonl")
    return path


def texts(home: str, problems: list[Problem] | None = None) -> list[str]:
    """The texts of all notes, as read."""
    return [e["data"]["text"] for e in read_events(home, problems=problems) if e["kind"] == "note.recorded"]


def test_init_is_idempotent_and_private(home: str) -> None:
    """A second init changes nothing; folders are 0700, the key 0600 and 32 bytes."""
    project, key = project_id(home), redaction_key(home)
    assert init_home(home, NOW + 1) == project and redaction_key(home) == key and len(key) == 32
    assert stat.S_IMODE(os.stat(os.path.join(home, "log")).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(os.path.join(home, "key")).st_mode) == 0o600


def test_events_of_one_append_are_one_batch_and_chain_on(home: str) -> None:
    """seq is contiguous, prev is the hash before, left counts down to 0."""
    store = LogStore(home, tenant="t")
    first = store.append([note("a"), note("b", at=5)], now=NOW)
    second = store.append([note("c")], now=NOW + 1)
    chain = first + second
    assert [(e["seq"], e["batch"], e["left"]) for e in chain] == [(1, 1, 1), (2, 1, 0), (3, 3, 0)]
    assert [e["prev"] for e in chain] == ["0" * 64, chain[0]["hash"], chain[1]["hash"]]
    assert [e["at"] for e in chain] == [NOW, 5, NOW + 1] and {e["ts"] for e in first} == {NOW}
    assert chain[0]["scope"] == {"project": project_id(home), "tenant": "t"}
    assert list(read_events(home)) == chain and verify(home).ok
    assert store.head() == {chain[0]["stream"]: 3} and heads(home) == {chain[0]["stream"]: (3, chain[2]["hash"])}


def test_events_of_one_batch_are_told_apart_by_the_beginning_of_their_ids(home: str) -> None:
    """People and agents name events by 18 characters, as warnings show them; imports come in large batches."""
    events = LogStore(home).append([note()] * 3000, now=NOW)
    assert len({event["id"][:18] for event in events}) == 3000
    assert [event["id"] for event in events] == sorted(event["id"] for event in events)


def test_two_stores_and_a_fresh_one_share_the_stream(home: str) -> None:
    """A store that was overtaken notices and chains on what the other wrote."""
    a, b = LogStore(home), LogStore(home)
    for i, store in enumerate([a, b, a, a, b, LogStore(home)]):
        assert store.append([note(str(i))], now=NOW + i)[0]["seq"] == i + 1
    assert verify(home).ok and len(list(Path(home, "log").iterdir())) == 1


@pytest.mark.parametrize(
    ("draft", "error", "says"),
    [
        ({**note(), "extra": 1}, EventError, "extra"),
        ({**note(), "kind": "Note"}, EventError, "kind"),
        ({**note(), "kind": 'x"y'}, EventError, "kind"),
        ({**note(), "at": 1.5}, EventError, "at must be"),
        ({**note(), "at": True}, EventError, "at must be"),
        ({**note(), "causes": ["zz"]}, EventError, "causes"),
        ({**note(), "actor": {"origin": "observed", "user": "x"}}, EventError, "user"),
        ({**note(), "actor": {"origin": "me"}}, EventError, "origin"),
        ({**note(), "data": {"x": 0.1}}, CanonicalError, "$.x"),
        ({**note(), "data": []}, EventError, "object"),
    ],
)
def test_a_wrong_draft_is_refused_and_nothing_is_written(
    home: str, draft: dict[str, Any], error: type[Exception], says: str
) -> None:
    """The whole append is refused, with a message that names the field."""
    with pytest.raises(error, match=says.replace("$", r"\$")):
        LogStore(home).append([note(), draft], now=NOW)
    assert list(read_events(home)) == []


def test_a_missing_log_says_what_to_run(tmp_path: Path) -> None:
    """No log: the message names the place and the command."""
    with pytest.raises(NotInitialisedError, match="projectmem init"):
        LogStore(str(tmp_path / "none"))
    with pytest.raises(NotInitialisedError, match="projectmem init"):
        LogStore(str(tmp_path / "none"), project="p").append([note()], now=NOW)
    with pytest.raises(NotInitialisedError):
        verify(str(tmp_path / "none"))


def test_a_log_from_the_future_is_refused(home: str) -> None:
    """A newer on-disk format is not guessed at."""
    path = Path(home, "project.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(LogError, match="newer"):
        LogStore(home)


def test_segments_rotate_and_the_chain_goes_on(home: str) -> None:
    """A full segment is sealed read-only; the next is named by its first seq, chains on, and reads as one."""
    store = LogStore(home, segment_bytes=3000)
    for i in range(12):
        store.append([note(f"n{i}")], now=NOW + i)
    found = sorted(Path(home, "log").glob("*/*.jsonl"))
    assert len(found) == 3
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o444 for p in found[:-1]) and found[-1].stat().st_mode & stat.S_IWUSR
    assert all(int(p.stem) == json.loads(p.read_bytes().splitlines()[0])["seq"] for p in found)
    assert texts(home) == [f"n{i}" for i in range(12)] and verify(home).ok
    assert LogStore(home).append([note("next")], now=NOW)[0]["seq"] == 13
    state = segment_state(home)
    assert list(state.values()) == [[found[-1].name, found[-1].stat().st_size]]


def test_an_empty_last_segment_chains_on_the_one_before(home: str) -> None:
    """A crash between beginning a segment and writing to it loses nothing."""
    store = LogStore(home, segment_bytes=1500)
    last = [store.append([note(f"n{i}")], now=NOW + i) for i in range(4)][-1][0]
    newest = max(Path(home, "log").glob("*/*.jsonl"))
    newest.with_name(f"{last['seq'] + 1:020d}.jsonl").touch()
    event = LogStore(home, segment_bytes=1500).append([note("on")], now=NOW)[0]
    assert (event["seq"], event["prev"]) == (last["seq"] + 1, last["hash"]) and verify(home).ok


def test_a_store_that_remembers_a_sealed_segment_goes_on_in_the_next(home: str) -> None:
    """Another process rotated meanwhile, or died between sealing and beginning: no seq is ever given twice."""
    a, b = LogStore(home, segment_bytes=1800), LogStore(home, segment_bytes=1800)
    a.append([note("a" * 400)], now=NOW)
    b.append([note("b" * 1000)], now=NOW)  # rotates
    assert a.append([note("a")], now=NOW)[0]["seq"] == 3
    files.seal_file(str(max(Path(home, "log").glob("*/*.jsonl"))))  # and dies here
    assert a.append([note("a")], now=NOW)[0]["seq"] == 4
    assert len(list(Path(home, "log").glob("*/*.jsonl"))) == 4 and verify(home).ok


def test_very_large_events_are_read_back_from_the_tail(home: str) -> None:
    """Lines longer than the tail window, alone, last, and before a small one."""
    big = "y" * 300_000
    LogStore(home).append([note(big)], now=NOW)
    LogStore(home).append([note("small")], now=NOW)
    LogStore(home).append([note(big), note(big)], now=NOW)
    LogStore(home).append([note("end")], now=NOW)
    assert LogStore(home).head() == {os.listdir(os.path.join(home, "log"))[0]: 5}
    assert [len(t) for t in texts(home)] == [300_000, 5, 300_000, 300_000, 3] and verify(home).ok
    with pytest.raises(EventError, match="limit"):
        LogStore(home).append([note("z" * (17 << 20))], now=NOW)


def test_after_runs_under_the_lock_and_cannot_undo_the_append(home: str) -> None:
    """The callback sees the events while the lock is held; its failure is kept and told, the append stands."""
    store = LogStore(home)
    seen: list[Any] = []

    def after(events: list[dict[str, Any]]) -> None:
        (lock,) = Path(home, "locks").glob(f"{events[0]['stream']}.lock")
        assert files.lock(str(lock), 0) is None
        seen.extend(events)
        raise ValueError("snapshot broke")

    events = store.append([note("a")], now=NOW, after=after)
    assert seen == events and isinstance(store.after_error, ValueError) and "snapshot broke" in store.notices[0]
    store.append([note("b")], now=NOW)
    assert store.after_error is None and store.notices == [] and texts(home) == ["a", "b"]


def test_a_held_lock_spools_and_the_next_append_drains(home: str) -> None:
    """Bounded wait, then a durable spool; drained in order before the next events, with the time it happened."""
    store = LogStore(home, wait_ms=20)
    stream = store.append([note("first")], now=NOW)[0]["stream"]
    fd = files.lock(os.path.join(home, "locks", f"{stream}.lock"), 0)
    assert fd is not None
    for i in range(2):
        with pytest.raises(SpooledError) as e:
            store.append([note(f"spooled {i}")], now=NOW + 10 + i)
        assert os.path.exists(e.value.path)
    files.unlock(fd)
    events = store.append([note("last")], now=NOW + 20)
    assert [e["data"]["text"] for e in events] == ["spooled 0", "spooled 1", "last"]
    assert [e["at"] for e in events] == [NOW + 10, NOW + 11, NOW + 20] and {e["ts"] for e in events} == {NOW + 20}
    assert os.listdir(os.path.join(home, "spool")) == [] and "2 event(s)" in store.notices[0] and verify(home).ok


def test_a_spool_file_written_before_a_crash_is_not_written_twice(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crash came after the append and before the file was removed: its ids are in the last batch."""
    store = LogStore(home, wait_ms=0)
    stream = store.append([note("first")], now=NOW)[0]["stream"]
    fd = files.lock(os.path.join(home, "locks", f"{stream}.lock"), 0)
    assert fd is not None
    with pytest.raises(SpooledError):
        store.append([note("once"), note("twice")], now=NOW)
    files.unlock(fd)
    monkeypatch.setattr(files, "remove", lambda path: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        store.append([], now=NOW)
    monkeypatch.undo()
    LogStore(home).append([note("last")], now=NOW)
    assert texts(home) == ["first", "once", "twice", "last"]


def test_a_damaged_spool_file_is_set_aside(home: str) -> None:
    """Nothing unreadable stops the append or is thrown away."""
    store = LogStore(home)
    Path(home, "spool", f"{store._writer.machine}-1-x.spool").write_bytes(b"half a fi")
    store.append([note("a")], now=NOW)
    assert texts(home) == ["a"] and len(os.listdir(os.path.join(home, "quarantine"))) == 1


def test_a_torn_tail_is_quarantined_cut_and_recorded(home: str) -> None:
    """The unfinished bytes are kept, the cut is an event, and the next event chains on it."""
    LogStore(home).append([note("a")], now=NOW)
    path, torn = only_segment(home), b'{"actor":{"agent":"","har'
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + torn)
    store = LogStore(home)
    events = store.append([note("b")], now=NOW + 1)
    data = events[0]["data"]
    assert [e["kind"] for e in events] == ["log.recovered", "note.recorded"]
    assert (data["segment"], data["offset"], data["bytes"], data["state"]) == (path.name, size, len(torn), "torn")
    assert Path(home, "quarantine", data["quarantine"]).read_bytes() == torn
    assert "quarantine" in store.notices[0] and texts(home) == ["a", "b"] and verify(home).ok


def test_a_lost_final_newline_is_put_back(home: str) -> None:
    """Nothing is lost and nothing is glued."""
    LogStore(home).append([note("a")], now=NOW)
    path = only_segment(home)
    path.write_bytes(path.read_bytes()[:-1])
    assert [p.kind for p in verify(home).problems] == ["unterminated"]
    store = LogStore(home)
    assert [e["seq"] for e in store.append([note("b")], now=NOW)] == [2]
    assert store.notices and texts(home) == ["a", "b"] and verify(home).ok


@pytest.mark.parametrize("how", ["flip", "nul", "crlf"])
def test_a_corrupt_stream_is_left_alone_and_learning_goes_on(home: str, how: str) -> None:
    """Damage before later records: that stream keeps every byte, a new one begins, people are told, the rest is served."""
    store = LogStore(home)
    for i in range(6):
        store.append([note(f"n{i}")], now=NOW + i)
    path = only_segment(home)
    data = path.read_bytes()
    if how == "crlf":
        data = data.replace(b"\n", b"\r\n")
    else:
        at = data.rfind(b"n4")
        data = data[:at] + (b"\0\0" if how == "nul" else b"m4") + data[at + 2 :]
        data += b"\x00" * 3  # so that the tail is looked at more closely
    path.write_bytes(data)
    events = store.append([note("on")], now=NOW + 9)
    assert [e["kind"] for e in events] == ["log.recovered", "note.recorded"] and events[0]["seq"] == 1
    assert events[0]["data"]["state"] == "corrupt" and events[0]["data"]["stream"] == path.parent.name
    assert "DAMAGED LOG" in store.notices[0] and path.read_bytes() == data
    problems: list[Problem] = []
    served = texts(home, problems)
    assert served == ["n0", "n1", "n2", "n3", *(["n4"] if how == "crlf" else []), "n5", "on"] and problems
    assert not verify(home).ok
    assert [e["seq"] for e in LogStore(home).append([note("more")], now=NOW)] == [3]  # one new stream, not one per process


def test_a_copied_home_gets_its_own_stream(home: str, tmp_path: Path) -> None:
    """Two copies that go on separately never write the same seq of the same stream."""
    import shutil

    LogStore(home).append([note("a")], now=NOW)
    copy = str(tmp_path / "copy")
    shutil.copytree(home, copy)
    a = LogStore(home).append([note("b")], now=NOW)[0]
    b = LogStore(copy).append([note("c")], now=NOW)[0]
    assert a["stream"] != b["stream"] and verify(copy).ok


@pytest.mark.parametrize("durability", ["durable", "batch"])
@pytest.mark.parametrize("call", ["write_all", "sync_data", "sync_dir"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_full_or_failing_disk_keeps_nothing_and_says_so(
    home: str, monkeypatch: pytest.MonkeyPatch, call: str, code: int, durability: str
) -> None:
    """Whatever call fails, no half event stays in front of the next acknowledged one."""
    store = LogStore(home, segment_bytes=900)
    store.append([note("a")], now=NOW)
    real = getattr(files, call)

    def fail(fd: Any, *rest: Any) -> None:
        if call == "write_all":
            os.write(fd, rest[0][: len(rest[0]) // 2])  # a short write
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, call, fail)
    with pytest.raises(AppendError, match="nothing of this event was kept"):
        store.append([note("lost"), note("lost too")], now=NOW, durability=durability)
    monkeypatch.setattr(files, call, real)
    assert store.append([note("b")], now=NOW)[-1]["seq"] == 2
    assert texts(home) == ["a", "b"] and verify(home).ok


def test_when_even_the_undo_fails_the_next_append_heals(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The torn bytes stay behind, are found by the next append, and no acknowledged event is behind them."""
    store = LogStore(home)
    store.append([note("a")], now=NOW)

    def fail(fd: int, data: bytes) -> None:
        os.write(fd, data[:50])
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(files, "write_all", fail)
    monkeypatch.setattr(files, "truncate", lambda fd, size: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
    with pytest.raises(AppendError):
        store.append([note("lost")], now=NOW)
    monkeypatch.undo()
    assert [e["kind"] for e in store.append([note("b")], now=NOW)] == ["log.recovered", "note.recorded"]
    assert texts(home) == ["a", "b"] and verify(home).ok


def test_batch_durability_writes_everything_and_leaves_a_cheap_tail(home: str) -> None:
    """An import of many events: all there, few batches, the last record alone in its batch."""
    store = LogStore(home)
    seen: list[int] = []
    drafts = [note("x" * 5000) for _ in range(2000)]
    events = store.append(drafts, now=NOW, durability="batch", after=lambda e: seen.append(len(e)))
    assert len(events) == 2000 and seen == [2000] and events[-1]["batch"] == 2000 and events[-2]["left"] == 0
    assert 2 <= len({e["batch"] for e in events}) <= 5 and verify(home).ok
    with pytest.raises(LogError, match="durability"):
        store.append([note()], now=NOW, durability="none")


def test_threads_of_one_store_take_turns(home: str) -> None:
    """One store shared by threads keeps one chain."""
    store = LogStore(home, wait_ms=20_000)
    work = [threading.Thread(target=lambda: [store.append([note()], now=NOW) for _ in range(20)]) for _ in range(4)]
    for t in work:
        t.start()
    for t in work:
        t.join()
    assert len(list(read_events(home))) == 80 and verify(home).ok


def test_an_append_reads_only_the_end_of_the_log(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh process reads one window of the log, however long it is."""
    LogStore(home).append([note("x" * 1000) for _ in range(3000)], now=NOW, durability="batch")
    read: list[int] = []
    real = files.read

    def counting(path: str, start: int = 0, size: int | None = None) -> bytes:
        data = real(path, start, size)
        if path.endswith(".jsonl"):
            read.append(len(data))
        return data

    monkeypatch.setattr(files, "read", counting)
    LogStore(home).append([note("one")], now=NOW)
    assert sum(read) <= 64 * 1024


def test_every_line_on_disk_is_one_checked_event(home: str) -> None:
    """What is on disk is what the checker accepts, one line an event, newline last."""
    LogStore(home).append([note("a\nb"), note("\u2028\x00")], now=NOW)
    assert all(line.endswith(b"\n") and check_line(line[:-1]).ok for line in lines_of(home)) and len(lines_of(home)) == 2


def test_find_event_by_id_beginning_or_end(home: str) -> None:
    """A full id, a beginning or an end that fits one event; several fits are refused with the candidates."""
    events = LogStore(home).append([note("a"), note("b")], now=NOW)
    want = events[1]
    assert find_event(home, want["id"]) == want == find_event(home, want["id"][-8:])
    with pytest.raises(EventError, match="fits 2"):
        find_event(home, want["id"][:8])
    assert find_event(home, "ffffffff-ffff") is None
    with pytest.raises(EventError, match="8 characters"):
        find_event(home, "abc")


def test_the_hook_s_modules_import_nothing_slow() -> None:
    """Storing, reading and redacting load neither json nor re nor anything else that costs milliseconds."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules)\n"
        "import projectmem_logs.store, projectmem_logs.reader, projectmem_logs.redact as r\n"
        "assert r.Redactor(b'k').text('plain') == 'plain'\n"
        "print(*sorted(m for m in set(sys.modules) - before if not m.startswith('projectmem_logs')))"
    )
    logs = str(Path(__file__).resolve().parents[2] / "logs")
    out = subprocess.run([sys.executable, "-I", "-S", "-c", code, logs], capture_output=True, text=True, check=True).stdout
    allowed = {"os", "os.path", "posixpath", "ntpath", "genericpath", "stat", "_stat", "errno", "fcntl", "_json", "__future__"}
    extra = set(out.split()) - allowed - {"_sha2", "_sha256", "_collections_abc", "abc", "_abc", "nt"}
    assert not extra, extra


def test_a_store_gives_back_what_it_opened(home: str) -> None:
    """Used as a context, or by those who make one for a single append: no descriptor stays open."""
    from projectmem_logs import repair

    with LogStore(home) as store:
        for i in range(3):
            store.append([note(str(i))], now=NOW)
        kept = set(files._private)
    assert len(kept - files._private) == 2
    before = set(files._private)
    segment = only_segment(home)
    segment.write_bytes(segment.read_bytes()[:-1])
    assert [step.kind for step in repair.apply(home, now=NOW).steps] == ["finish"]
    assert files._private == before and texts(home) == ["0", "1", "2"]


@pytest.mark.parametrize("fresh", [True, False])
def test_a_folder_of_writers_that_is_gone_is_made_again(home: str, fresh: bool) -> None:
    """Whoever swept it away stops no recording: what was written is still read, and learning goes on in a stream of its own."""
    with LogStore(home) as store:
        store.append([note("one")], now=NOW)
        (mine,) = Path(home, "writers").iterdir()
        mine.unlink()
        mine.parent.rmdir()
        if not fresh:
            store.append([note("two")], now=NOW + 1)
    with LogStore(home) as store:
        store.append([note("three")], now=NOW + 2)
    assert sorted(texts(home)) == (["one", "three"] if fresh else ["one", "three", "two"])
    assert verify(home).ok
