"""Two ways to one result: bulk against single sealing, the C coder against json, hand-built payloads against the models."""

from __future__ import annotations

import enum
import json
import math
import os
import struct
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projectmem_gate import model
from projectmem_gate.identify import identify
from projectmem_gate.model import CLASSES, Outcome
from projectmem_logs import bulk, fastjson
from projectmem_logs.canonical import MAX_INT, sanitize
from projectmem_logs.envelope import GENESIS, SALT_BYTES, prepare, seal_all, uuid7
from projectmem_logs.errors import LogError
from projectmem_logs.kinds import ActionFinished, validate
from projectmem_logs.reader import read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

from projectmem.hook.drafts import finished_draft

NOW = 1_800_000_000_000_123
texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INT - 2, MAX_INT + 2) | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
drafts = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["note.recorded", "action.finished"]),
        "actor": st.fixed_dictionaries({"origin": st.sampled_from(["observed", "import"]), "session": texts}),
        "causes": st.lists(st.binary(min_size=10, max_size=10).map(lambda b: uuid7(1, b)), max_size=2),
        "data": st.dictionaries(texts, values, max_size=4),
    },
    optional={"at": st.integers(0, MAX_INT) | st.none()},
)


def _tried(prepare_all: Callable[[], Any]) -> tuple[Any, str]:
    """What it gives, or the error it gives."""
    try:
        return prepare_all(), ""
    except LogError as e:
        return None, f"{type(e).__name__}: {e}"


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(drafts, min_size=1, max_size=4), st.integers(0, 2**50), st.integers(0, 255))
def test_bulk_and_single_sealing_give_the_same_bytes(batch: list[dict[str, Any]], now: int, byte: int) -> None:
    """Equal events and equal bytes, or the same refusal from both."""
    single, refused = _tried(lambda: [prepare(d, now) for d in batch])
    many, also_refused = _tried(lambda: bulk.prepare_many(batch, now))
    assert refused == also_refused
    if refused:
        return
    where: dict[str, Any] = {
        "stream": "00000000000000aa", "first": 5, "prev": GENESIS, "ts": now, "rand": Random(byte).randbytes(26 * len(batch)),
        "scope": {"project": "p", "tenant": ""}, "scope_text": '{"project":"p","tenant":""}',
    }  # fmt: skip
    events, data = seal_all(single, ids=(), **where)
    assert bulk.seal_many(many, **where)[:3] == (events, data, events[-1]["id"])
    assert bulk.seal_many(many, **where, events=False)[1:] == (data, events[-1]["id"], events[-1]["hash"])
    placed, *rest = bulk.seal_many(many, **where, places=True)
    assert (placed, rest) == ([{n: e[n] for n in ("id", "stream", "seq", "prev", "hash")} for e in events], [data, *rest[1:]])
    assert SALT_BYTES == 16


@given(drafts, st.integers(0, 2**50))
def test_a_draft_that_was_encoded_elsewhere_is_the_same(draft: dict[str, Any], now: int) -> None:
    """Of its bytes alone, and as it is kept where the log is locked."""
    many, refused = _tried(lambda: bulk.prepare_many([draft], now))
    if refused or draft.get("causes"):
        return
    (who, kind, *_), at, _, _, raw = many[0]
    again = bulk.encoded(kind, at, who, raw)
    assert again == (*many[0][:3], None, raw)
    for one in (again, many[0]):
        kept, plain = bulk.prepared(one), prepare(draft, now)
        assert (kept.data, kept.data_text, kept.actor_text, kept.at) == (plain.data, plain.data_text, plain.actor_text, plain.at)


class Level(enum.IntEnum):
    """A number that is more than one."""

    LOW = 1


class Colour(enum.Enum):
    """What orjson writes of itself."""

    RED = "red"


class Text(str):
    """A text that is more than one."""


