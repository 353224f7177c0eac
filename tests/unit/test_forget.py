"""`forget`: nothing of what was forgotten is left in any file, the chain holds, and no import brings it back."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs import erasing
from projectmem_logs.digest import sha256_hex
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore
from projectmem_logs.verify import verify
from projectmem_projections import generations
from projectmem_projections.rebuild import rebuild
from projectmem_projections.snapshot import Snapshot

from projectmem import caller, place
from projectmem.cli import app as cli
from projectmem.cli import common
from projectmem.hook import entry
from tests.patience import PATIENCE

SECRET = 'Kilimanjaro "4711" expedition'
USAGE, COULD_NOT = 2, 3
# Files that are derived, left by a process that died, or kept by another version.
DERIVED = ("health.json", "gate.sqlite-shm.1.new", "gate.sqlite.999999999.building", "recall/gen-00000099/corpus.sqlite",
           "duckdb/gen-9.duckdb.wal", "another/gen-1/pages", "refold.failed")  # fmt: skip


class World:
    """A project whose log, projections and logs for people all speak of SECRET, among other things."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys, self.home = root, capsys, root / ".projectmem-gate"
        self.out = self.err = ""
        self.calls = 0

    def __call__(self, *args: str, code: int = 0) -> str:
        """Run one command, expect this exit code, return stdout."""
        found = cli.run(list(args))
        captured = self.capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        assert found == code, f"{args}: exit {found}, {self.out}{self.err}"
        return self.out

    def json(self, *args: str, code: int = 0) -> Any:
        """The same with --json, parsed."""
        return json.loads(self(*args, "--json", code=code))

    def hook(self, event: str, **fields: Any) -> None:
        """One event of the harness."""
        raw = {"session_id": "s1", "cwd": str(self.root), "hook_event_name": event, **fields}
        entry.respond(["claude-code", event], json.dumps(raw).encode(), time.time_ns() // 1000)

    def fails(self, command: str, said: str, session: str = "s1") -> None:
        """A command is asked about and then fails."""
        self.calls += 1
        call = {
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": f"call{self.calls}",
            "session_id": session,
        }
        self.hook("PreToolUse", **call)
        self.hook("PostToolUseFailure", **call, error=f"Exit code 2\n{said}\nmake: *** Error 2", duration_ms=90_000)

    def events(self) -> list[dict[str, Any]]:
        """The log."""
        return list(read_events(str(self.home)))

    def holding(self, text: str = SECRET) -> list[str]:
        """Every file below the log's folder that holds the text in some spelling."""
        once = json.dumps(text)[1:-1]
        spelled = {s.encode() for s in (text, once, json.dumps(once)[1:-1])}
        files = [p for p in self.home.rglob("*") if p.is_file()]
        return sorted(str(p.relative_to(self.home)) for p in files if any(s in p.read_bytes() for s in spelled))

    def spread(self) -> None:
        """Put SECRET everywhere it can get to."""
        for _ in range(3):
            self.fails("make climb", f"climb.c:3: error: {SECRET}")
        self.fails(f"echo '{SECRET}' && make rope", "no rope")
        self.fails("make tea", "no tea")
        self("record", "note", f"We planned the {SECRET} in spring.")
        self("record", "note", "Water boils at 100 degrees.")
        self("record", "decision", "Use ropes", f"because of the {SECRET}")
        self("dispute", self.id_of("no rope"), "--reason", f"it was the {SECRET}")
        rebuild(str(self.home))
        self("stats")
        self("recall", "who planned what in spring?")
        self("record", "note", "After the generation was built.")
        store = LogStore(str(self.home))
        log = self.home / "hook.log"  # a rebuild in the background would take away what is put here
        assert not (self.home / "projections" / "refold.lock").exists(), log.read_text() if log.exists() else "no hook.log"
        (self.home / "hook.log").write_text(f"2026 batch: {SECRET} happened\n2026 batch: nothing much\n")
        (self.home / "errors.log").write_text(f"--- arguments: ['record', 'note', '{SECRET}']\nother\n")
        (self.home / "quarantine" / "torn").write_bytes(b'{"actor":{"agent":"","x":"' + json.dumps(SECRET).encode()[1:9])
        (self.home / "quarantine" / "torn2").write_bytes(b'"data":{"text":' + json.dumps(SECRET).encode())
        self.spool(store, [f"waiting: {SECRET}", "waiting too"])
        derived = self.home / "projections"
        for name in DERIVED:
            (derived / name).parent.mkdir(exist_ok=True, parents=True)
            (derived / name).write_text(f"{name} {SECRET}")
        with sqlite3.connect(derived / "meanwhile.sqlite") as state:
            state.execute("CREATE TABLE pending (data TEXT)")
            state.execute("INSERT INTO pending VALUES (?)", [SECRET])
        state.close()
        (self.home / "hook.told").write_text(f"{SECRET}\nanother session\n")
        notes = [f"{SECRET} {i}" for i in range(3)]
        with Snapshot(str(derived / "gate.sqlite")) as gate:
            for note in notes:  # what hooks leave for the event after a call, and what they took away again
                gate.pending_put("s1", note, {"input": note})
            gate._db.execute("DELETE FROM pending WHERE call = ?", [notes[0]])

    def spool(self, store: LogStore, texts: list[str]) -> None:
        """Another machine's appends that wait for their lock."""
        from projectmem_logs.canonical import canonical

        actor = {"agent": "", "harness": "", "model": "", "origin": "human", "session": ""}
        drafts = [
            {"actor": actor, "at": 5, "causes": [], "data": {"text": t, "tags": []}, "kind": "note.recorded"} for t in texts
        ]
        ids = [f"01a22cce-9a3c-7cdd-9467-8baa71c666e{i}" for i in range(len(texts))]
        body = canonical({"drafts": drafts, "ids": ids, "now": 5})
        path = self.home / "spool" / f"{'f' * 16}-{5:020d}-{'0' * 20}.spool"
        path.write_bytes(sha256_hex(body).encode() + b" " + body + b"\n")
        self.spooled = path

    def id_of(self, said: str) -> str:
        """The failed call whose output said this."""
        return str(next(e["id"] for e in self.events() if said in json.dumps(e.get("data")) and e["kind"] == "action.finished"))


@pytest.fixture
def world(accepted: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> World:
    """The project, driven by a person."""
    return World(accepted("human"), capsys)


def test_a_forgotten_text_is_in_no_file_any_more(world: World) -> None:
    """Segments, spool, quarantine, snapshot, generations, logs for people; the rest stays, and the chain holds."""
    world.spread()
    before = world.holding()
    for part in (
        *(f"projections/{name}" for name in DERIVED),
        "projections/meanwhile.sqlite",
        "hook.told",
        "log/",
        "projections/gate.sqlite",
        "projections/duckdb",
        "projections/recall",
        "hook.log",
        "errors.log",
        "quarantine",
        "spool",
    ):
        assert any(name.startswith(part) for name in before), f"{part} does not hold the text: {before}"
    dry = world.json("forget", "--text", SECRET)
    assert not dry["applied"] and dry["direct"] and dry["derived"] and world.holding() == before
    done = world.json("forget", "--text", SECRET, "--reason", f"they asked to forget the {SECRET}", "--yes")
    assert world.holding() == [] and done["ok"] and done["events"] >= dry["direct"] + dry["derived"]
    assert verify(str(world.home)).ok and not (world.home / "erasure.json").exists()
    kept = [e["data"]["text"] for e in world.events() if e["kind"] == "note.recorded" and "data" in e]
    assert kept == ["Water boils at 100 degrees.", "After the generation was built."]
    assert b"waiting too" in world.spooled.read_bytes() and b"nothing much" in (world.home / "hook.log").read_bytes()
    assert [p.name for p in (world.home / "quarantine").iterdir()] == ["torn"]
    (request,) = [e for e in world.events() if e["kind"] == "erasure.requested"]
    assert (
        request["actor"]["origin"] == "human"
        and "<secret:" in request["data"]["reason"]
        and "<secret:" in request["data"]["selector"]
    )
    erased = [e for e in world.events() if "tombstone" in e]
    assert {e["tombstone"]["by"] for e in erased} == {request["id"]} == set(done["requests"])
    assert all("data" not in e and "salt" not in e for e in erased) and {e["id"] for e in erased} <= set(request["data"]["ids"])


def test_what_is_read_afterwards_is_what_a_rebuild_gives(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it survives rebuild, restart and further events; recall and the gate speak of the rest only."""
    world.spread()
    world("forget", "--text", SECRET, "--yes")
    now = common.now()
    with monkeypatch.context() as still:
        still.setattr(common, "now", lambda: now)  # how long ago something was is said in words
        live = world.json("failures", "--all"), world.json("stats")
        assert "no tea" in json.dumps(live[0]) and "climb" not in json.dumps(live[0])
        rebuild(str(world.home))
        assert (world.json("failures", "--all"), world.json("stats")) == live and world.holding() == []
    world.fails("make climb", "climb.c:3: error: something else")
    assert "climb" in world("failures") and world.holding() == []
    assert "Water boils" in world("recall", "at how many degrees does water boil?")
    assert "Kili" not in world("recall", "who planned what in spring?")
    with generations.open_current(str(world.home)) as summaries:
        assert b"Kili" not in summaries.canonical_dump()


def test_replay_says_that_its_input_was_erased(world: World) -> None:
    """Never *different*."""
    world.spread()
    assert world.json("replay", "--verify")["ok"]
    world("forget", "--text", SECRET, "--yes")
    report = world.json("replay", "--verify")
    assert report["ok"] and report["decisions"]["input erased"] + report["without_candidate"]["input erased"] > 0


def test_forgetting_a_policy_leaves_no_decision_called_different(world: World) -> None:
    """The policy a decision names is gone: its input was erased."""
    (world.home / "policy.toml").write_text(f'# {SECRET}\nmode = "enforce"\n')
    world("policy", "accept")
    for _ in range(3):
        world.fails("make climb", "climb.c:3: error: no")
    (world.home / "policy.toml").unlink()
    found = world.json("forget", "--text", SECRET)
    assert found["by_kind"]["policy.changed"] == 1 and "rules that may be in force" in world("forget", "--text", SECRET)
    world("forget", "--text", SECRET, "--yes")
    report = world.json("replay", "--verify")
    assert report["ok"] and report["decisions"]["input erased"] and world.holding() == []


@pytest.mark.parametrize("by", ["id", "record", "session", "actor", "path", "since"])
def test_each_selector_means_what_it_says(world: World, by: str) -> None:
    """What it names goes, with what derives from it; everything else stays; nothing of it is left in any file."""
    (world.root / "climb.c").write_text("int")
    world.fails("gcc climb.c", "climb.c:3: error: Matterhorn", session="s-gone")
    world("record", "note", "Eiger")
    target = world.id_of("Matterhorn")
    world.fails("make tea", "no tea", session="s-stays")
    args = {
        "id": [target], "record": ["--record", target], "session": ["--session", "s-gone"], "actor": ["--actor", "claude-code"],
        "path": ["--path", "climb.c"], "since": ["--since", "2020-01-01"],
    }[by]  # fmt: skip
    world("stats")
    found = world.json("forget", *args)
    assert found["direct"]
    world("forget", *args, "--yes")
    gone = {"id": ["Matterhorn"], "record": ["Matterhorn"], "session": ["Matterhorn"], "path": ["Matterhorn"],
            "actor": ["Matterhorn", "no tea"], "since": ["Matterhorn", "no tea", "Eiger"]}[by]  # fmt: skip
    for text in ("Matterhorn", "no tea", "Eiger"):
        assert bool(world.holding(text)) != (text in gone), text
    assert verify(str(world.home)).ok
    world("forget", *args, "--yes", code=COULD_NOT)
    assert "nothing" in world.err or "no event" in world.err or "no recorded failure" in world.err


def test_a_path_is_a_path_and_not_a_piece_of_one(world: World) -> None:
    """Neither a longer name nor the same name elsewhere."""
    from projectmem_logs.selecting import Selector

    wanted = Selector(path="src/a.py", root="/repo")
    event = {"id": "x", "kind": "note.recorded", "at": 1, "actor": {}}
    for text in ("src/a.py", "./src/a.py", "see src/a.py:3", "(/repo/src/a.py)", 'open("src/a.py").', "src/a.py."):
        assert wanted.matches({**event, "data": {"text": text}}), text
    for text in ("lib/src/a.py", "src/a.pyc", "src/a.py.bak", "/other/src/a.py", "src/aXpy", "xsrc/a.py"):
        assert not wanted.matches({**event, "data": {"text": text}}), text
    folder = Selector(path="src", root="/repo")
    assert folder.matches({**event, "data": {"paths": ["src/deep/b.py"]}})
    assert not folder.matches({**event, "data": {"paths": ["srcs/b.py", "my-src/b.py"]}})


def test_an_agent_may_not_forget_and_nothing_is_meant_by_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look is free; and an erasure that means everything is refused."""
    world.spread()
    for args in ((), ("--text", "abc"), ("--path", "../x"), ("--path", ".")):
        world("forget", *args, "--yes", code=USAGE)
    monkeypatch.setattr(caller, "origin", lambda: "agent")
    before = world.holding()
    assert world.json("forget", "--text", SECRET)["direct"]
    for args in (("--text", SECRET, "--yes"), ("--resume",)):
        world("forget", *args, code=COULD_NOT)
        assert "needs a person" in world.err
    assert world.holding() == before and not [e for e in world.events() if e["kind"] == "erasure.requested"]


def test_sealed_segments_are_reached_and_stay_sealed(world: World) -> None:
    """Appending goes on behind them."""
    store = LogStore(str(world.home), segment_bytes=2_000)
    draft = {"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": f"x {SECRET}", "tags": []}}
    for i in range(12):
        store.append([{**draft, "data": {"text": f"{i} {SECRET if i % 3 else ''}", "tags": []}}], now=10 + i)
    paths = sorted(world.home.glob("log/*/*.jsonl"))
    assert len(paths) > 3
    modes = [p.stat().st_mode for p in paths]
    world("forget", "--text", SECRET, "--yes")
    assert [p.stat().st_mode for p in paths] == modes and world.holding() == [] and verify(str(world.home)).ok
    store.append([{**draft, "data": {"text": "later", "tags": []}}], now=99)
    assert verify(str(world.home)).ok and world.events()[-1]["data"]["text"] == "later"


def test_damaged_lines_are_blanked_where_they_hold_it(world: World) -> None:
    """A damaged stream stays damaged; what it betrayed is gone."""
    world("record", "note", f"one {SECRET}")
    world("record", "note", "two")
    world("record", "note", "three")
    (path,) = world.home.glob("log/*/*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[0] = lines[0].replace(b"one ", b"0ne ")
    path.write_bytes(b"".join(lines))
    world("record", "note", f"elsewhere {SECRET}")
    world("forget", "--text", SECRET, "--yes", code=1)
    assert world.holding() == [] and "damaged lines blanked: 1" in world.out and "DAMAGED" in world.out
    assert [e["data"]["text"] for e in world.events() if e["kind"] == "note.recorded" and "data" in e][:2] == ["two", "three"]


def test_a_text_that_an_envelope_carries_is_said_to_remain(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor's name is under the hash: honest, exit 1."""
    monkeypatch.setattr(caller, "actor", lambda: {"session": "climber-one", "agent": "", "harness": "", "model": ""})
    world("record", "note", "by climber-one")
    done = world.json("forget", "--text", "climber-one", "--yes", code=1)
    assert len(done["remains"]) == 1 and done["remains"][0].startswith("log/") and not done["problems"]


def test_a_secret_that_was_redacted_is_found_by_what_it_was(world: World) -> None:
    """The log holds its mark; the person knows the secret."""
    secret = "ghp_" + "abcDEF123456" * 3
    world("record", "note", f"token {secret} for the build")
    assert world.holding(secret) == []
    assert world.json("forget", "--text", secret)["direct"] == 1
    world("forget", "--text", secret, "--yes")
    assert not [e for e in world.events() if e["kind"] == "note.recorded" and "data" in e]


def test_an_import_does_not_bring_it_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transcript still has the call; the log knows it by a keyed hash only, after a rebuild too."""
    from projectmem.importers.backfill import backfill
    from projectmem.importers.claude_code import slug

    config = world.root / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    folder = config / "projects" / slug(str(world.root))
    folder.mkdir(parents=True)
    lines: list[dict[str, Any]] = []
    for i, said in enumerate((SECRET, "harmless")):
        base = {"sessionId": "old", "cwd": str(world.root), "timestamp": "2026-01-01T00:00:00Z"}
        use = {"type": "tool_use", "id": f"toolu_{i}", "name": "Bash", "input": {"command": f"make x{i}"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{i}", "is_error": True, "content": f"Exit code 2\n{said}"}
        lines += [
            {**base, "type": "assistant", "message": {"role": "assistant", "content": [use]}},
            {**base, "type": "user", "message": {"role": "user", "content": [result]}},
        ]
    (folder / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = place.find(str(world.root))
    assert found is not None
    assert backfill(found, now=time.time_ns() // 1000).recorded == 2
    world("forget", "--text", SECRET, "--yes")
    rebuild(str(world.home))
    again = backfill(found, now=time.time_ns() // 1000)
    assert (again.recorded, again.known) == (0, 2) and world.holding() == [] and world.holding("toolu_0") == []
    assert world.holding("toolu_1")


def test_an_erasure_that_was_only_asked_for_is_carried_out(world: World) -> None:
    """A control record without a plan: `--resume` does it."""
    world("record", "note", f"one {SECRET}")
    note = world.events()[0]
    data = {"selector": "event", "ids": [note["id"]], "reason": "", "calls": []}
    LogStore(str(world.home)).append([{"kind": "erasure.requested", "actor": {"origin": "human"}, "data": data}], now=99)
    assert erasing.unfinished(str(world.home)) == 1
    assert "1 payload still there" in world("verify", code=1)
    done = world.json("forget", "--resume")
    assert done["ok"] and world.holding() == [] and erasing.unfinished(str(world.home)) == 0
    assert world.json("forget", "--resume") == {"applied": False, "pending": False}


def test_the_notes_of_calls_in_flight_are_wiped(world: World) -> None:
    """A hook's note quotes the input."""
    world.fails("make climb", "no")
    world.hook(
        "PostToolBatch",
        tool_calls=[
            {
                "tool_name": "Bash",
                "tool_input": {"command": f"echo {SECRET}", "run_in_background": True},
                "tool_use_id": "bg",
                "tool_response": "Command running in background with ID: b1",
            }
        ],
    )
    world("forget", "--text", SECRET, "--yes", code=0)
    assert world.holding() == [] and os.path.getsize(world.home / "projections" / "gate.sqlite")


def test_whatever_else_lies_among_the_projections_goes(world: World) -> None:
    """What a dead rebuild left, the state of the meantime, a journal, a write-ahead log, files nobody knows."""
    world("record", "note", f"one {SECRET}")
    folder = world.home / "projections"
    names = [
        "gate.sqlite.999999999.building",
        "gate.sqlite.999999999.building-journal",
        "meanwhile.sqlite",
        "gate.sqlite-wal",
        "x",
    ]
    names += ["duckdb/gen-00000009.duckdb.wal", "recall/gen-00000009/index.faiss"]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(SECRET)
    world("forget", "--text", SECRET, "--yes")
    assert world.holding() == [] and not [name for name in names if (folder / name).exists()]


def test_a_rebuild_at_work_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has read what is erased now and would put it back; one that never ends is said, and the erasure taken up later."""
    from projectmem_projections import forgetting

    world("record", "note", f"one {SECRET}")
    path = world.home / "projections" / f"gate.sqlite.{os.getppid()}.building"
    path.write_text("")
    monkeypatch.setattr(forgetting, "LOCK_WAIT_MS", 100)
    world("forget", "--text", SECRET, "--yes", code=COULD_NOT)
    assert "rebuilding" in world.err and (world.home / "erasure.json").exists()
    path.unlink()
    assert world.json("forget", "--resume")["ok"] and world.holding() == []


def test_writers_go_on_while_it_is_erased(world: World, tmp_path: Path) -> None:
    """Three processes append all the while: nothing they were told is kept is lost, and the chain holds."""
    import subprocess
    import sys

    program = (
        "import os, sys, time\n"
        "from projectmem_logs.store import LogStore\n"
        f"store, n = LogStore(sys.argv[1], segment_bytes=20_000, wait_ms={PATIENCE * 1000}), 0\n"
        "while not os.path.exists(sys.argv[3]):\n"
        "    d = {'kind': 'note.recorded', 'actor': {'origin': 'human'}, 'data': {'text': f'{sys.argv[2]}-{n}', 'tags': []}}\n"
        "    store.append([d], now=1000 + n)\n"
        "    n += 1\n"
        "    print(n, flush=True)\n"
        "    time.sleep(0.01)\n"
    )
    world("record", "note", f"one {SECRET}")
    env = place.environment({"PYTHONPATH": os.pathsep.join(sys.path)})
    enough, said = tmp_path / "enough", [tmp_path / f"w{i}" for i in range(3)]
    writers = []
    for path in said:
        with path.open("w") as out:
            argv = [sys.executable, "-c", program, str(world.home), path.name, str(enough)]
            writers.append(subprocess.Popen(argv, stdout=out, env=env))
    while not all(path.stat().st_size for path in said):
        assert all(w.poll() is None for w in writers)
        time.sleep(0.01)
    for i in range(3):
        world("record", "note", f"again {i} {SECRET}")
        world("forget", "--text", SECRET, "--yes")
    enough.touch()
    assert [w.wait(PATIENCE) for w in writers] == [0, 0, 0]
    counts = [int(path.read_text().split()[-1]) for path in said]
    assert world.holding() == [] and verify(str(world.home)).ok
    told = {f"w{i}-{n}" for i, count in enumerate(counts) for n in range(count)}
    assert told == {e["data"]["text"] for e in world.events() if "data" in e and e["data"].get("text", "").startswith("w")}


def test_an_erasure_that_nobody_asked_for_is_named(world: World) -> None:
    """A tombstone breaks no chain; without a control record it is found all the same."""
    from projectmem_logs.erasure import tombstone

    world("record", "note", "one")
    world("record", "note", "two")
    (path,) = world.home.glob("log/*/*.jsonl")
    one, two = path.read_bytes().splitlines()
    path.write_bytes(tombstone(one, by=json.loads(two)["id"], at=5) + b"\n" + two + b"\n")
    assert verify(str(world.home)).ok
    found = world.json("verify", code=1)
    assert found["erasures"]["unasked"] == [json.loads(one)["id"]] and not found["problems"]
    assert "without a request on record" in world("verify", code=1)
