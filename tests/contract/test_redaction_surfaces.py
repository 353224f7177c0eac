"""No secret of 26 shapes gets into a file of the log by any way of writing; none that is there is shown by any way of reading."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_projections.rebuild import rebuild

from projectmem import mcp_server, place
from projectmem.cli import app as cli
from projectmem.errors import BadInputError
from projectmem.hook import entry

MIX = "a1B2c3D4e5F6g7H8i9J0" * 3
# What rivals' memories are known to keep: (text, the secret in it). Put together here, so that no scanner takes them for real.
SHAPES: list[tuple[str, str]] = [
    ("AKIA" + "QWERTYUIOP123456", "AKIA" + "QWERTYUIOP123456"),
    ("ghp_" + MIX[:36], "ghp_" + MIX[:36]),
    ("github_pat_" + MIX[1:50], "github_pat_" + MIX[1:50]),
    ("glpat-" + MIX[2:22], "glpat-" + MIX[2:22]),
    ("xoxb-" + "123456789012-" + MIX[3:23], "xoxb-" + "123456789012-" + MIX[3:23]),
    ("sk_live_" + MIX[4:28], "sk_live_" + MIX[4:28]),
    ("sk-ant-api03-" + MIX[5:45], "sk-ant-api03-" + MIX[5:45]),
    ("sk-proj-" + MIX[6:46], "sk-proj-" + MIX[6:46]),
    ("AIza" + MIX[7:42], "AIza" + MIX[7:42]),
    ("npm_" + MIX[8:44], "npm_" + MIX[8:44]),
    ("pypi-" + "AgEIcHlwaS5vcmc" + MIX[9:39], "AgEIcHlwaS5vcmc" + MIX[9:39]),
    ("hf_" + MIX[10:44], "hf_" + MIX[10:44]),
    ("SG." + MIX[:22] + "." + MIX[11:54], MIX[:22] + "." + MIX[11:54]),
    ("dop_v1_" + "0b" * 32, "dop_v1_" + "0b" * 32),
    ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiI5OTk5In0." + MIX[12:42], "zdWIiOiI5OTk5In0." + MIX[12:42]),
    ("-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEvQIBADANZZkq\nhkiG9w0BAQEFZZSC\n-----END " + "RSA PRIVATE KEY-----",
     "hkiG9w0BAQEFZZSC"),
    ("password=correcthorse1", "correcthorse1"),
    ("export DB_PASSWORD=correcthorse2", "correcthorse2"),
    ("export X=" + MIX[13:53], MIX[13:53]),
    ("postgres://bob:correcthorse3@localhost/db", "correcthorse3"),
    ("https://bob:correcthorse4@host:8080/x", "correcthorse4"),
    ("Authorization: Bearer abc.def.correcthorse5", "abc.def.correcthorse5"),
    ("api_key=correcthorse6", "correcthorse6"),
    ("client_secret: correcthorse7", "correcthorse7"),
    ("curl -u bob:correcthorse8 https://x.y", "correcthorse8"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYZZAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYZZAMPLEKEY"),
]  # fmt: skip


WORD = "hunter9Horse"
AUTH = "dXNlcjpodW50ZXI5SG9yc2U="  # user:hunter9Horse
# Calls whose secret is given away by a member's name, a neighbour or a command's own way: (tool, input, the secret).
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("mcp__http__post", {"url": "http://h/x", "headers": {"Authorization": f"Basic {AUTH}"}}, AUTH),
    ("mcp__db__run", {"password": 'q"uote9secret', "sql": "x"}, "uote9secret"),
    ("mcp__db__run", {"password": "ml1secret\nml2secret"}, "ml2secret"),
    ("mcp__db__run", {"args": ["--password", WORD]}, WORD),
    ("mcp__db__run", {"env": [{"name": "DB_PASSWORD", "value": WORD}]}, WORD),
    ("mcp__db__run", {"passwords": {"db": 1}, "password": ["hunter8Horse"]}, "hunter8Horse"),
    ("Bash", {"command": "cat ~/.docker/config.json"}, AUTH),
    ("Bash", {"command": f"curl -H 'Cookie: session={WORD}' http://h"}, WORD),
    ("Bash", {"command": f"openssl rsa -passin pass:{WORD}"}, WORD),
    ("Bash", {"command": f"aws configure set aws_secret_access_key {WORD}KeyEXAMPLE"}, WORD),
]


class World:
    """A project, and every way to write to its log and to read from it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.home, self.capsys, self.calls = root, root / ".projectmem-gate", capsys, 0
        found = place.find(str(root))
        assert found is not None
        self.place = found
        self.mcp = mcp_server.Tools(found, clock=lambda: time.time_ns() // 1000, nonce=lambda: "n0nce")

    def cli(self, *args: str) -> str:
        """One command, whatever comes of it; everything it prints."""
        cli.run(list(args))
        captured = self.capsys.readouterr()
        assert "Traceback" not in captured.err
        return captured.out + captured.err

    def hook(self, event: str, **fields: Any) -> str:
        """One event of the harness; the answer."""
        raw = {"session_id": "s1", "cwd": str(self.root), "hook_event_name": event, **fields}
        return json.dumps(entry.respond(["claude-code", event], json.dumps(raw).encode(), time.time_ns() // 1000))

    def call(self, command: str, said: str) -> str:
        """A command that is proposed, fails, is told again with its batch, and is proposed by another session."""
        self.calls += 1
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"c{self.calls}"}
        out = self.hook("PreToolUse", **call)
        out += self.hook("PostToolUseFailure", **call, error=f"Exit code 2\n{said}\nmake: *** Error 2", duration_ms=90_000)
        out += self.hook("PostToolBatch", tool_calls=[{**call, "tool_response": f"Exit code 2\n{said}"}])
        return out + self.hook("PreToolUse", **{**call, "tool_use_id": f"d{self.calls}"}, session_id="s2")

    def holding(self) -> dict[str, list[str]]:
        """{secret: files that hold it}; the policy's file is the person's own."""
        out: dict[str, list[str]] = {}
        for path in self.home.rglob("*"):
            if path.is_file() and path.name != "policy.toml":
                raw = path.read_bytes()
                for _, secret in SHAPES:
                    if secret.encode() in raw:
                        out.setdefault(secret, []).append(str(path.relative_to(self.home)))
        return out


@pytest.fixture
def world(accepted: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> World:
    """An empty log, and a person at a terminal."""
    return World(accepted("human"), capsys)


@pytest.mark.parametrize(("tool", "given", "secret"), CALLS, ids=range(len(CALLS)))
def test_no_secret_gets_in_by_the_input_of_a_call(world: World, tool: str, given: dict[str, Any], secret: str) -> None:
    """Members of any depth, words of a command line kept as a list, names beside their values."""
    call = {"tool_name": tool, "tool_input": given, "tool_use_id": "c1"}
    said = f'{{"auths": {{"https://h/": {{"auth": "{AUTH}"}}}}}}' if "docker" in str(given) else "boom failed"
    world.hook("PreToolUse", **call)
    world.hook("PostToolUseFailure", **call, error=f"Exit code 1\n{said}")
    rebuild(str(world.home))
    assert not [path for path in world.home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def by_cli(world: World, text: str) -> None:
    """Every command that writes what a person says."""
    world.cli("record", "issue", text, "--path", text.split("\n")[0])
    for kind in ("hypothesis", "note", "fix"):
        world.cli("record", kind, "--", f"x {text}")
    world.cli("record", "note", "tagged", "--tag", text.split("\n")[0])
    world.cli("record", "fix", "y", "--verifier", text)
    world.cli("record", "attempt", f"x {text}", "--outcome", "failed", "--verifier", text)
    world.cli("record", "decision", text.split("\n")[0], text)
    id = json.loads(world.cli("log", "--kind", "note", "--json"))[0]["id"]
    world.cli("feedback", id, "--useful", "--note", text)
    world.cli("forget", id, "--reason", text, "--yes")


def by_label(world: World, text: str) -> None:
    """A person's rules."""
    world.cli("record", "label", "fragile", "--command", f"run {text.splitlines()[0]}", "--reason", text)


def by_policy(world: World, text: str) -> None:
    """A comment in an accepted policy."""
    comment = "".join(f"# {line}\n" for line in text.splitlines())
    (world.home / "policy.toml").write_text(f'{comment}mode = "advise"\n')
    world.cli("policy", "accept")


def by_mcp(world: World, text: str) -> None:
    """An agent's tools."""
    for kind in mcp_server.KINDS:
        try:
            world.mcp.record(kind, f"x {text}", "", "failed", text)
        except BadInputError:
            continue
    world.mcp.recall(f"what about {text}")
    world.mcp.check(command=f"echo {text}")


def by_hook(world: World, text: str) -> None:
    """Commands, their output, edits, prompts, sessions."""
    world.call(f"make x # {text}", f"error: {text}")
    world.call(f"deploy '{text}' && make", f"error: {text}")
    edit = {"file_path": str(world.root / "a.py"), "old_string": f"x = '{text}'", "new_string": text}
    call = {"tool_name": "Edit", "tool_input": edit, "tool_use_id": f"e{world.calls}"}
    world.hook("PreToolUse", **call)
    world.hook("PostToolUseFailure", **call, error=f"String to replace not found in file. {text}")
    world.hook("UserPromptSubmit", prompt=f"why does {text} fail?")
    world.hook("SessionStart", source="startup")
    world.hook("SessionEnd", reason=text)
    background = {"command": f"serve {text}", "run_in_background": True}
    told = {"tool_name": "Bash", "tool_input": background, "tool_use_id": f"b{world.calls}"}
    world.hook("PostToolBatch", tool_calls=[{**told, "tool_response": "Command running in background with ID: b1"}])


def by_import(world: World, text: str) -> None:
    """A harness's transcript."""
    from projectmem.importers.backfill import backfill
    from projectmem.importers.claude_code import slug

    folder = world.root / "claude" / "projects" / slug(str(world.root))
    folder.mkdir(parents=True, exist_ok=True)
    base = {"sessionId": "old", "cwd": str(world.root), "timestamp": "2026-01-01T00:00:00Z"}
    id = f"toolu_{abs(hash(text))}"
    use = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": f"make '{text}'"}}
    result = {"type": "tool_result", "tool_use_id": id, "is_error": True, "content": f"Exit code 2\n{text}"}
    lines = [{**base, "type": "assistant", "message": {"role": "assistant", "content": [use]}},
             {**base, "type": "user", "message": {"role": "user", "content": [result]}}]  # fmt: skip
    (folder / f"{id}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert backfill(world.place, now=time.time_ns() // 1000).recorded >= 1


def by_crash(world: World, text: str) -> None:
    """What is written when something is broken."""
    from projectmem import crash
    from projectmem.hook import degraded

    crash.write_details(ValueError(text), ["record", text])
    degraded.event(world.place, "s1", "claude-code", 5, "x", "y", text)
    degraded.note(str(world.home), "x", text, text)


WAYS = [by_cli, by_label, by_policy, by_mcp, by_hook, by_import, by_crash]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_secret_gets_in(world: World, monkeypatch: pytest.MonkeyPatch, way: Any) -> None:
    """By no way of writing, neither into the log nor into what is made of it; and the shapes are at least the known 21."""
    assert len(SHAPES) >= 21
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(world.root / "claude"))
    for text, _ in SHAPES:
        way(world, text)
    rebuild(str(world.home))
    assert world.holding() == {}


QUESTION = "what fails with an error?"
READING = [
    ("log", "-n", "0"), ("log", "-n", "0", "--json"), ("failures", "--all"), ("failures", "--all", "--json"), ("summary",),
    ("summary", "--json"), ("recall", QUESTION), ("recall", QUESTION, "--json"), ("stats", "--json"), ("replay", "--verify"),
    ("check", "--command", "make x"), ("check", "--command", "make x", "--json"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(SHAPES)), ids=lambda i: SHAPES[i][1][:8])
def test_no_secret_that_is_in_the_log_is_shown(world: World, monkeypatch: pytest.MonkeyPatch, index: int) -> None:
    """A log written without redaction: neither people nor agents read it, by no command, tool or hook."""
    from projectmem_logs.redact import Redactor

    text, secret = SHAPES[index]
    with monkeypatch.context() as broken:
        broken.setattr(Redactor, "text", lambda _, s: s)
        broken.setattr(Redactor, "tree", lambda _, obj: obj)
        for _ in range(3):
            world.call("make x", f"fails with an error: {text}")
        world.cli("record", "note", f"fails with an error when it sees {text}")
        world.cli("record", "decision", text.split("\n")[0], f"because it fails: {text}")
        world.cli("record", "label", "fragile", "--command", "make x", "--effect", "ask", "--reason", text)
    assert secret in world.holding()
    rebuild(str(world.home))
    said = [world.cli(*args) for args in READING]
    ids = [event["id"] for event in json.loads(world.cli("log", "-n", "0", "--json"))]
    said += [world.cli("explain", id) for id in ids[:8]] + [world.cli("explain", id, "--json") for id in ids[:3]]
    tools = [world.mcp.summary, world.mcp.failures, lambda: world.mcp.recall("what fails with an error?")]
    said += [mcp_server._told(tool)() for tool in tools]
    said += [mcp_server._told(world.mcp.explain)(id) for id in ids[:8]]
    said.append(mcp_server._told(lambda: world.mcp.check(command="make x"))())
    call = {"tool_name": "Bash", "tool_input": {"command": "make x"}, "tool_use_id": "z"}
    said += [world.hook("PreToolUse", **call, session_id="s9"), world.hook("SessionStart", source="startup", session_id="s9")]
    said.append(world.hook("UserPromptSubmit", prompt="what fails with an error?", session_id="s9"))
    assert sum(len(text) for text in said) > 3_000
    assert not [text for text in said if secret in text]
