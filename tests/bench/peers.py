"""Checks and notes at 200, 10,000 and 100,000 events: ours, other people's tools, and the same work in plain SQLite and DuckDB.

The tools come from the package index, each into an environment of its own below PROJECTMEM_BENCH_CACHE (default
`~/.cache/projectmem-bench`, outside the repository); one that cannot be installed is skipped, with the reason. Measured is
the process that a harness or a person would start. `projectmem` checks named files, the others answer the same PreToolUse
payload as ours; `nah` and `agentbelay` keep no memory, and `nevertwice` is asked with an empty one, so their size is nil.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from projectmem.setup.claude_settings import entries
from projectmem.setup.command import interpreter, words_of
from projectmem.setup.compiled import compile_hook
from tests.bench import recording
from tests.bench.hook import ERROR

PEERS = {"projectmem": "0.3.4", "nevertwice": "3.0.0", "nah": "0.11.0", "agentbelay": "0.1.0"}
SIZES = (200, 10_000, 100_000)
LIMIT_S = 180
SLOW_MS = 10_000  # what takes longer is run once: no cache that a first run fills makes up for that
RUNS = {200: 11, 10_000: 7, 100_000: 3, 1_000_000: 3}
FLOOR = "python -I -S -c 'import json'"
Command = tuple[list[str], bytes]
FOUND: dict[int, dict[str, float | None]] = {}  # of the last run: {events: {case: median ms}}


def cache() -> Path:
    """Where the tools' environments are."""
    return Path(os.environ.get("PROJECTMEM_BENCH_CACHE") or Path.home() / ".cache" / "projectmem-bench").absolute()


def installed(name: str, version: str) -> tuple[Path | None, str]:
    """(the environment's python, why there is none)."""
    folder = cache() / name
    python = folder / "bin" / "python"
    shown = f"import importlib.metadata as m; print(m.version({name!r}))"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True, timeout=LIMIT_S)
        for _ in range(2):
            found = subprocess.run([str(python), "-c", shown], capture_output=True, text=True, timeout=60, check=False)
            if found.stdout.strip() == version:
                return python, ""
            get = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{name}=={version}"]
            subprocess.run(get, check=True, capture_output=True, timeout=LIMIT_S)
    except (OSError, subprocess.SubprocessError) as exc:
        return None, f"{type(exc).__name__}: {str(getattr(exc, 'stderr', b'') or exc)[-120:]}"
    return None, "another version is there"


