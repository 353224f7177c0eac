"""`proxy --wrap` and `--unwrap`: the proxy's words come before the server's and go again, byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from projectmem.cli.app import run
from projectmem.errors import NotFoundError
from projectmem.setup import jsonc, wrapping
from projectmem.setup.hook_lists import SettingsError
from tests.patience import PATIENCE

FILES = {
    "plain": '{\n  "mcpServers": {\n    "a": {\n      "command": "npx",\n      "args": ["-y"],\n      "env": {}\n    }\n  }\n}\n',
    "lines": '{"mcpServers": {"a": {"args": [\n  "-y",\n  "thing"\n], "command": "npx"}}}',
    "no args": '{"mcpServers":{"a":{"command":"npx"},"b":{"type":"http","url":"http://x"}}}',
    "empty args": '{"mcpServers":{"a":{"command":"npx","args":[]}}}',
    "empty args, spaced": '{"mcpServers": {"a": {"command": "npx", "args": [ ]}}}\n',
    "windows": '{\r\n\t"servers": {\r\n\t\t"my srv": {"command": "C:\\\\x\\/y.exe", "args": ["\\u00e9", "--"]}\r\n\t}\r\n}\r\n',
    "comments": '// mine\n{"servers": {"a": {"command": "npx", /* which */ "args": ["-y", // yes\n "b",],},},}\n',
    "mark": '\ufeff{"mcpServers": {"a": {"command": "npx", "args": ["x"]}}}',
    "both": '{"mcpServers": {"a": {"command": "x", "args": ["1"]}, "c": {"command": "y"}}, "servers": {"b": {"command": "z"}}}',
    "none": '{"mcpServers": {"b": {"url": "http://x"}}, "other": 1}',
}


@pytest.mark.parametrize("name", FILES)
def test_wrapped_and_unwrapped_is_as_before(tmp_path: Path, name: str) -> None:
    """Twice is once; between, each server is started by the proxy with its own words behind `--`."""
    file = tmp_path / ".mcp.json"
    before = FILES[name].encode()
    file.write_bytes(before)
    names = wrapping.wrap(file)
    wrapped = file.read_bytes()
    assert wrapping.wrap(file) == []
    assert file.read_bytes() == wrapped
    old, new = (jsonc.parse(text.decode().removeprefix("\ufeff")).data for text in (before, wrapped))
    for key in ("mcpServers", "servers"):
        for server, settings in old.get(key, {}).items():
            now = new[key][server]
            if "command" not in settings:
                assert now == settings
                continue
            assert server in names
            assert now["command"] == sys.executable
            at = now["args"].index("--")
            assert now["args"][at + 1 :] == [settings["command"], *settings.get("args", [])]
            assert {k: v for k, v in now.items() if k not in ("command", "args")} == {
                k: v for k, v in settings.items() if k not in ("command", "args")
            }
    assert wrapping.unwrap(file) == names
    assert file.read_bytes() == before
    assert wrapping.unwrap(file) == []


def test_our_own_server_is_left_alone_and_what_is_no_settings_file_is_named(tmp_path: Path) -> None:
    """Nothing is written where it could be wrong."""
    from projectmem.setup.plugin import server

    file = tmp_path / ".mcp.json"
    with pytest.raises(NotFoundError):
        wrapping.wrap(file)
    file.write_text(json.dumps({"mcpServers": {"projectmem": server()}}))
    assert wrapping.wrap(file) == []
    file.write_text('{"mcpServers": {')
    with pytest.raises(SettingsError, match="nothing was changed"):
        wrapping.wrap(file)


ENTRY = '{"type": "http", "url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${KEY}"}, "timeout": 5}'
OVER_HTTP = {
    "one line": f'{{"mcpServers": {{"a": {ENTRY}, "c": {{"command": "npx", "args": ["-y"]}}}}}}',
    "lines": '{\n  "mcpServers": {\n    "a": {\n      "url": "http://127.0.0.1:8000/mcp",\n      "trust": true\n    }\n  }\n}\n',
    "comments": '{\r\n\t"servers": {\r\n\t\t"a": {\r\n\t\t\t"url": "http://[::1]/é", // "mine"\r\n\t\t},\r\n\t},\r\n}',
    "gemini": '{"mcpServers": {"a": {"httpUrl": "https://x.test/mcp", "headers": {"X-Key": "a\\"b"}}}}',
    "variable": '{"mcpServers": {"a": {"url": "${BASE}/mcp", "headers": {"X-Key": "${env:KEY}"}, "disabled": false}}}',
}


@pytest.mark.parametrize("name", OVER_HTTP)
def test_an_entry_with_an_address_is_a_command_while_it_is_wrapped(tmp_path: Path, name: str) -> None:
    """How it is reached, headers included, is in the environment of the proxy, in no argument; what else it says stays."""
    file = tmp_path / ".mcp.json"
    before = OVER_HTTP[name].encode()
    file.write_bytes(before)
    names = wrapping.wrap(file)
    assert "a" in names and wrapping.left(file) == []
    wrapped = file.read_bytes()
    assert wrapping.wrap(file) == [] and file.read_bytes() == wrapped
    old, new = (next(iter(jsonc.parse(text.decode()).data.values()))["a"] for text in (before, wrapped))
    assert new["command"] == sys.executable
    assert new["args"] == ["-P", "-m", "projectmem", "proxy", "--name", "a"]
    assert ("type" in new) == ("type" in old) and new.get("type", "stdio") == "stdio"
    assert jsonc.parse(new["env"]["PROJECTMEM_MCP_SERVER"]).data == old
    reached = ("url", "httpUrl", "type", "headers")
    others = {key: value for key, value in old.items() if key not in reached}
    assert {key: value for key, value in new.items() if key not in ("type", "command", "args", "env")} == others
    assert wrapping.unwrap(file) == names
    assert file.read_bytes() == before


def test_what_was_changed_of_a_wrapped_entry_survives(tmp_path: Path) -> None:
    """A client writes `disabled` into it meanwhile."""
    file = tmp_path / ".mcp.json"
    file.write_text(OVER_HTTP["one line"])
    wrapping.wrap(file)
    data = json.loads(file.read_text())
    data["mcpServers"]["a"]["disabled"] = True
    file.write_text(json.dumps(data))
    assert wrapping.unwrap(file) == ["a", "c"]
    assert json.loads(file.read_text())["mcpServers"]["a"] == {**json.loads(ENTRY), "disabled": True}


LEFT = {
    '{"url": "https://x.test/mcp"}': "over HTTP without headers",
    '{"url": "https://x.test/mcp", "headers": {"A": "b"}, "oauth": {}}': "`oauth`",
    '{"url": "ftp://x.test/", "headers": {"A": "secret"}}': "begins with http",
    '{"url": "http://127.0.0.1/", "headers": {"A": 1}}': "an object of texts",
    '{"url": "http://127.0.0.1/", "headers": {"A": "secret\\nB: c"}}': "cannot be sent",
    '{"command": ["npx", "-y"]}': "not a text",
    '{"type": "stdio"}': "neither a command nor an address",
    "5": "neither a command nor an address",
}


@pytest.mark.parametrize("entry", LEFT)
def test_what_is_left_as_it_is_is_said_with_the_reason(tmp_path: Path, entry: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody thinks that the gate is before a server where it is not; no header's value is shown."""
    file = tmp_path / ".mcp.json"
    file.write_text(f'{{"mcpServers": {{"a": {entry}}}}}')
    before = file.read_bytes()
    assert run(["proxy", "--wrap", str(file)]) == 0
    assert file.read_bytes() == before
    said = capsys.readouterr()
    assert "left a as it is: " in said.err and LEFT[entry] in said.err
    assert "secret" not in said.err + said.out
    assert wrapping.wrap(file, every=True) == (["a"] if "without headers" in LEFT[entry] else [])


