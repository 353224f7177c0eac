"""`--wrap` in the settings of Codex, opencode, Copilot, Gemini, Qwen and Cline: undone byte for byte, also by `uninit`."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projectmem.cli.app import run
from projectmem.setup import init as setup
from projectmem.setup import jsonc, wrapping
from projectmem.setup.toml_text import items, quoted, string_of, values

NOW = 1_790_000_000_000_000
PROXY = ["-P", "-m", "projectmem", "proxy"]
TOML = {
    "as codex writes it": '[mcp_servers.shop]\ncommand = "npx"\nargs = ["-y", "thing"]\n\n[mcp_servers.shop.env]\nA = "b"\n',
    "comments": '# mine\n[mcp_servers.shop]  # the shop\ncommand = "npx" # which\nargs = [ # what\n  "-y", # yes\n'
    '  "b",\n]\n# end',
    "no args": '[mcp_servers.shop]\ncommand = "npx"   # alone\nstartup_timeout_sec = 20\n',
    "empty args": "[mcp_servers.shop]\nargs = []\ncommand = 'C:\\x\\y.exe'\n",
    "strings": '[mcp_servers."my shop"]\ncommand = """np\\\n  x"""\nargs = [\'\'\'a]#"\'\'\', "#]", "\\"]", "\\u00e9"]\n',
    "dotted": 'model = "x"\nmcp_servers.shop.command = "npx"\nmcp_servers.shop.args=["a"]\nmcp_servers.b.command="c"\n',
    "windows": '[mcp_servers.shop]\r\ncommand = "npx"\r\nargs = ["-y"]\r\n[mcp_servers.two]\r\ncommand = "x"\r\n',
    "address": '[mcp_servers.web]\nurl   =  "http://127.0.0.1:9/mcp" # here\ntool_timeout_sec = 5\n[features]\nx = true\n',
    "all sorts": '[a]\nd = 1979-05-27T07:32:00Z\nt = {x = "}", y = [1, {z = 2}], }\n[[b]]\nc = -1.5e3\n'
    '[mcp_servers.s]\ncommand="x"\nargs=["y"]\n',
}  # fmt: skip


@pytest.mark.parametrize("name", TOML)
def test_codex_s_toml_keeps_every_other_byte(tmp_path: Path, name: str) -> None:
    """Each server is started by the proxy with its own words; twice is once; back it is what it was."""
    if "all sorts" in name and sys.version_info < (3, 15):
        TOML[name] = TOML[name].replace("2}], }", "2}]}")  # a comma after the last member came with TOML 1.1
    file = tmp_path / "config.toml"
    before = TOML[name].encode()
    file.write_bytes(before)
    old = tomllib.loads(TOML[name])
    names = wrapping.wrap(file)
    assert names == list(old["mcp_servers"]) and wrapping.left(file) == []
    wrapped = file.read_bytes()
    assert wrapping.wrap(file) == [] and file.read_bytes() == wrapped
    new = tomllib.loads(wrapped.decode())
    for server, was in old["mcp_servers"].items():
        now = new["mcp_servers"][server]
        own = [was["command"], *was.get("args", [])] if "command" in was else [was["url"]]
        assert now["command"] == sys.executable and now["args"][:4] == PROXY and now["args"][-len(own) :] == own
        assert ("--" if "command" in was else "--url") == now["args"][-len(own) - 1]
        moved = ("command", "args", "url")
        assert {k: v for k, v in now.items() if k not in moved} == {k: v for k, v in was.items() if k not in moved}
    assert {**new, "mcp_servers": 0} == {**old, "mcp_servers": 0}
    comments = [line.partition(b"#")[2] for line in before.splitlines() if b"# " in line]
    assert all(comment in wrapped for comment in comments)
    assert wrapping.unwrap(file) == names and file.read_bytes() == before
    assert wrapping.unwrap(file) == []


@pytest.mark.parametrize(("text", "why"), [
    ('[mcp_servers.a]\nurl = "https://x.test/mcp"\n', "over HTTP without headers"),
    ('[mcp_servers.a]\nurl = "https://x.test/mcp"\nbearer_token_env_var = "SECRET"\n', "`bearer_token_env_var`"),
    ('[mcp_servers.a]\nurl = "ftp://x"\n', "begins with http"),
    ('[mcp_servers]\na = {command = "x", args = []}\n', "inline table"),
    ('mcp_servers = {a = {url = "http://localhost/"}}\n', "inline table"),
    ("[mcp_servers.a]\ncommand = 5\n", "not a text"),
    ("[mcp_servers.a]\nenabled = true\n", "neither a command nor an address"),
])  # fmt: skip
def test_what_is_left_of_codex_s_servers_is_named(tmp_path: Path, text: str, why: str) -> None:
    """Nothing is written where it could be wrong."""
    file = tmp_path / "config.toml"
    file.write_text(text)
    assert wrapping.wrap(file) == [] and file.read_text() == text
    ((name, said),) = wrapping.left(file)
    assert name == "a" and why in said
    assert wrapping.wrap(file, every=True) == (["a"] if "without headers" in why else [])


_STRINGS = st.text(st.characters(codec="utf-8"), max_size=12)


@given(_STRINGS, st.lists(_STRINGS, max_size=4), _STRINGS, st.booleans())
def test_values_are_found_whatever_stands_in_them(name: str, args: list[str], comment: str, lines: bool) -> None:
    """Spans of strings and items are those that the parser reads."""
    gap = "\n  " if lines else " "
    said = "".join(c for c in comment if c.isprintable())
    text = f"# {said}\n[mcp_servers.{quoted(name)}] # {said}\nargs = [{''.join(f'{quoted(a)},{gap}' for a in args)}] # {said}\n"
    assert tomllib.loads(text)["mcp_servers"][name]["args"] == args
    (value,) = values(text)
    assert value.path == ("mcp_servers", name, "args")
    assert [string_of(text[start:end]) for start, end in items(text, value)] == args
    assert tomllib.loads(f"a = {text[value.start : value.end]}")["a"] == args


REMOTE = '{"type": "remote", "url": "https://x.test/mcp", "headers": {"Authorization": "Bearer {env:KEY}"}, "enabled": true}'
JSON = {
    "opencode.json": '{"mcp": {"a": {"type": "local", "command": ["npx", "-y"], "environment": {"A": "b"}}, "r": '
    + REMOTE
    + "}}",
    "opencode.jsonc": '{\n  // mine\n  "mcp": {\n    "a": {\n'
    '      "type": "local", "command": [ /* x */ "npx",\n "-y",],\n    },\n  },\n}\n',
    "mcp-config.json": '{"mcpServers": {"a": {"tools": ["*"], "type": "local", "command": "npx", "args": ["-y", "thing"]}}}',
    "settings.json": '{\n  // Gemini\n'
    '  "mcpServers": {\n    "a": {"command": "npx", "args": ["-y"], "trust": true}\n  }, "ui": {}\n}\n',
    "cline_mcp_settings.json": '{"mcpServers": {"a": '
    '{"transport": {"type": "stdio", "command": "npx", "args": ["-y"]}, "disabled": false}}}',
}  # fmt: skip


def _started(entry: dict[str, Any]) -> list[str]:
    entry = entry.get("transport", entry)
    command = entry["command"]
    return command if isinstance(command, list) else [command, *entry["args"]]


@pytest.mark.parametrize("name", JSON)
def test_every_client_s_form_goes_there_and_back(tmp_path: Path, name: str) -> None:
    """opencode's command is one list; Cline's newer settings have how a server is reached one level deeper."""
    file = tmp_path / name
    file.write_text(JSON[name])
    old = next(v for k, v in jsonc.parse(JSON[name]).data.items() if k in wrapping.LISTS)
    names = wrapping.wrap(file)
    assert names == list(old) and wrapping.left(file) == []
    wrapped = file.read_text()
    assert wrapping.wrap(file) == [] and file.read_text() == wrapped
    new = next(v for k, v in jsonc.parse(wrapped).data.items() if k in wrapping.LISTS)
    assert _started(new["a"]) == [sys.executable, *PROXY, "--name", "a", "--", *_started(old["a"])]
    if "r" in old:
        assert _started(new["r"]) == [sys.executable, *PROXY, "--name", "r"]
        assert (new["r"]["type"], new["r"]["enabled"], "headers" in new["r"]) == ("local", True, False)
        assert json.loads(new["r"]["environment"]["PROJECTMEM_MCP_SERVER"]) == old["r"]
    assert wrapping.unwrap(file) == names and file.read_text() == JSON[name]


def test_uninit_takes_the_proxy_out_and_a_dry_run_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where hooks and servers are in one file, in either order; a file that is gone is in nobody's way."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    codex, shared, gone = (repo / ".codex" / "config.toml", repo / ".gemini" / "settings.json", repo / "gone.json")
    before = {codex: TOML["comments"], shared: JSON["settings.json"], gone: JSON["mcp-config.json"]}
    for path, text in before.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for first, second in ((("init",), ("wrap",)), (("wrap",), ("init",))):
        setup.init(str(repo), now=NOW, harnesses=(), import_sessions=False)
        for (step,) in (first, second):
            if step == "init":
                setup.init(str(repo), now=NOW, harnesses=["gemini"], import_sessions=False)
                continue
            for path in before:
                was = path.read_text()
                assert run(["proxy", "--wrap", str(path), "--dry-run", "--root", str(repo)]) == 0
                said = capsys.readouterr().out
                assert "the gate would be before the tools of" in said and "nothing was changed" in said
                assert path.read_text() == was
                assert run(["proxy", "--wrap", str(path), "--root", str(repo)]) == 0
                assert path.read_text() != was
                capsys.readouterr()
                assert run(["proxy", "--wrap", str(path), "--root", str(repo)]) == 0
                said = capsys.readouterr().out
                assert "the gate is before the tools of" in said and " already" in said and "nothing to wrap" not in said
        gone.unlink()
        done = "\n".join(setup.uninit(str(repo)))
        assert f"took the proxy from before shop in {codex}" in done and str(gone) not in done
        assert {path: path.read_text() for path in (codex, shared)} == {path: before[path] for path in (codex, shared)}
        assert "took the proxy" not in "\n".join(setup.uninit(str(repo)))
        gone.write_text(before[gone])