class World:
    """One repository with a log of `size` events, for everybody who wants one."""

    def __init__(self, folder: Path, size: int) -> None:
        self.root, self.own, self.size = folder / f"p{size}", folder / f"home{size}", size
        self.own.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        (self.root / "src").mkdir()
        (self.root / "src" / "app.ts").write_text("let x\n")
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.own), "LANG": "C.UTF-8", "NO_COLOR": "1"}
        self.n = 0

    def payload(self, event: str, command: str, **more: Any) -> bytes:
        """A payload of a Bash call with an id of its own."""
        self.n += 1
        base = {"session_id": f"s{self.n}", "transcript_path": "", "cwd": str(self.root), "hook_event_name": event}
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"t{self.n}"}
        if event == "PostToolBatch":
            return json.dumps({**base, "tool_calls": [{**call, "tool_response": "fine"}]}).encode()
        return json.dumps({**base, **call, **more}).encode()

    def run(self, command: Command, limit: float = LIMIT_S) -> float | None:
        """Milliseconds of one run, None where it takes longer than the limit."""
        begun = time.perf_counter()
        try:
            done = subprocess.run(
                command[0], input=command[1], cwd=self.root, env=self.env, capture_output=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{command[0][:4]}: {done.stderr[-300:]!r}")
        return (time.perf_counter() - begun) * 1000


def ours(world: World) -> dict[str, Any]:
    """Our hook, as registered, on a log of recorded calls with one failure of its own."""
    from projectmem_logs.home import init_home

    from projectmem.hook.entry import respond
    from projectmem.place import locate
    from projectmem.writing import append

    place = locate(str(world.root), {})
    assert place is not None
    init_home(place.home, recording.NOW)
    for start in range(0, world.size, 5000):
        drafts = [recording.draft(i) for i in range(start, min(start + 5000, world.size))]
        append(place, drafts, recording.NOW + start, "batch")
    failure = world.payload("PostToolUseFailure", "npm run build", error=ERROR, is_interrupt=False, duration_ms=5000)
    respond(["claude-code", "PostToolUseFailure"], failure, time.time_ns() // 1000)
    hooks = {event: group["hooks"][0] for event, group in entries().items()}
    argv = {event: words_of(hook) for event, hook in hooks.items()}
    return {
        "ours: check, no candidate": lambda: (argv["PreToolUse"], world.payload("PreToolUse", "git log --oneline -5")),
        "ours: check, candidate": lambda: (argv["PreToolUse"], world.payload("PreToolUse", "npm run build")),
        "ours: record": lambda: (argv["PostToolBatch"], world.payload("PostToolBatch", "git log --oneline -5")),
    }


def rival(world: World, python: Path) -> dict[str, Any]:
    """projectmem 0.3.4: its log in its own format, one line an event."""
    program = str(python.parent / "projectmem")
    world.run(([program, "init"], b""))
    lines = []
    for i in range(world.size):
        event = {"id": f"evt_{i:020x}", "location": f"src/mod{i % 500}.ts", "timestamp": "2026-01-01T00:00:00Z"}
        kind = {"type": "attempt", "outcome": "failed"} if i % 10 == 0 else {"type": "note"}
        lines.append(json.dumps({**event, "summary": f"note number {i} about the build of the module", **kind}))
    (world.root / ".projectmem" / "events.jsonl").write_text("\n".join(lines) + "\n")
    return {
        "projectmem 0.3.4: check": lambda: ([program, "precheck", "src/app.ts", "--quiet"], b""),
        "projectmem 0.3.4: record": lambda: ([program, "note", "the build fails", "--at", "src/app.ts"], b""),
    }


def hooks_of_others(world: World, pythons: dict[str, Path]) -> dict[str, Any]:
    """Tools that answer the same PreToolUse payload."""
    found: dict[str, Any] = {}
    if python := pythons.get("nah"):
        argv = [str(python), "-c", "from nah.hook import main; main()"]
        found["nah 0.11.0: check"] = lambda: (argv, world.payload("PreToolUse", "npm run build"))
    if python := pythons.get("agentbelay"):
        belay = str(python.parent / "belay")
        world.run(([belay, "init"], b""))
        found["agentbelay 0.1.0: check"] = lambda: (
            [belay, "hook", "claude-code", "--policy", "belay.yaml"],
            world.payload("PreToolUse", "npm run build"),
        )
    if python := pythons.get("nevertwice"):
        base = next((python.parent.parent / "lib").glob("python*/site-packages/nevertwice"))
        engine = [str(python), str(base / "hook_shim.py"), str(base / "memory_hook.py")]
        found["nevertwice 3.0.0: check"] = lambda: (engine, world.payload("PreToolUse", "npm run build"))
    return found


_SQLITE = """import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('PRAGMA synchronous = FULL')
look = 'SELECT data FROM event WHERE key = ? ORDER BY seq DESC LIMIT 16'
if sys.argv[2] == 'check': db.execute(look, (sys.argv[3],)).fetchall()
else: db.execute('INSERT INTO event (key, data) VALUES (?, ?)', (sys.argv[3], 'x' * 1500))
"""
_DUCKDB = """import duckdb, sys
db = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == 'check')
look = 'SELECT data FROM event WHERE key = ? ORDER BY seq DESC LIMIT 16'
if sys.argv[2] == 'check': db.execute(look, [sys.argv[3]]).fetchall()
else: db.execute("INSERT INTO event VALUES (nextval('s'), ?, ?)", [sys.argv[3], 'x' * 1500])
"""


def plain(world: World) -> dict[str, Any]:
    """Histories looked up by key, and one event added, in a process of its own: no chain, no parsing, no judgement."""
    import sqlite3

    import duckdb

    lite, duck = str(world.root.parent / f"{world.size}.sqlite"), str(world.root.parent / f"{world.size}.duckdb")
    with sqlite3.connect(lite) as db:
        db.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, key TEXT, data TEXT)")
        rows = ((f"{i % 5000:032x}", "x" * 1500) for i in range(world.size))
        db.executemany("INSERT INTO event (key, data) VALUES (?, ?)", rows)
        db.execute("CREATE INDEX event_key ON event (key)")
    db.close()
    with duckdb.connect(duck) as con:
        con.execute("CREATE SEQUENCE s; CREATE TABLE event (seq BIGINT, key VARCHAR, data VARCHAR)")
        fill = "INSERT INTO event SELECT nextval('s'), printf('%032x', i % 5000), repeat('x', 1500) FROM range(?) r(i)"
        con.execute(fill, [world.size])
        con.execute("CREATE INDEX event_key ON event (key)")
    key = f"{7:032x}"
    found: dict[str, Any] = {}
    for what in ("check", "record"):
        light = [interpreter(), "-I", "-S", "-c", _SQLITE, lite, what, key]
        heavy = [sys.executable, "-I", "-c", _DUCKDB, duck, what, key]
        found[f"plain SQLite: {what}"] = lambda argv=light: (argv, b"")
        found[f"plain DuckDB: {what}"] = lambda argv=heavy: (argv, b"")
    return found


def measure(size: int, pythons: dict[str, Path]) -> dict[str, float | None]:
    """{case: median ms, None where it took too long}, interleaved."""
    spent: dict[str, list[float] | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), size)
        made: dict[str, Any] = {FLOOR: lambda: ([interpreter(), "-I", "-S", "-c", "import json"], b"")}
        made |= ours(world) | plain(world) | hooks_of_others(world, pythons)
        if "projectmem" in pythons:
            made |= rival(world, pythons["projectmem"])
        for run in range(RUNS[size] + 1):
            for name, make in made.items():
                so_far = spent.setdefault(name, [])
                if so_far is None or (so_far and so_far[0] > SLOW_MS):
                    continue
                took = world.run(make())
                if took is None:
                    spent[name] = None
                elif run or took > SLOW_MS:  # the first one fills caches
                    so_far.append(took)
        shutil.rmtree(folder, ignore_errors=True)
    return {name: statistics.median(times) if times else None for name, times in spent.items()}