ODD = [
    math.nan, math.inf, -math.inf, *struct.unpack("<2d", bytes.fromhex("010000000000f47f020000000000ffff")),
    -1, [127, 255, -5], 0.5, 1e16, Level.LOW, Colour.RED, Text("a"), uuid.UUID(int=5), datetime.now(UTC), b"x", {1},
    2**53, 2**53 + 1, -(2**53) - 1, "\ud800", (1, "a"), {"b": 1, "a": {"\ud800": 1}}, {1: 2}, {Text("k"): 1}, "x:.,e", [None],
    "4503599627370503", ",4503599627370503,", [4503599627370503] * 3, "f\x03nan", json.loads("[" * 99 + "]" * 99),
    json.loads("[" * 100 + "]" * 100),
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("many", [1, 3, 70])
def test_what_the_fast_coder_would_write_otherwise_is_taken_or_refused_alike(odd: Any, many: int) -> None:
    """Among many plain payloads and alone: the same bytes as one by one, or the same refusal."""
    batch = [{"kind": "note.recorded", "actor": {"origin": "observed"}, "data": {"text": str(i)}} for i in range(many)]
    batch[many // 2] = {**batch[0], "data": {"text": "odd", "value": odd}}
    single, refused = _tried(lambda: [prepare(d, 5).data_text.encode() for d in batch])
    found, also_refused = _tried(lambda: [one[4] for one in bulk.prepare_many(batch, 5)])
    assert (found, also_refused) == (single, refused)


def test_a_wrong_draft_behind_a_right_one_of_the_same_actor_is_refused_alike() -> None:
    """What the draft before it has proven is not more than that."""
    for actor in ({"origin": "observed"}, {}, None):
        right = {"kind": "note.recorded", "at": 5, "actor": actor, "causes": [], "data": {}}
        wrong = [{**right, **change} for change in ({"at": -1}, {"at": True}, {"data": []}, {"causes": ["x"]}, {"kind": "A"})]
        wrong += [{**{k: v for k, v in right.items() if k != name}, "more": 1} for name in right]
        for draft in wrong:
            both = [right, draft]
            _, refused = _tried(lambda both=both: [prepare(d, 5) for d in both])  # type: ignore[misc]
            _, also_refused = _tried(lambda both=both: bulk.prepare_many(both, 5))  # type: ignore[misc]
            assert refused == also_refused


def test_the_fast_coder_takes_what_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads as the hook makes them do not fall back: that would be slow, and nothing else would show it."""
    data = finished_draft(
        {"session": "s", "call": "c", "input": {"command": "ls"}, "harness": "claude-code"},
        identify("Bash", {"command": "ls -e a:.,e"}, root="/r", cwd="/r", harness="claude-code"), Outcome("ok"), {}, at=NOW,
    )["data"]  # fmt: skip
    for many in (1, 70):
        assert len(bulk._encode([data] * many)) == many
    monkeypatch.setattr(bulk, "_carefully", None)
    draft = {"kind": "action.finished", "actor": {"origin": "observed"}, "data": data}
    assert bulk.prepare_many([draft], NOW)[0][3] == data


def test_a_store_that_lives_on_writes_as_a_young_one_does(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes before and after it takes the fast modules, but for what is drawn anew."""
    note = {"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": "é", "n": None, "tags": [{}]}}
    written = []
    for young in (True, False):
        home = str(tmp_path / f"young-{young}")
        init_home(home, NOW)
        store = LogStore(home, project="p")
        monkeypatch.setattr(store, "_lives_long", lambda young=young: not young)
        monkeypatch.setattr(os, "urandom", lambda size: b"r" * size)
        written.append([store.append([note] * n, now=NOW) for n in (1, 3, 1)])
        monkeypatch.undo()
        assert verify(home).ok
    assert written[0] == written[1]


def test_both_durabilities_write_one_log(tmp_path: Any) -> None:
    """A log written in both ways reads and verifies as one."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    store = LogStore(home)
    note = {"kind": "note.recorded", "actor": {"origin": "import"}, "data": {"text": "é", "tags": []}}
    written = store.append([note] * 50, now=NOW, durability="batch") + store.append([note], now=NOW)
    written += store.append([note] * 3, now=NOW, durability="batch")
    assert list(read_events(home)) == written and verify(home).ok


@given(values)
def test_the_c_coder_agrees_with_json(value: Any) -> None:
    """encode as json.dumps sorted and compact; loads as json.loads."""
    try:
        want = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError:
        with pytest.raises(ValueError, match="JSON"):
            fastjson.encode(value)
        return
    assert fastjson.encode(value) == want and fastjson.loads(f" {want}\n") == json.loads(want)


@given(
    st.text(max_size=30)
    | st.binary(max_size=30)
    | st.sampled_from(["[1", '{"a":', "1 2", "", "NaN", "[" * 100_000, "\ufeff1", '"\n"', "1e999", '"\\ud800"'])
)
def test_the_c_parser_refuses_what_json_refuses(raw: str | bytes) -> None:
    """The same value, or an error of the same family."""
    try:
        want = json.loads(raw if isinstance(raw, str) else raw.decode())
    except (ValueError, RecursionError):
        with pytest.raises((ValueError, RecursionError)):
            fastjson.loads(raw)
        return
    assert repr(fastjson.loads(raw)) == repr(want)


CALLS: list[tuple[str, Any]] = [
    ("Bash", {"command": "cd src && pytest -q tests | tail -5"}),
    ("Bash", {"command": "cat <<'EOF' > x\nhello\nEOF\nif ["}),
    ("Edit", {"file_path": "/r/a.py", "old_string": "a", "new_string": "b"}),
    ("Write", {"file_path": "/r/a.py", "content": "x" * 20_000}),
    ("mcp__s__t", {"q": [1.5, None, 2**70, "\ud800"]}),
    ("WebFetch", {"url": "https://example.com"}),
    ("Nonsense", "just text"),
    ("Bash", None),
]
OUTCOME = Outcome("failed", 1, "test", "assert # == #", "E   assert 1 == 2\n" * 100, 0)


@pytest.mark.parametrize(("tool", "given"), CALLS, ids=range(len(CALLS)))
def test_what_the_hook_builds_is_a_valid_payload(tmp_path: Any, tool: str, given: Any) -> None:
    """A finished call's draft passes its model, field for field, and can be sealed as it is."""
    given = sanitize(given)  # foreign input is made recordable before anything else
    action = identify(tool, given, root="/r", cwd="/r", harness="claude-code")
    call = {"session": "s", "call": "c1", "input": given, "duration_ms": 12.7, "harness": "claude-code"}
    facts = {"head": "", "deps": {}, "files": {"a.py": "absent"}, "env": {}}
    for outcome in (OUTCOME, Outcome("ok")):
        draft = finished_draft(call, action, outcome, facts, at=NOW, as_of={"00000000000000aa": 3})
        data = draft["data"]
        assert validate(draft["kind"], data) is data
        assert set(data) == {f.alias or n for n, f in ActionFinished.model_fields.items()} - {"v", "report"}
        home = str(tmp_path / os.urandom(4).hex())
        init_home(home, NOW)
        assert LogStore(home).append([draft], now=NOW)[0]["data"] == data


def test_the_enumerations_are_the_gate_s() -> None:
    """Log and gate do not import each other, so their words are compared here."""
    from typing import get_args

    from projectmem_logs import kinds

    assert set(get_args(kinds.Class)) == {"", *CLASSES}
    words = (model.OK, model.FAILED, model.REJECTED, model.INTERRUPTED, model.CANCELLED, model.UNKNOWN)
    assert set(get_args(kinds.Outcome)) == set(words)
    documented = str(model.Part.__doc__).split("kind     ")[1].split("\n")[0].split(" | ")
    assert set(get_args(kinds.ActionKind)) == set(documented)
