"""`proxy --wrap` and `--unwrap`: the proxy's words come before the server's and go again, byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