def main() -> list[str]:
    """The lines of the report: one row for each tool, one column for each size."""
    compile_hook()
    pythons, lines = {}, []
    for name, version in PEERS.items():
        python, why = installed(name, version)
        if python is None:
            lines.append(f"{name} {version}: skipped, {why}")
        else:
            pythons[name] = python
    sizes = (*SIZES, 1_000_000) if os.environ.get("PROJECTMEM_BENCH_MILLION") == "1" else SIZES
    found = FOUND
    found.clear()
    for size in sizes:
        found[size] = measure(size, pythons)
    lines.append(f"{'ms (ratio to the floor of the same run)':32}" + "".join(f"{size:>20,}" for size in sizes))
    for name in found[sizes[0]]:
        cells = []
        for size in sizes:
            ms, floor = found[size].get(name), found[size][FLOOR]
            cells.append(f"> {LIMIT_S} s" if ms is None or floor is None else f"{ms:9.1f} ({ms / floor:6.1f}x)")
        lines.append(f"{name:32}" + "".join(f"{cell:>20}" for cell in cells))
    for what, mine in (("check", "ours: check, candidate"), ("record", "ours: record")):
        theirs, own = found[sizes[-1]].get(f"projectmem 0.3.4: {what}"), found[sizes[-1]].get(mine)
        if own:
            said = f"{theirs / own:.0f} times ours" if theirs else f"more than {LIMIT_S * 1000 / own:.0f} times ours"
            if "projectmem" in pythons:
                lines.append(f"projectmem 0.3.4, {what} at {sizes[-1]:,} events: {said}")
    return lines
