"""The proxy's reading of the lines between a client and a server: what passes as it came, what is held, what is added."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projectmem import mcp_splice
from projectmem.hook.payload import served
from projectmem.mcp_gate import Gated
from projectmem.mcp_proxy import noted_alike


class Verdict:
    """What the gate said of a call."""

    def __init__(self, refused: bool, reason: str) -> None:
        self.refused, self.reason = refused, reason


class Gate:
    """Refuses the tool `no`, has a word for `warned`, and keeps what it is told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.told: list[Any] = []

    def before(self, tool: str, args: Any, **more: Any) -> Verdict:
        self.asked.append((tool, args))
        return Verdict(tool.endswith("__no"), "because" if "__no" in tool else "mind" if "warned" in tool else "")

    def after(self, verdict: Verdict, result: Any = None, *, is_error: bool | None = None, ended: str = "") -> str:
        self.told.append((result, is_error, ended))
        return verdict.reason


def gated(*hooked: str) -> tuple[Gated, Gate]:
    gate = Gate()
    return Gated(gate, lambda call, *_: call in hooked, "my server!"), gate


def call(tool: str, id: Any = 1, **more: Any) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}, **more}}
    ).encode()


def answer(id: Any = 1, **result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n"


TEXT = [{"type": "text", "text": "fine"}]


@pytest.mark.parametrize(
    "line",
    [
        b"\n", b"no json at all\r\n", b'{"jsonrpc":"2.0", "method" : "ping","id":1e3}\n', b"[1, 2.50, \xff]\n", b'{"id": 1}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}\n', b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"no"}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}\n', b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":{"n":1.10,"n":1E400}}}\r\n',
    ],
)  # fmt: skip
def test_what_is_not_held_passes_byte_for_byte(line: bytes) -> None:
    """Both ways, with calls under way."""
    between, _ = gated()
    between.from_client(call("warned", 77))
    assert between.from_client(line) == (line, b"")
    assert between.from_server(line) == line


def test_a_refused_call_is_answered_and_not_passed() -> None:
    """Also where the method is written with escapes; an answer of the server to nobody's call is passed."""
    between, gate = gated()
    passed, said = between.from_client(call("no", "a").replace(b"tools/call", b"tools\\/call"))
    assert passed == b""
    assert json.loads(said) == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {"content": [{"type": "text", "text": "because"}], "isError": True},
    }
    assert gate.asked == [("mcp__my_server___no", {})]
    late = answer("a", content=TEXT)
    assert between.from_server(late) == late
    assert gate.told == []


def test_a_refusal_has_the_form_that_the_protocol_wants() -> None:
    """The protocol of 2026 wants to know that a result is whole; a call that asks for a task takes no result."""
    between, _ = gated()
    modern = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    assert json.loads(between.from_client(call("no", **modern))[1])["result"]["resultType"] == "complete"
    assert json.loads(between.from_client(call("no", task={"ttl": 1}))[1])["error"]["message"] == "because"


def test_of_a_batch_only_the_refused_calls_are_held() -> None:
    """A list of messages, as the protocol of March 2025 has them."""
    between, _ = gated()
    batch = b"[" + b",".join([call("no", 1), call("warned", 2), call("ok", 3)]) + b"]\n"
    passed, said = between.from_client(batch)
    assert [m["id"] for m in json.loads(passed)] == [2, 3]
    assert [m["id"] for m in json.loads(said)] == [1]
    back = between.from_server(b"[" + answer(3, content=TEXT).strip() + b"," + answer(2, content=TEXT).strip() + b"]\n")
    assert [len(m["result"]["content"]) for m in json.loads(back)] == [1, 2]