@pytest.mark.parametrize(("name", "text", "said"), [
    ("config.toml", "[mcp_servers.a]\nx =\n", "is not valid TOML"),
    ("other.toml", "model = 1\n", "has no `.mcp_servers.`"),
    ("list.json", "[1]", "none of `mcpServers`, `servers` and `mcp`"),
])  # fmt: skip
def test_a_file_of_another_kind_is_refused_in_words(tmp_path: Path, name: str, text: str, said: str) -> None:
    """And not called empty, or bad JSON."""
    (tmp_path / name).write_text(text)
    with pytest.raises(SettingsError, match=said):
        wrapping.wrap(tmp_path / name)


@pytest.mark.slow
def test_the_wrapped_command_starts_the_server(tmp_path: Path) -> None:
    """As a client would start it; the exit code and standard error are the server's."""
    file = tmp_path / ".mcp.json"
    program = "import sys; sys.stdout.write(sys.stdin.readline()); sys.stderr.write('hm'); sys.exit(5)"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": sys.executable, "args": ["-c", program]}}}))
    wrapping.wrap(file)
    started = json.loads(file.read_text())["mcpServers"]["a"]
    done = subprocess.run([started["command"], *started["args"]], input=b'{"a": 1.0}\r\n', capture_output=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr, done.returncode) == (b'{"a": 1.0}\r\n', b"hm", 5)
    file.write_text(json.dumps({"mcpServers": {"a": {"command": str(tmp_path / "gone")}}}))
    wrapping.wrap(file)
    started = json.loads(file.read_text())["mcpServers"]["a"]
    done = subprocess.run([started["command"], *started["args"]], input=b"", capture_output=True, timeout=PATIENCE)
    assert done.returncode == 3
    assert b"cannot be started" in done.stderr
