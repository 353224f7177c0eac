"""Settings are edited in place: whatever they hold and however they are written, what is not ours stays byte for byte."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from projectmem.setup import hook_lists, jsonc

_text = st.text(st.characters(codec="utf-8", exclude_characters="\ufeff"), max_size=6)
_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
_gap = st.sampled_from(["", " ", "\n", "\r\n", "\n\t", " // a note, [ { \n", "/* } ] \n */", "  "])
_theirs = st.fixed_dictionaries(
    {"hooks": st.lists(st.fixed_dictionaries({"command": _text}), max_size=2)}, optional={"matcher": _text}
)
_hooks = st.dictionaries(st.sampled_from(["Pre", "Post", "Stop"]), st.lists(_theirs, max_size=2), max_size=3)
_OURS = {"type": "command", "command": "exec python -c 'projectmem.hook.entry'"}
GROUPS: dict[str, Any] = {"Pre": {"matcher": "*", "hooks": [_OURS]}, "Start": {"hooks": [_OURS]}}


@st.composite
def _written(draw: st.DrawFn, value: Any) -> str:
    """The value as JSON with comments, gaps and a comma after the last member here and there."""

    def gap() -> str:
        return draw(_gap)

    def parts(rows: list[str]) -> str:
        wanted: bool = draw(st.booleans())
        comma = "," if rows and wanted else ""
        return f",{gap()}".join(rows) + gap() + comma + gap()

    def shown(of: Any) -> str:
        if isinstance(of, dict):
            rows = [f"{gap()}{json.dumps(k, ensure_ascii=draw(st.booleans()))}{gap()}:{gap()}{shown(v)}" for k, v in of.items()]
            return "{" + parts(rows) + "}"
        if isinstance(of, list):
            return "[" + parts([gap() + shown(v) for v in of]) + "]"
        return json.dumps(of)

    return f"{gap()}{shown(value)}{gap()}"


@given(st.data(), _plain)
def test_what_is_read_is_what_was_written(data: st.DataObject, value: Any) -> None:
    """Comments, gaps and trailing commas change nothing."""
    assert jsonc.parse(data.draw(_written(value))).data == value


@given(_plain)
def test_plain_json_is_read_as_json_does(value: Any) -> None:
    """Without comments the two agree."""
    text = json.dumps(value, indent=1)
    assert jsonc.parse(text, comments=False).data == json.loads(text)


@given(st.text(alphabet='{}[]",:/*\\ \nab1-.', max_size=40))
def test_any_text_is_read_as_json_does_or_refused(text: str) -> None:
    """Never another exception, and never a value where `json` has none (without comments)."""
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
        try:
            found = jsonc.parse(text, comments=False).data
        except jsonc.JsonError:
            return
        raise AssertionError(f"{text!r} was read as {found!r}") from None
    assert jsonc.parse(text, comments=False).data == expected


@given(st.data(), st.dictionaries(_text.filter(lambda k: k != "hooks"), _plain, max_size=3), st.none() | _hooks)
def test_ours_go_in_beside_theirs_and_come_out_exactly(data: st.DataObject, rest: dict[str, Any], hooks: Any) -> None:
    """After add the data is theirs plus ours; add again writes nothing; remove gives the very bytes back, with the note,
    and the same data but for lists that were left empty, without it."""
    value = {**rest, **({"hooks": hooks} if hooks is not None or data.draw(st.booleans()) else {})}
    text = data.draw(st.sampled_from(["", jsonc.MARK])) + data.draw(_written(value))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.json"
        path.write_bytes(text.encode())
        note = hook_lists.add(path, GROUPS, comments=True)
        made = path.read_bytes()
        now = jsonc.parse(made.decode()).data
        assert {k: v for k, v in now.items() if k != "hooks"} == rest
        for event in {*GROUPS, *(hooks or {})}:
            assert now["hooks"][event] == [*(hooks or {}).get(event, []), *([GROUPS[event]] if event in GROUPS else [])]
        assert hook_lists.add(path, GROUPS, note, comments=True) == note
        assert path.read_bytes() == made
        assert hook_lists.remove(path, None, comments=True)
        left = jsonc.parse(path.read_bytes().decode()).data
        assert {k: v for k, v in left.items() if k != "hooks"} == rest
        kept = {event: groups for event, groups in (hooks or {}).items() if groups}
        assert {event: groups for event, groups in (left.get("hooks") or {}).items() if groups} == kept
        path.write_bytes(made)
        assert hook_lists.remove(path, note, comments=True)
        assert path.read_bytes() == text.encode()