def test_outcomes_by_result_error_cancellation_task_and_loss() -> None:
    """Each once, in the terms of the gate."""
    between, gate = gated()
    for number in range(8):
        between.from_client(call("ok", number))
    between.from_server(answer(0, content=[*TEXT, {"type": "image", "data": ""}], isError=False))
    between.from_server(answer(1, content=[{"type": "text", "text": "bad"}], isError=True))
    between.from_server(b'{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such tool"}}\n')
    for number, why in ((3, "the user left"), (4, "McpError: Request timed out")):
        params = {"requestId": number, "reason": why}
        between.from_client(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode())
    between.from_server(answer(5, task={"taskId": "t5", "status": "working"}))
    between.from_server(answer(6, resultType="input_required", inputRequests={}))
    between.from_server(answer(3, content=TEXT))
    assert gate.told == [
        ("fine", False, ""), ("bad", True, ""), ("no such tool", True, ""), ("the user left", None, "cancelled"),
        ("McpError: Request timed out", None, "timeout"), ("", None, "cancelled"),
    ]  # fmt: skip
    ask = {"jsonrpc": "2.0", "id": 9, "method": "tasks/result", "params": {"taskId": "t5"}}
    between.from_client(json.dumps(ask).encode())
    between.from_server(answer(9, structuredContent={"x": 1}))
    assert gate.told[-1] == ('{"x": 1}', False, "")
    (said,) = between.lost("it died", failed=True)
    assert json.loads(said)["id"] == 7
    assert gate.told[-1] == ("it died", True, "")
    between.from_client(call("ok", 10))
    between.lost("left", failed=False)
    assert gate.told[-1] == ("left", None, "interrupted")


def test_an_answer_of_no_known_form_is_no_success() -> None:
    """An error that is no object is an error; neither a result nor an error tells nothing."""
    between, gate = gated()
    for number in range(3):
        between.from_client(call("ok", number))
    between.from_server(b'{"jsonrpc":"2.0","id":0,"error":"boom"}\n')
    between.from_server(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":{"why":"x"}}}\n')
    between.from_server(b'{"jsonrpc":"2.0","id":2}\n')
    assert gate.told == [("boom", True, ""), ('{"why": "x"}', True, ""), ("", None, "cancelled")]


@pytest.mark.parametrize("inside", [b"[" * 100_000 + b"]" * 100_000, b"9" * 5_000], ids=["deep", "long number"])
def test_an_answer_that_cannot_be_read_here_ends_its_call(inside: bytes) -> None:
    """It passes as it came, and the client gets no second answer when the server ends. A line of a log ends nothing."""
    between, gate = gated()
    for id in ("a", 2, 3):
        between.from_client(call("ok", id))
    for id in (b'"a"', b"2"):
        line = b'{"jsonrpc":"2.0","id":' + id + b',"result":{"isError":true,"content":[],"x":' + inside + b"}}\n"
        assert between.from_server(line) == line
    for log in (b'reading {"jsonrpc": "2.0", "id": 3,\n', b'{"id": 3, "level": info}\n'):
        assert between.from_server(log) == log
    assert gate.told == [("", None, "cancelled")] * 2
    assert [json.loads(said)["id"] for said in between.lost("it died", failed=True)] == [3]


def test_a_server_s_own_requests_are_no_answers() -> None:
    """It counts its requests for itself: the same id means another thing."""
    between, gate = gated()
    between.from_client(call("warned", 1))
    line = b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}\n'
    assert between.from_server(line) == line
    assert between.from_server(answer(1, content=TEXT)) != answer(1, content=TEXT)
    assert len(gate.told) == 1


def test_a_call_that_a_hook_has_is_the_hook_s() -> None:
    """Claude Code's hooks are told of MCP calls, and it names the call for the server too."""
    between, gate = gated("toolu_1")
    own = {"_meta": {"claudecode/toolUseId": "toolu_1"}}
    assert between.from_client(call("no", **own))[1] == b""
    assert gate.asked == []
    assert between.from_client(call("no", _meta={"claudecode/toolUseId": "toolu_2"}))[1]


def test_a_server_is_called_what_it_calls_itself_where_nobody_says() -> None:
    """In either of the protocol's two greetings."""
    for method, told in (("initialize", {"serverInfo": {"name": "shop"}}),
                         ("server/discover", {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "shop"}}})):  # fmt: skip
        gate = Gate()
        between = Gated(gate, lambda *_: False, "", "/usr/bin/python3")
        between.from_client(
            json.dumps({"jsonrpc": "2.0", "id": 0, "method": method, "params": {"clientInfo": {"name": "c"}}}).encode()
        )
        between.from_server(answer(0, **told))
        between.from_client(call("ok"))
        assert gate.asked[-1][0] == "mcp__shop__ok"
        assert between.client == "c"


