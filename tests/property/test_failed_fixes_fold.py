"""Failed fixes are a function of the log: any interleaving, store and position gives the same, and a naive account agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_gate import attempts as gate
from projectmem_projections.memory import MemoryState
from projectmem_projections.snapshot import Snapshot

A, A_BACK, B, W = "a" * 32, "b" * 32, "c" * 32, "d" * 32
RUN, SOME = "1" * 32, "2" * 32


def edit(key: str, path: str, kind: str = "edit", undoes: str = "", words: tuple[str, ...] = ("app", "py")) -> dict[str, Any]:
    return {"key": key, "kind": kind, "family": f"edit {path}", "text": f"edit {path}", "words": list(words), "paths": [path],
            "effects": [["edit", path]], "trivial": False, "variant": "v", "undoes": undoes}  # fmt: skip


def command(key: str, family: str, text: str, effects: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    return {"key": key, "kind": "sh", "family": family, "text": text, "words": [], "paths": [], "trivial": False,
            "effects": [list(e) for e in effects], "variant": "", "undoes": ""}  # fmt: skip


EDITS = [
    edit(A, "app.py", undoes=A_BACK),
    edit(A_BACK, "app.py", undoes=A),
    edit(B, "lib.py", words=("lib",)),
    edit(W, "app.py", "write"),
]
RUNS = [
    command(RUN, "pytest", "pytest"),
    command(SOME, "pytest", "pytest -k one"),
    command("3" * 32, "ruff check", "ruff check ."),
]
BACKS = [
    command("4" * 32, "git checkout", "git checkout -- app.py", (("edit", "app.py"),)),
    command("5" * 32, "git stash", "git stash", (("checkout", ""),)),
    command("6" * 32, "rm", "rm lib.py", (("edit", "lib.py"),)),
]
STEPS = st.one_of(
    st.sampled_from(EDITS).map(lambda p: ([p], "ok", "")),
    st.tuples(st.sampled_from(RUNS), st.sampled_from(["failed", "failed", "ok"]), st.sampled_from(["boom", "boom", "bang"])).map(
        lambda t: ([t[0]], t[1], t[2])
    ),
    st.sampled_from(BACKS).map(lambda p: ([p], "ok", "")),
    st.tuples(st.sampled_from(EDITS), st.sampled_from(RUNS), st.sampled_from(["failed", "ok"])).map(
        lambda t: ([t[0] | {"kind": "sh"}, t[1]], t[2], "boom")
    ),
)


def event(stream: str, seq: int, step: tuple[list[dict[str, Any]], str, str], at: int) -> dict[str, Any]:
    parts, outcome, sig = step
    failed = outcome == "failed"
    data = {
        "call": "", "key": parts[0]["key"] if len(parts) == 1 else "f" * 32, "text": "t", "joins": ["&&"] * (len(parts) - 1),
        "parts": parts, "failed_key": parts[-1]["key"] if failed else "", "outcome": outcome, "class": "test" if failed else "",
        "signature": sig if failed else "", "excerpt": "", "facts": {}, "turn": 0, "source": "hook",
    }  # fmt: skip
    actor = {"session": "s", "agent": "", "harness": "h", "model": "m", "origin": "observed"}
    return {
        "id": f"e-{stream}-{seq}",
        "stream": stream,
        "seq": seq,
        "at": at,
        "kind": "action.finished",
        "actor": actor,
        "data": data,
    }


@st.composite
def logs(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    """One to three streams of edits, runs and undoing, `at` in or out of the order of recording."""
    found = {}
    for stream in ("s1", "s2", "s3")[: draw(st.integers(1, 3))]:
        steps = draw(st.lists(STEPS, min_size=1, max_size=14))
        straight = draw(st.booleans())
        found[stream] = [
            event(stream, n, step, n * 3 if straight else draw(st.integers(1, 40))) for n, step in enumerate(steps, 1)
        ]
    return found


def interleaving(draw: Any, log: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    turns = draw(st.permutations([stream for stream, events in log.items() for _ in events]))
    at = {stream: iter(events) for stream, events in log.items()}
    return [next(at[stream]) for stream in turns]


@pytest.fixture(params=["all that is kept", "little"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits as shipped, and small enough to cut these logs."""
    if request.param == "little":
        small = {"VERDICTS_MAX": 4, "MADE_MAX": 3, "AFTER_MAX": 2, "RESTORED_MAX": 2, "PER_RUN": 2, "KEYS_MAX": 2}
        for name, value in small.items():
            monkeypatch.setattr(gate, name, value)


SETTINGS = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
KEYS = (A, A_BACK, B, W)


@SETTINGS
@given(logs(), st.data())
def test_every_interleaving_and_both_stores_agree(limits: None, tmp_path: Path, log: Any, data: st.DataObject) -> None:
    """In one go, in single steps, in memory and on disk: equal bytes, equal attempts, and hint rows for each of them."""
    one, other = MemoryState(), MemoryState()
    assert one.apply(interleaving(data.draw, log))
    for item in interleaving(data.draw, log):
        other.apply([item])
    path = tmp_path / "gate.sqlite"
    path.unlink(missing_ok=True)
    with Snapshot(str(path)) as disk:
        for item in interleaving(data.draw, log):
            disk.apply([item])
        assert one.canonical_dump() == other.canonical_dump() == disk.canonical_dump()
        assert one.attempts(KEYS) == disk.attempts(KEYS)
        for found in one.attempts(KEYS):
            words = frozenset(w for w in found["words"] if w)
            assert one.hints(words) and disk.hints(words)


