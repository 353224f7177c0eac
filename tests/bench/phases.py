"""Where a hook process spends its time, phase by phase, and its instruction counts, which do not depend on what else runs.

A probe takes the place of `run()` in the registered program: it wraps the functions that are a phase, and counts each one's own
time, without what it calls of the others. Instructions are callgrind's, of the unchanged command.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from projectmem.place import SWITCH_VARIABLE
from tests.bench import bars
from tests.bench.hook import Project, cases

RUNS = 21
PHASES = ("import", "json", "look-up", "redact", "parse", "judge", "facts", "append", "rest")
# (module, class or "", name, phase)
TARGETS = [
    ("projectmem_logs.fastjson", "", "loads", "json"),
    ("projectmem_projections.quick", "", "nothing_objects", "look-up"),
    *[("projectmem_projections.snapshot", "Snapshot", name, "look-up")
      for name in ("entries", "changes", "labels", "policy", "ok_after", "stale", "seen", "turn", "cursor")],
    *[("projectmem_projections.snapshot_file", "SnapshotFile", name, "look-up")
      for name in ("__init__", "pending_get", "pending_put", "claim", "close")],
    ("projectmem_logs.redact", "Redactor", "text", "redact"),
    ("projectmem_logs.redact", "Redactor", "tree", "redact"),
    ("projectmem_gate.identify", "", "identify", "parse"),
    ("projectmem_gate.decide", "", "decide", "judge"),
    ("projectmem_gate.outcome", "", "judge", "judge"),
    ("projectmem_gate.history", "", "fold", "judge"),
    ("projectmem.hook.facts", "Disk", "compare", "facts"),
    ("projectmem.hook.facts", "Disk", "record", "facts"),
    ("projectmem.writing", "", "append", "append"),
]  # fmt: skip
PROBE = """
import builtins
clock = time.perf_counter_ns
spent = {"import": clock() - T0}
stack = []
def enter(phase):
    now = clock()
    if stack: spent[stack[-1][0]] = spent.get(stack[-1][0], 0) + now - stack[-1][1]
    stack.append([phase, now])
def leave():
    now = clock()
    phase, since = stack.pop()
    spent[phase] = spent.get(phase, 0) + now - since
    if stack: stack[-1][1] = now
def wrapped(f, phase):
    def call(*a, **k):
        enter(phase)
        try: return f(*a, **k)
        finally: leave()
    return call
todo = TARGETS
load = builtins.__import__
def timed(*a, **k):
    if a[0] in sys.modules and not (len(a) > 3 and a[3]) : return load(*a, **k)
    enter("import")
    try: return load(*a, **k)
    finally:
        for target in todo[:]:
            name, kind, attribute, phase = target
            module = sys.modules.get(name)
            holder = getattr(module, kind, None) if kind and module else module
            if holder is not None and hasattr(holder, attribute):
                setattr(holder, attribute, wrapped(getattr(holder, attribute), phase))
                todo.remove(target)
        leave()
builtins.__import__ = timed
from projectmem.hook import entry
enter("rest")
entry.main(sys.argv[1:])
leave()
sys.stderr.write(repr({k: v / 1e6 for k, v in spent.items()}))
sys.stderr.flush()
import os
os._exit(0)
"""


def _probed(argv: list[str]) -> list[str]:
    """The registered command with the probe in the place of `run()`."""
    at = argv.index("-c") + 1
    body = PROBE.replace("TARGETS", repr([list(target) for target in TARGETS]))
    program = argv[at].replace("    run()\n", f"    exec({body!r})\n")
    assert program != argv[at]
    return [*argv[:at], f"import time; T0 = time.perf_counter_ns()\n{program}", *argv[at + 1 :]]


def phases(runs: int = RUNS) -> list[str]:
    """One line for each kind of call: median milliseconds of each phase, the interpreter's own start, and the whole."""
    spent: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        project = Project(folder)
        for run in range(runs):
            for name, (argv, stdin) in cases(project, run, shell=False).items():
                if not name.startswith(("pre, no", "pre, cand", "batch", "failure")):
                    continue
                begun = time.perf_counter()
                done = subprocess.run(_probed(argv), input=stdin, cwd=folder, capture_output=True, check=True)
                total = (time.perf_counter() - begun) * 1000
                found = {key: float(value) for key, value in json.loads(done.stderr.decode().replace("'", '"')).items()}
                row = spent.setdefault(name, {})
                for phase in PHASES:
                    row.setdefault(phase, []).append(found.get(phase, 0.0))
                row.setdefault("start", []).append(total - sum(found.values()))
                row.setdefault("total", []).append(total)
    columns = ("start", *PHASES, "total")
    lines = [
        "ms, median of each; start: the interpreter, and the probe's own reading",
        f"{'':20}" + "".join(f"{c:>9}" for c in columns),
    ]
    for name, row in spent.items():
        lines.append(f"{name:20}" + "".join(f"{statistics.median(row[c]):9.2f}" for c in columns))
    return lines


def instructions() -> list[str]:
    """Millions of instructions of each kind of call by callgrind, and the ratio to the floor."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return ["instructions: skipped, valgrind is not installed"]
    counted: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        project = Project(folder)
        calls = cases(project, 1, shell=False)
        calls["pre, switched off"] = calls["pre, no candidate"]
        for name in ("failure", "prompt, nothing recalled"):
            argv, stdin = calls[name]
            other = {**json.loads(stdin), "session_id": "other"}  # the same told twice to one session is told once
            calls[f"{name.partition(',')[0]}, generation stands"] = argv, json.dumps(other).encode()
        for name, (argv, stdin) in calls.items():
            if name.endswith("stands"):
                project.generation()
            env = {**os.environ, SWITCH_VARIABLE: "off" if name.endswith("off") else ""}
            out = os.path.join(folder, "callgrind.out")
            tool = [valgrind, "--tool=callgrind", f"--callgrind-out-file={out}"]
            done = subprocess.run([*tool, *argv], input=stdin, cwd=folder, env=env, capture_output=True, check=True)
            counted[name] = int(done.stderr.decode("utf-8", "replace").rpartition("Collected : ")[2].split()[0])
    floor = next(iter(counted.values()))
    return [
        f"{name:32} {count / 1e6:8.1f} M instructions  {count / floor:5.2f}x{bars.hook(name, count / floor)}"
        for name, count in counted.items()
    ]


def main() -> list[str]:
    """The lines of the report."""
    return [*phases(), "", *instructions()]