KEYS = st.sampled_from(["content", "result", "error", "message", "x", "id"]) | st.text(max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(max_size=3) | st.just("structuredContent"), JSON, max_size=4),
    st.lists(JSON, max_size=3),
    st.text(),
    st.booleans(),
)
def test_a_word_is_added_behind_the_content_and_nothing_else_changes(
    result: dict[str, Any], content: list[Any], words: str, spaced: bool
) -> None:
    """For any result: what was there is there, byte for byte, before and behind the new block."""
    whole: dict[str, Any] = {"jsonrpc": "2.0", "result": {**result, "content": content}, "id": 1}
    line = json.dumps(whole, indent=1 if spaced else None, ensure_ascii=spaced).replace("\n", " ") + "\r\n"
    made = mcp_splice.added(line, words, 1)
    whole["result"]["content"] = [*content, {"type": "text", "text": words}]
    assert json.loads(made) == whole
    block = json.dumps({"type": "text", "text": words}, separators=(",", ":"))
    assert made.replace(f",{block}", "", 1) == line or made.replace(block, "", 1) == line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"id":1,"error":{"message":"bad","code":1.50}}', '{"id":1,"error":{"message":"bad\\nhm","code":1.50}}'),
        ('{"id":1,"result":{}}', '{"id":1,"result":{"content":[{"type":"text","text":"hm"}]}}'),
        ('{"id":1,"result":{"a":1e400}}', '{"id":1,"result":{"content":[{"type":"text","text":"hm"}],"a":1e400}}'),
        ('{"id":1,"result":{"content":"odd"}}', '{"id":1,"result":{"content":"odd"}}'),
        ('{"id":1,"result":[]}', '{"id":1,"result":[]}'),
        ('{"id":1,"error":{}}', '{"id":1,"error":{}}'),
        ('[{"id":2,"result":{}},{"id":3}]', '[{"id":2,"result":{}},{"id":3}]'),
    ],
)
def test_a_word_where_there_is_no_content(line: str, expected: str) -> None:
    """An error's message, a result without content; where nothing takes a word the line stays."""
    assert mcp_splice.added(line, "hm", 1) == expected


NAMED = {
    "mcp__shop__deploy": "codex-mcp-client", "shop-deploy": "copilot-cli", "shop_deploy": "opencode",
    "shop___deploy": "factory-cli", "MCP:deploy": "cursor-vscode", "deploy_it": "some client",
}  # fmt: skip
HOOK_OF = {"codex": "codex", "copilot": "copilot", "opencode": "opencode", "factory": "droid", "cursor": "cursor", "some": "pi"}


@pytest.mark.parametrize("tool", NAMED)
def test_a_hook_s_note_is_found_by_the_tool_the_arguments_and_the_client(tool: str) -> None:
    """Whatever a client calls the server's tool; the order of the arguments is nobody's, their values are the call's."""
    client = NAMED[tool]
    harness = HOOK_OF[client.partition("-")[0].partition(" ")[0]]
    call = {"tool": tool, "harness": harness, "input": {"target": "x", "n": 1}}
    notes: list[tuple[str, str, dict[str, Any]]]
    notes = [("s", "c", {"t0": 1, "mcp": served(call)})]
    bare = "deploy_it" if tool == "deploy_it" else "deploy"
    given = {"n": 1, "target": "x"}
    assert noted_alike(notes, bare, given, client) == [("s", "c")]
    assert noted_alike(notes, bare, given, "a client with a name of its own") == [("s", "c")]
    assert noted_alike(notes, bare, {**given, "n": 2}, client) == []
    assert noted_alike(notes, "eploy", given, client) == []
    assert noted_alike(notes, "undeploy", given, client) == []
    assert noted_alike(notes, bare, given, "gemini-cli-mcp-client") == []
    refused = [("s", "c", {**notes[0][2], "refused": True})]
    assert noted_alike(refused, bare, given, client) == [], "what the hook refused never came here"


def test_what_is_no_server_s_tool_or_the_proxy_s_own_call_leaves_no_mark() -> None:
    """And a name that would break the note is none."""
    for tool, harness in (("Bash", "claude-code"), ("mcp__a__b", "mcp"), ('mcp__a__"', "codex"), ("mcp__a__\n", "codex")):
        assert served({"tool": tool, "harness": harness, "input": {}}) == ""
    assert served({"tool": "mcp__a__b", "harness": "codex", "input": {}}).startswith("codex mcp__a__b-")
    assert served({"tool": "mcp__a__b", "harness": "codex", "input": {"x": float("nan")}}) == ""