def test_an_edit_to_come_changes_nothing_that_is_still_open(limits: None) -> None:
    """An edit that was taken back stays known, however many others follow before the next run."""
    steps = [([RUNS[0]], "failed", "boom"), ([EDITS[0]], "ok", ""), ([EDITS[1] | {"kind": "sh"}, RUNS[1]], "ok", "")]
    steps += [([edit(f"{n:032x}", "lib.py")], "ok", "") for n in range(100, 130)]
    log = [event("s1", n, step, n * 3) for n, step in enumerate(steps, 1)]
    one, other = MemoryState(), MemoryState()
    one.apply(log)
    for item in log:
        other.apply([item])
    assert one.canonical_dump() == other.canonical_dump()
    assert [found["key"] for found in one.attempts([A])] == [A]


@SETTINGS
@given(logs(), st.data())
def test_an_earlier_position_gives_what_was_known_there(limits: None, log: Any, data: st.DataObject) -> None:
    """A decision can be recomputed from the log as it stood."""
    as_of = {stream: data.draw(st.integers(0, len(events))) for stream, events in log.items()}
    whole, part = MemoryState(), MemoryState()
    whole.apply(interleaving(data.draw, log))
    part.apply([e for stream, events in log.items() for e in events[: as_of[stream]]])
    assert whole.attempts(KEYS, as_of) == part.attempts(KEYS)


@SETTINGS
@given(logs())
def test_a_naive_account_agrees(log: Any) -> None:
    """Which edits are failed attempts at which failures, told from the events one after the other."""
    state = MemoryState()
    for events in log.values():
        state.apply(events)
    told = {(a["key"], a["verifier"], a["sig"], a["times"], bool(a["undone"])) for a in state.attempts(KEYS)}
    assert told == naive(sorted((e for events in log.values() for e in events), key=lambda e: (e["at"], e["stream"], e["seq"])))


def naive(events: list[dict[str, Any]]) -> set[tuple[str, str, str, int, bool]]:
    """Moments are ("run", track, key, sig or "") and ("edit", part) and ("back", path), in order."""
    moments: list[tuple[Any, ...]] = []
    for e in events:
        for part in e["data"]["parts"]:
            if part["family"].startswith("edit"):
                moments.append(("edit", part))
            elif part["family"] in ("pytest", "ruff check"):
                moments.append(("run", part["family"], part["key"], e["data"]["signature"]))
            else:
                moments.append(("back", part["effects"][0][1]))
    return {row for track in ("pytest", "ruff check") for row in _of_track(track, moments)}


def _of_track(track: str, moments: list[tuple[Any, ...]]) -> set[tuple[str, str, str, int, bool]]:
    out = set()
    for sig in ("boom", "bang"):
        reds: list[int] = []
        for i, m in enumerate(moments):
            if m[:2] == ("run", track):
                if m[3] == sig:
                    reds.append(i)
                elif not m[3] and (m[2] != SOME or SOME in [moments[r][2] for r in reds]):
                    reds = []  # the whole suite passed, or the very run that showed it
        last = {m[2]: m[3] for m in moments if m[:2] == ("run", track)}
        if not any(last[moments[r][2]] == sig for r in reds):
            continue
        started = next(i for i, m in enumerate(moments) if m[:2] == ("run", track))  # nothing before the first run counts
        times: dict[str, int] = {}
        gone: dict[str, bool] = {}
        for i in range(reds[0], len(moments)):
            if moments[i][0] != "edit":
                continue
            part = moments[i][1]
            back = _taken_back(i, moments, started)
            judged = next((r for r in reds if r > i), None)
            is_undoing = part["undoes"] and any(m[0] == "edit" and m[1]["key"] == part["undoes"] for m in moments[started:i])
            failed = judged is not None and (back is None or judged < back)
            if is_undoing or _held(i, track, moments, back) or not (failed or back is not None):
                continue
            times[part["key"]] = times.get(part["key"], 0) + failed
            gone[part["key"]] = back is not None
        out |= {(key, track, sig, n, gone[key]) for key, n in times.items()}
    return out


def _taken_back(i: int, moments: list[tuple[Any, ...]], started: int) -> int | None:
    part = moments[i][1]
    path = part["paths"][0]
    for j in range(i + 1, len(moments)):
        kind, *rest = moments[j]
        if kind == "back" and rest[0] in ("", path):
            return j
        if kind == "edit" and rest[0]["undoes"] == part["key"]:
            return j
        again = (
            kind == "edit"
            and not rest[0]["undoes"]
            and any(m[0] == "edit" and m[1]["key"] == rest[0]["key"] for m in moments[started:j])
        )
        if again and rest[0]["paths"][0] == path:
            return j
    return None


def _held(i: int, track: str, moments: list[tuple[Any, ...]], back: int | None) -> bool:
    part = moments[i][1]
    for j in range(i + 1, len(moments)):
        if j == back:
            return False
        kind, *rest = moments[j]
        if kind == "edit" and rest[0]["paths"] == part["paths"] and rest[0]["key"] != part["key"]:
            return moments_run(track, moments, i, j) == "passed"
        if kind == "run" and rest[0] == track:
            return not rest[2]
    return False


def moments_run(track: str, moments: list[tuple[Any, ...]], i: int, j: int) -> str:
    """What the first run between two moments said, "" for none."""
    return next(("failed" if m[3] else "passed" for m in moments[i:j] if m[:2] == ("run", track)), "")
