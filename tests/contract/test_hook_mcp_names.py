"""The same call of an MCP server's tool is one action in Claude Code, Codex, Gemini, Copilot and opencode."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_gate.identify import identify

from projectmem.hook import copilot, joined, opencode
from projectmem.setup import jsonc

GIVEN = {"target": "broken"}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder below a work tree, a home of its own, and settings that name servers in every place."""
    for name in ("COPILOT_HOME", "OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(joined, "_known", {})
    repo = tmp_path / "repo"
    files = {
        tmp_path / "home/.copilot/mcp-config.json": '{"mcpServers": {"shop": {}, "shop-eu": {}}}',
        repo / ".mcp.json": '{"mcpServers": {"data.base": {}}}',
        tmp_path
        / "home/.config/opencode/opencode.jsonc": '{\n // "mcp": {"no": {}},\n "mcp": {"shop": {"x": "// {}"}, /* , */ },\n}',
        repo / "opencode.json": '\ufeff{"mcp": {"shop_eu": {}, "data.base": {}}}',
        tmp_path / ".mcp.json": '{"mcpServers": {"above": {}}}',
        tmp_path / "opencode.json": '{"mcp": {"above": {}}}',
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (repo / ".git").mkdir()
    (repo / "src").mkdir()
    return repo / "src"


def _call(name: str, event: str, payload: dict[str, Any]) -> dict[str, Any]:
    parsed = importlib.import_module(f"projectmem.hook.{name}").parse(event, payload)
    call: dict[str, Any] = parsed.calls[0]
    return call


def test_one_call_has_one_identity_in_five_clients(work: Path) -> None:
    """Server and tool are what the keys are made of."""
    base = {"session_id": "s", "transcript_path": "", "cwd": str(work)}
    told = {"tool_name": "mcp__shop__de-ploy", "tool_input": GIVEN, "tool_use_id": "t"}
    context = {"server_name": "shop", "tool_name": "de-ploy"}
    calls = [
        _call("claude_code", "PreToolUse", {**base, "hook_event_name": "PreToolUse", **told}),
        _call("codex", "PreToolUse", {**base, "turn_id": "1", **told}),
        _call("gemini", "BeforeTool", {**base, "tool_name": "mcp_shop_de-ploy", "tool_input": GIVEN, "mcp_context": context}),
        _call(
            "copilot", "preToolUse",
            {"sessionId": "s", "cwd": str(work), "timestamp": 1, "toolName": "shop-de-ploy", "toolArgs": json.dumps(GIVEN)},
        ),
        _call("opencode", "tool.execute.before", {**base, "call_id": "c", "tool": "shop_de-ploy", "args": GIVEN}),
    ]  # fmt: skip
    assert {call["tool"] for call in calls} == {"mcp__shop__de-ploy"}
    keys = [identify(call["tool"], call["input"], cwd=str(work), root=str(work.parent)).parts for call in calls]
    assert len({tuple(part.key for part in parts) for parts in keys}) == 1


@pytest.mark.parametrize(("name", "tool", "said"), [
    ("copilot", "shop-eu-list", "mcp__shop-eu__list"), ("copilot", "shop-list-all", "mcp__shop__list-all"),
    ("copilot", "data_base-list", "mcp__data_base__list"),
    ("copilot", "github-mcp-server-get_file", "mcp__github-mcp-server__get_file"),
    ("copilot", "above-list", "above-list"), ("copilot", "shop-", "shop-"), ("copilot", "bash", "bash"),
    ("copilot", "other-x", "other-x"),
    ("opencode", "shop_eu_list", "mcp__shop_eu__list"), ("opencode", "shop_list_all", "mcp__shop__list_all"),
    ("opencode", "data_base_x", "mcp__data_base__x"), ("opencode", "no_x", "no_x"), ("opencode", "above_x", "above_x"),
    ("opencode", "apply_patch", "apply_patch"), ("opencode", 5, 5),
])  # fmt: skip
def test_the_longest_server_that_the_settings_declare_is_meant(work: Path, name: str, tool: Any, said: Any) -> None:
    """Of the work tree and the person; not of what lies above the work tree. What nothing declares stays as it is."""
    assert (copilot if name == "copilot" else opencode).tool_of(tool, str(work)) == said


def test_settings_are_read_for_a_server_s_tool_alone_and_once(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in tool costs nothing."""
    read: list[str] = []
    declared = joined._declared

    def noted(harness: str, path: str) -> list[str]:
        read.append(path)
        return declared(harness, path)

    monkeypatch.setattr(joined, "_declared", noted)
    for tool in ("bash", "str_replace_editor", "view"):
        copilot.tool_of(tool, str(work))
    for tool in ("bash", "edit", "apply_patch", "plan_exit"):
        opencode.tool_of(tool, str(work))
    assert read == []
    for tool in ("shop-a", "shop-b", "x-y"):
        copilot.tool_of(tool, str(work))
    assert len(read) == len(set(read)) > 0


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"mcpServers": 3}', '{"mcpServers": {"": {}}}', "\x00", "[" * 100_000])
def test_settings_that_cannot_be_read_name_no_server(work: Path, text: str) -> None:
    """The call goes by the name that it came with."""
    (work.parents[1] / "home/.copilot/mcp-config.json").write_text(text)
    assert copilot.tool_of("shop-deploy", str(work)) == "shop-deploy"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\/*', max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, st.sampled_from(["", " // x,}\n", '/* ,] " */', "\n"]))
def test_comments_and_last_commas_are_taken_out_and_nothing_else(value: Any, gap: str) -> None:
    """As the editor of settings reads the same text."""
    text = json.dumps(value, indent=1).replace("\n", f"{gap}\n")
    for close in "}]":
        text = text.replace(f'"\n{close}', f'",\n{close}')
    assert json.loads(joined.plain(text)) == jsonc.parse(text).data
